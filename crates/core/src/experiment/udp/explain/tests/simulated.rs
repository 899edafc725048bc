//! Clients and a service in virtual time.

use super::super::{ExplainSpec, UdpExplain};
use super::{asked, names};
use crate::experiment::conduct;
use crate::experiment::udp::AssessedUdpTrial;
use crate::experiment::udp::analysis::tests::{moments, served, spec};
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::spec::{ArrivalLaw, Share};
use knee_load::time::Nanos;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Clients and a service in virtual time. Datagrams go through a queue with room for 40 and take 20
/// µs of work each, or whatever a cell asks for.
fn simulated(spec: &UdpTrialSpec) -> AssessedUdpTrial {
    let starts = match &spec.wait {
        ClientWait::Tick(period) => {
            let clients = u64::from(spec.clients);
            let together = if spec.unsynchronised { 1 } else { clients };
            let moment =
                |k: u64| Nanos(2 * period.0 + k / together * together * 2 * period.0 / clients);
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
    AssessedUdpTrial::of(&served(spec.clone(), starts, work, buffer))
}

#[test]
fn clients_on_one_clock_overflow_a_simulated_queue() {
    let tick = ClientWait::Tick(Nanos::from_millis(10));
    let mut experiment =
        UdpExplain::new(ExplainSpec { second: spec(64, tick, Nanos::from_secs(1)), ..asked(&[]) });
    let result = conduct(&mut experiment, |spec| {
        Ok::<_, Infallible>(ControlFlow::Continue(simulated(spec)))
    });
    let conducted = result.unwrap_or_else(|never| match never {});
    let conclusion = conducted.conclusion;
    // Of 64 at once 40 find room in the buffer and one is served.
    assert_eq!(conclusion.laws[1].loss_percent, 100.0 * 23.0 / 64.0);
    assert_eq!(names(&conclusion.supported), ["receive_buffer", "synchronised_wakeups"]);
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
            "wake-ups: as they are → unsynchronised, by the same waits",
            "receive buffer: as it is → 4 MiB",
            "senders: all → one, evenly at the same rate",
            "senders: all → one, Poisson at the same rate",
        ]
    );
    for tried in &conducted.trials {
        let d = tried.report.datagrams().expect("they are datagrams");
        assert_eq!(d.theory_loss_percent, Some(d.loss_percent), "{}", tried.report.label);
    }
    assert!(
        conclusion.answer.contains(
            "tick(10ms)*64 sent 3,136/s and lost 35.9 % of it. Of what is missing: 4,508 in the \
             receive buffer. That is where, not why. The data support: clients wake together, and \
             their bursts overflow the buffer."
        ),
        "{}",
        conclusion.answer
    );
}
