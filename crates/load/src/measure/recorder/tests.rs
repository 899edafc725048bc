//! What the recorder keeps, and that merging loses nothing.

use super::*;
use proptest::prelude::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn config(start: Nanos, end: Nanos, open_loop: bool) -> RecorderConfig {
    RecorderConfig {
        window: Window { start, end },
        interval: MS(1_000),
        open_loop,
        of_sessions: false,
        starts_max: 1_000,
        targets: 1,
    }
}

fn ended(intended: Nanos, completed: Nanos, outcome: Outcome) -> Completion {
    let op = Op { intended, lane: 0 };
    Completion {
        bytes: 10,
        ..Completion::at_once(op, completed, outcome).exchanged(intended, intended)
    }
}

fn ok(intended: Nanos, completed: Nanos) -> Completion {
    ended(intended, completed, Outcome::Ok)
}

fn op(intended: Nanos) -> Op {
    let lane = Op::ANY_LANE;
    Op { intended, lane }
}

fn sum(series: &[f64]) -> f64 {
    series.iter().sum()
}

#[test]
fn latencies_go_by_intention_and_the_series_by_completion() {
    let window = (MS(1_000), MS(3_000));
    // intended, completed, in the histograms, in the open loop's series
    for (intended, completed, counted, in_series, what) in [
        (500, 900, 0, 0.0, "within the warm-up"),
        (500, 1_100, 0, 1.0, "from the warm-up into the window"),
        (1_000, 1_001, 1, 1.0, "from the window's first moment"),
        (2_900, 3_500, 1, 0.0, "from the window beyond it"),
        (3_000, 3_001, 0, 0.0, "from the window's end, which is outside"),
    ] {
        let mut recorder = Recorder::new(config(window.0, window.1, true));
        recorder.on_completion(&ok(MS(intended), MS(completed)));
        let m = recorder.finish(MS(4_000));
        assert_eq!(m.response.count(), counted, "{what}");
        assert_eq!(m.outcomes.total(), counted, "{what}");
        assert_eq!(sum(&m.series.completed), in_series, "{what}");
        assert_eq!(m.bytes_received, in_series as u64 * 10, "{what}");
        assert_eq!(m.window.end, MS(3_000), "{what}");
    }
}

#[test]
fn outcomes_without_a_response_count_where_they_apply() {
    // outcome, sent, in response, in service, in pacing error, credited, interval's errors
    for (outcome, was_sent, response, service, pacing, credit, errors) in [
        (Outcome::Ok, true, 1, 1, 1, 1.0, 0),
        (Outcome::HTTP_5XX, true, 1, 1, 1, 1.0, 0),
        (Outcome::Timeout, true, 1, 1, 1, 0.0, 1),
        (Outcome::Timeout, false, 1, 0, 1, 0.0, 1),
        (Outcome::Refused, false, 1, 0, 1, 0.0, 1),
        (Outcome::InFlight, true, 1, 1, 1, 0.0, 0),
        (Outcome::Shed, false, 0, 0, 0, 0.0, 1),
    ] {
        let mut recorder = Recorder::new(config(MS(0), MS(2_000), true));
        let mut completion = ended(MS(100), MS(150), outcome);
        if !was_sent {
            completion.sent = completion.completed;
        }
        recorder.on_completion(&completion);
        let m = recorder.finish(MS(2_000));
        assert_eq!(m.outcomes.count(outcome), 1);
        assert_eq!(m.response.count(), response, "{outcome:?}");
        assert_eq!(m.service.count(), service, "{outcome:?}");
        assert_eq!(m.pacing_error.count(), pacing, "{outcome:?}");
        assert_eq!(sum(&m.series.completed), credit, "{outcome:?}");
        assert_eq!(m.intervals[0].errors, errors, "{outcome:?}");
    }
}

#[test]
fn each_length_of_time_has_its_own_histogram() {
    let mut recorder = Recorder::new(config(MS(0), MS(2_000), true));
    recorder.on_completion(&Completion {
        started: MS(101),
        sent: MS(103),
        first_byte: MS(106),
        ..ok(MS(100), MS(107))
    });
    let m = recorder.finish(MS(2_000));
    let about = |h: &super::super::Histogram| (h.max().0 as f64 / 1e6).round();
    assert_eq!(about(&m.response), 7.0);
    assert_eq!(about(&m.service), 4.0);
    assert_eq!(about(&m.pacing_error), 1.0);
    assert_eq!(about(&m.connection_wait), 2.0);
}

