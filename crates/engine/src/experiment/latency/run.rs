//! One `LatencyTrialSpec` in, one `LatencyTrial` out: what the two ends of each flow measured is
//! merged.

use super::control::LatencyControl;
use super::flow_run::FlowRun;
use super::flow_threads::{FlowEnd, FlowThreads};
use super::pinger::{Pinger, PingerControl};
use super::sockets;
use super::wire::{FlowSide, LatencyServiceRecord, LatencySessionSpec, ReceivedSide, SentSide};
use crate::control::random;
use crate::error::RunError;
use crate::experiment::latency::conductor::{Conductor, UploadProgress};
use crate::generator::{WorkerUse, generator_use};
use crate::kernel::counters::Counters;
use crate::kernel::host::{self, HostTime};
use crate::sys::{clock, stream, udp};
use crate::threads;
use knee_load::experiment::latency::{
    FlowLost, FlowMeasured, LatencyServiceFacts, LatencyTrial, LatencyTrialSpec, ScenarioEnd,
};
use knee_load::measure::{Direction, IntervalWatcher};
use knee_load::time::Nanos;
use std::net::{SocketAddr, UdpSocket};
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::{io, thread};

/// Descriptors beside those of the flows.
const OTHER_FILES: u64 = 32;

/// Time left beside the round trip of start and its answer.
const LEAD_NS: u64 = 10_000_000;

/// Connects to the service and returns its properties, so that one that cannot be used is found
/// before any flow begins.
///
/// # Errors
/// [`RunError::Unreachable`]: nothing answers, no knee service, a wrong token, or busy.
pub fn preflight(service: &str, token: &str) -> Result<LatencyServiceFacts, RunError> {
    let mut control = LatencyControl::open(service, token, &AtomicBool::new(false))?;
    let (clock, _) = control.clock().map_err(|lost| control.client.lost(lost))?;
    let mut facts = control.facts;
    facts.clock_uncertainty_ns = clock.uncertainty_ns;
    Ok(facts)
}

