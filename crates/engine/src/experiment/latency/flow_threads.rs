//! A thread's loop over its flows, the same at both ends.

use super::flow_ends::{CHUNK_BYTES, FlowReceiver, FlowSender};
use super::flow_run::FlowRun;
use super::wire::FlowSide;
use crate::sys::clock::{self, ThreadUse};
use crate::sys::epoll::{Epoll, EpollEvent, flags};
use crate::sys::{stream, thread as sys_thread};
use crate::threads;
use knee_load::time::Nanos;
use std::io;
use std::net::TcpStream;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

/// Interval of looking whether the end has moved.
const GLANCE_NS: u64 = 20_000_000;

/// One flow's end, before the run.
#[derive(Debug)]
pub(crate) struct FlowEnd {
    /// Index in [`FlowRun::bytes`].
    pub(crate) index: usize,
    pub(crate) stream: TcpStream,
    /// Whether this end sends.
    pub(crate) sends: bool,
    /// Deliberate faults and their run times.
    pub(crate) faults: Vec<(Nanos, FlowFaultKind)>,
}

/// Kinds of deliberate faults of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFaultKind {
    /// The flow is reset.
    Reset,
    /// Nothing is sent or received over the flow for this time, counted from when the stall begins.
    /// On a stalled host it begins late, and is no shorter.
    Stall(Nanos),
}

/// A flow that has ended.
#[derive(Debug)]
pub(crate) struct EndedFlow {
    pub(crate) index: usize,
    pub(crate) side: FlowSide,
    /// To be closed once the other end has ended too; `None`: the flow was lost.
    pub(crate) stream: Option<TcpStream>,
}

/// Results of the threads of one end.
#[derive(Debug, Default)]
pub(crate) struct CarriedFlows {
    /// In the order of their indices.
    pub(crate) flows: Vec<EndedFlow>,
    /// Processor time of each thread from the beginning of the run to its end.
    pub(crate) used: Vec<ThreadUse>,
}

impl CarriedFlows {
    /// Lets the flows close without what waits to be sent.
    pub(crate) fn reset(&self) {
        for stream in self.flows.iter().filter_map(|flow| flow.stream.as_ref()) {
            let _ = stream::set_reset_on_close(stream);
        }
    }
}

/// The flows of one thread, and its processor time.
type FlowsCarried = io::Result<(Vec<EndedFlow>, ThreadUse)>;

/// The threads of one end.
#[derive(Debug)]
pub(crate) struct FlowThreads {
    pub(crate) flow_run: Arc<FlowRun>,
    threads: Vec<JoinHandle<FlowsCarried>>,
}

impl FlowThreads {
    /// Starts up to `workers` threads, among which `flows` are dealt out.
    ///
    /// # Errors
    /// The system refuses a thread, or what it needs.
    pub(crate) fn start(
        flow_run: Arc<FlowRun>,
        flows: Vec<FlowEnd>,
        workers: u32,
    ) -> io::Result<FlowThreads> {
        let count = (workers.max(1) as usize).min(flows.len());
        let mut shares: Vec<Vec<FlowEnd>> = (0..count).map(|_| Vec::new()).collect();
        for (n, flow) in flows.into_iter().enumerate() {
            shares[n % count].push(flow);
        }
        let begin = |share| FlowThread::new(flow_run.clone(), share);
        let begun: Vec<FlowThread> = shares.into_iter().map(begin).collect::<io::Result<_>>()?;
        let mut carriers = FlowThreads { flow_run, threads: Vec::new() };
        for flows in begun {
            let thread = thread::Builder::new().name("flows".to_owned());
            match thread.spawn(move || flows.run()) {
                Ok(thread) => carriers.threads.push(thread),
                Err(e) => {
                    carriers.end_at(0);
                    return Err(threads::error(&e));
                }
            }
        }
        Ok(carriers)
    }

    /// Ends at `end_ns` of this host's clock, or at once where that has passed.
    pub(crate) fn end_at(&self, end_ns: u64) {
        self.flow_run.end_ns.fetch_min(end_ns, Ordering::Relaxed);
    }

    /// Whether all threads have come to their end.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().all(|t| t.is_finished())
    }

    /// Waits for the threads and returns their results.
    ///
    /// # Errors
    /// Out of descriptors or memory at the start.
    pub(crate) fn join(self) -> io::Result<CarriedFlows> {
        let mut carried = CarriedFlows::default();
        for thread in self.threads {
            let (flows, used) = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            carried.flows.extend(flows);
            carried.used.push(used);
        }
        carried.flows.sort_by_key(|flow| flow.index);
        Ok(carried)
    }
}

#[derive(Debug)]
enum FlowHalf {
    Sender(FlowSender),
    Receiver(FlowReceiver),
}

impl FlowHalf {
    fn stream(&self) -> &TcpStream {
        match self {
            FlowHalf::Sender(s) => &s.stream,
            FlowHalf::Receiver(r) => &r.stream,
        }
    }

