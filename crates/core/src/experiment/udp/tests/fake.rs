//! Clients and a service of known behaviour in the place of the engine.

use crate::consistency::CheckedReport;
use crate::experiment::udp::AssessedUdpTrial;
use crate::experiment::udp::analysis::tests::{blank, spec};
use crate::experiment::udp::report::UdpConclusion;
use crate::experiment::{Conducted, Experiment, conduct};
use crate::report::contradictions::contradictions;
use crate::trial::report::TrialReport;
use knee_load::experiment::udp::{ClientWait, ServiceFacts, UdpReceived, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::time::Nanos;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// How one trial goes.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiment::udp) struct TrialBehaviour {
    /// Datagrams sent per second, unless a schedule says.
    pub sent_per_s: f64,
    /// The share of them that is lost.
    pub lost: f64,
    /// Whether the service's socket counts them.
    pub is_counted: bool,
    /// The share of the time in which the service waits for its processor.
    pub waiting: f64,
    /// How often it is preempted per second.
    pub preempted: u64,
    /// How often it is given a processor per second; 0: not told.
    pub turns: u64,
    /// Its longest pause.
    pub pause: Nanos,
    /// How many datagrams its buffer holds.
    pub buffer: Option<u64>,
    /// The share of a processor that it uses; 0: not told.
    pub cpu: f64,
    /// Its work per datagram.
    pub work: Nanos,
    /// Whether senders with a schedule do not come to half of it.
    pub falls_behind: bool,
    /// The share of sends that had to wait.
    pub blocked: f64,
    /// The share of sends that were refused.
    pub refused: f64,
}

impl Default for TrialBehaviour {
    fn default() -> TrialBehaviour {
        TrialBehaviour {
            sent_per_s: 10_000.0,
            lost: 0.0,
            is_counted: true,
            waiting: 0.0,
            preempted: 0,
            turns: 0,
            pause: Nanos::from_millis(1),
            buffer: Some(100),
            cpu: 0.0,
            work: Nanos::ZERO,
            falls_behind: false,
            blocked: 0.0,
            refused: 0.0,
        }
    }
}

/// A trial that went so.
pub(in crate::experiment::udp) fn tried(
    spec: &UdpTrialSpec,
    made: TrialBehaviour,
) -> AssessedUdpTrial {
    let mut trial = blank(spec.clone());
    let length_s = spec.duration.as_secs_f64();
    let per_s = match &spec.wait {
        ClientWait::Schedule { rate, .. } => rate.per_s(),
        _ => made.sent_per_s,
    };
    let intended = (per_s * length_s).round() as u64;
    let share = |share: f64, of: u64| (share * of as f64).round() as u64;
    let refused = share(made.refused, intended);
    let is_scheduled = matches!(spec.wait, ClientWait::Schedule { .. });
    let behind = if made.falls_behind && is_scheduled { intended / 2 } else { 0 };
    let sent = intended - refused.max(behind);
    trial.sent.not_attempted = behind.saturating_sub(refused);
    let lost = share(made.lost, sent);
    trial.sent.intended = intended;
    trial.sent.sent = sent;
    trial.sent.send_errors = [("ENOBUFS".to_owned(), refused)].into();
    trial.sent.blocked = share(made.blocked, sent);
    if !is_scheduled {
        let moment = |k: u64| Nanos(k * (1e9 / per_s) as u64);
        trial.sent.starts = (0..sent).map(moment).collect();
    }
    trial.received = Some(UdpReceived {
        received: sent - lost,
        socket_drops: if made.is_counted { lost } else { 0 },
        pause_ns_max: made.pause.0,
        preempted: share(length_s, made.preempted),
        scheduled: share(length_s, made.turns),
        cpu: Nanos::from_secs_f64(made.cpu * length_s),
        kept_waiting: Nanos::from_secs_f64(made.waiting * length_s),
        ..UdpReceived::default()
    });
    trial.service = ServiceFacts {
        buffer_datagrams: made.buffer,
        work: Some(Law::Fixed(made.work)),
        ..trial.service
    };
    AssessedUdpTrial::of(&trial)
}

/// An experiment from beginning to end in such a world.
pub(in crate::experiment::udp) fn run<X>(
    experiment: &mut X,
    world: impl Fn(&UdpTrialSpec) -> TrialBehaviour,
) -> (Conducted<AssessedUdpTrial, UdpConclusion>, UdpConclusion)
where
    X: Experiment<Spec = UdpTrialSpec, Trial = AssessedUdpTrial, Conclusion = UdpConclusion>,
{
    let result = conduct(experiment, |spec: &UdpTrialSpec| {
        Ok::<_, Infallible>(ControlFlow::Continue(tried(spec, world(spec))))
    });
    let conducted = result.unwrap_or_else(|never| match never {});
    let conclusion = conducted.conclusion.clone();
    let trials: Vec<TrialReport> = conducted.trials.iter().map(|t| t.report.clone()).collect();
    let report = CheckedReport {
        verdict: conducted.verdict,
        trials: &trials,
        findings: &conducted.findings,
    };
    assert_eq!(contradictions(report, &conclusion), [""; 0]);
    (conducted, conclusion)
}

/// Clients that give up the processor.
pub(in crate::experiment::udp) fn yields(clients: u32) -> UdpTrialSpec {
    spec(clients, ClientWait::Yield, Nanos::from_secs(1))
}

/// Clients that sleep exponentially with this mean.
pub(in crate::experiment::udp) fn sleeps(clients: u32, mean_us: u64) -> UdpTrialSpec {
    let wait = ClientWait::Sleep(Law::Exp(Nanos::from_micros(mean_us)));
    spec(clients, wait, Nanos::from_secs(1))
}