/// Runs one scenario. Setting `stop` ends it early with what was measured; the trial is then marked
/// interrupted. A service that vanishes ends it early too, and the trial says so; so does one that
/// has said nothing for 10 s. `observer` sees each interval as it ends, on this thread: with what
/// the service has told of uploads by then.
///
/// # Errors
/// See [`RunError`]: only what is known before the flows begin is one.
pub fn run(
    spec: &LatencyTrialSpec,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> Result<LatencyTrial, RunError> {
    let here = |why: String| RunError::NotPermitted(format!("on this host {why}"));
    sockets::check(&spec.sockets).map_err(here)?;
    host::ensure_files(u64::from(spec.flows()) + OTHER_FILES)?;
    let mut control = LatencyControl::open(&spec.service, &spec.token, stop)?;
    let (ahead, round_trip_ns) = control.clock().map_err(|lost| control.client.lost(lost))?;
    let (limit, window) = match spec.end {
        ScenarioEnd::After(length) => (length, Nanos::ZERO),
        ScenarioEnd::Settled { settle, limit } => (limit, settle.window),
    };
    let begin = LatencySessionSpec {
        session: random(),
        up: spec.up,
        down: spec.down,
        sockets: spec.sockets.clone(),
        interval: spec.interval,
        window,
        limit,
        bytes_max: spec.bytes_max,
    };
    let flows = control.begin(&begin, stop)?;
    let mut facts = control.facts.clone();
    let counters = Counters::now();
    let time = HostTime::now();
    let origin_ns = clock::monotonic_ns() + LEAD_NS + 2 * round_trip_ns;
    let end_ns = origin_ns.saturating_add(limit.0);
    let service_ns = origin_ns.wrapping_add(ahead.ahead_ns);
    control.start(service_ns, service_ns.saturating_add(limit.0), stop)?;

    let failed =
        |e: io::Error| RunError::NotPermitted(format!("the flows could not be carried: {e}"));
    let flow_run = FlowRun::new(flows.len(), origin_ns, end_ns, ahead.ahead_ns, spec.interval);
    let pinger_control = PingerControl::new(end_ns).map_err(failed)?;
    let udp = spec.probes.udp.then(|| probe_socket(spec, control.client.address));
    let (events, heard) = mpsc::channel();
    let pinger = Pinger {
        pinger_control: pinger_control.clone(),
        events,
        client: control.client,
        udp: udp.transpose().map_err(failed)?,
        session: begin.session,
        origin_ns,
        ahead_ns: ahead.ahead_ns,
        probes: spec.probes,
    };
    let ends = flows.into_iter().enumerate().map(|(index, stream)| FlowEnd {
        index,
        stream,
        sends: index < spec.up as usize,
        faults: Vec::new(),
    });
    let carriers = FlowThreads::start(flow_run.clone(), ends.collect(), spec.engine.workers)
        .map_err(failed)?;
    let conductor = Conductor::new(spec, flow_run, pinger_control);
    let (mut conducted, pinged, carried) = thread::scope(|scope| -> io::Result<_> {
        let pinger = threads::spawn(scope, "pinger", || pinger.run());
        let pinger = pinger.inspect_err(|_| carriers.end_at(0)).map_err(io::Error::other)?;
        let conducted = conductor.conduct(&heard, observer, stop);
        // No earlier: a thread that has not run since then would end its flows before their time.
        carriers.end_at(origin_ns + conducted.elapsed.0);
        let carried = carriers.join()?;
        let pinged = pinger.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok((conducted, pinged, carried))
    })
    .map_err(failed)?;

    let kernel = Counters::now().moved_since(&counters);
    let steal_percent = HostTime::now().steal_percent_since(time);
    let used = carried.used.iter().copied().chain([pinged.used]);
    let costs: Vec<WorkerUse> =
        used.map(|used| WorkerUse { used, polled: Nanos::ZERO, over: conducted.elapsed }).collect();
    let mut generator = generator_use("epoll", &costs, steal_percent);
    generator.workers = carried.used.len() as u32;
    // Both ends have ended.
    carried.reset();
    let service_cpu = conducted.record.as_ref().map(|r| r.cpu);
    let flows = merged_flows(
        spec,
        carried.flows.into_iter().map(|flow| flow.side).collect(),
        conducted.record.take(),
        &conducted.progress,
        conducted.elapsed,
    );
    // Uncertainty over the whole trial: the clock is read again where it is not ours.
    facts.clock_uncertainty_ns = if facts.same_host {
        0
    } else {
        let second = pinged.control.and_then(|client| {
            client.stream.set_nonblocking(false).ok()?;
            LatencyControl::resumed(client, facts.clone()).clock().ok()
        });
        ahead.uncertainty_until(second.map(|(clock, _)| clock))
    };
    Ok(LatencyTrial {
        spec: spec.clone(),
        flows,
        tcp: pinged.tcp,
        udp: pinged.udp,
        elapsed: conducted.elapsed,
        ended: conducted.ended,
        service: facts,
        kernel,
        generator,
        service_cpu,
        interrupted: conducted.interrupted,
    })
}

/// The socket of the UDP probes.
fn probe_socket(spec: &LatencyTrialSpec, service: SocketAddr) -> io::Result<UdpSocket> {
    let socket = udp::connected(service)?;
    if let Some(dscp) = spec.sockets.dscp {
        stream::set_dscp(&socket, dscp)?;
    }
    Ok(socket)
}

/// Merges both ends of all flows, the uploads first. `ours`: this end, in that order. `record`: the
/// other end; without it, `progress` has at least how much came and when.
fn merged_flows(
    spec: &LatencyTrialSpec,
    ours: Vec<FlowSide>,
    record: Option<LatencyServiceRecord>,
    progress: &[UploadProgress],
    elapsed: Nanos,
) -> Vec<FlowMeasured> {
    let has_record = record.is_some();
    let record = record.unwrap_or_default();
    let mut up = record.up.into_iter();
    let mut down = record.down.into_iter();
    let intervals = elapsed.0.div_ceil(spec.interval.0.max(1)) as usize;
    let mut flows = Vec::with_capacity(ours.len());
    for (place, side) in ours.into_iter().enumerate() {
        let mut flow = match side {
            FlowSide::Sent(sent) => {
                let pieces = || pieced(place, progress, spec.interval, elapsed);
                let received = up.next().unwrap_or_else(pieces);
                merge(Direction::Up, place as u32, sent, received, elapsed)
            }
            FlowSide::Received(received) => {
                let sent = down.next().unwrap_or_default();
                merge(Direction::Down, place as u32 - spec.up, sent, received, elapsed)
            }
        };
        flow.by_interval.resize(intervals, 0);
        flow.inside_max_by_interval.resize(intervals, Nanos::ZERO);
        if !has_record {
            flow.ended = flow.ended.min(elapsed);
        }
        // A receiver may see the end a little after the sender, and counts the gap until it does.
        flow.gap_at = flow.gap_at.min(flow.ended);
        flow.gap_max = flow.gap_max.min(flow.ended - flow.gap_at);
        flows.push(flow);
    }
    flows
}

fn merge(
    direction: Direction,
    number: u32,
    sent: SentSide,
    received: ReceivedSide,
    elapsed: Nanos,
) -> FlowMeasured {
    // The end that stops first closes, and the other end may see that as a reset.
    let lost = earlier(sent.lost, received.lost).filter(|lost| lost.at < elapsed);
    FlowMeasured {
        direction,
        number,
        begun: Nanos::ZERO,
        ended: lost.as_ref().map_or(received.ended, |l| l.at),
        received_bytes: received.received_bytes,
        gap_max: received.gap_max,
        gap_at: received.gap_at,
        by_interval: received.by_interval,
        inside: received.inside,
        inside_max_by_interval: received.inside_max_by_interval,
        retransmitted: sent.samples.last().map_or(0, |s| s.retransmitted),
        samples: sent.samples,
        congestion_control: sent.congestion_control,
        ecn: sent.ecn,
        lost,
    }
}

fn earlier(one: Option<FlowLost>, other: Option<FlowLost>) -> Option<FlowLost> {
    one.into_iter().chain(other).min_by_key(|lost| lost.at)
}

/// Reconstructs what the receiver of an upload measured from its progress. Gaps are known to a step
/// of that progress, and the latency inside is unknown.
fn pieced(
    place: usize,
    progress: &[UploadProgress],
    interval: Nanos,
    elapsed: Nanos,
) -> ReceivedSide {
    let mut side = ReceivedSide { ended: elapsed, ..ReceivedSide::default() };
    let mut moved_at = Nanos::ZERO;
    for (at, bytes) in progress.iter().filter(|(at, _)| *at <= elapsed) {
        let Some(&bytes) = bytes.get(place) else {
            continue;
        };
        let more = bytes.saturating_sub(side.received_bytes);
        if more > 0 {
            // It came in the step that ends at `at`, so in the interval before `at`.
            let slot = (at.0.saturating_sub(1) / interval.0.max(1)) as usize;
            if side.by_interval.len() <= slot {
                side.by_interval.resize(slot + 1, 0);
            }
            side.by_interval[slot] += more;
            side.received_bytes = bytes;
            side.note_gap(moved_at, *at);
            moved_at = *at;
        }
    }
    side.note_gap(moved_at, elapsed);
    side
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_tells_what_came_when_and_where_it_stopped() {
        let ms = Nanos::from_millis;
        let progress = [
            (ms(100), vec![0, 10]),
            (ms(200), vec![0, 30]),
            (ms(300), vec![0, 30]),
            (ms(900), vec![0, 99]),
        ];
        let side = pieced(1, &progress, ms(100), ms(400));
        assert_eq!(side.received_bytes, 30);
        assert_eq!(side.by_interval, [10, 20]);
        assert_eq!((side.gap_at, side.gap_max), (ms(200), ms(200)));
        let never = pieced(0, &progress, ms(100), ms(400));
        assert_eq!((never.received_bytes, never.gap_max), (0, ms(400)));
    }

    /// The side that learns of the end first closes. The other side does not count that as a loss.
    #[test]
    fn a_flow_that_ends_with_its_scenario_is_not_lost() {
        let merged = |at: u64| {
            let sent = SentSide {
                lost: Some(FlowLost { at: Nanos(at), why: "connection reset by peer".to_owned() }),
                ..SentSide::default()
            };
            merge(Direction::Up, 0, sent, ReceivedSide::default(), Nanos(600))
        };
        assert!(merged(599).lost.is_some());
        assert_eq!(merged(600).lost, None);
        assert_eq!(merged(601).lost, None);
    }

    #[test]
    fn the_first_to_notice_tells_why_a_flow_was_lost() {
        let lost = |at: u64, why: &str| {
            let at = Nanos(at);
            Some(FlowLost { at, why: why.to_owned() })
        };
        assert_eq!(earlier(lost(2, "b"), lost(1, "a")), lost(1, "a"));
        assert_eq!(earlier(None, lost(1, "a")), lost(1, "a"));
        assert_eq!(earlier(None, None), None);
    }
}
