//! Worlds in which one explanation holds, and the nearest in which it does not.

mod answer;
mod causes;
mod design;
mod processor;
mod receiving;
mod sending;
mod simulated;
mod time;

use super::{ExplainSpec, UdpExplain};
use crate::experiment::udp::report::UdpConclusion;
use crate::experiment::udp::tests::fake::{TrialBehaviour, run, sleeps, yields};
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::spec::ArrivalLaw;

fn asked(cpus: &[u32]) -> ExplainSpec {
    ExplainSpec {
        first: yields(64),
        second: sleeps(128, 200),
        repeats: 3,
        cpus: cpus.to_vec(),
        realtime: false,
        seed: 1,
        left_out: 0,
        cut: None,
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

fn explain(world: impl Fn(Who) -> TrialBehaviour) -> UdpConclusion {
    let mut experiment = UdpExplain::new(ExplainSpec { realtime: true, ..asked(&[0, 1]) });
    run(&mut experiment, |spec| world(who(spec))).1
}

/// A world in which those clients lose 2 % of what they send.
fn losers(of: &'static [Who]) -> impl Fn(Who) -> TrialBehaviour {
    move |who| TrialBehaviour {
        lost: if of.contains(&who) { 0.02 } else { 0.0 },
        ..TrialBehaviour::default()
    }
}

const CROWD: &[Who] = &[Who::Sleeping, Who::Apart];

/// Everybody that sleeps or replays.
const ALL: &[Who] =
    &[Who::Sleeping, Who::Apart, Who::RealTime, Who::Replaying, Who::ReplayingApart];

fn names(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split(':').next().unwrap_or("")).collect()
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

fn check(what: &str, name: &str, world: impl Fn(Who) -> TrialBehaviour, expected: &str) {
    assert_eq!(standing(&explain(world), name), expected, "{what}");
}

/// A service that waits for its processor while the crowd runs, in pauses of up to 1 ms.
fn kept(waiting: f64, preempted: u64, losing: &'static [Who]) -> impl Fn(Who) -> TrialBehaviour {
    move |who| TrialBehaviour {
        waiting: if who == Who::Sleeping { waiting } else { 0.0 },
        preempted: if who == Who::Sleeping { preempted } else { 0 },
        ..losers(losing)(who)
    }
}
