//! Worlds in which one explanation holds, and the nearest in which it does not.

use super::cells::{Cell, Change, block};
use super::{ExplainSpec, UdpExplain};
use crate::arrival::{ArrivalProcess, Arrivals};
use crate::experiment::udp::UdpTried;
use crate::experiment::udp::analysis::tests::{moments, served, spec};
use crate::experiment::udp::fake::{Made, run, sleeps, yields};
use crate::experiment::udp::findings::datagram_findings;
use crate::experiment::udp::report::{EffectRow, UdpConclusion};
use crate::experiment::udp::spec::{ClientWait, UdpTrialSpec};
use crate::experiment::{Ended, Experiment, Next, conduct};
use crate::finding::Finding;
use crate::law::Law;
use crate::spec::{ArrivalLaw, Share, WaitPolicy};
use crate::time::Nanos;
use crate::trial::report::TrialReport;
use std::convert::Infallible;
use std::ops::ControlFlow;

fn asked(cpus: &[u32]) -> ExplainSpec {
    ExplainSpec {
        first: yields(64),
        second: sleeps(128, 200),
        repeats: 3,
        cpus: cpus.to_vec(),
        realtime: false,
        seed: 1,
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Yielding,
    Sleeping,
    /// As many sleeping clients, with the service alone on its processor.
    Apart,
    /// As many, with the service at real-time priority.
    RealTime,
    Evenly,
    Poisson,
    Replaying,
    /// The same, with the service alone on its processor.
    ReplayingApart,
}

fn who(spec: &UdpTrialSpec) -> Who {
    match &spec.wait {
        ClientWait::Yield => Who::Yielding,
        ClientWait::Schedule { arrival, .. } => match arrival {
            ArrivalLaw::Constant => Who::Evenly,
            ArrivalLaw::Poisson => Who::Poisson,
            _ if spec.setup.cpu.is_some() => Who::ReplayingApart,
            _ => Who::Replaying,
        },
        _ if spec.setup.realtime => Who::RealTime,
        _ if spec.setup.cpu.is_some() && !spec.client_cpus.contains(&0) => Who::Apart,
        _ => Who::Sleeping,
    }
}

fn explain(world: impl Fn(Who) -> Made) -> UdpConclusion {
    let mut experiment = UdpExplain::new(ExplainSpec {
        realtime: true,
        ..asked(&[0, 1])
    });
    run(&mut experiment, |spec| world(who(spec))).1
}

/// A world in which those clients lose 2 % of what they send.
fn losers(of: &'static [Who]) -> impl Fn(Who) -> Made {
    move |who| Made {
        lost: if of.contains(&who) { 0.02 } else { 0.0 },
        ..Made::default()
    }
}

const CROWD: &[Who] = &[Who::Sleeping, Who::Apart];

/// Everybody that sleeps or replays.
const ALL: &[Who] = &[
    Who::Sleeping,
    Who::Apart,
    Who::RealTime,
    Who::Replaying,
    Who::ReplayingApart,
];

fn names(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line.split(':').next().unwrap_or(""))
        .collect()
}

/// How `name` ended: `supported`, `ruled_out`, `undecided`.
fn standing(conclusion: &UdpConclusion, name: &str) -> &'static str {
    let lists = [
        (&conclusion.supported, "supported"),
        (&conclusion.ruled_out, "ruled_out"),
        (&conclusion.undecided, "undecided"),
    ];
    let found: Vec<&str> = lists
        .into_iter()
        .filter(|(lines, _)| names(lines).contains(&name))
        .map(|(_, standing)| standing)
        .collect();
    assert_eq!(found.len(), 1, "{name} in {conclusion:#?}");
    match found[0] {
        "supported" => "supported",
        "ruled_out" => "ruled_out",
        _ => "undecided",
    }
}

fn check(what: &str, name: &str, world: impl Fn(Who) -> Made, expected: &str) {
    assert_eq!(standing(&explain(world), name), expected, "{what}");
}

