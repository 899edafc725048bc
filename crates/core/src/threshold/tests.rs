use super::*;
use crate::trial::assess::tests::report;
use crate::trial::figure::TimesReport;
use knee_load::spec::Level;

fn trial() -> TrialReport {
    let mut trial = report();
    trial.label = "rate=100/s".into();
    trial.verdict = Verdict::Valid;
    trial.throughput_per_s = Some(4_900.0);
    trial.goodput_per_s = Some(4_800.0);
    trial.response_time_ns.p99 = Some(231_000_000);
    trial.response_time_ns.p999 = Some(300_000_000);
    trial.outcomes = knee_load::measure::Outcomes::default();
    (0..998).for_each(|_| trial.outcomes.add(Outcome::Ok));
    (0..2).for_each(|_| trial.outcomes.add(Outcome::Timeout));
    trial
}

fn is_crossed(threshold: &Threshold, trial: &TrialReport) -> bool {
    matches!(threshold.judge(trial), ThresholdJudgement::Crossed(_))
}

/// Why a trial fails by it.
fn failed(threshold: &Threshold, trial: &TrialReport) -> Option<String> {
    match threshold.judge(trial) {
        ThresholdJudgement::Crossed(line)
        | ThresholdJudgement::Undecided(line)
        | ThresholdJudgement::Undetermined(line) => Some(line),
        ThresholdJudgement::Kept(_) => None,
    }
}

#[test]
fn a_threshold_may_be_about_a_step_or_a_session() {
    use crate::trial::detail::Detail;
    use crate::trial::sessions::{SessionReport, SessionsReport};
    use crate::trial::traffic::TargetReport;
    let mut trial = trial();
    let mut outcomes = knee_load::measure::Outcomes::default();
    outcomes.add_many(Outcome::Ok, 90);
    outcomes.add_many(Outcome::Unexpected, 10);
    let times = |p99| TimesReport { count: 100, p99: Some(p99), ..TimesReport::default() };
    let Detail::Http(http) = &mut trial.detail else {
        panic!("a trial of HTTP");
    };
    http.traffic.targets = vec![TargetReport {
        target: "buyer: put into cart".to_owned(),
        completed: 100,
        attempted: 100,
        outcomes,
        response_time_ns: times(700_000_000),
        ..TargetReport::default()
    }];
    http.sessions = Some(SessionsReport {
        kinds: vec![SessionReport {
            session: "buyer".to_owned(),
            completed: 3,
            failed: 1,
            session_time_ns: times(9_000_000_000),
            ..SessionReport::default()
        }],
        ..SessionsReport::default()
    });
    for (text, crossed) in [
        ("p99>500ms", false),
        ("put into cart p99>500ms", true),
        ("buyer: put into cart p99 > 500 ms", true),
        ("put into cart p99>800ms", false),
        ("put into cart errors>=10%", true),
        ("buyer errors>25%", false),
        ("buyer errors>=25%", true),
        ("buyer p99>8s", true),
    ] {
        let threshold = Threshold::parse(text).expect(text);
        assert_eq!(is_crossed(&threshold, &trial), crossed, "{text}");
        let again = Threshold::parse(&threshold.to_string()).expect(text);
        assert_eq!(again, threshold, "{text}");
    }
    let other = Threshold::parse("checkout p99>1s").expect("a threshold");
    let line = failed(&other, &trial).expect("not decided");
    assert!(line.contains("no step or session 'checkout'"), "{line}");
}

#[test]
fn what_is_not_known_crosses_nothing_and_keeps_nothing() {
    let mut nothing = trial();
    nothing.response_time_ns = TimesReport::default();
    nothing.outcomes = knee_load::measure::Outcomes::default();
    for text in ["p99>200ms", "max<1s", "errors>0", "errors>0.1%"] {
        let judged = Threshold::parse(text).expect(text).judge(&nothing);
        assert!(matches!(judged, ThresholdJudgement::Undecided(_)), "{text}: {judged:?}");
    }
}

