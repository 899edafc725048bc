use super::*;

mod waits {
    use super::*;
    use crate::experiment::throttle::tests::waits;
    use knee_load::experiment::throttle::WaitMethod;
    use knee_load::time::Nanos;

    #[test]
    fn the_row_of_five_waits_by_hand() {
        let late = [1_050_000, 1_060_000, 1_070_000, 1_080_000, 1_090_000].map(|t| t - 1_000_000);
        let mut trial = waits(WaitMethod::Sleep, Nanos::from_millis(1), &late);
        trial.waits.cpu = Nanos::from_micros(10);
        trial.waits.elapsed = Nanos::from_millis(5);
        let row = wait_row(&trial).expect("five waits");
        assert_eq!((row.method.as_str(), row.op.as_str()), ("sleep", "none"));
        assert_eq!((row.delay_ns, row.mean_ns), (1_000_000, 1_070_000));
        // s = 10,000·√2.5 = 15,811 ns; 8.610·s/√5 = 60,882 ns
        assert_eq!(row.std_dev_ns, 15_811);
        assert!(row.error_ns.abs_diff(60_882) < 20, "{}", row.error_ns);
        assert!(row.overshoot_p50_ns.abs_diff(70_000) < 70);
        assert!(row.overshoot_max_ns.abs_diff(90_000) < 90);
        assert!((row.cpu_percent - 0.2).abs() < 1e-9);
        assert_eq!((row.samples, row.op_mean_ns), (5, None));
    }

    #[test]
    fn one_wait_alone_has_no_spread_and_makes_no_row() {
        let trial = |late: &[u64]| waits(WaitMethod::Spin, Nanos::from_micros(50), late);
        assert_eq!(wait_row(&trial(&[])), None);
        assert_eq!(wait_row(&trial(&[7])), None);
        let row = wait_row(&trial(&[7, 7])).expect("two");
        assert_eq!((row.std_dev_ns, row.error_ns), (0, 0));
    }

    #[test]
    fn the_chore_is_timed_apart() {
        let mut trial = waits(WaitMethod::Spin, Nanos::from_micros(50), &[7, 7]);
        trial.spec.chore = Chore::Udp("127.0.0.1:9".into());
        trial.waits.chore.record(Nanos(4_000));
        trial.waits.chore.record(Nanos(6_000));
        let row = wait_row(&trial).expect("two");
        let op = row.op_mean_ns.expect("a chore");
        assert_eq!(row.op, "udp");
        assert!(op.abs_diff(5_000) < 10, "{op}");
    }
}

mod rates {
    use super::*;
    use crate::experiment::throttle::conclusion::rates_in_words;
    use crate::experiment::throttle::tests::holds;
    use knee_load::experiment::throttle::HoldStats;
    use knee_load::time::Nanos;

    const OPERATION: Nanos = Nanos::from_micros(100);

