//! State that all connections of one server share.

use super::app_request::AppRequest;
use super::batch::{Batch, StreamKey};
use super::fault::{Fault, Mishaps, Stalls};
use super::grpc::{GrpcCall, Reflect};
use super::log::{Log, LogEntry, SentMessage, StreamLog};
use super::queue::{QueueOutcome, QueueStation};
use super::request::LastHead;
use super::response::{Response, ResponseKind, Responses, ServerResponse, build_reply};
use super::shop::Shop;
use super::station::{Station, Visit};
use super::stats::{ServerTally, StationCounts};
use super::{App, HttpServerSpec};
use knee_engine::sys::clock::MonotonicClock;
use knee_load::rng;
use knee_load::time::{Clock, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// State that all connections of one server share.
#[derive(Debug)]
pub(super) struct Context {
    clock: MonotonicClock,
    /// The latest reading of the clock.
    now: Nanos,
    pub(super) station: Option<Station>,
    /// The station with a managed queue, in place of `station`.
    pub(super) queue: Option<QueueStation>,
    pub(super) stalls: Stalls,
    pub(super) mishaps: Mishaps,
    /// Bytes of slow bodies per second, if set.
    pub(super) slow: Option<u64>,
    /// Most streams of a connection of HTTP/2.
    pub(super) streams_max: u32,
    pub(super) responses: Responses,
    /// The application that answers, if any.
    shop: Option<Shop>,
    /// What calls of gRPC learn by reflection, where those are answered.
    pub(super) reflect: Option<Reflect>,
    pub(super) last_head: LastHead,
    pub(super) tally: ServerTally,
    /// Where each request is logged.
    pub(super) log: Option<Log>,
    /// The streams of messages, where responses are such.
    pub(super) batch: Option<Batch>,
    /// Where each message is logged.
    pub(super) stream_log: StreamLog,
    /// Timers, by the token of the connection.
    timers: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl Context {
    pub(super) fn new(spec: &HttpServerSpec, clock: MonotonicClock) -> Context {
        let workers = |is_plain| spec.workers.filter(|_| spec.queue.is_plain() == is_plain);
        let random = || rng::stream(spec.seed, 1);
        let station = |workers| Station::new(workers, spec.service, random());
        let queue = |workers| QueueStation::new(workers, spec.service, spec.queue, random());
        let mishaps = Mishaps::new(&spec.faults, rng::stream(spec.seed, 2));
        let slow = |fault: &Fault| match *fault {
            Fault::Slow(bytes_per_s) => Some(bytes_per_s),
            _ => None,
        };
        Context {
            clock,
            now: clock.now(),
            station: workers(true).map(station),
            queue: workers(false).map(queue),
            stalls: Stalls::new(&spec.faults),
            slow: spec.faults.iter().filter_map(slow).min(),
            streams_max: spec.streams_max.max(1),
            responses: Responses::new(spec.body_size, &mishaps.statuses, spec.seed),
            shop: spec.app.map(|App::Shop| Shop::new(spec.seed)),
            reflect: spec.reflect,
            mishaps,
            last_head: LastHead::default(),
            tally: ServerTally::new(spec.arrivals_max),
            log: (spec.log_max > 0).then(|| Log::new(spec.log_max, clock.origin)),
            batch: spec.stream.map(|stream| Batch::new(stream, rng::stream(spec.seed, 4))),
            stream_log: StreamLog {
                origin_ns: clock.origin,
                max: spec.stream_log_max,
                ..StreamLog::default()
            },
            timers: BinaryHeap::with_capacity(1024),
        }
    }

    /// The latest reading of the clock.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.now
    }

    /// Reads the clock anew.
    #[inline]
    pub(super) fn read_clock(&mut self) -> Nanos {
        self.now = self.clock.now();
        self.now
    }

    /// Whether the contents of requests matter.
    pub(super) fn keeps_app_requests(&self) -> bool {
        let has_cache = self.queue.as_ref().is_some_and(QueueStation::has_cache);
        self.shop.is_some() || self.reflect.is_some() || has_cache
    }

    /// Takes the next request that has left the queue by the latest reading of the clock. Its times
    /// are those of the clock.
    pub(super) fn take_outcome(&mut self) -> Option<(StreamKey, QueueOutcome)> {
        let queue = self.queue.as_mut()?;
        queue.advance(self.stalls.worked(self.now));
        let (key, outcome) = queue.take_outcome()?;
        Some((
            key,
            match outcome {
                QueueOutcome::Served(visit) => {
                    let [arrival, start, finish] = [visit.arrival, visit.start, visit.finish]
                        .map(|moment| self.stalls.moment(moment));
                    QueueOutcome::Served(Visit { arrival, start, finish })
                }
                QueueOutcome::Dropped => outcome,
            },
        ))
    }

    /// Counts of the station so far.
    pub(super) fn station_counts(&self) -> Option<StationCounts> {
        let queue = self.queue.as_ref().map(|queue| queue.counts);
        queue.or(self.station.as_ref().map(|station| station.counts))
    }

    /// The call of gRPC that a request begins, where those are answered.
    pub(super) fn grpc_call(&self, request: Option<&AppRequest>) -> Option<Box<GrpcCall>> {
        Some(Box::new(GrpcCall::new(request?.path(), self.reflect?)))
    }

    /// The application's response, unless a fault replaces it.
    pub(super) fn reply(
        &mut self,
        request: Option<&AppRequest>,
        answer: &mut ServerResponse,
    ) -> Option<Box<Response>> {
        let (shop, request) = (self.shop.as_mut()?, request?);
        let ResponseKind::Ok(persistence) = answer.kind else {
            return None;
        };
        if answer.reset {
            return None;
        }
        answer.kind = ResponseKind::Own(persistence);
        let reply = shop.answer(request);
        Some(Box::new(build_reply(&reply, persistence)))
    }

    /// Bytes of a slow body, begun at `begun`, that are due by the latest reading of the clock.
    pub(super) fn due(&self, begun: Nanos) -> usize {
        let bytes_per_s = u128::from(self.slow.unwrap_or(u64::MAX));
        let due = u128::from((self.now - begun).0) * bytes_per_s / 1_000_000_000;
        usize::try_from(due).unwrap_or(usize::MAX)
    }

    /// Time at which `bytes` of a slow body are due, rounded up.
    pub(super) fn due_at(&self, begun: Nanos, bytes: usize) -> Nanos {
        let bytes_per_s = u128::from(self.slow.unwrap_or(u64::MAX));
        let ns = (bytes as u128 * 1_000_000_000).div_ceil(bytes_per_s);
        begun + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// A stream of messages that got a slot, with the time to ask for its messages.
    pub(super) fn take_admitted(&mut self) -> Option<(StreamKey, Nanos)> {
        self.batch.as_mut()?.take_admitted()
    }

    /// Logs messages that the kernel has by now.
    pub(super) fn log_messages(&mut self, messages: &mut Vec<SentMessage>) {
        if messages.is_empty() {
            return;
        }
        let written = self.read_clock();
        messages.drain(..).for_each(|sent| self.stream_log.push(SentMessage { written, ..sent }));
    }

    /// Logs a request that has ended, if requests are logged.
    pub(super) fn log_request(&mut self, entry: Option<LogEntry>) {
        if let (Some(log), Some(entry)) = (&mut self.log, entry) {
            log.push(entry);
        }
    }

    /// The client of the stream of messages, or of the waiting request, with this key has gone.
    /// Returns whether a request left the queue with it.
    pub(super) fn leave(&mut self, key: StreamKey) -> bool {
        let now = self.now;
        if let Some(batch) = &mut self.batch {
            batch.leave(key, now);
        }
        self.queue.as_mut().is_some_and(|queue| queue.leave(key))
    }

    /// Sets a timer of the connection `token`.
    pub(super) fn set_timer(&mut self, at: Nanos, token: u64) {
        self.timers.push(Reverse((at, token)));
    }

    /// Time of the next timer.
    #[inline]
    pub(super) fn next_timer(&self) -> Option<Nanos> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let end = self.queue.as_ref().and_then(QueueStation::next_end);
        timer.into_iter().chain(end.map(|end| self.stalls.moment(end))).min()
    }

    /// Takes the next timer, if it is due by the latest reading of the clock.
    #[inline]
    pub(super) fn take_due(&mut self) -> Option<u64> {
        self.timers.peek().filter(|Reverse((at, _))| *at <= self.now)?;
        self.timers.pop().map(|Reverse((_, token))| token)
    }
}
