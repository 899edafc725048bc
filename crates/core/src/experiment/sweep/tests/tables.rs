//! Tables measured elsewhere.

use super::super::conclude::conclude_points;
use super::super::{conclude_table, knee};
use super::fake::{Fake, automatic, sweep};
use super::{codes, near};
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::sweep::table::{LevelPoint, parse_csv};
use crate::finding::Finding;
use knee_load::rng;

const TABLE_ONE: &str = "vusers,throughput_per_s\n5000,\"88,318\"\n10000,88407\n20000,88309\n\
                         25000,88429\n30000,88392\n35000,88440\n";
const TABLE_TWO: &str = "vusers,throughput_per_s\n1,1833\n10,18226\n50,74684\n100,86069\n\
                         200,88455\n300,88375\n";

/// What follows from a table, without the finding that each table without rounds has.
fn analyzed(csv: &str) -> (Vec<Finding>, SweepConclusion) {
    let (mut findings, conclusion) = conclude_table(&parse_csv(csv.as_bytes()).expect(csv));
    findings.retain(|f| f.code != "time_not_separated");
    (findings, conclusion)
}

#[test]
fn a_table_without_rounds_mixes_time_and_level() {
    let is_said = |csv: &str| {
        let (findings, _) = conclude_table(&parse_csv(csv.as_bytes()).expect(csv));
        codes(&findings).contains(&"time_not_separated")
    };
    assert!(is_said(TABLE_ONE) && is_said(TABLE_TWO));
    assert!(!is_said("1 100\n4 390\n8 400\n4 392\n8 401\n1 101"));
}

#[test]
fn a_table_that_falls_has_its_peak_first() {
    for separator in [",", " ", "\t", ";"] {
        let csv = "10,1000\n20,900\n40,700\n80,400".replace(',', separator);
        let (findings, c) = analyzed(&csv);
        assert_eq!(codes(&findings), ["retrograde"], "{csv}");
        assert_eq!(findings[0].evidence["peak_level"], 10.0);
        assert_eq!(
            c.answer,
            "About 1,000/s; the knee is below 10 users. Throughput peaks at 10 users and falls to \
             400/s at 80."
        );
    }
    // The nearest case: noise on a flat table of as few rows.
    let (findings, _) = analyzed("10,1000\n20,980\n40,960\n80,950");
    assert_eq!(codes(&findings), ["saturated_below_range"]);
}

/// Levels with few users and the processor taken away, and two that a host served alike.
#[test]
fn levels_of_a_starved_host_do_not_draw_the_maximum_down() {
    let mean = |rows: &[(f64, f64)]| {
        let level = |&(per_s, half): &(f64, f64)| LevelPoint {
            throughput_per_s: per_s,
            relative_half: Some(half),
            ..LevelPoint::default()
        };
        let levels: Vec<LevelPoint> = rows.iter().map(level).collect();
        let weights = knee::weights(&levels.iter().collect::<Vec<_>>());
        knee::weighted_mean(levels.iter().map(|p| p.throughput_per_s), &weights)
    };
    let starved = [(3066.0, 0.28), (3506.0, 0.2), (3779.0, 0.08), (3958.0, 0.03), (3986.0, 0.02)];
    assert!(near(mean(&starved), 3950.0, 0.04), "{}", mean(&starved));
    // Intervals of few rounds differ by chance: such levels count alike.
    let alike = [(1020.0, 0.015), (1000.0, 0.02), (980.0, 0.03)];
    assert!(near(mean(&alike), 1000.0, 0.001), "{}", mean(&alike));
}