#[test]
fn the_design_has_each_cell_once_in_each_block() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    assert_eq!(experiment.trials(), 2 + 3 * 13);
    let (conducted, conclusion) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    assert_eq!(conducted.trials.len(), 41);
    assert_eq!(conducted.ended, Ended::Converged);
    assert_eq!(conclusion.effects.len(), 12);
    assert!(conclusion.effects.iter().all(|e| e.pairs == 3));
    let rows: Vec<u32> = conclusion.laws.iter().map(|row| row.trials).collect();
    assert_eq!(rows, [4, 4], "the pilot's too");
    let labels = |block: usize| {
        let trials = conducted.trials[2 + 13 * block..][..13].iter();
        let mut labels: Vec<String> = trials.map(|t| t.report.label.clone()).collect();
        let order = labels.clone();
        labels.sort();
        (order, labels)
    };
    assert_eq!(labels(0).1, labels(1).1);
    assert_ne!(labels(0).0, labels(1).0, "in another order");
    assert!(conducted.findings.iter().all(|f| !f.text.contains("4 MiB")));
    let one_core = UdpExplain::new(asked(&[0]));
    assert_eq!(one_core.trials(), 2 + 3 * 10);
    let with_priority = UdpExplain::new(ExplainSpec {
        realtime: true,
        ..asked(&[0])
    });
    assert_eq!(with_priority.trials(), 2 + 3 * 11);
}

#[test]
fn a_block_has_the_unchanged_before_what_is_derived_from_it() {
    let changes = [
        Change::Constant,
        Change::Buffer,
        Change::Poisson,
        Change::Replay,
    ];
    for seed in 0..200 {
        let cells = block(Cell::Second, &changes, seed, 1);
        assert_eq!(cells.len(), 6);
        let at = |cell| cells.iter().position(|c| *c == cell).expect("once");
        for change in [Change::Constant, Change::Poisson, Change::Replay] {
            assert!(at(Cell::Second) < at(Cell::Changed(change)), "{cells:?}");
        }
    }
}

#[test]
fn the_subject_is_who_loses_clearly_more() {
    let base = |lost: [f64; 2]| {
        let world = move |spec: &UdpTrialSpec| Made {
            lost: lost[usize::from(spec.wait != ClientWait::Yield)],
            ..Made::default()
        };
        let (_, conclusion) = run(&mut UdpExplain::new(asked(&[0])), world);
        conclusion.effects[0].base.clone()
    };
    assert_eq!(base([0.0, 0.0]), "exp(200us)*128");
    assert_eq!(base([0.021, 0.01]), "yield*64");
    assert_eq!(base([0.019, 0.01]), "exp(200us)*128");
}

#[test]
fn a_replay_sends_the_moments_of_its_own_block() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    let past = &conducted.trials;
    let mut replays = 0;
    for made in 0..past.len() {
        let Next::Run(spec) = experiment.next(&past[..made]) else {
            panic!("trial {made} was made");
        };
        assert_eq!(spec.label, past[made].report.label, "the same again");
        let ClientWait::Schedule { rate, arrival } = &spec.wait else {
            continue;
        };
        assert_eq!((spec.clients, spec.engine.wait), (1, WaitPolicy::Spin));
        assert_eq!(rate.per_s(), 10_000.0);
        if let ArrivalLaw::Trace(moments) = arrival {
            let block = &past[2 + (made - 2) / 13 * 13..made];
            let base = block.iter().find(|t| t.report.label == "exp(200us)*128");
            assert_eq!(*moments, base.expect("before it").starts);
            replays += 1;
        }
    }
    assert_eq!(replays, 6);
}

#[test]
fn clients_that_send_nothing_cannot_be_sent_again() {
    let world = |_: &UdpTrialSpec| Made {
        refused: 1.0,
        ..Made::default()
    };
    let (conducted, conclusion) = run(&mut UdpExplain::new(asked(&[])), world);
    assert_eq!(
        conducted.ended,
        Ended::Doomed("exp(200us)*128 sent nothing that could be sent again".into())
    );
    assert_eq!(standing(&conclusion, "sender_drops_or_blocks"), "supported");
}

