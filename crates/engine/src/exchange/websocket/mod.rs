//! WebSocket without sockets (RFC 6455): messages to frames, frames to messages, both handshakes,
//! and the client's side of a connection.
//!
//! The client of a load and the reference server share frames and handshakes.
//!
//! `frame` reads and writes frames for either side, `handshake` has both sides of the upgrade,
//! `deflate` compressed messages, `messages` what is sent and how an echo is known, `violation`
//! each rule by its section.
//!
//! The **upgrade** is the opening handshake, once the connection is established or secured. An
//! **echo** is the message by which a server answers a message. **Fan-out latency** is the time
//! from when a message left the server, by its own word, until a subscriber's host received it.
//!
//! Limits: a message, also inflated (`MESSAGE_BYTES_MAX`), the handshake, and messages of `--subscribe`
//! that no operation has taken (`ARRIVED_MAX`). Beyond them the connection ends. Of several pings only
//! the newest is answered (RFC 6455 §5.5.3).

pub mod deflate;
pub mod frame;
pub mod handshake;
mod messages;
#[cfg(test)]
mod tests;
mod violation;

use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, Conversation, FlightId, INTERIMS_MAX,
    OpEvent, Received, RequestRef, ResponseSink as _, StreamEnd, TargetConversation, WorkerSetup,
};
use crate::reactor::WireRequest;
use deflate::{MessageDeflater, MessageInflater};
use frame::{COMPRESSED, close_code, opcode, put, put_close};
pub use frame::{MessageItem, MessageReader, ReaderSide};
use handshake::HandshakeAnswer;
use knee_load::measure::{Outcome, Status};
use knee_load::rng::{self, Rng};
use knee_load::spec::{Matching, Target, WebSocketSettings};
use knee_load::time::Nanos;
use messages::{MessageTemplate, number_in, wire_requests};
pub use messages::{put_time, time_in};
use rand_core::RngCore as _;
use std::collections::VecDeque;
pub use violation::WebSocketViolation;

/// Most messages of the server on a connection that no operation has taken yet.
const ARRIVED_MAX: usize = 10_000;

/// Longest time from the begin of a run back to the time in a message, in nanoseconds: 1 h. Clocks
/// of two hosts may differ; a time before is none of this run.
const TIME_BEFORE_MAX_NS: u64 = 3_600_000_000_000;

/// Longest time by which the time in a message may be ahead of its arrival, in nanoseconds: clocks
/// that agree differ by less.
const TIME_AHEAD_MAX_NS: u64 = 10_000_000;

/// State that the WebSocket connections of one worker share.
#[derive(Debug)]
pub struct WebSocketShared {
    /// Head of the opening handshake, but for the key.
    head: Vec<u8>,
    /// Subprotocols that it offers.
    offered: String,
    /// Whether it offers to compress messages.
    offers_deflate: bool,
    messages: Vec<MessageTemplate>,
    settings: WebSocketSettings,
    /// Longest wait for the answer to the opening handshake.
    open_timeout: Nanos,
    /// Keys and masks.
    rng: Rng,
    /// Scratch space for a payload, and for a compressed one.
    payload: Vec<u8>,
    compressed: Vec<u8>,
    /// CLOCK_REALTIME of time zero, in nanoseconds.
    epoch_ns: u64,
}

impl WebSocketShared {
    /// For the messages of `target`. Keys and masks come from this worker's stream of `seed`.
    pub fn new(
        target: &Target,
        settings: &WebSocketSettings,
        open_timeout: Nanos,
        (seed, worker): (u64, u64),
    ) -> WebSocketShared {
        let first = target.requests.first();
        WebSocketShared {
            head: first.map(handshake::request_head).unwrap_or_default(),
            offered: first.map(handshake::offered).unwrap_or_default(),
            offers_deflate: first.is_some_and(handshake::offers_deflate),
            messages: MessageTemplate::all(target, settings),
            settings: *settings,
            open_timeout,
            rng: rng::stream(seed, rng::MASKS + worker),
            payload: Vec::new(),
            compressed: Vec::new(),
            epoch_ns: 0,
        }
    }

    fn mask(&mut self) -> Option<[u8; 4]> {
        Some(self.rng.next_u32().to_be_bytes())
    }
}

