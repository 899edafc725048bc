use super::*;
use crate::trial::assess::assess;
use crate::trial::assess::tests::{closed, open, spec};
use knee_load::measure::{Completion, Op, Outcome, Recorder, RecorderConfig, Trial, Window};
use knee_load::spec::ArrivalLaw;
use knee_load::time::Nanos;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const US: fn(u64) -> Nanos = Nanos::from_micros;

/// An open loop at 500/s of 10 s whose k-th operation is `change` of one served in 1 ms.
fn trial(load: Load, change: impl Fn(u64, Completion) -> Completion) -> Trial {
    let spec = spec(load);
    let window = Window { start: spec.warmup, end: spec.window_end() };
    let mut recorder = Recorder::new(RecorderConfig {
        window,
        interval: MS(1_000),
        open_loop: spec.load.is_open_loop(),
        of_sessions: false,
        starts_max: 10_000,
        targets: 1,
    });
    for k in 0..5_000 {
        let intended = window.start + Nanos(k * 2_000_000);
        let op = Op { intended, lane: 0 };
        recorder.on_start(op, intended);
        let plain = Completion {
            by_kernel: true,
            ..Completion::at_once(op, intended + MS(1), Outcome::Ok)
        };
        recorder.on_completion(&change(k, plain.exchanged(intended, intended)));
    }
    Trial {
        measurement: recorder.finish(window.end),
        spec,
        generator: Default::default(),
        kernel: Default::default(),
        observed: None,
        agents: Vec::new(),
        interrupted: false,
    }
}

/// Every hundredth operation took `late` longer, and did so in that stage.
fn slowest(late: Nanos, stage: Stage) -> Trial {
    trial(open(ArrivalLaw::Constant), |k, c| {
        if k % 100 != 0 {
            return c;
        }
        let completed = c.completed + late;
        let mut ends = [
            c.started,
            c.scripted,
            c.placed,
            c.connected,
            c.secured,
            c.granted,
            c.granted,
            c.sent,
            c.written,
            c.first_byte,
            c.first_byte,
            completed,
        ];
        for end in &mut ends[stage as usize..Stage::Receive as usize] {
            *end += late;
        }
        let [started, scripted, placed, connected, secured, _, granted, ..] = ends;
        let [.., sent, written, first, last, completed] = ends;
        Completion {
            started,
            scripted,
            placed,
            connected,
            secured,
            granted,
            is_targets_limit: stage == Stage::TargetStreamWait,
            sent,
            written,
            first_byte: first,
            last_message: last,
            completed,
            picked_up: completed,
            ..c
        }
    })
}

fn group(timing: &TimingReport, of: AnatomyGroup) -> &AnatomyReport {
    timing.anatomy.iter().find(|a| a.of == of).unwrap()
}

#[test]
fn each_owner_is_named_for_its_own_stage_and_no_other() {
    for (stage, owner) in Stage::all().map(|stage| (stage, stage.owner())) {
        let report = assess(&slowest(MS(9), stage));
        let slowest = group(report.timing().unwrap(), AnatomyGroup::Slowest1);
        let share = slowest.owner_percent[&owner];
        let expected = match owner {
            Owner::Target => 100.0,
            Owner::Generator | Owner::Limit => 90.0,
            Owner::ServerHost | Owner::Network => unreachable!("no stage is theirs alone"),
        };
        assert!((share - expected).abs() < 1.0, "{stage:?}: {share}");
        assert!((slowest.owner_percent.values().sum::<f64>() - 100.0).abs() < 1e-9);
        let sum: u64 = slowest.mean_ns.values().sum();
        assert!(sum.abs_diff(slowest.response_ns) <= Stage::COUNT as u64);
        assert!(slowest.from_ns >= 1_000_000 && slowest.count == 50);
        let all = group(report.timing().unwrap(), AnatomyGroup::All);
        let generator = all.generator_percent();
        assert_eq!(generator > 0.0, owner == Owner::Generator, "{stage:?}");
        assert_eq!(report.timing().unwrap().slowest.len(), 10);
        assert_eq!(report.timing().unwrap().slowest[0].response_time_ns, 10_000_000);
    }
}