    fn waits_for(&self) -> u32 {
        match self {
            FlowHalf::Sender(_) => flags::WRITE,
            FlowHalf::Receiver(_) => flags::READ,
        }
    }

    fn finish(self, ended: Nanos, lost: Option<String>) -> (FlowSide, TcpStream) {
        match self {
            FlowHalf::Sender(sender) => {
                let (side, stream) = sender.finish(ended, lost);
                (FlowSide::Sent(side), stream)
            }
            FlowHalf::Receiver(receiver) => {
                let (side, stream) = receiver.finish(ended, lost);
                (FlowSide::Received(side), stream)
            }
        }
    }
}

/// A thread's state.
struct FlowThread {
    flow_run: Arc<FlowRun>,
    epoll: Epoll,
    /// By token; `None`: the flow has ended.
    halves: Vec<Option<(usize, FlowHalf)>>,
    /// Faults still to come with their tokens, the earliest last; `None`: the end of a stall.
    faults: Vec<(Nanos, usize, Option<FlowFaultKind>)>,
    payload: Vec<u8>,
    /// Bytes received by this thread.
    received: u64,
    ended: Vec<EndedFlow>,
}

impl FlowThread {
    fn new(flow_run: Arc<FlowRun>, flows: Vec<FlowEnd>) -> io::Result<FlowThread> {
        let epoll = Epoll::new()?;
        let mut faults = Vec::new();
        let mut halves = Vec::new();
        for (token, flow) in flows.into_iter().enumerate() {
            let half = if flow.sends {
                FlowHalf::Sender(FlowSender::new(flow.stream))
            } else {
                FlowHalf::Receiver(FlowReceiver::new(flow.stream))
            };
            epoll.add(half.stream(), token as u64, half.waits_for())?;
            halves.push(Some((flow.index, half)));
            faults.extend(flow.faults.iter().map(|&(at, fault)| (at, token, Some(fault))));
        }
        faults.sort_by_key(|&(at, ..)| std::cmp::Reverse(at));
        Ok(FlowThread {
            flow_run,
            epoll,
            halves,
            faults,
            payload: vec![0x6b; CHUNK_BYTES],
            received: 0,
            ended: Vec::new(),
        })
    }

    /// Returns the flows, and the thread's processor time from the beginning of the run to its end.
    fn run(mut self) -> io::Result<(Vec<EndedFlow>, ThreadUse)> {
        // Without it a nap is 50 µs longer, as the kernel batches timers.
        let _ = sys_thread::set_timer_slack_ns(1);
        self.await_begin();
        let used = ThreadUse::now();
        let mut events = [EpollEvent::EMPTY; 64];
        let mut sample_at = Nanos::ZERO;
        let mut now_ns = clock::monotonic_ns();
        let mut nap = ReceiveNap::new(now_ns);
        // Where the end comes to be known late, what came until then counts, and so does the time.
        let mut ended_ns = now_ns;
        loop {
            let end_ns = self.flow_run.end_ns.load(Ordering::Relaxed);
            if now_ns >= end_ns {
                ended_ns = ended_ns.max(end_ns);
                break;
            }
            let now = self.flow_run.since(now_ns);
            if now >= sample_at {
                self.sample(now);
                sample_at = now + self.flow_run.interval;
            }
            self.make_faults(now);
            let next_fault = self.faults.last().map_or(Nanos::MAX, |fault| fault.0);
            let next = sample_at.min(next_fault) - now;
            let patience = next.min(Nanos(GLANCE_NS.min(end_ns - now_ns)));
            for event in self.epoll.wait(&mut events, Some(patience))? {
                self.pass(event.token() as usize);
            }
            now_ns = clock::monotonic_ns();
            ended_ns = now_ns;
            if let Some(length) = nap.after(self.received, now_ns) {
                clock::sleep_for(length.0);
                now_ns += length.0;
            }
        }
        let ended = self.flow_run.since(ended_ns);
        let used = ThreadUse::now().since(used);
        for token in 0..self.halves.len() {
            self.finish(token, ended, None);
        }
        Ok((self.ended, used))
    }