/// One WebSocket connection, from the client's side. An operation is a message and its echo.
#[derive(Debug)]
pub struct WebSocket {
    phase: WebSocketPhase,
    state: ConnectionState,
    reader: MessageReader,
    /// Compresses messages, where both sides agreed on that.
    deflater: Option<Box<MessageDeflater>>,
    /// Messages under way, the oldest first.
    pending: VecDeque<Pending>,
    /// Messages of the server that no operation has taken yet.
    arrived: VecDeque<Arrived>,
    /// More have come than [`ARRIVED_MAX`]: the next operations fail.
    is_flooded: bool,
    /// Number of the next message.
    next: u32,
    /// Longest time without an answer to a ping, and between pings.
    ping_every: Nanos,
    /// Time of the next ping, or at which the opening handshake is over.
    next_timer: Nanos,
    /// The last ping is not answered.
    is_ping_open: bool,
    /// The outbox has the answer to a ping.
    is_pong_out: bool,
    /// Payload of the newest ping since, to be answered once that has left.
    waiting_ping: Option<Vec<u8>>,
    /// Messages under way that were put into the outbox since it was last empty.
    in_outbox: usize,
    /// The oldest messages under way that wait for no echo and are with the kernel. Their
    /// operations end in the next pass.
    taken: usize,
}

#[derive(Debug)]
enum WebSocketPhase {
    Opening(Box<Opening>),
    Open,
}

/// The opening handshake.
#[derive(Debug)]
struct Opening {
    key: String,
    /// The answer so far, interim responses left out.
    answer: Vec<u8>,
    /// Number of interim responses.
    interims: u8,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    op: FlightId,
    number: u32,
    /// Place of its number.
    number_at: u32,
}

/// A message that the server sent by itself.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    bytes: u64,
    left: Nanos,
    at: Nanos,
}

impl TargetConversation for WebSocket {
    type Settings = WebSocketSettings;

    fn shared(settings: &WebSocketSettings, worker: &WorkerSetup<'_>) -> WebSocketShared {
        WebSocketShared::new(worker.target, settings, worker.open_timeout, worker.seed)
    }

    fn wire_requests(settings: &WebSocketSettings, target: &Target) -> Vec<WireRequest> {
        wire_requests(target, settings)
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, WebSocketPhase::Open)
    }
}

impl Conversation for WebSocket {
    type Shared = WebSocketShared;

    const LEAVES_AT_ONCE: bool = false;

    fn established(cx: &mut CallContext<'_, WebSocketShared>) -> WebSocket {
        let mut random = [0; 16];
        cx.shared.rng.fill_bytes(&mut random);
        let key = handshake::key_of(random);
        let out = cx.out.bytes();
        out.extend_from_slice(&cx.shared.head);
        handshake::put_key(out, &key);
        let settings = &cx.shared.settings;
        WebSocket {
            phase: WebSocketPhase::Opening(Box::new(Opening {
                key,
                answer: Vec::new(),
                interims: 0,
            })),
            state: ConnectionState::Open,
            reader: MessageReader::new(ReaderSide::Client, settings.message_bytes_max as usize),
            deflater: None,
            pending: VecDeque::new(),
            arrived: VecDeque::new(),
            is_flooded: false,
            next: 0,
            ping_every: settings.ping_every.unwrap_or(Nanos::MAX),
            next_timer: cx.now + cx.shared.open_timeout,
            is_ping_open: false,
            is_pong_out: false,
            waiting_ping: None,
            in_outbox: 0,
            taken: 0,
        }
    }

    #[inline]
    fn capacity(&self, shared: &WebSocketShared) -> Capacity {
        let limit = match (&self.phase, self.state) {
            (WebSocketPhase::Open, ConnectionState::Open) => shared.settings.messages_max,
            _ => 0,
        };
        Capacity {
            operations: limit.saturating_sub(self.pending.len() as u32),
            is_targets_limit: matches!(self.phase, WebSocketPhase::Opening(_)),
        }
    }