#[test]
fn no_loss_is_an_answer() {
    let conclusion = explain(losers(&[]));
    assert!(
        conclusion
            .answer
            .contains("no loss to explain on this machine. No change that was tried"),
        "{}",
        conclusion.answer
    );
    assert_eq!(names(&conclusion.supported), ["per_send_overhead"]);
    assert_eq!(names(&conclusion.ruled_out), ["sender_drops_or_blocks"]);
    let with_work = |spec: &UdpTrialSpec| Made {
        lost: if spec.setup.work.is_some() { 0.1 } else { 0.0 },
        ..Made::default()
    };
    let (_, conclusion) = run(&mut UdpExplain::new(asked(&[])), with_work);
    assert!(
        conclusion
            .answer
            .ends_with("lost here: work per datagram: as it is → 20 µs (10 % lost)."),
        "{}",
        conclusion.answer
    );
}

#[test]
fn repeats_on_the_same_data_agree() {
    let one = explain(losers(CROWD));
    assert_eq!(one, explain(losers(CROWD)));
    let all = [&one.supported, &one.ruled_out, &one.undecided];
    assert_eq!(all.iter().map(|lines| lines.len()).sum::<usize>(), 9);
}

#[test]
fn an_explanation_cut_short_still_concludes() {
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| losers(CROWD)(who(spec)));
    for made in 0..16 {
        experiment.conclude(&conducted.trials[..made]);
    }
}

#[test]
fn sending_takes_the_rate() {
    // 128 clients that wait 200 µs would send 640,000/s.
    let at = |sent_per_s| {
        move |_: Who| Made {
            sent_per_s,
            ..Made::default()
        }
    };
    let name = "per_send_overhead";
    check("0.89 of it", name, at(569_000.0), "supported");
    check("0.92 of it", name, at(590_000.0), "undecided");
    check("0.96 of it", name, at(615_000.0), "ruled_out");
    let mut spec = asked(&[]);
    spec.second = yields(128);
    let (_, conclusion) = run(&mut UdpExplain::new(spec), |_| Made::default());
    assert_eq!(standing(&conclusion, name), "undecided", "nobody waits");
}

/// A service that waits for its processor while the crowd runs, in pauses of up to 1 ms.
fn kept(waiting: f64, preempted: u64, losing: &'static [Who]) -> impl Fn(Who) -> Made {
    move |who| Made {
        waiting: if who == Who::Sleeping { waiting } else { 0.0 },
        preempted: if who == Who::Sleeping { preempted } else { 0 },
        ..losers(losing)(who)
    }
}

const WAITS: &str = "service_waits_for_processor";
const PREEMPTED: &str = "woken_clients_preempt_service";

/// How the two explanations of a service that is kept from its processor end.
fn check_both(what: &str, world: impl Fn(Who) -> Made + Copy, expected: [&str; 2]) {
    let conclusion = explain(world);
    let ended = [WAITS, PREEMPTED].map(|name| standing(&conclusion, name));
    assert_eq!(ended, expected, "{what}: {conclusion:#?}");
}

#[test]
fn a_crowd_has_the_processor() {
    let [supported, ruled_out, undecided] = ["supported", "ruled_out", "undecided"];
    let crowd = &[Who::Sleeping];
    let world = kept;
    // 90 % of the time, and 5 preemptions a second of at most 1 ms each: 0.5 %.
    check_both("it waits", &world(0.9, 5, crowd), [supported, ruled_out]);
    check_both("just", &world(0.01, 4, crowd), [supported, ruled_out]);
    // 600 of them can be 60 % of the time, which is more than half of what it waited.
    check_both(
        "it is preempted",
        &world(0.9, 600, crowd),
        [ruled_out, supported],
    );
    check_both(
        "preempted alone",
        &world(0.0, 10, crowd),
        [ruled_out, supported],
    );
    check_both("little of either", &world(0.005, 0, crowd), [undecided; 2]);
    check_both("it never waited", &world(0.0009, 0, crowd), [ruled_out; 2]);
    check_both("nothing helps", &world(0.3, 99, ALL), [ruled_out; 2]);
    let replay = &[Who::Sleeping, Who::Replaying, Who::RealTime];
    check_both("priority does not", &world(0.3, 99, replay), [undecided; 2]);
}

