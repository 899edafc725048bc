//! A thread's loop over the flows that it carries, the same at both ends.

use super::nap::Nap;
use super::receiver::Receiver;
use super::sender::{CHUNK_BYTES, Sender};
use super::side::Side;
use crate::sys::clock::{self, ThreadUse};
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::stream;
use crate::sys::{thread as sys_thread, timer};
use crate::threads;
use knee_core::time::Nanos;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// How often a thread looks at whether the end has moved.
const GLANCE_NS: u64 = 20_000_000;

/// What the threads of one end share.
#[derive(Debug)]
pub(crate) struct Course {
    /// When the run began, on this host's clock.
    pub(crate) origin_ns: u64,
    /// When it ends, on this host's clock; it may move.
    pub(crate) end_ns: AtomicU64,
    /// The service's clock less this host's, modulo 2^64.
    pub(crate) ahead_ns: u64,
    /// Length of the intervals.
    pub(crate) interval: Nanos,
    /// What each flow of this end has carried so far: received, or taken by the socket.
    pub(crate) bytes: Vec<AtomicU64>,
    /// Which of them are lost.
    pub(crate) lost: Vec<AtomicBool>,
}

impl Course {
    /// Of `flows` flows that have carried nothing yet; see the fields.
    pub(crate) fn new(
        flows: usize,
        (origin_ns, end_ns): (u64, u64),
        ahead_ns: u64,
        interval: Nanos,
    ) -> Arc<Course> {
        Arc::new(Course {
            origin_ns,
            end_ns: AtomicU64::new(end_ns),
            ahead_ns,
            interval: interval.max(Nanos(1)),
            bytes: (0..flows).map(|_| AtomicU64::new(0)).collect(),
            lost: (0..flows).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// The moment `now_ns` of this host's clock, in run time.
    #[inline]
    pub(crate) fn since(&self, now_ns: u64) -> Nanos {
        Nanos(now_ns.saturating_sub(self.origin_ns))
    }

    /// What the flows in `range` have carried so far, each.
    pub(crate) fn carried(&self, range: std::ops::Range<usize>) -> Vec<u64> {
        let flows = self.bytes[range].iter();
        flows.map(|b| b.load(Ordering::Relaxed)).collect()
    }

    /// What all have.
    pub(crate) fn carried_in_all(&self) -> u64 {
        self.bytes.iter().map(|b| b.load(Ordering::Relaxed)).sum()
    }
}

/// One flow's end, before the run.
#[derive(Debug)]
pub(crate) struct FlowEnd {
    /// Its place in [`Course::bytes`].
    pub(crate) index: usize,
    pub(crate) stream: TcpStream,
    /// Whether this end sends.
    pub(crate) sends: bool,
    /// What is done to it on purpose, by when, in run time.
    pub(crate) acts: Vec<(Nanos, Act)>,
}

/// What is done to a flow on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It is reset.
    Reset,
    /// Nothing is sent or received for so long, from when it is done: later than it was due on a
    /// host that stood still, and no shorter.
    Pause(Nanos),
    /// It goes on after a pause.
    Resume,
}

/// What came of a flow at this end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) index: usize,
    pub(crate) side: Side,
    /// To be closed once the other end has ended too; `None`: lost, and closed.
    pub(crate) stream: Option<TcpStream>,
}

/// What a thread did.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) flows: Vec<Ended>,
    /// Its processor time from the beginning of the run to its end.
    pub(crate) used: ThreadUse,
}

/// The threads of one end.
#[derive(Debug)]
pub(crate) struct Carriers {
    pub(crate) course: Arc<Course>,
    threads: Vec<JoinHandle<io::Result<Carried>>>,
}