/// 4 users, operations of 5 s each, a window that begins anywhere. Whole operations alone would be
/// off by up to a quarter in one of 22 s, and by more in one of 6 s.
#[test]
fn long_operations_across_the_window_do_not_bias_closed_loops() {
    for (start_ms, length_ms) in
        [0, 1, 1_300, 2_499, 4_999].into_iter().flat_map(|at| [(at, 22_000), (at, 6_000)])
    {
        let end = MS(start_ms + length_ms);
        let mut recorder = Recorder::new(config(MS(start_ms), end, false));
        for k in 0..6 {
            for _ in 0..4 {
                recorder.on_completion(&ok(MS(k * 5_000), MS((k + 1) * 5_000)));
            }
        }
        let m = recorder.finish(MS(40_000));
        let per_s = crate::stats::sample::mean(&m.smoothed()) / m.series.slot.as_secs_f64();
        assert!((per_s / 0.8 - 1.0).abs() < 0.015, "{per_s} from {start_ms} ms");
    }
}

/// What waits at the window's end counts nowhere, however soon it completes then; nor does a window
/// with fewer completions than it takes for one of them.
#[test]
fn only_what_completes_within_the_window_counts() {
    for (length_ms, expected) in [(1_000, 100.0), (8, 0.0)] {
        let mut recorder = Recorder::new(config(MS(0), MS(length_ms), false));
        for k in 0..length_ms / 10 {
            recorder.on_completion(&ok(MS(k * 10), MS(k * 10 + 9)));
        }
        for _ in 0..100 {
            recorder.on_completion(&ok(MS(0), MS(length_ms + 1)));
        }
        let m = recorder.finish(MS(2_000));
        let per_s = crate::stats::sample::mean(&m.smoothed()) / m.series.slot.as_secs_f64();
        assert!((per_s - expected).abs() < 0.3, "{per_s}");
    }
}

#[test]
fn window_of_unknown_length_has_the_right_slots() {
    for (end_ms, slots) in [(7, 4..=7), (399, 200..=399), (3_000, 200..=400), (95_000, 200..=400)] {
        let unknown = Nanos(u64::MAX / 2);
        let mut recorder = Recorder::new(config(MS(0), unknown, false));
        for k in 0..end_ms * 4 {
            recorder.on_completion(&ok(Nanos(k * 250_000), Nanos((k + 1) * 250_000)));
        }
        let m = recorder.finish(MS(end_ms));
        let whole = m.series.whole_slots(MS(end_ms));
        assert!(slots.contains(&whole), "{end_ms} ms: {whole} slots");
        let credited = sum(&m.series.completed[..whole]);
        let covered_s = m.series.slot.as_secs_f64() * whole as f64;
        assert!((credited - covered_s * 4_000.0).abs() <= 1.0);
        assert!((sum(&m.series.completed) - end_ms as f64 * 4.0).abs() < 1e-6);
        assert_eq!(m.outcomes.total(), end_ms * 4);
    }
}

#[test]
fn a_whole_window_has_slots_that_fill_it() {
    for ms in [40, 400, 440, 1_000, 2_760, 3_520, 9_920, 10_000, 60_000, 3_600_000] {
        let m = Recorder::new(config(MS(0), MS(ms), true)).finish(MS(ms));
        let slots = m.series.completed.len() as u64;
        assert!((200..=400).contains(&slots) || ms < 200, "{slots} in {ms} ms");
        let rest = MS(ms) - Nanos(m.series.slot.0 * slots);
        assert!(rest.0 < m.series.slot.0 / 100, "{rest} of {ms} ms");
        // Those of a sweep's slices can follow one another.
        let can_be_joined = (m.series.slot.0 / 1_000_000).is_power_of_two();
        assert!(can_be_joined || ms % 40 != 0 || ms >= 10_000, "{} in {ms} ms", m.series.slot);
    }
}

#[test]
fn an_interrupted_trial_has_the_window_cut() {
    let mut recorder = Recorder::new(config(MS(0), MS(10_000), true));
    for k in 0..25 {
        recorder.on_start(op(MS(k * 100)), MS(k * 100));
        recorder.on_completion(&ok(MS(k * 100), MS(k * 100 + 1)));
    }
    let m = recorder.finish(MS(2_430));
    assert_eq!(m.window.length(), MS(2_430));
    assert_eq!(m.outcomes.total(), 25);
    let slots = m.series.completed.len() as u64;
    assert_eq!(slots, MS(2_430).0.div_ceil(m.series.slot.0));
    assert_eq!(m.starts_until, MS(2_430));
    let ends: Vec<u64> = m.intervals.iter().map(|i| i.end_ns / 1_000_000).collect();
    assert_eq!(ends, [1_000, 2_000, 2_430]);
    assert_eq!(m.intervals.iter().map(|i| i.attempted).sum::<u64>(), 25);
    assert_eq!(m.started, 25);
}

