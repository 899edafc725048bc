//! One `LatencyTrialSpec` in, one `LatencyTrial` out.

use super::control::LatencyControl;
use super::flow_threads::{FlowEnd, FlowRun, FlowThreadResult, FlowThreads};
use super::pinger::{Pinger, PingerControl, PingerResult};
use super::wire::{FlowSide, LatencySessionSpec};
use super::{merge, sockets};
use crate::control::{ControlClient, ServiceClock, random};
use crate::error::RunError;
use crate::experiment::latency::conductor::{ConductedRun, Conductor};
use crate::generator::{WorkerUse, generator_use};
use crate::kernel::counters::Counters;
use crate::kernel::host::HostTime;
use crate::kernel::limits;
use crate::sys::{clock, stream, udp};
use crate::threads;
use knee_load::experiment::latency::{
    FlowMeasured, LatencyServiceFacts, LatencyTrial, LatencyTrialSpec, ScenarioEnd,
};
use knee_load::measure::{Interval, IntervalWatcher};
use knee_load::time::Nanos;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

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
    limits::ensure_files(u64::from(spec.flows()) + OTHER_FILES)?;
    let mut control = LatencyControl::open(&spec.service, &spec.token, stop)?;
    let (ahead, round_trip_ns) = control.clock().map_err(|lost| control.client.lost(lost))?;
    let begin = begin(spec);
    let flows = control.begin(&begin, stop)?;
    let mut facts = control.facts.clone();
    let counters = Counters::now();
    let time = HostTime::now();
    let origin_ns = clock::monotonic_ns() + LEAD_NS + 2 * round_trip_ns;
    let service_ns = origin_ns.wrapping_add(ahead.ahead_ns);
    control.start(service_ns, service_ns.saturating_add(begin.limit.0), stop)?;
    let stage = PreparedRun {
        spec,
        session: begin.session,
        origin_ns,
        end_ns: origin_ns.saturating_add(begin.limit.0),
        ahead,
    };
    let played = stage.play(control, flows, observer, stop);
    let (mut conducted, pinged, carried) = played
        .map_err(|e| RunError::NotPermitted(format!("the flows could not be carried: {e}")))?;
    let kernel = Counters::now().moved_since(&counters);
    let steal_percent = HostTime::now().steal_percent_since(time);
    let generator = used(&pinged, &carried, conducted.elapsed, steal_percent);
    let service_cpu = conducted.record.as_ref().map(|r| r.cpu);
    let flows = merge::flows(
        spec,
        sides(carried),
        conducted.record.take(),
        &conducted.progress,
        conducted.elapsed,
    );
    fill(&mut conducted.intervals, spec, &flows);
    facts.clock_uncertainty_ns = uncertainty(&facts, ahead, pinged.control, spec);
    Ok(LatencyTrial {
        spec: spec.clone(),
        flows,
        tcp: pinged.tcp,
        udp: pinged.udp,
        intervals: conducted.intervals,
        elapsed: conducted.elapsed,
        ended: conducted.ended,
        service: facts,
        kernel,
        generator,
        service_cpu,
        interrupted: conducted.interrupted,
    })
}

fn begin(spec: &LatencyTrialSpec) -> LatencySessionSpec {
    let (limit, window) = match spec.end {
        ScenarioEnd::After(length) => (length, Nanos::ZERO),
        ScenarioEnd::Settled { settle, limit } => (limit, settle.window),
    };
    LatencySessionSpec {
        session: random(),
        up: spec.up,
        down: spec.down,
        sockets: spec.sockets.clone(),
        interval: spec.interval,
        window,
        limit,
        bytes_max: spec.bytes_max,
    }
}

/// A run whose flows are about to begin.
struct PreparedRun<'a> {
    spec: &'a LatencyTrialSpec,
    session: u64,
    origin_ns: u64,
    end_ns: u64,
    ahead: ServiceClock,
}