    /// Waits for the begin of the run, or for an end that comes before it.
    fn await_begin(&self) {
        let begin_ns = self.flow_run.origin_ns;
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= begin_ns.min(self.flow_run.end_ns.load(Ordering::Relaxed)) {
                return;
            }
            clock::sleep_until(begin_ns.min(now_ns + GLANCE_NS));
        }
    }

    fn pass(&mut self, token: usize) {
        let Some((index, half)) = &mut self.halves[token] else {
            return;
        };
        let passed = match half {
            FlowHalf::Sender(sender) => sender.pass(&self.flow_run, &self.payload),
            FlowHalf::Receiver(receiver) => receiver.pass(&self.flow_run),
        };
        match passed {
            Ok(bytes) => {
                let so_far = &self.flow_run.bytes[*index];
                if matches!(half, FlowHalf::Receiver(_)) {
                    self.received += bytes - so_far.load(Ordering::Relaxed);
                }
                so_far.store(bytes, Ordering::Relaxed);
            }
            // Past the end it is no loss: the peer may have closed the flow.
            Err(why) => {
                let at_ns = clock::monotonic_ns();
                if at_ns < self.flow_run.end_ns.load(Ordering::Relaxed) {
                    self.finish(token, self.flow_run.since(at_ns), Some(why));
                }
            }
        }
    }

    fn sample(&mut self, now: Nanos) {
        for (_, half) in self.halves.iter_mut().flatten() {
            if let FlowHalf::Sender(sender) = half {
                sender.sample(now);
            }
        }
    }

    /// Makes the faults that are due.
    fn make_faults(&mut self, now: Nanos) {
        while let Some((_, token, fault)) = self.faults.pop_if(|fault| fault.0 <= now) {
            let Some((_, half)) = &self.halves[token] else {
                continue;
            };
            let stream = half.stream();
            match fault {
                Some(FlowFaultKind::Reset) => {
                    // Closing it is what resets it.
                    let _ = stream::set_reset_on_close(stream);
                    self.finish(token, now, Some("reset on purpose".to_owned()));
                }
                Some(FlowFaultKind::Stall(length)) => {
                    let _ = self.epoll.modify(stream, token as u64, 0);
                    let until = self.flow_run.since(clock::monotonic_ns()) + length;
                    let later = self.faults.partition_point(|fault| fault.0 > until);
                    self.faults.insert(later, (until, token, None));
                }
                None => {
                    let _ = self.epoll.modify(stream, token as u64, half.waits_for());
                }
            }
        }
    }

    /// Ends a flow. One that is lost is closed.
    fn finish(&mut self, token: usize, ended: Nanos, lost: Option<String>) {
        let Some((index, half)) = self.halves[token].take() else {
            return;
        };
        let is_lost = lost.is_some();
        self.flow_run.lost[index].store(is_lost, Ordering::Relaxed);
        let (side, stream) = half.finish(ended, lost);
        self.ended.push(EndedFlow { index, side, stream: (!is_lost).then_some(stream) });
    }
}

/// Bytes per nanosecond (16 Gbit/s) below which the receiver takes no nap. Waking up is cheap
/// enough then, and nothing that goes through a cable gains by it.
const RATE_MIN: f64 = 2.0;

/// Bytes that may come during a nap: little beside the receive buffer of a fast flow.
const BYTES: f64 = 384.0 * 1024.0;

/// Longest nap.
const NAP_MAX: Nanos = Nanos::from_micros(20);

/// Naps between the passes of a thread whose flows come in at tens of gigabits per second.
///
/// A receiver that discards what comes is faster than the sender, who copies it in. So it sleeps
/// after each segment or two, and the sender has to wake it. On two cores of a virtual machine that
/// cost a third of the throughput of a loopback flow. It also took as much processor time again. A
/// thread that naps is not waiting in epoll, so that the sender need not wake it. It adds up to 20
/// µs to the latency inside a flow of such a rate, and nothing to others.
#[derive(Debug)]
struct ReceiveNap {
    bytes: u64,
    at_ns: u64,
}

impl ReceiveNap {
    /// Begins at `now_ns`.
    pub(super) fn new(now_ns: u64) -> ReceiveNap {
        ReceiveNap { bytes: 0, at_ns: now_ns }
    }

    /// Length of a nap, where `bytes` have come by `now_ns` in all; `None`: no nap.
    pub(super) fn after(&mut self, bytes: u64, now_ns: u64) -> Option<Nanos> {
        let more = (bytes - self.bytes) as f64;
        let time_ns = now_ns.saturating_sub(self.at_ns).max(1) as f64;
        (self.bytes, self.at_ns) = (bytes, now_ns);
        let rate = more / time_ns;
        (rate > RATE_MIN).then(|| Nanos((BYTES / rate) as u64).min(NAP_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_begins_in_an_hour_can_be_ended_before() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let begin_ns = clock::monotonic_ns() + 3_600_000_000_000;
        let end_ns = begin_ns + 1_000_000_000;
        let flow_run = FlowRun::new(1, begin_ns, end_ns, 0, Nanos::from_millis(10));
        let flow = FlowEnd { index: 0, stream, sends: false, faults: Vec::new() };
        let threads = FlowThreads::start(flow_run, vec![flow], 1).unwrap();
        threads.end_at(0);
        assert_eq!(threads.join().unwrap().flows.len(), 1);
    }

    #[test]
    fn only_fast_flows_have_naps_and_those_are_short() {
        let mut nap = ReceiveNap::new(1_000);
        assert_eq!(nap.after(1_000, 2_000), None);
        assert_eq!(nap.after(1_000, 2_000), None);
        assert_eq!(nap.after(4_000, 3_000), Some(NAP_MAX));
        let short = nap.after(4_000 + 40_000_000, 1_003_000).unwrap();
        assert!(short < NAP_MAX && short > Nanos::from_micros(5), "{short}");
    }
}