/// Both ends saw `count` operations of 1 ms. The server's host had 3 of 4 parts of each.
fn seen_at_both_ends(count: u64) -> TimingReport {
    let mut trial = slowest(MS(9), Stage::Pacing);
    for _ in 0..count {
        trial.measurement.split.add(MS(1), US(750), US(250));
    }
    assess(&trial).timing().unwrap().clone()
}

#[test]
fn the_targets_share_is_split_where_both_ends_saw_enough() {
    let timing = seen_at_both_ends(40);
    let all = group(&timing, AnatomyGroup::All);
    assert_eq!(all.both_ends_count, Some(40));
    assert!(!all.owner_percent.contains_key(&Owner::Target));
    let [host, network] = [Owner::ServerHost, Owner::Network].map(|o| all.owner_percent[&o]);
    assert!((host / network - 3.0).abs() < 1e-9, "{host} {network}");
    assert!((all.owner_percent.values().sum::<f64>() - 100.0).abs() < 1e-9);
    // Of the slowest it saw none: they stay as they are.
    let slowest = group(&timing, AnatomyGroup::Slowest1);
    assert_eq!(slowest.both_ends_count, None);
    assert!(slowest.owner_percent.contains_key(&Owner::Target));
    // Nor is anything split by a few, or by none.
    for few in [0, 19] {
        let timing = seen_at_both_ends(few);
        let all = group(&timing, AnatomyGroup::All);
        assert_eq!(all.both_ends_count, None, "{few}");
        assert!(!all.owner_percent.contains_key(&Owner::Network), "{few}");
    }
}

#[test]
fn slow_starts_make_the_tail_a_range_and_slow_targets_do_not() {
    for (late_us, stage, is_determined) in
        [(120, Stage::Pacing, false), (100, Stage::Pacing, true), (460, Stage::FirstByte, true)]
    {
        let times = assess(&slowest(US(late_us), stage)).response_time_ns;
        let is_range = times.ranges.contains_key("p999");
        assert_eq!(times.p999.is_some(), is_determined, "{late_us} {stage:?}");
        assert_eq!(is_range, !is_determined, "{late_us} {stage:?}");
        assert!(times.p50.is_some(), "{late_us} {stage:?}");
    }
}

#[test]
fn the_clock_is_the_kernels_where_it_stamped_nearly_all() {
    for (stamped, clock) in [
        (5_000, ClockKind::Kernel),
        (4_951, ClockKind::Kernel),
        (4_949, ClockKind::Process),
        (0, ClockKind::Process),
    ] {
        let trial =
            trial(open(ArrivalLaw::Constant), |k, c| Completion { by_kernel: k < stamped, ..c });
        let timing = assess(&trial).timing().unwrap().clone();
        assert_eq!(timing.clock, Some(clock), "{stamped}");
        assert_eq!(timing.pick_up_ns.is_some(), stamped > 0);
    }
    let none =
        trial(open(ArrivalLaw::Constant), |_, c| Completion { outcome: Outcome::Refused, ..c });
    assert_eq!(assess(&none).timing().unwrap().clock, None);
}

#[test]
fn late_reading_is_the_generators_share_of_a_closed_loop() {
    let picked_up_late = |late: Nanos| {
        let trial = trial(closed(1), |_, c| Completion { picked_up: c.completed + late, ..c });
        assess(&trial)
    };
    let share = |late| picked_up_late(late).timing().unwrap().generator_cycle_percent;
    assert!((share(US(250)).unwrap() - 20.0).abs() < 0.1);
    assert_eq!(share(Nanos::ZERO), Some(0.0));
    let open = trial(open(ArrivalLaw::Constant), |_, c| c);
    assert_eq!(assess(&open).timing().unwrap().generator_cycle_percent, None);
}

#[test]
fn groups_need_an_operation_and_sum_to_all() {
    let few = trial(open(ArrivalLaw::Constant), |_, c| c);
    let mut measured = few.measurement.clone();
    assert_eq!(anatomy(&measured, AnatomyGroup::All).unwrap().count, 5_000);
    measured.response = Default::default();
    assert_eq!(anatomy(&measured, AnatomyGroup::Slowest1), None);
}