#[test]
fn a_threshold_that_is_kept_is_told_with_its_figure() {
    let judged = Threshold::parse("p99>1s").expect("a threshold").judge(&trial());
    assert_eq!(judged, ThresholdJudgement::Kept("rate=100/s: p99 231 ms".into()));
}

#[test]
fn a_threshold_is_crossed_where_its_condition_holds() {
    for (text, crossed) in [
        ("p99>200ms", true),
        ("p99 > 231ms", false),
        ("p99>=231ms", true),
        ("p999<=0.3s", true),
        ("p99.9<300ms", false),
        ("throughput<5000", true),
        ("throughput<4.9k", false),
        ("goodput<=4800/s", true),
        ("errors>0.1%", true),
        ("errors>0.2%", false),
        ("errors>=2", true),
        ("errors>2", false),
        ("throughput>0", true),
        ("invalid", false),
    ] {
        let threshold = Threshold::parse(text).expect(text);
        assert_eq!(is_crossed(&threshold, &trial()), crossed, "{text}");
    }
}

#[test]
fn timeouts_are_those_of_every_time_limit() {
    let mut trial = trial();
    trial.outcomes = knee_load::measure::Outcomes::default();
    for outcome in [
        Outcome::Timeout,
        Outcome::ConnectTimeout,
        Outcome::HandshakeTimeout,
        Outcome::ResponseTimeout,
        Outcome::Ok,
        Outcome::Reset,
    ] {
        trial.outcomes.add(outcome);
    }
    for (text, crossed) in [
        ("timeouts>3", true),
        ("timeouts>4", false),
        ("timeouts>66%", true),
        ("timeouts>67%", false),
    ] {
        assert_eq!(is_crossed(&Threshold::parse(text).unwrap(), &trial), crossed, "{text}");
    }
    // S-Clients close connects on purpose.
    trial.level = Level::Descriptors(64);
    assert!(!is_crossed(&Threshold::parse("timeouts>3").unwrap(), &trial));
}

#[test]
fn a_figure_that_is_not_there_is_decided_by_bounds_or_fails() {
    let mut trial = trial();
    trial.response_time_ns = TimesReport {
        count: 12,
        min: Some(1_000_000),
        p50: Some(20_000_000),
        p90: Some(50_000_000),
        max: Some(100_000_000),
        ..TimesReport::default()
    };
    let undecided = "rate=100/s: p99>80ms is not decided: 12 response times are too few for a \
                     p99";
    for (text, says) in [
        ("p99>200ms", None),
        ("p99>100ms", None),
        ("p99>80ms", Some(undecided)),
        ("p99>=50ms", Some("rate=100/s: p99, somewhere from 50 ms to 100 ms, crosses p99>=50ms")),
        ("p99<50ms", None),
        ("p90>50ms", None),
    ] {
        let threshold = Threshold::parse(text).expect(text);
        assert_eq!(failed(&threshold, &trial).as_deref(), says, "{text}");
    }
}

#[test]
fn without_responses_rates_are_bounded_and_times_undecided() {
    let mut trial = trial();
    trial.response_time_ns = TimesReport::default();
    trial.duration_ns = 4_000_000_000;
    (trial.throughput_per_s, trial.goodput_per_s) = (None, None);
    for (text, word) in [
        ("p50>1s", Some("is not decided: no response time was measured")),
        ("min<1s", Some("is not decided: no response time was measured")),
        ("throughput<5", Some("somewhere from 0/s to 0.25/s, crosses")),
        ("goodput>0", Some("is not decided: no response came")),
        ("throughput>5", None),
    ] {
        let threshold = Threshold::parse(text).expect(text);
        let says = failed(&threshold, &trial);
        assert_eq!(says.is_some(), word.is_some(), "{text}: {says:?}");
        assert!(says.unwrap_or_default().contains(word.unwrap_or("")), "{text}");
    }
}

#[test]
fn what_s_clients_give_up_is_no_error() {
    let threshold = Threshold::parse("errors>2").expect("a threshold");
    let mut trial = trial();
    (0..900).for_each(|_| trial.outcomes.add(Outcome::ConnectTimeout));
    assert!(is_crossed(&threshold, &trial));
    trial.level = Level::Descriptors(64);
    assert!(!is_crossed(&threshold, &trial));
    trial.outcomes.add(Outcome::Reset);
    assert!(is_crossed(&threshold, &trial));
}