#[test]
fn the_classic_mistake_is_caught() {
    let (findings, conclusion) = analyzed(TABLE_ONE);
    assert_eq!(codes(&findings), ["saturated_below_range"]);
    assert!(findings[0].text.contains("the knee is below 5,000"), "{}", findings[0].text);
    assert!(findings[0].next_step.contains("--vusers 1,"), "{}", findings[0].next_step);
    assert_eq!(conclusion.knee_vusers, None);
    assert!(near(conclusion.max_throughput_per_s, 88_400.0, 0.001));
    assert!(conclusion.answer.contains("below 5,000"), "{}", conclusion.answer);
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
    for (csv, stated) in [
        (TABLE_ONE, Some(("max_throughput_per_s", 88_400.0))),
        (rising, Some(("response_time_1_ns", 1e6))),
        (below_the_first, None),
    ] {
        let (_, conclusion) = analyzed(csv);
        assert_eq!(conclusion.models.len(), 3, "{csv}");
        for model in conclusion.models {
            let mut parameters = model.parameters.iter();
            let stated = stated.filter(|_| model.name == "asymptotic_bounds");
            match (parameters.next(), stated) {
                (Some((name, value)), Some((stated, about))) => {
                    assert!(name == stated && near(*value, about, 0.01), "{name} {value}");
                }
                (none, stated) => assert_eq!(none.is_some(), stated.is_some(), "{model:?}"),
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
    assert_eq!(conclusion.knee_ci95, None, "a table without intervals gives none");
    assert_eq!(codes(&findings), ["past_knee"]);
    assert!(findings[0].text.starts_with("200 and 300 users"), "{}", findings[0].text);
    assert_eq!(conclusion.recommended_vusers, Some(100), "a level that was measured");
    assert!(conclusion.answer.contains("between the levels 10 and 50"), "{}", conclusion.answer);
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
        ("still rising", "1,100\n2,199\n4,396\n8,788", &["not_saturated"][..], None),
        ("rising ever less", "1,100\n10,900\n100,4000", &["not_saturated"][..], None),
        ("one server", "1,100\n2,100\n3,100", &["past_knee"][..], Some(1.0)),
        ("one level", "7,100", &["too_few_levels"][..], None),
        ("from 100 on", "100,86069\n200,88455\n300,88375", &["saturated_below_range"][..], None),
        ("bends below the first", "5,500\n10,600\n20,600", &["knee_not_bracketed"][..], None),
        ("linear from 2 on", "2,200\n4,398\n8,600\n16,598", &[][..], Some(5.99)),
    ] {
        let (findings, conclusion) = analyzed(&format!("vusers,throughput_per_s\n{rows}"));
        let found = codes(&findings);
        let found: Vec<&str> = found.into_iter().filter(|c| *c != "past_knee").collect();
        let expected: Vec<&str> = expected.iter().copied().filter(|c| *c != "past_knee").collect();
        assert_eq!(found, expected, "{what}");
        match (conclusion.knee_vusers, knee) {
            (Some(found), Some(knee)) => assert!(near(found, knee, 0.02), "{what}: {found}"),
            (found, knee) => assert_eq!(found, knee, "{what}"),
        }
    }
}

/// A table of `f` at these levels, each off by chance; with intervals that say so, or without.
fn noisy(
    rng: &mut rng::Rng,
    levels: &[f64],
    f: impl Fn(f64) -> f64,
    noise: f64,
    told: bool,
) -> Vec<LevelPoint> {
    let mut normal = || (0..12).map(|_| rng::unit(rng)).sum::<f64>() - 6.0;
    let row = |&level: &f64| {
        let x = f(level) * (noise * normal()).exp();
        let half = 1.96 * noise * x;
        LevelPoint {
            level,
            throughput_per_s: x,
            throughput_ci95: told.then_some([x - half, x + half]),
            valid: true,
            trials: 1,
            ..LevelPoint::default()
        }
    };
    levels.iter().map(row).collect()
}

#[test]
fn noise_is_not_retrograde() {
    let doubled = |n: i32| (0..n).map(|i| 2f64.powi(i)).collect::<Vec<_>>();
    let ranges = [
        doubled(3),
        doubled(5),
        doubled(6),
        doubled(9),
        vec![1.0, 10.0, 50.0, 100.0, 200.0, 300.0],
        (1..=12).map(f64::from).collect(),
    ];
    let mut rng = rng::stream(9, 1);
    for told in [false, true] {
        for noise in [0.03, 0.05, 0.1] {
            for knee in [1.0, 4.0, 16.0] {
                let tables = 100 * ranges.len();
                let mut is_false = |i: usize| {
                    let f = |n: f64| 1_000.0 * n.min(knee) / knee;
                    let table = noisy(&mut rng, &ranges[i % ranges.len()], f, noise, told);
                    codes(&conclude_points(&table).0).contains(&"retrograde")
                };
                let false_ones = (0..tables).filter(|&i| is_false(i)).count();
                assert!(
                    100 * false_ones <= tables,
                    "noise {noise}, knee {knee}, intervals {told}: {false_ones} of {tables}"
                );
            }
        }
    }
}

#[test]
fn a_fall_beyond_noise_is_retrograde() {
    let law = |n: f64| 1_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.002 * n * (n - 1.0));
    let levels: Vec<f64> = (0..8).map(|i| 2f64.powi(i)).collect();
    let mut rng = rng::stream(9, 2);
    for told in [false, true] {
        let is_found = |_: &u32| {
            let table = noisy(&mut rng, &levels, law, 0.03, told);
            codes(&conclude_points(&table).0).contains(&"retrograde")
        };
        let found = (0..100).filter(is_found).count();
        assert!(found >= 95, "{found} of 100, intervals {told}");
    }
}

#[test]
fn curve_that_contradicts_asymptotes_gives_a_range() {
    // 4.56 users at the crossing, where 36,000/s are served, and 60,000/s at 32.
    let csv = "vusers,throughput_per_s\n1,13160\n2,21000\n4,33500\n8,47000\n16,52000\n32,60000\n\
               64,59900";
    let (findings, c) = analyzed(csv);
    assert_eq!((c.knee_vusers, c.recommended_vusers), (None, None));
    let [lo, hi] = c.knee_range.expect("a range");
    assert!(lo <= 4.6 && hi >= 16.0, "{lo} to {hi}");
    assert!(c.answer.contains("users"), "{}", c.answer);
    let found = codes(&findings);
    assert!(found.contains(&"knee_methods_disagree"), "{found:?}");
    assert!(!found.contains(&"past_knee"), "{found:?}");
    let disagree = findings.iter().find(|f| f.code == "knee_methods_disagree");
    let next = &disagree.expect("found").next_step;
    assert!(next.contains("--vusers 1,"), "{next}");
    assert!(c.levels.iter().all(|l| !l.is_knee));
}

/// A table of four levels in eight rounds; `factor` by round and place multiplies the throughput.
fn rounds(factor: impl Fn(usize, f64) -> f64) -> String {
    let mut csv = "round vusers rps\n".to_owned();
    for round in 1..=8 {
        for (place, users) in [2.0, 16.0, 1.0, 4.0].into_iter().enumerate() {
            let chance = 1.0 + 0.002 * ((7 * round + 3 * place) % 5) as f64;
            let per_s = 100.0 * f64::min(users, 4.0) * chance * factor(round, users);
            csv += &format!("{round} {users} {per_s:.3}\n");
        }
    }
    csv
}

#[test]
fn rounds_of_a_table_show_what_changed_with_time() {
    let concluded = |factor: &dyn Fn(usize, f64) -> f64| {
        let (findings, c) = conclude_table(&parse_csv(rounds(factor).as_bytes()).expect("rows"));
        let names: Vec<String> = codes(&findings).iter().map(|c| (*c).to_owned()).collect();
        (names, c)
    };
    let has = |names: &[String], code: &str| names.iter().any(|name| name == code);
    let (names, c) = concluded(&|_, _| 1.0);
    let in_time = ["regime_change", "drifts_over_time", "outage", "time_not_separated"];
    assert!(!in_time.iter().any(|code| has(&names, code)), "{names:?}");
    let [lo, hi] = c.max_throughput_ci95_per_s.expect("of eight rounds");
    assert!(lo <= 402.0 && hi >= 400.0 && hi / lo < 1.02, "{lo} to {hi}");

    let (names, c) = concluded(&|round, _| if round >= 5 { 0.5 } else { 1.0 });
    let change = c.regime_change.expect("a change");
    assert!(has(&names, "regime_change") && change.round == 5, "{change:?}");
    assert!(near(change.before_per_s, 401.0, 0.02) && near(change.after_per_s, 200.0, 0.02));
    assert!(c.answer.contains("changed for good in round 5"), "{}", c.answer);
    assert_eq!(c.slices.iter().filter(|s| s.marks.contains(&"other_regime".into())).count(), 16);

    let (names, c) = concluded(&|round, _| 1.0 - 0.02 * round as f64);
    assert!(has(&names, "drifts_over_time") && !has(&names, "regime_change"), "{names:?}");
    assert!(near(c.drift_percent.expect("a drift"), -14.0, 0.2), "{:?}", c.drift_percent);

    let (names, c) = concluded(&|round, users| if round == 3 && users == 16.0 { 0.0 } else { 1.0 });
    assert!(has(&names, "outage"), "{names:?}");
    assert_eq!((c.outages.len(), c.outages[0].round, c.outages[0].begin_ns), (1, 3, None));
    assert!(near(c.max_throughput_per_s, 401.0, 0.01), "an outage is no capacity");

    let (names, c) = concluded(&|_, users| if users == 16.0 { 0.8 } else { 1.0 });
    assert!(has(&names, "retrograde"), "{names:?}");
    assert!(c.answer.contains("falls by 20 % at 16 users and more"), "{}", c.answer);

    let wave = |round: usize| 1.0 + 0.1 * (std::f64::consts::TAU * round as f64 / 4.0).sin();
    let (names, _) = concluded(&|round, _| wave(round));
    let is_named = ["regime_change", "outage", "retrograde"].iter().any(|code| has(&names, code));
    assert!(!is_named, "{names:?}");
}

/// The nearest case is a table of the same noise without a fall.
#[test]
fn a_step_down_is_a_fall() {
    let table = |after: f64| {
        let rise = "users rps\n1 150\n2 300\n4 590\n8 870\n12 898\n16 900\n";
        format!("{rise}24 {after}\n32 {}\n48 {}", after + 3.0, after - 4.0)
    };
    let (findings, c) = analyzed(&table(675.0));
    let fall = findings.iter().find(|f| f.code == "retrograde").expect("a fall");
    assert!(fall.text.contains("at 24 users and more"), "{}", fall.text);
    assert!(fall.text.contains("time and level cannot be told apart"), "{}", fall.text);
    assert_eq!(fall.evidence["peak_level"], 16.0);
    assert!(c.answer.contains("at 24 users and more, to 67"), "{}", c.answer);
    assert!(!codes(&analyzed(&table(890.0)).0).contains(&"retrograde"));
}

/// No other level is like the peak, so that the rise to it is all that shows the noise. The nearest
/// cases: a smaller fall, a rise that is noisy, and one with too few levels to tell.
#[test]
fn a_fall_from_a_single_peak_is_a_fall() {
    let rise = "users rps\n1 150\n2 300\n4 590\n8 850\n16 900\n";
    for after in ["24 675", "24 675\n32 640", "24 675\n32 690\n48 660"] {
        let (findings, c) = analyzed(&format!("{rise}{after}"));
        let fall = findings.iter().find(|f| f.code == "retrograde").expect(after);
        assert!(fall.text.starts_with("throughput falls by 2"), "{}", fall.text);
        assert!(fall.text.contains("at 24 users and more: from 900/s to 6"), "{}", fall.text);
        assert!(fall.text.contains("time and level cannot be told apart"), "{}", fall.text);
        assert!(c.answer.contains("at 24 users and more, to 6"), "{}", c.answer);
    }
    let noisy = "users rps\n1 150\n2 260\n4 590\n8 760\n16 900\n24 675";
    let flat = "users rps\n1 800\n2 850\n4 760\n8 900\n16 675";
    for table in [&format!("{rise}24 760"), noisy, flat, "users rps\n8 850\n16 900\n24 675"] {
        assert!(!codes(&analyzed(table).0).contains(&"retrograde"), "{table}");
    }
}

#[test]
fn the_slices_of_a_report_are_a_table() {
    let mut fake = Fake::station(4, 2e-3, 2e-3);
    fake.noise = 0.01;
    fake.during = Some(Box::new(|users, begin_s, _| {
        let factor = if begin_s > 12.0 { 0.5 } else { 1.0 };
        (factor * 250.0 * f64::from(users.min(8)), None)
    }));
    let (conducted, live) = sweep(&mut fake, automatic(5));
    let (findings, read) = conclude_table(&live.as_table().expect("slices"));
    for code in ["regime_change", "drifts_over_time", "outage", "retrograde"] {
        let [live, read] = [&conducted.findings, &findings].map(|f| codes(f).contains(&code));
        assert_eq!(live, read, "{code}");
    }
    assert!(live.regime_change.is_some());
    assert_eq!(read.regime_change, live.regime_change);
    assert_eq!(read.slices, live.slices);
    assert!(near(read.max_throughput_per_s, live.max_throughput_per_s, 1e-9));
    let empty = SweepConclusion::default();
    assert_eq!(empty.as_table(), None);
    let (_, rates) = sweep(&mut Fake::station(2, 1e-3, 1e-3), super::fake::rates(1));
    assert_eq!(rates.as_table(), None, "rates are no users");
}

#[test]
fn rows_of_the_same_level_are_repeats() {
    let csv = "vusers,throughput_per_s\n1,100\n1,104\n1,96\n2,200\n3,300\n4,301\n8,300";
    let (_, conclusion) = analyzed(csv);
    let first = &conclusion.levels[0];
    assert_eq!((first.trials, first.throughput_per_s), (3, 100.0));
    // Student's t with 2 degrees of freedom: 4.303 · 4/√3.
    let [lo, hi] = first.throughput_ci95_per_s.expect("of three rows");
    assert!(near(hi - 100.0, 9.94, 0.01) && near(100.0 - lo, 9.94, 0.01));
}