#[test]
fn a_window_that_never_began_is_empty() {
    let m = Recorder::new(config(MS(1_000), MS(2_000), true)).finish(MS(500));
    assert_eq!(m.window.length(), Nanos::ZERO);
    assert!(m.series.completed.is_empty() && m.intervals.is_empty());
}

#[test]
fn starts_stop_where_the_memory_ends() {
    let starts_max = 3;
    let mut recorder =
        Recorder::new(RecorderConfig { starts_max, ..config(MS(10), MS(100), true) });
    for t in [5, 10, 20, 30, 30, 40] {
        recorder.on_start(op(MS(t)), MS(t));
    }
    let m = recorder.finish(MS(100));
    assert_eq!(m.started, 5);
    // The second start at 30 ms found no room, so 30 ms is not known completely.
    assert_eq!((m.starts, m.starts_until), (vec![MS(10), MS(20)], MS(30)));
}

#[test]
fn a_stall_counts_where_it_touches_the_window() {
    for (now, late, kept, what) in [
        (900, 50, 0, "in the warm-up"),
        (1_010, 50, 50, "reaching into the window"),
        (2_500, 50, 50, "within"),
        (3_020, 50, 50, "begun within"),
        (3_100, 50, 0, "after it"),
    ] {
        let mut recorder = Recorder::new(config(MS(1_000), MS(3_000), true));
        recorder.on_stall(MS(now), MS(late));
        assert_eq!(recorder.finish(MS(4_000)).stall_ns_max, MS(kept).0, "{what}");
    }
}