/// The same service, which is given its processor so often a second.
#[test]
fn turns_tell_preemption_from_waiting() {
    let turns = |turns| {
        move |who| Made {
            turns,
            ..kept(0.9, 600, &[Who::Sleeping])(who)
        }
    };
    check_both("each turn", turns(1_200), ["ruled_out", "supported"]);
    check_both("few turns", turns(6_000), ["supported", "undecided"]);
    check_both("fewer", turns(6_010), ["supported", "ruled_out"]);
}

#[test]
fn a_replay_that_loses_more_tells_nothing() {
    let more = |times: f64| {
        move |who| Made {
            lost: if who == Who::Replaying {
                0.02 * times
            } else {
                0.02
            },
            ..kept(0.3, 99, ALL)(who)
        }
    };
    check("twice as much", WAITS, more(2.0), "ruled_out");
    check("more than that", WAITS, more(2.1), "undecided");
}

#[test]
fn a_single_sender_that_falls_behind_once_is_left_out() {
    let blocks = std::cell::Cell::new(0);
    let world = |late: u32| {
        blocks.set(0);
        explain(|who| {
            blocks.set(blocks.get() + u32::from(who == Who::Poisson));
            Made {
                falls_behind: who == Who::Poisson && blocks.get() <= late,
                ..losers(CROWD)(who)
            }
        })
    };
    let poisson = |conclusion: &UdpConclusion| {
        let is_it = |e: &&EffectRow| e.change.contains("Poisson");
        conclusion.effects.iter().find(is_it).map(|e| e.pairs)
    };
    let once = world(1);
    assert_eq!(standing(&once, "poisson_variance"), "ruled_out");
    assert_eq!(poisson(&once), Some(2), "of three");
    let always = world(3);
    assert_eq!(poisson(&always), None);
    let undecided = always.undecided.iter().any(|line| {
        line.starts_with("poisson_variance:")
            && line.ends_with("no single sender kept its schedule at this rate")
    });
    assert!(undecided, "{always:#?}");
}

#[test]
fn findings_beside_an_explanation_lead_to_no_other() {
    let world = losers(CROWD);
    let mut experiment = UdpExplain::new(asked(&[0, 1]));
    let (conducted, _) = run(&mut experiment, |spec| world(who(spec)));
    let full = |findings: &[Finding]| {
        let found = findings
            .iter()
            .find(|f| f.code == "receive_buffer_overflow");
        found.map(|f| f.next_step.contains("--explain"))
    };
    assert_eq!(full(&conducted.findings), Some(false));
    let reports: Vec<&TrialReport> = conducted.trials.iter().map(|t| &t.report).collect();
    assert_eq!(full(&datagram_findings(&reports)), Some(true));
}

#[test]
fn a_cause_is_named_once_with_what_a_cell_changes_besides() {
    // With a processor of its own the service loses nothing, but a quarter is sent.
    let world = |who| Made {
        sent_per_s: if who == Who::Apart { 2_500.0 } else { 10_000.0 },
        pause: Nanos::from_millis(50),
        cpu: 0.03,
        ..kept(0.9, 2, &[Who::Sleeping])(who)
    };
    let conclusion = explain(world);
    assert_eq!(
        names(&conclusion.supported),
        ["per_send_overhead", "receive_buffer", WAITS]
    );
    let answer = &conclusion.answer;
    assert!(
        answer.contains(
            "Supported: the service is ready to work but waits in the run queue, behind clients, \
             while datagrams pile up (the service waited for its processor for 90 % of the time, \
             which it used for 3 %; it was preempted 2 times a second, and its longest pause \
             was 50 ms; at real-time priority: 0 % lost; with a processor of its own, the same \
             times from a single sender on another: 0 % lost; the same times from a single \
             sender: 0 % lost; with a processor of its own: 0 % lost at 0.25 times the rate)."
        ),
        "{answer}"
    );
    assert_eq!(standing(&conclusion, "receiver_pauses"), "ruled_out");
    assert_eq!(answer.matches("Supported:").count(), 1);
    // Where it may not have that priority, that is said.
    let mut without = UdpExplain::new(asked(&[0, 1]));
    let (_, conclusion) = run(&mut without, |spec| world(who(spec)));
    assert!(
        conclusion
            .answer
            .contains("real-time priority was not tried"),
        "{}",
        conclusion.answer
    );
}

