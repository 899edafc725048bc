//! Tables of what is read and what is refused.

use super::*;
use proptest::prelude::*;

/// What a refusal must be: one line that shows the value, what is wrong, and what is right.
fn assert_refusal<T: fmt::Debug>(result: Result<T, ParseError>, value: &str, what: &str) {
    let line = result.expect_err(value).to_string();
    assert!(line.contains(what), "{value}: {line}");
    assert!(!line.contains('\n') && line.len() < 260, "{line}");
    assert!(line.starts_with('\'') && line.contains("such as"), "{line}");
}

#[test]
fn durations_are_exact_to_the_nanosecond() {
    for (text, ns) in [
        ("0", 0),
        ("0s", 0),
        ("30", 30_000_000_000),
        ("30s", 30_000_000_000),
        (" 2m ", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("500ms", 500_000_000),
        ("20us", 20_000),
        ("20µs", 20_000),
        ("20\u{3bc}s", 20_000),
        ("100ns", 100),
        ("1.5s", 1_500_000_000),
        (".5s", 500_000_000),
        ("2.s", 2_000_000_000),
        ("0.100000000000000000000s", 100_000_000),
        ("1/130s", 7_692_308),
        ("1/130 s", 7_692_308),
        ("2.5 / 0.5 ms", 5_000_000),
        ("0.0000000005s", 1),
        ("8760h", 31_536_000_000_000_000),
    ] {
        assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
    }
}

#[test]
fn wrong_durations_are_refused_with_a_reason() {
    for (text, what) in [
        ("", "is not a duration"),
        ("s", "is not a duration"),
        ("-1s", "is not a duration"),
        ("+1s", "is not a duration"),
        ("1e3s", "is not a duration"),
        ("NaN", "is not a duration"),
        ("inf", "is not a duration"),
        ("10parsecs", "is not a duration"),
        ("1s 2s", "is not a duration"),
        ("1..5s", "is not a duration"),
        (".s", "is not a duration"),
        ("1/0s", "divides by zero"),
        ("1//2s", "is not a duration"),
        ("0.4ns", "is shorter than a nanosecond"),
        ("8760.1h", "is longer than a year"),
        ("99999999999999999h", "is longer than a year"),
        ("123456789012345678901234567890", "is not a duration"),
        ("1\n2", "is not a duration"),
    ] {
        assert_refusal(parse_duration(text), text, what);
    }
}

#[test]
fn rates_are_exact_ratios() {
    for (text, operations, period_ns) in [
        ("1000", 1_000, 1_000_000_000),
        ("1000/s", 1_000, 1_000_000_000),
        ("90/m", 90, 60_000_000_000),
        ("12 / h", 12, 3_600_000_000_000),
        ("0.5", 1, 2_000_000_000),
        ("0.1/h", 1, 36_000_000_000_000),
        ("2.5k", 2_500, 1_000_000_000),
        ("1M/s", 1_000_000, 1_000_000_000),
        ("33.333", 33_333, 1_000_000_000_000),
        ("1000M", 1_000_000_000, 1_000_000_000),
    ] {
        assert_eq!(parse_rate(text), Ok(Rate::new(operations, Nanos(period_ns)).unwrap()));
    }
}

#[test]
fn wrong_rates_are_refused_with_a_reason() {
    for (text, what) in [
        ("", "is not a rate"),
        ("0", "would offer nothing"),
        ("0.0/h", "would offer nothing"),
        ("-5", "is not a rate"),
        ("fast", "is not a rate"),
        ("5/d", "is not a rate"),
        ("5//s", "is not a rate"),
        ("NaN", "is not a rate"),
        ("1001M", "is more than one per nanosecond"),
        ("0.00000000001", "has too many digits"),
    ] {
        assert_refusal(parse_rate(text), text, what);
    }
    assert_refusal(parse_rates("100,,5"), "100,,5", "is not a rate");
    assert_eq!(parse_rates("5, 1k").unwrap(), [5, 1000].map(|n| Rate::per_second(n).unwrap()));
}

#[test]
fn laws_name_their_lengths() {
    let ms = Nanos::from_millis;
    for (text, law) in [
        ("0", Law::ZERO),
        ("10ms", Law::Fixed(ms(10))),
        ("fixed(10ms)", Law::Fixed(ms(10))),
        ("fixed(1/130 s)", Law::Fixed(Nanos(7_692_308))),
        ("exp( 10ms )", Law::Exp(ms(10))),
        ("uniform(5ms, 15ms)", Law::Uniform(ms(5), ms(15))),
        ("lognormal(10ms,0.5)", Law::LogNormal(ms(10), 0.5)),
    ] {
        assert_eq!(parse_law(text), Ok(law), "{text}");
    }
    for (text, what) in [
        ("", "is no law"),
        ("pareto(1ms,2)", "is no law"),
        ("exp(10ms", "is no law"),
        ("exp(1ms,2ms)", "has the wrong number of arguments"),
        ("uniform(15ms,5ms)", "has its ends the wrong way round"),
        ("lognormal(10ms,6)", "needs a sigma from 0 to 5"),
        ("lognormal(10ms,NaN)", "needs a sigma from 0 to 5"),
        ("lognormal(0,1)", "needs a median above 0"),
        ("exp(fast)", "is not a duration"),
        ("9000h", "is too long"),
    ] {
        assert_refusal(parse_law(text), text, what);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_displayed_duration_parses_back(ns in 0u64..1_000_000_000_000_000) {
        let parsed = parse_duration(&Nanos(ns).to_string()).unwrap();
        // Display rounds to 1 part in 200 at the worst (from 10.0 on, to a tenth).
        prop_assert!(parsed.0.abs_diff(ns) as f64 <= ns as f64 / 200.0);
        prop_assert_eq!(parse_duration(&format!("{ns}ns")), Ok(Nanos(ns)));
    }

    #[test]
    fn a_whole_rate_parses_back(operations in 1u64..1_000_000_000) {
        prop_assert_eq!(parse_rate(&operations.to_string()).ok(), Rate::per_second(operations));
    }

    #[test]
    fn nothing_panics_and_refusals_are_one_line(text in "\\PC{0,30}|[0-9a-z().,/µ\\n ]{0,20}") {
        let lines = [
            parse_duration(&text).err(),
            parse_rates(&text).err(),
            parse_law(&text).err(),
        ];
        for line in lines.iter().flatten() {
            prop_assert!(!line.0.contains('\n'));
        }
    }
}
