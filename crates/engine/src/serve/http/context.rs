//! State that all connections of one server share.

use super::asked::Asked;
use super::batch::{Batch, StreamKey};
use super::fault::{Fault, Mishaps, Stalls};
use super::grpc::{GrpcCall, Reflect};
use super::log::Log;
use super::request::{LastHead, RequestReader};
use super::response::{Response, ResponseKind, Responses, ServerResponse, build_reply};
use super::shop::Shop;
use super::spec::{App, HttpServerSpec};
use super::station::Station;
use super::stats::ServerTally;
use super::stream_log::{SentMessage, StreamLog};
use crate::sys::clock::MonotonicClock;
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
    pub(super) stalls: Stalls,
    pub(super) mishaps: Mishaps,
    /// Bytes of body per second, where they trickle.
    pub(super) slow: Option<u64>,
    /// Most streams of a connection of HTTP/2.
    pub(super) streams_max: u32,
    pub(super) responses: Responses,
    /// The application that answers, where there is one.
    shop: Option<Shop>,
    /// What calls of gRPC learn by reflection, where those are answered.
    reflect: Option<Reflect>,
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
        let station = |workers| {
            let station = Station::new(workers, spec.service, rng::stream(spec.seed, 1));
            station.bounded(spec.queue_max)
        };
        let mishaps = Mishaps::new(&spec.faults, rng::stream(spec.seed, 2));
        let slow = |fault: &Fault| match *fault {
            Fault::Slow(bytes_per_s) => Some(bytes_per_s),
            _ => None,
        };
        Context {
            clock,
            now: clock.now(),
            station: spec.workers.map(station),
            stalls: Stalls::new(&spec.faults),
            slow: spec.faults.iter().filter_map(slow).min(),
            streams_max: spec.streams_max.max(1),
            responses: Responses::new(spec.body_size, mishaps.statuses(), spec.seed),
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

    /// Whether an application answers.
    pub(super) fn has_app(&self) -> bool {
        self.shop.is_some() || self.reflect.is_some()
    }

    /// Whether requests are calls of gRPC.
    pub(super) fn answers_calls(&self) -> bool {
        self.reflect.is_some()
    }

    /// The call of gRPC that a request begins, where those are answered.
    pub(super) fn grpc_call(&self, asked: Option<&Asked>) -> Option<Box<GrpcCall>> {
        Some(Box::new(GrpcCall::new(asked?.path(), self.reflect?)))
    }

    /// A reader of the requests of one connection.
    pub(super) fn request_reader(&self) -> RequestReader {
        if self.has_app() { RequestReader::keeping() } else { RequestReader::default() }
    }

    /// The application's response, unless a fault replaces it.
    pub(super) fn reply(
        &mut self,
        asked: Option<&Asked>,
        answer: &mut ServerResponse,
    ) -> Option<Box<Response>> {
        let (shop, asked) = (self.shop.as_mut()?, asked?);
        let ResponseKind::Ok(persistence) = answer.kind else {
            return None;
        };
        if answer.reset {
            return None;
        }
        answer.kind = ResponseKind::Own(persistence);
        let reply = shop.answer(asked);
        Some(Box::new(build_reply(&reply, persistence)))
    }

    /// Bytes of a slow body, begun at `begun`, that are due by the latest reading of the clock.
    pub(super) fn due(&self, begun: Nanos) -> usize {
        let bytes_per_s = u128::from(self.slow.unwrap_or(u64::MAX));
        let due = u128::from((self.now - begun).0) * bytes_per_s / 1_000_000_000;
        usize::try_from(due).unwrap_or(usize::MAX)
    }

    /// Time at which `bytes` of it are due, rounded up.
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

    /// Removes the stream of messages with this key, if there is one: its client has gone.
    pub(super) fn leave(&mut self, key: StreamKey) {
        let now = self.now;
        if let Some(batch) = &mut self.batch {
            batch.leave(key, now);
        }
    }

    /// Sets a timer of the connection `token`.
    pub(super) fn set_timer(&mut self, at: Nanos, token: u64) {
        self.timers.push(Reverse((at, token)));
    }

    /// Time of the next timer.
    #[inline]
    pub(super) fn next_timer(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next timer, if it is due by the latest reading of the clock.
    #[inline]
    pub(super) fn take_due(&mut self) -> Option<u64> {
        self.next_timer().filter(|&at| at <= self.now)?;
        self.timers.pop().map(|Reverse((_, token))| token)
    }
}