impl Carriers {
    /// Begins to carry `flows` in up to `workers` threads, in turn.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start(
        course: Arc<Course>,
        flows: Vec<FlowEnd>,
        workers: u32,
    ) -> io::Result<Carriers> {
        let count = (workers.max(1) as usize).min(flows.len());
        let mut shares: Vec<Vec<FlowEnd>> = (0..count).map(|_| Vec::new()).collect();
        for (n, flow) in flows.into_iter().enumerate() {
            shares[n % count].push(flow);
        }
        let mut carriers = Carriers {
            course,
            threads: Vec::new(),
        };
        for share in shares {
            let course = carriers.course.clone();
            let thread = thread::Builder::new().name("flows".to_owned());
            match thread.spawn(move || Carrier::new(course, share)?.run()) {
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
        self.course.end_ns.fetch_min(end_ns, Ordering::Relaxed);
    }

    /// Whether all threads have come to their end.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.iter().all(|t| t.is_finished())
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Out of descriptors or memory at the very start.
    pub(crate) fn join(self) -> io::Result<Vec<Carried>> {
        let join = |t: JoinHandle<_>| match t.join() {
            Ok(carried) => carried,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        self.threads.into_iter().map(join).collect()
    }
}

#[derive(Debug)]
enum Half {
    Sender(Sender),
    Receiver(Receiver),
}

impl Half {
    fn stream(&self) -> &TcpStream {
        match self {
            Half::Sender(s) => &s.stream,
            Half::Receiver(r) => &r.stream,
        }
    }

    fn waits_for(&self) -> u32 {
        match self {
            Half::Sender(_) => flags::WRITE,
            Half::Receiver(_) => flags::READ,
        }
    }

    fn finish(self, ended: Nanos, lost: Option<String>) -> (Side, TcpStream) {
        match self {
            Half::Sender(sender) => {
                let (side, stream) = sender.finish(ended, lost);
                (Side::Sent(side), stream)
            }
            Half::Receiver(receiver) => {
                let (side, stream) = receiver.finish(ended, lost);
                (Side::Received(side), stream)
            }
        }
    }
}

/// A thread's state.
struct Carrier {
    course: Arc<Course>,
    epoll: Epoll,
    /// By token; `None`: lost.
    halves: Vec<Option<(usize, Half)>>,
    /// What is to be done to which, the earliest last.
    acts: Vec<(Nanos, usize, Act)>,
    payload: Vec<u8>,
    /// What all receivers of this thread have taken.
    received: u64,
    ended: Vec<Ended>,
}

impl Carrier {
    fn new(course: Arc<Course>, flows: Vec<FlowEnd>) -> io::Result<Carrier> {
        let epoll = Epoll::new()?;
        let mut acts = Vec::new();
        let mut halves = Vec::new();
        for (token, flow) in flows.into_iter().enumerate() {
            let half = if flow.sends {
                Half::Sender(Sender::new(flow.stream))
            } else {
                Half::Receiver(Receiver::new(flow.stream))
            };
            epoll.add(half.stream(), token as u64, half.waits_for())?;
            halves.push(Some((flow.index, half)));
            acts.extend(flow.acts.iter().map(|&(at, act)| (at, token, act)));
        }
        acts.sort_by_key(|&(at, ..)| std::cmp::Reverse(at));
        Ok(Carrier {
            course,
            epoll,
            halves,
            acts,
            payload: vec![0x6b; CHUNK_BYTES],
            received: 0,
            ended: Vec::new(),
        })
    }

    fn run(mut self) -> io::Result<Carried> {
        // Otherwise a nap is 50 µs longer for the sake of the kernel's batching.
        let _ = sys_thread::set_timer_slack_ns(1);
        timer::sleep_until(self.course.origin_ns);
        let used = ThreadUse::now();
        let mut events = [Event::EMPTY; 64];
        let mut sample_at = Nanos::ZERO;
        let mut now_ns = clock::monotonic_ns();
        let mut nap = Nap::new(now_ns);
        // Where the end is told late, what came until then counts, and so does the time.
        let mut ended_ns = now_ns;
        loop {
            let end_ns = self.course.end_ns.load(Ordering::Relaxed);
            if now_ns >= end_ns {
                ended_ns = ended_ns.max(end_ns);
                break;
            }
            let now = self.course.since(now_ns);
            if now >= sample_at {
                self.sample(now);
                sample_at = now + self.course.interval;
            }
            self.act(now);
            let next_act = self.acts.last().map_or(Nanos::MAX, |a| a.0);
            let next = sample_at.min(next_act) - now;
            let patience = next.min(Nanos(GLANCE_NS.min(end_ns - now_ns)));
            for event in self.epoll.wait(&mut events, Some(patience))? {
                self.pass(event.token() as usize);
            }
            now_ns = clock::monotonic_ns();
            ended_ns = now_ns;
            if let Some(length) = nap.after(self.received, now_ns) {
                timer::sleep_for(length.0);
                now_ns += length.0;
            }
        }
        let ended = self.course.since(ended_ns);
        let used = ThreadUse::now().since(used);
        for token in 0..self.halves.len() {
            self.finish(token, ended, None);
        }
        Ok(Carried {
            flows: self.ended,
            used,
        })
    }

    fn pass(&mut self, token: usize) {
        let Some((index, half)) = &mut self.halves[token] else {
            return;
        };
        let passed = match half {
            Half::Sender(sender) => sender.pass(&self.course, &self.payload),
            Half::Receiver(receiver) => receiver.pass(&self.course),
        };
        match passed {
            Ok(bytes) => {
                let so_far = &self.course.bytes[*index];
                if matches!(half, Half::Receiver(_)) {
                    self.received += bytes - so_far.load(Ordering::Relaxed);
                }
                so_far.store(bytes, Ordering::Relaxed);
            }
            // Past the end it is no loss: the peer may be through with it already.
            Err(why) => {
                let at_ns = clock::monotonic_ns();
                if at_ns < self.course.end_ns.load(Ordering::Relaxed) {
                    self.finish(token, self.course.since(at_ns), Some(why));
                }
            }
        }
    }

    fn sample(&mut self, now: Nanos) {
        for (_, half) in self.halves.iter_mut().flatten() {
            if let Half::Sender(sender) = half {
                sender.sample(now);
            }
        }
    }

    fn act(&mut self, now: Nanos) {
        while let Some((_, token, act)) = self.acts.pop_if(|a| a.0 <= now) {
            let Some((_, half)) = &self.halves[token] else {
                continue;
            };
            let wanted = match act {
                Act::Reset => {
                    // Closing it is what resets it.
                    let _ = stream::set_reset_on_close(half.stream());
                    self.finish(token, now, Some("reset on purpose".to_owned()));
                    continue;
                }
                Act::Pause(_) => 0,
                Act::Resume => half.waits_for(),
            };
            let _ = self.epoll.modify(half.stream(), token as u64, wanted);
            if let Act::Pause(length) = act {
                let until = self.course.since(clock::monotonic_ns()) + length;
                let later = self.acts.partition_point(|a| a.0 > until);
                self.acts.insert(later, (until, token, Act::Resume));
            }
        }
    }

    /// A flow is over; one that is lost is closed.
    fn finish(&mut self, token: usize, ended: Nanos, lost: Option<String>) {
        let Some((index, half)) = self.halves[token].take() else {
            return;
        };
        let is_lost = lost.is_some();
        self.course.lost[index].store(is_lost, Ordering::Relaxed);
        let (side, stream) = half.finish(ended, lost);
        self.ended.push(Ended {
            index,
            side,
            stream: (!is_lost).then_some(stream),
        });
    }
}