impl PreparedRun<'_> {
    /// Runs from the beginning of the flows to the service's record.
    fn play(
        &self,
        control: LatencyControl,
        flows: Vec<TcpStream>,
        observer: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> io::Result<(ConductedRun, PingerResult, Vec<FlowThreadResult>)> {
        let spec = self.spec;
        let times = (self.origin_ns, self.end_ns);
        let course = FlowRun::new(flows.len(), times, self.ahead.ahead_ns, spec.interval);
        let desk = PingerControl::new(self.end_ns)?;
        let (news, heard) = mpsc::channel();
        let udp = spec.probes.udp.then(|| self.probe_socket(control.client.address));
        let (stream, lines) = control.client.into_parts();
        let pinger = Pinger {
            desk: desk.clone(),
            events: news,
            stream,
            lines,
            udp: udp.transpose()?,
            session: self.session,
            origin_ns: self.origin_ns,
            ahead_ns: self.ahead.ahead_ns,
            probes: spec.probes,
        };
        let up = spec.up as usize;
        let ends = flows.into_iter().enumerate().map(|(index, stream)| FlowEnd {
            index,
            stream,
            sends: index < up,
            acts: Vec::new(),
        });
        let carriers = FlowThreads::start(course.clone(), ends.collect(), spec.engine.workers)?;
        let conductor = Conductor::new(spec, course, desk);
        thread::scope(|scope| {
            let pinger = threads::spawn(scope, "pinger", || pinger.run());
            let pinger = pinger.inspect_err(|_| carriers.end_at(0)).map_err(io::Error::other)?;
            let conducted = conductor.conduct(&heard, observer, stop);
            // No earlier: a thread that has not run since then would end its flows before their
            // time.
            carriers.end_at(self.origin_ns + conducted.elapsed.0);
            let carried = carriers.join()?;
            let pinged = pinger.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok((conducted, pinged, carried))
        })
    }

    fn probe_socket(&self, service: SocketAddr) -> io::Result<UdpSocket> {
        let socket = udp::connected(service)?;
        if let Some(dscp) = self.spec.sockets.dscp {
            stream::set_dscp(&socket, dscp)?;
        }
        Ok(socket)
    }
}

/// This end of each flow, in the flows' order. Their connections are closed without what waits to
/// be sent: both ends have ended.
fn sides(carried: Vec<FlowThreadResult>) -> Vec<FlowSide> {
    let mut ended: Vec<_> = carried.into_iter().flat_map(|c| c.flows).collect();
    ended.sort_by_key(|e| e.index);
    let side = |e: super::flow_threads::EndedFlow| {
        if let Some(flow) = &e.stream {
            let _ = stream::set_reset_on_close(flow);
        }
        e.side
    };
    ended.into_iter().map(side).collect()
}

/// Fills in what flows carried in each interval, as their receivers counted it.
fn fill(intervals: &mut [Interval], spec: &LatencyTrialSpec, flows: &[FlowMeasured]) {
    let (up, down) = flows.split_at(spec.up as usize);
    let sum = |flows: &[FlowMeasured], n: usize| {
        let bytes = |f: &FlowMeasured| f.by_interval.get(n).copied().unwrap_or(0);
        (!flows.is_empty()).then(|| flows.iter().map(bytes).sum())
    };
    for (n, interval) in intervals.iter_mut().enumerate() {
        interval.up_bytes = sum(up, n);
        interval.down_bytes = sum(down, n);
    }
}

fn used(
    pinged: &PingerResult,
    carried: &[FlowThreadResult],
    elapsed: Nanos,
    steal_percent: Option<f64>,
) -> knee_load::measure::GeneratorUse {
    let of = |used| WorkerUse { used, polled: Nanos::ZERO, over: elapsed };
    let threads = carried.iter().map(|c| c.used).chain([pinged.used]);
    let threads: Vec<WorkerUse> = threads.map(of).collect();
    let mut all = generator_use("epoll", &threads, steal_percent);
    all.workers = carried.len() as u32;
    all
}

/// Uncertainty of the service's clock over the whole trial, in nanoseconds.
fn uncertainty(
    facts: &LatencyServiceFacts,
    first: ServiceClock,
    control: Option<(TcpStream, super::wire::Lines)>,
    spec: &LatencyTrialSpec,
) -> u64 {
    if facts.same_host {
        return 0;
    }
    let again = control.and_then(|(stream, lines)| {
        let client = ControlClient::from_parts(stream, lines, &spec.service).ok()?;
        LatencyControl::resumed(client, facts.clone()).clock().ok()
    });
    first.uncertainty_until(again.map(|(second, _)| second))
}
