//! Each clause with the smallest data that triggers it and the nearest that does not.

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// 10,000 operations in 10 s, of 1 ms each, kept to within microseconds.
fn healthy() -> ValidityEvidence {
    ValidityEvidence {
        asked: Some(Demand { operations: 10_000.0, slack: 0.0 }),
        window: Nanos::from_secs(10),
        open_loop: true,
        attempted: 10_000,
        started: 10_000,
        pacing_error_ns: quantiles(5 * US, 60 * US),
        gaps: Some(gaps(GapLaw::Constant, 1_000 * US, 10 * US)),
        ..ValidityEvidence::default()
    }
}

fn quantiles(p50: u64, p99: u64) -> PacingQuantiles {
    PacingQuantiles { p50, p95: p50, p99, max: p99 }
}

fn gaps(law: GapLaw, mean_ns: u64, std_dev_ns: u64) -> GapEvidence {
    GapEvidence {
        law,
        gaps: Gaps { count: 10_000, mean_ns: mean_ns as f64, std_dev_ns: std_dev_ns as f64 },
        exponential: None,
        counts: Vec::new(),
    }
}

/// `word` must appear in the only clause, or there must be none where it is empty.
fn check(what: &str, word: &str, change: impl FnOnce(&mut ValidityEvidence)) {
    let mut evidence = healthy();
    change(&mut evidence);
    let clauses: Vec<String> = broken_clauses(&evidence).into_iter().map(|c| c.1).collect();
    if word.is_empty() {
        assert!(clauses.is_empty(), "{what}: {clauses:?}");
    } else {
        assert_eq!(clauses.len(), 1, "{what}: {clauses:?}");
        assert!(clauses[0].contains(word), "{what}: {clauses:?}");
    }
}

#[test]
fn a_healthy_trial_is_valid_and_so_is_an_empty_one() {
    check("as it should be", "", |_| ());
    check("nothing at all", "", |e| *e = ValidityEvidence::default());
}

#[test]
fn stall_within_phases_is_left_out_unless_it_is_a_load_of_its_own() {
    let stalled = |max: u64, in_phases: Option<f64>| {
        move |e: &mut ValidityEvidence| {
            e.each_stall_counts = true;
            (e.pacing_error_ns.max, e.in_phases) = (max, in_phases);
        }
    };
    check("a load without phases", "stalled", stalled(110 * MS, None));
    check("2 % of the intervals", "", stalled(110 * MS, Some(0.02)));
    check("again and again", "stalled", stalled(110 * MS, Some(0.2)));
    check("for a second", "stalled", stalled(1_000 * MS, Some(0.02)));
}

#[test]
fn the_rate_must_be_achieved() {
    check("0.11 % started too late", "fell behind", |e| e.started = 9_989);
    check("0.1 % started too late", "", |e| e.started = 9_990);
    check("those of the last 10 ms, in a window of 2 s", "", |e| {
        (e.window, e.started) = (Nanos::from_secs(2), 9_951);
    });
    check("0.11 % never came", "fell behind", |e| {
        (e.attempted, e.started) = (9_989, 9_989);
    });
    check("few, of few operations", "", |e| {
        let operations = 20.0;
        e.asked = Some(Demand { operations, slack: 0.0 });
        (e.attempted, e.started) = (10, 10);
    });
    check("as few as chance makes of Poisson arrivals", "", |e| {
        let operations = 10_000.0;
        e.asked = Some(Demand { operations, slack: 400.0 });
        (e.attempted, e.started) = (9_650, 9_650);
    });
    check("shed by order", "", |e| (e.started, e.shed, e.gaps) = (6_000, 4_000, None));
    check("a closed loop owes no rate", "", |e| {
        (e.open_loop, e.started) = (false, 0);
    });
}

#[test]
fn a_standstill_counts_however_long_the_trial() {
    let refused_at_once = |late: u64| {
        move |e: &mut ValidityEvidence| {
            e.replaced_after = Some(Nanos::from_millis(500));
            e.each_stall_counts = true;
            e.pacing_error_ns = quantiles(40 * US, late);
        }
    };
    let late = "p99 pacing error 99 ms, of a connect timeout of 400 ms";
    check("turned away at once", "", refused_at_once(5 * MS));
    check("late by a quarter of T", late, |e| {
        refused_at_once(99 * MS)(e);
        e.replaced_after = Some(Nanos::from_millis(400));
    });
    check("a connect that was late by 100 ms", "stalled for 100 ms", |e| {
        refused_at_once(5 * MS)(e);
        e.pacing_error_ns.max = 100 * MS;
    });
}

#[test]
fn a_stall_counts_where_it_changes_the_load() {
    let late = |p95: u64, max: u64| {
        move |e: &mut ValidityEvidence| {
            e.pacing_error_ns = PacingQuantiles { p95, p99: max, max, ..quantiles(40 * US, 0) };
        }
    };
    check("5 % late by 100 ms", "stalled for 300 ms", late(100 * MS, 300 * MS));
    check("5 % late by 99 ms", "", late(99 * MS, 300 * MS));
    check("a second in which nothing was due", "", |e| e.stall_ns_max = 1_000 * MS);
    let closed = |stall_ns: u64, window: Nanos| {
        move |e: &mut ValidityEvidence| {
            (e.open_loop, e.stall_ns_max, e.window) = (false, stall_ns, window);
        }
    };
    let window = Nanos::from_secs(10);
    check("a second of ten in a closed loop", "stalled for 1 s", closed(1_000 * MS, window));
    check("0.9 s of ten", "", closed(900 * MS, window));
    check("115 ms of two seconds", "", closed(115 * MS, Nanos::from_secs(2)));
    let short = Nanos::from_millis(400);
    check("110 ms of a slice", "stalled for 110 ms", closed(110 * MS, short));
    check("99 ms of a slice", "", closed(99 * MS, short));
}

