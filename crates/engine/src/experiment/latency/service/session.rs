//! One client's session: its flows, from their joining to their record.

use super::{FlowFault, FlowFaultKind};
use crate::experiment::latency::flow_threads::{
    FlowAction, FlowEnd, FlowRun, FlowThreadResult, FlowThreads,
};
use crate::experiment::latency::sockets;
use crate::experiment::latency::wire::{
    FlowSide, LatencyReply, LatencyServiceRecord, LatencySessionSpec,
};
use crate::sys::clock::{self, ThreadUse};
use crate::sys::stream;
use knee_load::measure::Direction;
use knee_load::time::Nanos;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A session of one client.
pub(super) struct LatencySession {
    pub(super) begin: LatencySessionSpec,
    /// Address of its client.
    pub(super) peer: IpAddr,
    /// The uploads first; `None`: has not joined.
    flows: Vec<Option<TcpStream>>,
    running: Option<RunningFlows>,
}

struct RunningFlows {
    carriers: Option<FlowThreads>,
    course: Arc<FlowRun>,
    /// Processor time of this thread at the beginning.
    used: ThreadUse,
    /// Run time at which progress of uploads is sent next.
    due: Nanos,
    /// Whether the record was asked for.
    is_ending: bool,
    /// Whether the service has ended it itself.
    is_over: bool,
}

impl LatencySession {
    /// A session whose flows are still to join.
    pub(super) fn new(begin: LatencySessionSpec, peer: IpAddr) -> LatencySession {
        let count = (begin.up + begin.down) as usize;
        LatencySession { begin, peer, flows: (0..count).map(|_| None).collect(), running: None }
    }

    /// Flows that are still to join.
    pub(super) fn missing(&self) -> usize {
        self.flows.iter().filter(|f| f.is_none()).count()
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// There is no such flow to join, or its socket cannot be set up.
    pub(super) fn join(
        &mut self,
        direction: Direction,
        number: u32,
        stream: TcpStream,
    ) -> Result<(), String> {
        let place = place(&self.begin, direction, number);
        let free = place.and_then(|place| self.flows.get_mut(place));
        let Some(free) = free.filter(|f| f.is_none()) else {
            return Err("there is no such flow to join".to_owned());
        };
        if self.running.is_some() {
            return Err("the flows have begun already".to_owned());
        }
        sockets::set_up(&stream, &self.begin.sockets).map_err(|e| e.to_string())?;
        *free = Some(stream);
        Ok(())
    }

    /// Starts the flows.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start(
        &mut self,
        origin_ns: u64,
        end_ns: u64,
        workers: u32,
        faults: &[FlowFault],
    ) -> io::Result<()> {
        let limit_ns = origin_ns.saturating_add(self.begin.limit.0);
        let times = (origin_ns, end_ns.min(limit_ns));
        let course = FlowRun::new(self.flows.len(), times, 0, self.begin.interval);
        let up = self.begin.up as usize;
        let joined = self.flows.iter_mut().enumerate();
        let mut ends: Vec<FlowEnd> = joined
            .filter_map(|(index, stream)| {
                Some(FlowEnd {
                    index,
                    stream: stream.take()?,
                    sends: index >= up,
                    acts: Vec::new(),
                })
            })
            .collect();
        for fault in faults {
            let place = place(&self.begin, fault.direction, fault.number);
            let Some(end) = place.and_then(|place| ends.get_mut(place)) else {
                continue;
            };
            let act = match fault.kind {
                FlowFaultKind::Reset => FlowAction::Reset,
                FlowFaultKind::Stall(length) => FlowAction::Pause(length),
            };
            end.acts.push((fault.at, act));
        }
        let carriers = FlowThreads::start(course.clone(), ends, workers)?;
        self.running = Some(RunningFlows {
            carriers: Some(carriers),
            course,
            used: ThreadUse::now(),
            due: self.next_due(Nanos::ZERO),
            is_ending: false,
            is_over: false,
        });
        Ok(())
    }