#[test]
fn the_message_names_value_and_bound() {
    let message = |text: &str, trial: &TrialReport| {
        let threshold = Threshold::parse(text).expect(text);
        match threshold.judge(trial) {
            ThresholdJudgement::Crossed(line) => line,
            other => panic!("{text}: {other:?}"),
        }
    };
    let mut trial = trial();
    for (text, said) in [
        ("p99 > 200ms", "rate=100/s: p99 231 ms crosses p99>200ms"),
        ("throughput<5000", "rate=100/s: throughput 4,900/s crosses throughput<5000"),
        ("errors>0.1%", "rate=100/s: errors 0.2 % crosses errors>0.1%"),
    ] {
        assert_eq!(message(text, &trial), said);
    }
    trial.verdict = Verdict::Invalid;
    trial.invalid_because = vec!["it stood still".into()];
    let said = "rate=100/s: the trial is invalid: it stood still";
    assert_eq!(message("invalid", &trial), said);
}

#[test]
fn what_cannot_be_understood_is_refused_with_a_remedy() {
    for (text, word) in [
        ("", "compares nothing"),
        ("p99", "compares nothing"),
        ("p98>1ms", "'p98' is not a metric: did you mean p9"),
        ("latency>1ms", "'latency' is not a metric: did you mean p99?"),
        ("p(95)<500", "'p(95)' is not a metric: did you mean p95?"),
        ("eror>1%", "'eror' is not a metric: did you mean errors?"),
        ("rps<50", "'rps' is not a metric: did you mean throughput?"),
        (
            "happiness>1",
            "expected one such as errors, p99 or throughput; 'knee run --help' lists all",
        ),
        ("p99>200", "has no unit"),
        ("p99>fast", "is not a duration"),
        ("p99=>5ms", "is not a metric"),
        ("throughput<", "give operations per second"),
        ("errors>some", "is not a number of errors"),
        ("errors>101%", "is not a number of errors"),
        ("errors>-1", "is not a number of errors"),
        ("errors>0.01", "write errors>1% for a share of 0.01"),
        ("errors>1.5", "or errors>1.5% for 1.5 percent"),
        ("timeouts>0.01", "write timeouts>1% for a share of 0.01"),
        ("invalid>1", "is not a metric"),
    ] {
        let error = Threshold::parse(text).expect_err(text).0;
        assert!(error.contains(word), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn ranges_decide_where_all_of_them_does() {
    use crate::trial::figure::{RateCertainty, RateRange, TimeRange};
    let mut trial = trial();
    let p99 = TimeRange {
        at_least: 180_000_000,
        at_most: Some(250_000_000),
        because: "the generator was late".into(),
    };
    trial.response_time_ns.p99 = None;
    trial.response_time_ns.ranges.insert("p99".into(), p99);
    let judged = |text: &str| Threshold::parse(text).unwrap().judge(&trial);
    assert!(matches!(judged("p99>260ms"), ThresholdJudgement::Kept(_)));
    assert!(matches!(judged("p99>170ms"), ThresholdJudgement::Crossed(_)));
    let ThresholdJudgement::Undetermined(line) = judged("p99>200ms") else {
        panic!("180 to 250 ms leave both possible");
    };
    assert!(line.contains("p99 is 180 ms to 250 ms because of the generator"), "{line}");
    let bound = TrialReport {
        throughput_per_s: Some(900.0),
        goodput_per_s: Some(890.0),
        throughput_is: RateCertainty::AtLeast,
        ..trial.clone()
    };
    // Reports of earlier versions have a range.
    let stored = TrialReport {
        throughput_per_s: None,
        goodput_per_s: None,
        throughput_range_per_s: Some(RateRange {
            at_least: 900.0,
            at_most: None,
            because: "the generator was busy".into(),
        }),
        ..trial.clone()
    };
    for trial in [bound, stored] {
        let judged = |text: &str| Threshold::parse(text).unwrap().judge(&trial);
        for kept in ["throughput<800", "throughput<=899", "goodput<800"] {
            assert!(matches!(judged(kept), ThresholdJudgement::Kept(_)), "{kept}");
        }
        assert!(matches!(judged("throughput>800"), ThresholdJudgement::Crossed(_)));
        for open in ["throughput<1000", "throughput>1000", "goodput>900"] {
            assert!(matches!(judged(open), ThresholdJudgement::Undetermined(_)), "{open}");
        }
    }
}

#[test]
fn what_must_hold_gets_a_remark() {
    for (text, remark) in [
        ("p99<50ms", Some("to require p99<50ms, give 'p99>=50ms'")),
        ("errors<=1%", Some("to require errors<=1%, give 'errors>1%'")),
        ("throughput>100", Some("to require throughput>100, give 'throughput<=100'")),
        ("checkout p99 < 5ms", Some("to require checkout p99<5ms, give 'checkout p99>=5ms'")),
        ("p99>50ms", None),
        ("throughput<100", None),
        ("invalid", None),
    ] {
        let found = Threshold::parse(text).unwrap().remark_if_reversed();
        assert_eq!(found.is_some(), remark.is_some(), "{text}: {found:?}");
        assert!(found.unwrap_or_default().ends_with(remark.unwrap_or_default()), "{text}");
    }
}

#[test]
fn metrics_of_scripts_have_the_figures_of_k6() {
    use crate::trial::sessions::{
        CheckReport, ScriptMetricReport, ScriptReport, SessionReport, SessionsReport,
    };
    let mut trial = trial();
    trial.duration_ns = 2_000_000_000;
    let metric = |metric: &str, value: Option<f64>| ScriptMetricReport {
        metric: metric.to_owned(),
        value,
        ..ScriptMetricReport::default()
    };
    let script = ScriptReport {
        checks: vec![CheckReport { succeeded: 9, failed: 1, ..CheckReport::default() }],
        metrics: vec![
            metric("orders", Some(40.0)),
            ScriptMetricReport { hits: Some([1, 4]), ..metric("bad{kind:a=b}", None) },
            ScriptMetricReport {
                range: Some([1.0, 9.0]),
                percentiles: [("50".to_owned(), 3.0), ("97".to_owned(), 8.0)].into(),
                ..metric("waits", Some(4.0))
            },
        ],
        ..ScriptReport::default()
    };
    trial.as_http_mut().sessions = Some(SessionsReport {
        kinds: vec![SessionReport { completed: 7, failed: 3, ..SessionReport::default() }],
        script: Some(script),
        ..SessionsReport::default()
    });
    for (text, is_failed) in [
        ("metric orders count<=39", false),
        ("metric orders count<=40", true),
        ("metric orders rate!=20", false),
        ("metric bad{kind:a=b} rate > 0.2", true),
        ("metric waits p(97)>=8", true),
        ("metric waits p(97)>8", false),
        ("metric waits med==3", true),
        ("metric waits min<1", false),
        ("metric waits max>=9", true),
        ("metric waits avg>=4", true),
        ("metric checks rate<0.9", false),
        ("metric checks rate<=0.9", true),
        ("metric iterations count==10", true),
        ("metric http_reqs count<=0", false),
        ("metric nothing count<=0", false),
        ("metric waits p(42)>=0", false),
    ] {
        let threshold = Threshold::parse(text).unwrap();
        assert_eq!(failed(&threshold, &trial).is_some(), is_failed, "{text}");
        assert_eq!(Threshold::parse(&threshold.to_string()).unwrap(), threshold, "{text}");
    }
    for wrong in
        ["metric waits", "metric p(9)>1", "metric a p(101)>1", "metric a b>1", "metric a count>x"]
    {
        assert!(Threshold::parse(wrong).is_err(), "{wrong}");
    }
    trial.as_http_mut().traffic.targets = vec![crate::trial::traffic::TargetReport::default()];
    let named = Threshold::parse("nobody p99>1s").unwrap();
    assert!(failed(&named, &trial).is_some());
    assert!(failed(&named.or_absent(), &trial).is_none());
}