    #[test]
    fn a_constant_lateness_is_no_drift() {
        let trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos(40_000));
        let row = rate_row(&trial).expect("operations");
        assert!((row.achieved_per_s.expect("a rate") - 1_000.0).abs() < 1e-6);
        assert!(row.drift_ppm.abs() < 1e-6 && row.gap_cv < 1e-6);
        assert!(row.error_p50_ns.abs_diff(40_000) < 40);
        assert!((row.op_percent - 10.0).abs() < 0.01);
        assert!(HeldRate::of(&trial).expect("a line").is_held);
    }

    #[test]
    fn a_loop_at_half_the_rate_drifts_by_a_second_per_second() {
        let trial = holds(HoldMethod::NaiveSleep, OPERATION, Nanos::from_millis);
        let row = rate_row(&trial).expect("operations");
        assert!((row.achieved_per_s.expect("a rate") - 500.0).abs() < 1e-6);
        assert!((row.drift_ppm - 1e6).abs() < 1e-3);
        let hold = HeldRate::of(&trial).expect("a line");
        assert!(!hold.is_held && (hold.shortfall - 0.5).abs() < 1e-9);
        assert!((hold.load - 0.1).abs() < 1e-9 && hold.has_room());
    }

    #[test]
    fn a_thousandth_is_held_and_more_is_not() {
        let drifting = |ns| holds(HoldMethod::Tick, OPERATION, move |k| Nanos(k * ns));
        // The last of 1,000 operations is late by one gap at 1 µs each.
        assert!(HeldRate::of(&drifting(1_000)).expect("a line").is_held);
        assert!(!HeldRate::of(&drifting(1_010)).expect("a line").is_held);
    }

    #[test]
    fn a_stall_that_was_caught_up_with_is_no_drift() {
        // Late by 100 ms in the first tenth, in the last tenth, and from the middle on.
        let held = |range: std::ops::Range<u64>| {
            let late = move |k| Nanos::from_millis(if range.contains(&k) { 100 } else { 0 });
            HeldRate::of(&holds(HoldMethod::Throttle, OPERATION, late)).expect("a line")
        };
        assert!(held(100..200).is_held && held(800..900).is_held);
        let shifted = held(500..1_000);
        assert!(!shifted.is_held && (shifted.shortfall - 0.09).abs() < 0.01);
    }

    #[test]
    fn a_schedule_moved_back_by_a_stall_was_not_held() {
        let shifted_by = |shifted: Nanos| {
            let mut trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos::ZERO);
            trial.holds = HoldStats::default();
            for k in 0..1_000 {
                let moved = if k < 500 { Nanos::ZERO } else { shifted };
                let at = trial.spec.rate.moment(k) + moved;
                trial.holds.record(at, at);
            }
            trial.holds.elapsed = trial.holds.last + Nanos::from_millis(1);
            trial.holds.shifted = shifted;
            HeldRate::of(&trial).expect("a line")
        };
        let hold = shifted_by(Nanos::from_millis(250));
        assert!(!hold.is_held && (hold.shortfall - 0.2).abs() < 1e-3, "{hold:?}");
        assert!(shifted_by(Nanos::from_micros(5)).is_held);
    }

    #[test]
    fn what_was_left_out_is_missing() {
        let mut trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos::ZERO);
        trial.holds.skipped = 250;
        trial.holds.last = trial.spec.rate.moment(1_249);
        let hold = HeldRate::of(&trial).expect("a line");
        assert!((hold.shortfall - 0.2).abs() < 1e-9 && !hold.is_held);
    }

    #[test]
    fn nothing_run_is_no_row_and_one_operation_no_line() {
        let mut trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos::ZERO);
        trial.holds = HoldStats::default();
        assert_eq!(rate_row(&trial), None);
        trial.holds.record(Nanos::ZERO, Nanos(5));
        trial.holds.elapsed = Nanos::from_millis(500);
        let row = rate_row(&trial).expect("one operation");
        assert_eq!((row.achieved_per_s, row.drift_ppm, row.gap_cv), (None, 0.0, 0.0));
        let answer = "The throttle made too few operations to tell (1 in 500 ms): give -d 2 ms or \
                      more.";
        assert_eq!(rates_in_words(std::slice::from_ref(&trial)), answer);
        trial.spec.method = HoldMethod::NaiveSleep;
        let answer = answer.replace("The throttle", "Operate-and-sleep");
        assert_eq!(rates_in_words(&[trial.clone()]), answer);
        assert_eq!(HeldRate::of(&trial), None);
    }
}

mod margins {
    use super::*;
    use crate::experiment::throttle::tests::waits;

    fn hybrid(delay_us: u64, margin_us: u64) -> WaitTrial {
        let mut trial = waits(WaitMethod::Hybrid, Nanos::from_micros(delay_us), &[100, 100]);
        trial.waits.margin = Some(Nanos::from_micros(margin_us));
        trial
    }

    fn sleeps(delay_us: u64, late_us: u64) -> WaitTrial {
        let late: Vec<u64> = (1..=100).map(|k| k * late_us * 10).collect();
        let method = WaitMethod::SleepAbsoluteMinSlack;
        waits(method, Nanos::from_micros(delay_us), &late)
    }

    #[test]
    fn unmeasured_lengths_lie_between_their_neighbours() {
        let margins = margins_of(&[hybrid(100, 60), hybrid(1_000, 90), hybrid(20_000, 140)])
            .expect("measured");
        let us = margins.by_bucket().map(|ns| ns / 1_000);
        // 100 µs are of bucket 2, 1 ms of bucket 5, 20 ms of bucket 10.
        assert_eq!(us, [60, 60, 60, 70, 80, 90, 100, 110, 120, 130, 140, 140, 140]);
        assert!(margins_of(&[]).is_none());
        let spin = waits(WaitMethod::Spin, Nanos::from_millis(1), &[30, 40]);
        assert!(margins_of(&[spin]).is_none());
    }