/// Clients that send so many at once.
fn bursts(burst: u64, losing: &'static [Who]) -> impl Fn(Who) -> Made {
    move |who| Made {
        burst,
        ..losers(losing)(who)
    }
}

#[test]
fn clients_wake_together() {
    let name = "synchronised_wakeups";
    let replayed = ALL;
    // Bursts of 100 every 10 ms: at 1 ms the index is 90.
    check("bursts", name, bursts(100, replayed), "supported");
    check("no bursts", name, bursts(1, replayed), "ruled_out");
    check(
        "the replay loses nothing",
        name,
        bursts(100, CROWD),
        "ruled_out",
    );
    let even = &[
        Who::Sleeping,
        Who::Apart,
        Who::Replaying,
        Who::ReplayingApart,
        Who::Evenly,
    ];
    check("nor do bursts matter", name, bursts(100, even), "undecided");
    let mut spec = asked(&[]);
    spec.second = yields(128);
    let world = |spec: &UdpTrialSpec| Made {
        burst: 100,
        lost: if spec.clients == 128 { 0.02 } else { 0.0 },
        ..Made::default()
    };
    let (_, conclusion) = run(&mut UdpExplain::new(spec), world);
    assert_eq!(standing(&conclusion, name), "ruled_out", "nobody sleeps");
}

/// Clients and a service in virtual time: datagrams go through a queue with room for 40 and 20 µs
/// of work each, or whatever a cell asks for.
fn simulated(spec: &UdpTrialSpec) -> UdpTried {
    let starts = match &spec.wait {
        ClientWait::Tick(period) => {
            let moment = |k: u64| Nanos(2 * period.0 * (1 + k / u64::from(spec.clients)));
            let moments = (0..).map(moment);
            moments.take_while(|&t| t < spec.duration).collect()
        }
        ClientWait::Schedule { rate, arrival } => {
            let mut schedule = Arrivals::of(*rate, arrival, Share::WHOLE, spec.seed);
            let moments = std::iter::from_fn(|| schedule.next());
            moments.take_while(|&t| t < spec.duration).collect()
        }
        _ => moments(20_000, &ArrivalLaw::Constant, spec.duration),
    };
    let work = match spec.setup.work {
        Some(Law::Fixed(work)) => work,
        _ => Nanos::from_micros(20),
    };
    let buffer = spec.setup.rcvbuf.map_or(40, |bytes| u64::from(bytes) / 768);
    UdpTried::of(&served(spec.clone(), starts, work, buffer))
}

#[test]
fn clients_on_one_clock_overflow_a_simulated_queue() {
    let tick = ClientWait::Tick(Nanos::from_millis(10));
    let mut experiment = UdpExplain::new(ExplainSpec {
        second: spec(64, tick, Nanos::from_secs(1)),
        ..asked(&[])
    });
    let made = conduct(&mut experiment, |spec| {
        Ok::<_, Infallible>(ControlFlow::Continue(simulated(spec)))
    });
    let conducted = made.unwrap_or_else(|never| match never {});
    let conclusion = conducted.conclusion;
    // Of 64 at once 40 find room in the buffer and one is served.
    assert_eq!(conclusion.laws[1].loss_percent, 100.0 * 23.0 / 64.0);
    assert_eq!(
        names(&conclusion.supported),
        ["receive_buffer", "synchronised_wakeups"]
    );
    let cured: Vec<&str> = conclusion
        .effects
        .iter()
        .filter(|e| e.loss_change_points < -35.0)
        .map(|e| e.change.as_str())
        .collect();
    assert_eq!(
        cured,
        [
            "everything: tick(10ms)*64 → yield*64",
            "wait: tick(10ms) → yield",
            "receive buffer: as it is → 4 MiB",
            "senders: all → one, evenly at the same rate",
            "senders: all → one, Poisson at the same rate",
        ]
    );
    for tried in &conducted.trials {
        let d = tried.report.datagrams().expect("they are datagrams");
        assert_eq!(
            d.theory_loss_percent,
            Some(d.loss_percent),
            "{}",
            tried.report.label
        );
    }
    assert!(
        conclusion.answer.contains(
            "tick(10ms)*64 sent 3,136/s and lost 35.9 % of it. Of what is missing: 4,508 in the \
             receive buffer. That is where, not why. Supported: clients wake together and send in \
             bursts (an index of dispersion of 60.92 at 1 to 10 ms, where Poisson has 1; replayed, \
             the same bursts lose 35.9 %, spread evenly 0 %). Ruled out: that more comes"
        ),
        "{}",
        conclusion.answer
    );
}

