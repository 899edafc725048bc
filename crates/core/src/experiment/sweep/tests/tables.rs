//! Tables measured elsewhere.

use super::super::conclude_table;
use super::{codes, near};
use crate::analysis::table::parse_csv;
use crate::report::{Finding, SweepConclusion};

const TABLE_ONE: &str = "vusers,throughput_per_s\n5000,\"88,318\"\n10000,88407\n20000,88309\n\
                         25000,88429\n30000,88392\n35000,88440\n";
const TABLE_TWO: &str = "vusers,throughput_per_s\n1,1833\n10,18226\n50,74684\n100,86069\n\
                         200,88455\n300,88375\n";

fn analyzed(csv: &str) -> (Vec<Finding>, SweepConclusion) {
    conclude_table(&parse_csv(csv.as_bytes()).expect(csv))
}

#[test]
fn the_classic_mistake_is_caught() {
    let (findings, conclusion) = analyzed(TABLE_ONE);
    assert_eq!(codes(&findings), ["saturated_below_range"]);
    assert!(
        findings[0].text.contains("the knee is below 5,000"),
        "{}",
        findings[0].text
    );
    assert!(
        findings[0].next_step.contains("--vusers 1,"),
        "{}",
        findings[0].next_step
    );
    assert_eq!(conclusion.knee_vusers, None);
    assert!(near(conclusion.max_throughput_per_s, 88_400.0, 0.001));
    assert!(
        conclusion.answer.contains("below 5,000"),
        "{}",
        conclusion.answer
    );
    assert!(
        conclusion.answer.contains("the same 88,380/s"),
        "as many digits as in the table: {}",
        conclusion.answer
    );
}

#[test]
fn without_a_bend_only_one_asymptote_is_told() {
    let rising = "vusers,throughput_per_s\n1,1000\n2,2000\n4,3990\n8,7950\n16,15800\n32,31000";
    let below_the_first = "vusers,throughput_per_s\n5,500\n10,600\n20,600\n40,601";
    for (csv, told) in [
        (TABLE_ONE, Some(("max_throughput_per_s", 88_400.0))),
        (rising, Some(("response_time_1_ns", 1e6))),
        (below_the_first, None),
    ] {
        let (_, conclusion) = analyzed(csv);
        assert_eq!(conclusion.models.len(), 3, "{csv}");
        for model in conclusion.models {
            let mut parameters = model.parameters.iter();
            let told = told.filter(|_| model.name == "asymptotic_bounds");
            match (parameters.next(), told) {
                (Some((name, value)), Some((told, about))) => {
                    assert!(name == told && near(*value, about, 0.01), "{name} {value}");
                }
                (none, told) => assert_eq!(none.is_some(), told.is_some(), "{model:?}"),
            }
            assert_eq!(parameters.next(), None, "{}", model.name);
        }
    }
}

#[test]
fn the_classic_table_bends_at_48_users() {
    let (findings, conclusion) = analyzed(TABLE_TWO);
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!((knee - 48.0).abs() <= 3.0, "{knee}");
    assert_eq!(
        conclusion.knee_ci95, None,
        "a table without intervals gives none"
    );
    assert_eq!(codes(&findings), ["past_knee"]);
    assert!(
        findings[0].text.starts_with("200 and 300 users"),
        "{}",
        findings[0].text
    );
    assert_eq!(conclusion.recommended_vusers, Some(48));
    assert_eq!(conclusion.levels.len(), 6);
    assert!(conclusion.levels[2].is_knee, "50 users are nearest");
}

#[test]
fn the_same_throughput_with_fewer_users_answers_sooner() {
    let both = TABLE_TWO.to_owned() + TABLE_ONE.split_once('\n').expect("lines").1;
    let (_, conclusion) = analyzed(&both);
    let answer = &conclusion.answer;
    assert!(answer.contains("200 users instead of 35,000"), "{answer}");
    assert!(answer.contains("about 180 times faster"), "{answer}");
}

#[test]
fn tables_of_every_shape_are_read_right() {
    for (what, rows, expected, knee) in [
        (
            "throughput falls past its maximum",
            "1,100\n2,200\n4,390\n8,600\n16,500\n32,350",
            &["retrograde"][..],
            Some(6.0),
        ),
        (
            "still rising",
            "1,100\n2,199\n4,396\n8,788",
            &["not_saturated"][..],
            None,
        ),
        (
            "rising ever less",
            "1,100\n10,900\n100,4000",
            &["not_saturated"][..],
            None,
        ),
        (
            "one server",
            "1,100\n2,100\n3,100",
            &["past_knee"][..],
            Some(1.0),
        ),
        ("one level", "7,100", &["too_few_levels"][..], None),
        (
            "from 100 on",
            "100,86069\n200,88455\n300,88375",
            &["saturated_below_range"][..],
            None,
        ),
        (
            "bends below the first",
            "5,500\n10,600\n20,600",
            &["knee_not_bracketed"][..],
            None,
        ),
        (
            "linear from 2 on",
            "2,200\n4,398\n8,600\n16,598",
            &[][..],
            Some(5.99),
        ),
    ] {
        let (findings, conclusion) = analyzed(&format!("vusers,throughput_per_s\n{rows}"));
        let found = codes(&findings);
        let found: Vec<&str> = found.into_iter().filter(|c| *c != "past_knee").collect();
        let expected: Vec<&str> = expected
            .iter()
            .copied()
            .filter(|c| *c != "past_knee")
            .collect();
        assert_eq!(found, expected, "{what}");
        match (conclusion.knee_vusers, knee) {
            (Some(found), Some(knee)) => assert!(near(found, knee, 0.02), "{what}: {found}"),
            (found, knee) => assert_eq!(found, knee, "{what}"),
        }
    }
}