    #[test]
    fn what_a_hybrid_wait_learnt_counts_before_what_sleeps_show() {
        let trials = [sleeps(1_000, 100), hybrid(1_000, 77)];
        assert_eq!(hybrid_margin(&trials), Some(Nanos::from_micros(77)));
        let slept = hybrid_margin(&trials[..1]).expect("sleeps");
        assert!(slept.0.abs_diff(85_000) < 100, "85 % of 1 to 100 µs: {slept}");
        assert_eq!(hybrid_margin(&[]), None);
        let rows = margin_rows(&trials);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].sleep_ns, rows[0].margin_ns), (1 << 19, 77_000));
    }

    #[test]
    fn a_margin_that_left_nothing_to_sleep_for_is_nothing_learnt() {
        let trials = [hybrid(50, 120), sleeps(50, 70), hybrid(1_000, 90)];
        let short = margins_of(&trials).expect("measured").at(Nanos::from_micros(50));
        assert!(short.0.abs_diff(59_500) < 100, "85 % of 70 µs: {short}");
        let elsewhere = margins_of(&[hybrid(50, 120), hybrid(1_000, 90)]).expect("measured");
        assert_eq!(elsewhere.at(Nanos::from_micros(50)), Nanos::from_micros(90));
    }

    #[test]
    fn the_margin_at_1_ms_is_filled_in_where_it_was_not_measured() {
        let trials = [hybrid(100, 60), hybrid(10_000, 130)];
        let margin = hybrid_margin(&trials).expect("measured");
        assert_eq!(margin, Nanos::from_micros(90), "3 of 7 powers of two");
    }
}

mod advice {
    use super::*;
    use crate::experiment::throttle::tests::waits;

    const MS: Nanos = Nanos::from_millis(1);

    /// Sleeps end late by 51 to 150 µs, at 3 µs each; spinning by 40 ns, at all of a core.
    fn measured(delay: Nanos) -> Vec<WaitTrial> {
        let late: Vec<u64> = (1..=100).map(|k| 50_000 + k * 1_000).collect();
        let mut spin = waits(WaitMethod::Spin, delay, &[40; 100]);
        spin.waits.cpu = spin.waits.elapsed;
        vec![waits(WaitMethod::Sleep, delay, &[110_000; 100]), waits(SLEEP, delay, &late), spin]
    }

    fn budget_methods(trials: &[WaitTrial]) -> Vec<(f64, String)> {
        recommendations(trials).into_iter().map(|a| (a.budget_percent, a.method)).collect()
    }

    #[test]
    fn larger_budget_gives_longer_margin_up_to_its_use() {
        let advice = recommendations(&measured(MS));
        let methods: Vec<&str> = advice.iter().map(|a| a.method.as_str()).collect();
        assert_eq!(methods, ["hybrid"; 7]);
        for pair in advice.windows(2) {
            assert!(pair[0].margin_ns <= pair[1].margin_ns);
            assert!(pair[0].overshoot_p99_ns >= pair[1].overshoot_p99_ns);
        }
        // 1 % of 1 ms is 10 µs, 3 of them the sleep's. That leaves a spin of 7 µs. Σ(m − L)/100
        // over the L from 51 µs on is about (m − 50.5)²/200, so m is near 50.5 + √1,400 = 88 µs.
        let least = advice[0].margin_ns.expect("a margin");
        assert!(least.abs_diff(88_000) < 500, "{least}");
        // Beyond 99 % of the lateness, 149 µs, nothing is gained: spun 49 µs, with 3 for the sleep.
        let most = advice[6].margin_ns.expect("a margin");
        assert!(most.abs_diff(149_000) < 150, "{most}");
        assert_eq!(advice[6].overshoot_p99_ns, 40, "as spinning is");
        assert!((advice[6].cpu_percent - 5.2).abs() < 0.1);
        assert!(advice.iter().all(|a| a.cpu_percent <= a.budget_percent));
    }

    #[test]
    fn each_stands_as_measured_where_a_margin_cannot_be_computed() {
        let mut trials = measured(MS);
        trials.remove(1);
        let mut hybrid = waits(WaitMethod::Hybrid, MS, &[300; 100]);
        hybrid.waits.margin = Some(Nanos(90_000));
        hybrid.waits.cpu = Nanos(4_000_000);
        trials.push(hybrid);
        let methods: Vec<(f64, String)> = budget_methods(&trials);
        let expected = [
            (1.0, "sleep"),
            (2.0, "sleep"),
            (5.0, "hybrid"),
            (10.0, "hybrid"),
            (25.0, "hybrid"),
            (50.0, "hybrid"),
            (100.0, "spin"),
        ];
        assert_eq!(methods, expected.map(|(b, m)| (b, m.to_owned())));
    }