    #[inline]
    fn start(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        cx: &mut CallContext<'_, WebSocketShared>,
    ) {
        if cx.shared.settings.subscribes {
            return self.pending.push_back(Pending { op, number: 0, number_at: 0 });
        }
        self.note_outbox(cx);
        self.in_outbox += 1;
        let (number, mask) = (self.next, cx.shared.mask());
        self.next = number.wrapping_add(1);
        let shared = &mut *cx.shared;
        let template = &shared.messages[request.number];
        shared.payload.clear();
        let time_ns = shared.epoch_ns + cx.now.0;
        template.put(request, (number, time_ns), &mut shared.payload);
        let kind = if shared.settings.is_binary { opcode::BINARY } else { opcode::TEXT };
        match &mut self.deflater {
            None => put(cx.out.bytes(), kind, true, mask, &shared.payload),
            Some(deflater) => {
                deflater.deflate(&shared.payload, &mut shared.compressed);
                let before = cx.out.bytes().len();
                put(cx.out.bytes(), kind | COMPRESSED, true, mask, &shared.compressed);
                let bytes = (cx.out.bytes().len() - before) as u64;
                cx.events.push(OpEvent::Resized { op, bytes });
            }
        }
        let number_at = template.number_at as u32;
        self.pending.push_back(Pending { op, number, number_at });
        cx.events.push(OpEvent::Written(op));
    }

    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, WebSocketShared>) {
        if self.state == ConnectionState::Broken {
            return;
        }
        let read = match &mut self.phase {
            WebSocketPhase::Open => self.read(input, cx),
            WebSocketPhase::Opening(opening) => {
                opening.answer.extend_from_slice(input.bytes);
                self.read_answer(input.at, cx)
            }
        };
        if let Err(violation) = read {
            self.break_off(&violation, cx);
        }
    }

    fn sent(&mut self, cx: &mut CallContext<'_, WebSocketShared>) {
        self.note_outbox(cx);
        let settings = &cx.shared.settings;
        if settings.matching == Matching::None && !settings.subscribes {
            self.taken = self.pending.len().saturating_sub(self.in_outbox);
        }
        if cx.out.is_empty() {
            self.is_pong_out = false;
            if self.state == ConnectionState::Open
                && let Some(payload) = self.waiting_ping.take()
            {
                self.put_pong(&payload, cx);
            }
        }
    }

    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, WebSocketShared>) {
        if matches!(self.phase, WebSocketPhase::Opening(_)) && self.state == ConnectionState::Open {
            cx.events.push(OpEvent::NotOpened(Outcome::Closed));
        }
        self.end_all(close_code::ABNORMAL, cx);
        self.state = end.state_after(self.state);
    }

    fn cancel(&mut self, op: FlightId, cx: &mut CallContext<'_, WebSocketShared>) -> AfterCancel {
        self.pending.retain(|pending| pending.op != op);
        if cx.shared.settings.subscribes || cx.shared.settings.matching == Matching::Number {
            return AfterCancel::GoesOn;
        }
        // Its echo may still come, and would be taken for the next one's.
        self.state = ConnectionState::Broken;
        AfterCancel::Broken
    }

    #[inline]
    fn poll_timeout(&self) -> Nanos {
        let has_arrived = !self.arrived.is_empty() || self.is_flooded;
        let has_both = has_arrived && !self.pending.is_empty();
        if has_both || self.taken > 0 { Nanos::ZERO } else { self.next_timer }
    }

    fn handle_timeout(&mut self, cx: &mut CallContext<'_, WebSocketShared>) {
        if self.is_flooded && !self.pending.is_empty() {
            return self.break_off(&WebSocketViolation::MessageFlood(ARRIVED_MAX), cx);
        }
        self.deliver(cx);
        self.end_taken(cx);
        if self.next_timer > cx.now || self.state != ConnectionState::Open {
            return;
        }
        if matches!(self.phase, WebSocketPhase::Opening(_)) {
            self.state = ConnectionState::Broken;
            return cx.events.push(OpEvent::NotOpened(Outcome::HandshakeTimeout));
        }
        if self.is_ping_open {
            self.state = ConnectionState::Broken;
            return self.fail_all(Outcome::Timeout, cx);
        }
        self.is_ping_open = true;
        self.next_timer = cx.now + self.ping_every;
        self.note_outbox(cx);
        let mask = cx.shared.mask();
        put(cx.out.bytes(), opcode::PING, true, mask, b"knee");
    }

    /// Says that the work is done (RFC 6455 §7.4.1), unless the server has closed it already.
    fn close(&mut self, cx: &mut CallContext<'_, WebSocketShared>) {
        if matches!((&self.phase, self.state), (WebSocketPhase::Open, ConnectionState::Open)) {
            let mask = cx.shared.mask();
            put_close(cx.out.bytes(), close_code::NORMAL, mask);
            self.state = ConnectionState::Closing;
        }
    }

    #[inline]
    fn state(&self) -> ConnectionState {
        self.state
    }

    fn waits_for_target(shared: &WebSocketShared) -> bool {
        shared.settings.subscribes
    }

    fn set_epoch(shared: &mut WebSocketShared, realtime_ns: u64) {
        shared.epoch_ns = realtime_ns;
    }
}