#[test]
fn poisson_alone() {
    let name = "poisson_variance";
    let variance = &[Who::Sleeping, Who::Apart, Who::Replaying, Who::Poisson];
    check(
        "Poisson loses, even does not",
        name,
        losers(variance),
        "supported",
    );
    check("Poisson loses nothing", name, losers(CROWD), "ruled_out");
    let all = &[
        Who::Sleeping,
        Who::Apart,
        Who::Replaying,
        Who::Poisson,
        Who::Evenly,
    ];
    check("all lose", name, losers(all), "ruled_out");
    check(
        "all lose",
        "offered_beyond_capacity",
        losers(all),
        "supported",
    );
    check(
        "even does not",
        "offered_beyond_capacity",
        losers(variance),
        "ruled_out",
    );
    let uses = |cpu, waiting| {
        move |who| Made {
            cpu,
            waiting,
            ..losers(all)(who)
        }
    };
    check(
        "busy",
        "offered_beyond_capacity",
        uses(0.5, 0.45),
        "supported",
    );
    check(
        "time left",
        "offered_beyond_capacity",
        uses(0.5, 0.44),
        "ruled_out",
    );
    let works = |us| {
        move |who| Made {
            work: Nanos::from_micros(us),
            ..losers(CROWD)(who)
        }
    };
    check(
        "101 % of its time",
        "offered_beyond_capacity",
        works(101),
        "supported",
    );
    check(
        "all its time",
        "offered_beyond_capacity",
        works(100),
        "ruled_out",
    );
    let little = |who| Made {
        lost: match who {
            Who::Sleeping => 0.02,
            Who::Evenly | Who::Poisson => 0.006,
            _ => 0.0,
        },
        ..Made::default()
    };
    check("a third is left", name, little, "undecided");
    check(
        "a third is left",
        "offered_beyond_capacity",
        little,
        "undecided",
    );
}

#[test]
fn a_place_is_told_by_the_ledger() {
    let name = "receive_buffer";
    check("all there", name, losers(CROWD), "supported");
    let uncounted = |who| Made {
        is_counted: false,
        ..losers(CROWD)(who)
    };
    check("none there", name, uncounted, "ruled_out");
}

#[test]
fn a_pause_is_held_against_the_buffer() {
    let name = "receiver_pauses";
    // 100 datagrams at 10,000/s fill it in 10 ms.
    let pause = |ms, buffer| {
        move |who| Made {
            pause: Nanos::from_millis(ms),
            buffer,
            ..losers(CROWD)(who)
        }
    };
    check("11 ms", name, pause(11, Some(100)), "supported");
    check("10 ms", name, pause(10, Some(100)), "ruled_out");
    check("who knows", name, pause(11, None), "undecided");
}

#[test]
fn senders_drop_or_block() {
    let name = "sender_drops_or_blocks";
    let sends = |blocked, refused| {
        move |_: Who| Made {
            blocked,
            refused,
            ..Made::default()
        }
    };
    check("1 % waits", name, sends(0.0101, 0.0), "supported");
    check("1 % is refused", name, sends(0.0, 0.0101), "supported");
    check("0.5 % waits", name, sends(0.005, 0.0), "undecided");
    check("all free", name, sends(0.0, 0.0), "ruled_out");
}