#[test]
fn intervals_of_two_workers_become_one_when_both_are_in() {
    let config = config(MS(500), MS(3_000), true);
    let mut workers = [Recorder::new(config), Recorder::new(config)];
    let mut merger = IntervalMerger::new(2);
    workers[0].on_completion(&ok(MS(600), MS(700)));
    workers[1].on_completion(&ok(MS(600), MS(900)));
    assert_eq!(workers[0].roll(MS(1_499)), None);
    let first = workers[0].roll(MS(1_500)).expect("one second of window is over");
    assert_eq!(merger.add(first), None);
    // The other worker stalled and comes with two at once.
    let part = workers[1].roll(MS(2_600)).expect("two are over");
    let (interval, _) = merger.add(part).expect("both parts are in");
    assert_eq!((interval.start_ns, interval.end_ns), (0, MS(1_000).0));
    assert_eq!((interval.completed, interval.max_ns / 1_000_000), (2, 300));
    for worker in &mut workers {
        for part in worker.roll_all(MS(3_000)) {
            merger.add(part);
        }
        assert_eq!(worker.roll(MS(4_000)), None);
    }
    let intervals = merger.finish();
    let ends: Vec<u64> = intervals.iter().map(|i| i.end_ns / 1_000_000).collect();
    assert_eq!(ends, [1_000, 2_000, 2_500]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two workers' measurements merged say what one worker with all operations would.
    #[test]
    fn merging_is_exact(
        ops in proptest::collection::vec((0u64..5_000, 0u64..2_000, any::<bool>()), 1..60),
        open_loop in any::<bool>(),
        end in 500u64..6_000,
    ) {
        let config = config(MS(1_000), MS(4_000), open_loop);
        let mut all = Recorder::new(config);
        let mut halves = [Recorder::new(config), Recorder::new(config)];
        let mut ops = ops;
        ops.retain(|op| op.0 <= end);
        ops.sort_by_key(|&(intended, took, _)| (intended + took).min(end));
        for &(intended, took, second) in &ops {
            let completed = (intended + took).min(end.max(intended));
            let completion = ok(MS(intended), MS(completed));
            all.on_completion(&completion);
            halves[usize::from(second)].on_completion(&completion);
        }
        let whole = all.finish(MS(end));
        let [mut merged, other] = halves.map(|r| r.finish(MS(end)));
        merged.merge(other);
        prop_assert_eq!(&merged.response, &whole.response);
        prop_assert_eq!(&merged.outcomes, &whole.outcomes);
        prop_assert_eq!(merged.window, whole.window);
        prop_assert_eq!(&merged.series.response_count, &whole.series.response_count);
        prop_assert_eq!(merged.series.slot, whole.series.slot);
        prop_assert_eq!(&merged.series.heat, &whole.series.heat);
        let told = whole.series.heat_report().map_or(0, |heat| heat.count());
        let in_slots = whole.series.response_count.iter().sum::<u64>();
        // What ended with the window is in no slot, and may be in a column.
        let at_the_end = ops.iter().filter(|(at, took, _)| at + took >= end).count() as u64;
        prop_assert!(told >= in_slots && told <= in_slots + at_the_end, "{} {}", told, in_slots);
        for (a, b) in merged.series.completed.iter().zip(&whole.series.completed) {
            prop_assert!((a - b).abs() < 1e-9);
        }
    }
}

#[test]
fn an_interval_knows_how_late_its_operations_were_started() {
    let mut recorder = Recorder::new(config(MS(1_000), MS(3_000), true));
    for (intended, started) in [(900, 950), (1_000, 1_004), (1_500, 1_502), (1_999, 2_000)] {
        recorder.on_start(op(MS(intended)), MS(started));
    }
    let m = recorder.finish(MS(3_000));
    let pacing = |i: usize| {
        let interval = &m.intervals[i];
        (interval.pacing_error_ns_mean, interval.pacing_error_ns_max)
    };
    assert_eq!(pacing(0), (Some(3_000_000), Some(4_000_000)));
    assert_eq!(pacing(1), (Some(1_000_000), Some(1_000_000)));
    let mut closed = Recorder::new(config(MS(0), MS(1_000), false));
    closed.on_start(op(MS(5)), MS(6));
    let m = closed.finish(MS(1_000));
    assert_eq!(m.intervals[0].pacing_error_ns_mean, None);
}

#[test]
fn late_starts_of_several_workers_make_one_mean() {
    let part = |count, sum_ns, max_ns| IntervalPart {
        end_ns: 1,
        pacing: Some(crate::measure::Pacing { count, sum_ns, max_ns }),
        ..IntervalPart::default()
    };
    let mut merger = IntervalMerger::new(2);
    assert!(merger.add(part(3, 300, 200)).is_none());
    let (interval, _) = merger.add(part(1, 500, 500)).unwrap();
    assert_eq!(interval.pacing_error_ns_mean, Some(200));
    assert_eq!(interval.pacing_error_ns_max, Some(500));
}

/// Where operations end the trial, its end is known only when all have ended.
#[test]
fn what_hangs_from_the_warm_up_to_the_last_operation_counts() {
    let far = MS(3_600_000);
    let hangs = ended(MS(500), MS(10_500), Outcome::Timeout);
    let before = [ok(MS(1_100), MS(1_101)), ok(MS(1_101), MS(1_102))];
    let after = ok(MS(10_500), MS(10_501));
    let record = |completions: &[Completion], window_end: Nanos, end: Nanos| {
        let mut recorder = Recorder::new(config(MS(1_000), window_end, false));
        completions.iter().for_each(|c| recorder.on_completion(c));
        recorder.finish(end)
    };
    for (what, completions, expected) in [
        ("it is the last to end", &[before[0], before[1], hangs][..], 1),
        ("nothing else was measured", &[hangs], 1),
        ("the measurement goes on after it", &[before[0], hangs, after], 0),
        ("an answer, however late", &[before[0], ok(MS(500), MS(10_500))], 0),
        ("it ended in the warm-up", &[ended(MS(100), MS(900), Outcome::Timeout)], 0),
    ] {
        let m = record(completions, far, MS(10_600));
        assert_eq!(m.carried, expected, "{what}");
        assert_eq!(m.unanswered.count(), expected, "{what}");
        assert_eq!(m.outcomes.count(Outcome::Timeout), expected, "{what}");
        // Nothing of it is the shortest.
        assert_ne!(m.response_min, Some(MS(10_000)), "{what}");
    }
    // Where time ends the trial, and did not end it then, its user was free again.
    let m = record(&[before[0], hangs], MS(20_000), MS(20_000));
    assert_eq!((m.carried, m.outcomes.total()), (0, 1));
}

#[test]
fn responses_that_came_in_one_piece_are_counted_and_no_others() {
    // When each completed over which connection, in ms; how many share their arrival.
    let none = Completion::NO_CONNECTION;
    for (arrivals, shared) in [
        (&[(5, 0)][..], 0),
        (&[(5, 0), (5, 0)], 2),
        (&[(5, 0), (5, 0), (5, 0), (6, 0)], 3),
        (&[(5, 0), (5, 0), (6, 0), (6, 0)], 4),
        (&[(5, 0), (5, 1), (6, 0)], 0),
        (&[(5, none), (5, none)], 0),
    ] {
        let mut recorder = Recorder::new(config(MS(0), MS(100), false));
        for &(at, connection) in arrivals {
            recorder.on_completion(&Completion { connection, ..ok(MS(1), MS(at)) });
        }
        let m = recorder.finish(MS(100));
        assert_eq!(m.shared_arrivals, shared, "{arrivals:?}");
    }
}