#[test]
fn gaps_must_vary_as_promised() {
    use GapLaw::{Constant, Poisson, Uniform};
    for (law, mean, std_dev, word, what) in [
        (Constant, 1_000, 310, "coefficient of variation", "constant gaps that vary"),
        (Constant, 1_000, 290, "", "constant gaps that vary by less"),
        (Constant, 20, 60, "", "microseconds of noise at 50,000/s"),
        (Poisson, 1_000, 1_000, "", "exponential gaps"),
        (Poisson, 1_000, 1_150, "coefficient of variation", "too irregular for Poisson"),
        (Poisson, 1_000, 1_130, "", "within the tolerance"),
        (Poisson, 1_000, 0, "coefficient of variation", "a metronome in place of Poisson"),
        (Poisson, 20, 150, "", "hiccups at 50,000/s"),
        (Uniform, 1_000, 577, "", "uniform gaps"),
        (Uniform, 1_000, 1_000, "coefficient of variation", "exponential, not uniform"),
    ] {
        let evidence = gaps(law, mean * US, std_dev * US);
        check(what, word, |e| e.gaps = Some(evidence));
    }
    let few_are_late = |rms_us: u64| {
        move |e: &mut ValidityEvidence| {
            e.gaps = Some(gaps(Constant, 1_000 * US, 600 * US));
            e.late_rms_ns = (rms_us * US) as f64;
        }
    };
    check("that single late starts made", "", few_are_late(300));
    let another = "gaps between starts vary";
    check("beyond what they can make", another, few_are_late(290));
    check("most starts are late", another, |e| {
        few_are_late(300)(e);
        e.pacing_error_ns.p50 = 101 * US;
    });
    check("gaps that shedding made", "", |e| {
        (e.started, e.shed) = (9_980, 20);
        e.gaps = Some(gaps(Constant, 1_000 * US, 900 * US));
    });
}

#[test]
fn poisson_gaps_must_be_exponential() {
    for (distance, p_value, mean_us, word, what) in [
        (0.06, 0.0005, 1_000, "not exponential", "far, and surely so"),
        (0.04, 0.0005, 1_000, "", "sure, but near"),
        (0.06, 0.002, 1_000, "", "far, but not sure"),
        (0.40, 0.0, 100, "", "far, but 40 µs in all"),
        (0.60, 0.0, 100, "not exponential", "far, and 60 µs"),
    ] {
        check(what, word, |e| {
            let mut evidence = gaps(GapLaw::Poisson, mean_us * US, mean_us * US);
            evidence.exponential = Some(KolmogorovSmirnov { distance, p_value });
            e.gaps = Some(evidence);
        });
    }
}

#[test]
fn poisson_counts_must_be_as_dispersed_as_poisson() {
    for (bins, mean, dispersion, word, what) in [
        (1_000, 10.0, 1.0, "", "as promised"),
        (1_000, 10.0, 1.5, "index of dispersion", "half as much again"),
        (1_000, 10.0, 1.3, "", "significant, but 17 % of the count"),
        (1_000, 10.0, 0.5, "index of dispersion", "too regular"),
        (20, 10.0, 2.0, "", "too few bins to tell"),
        (1_000, 500.0, 15.0, "", "a hiccup of 50 ms at 50,000/s"),
        (1_000, 0.5, 2.0, "", "hardly anything to count"),
    ] {
        check(what, word, |e| {
            let counts = WindowCounts { bins, mean, dispersion };
            let mut evidence = gaps(GapLaw::Poisson, MS, MS);
            evidence.counts = vec![(Nanos(10 * MS), counts)];
            e.gaps = Some(evidence);
        });
    }
}

#[test]
fn the_generators_own_limits_count() {
    check("no ports", "11 of 10,000", |e| e.no_resources = 11);
    check("hardly a port missing", "", |e| e.no_resources = 10);
    check(
        "no values",
        "11 of 10,000 steps were not sent, as a program of the scenario gave no value: ./sign.py \
         gave no value for 'signature'",
        |e| {
            e.program_failed = 11;
            let because = "./sign.py gave no value for 'signature'";
            e.program_failed_because = Some(because.to_owned());
        },
    );
    check("hardly a value missing", "", |e| e.program_failed = 10);
    let unfit = "11 of 10,000 steps were not sent: the header X of a cannot have the value";
    check("values that do not fit", unfit, |e| {
        let because = "the header X of a cannot have the value 'x'";
        (e.unfit_values, e.unfit_because) = (11, Some(because.to_owned()));
    });
    check("hardly a value that does not fit", "", |e| {
        (e.unfit_values, e.unfit_because) = (10, Some(String::new()));
    });
    let ended = "ended during the load, and 1 of 10,000 steps were not sent: ./sign.py ended";
    check("a program that ended", ended, |e| {
        (e.program_failed, e.program_ended) = (1, true);
        e.program_failed_because = Some("./sign.py ended (exit status: 3)".to_owned());
    });
}