    #[test]
    fn nothing_is_said_of_a_budget_that_nothing_keeps_within() {
        // 3 µs in every 100 µs are 3 %.
        let trials = [measured(Nanos::from_micros(100)), measured(MS)].concat();
        let budgets: Vec<(u64, f64)> = recommendations(&trials)
            .iter()
            .map(|a| (a.delay_ns / 1_000, a.budget_percent))
            .collect();
        let short = [5.0, 10.0, 25.0, 50.0, 100.0].map(|b| (100, b));
        assert_eq!(budgets[..5], short);
        assert_eq!(budgets[5..], BUDGETS_PERCENT.map(|b| (1_000, b)));
        assert!(recommendations(&[]).is_empty());
    }

    #[test]
    fn waits_with_a_chore_between_them_are_left_out() {
        let mut trials = measured(MS);
        for trial in &mut trials {
            trial.spec.chore = Chore::Busy(MS);
        }
        assert!(recommendations(&trials).is_empty());
    }
}

mod model {
    use super::*;
    use crate::experiment::throttle::tests::waits;
    use knee_load::rng;

    /// Late by 60 µs and an exponential tail of mean 20 µs.
    fn late() -> Vec<u64> {
        let mut rng = rng::stream(7, 1);
        (0..5_000).map(|_| 60_000 + (20_000.0 * rng::exp1(&mut rng)) as u64).collect()
    }

    fn sleeps(late: &[u64]) -> WaitTrial {
        waits(SLEEP, Nanos::from_millis(1), late)
    }

    #[test]
    fn the_model_agrees_with_each_sleep_taken_by_itself() {
        let late = late();
        let trial = sleeps(&late);
        let model = Sleeper::of(&trial);
        for margin in [0, 30_000, 60_000, 75_000, 120_000, 400_000] {
            let spun: u64 = late.iter().map(|l| margin.max(*l) - l).sum();
            let spun = spun as f64 / late.len() as f64;
            let mut missed: Vec<u64> = late.iter().map(|l| l.saturating_sub(margin)).collect();
            missed.sort_unstable();
            let margin = Nanos(margin);
            // Within what the histogram resolves, a thousandth of the lateness.
            assert!((model.spin_ns(margin) - spun).abs() < 150.0, "{margin}");
            for q in [0.5, 0.99] {
                let exact = missed[(q * late.len() as f64).ceil() as usize - 1];
                let modelled = model.overshoot(margin, q).0;
                assert!(modelled.abs_diff(exact) < 200, "{margin}: {modelled} for {exact}");
            }
        }
    }

    #[test]
    fn margin_within_budget_is_the_largest_by_exhaustive_search() {
        let trial = sleeps(&late());
        let sleeper = Sleeper::of(&trial);
        let most = sleeper.late.quantile(0.99).0;
        for budget in [0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0] {
            let tried = (0..=most / 100).map(|m| Nanos(100 * m));
            let largest = tried.filter(|m| sleeper.cpu_percent(*m) <= budget).max();
            let margin = sleeper.margin_within(budget);
            let apart = match (margin, largest) {
                (Some(a), Some(b)) => a.0.abs_diff(b.0),
                (a, b) => u64::from(a != b),
            };
            assert!(apart <= 100, "{budget} %: {margin:?}, {largest:?}");
            if let Some(margin) = margin {
                assert!(sleeper.cpu_percent(margin) <= budget);
            }
        }
    }

    #[test]
    fn a_margin_below_every_lateness_costs_nothing() {
        let trial = sleeps(&[70_000, 90_000]);
        let sleeper = Sleeper::of(&trial);
        // A sleep takes 3 µs of each millisecond, 0.3 %.
        let within = |spun_us: f64| sleeper.margin_within(0.3 + spun_us / 10.0).expect("enough").0;
        assert!(within(0.000_1).abs_diff(70_000) < 70);
        // By hand: 70, and then half of what follows. E = (m − 70)/2 up to 90, so 5 µs are spun at
        // m = 80 µs.
        assert!(within(5.0).abs_diff(80_000) < 100);
        // Beyond the lateness of all, nothing is gained.
        assert!(within(15.0).abs_diff(90_000) < 90);
        assert_eq!(sleeper.margin_within(0.29), None);
    }
}