impl WebSocket {
    /// Reads the server's part of the opening handshake, and what follows it.
    fn read_answer(
        &mut self,
        at: Nanos,
        cx: &mut CallContext<'_, WebSocketShared>,
    ) -> Result<(), WebSocketViolation> {
        let WebSocketPhase::Opening(opening) = &mut self.phase else {
            return Ok(());
        };
        let offered = (&cx.shared.offered[..], cx.shared.offers_deflate);
        let (length, deflate) = loop {
            match handshake::read_response(&opening.answer, &opening.key, offered)? {
                HandshakeAnswer::More => return Ok(()),
                HandshakeAnswer::Interim(_) if opening.interims == INTERIMS_MAX => {
                    return Err(WebSocketViolation::HandshakeNotHttp);
                }
                HandshakeAnswer::Interim(length) => {
                    opening.interims += 1;
                    opening.answer.drain(..length);
                }
                HandshakeAnswer::Opened { length, deflate } => break (length, deflate),
            }
        };
        if let Some(agreed) = deflate {
            self.deflater = Some(Box::new(MessageDeflater::new(agreed.client_resets)));
            self.reader.inflate_with(MessageInflater::new(agreed.server_resets));
        }
        let answer = std::mem::take(&mut opening.answer);
        self.phase = WebSocketPhase::Open;
        self.next_timer = match self.ping_every {
            Nanos::MAX => Nanos::MAX,
            every => cx.now + every,
        };
        cx.events.push(OpEvent::Opened);
        self.read(Received { bytes: &answer[length..], at }, cx)
    }

    /// Reads frames.
    fn read(
        &mut self,
        Received { mut bytes, at }: Received<'_>,
        cx: &mut CallContext<'_, WebSocketShared>,
    ) -> Result<(), WebSocketViolation> {
        let mut before = bytes.len();
        while let Some(item) = self.reader.read(&mut bytes)? {
            let taken = before - bytes.len();
            before = bytes.len();
            match item {
                MessageItem::Message { .. } if cx.shared.settings.subscribes => {
                    let epoch_ns = cx.shared.epoch_ns;
                    // One without a time says nothing of how long it took, nor does one whose time
                    // is yet to come.
                    let last = (epoch_ns + at.0).saturating_add(TIME_AHEAD_MAX_NS);
                    let time = time_in(self.reader.payload()).filter(|time| *time <= last);
                    let first = epoch_ns.saturating_sub(TIME_BEFORE_MAX_NS);
                    if time.is_none() {
                        cx.events.push(OpEvent::Unmatched);
                    }
                    if let Some(left_ns) = time.filter(|time| *time >= first) {
                        if self.is_flooded || self.arrived.len() >= ARRIVED_MAX {
                            self.is_flooded = true;
                            self.arrived.clear();
                            continue;
                        }
                        // Clocks of two hosts may differ by more than it took.
                        let left = Nanos(left_ns.saturating_sub(epoch_ns)).min(at);
                        self.arrived.push_back(Arrived { bytes: taken as u64, left, at });
                        self.deliver(cx);
                    }
                }
                MessageItem::Message { .. } => self.on_message(taken, cx),
                MessageItem::Ping => {
                    let payload = self.reader.control().to_vec();
                    self.on_ping(payload, cx);
                }
                MessageItem::Pong => self.is_ping_open = false,
                MessageItem::Close(code) => {
                    let mask = cx.shared.mask();
                    put_close(cx.out.bytes(), code, mask);
                    self.end_all(code, cx);
                    // The server closes the connection (RFC 6455 §7.1.1).
                    self.state = ConnectionState::Closing;
                }
            }
        }
        Ok(())
    }