    /// First end of an interval or a window after `at`.
    fn next_due(&self, at: Nanos) -> Nanos {
        let after = |length: Nanos| match length.0 {
            0 => Nanos::MAX,
            ns => Nanos(ns.saturating_mul(at.0 / ns + 1)),
        };
        match self.begin.up {
            0 => Nanos::MAX,
            _ => after(self.begin.interval).min(after(self.begin.window)),
        }
    }

    /// Time until there is something to do.
    pub(super) fn patience(&self, now_ns: u64) -> Nanos {
        match &self.running {
            // The threads end shortly after the end.
            Some(running) if running.is_ending => Nanos::from_millis(1),
            Some(running) if running.due < Nanos::MAX => running.due - running.course.since(now_ns),
            _ => Nanos::MAX,
        }
    }

    /// The next message that is due.
    pub(super) fn next_message(
        &mut self,
        now_ns: u64,
        bytes_max: Option<u64>,
    ) -> Option<LatencyReply> {
        let up = self.begin.up as usize;
        let running = self.running.as_mut()?;
        let now = running.course.since(now_ns);
        let cap = bytes_max.filter(|&max| running.course.carried_in_all() >= max);
        if let Some(max) = cap.filter(|_| !running.is_over) {
            running.is_over = true;
            running.course.end_ns.fetch_min(now_ns, Ordering::Relaxed);
            let reason = format!("the service permits no more than {max} bytes a session");
            return Some(LatencyReply::Over { reason });
        }
        let end = running.course.since(running.course.end_ns.load(Ordering::Relaxed));
        let at = running.due;
        if at > now || at > end {
            return None;
        }
        let bytes = running.course.carried(0..up);
        let next = self.next_due(at);
        if let Some(running) = &mut self.running {
            running.due = next;
        }
        Some(LatencyReply::Progress { at, bytes })
    }

    /// Ends the flows at `at_ns` of this host's clock.
    pub(super) fn end(&mut self, at_ns: u64) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.is_ending = true;
        running.course.end_ns.fetch_min(at_ns, Ordering::Relaxed);
    }

    /// The record and the threads' results, once it was asked for and all flows have ended.
    pub(super) fn record(&mut self) -> Option<(LatencyServiceRecord, Vec<FlowThreadResult>)> {
        let running = self.running.as_mut().filter(|r| r.is_ending)?;
        let carriers = running.carriers.take_if(|c| c.has_ended())?;
        let carried = carriers.join().unwrap_or_default();
        let mut record = LatencyServiceRecord::default();
        let used = ThreadUse::now().since(running.used);
        let used = carried.iter().map(|c| c.used).chain([used]);
        record.cpu = Nanos(used.map(|u| (u.user + u.system).0).sum());
        let mut sides: Vec<(usize, FlowSide)> = carried
            .iter()
            .flat_map(|c| c.flows.iter().map(|f| (f.index, f.side.clone())))
            .collect();
        sides.sort_by_key(|s| s.0);
        for (_, side) in sides {
            match side {
                FlowSide::Received(side) => record.up.push(side),
                FlowSide::Sent(side) => record.down.push(side),
            }
        }
        Some((record, carried))
    }

    /// Ends the session at any stage, and drops what waits to be sent.
    pub(super) fn abandon(mut self) -> Vec<FlowThreadResult> {
        self.end(clock::monotonic_ns());
        let carriers = self.running.and_then(|r| r.carriers);
        let carried = carriers.map(|c| c.join().unwrap_or_default());
        let carried = carried.unwrap_or_default();
        reset(&carried);
        carried
    }
}

/// Lets flows close without what waits to be sent.
pub(super) fn reset(carried: &[FlowThreadResult]) {
    let flows = carried.iter().flat_map(|c| &c.flows);
    for stream in flows.filter_map(|f| f.stream.as_ref()) {
        let _ = stream::set_reset_on_close(stream);
    }
}

/// A flow's place: the uploads come first.
fn place(begin: &LatencySessionSpec, direction: Direction, number: u32) -> Option<usize> {
    match direction {
        Direction::Up if number < begin.up => Some(number as usize),
        Direction::Down if number < begin.down => Some((begin.up + number) as usize),
        _ => None,
    }
}
