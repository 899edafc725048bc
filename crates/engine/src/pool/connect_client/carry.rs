//! From an established connection to the end of its response.

use super::{ConnectClient, State};
use crate::exchange::http1::Progress;
use crate::link::{Link, note_secured};
use crate::reactor::{Backend, EventTime, Payload};
use knee_core::measure::Outcome;
use knee_core::time::Nanos;

impl<L: Link> ConnectClient<L> {
    pub(super) fn on_connected<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        if connection.state != State::Connecting {
            return;
        }
        if now >= connection.flight.started + self.config.patience {
            return self.give_up_connect(io, slot, Outcome::Late, now);
        }
        connection.flight.connected = now;
        match L::new(&mut self.link) {
            Ok(link) => connection.link = Some(link),
            Err(why) => return self.on_bad_link(io, slot, why, now),
        }
        if L::IS_CLEAR {
            return self.on_secured(io, slot, now);
        }
        connection.state = State::Securing;
        self.send_wire(io, slot, now);
    }

    /// A connection can be used: its request goes out.
    fn on_secured<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        self.connecting.clear(slot);
        let connection = &mut self.connections[slot as usize];
        // It was opened for the operation, when that was placed.
        let times = [connection.flight.placed, connection.flight.connected, now];
        note_secured(connection.link.as_ref(), &mut self.handshakes, times);
        let flight = &mut connection.flight;
        (flight.secured, flight.sent) = (now, now);
        flight.bytes_sent = self.requests.length(flight.request);
        connection.state = State::Busy;
        connection
            .parser
            .begin(self.requests.is_head(flight.request));
        self.established.push(flight.lane);
        let (request, intended) = (flight.request, flight.intended);
        self.responding.set(slot, intended + self.config.timeout);
        if L::IS_CLEAR {
            return self.send(io, slot, Payload::Registered(request), now);
        }
        if let Some(link) = &mut self.connections[slot as usize].link {
            let mut at = 0;
            while let piece @ [_, ..] = self.requests.piece(request, at) {
                link.seal(piece);
                at += piece.len();
            }
        }
        self.send_wire(io, slot, now);
    }

    /// Hands over what a link has to send.
    fn send_wire<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let link = self.connections[slot as usize].link.as_mut();
        if io.is_busy(slot) {
            return;
        }
        if let Some(link) = link.filter(|link| link.has_wire()) {
            let mut wire = io.buffer();
            link.take_wire(&mut wire);
            self.send(io, slot, Payload::Owned(wire), now);
        }
    }

    fn send<B: Backend>(&mut self, io: &mut B, slot: u32, payload: Payload, now: Nanos) {
        match io.send(slot, payload) {
            Ok(()) if io.is_sending(slot) => {}
            Ok(()) => self.connections[slot as usize].flight.written = now,
            Err(error) => self.on_failure(io, slot, &error, now),
        }
    }

    /// The kernel has taken what it was given.
    pub(super) fn on_written<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let flight = &mut self.connections[slot as usize].flight;
        if flight.written == Nanos::ZERO {
            flight.written = now;
        }
        self.send_wire(io, slot, now);
    }

    /// The peer's TLS is not as it should be, or it does not take ours.
    pub(super) fn on_bad_link<B: Backend>(
        &mut self,
        io: &mut B,
        slot: u32,
        why: String,
        now: Nanos,
    ) {
        self.send_wire(io, slot, now);
        self.handshakes.fail(why);
        self.end(io, slot, Outcome::HandshakeFailed, now);
    }

    #[inline]
    pub(super) fn on_bytes<B: Backend>(
        &mut self,
        io: &mut B,
        slot: u32,
        bytes: &[u8],
        time: EventTime,
    ) {
        if L::IS_CLEAR {
            let connection = &mut self.connections[slot as usize];
            if connection.state == State::Busy {
                let progress = connection.parser.feed(bytes, &mut self.cache);
                self.on_progress(io, slot, (bytes.len(), progress), time);
            }
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let connection = &mut self.connections[slot as usize];
            let Some(link) = &mut connection.link else {
                return;
            };
            let taken = link.take_in(&mut rest);
            let is_secured = link.is_secured();
            match (connection.state, taken) {
                (State::Securing, Ok(())) if is_secured => self.on_secured(io, slot, time.seen),
                (State::Securing, Ok(())) => self.send_wire(io, slot, time.seen),
                (State::Securing, Err(why)) => return self.on_bad_link(io, slot, why, time.seen),
                (State::Busy, Err(_)) => {
                    return self.end(io, slot, Outcome::Malformed, time.seen);
                }
                _ => {}
            }
            self.take_plain(io, slot, time);
        }
    }

    /// Feeds what was in the bytes that a link has taken in.
    fn take_plain<B: Backend>(&mut self, io: &mut B, slot: u32, time: EventTime) {
        let connection = &mut self.connections[slot as usize];
        let Some(link) = &mut connection.link else {
            return;
        };
        let is_busy = connection.state == State::Busy;
        let (parser, cache) = (&mut connection.parser, &mut self.cache);
        let (mut count, mut progress) = (0, Progress::NeedMore);
        link.drain(|plain| {
            if is_busy && progress == Progress::NeedMore {
                count += plain.len();
                progress = parser.feed(plain, cache);
            }
        });
        if count > 0 {
            self.on_progress(io, slot, (count, progress), time);
        }
    }

    /// So many bytes of the response came, and that is where it stands.
    #[inline]
    fn on_progress<B: Backend>(
        &mut self,
        io: &mut B,
        slot: u32,
        (count, progress): (usize, Progress),
        time: EventTime,
    ) {
        let connection = &mut self.connections[slot as usize];
        let time = connection.flight.received(count, time);
        match progress {
            Progress::NeedMore => {}
            Progress::Malformed(violation) => self.refuse(io, slot, violation, time.seen),
            Progress::Done {
                status, keep_alive, ..
            } => self.served(io, slot, (status, keep_alive), time),
        }
    }
}