    /// Ends the operation that a message answers. `taken` bytes of it came last.
    #[inline]
    fn on_message(&mut self, taken: usize, cx: &mut CallContext<'_, WebSocketShared>) {
        let payload = self.reader.payload();
        let found = match cx.shared.settings.matching {
            Matching::None => return,
            Matching::Order => self.pending.pop_front(),
            Matching::Number => {
                let hint = self.pending.front().map_or(0, |first| first.number_at as usize);
                let number = number_in(payload, hint);
                let place = self.pending.iter().position(|one| Some(one.number) == number);
                place.and_then(|place| self.pending.remove(place))
            }
        };
        let Some(Pending { op, .. }) = found else {
            if cx.shared.settings.matching == Matching::Order {
                cx.events.push(OpEvent::Unmatched);
            }
            return;
        };
        if let Some(mut sink) = cx.events.sink(op) {
            sink.body(payload);
        }
        cx.events.push(OpEvent::Received { op, bytes: taken as u64 });
        cx.events.push(OpEvent::Answered { op, status: Status::Message });
    }

    /// Gives messages of the server to the operations that wait for them.
    fn deliver(&mut self, cx: &mut CallContext<'_, WebSocketShared>) {
        while !self.arrived.is_empty()
            && let Some(Pending { op, .. }) = self.pending.pop_front()
            && let Some(Arrived { bytes, left, at }) = self.arrived.pop_front()
        {
            cx.events.push(OpEvent::Delivered { op, bytes, left, at });
        }
    }

    /// Answers a ping, or only the newest while an answer has not left (RFC 6455 §5.5.3). So a peer
    /// that does not read costs no memory.
    fn on_ping(&mut self, payload: Vec<u8>, cx: &mut CallContext<'_, WebSocketShared>) {
        if self.is_pong_out {
            self.waiting_ping = Some(payload);
        } else {
            self.put_pong(&payload, cx);
        }
    }

    fn put_pong(&mut self, payload: &[u8], cx: &mut CallContext<'_, WebSocketShared>) {
        self.note_outbox(cx);
        self.is_pong_out = true;
        let mask = cx.shared.mask();
        put(cx.out.bytes(), opcode::PONG, true, mask, payload);
    }

    /// Notes that the backend has every message, where the outbox is empty.
    #[inline]
    fn note_outbox(&mut self, cx: &CallContext<'_, WebSocketShared>) {
        if cx.out.is_empty() {
            self.in_outbox = 0;
        }
    }

    /// Ends the operations that wait for no echo and whose messages are with the kernel.
    fn end_taken(&mut self, cx: &mut CallContext<'_, WebSocketShared>) {
        let taken = std::mem::take(&mut self.taken).min(self.pending.len());
        for Pending { op, .. } in self.pending.drain(..taken) {
            cx.events.push(OpEvent::Answered { op, status: Status::Message });
        }
    }

    /// Ends every operation under way, as the server closed the connection.
    fn end_all(&mut self, code: u16, cx: &mut CallContext<'_, WebSocketShared>) {
        for Pending { op, .. } in self.pending.drain(..) {
            cx.events.push(OpEvent::Answered { op, status: Status::WebSocketClose(code) });
        }
    }

    fn fail_all(&mut self, outcome: Outcome, cx: &mut CallContext<'_, WebSocketShared>) {
        for Pending { op, .. } in self.pending.drain(..) {
            cx.events.push(OpEvent::Failed { op, outcome });
        }
    }

    /// Ends the connection and all its operations, as the server breaks a rule.
    #[cold]
    fn break_off(
        &mut self,
        violation: &WebSocketViolation,
        cx: &mut CallContext<'_, WebSocketShared>,
    ) {
        match self.phase {
            WebSocketPhase::Opening(_) => {
                let outcome = match violation {
                    WebSocketViolation::HandshakeStatus(status @ 400..) => {
                        Status::Http(*status).outcome()
                    }
                    _ => Outcome::Malformed,
                };
                cx.events.push(OpEvent::NotOpened(outcome));
            }
            WebSocketPhase::Open => {
                let mask = cx.shared.mask();
                put_close(cx.out.bytes(), violation.close_code(), mask);
                self.fail_all(Outcome::Malformed, cx);
            }
        }
        cx.events.push(OpEvent::Violated(violation.to_string()));
        self.state = ConnectionState::Broken;
    }
}
