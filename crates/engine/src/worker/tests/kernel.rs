//! A backend whose network is a calendar of events, and whose time is that of the calendar.

use super::audit::Books;
use super::peer::{Act, Peer, ServerTraits};
use super::{chance, pick};
use crate::reactor::{Backend, Close, ConnectOptions, Event, Payload, Piece, Sink, WireRequests};
use crate::sys::socket::TcpState;
use knee_load::rng::Rng;
use knee_load::time::{Clock, Nanos};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Calls of `poll` after which a load counts as one that never ends.
const POLLS_MAX: u64 = 5_000_000;

/// Reading the time takes this long, so that a loop that only looks at it ends.
const READING: Nanos = Nanos(100);

/// The time of one seed.
#[derive(Clone, Debug, Default)]
pub(super) struct VirtualClock(Rc<Cell<Nanos>>);

impl VirtualClock {
    /// The time, which goes on by nothing.
    pub(super) fn read(&self) -> Nanos {
        self.0.get()
    }

    fn advance_to(&self, at: Nanos) {
        self.0.set(at.max(self.0.get()));
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Nanos {
        self.0.set(self.0.get() + READING);
        self.0.get()
    }
}

/// What happens to a connection at a time of the calendar.
enum Happens {
    Connected,
    Written,
    Peer(Act),
}

#[derive(Default)]
struct Slot {
    generation: u32,
    peer: Option<Peer>,
    is_sending: bool,
    is_busy: bool,
    /// When the last event of the connection comes: events keep their order.
    last: Nanos,
}

/// A simulated kernel.
pub(super) struct FakeKernel {
    /// What is sent is with the kernel at once, as over epoll. Otherwise a buffer is busy until the
    /// kernel has taken it, as over io_uring.
    at_once: bool,
    clock: VirtualClock,
    rng: Rng,
    traits: ServerTraits,
    requests: WireRequests,
    books: Books,
    slots: Vec<Slot>,
    calendar: BTreeMap<(Nanos, u64), (u32, u32, Happens)>,
    number: u64,
    polls: u64,
}

impl FakeKernel {
    pub(super) fn new(
        at_once: bool,
        clock: VirtualClock,
        rng: Rng,
        (slots, traits): (usize, ServerTraits),
        (requests, books): (WireRequests, Books),
    ) -> FakeKernel {
        FakeKernel {
            at_once,
            clock,
            rng,
            traits,
            requests,
            books,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            calendar: BTreeMap::new(),
            number: 0,
            polls: 0,
        }
    }

    /// Something happens after `delay`, and not before what comes earlier over the connection.
    fn plan(&mut self, slot: u32, delay: Nanos, what: Happens) {
        let of = &mut self.slots[slot as usize];
        of.last = of.last.max(self.clock.read() + delay);
        self.number += 1;
        let (at, generation) = (of.last, of.generation);
        self.calendar.insert((at, self.number), (slot, generation, what));
    }

    fn plan_all(&mut self, slot: u32, acts: Vec<(Nanos, Act)>) {
        for (delay, act) in acts {
            self.plan(slot, delay, Happens::Peer(act));
        }
    }

    fn tell(&mut self, slot: u32, happens: Happens, sink: &mut dyn Sink) {
        let of = &mut self.slots[slot as usize];
        if let Happens::Peer(act) = &happens {
            self.books.borrow_mut().whole += u64::from(act.whole());
        }
        match happens {
            Happens::Connected => {
                let acts = of.peer.as_mut().map(|peer| peer.accept(&mut self.rng));
                self.plan_all(slot, acts.unwrap_or_default());
                sink.on_event(self, slot, Event::Connected);
            }
            Happens::Written => {
                (of.is_sending, of.is_busy) = (false, false);
                sink.on_event(self, slot, Event::Written);
            }
            Happens::Peer(Act::Sends(bytes, _)) => {
                sink.on_event(self, slot, Event::Received(Piece::of(&bytes)));
            }
            Happens::Peer(Act::SendsLast(bytes, _)) => {
                sink.on_event(self, slot, Event::ReceivedLast(Piece::of(&bytes)));
            }
            Happens::Peer(Act::Ends(_)) => sink.on_event(self, slot, Event::Ended),
            Happens::Peer(Act::Fails(code)) => {
                let error = io::Error::from_raw_os_error(code);
                sink.on_event(self, slot, Event::Failed(error));
            }
        }
    }
}

impl Backend for FakeKernel {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn sends_at_once(&self) -> bool {
        self.at_once
    }

    fn open(&mut self, slot: u32, options: ConnectOptions<'_>) -> io::Result<()> {
        if chance(&mut self.rng, 2) {
            let codes = [libc::ENETUNREACH, libc::EADDRNOTAVAIL, libc::EMFILE];
            let code = codes[pick(&mut self.rng, 3) as usize];
            return Err(io::Error::from_raw_os_error(code));
        }
        let of = &mut self.slots[slot as usize];
        assert!(of.peer.is_none(), "slot {slot} is in use");
        of.peer = Some(Peer::new(self.traits, options.kind, &mut self.rng));
        let delay = Nanos(10_000 + pick(&mut self.rng, 2_000_000));
        match pick(&mut self.rng, 20) {
            // Nobody answers the SYN.
            0 => {}
            1 => self.plan(slot, delay, Happens::Peer(Act::Fails(libc::ECONNREFUSED))),
            _ => self.plan(slot, delay, Happens::Connected),
        }
        Ok(())
    }

    fn tcp_state(&self, _: u32) -> Option<TcpState> {
        None
    }

    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()> {
        assert!(!self.is_busy(slot), "slot {slot} is busy");
        if chance(&mut self.rng, 1) {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        let bytes = match payload {
            Payload::Registered(request) => {
                let (head, body) = self.requests.pieces(request);
                [head, body].concat()
            }
            Payload::Owned(bytes) => {
                assert!(!bytes.is_empty());
                self.slots[slot as usize].is_busy = !self.at_once;
                bytes
            }
        };
        let delay = Nanos(1_000 + pick(&mut self.rng, 300_000));
        let of = &mut self.slots[slot as usize];
        if chance(&mut self.rng, 10) {
            of.is_sending = true;
        }
        // A peer that never reads leaves what is sent unsent.
        if (of.is_sending || of.is_busy) && !chance(&mut self.rng, 5) {
            self.plan(slot, delay, Happens::Written);
        }
        let peer = self.slots[slot as usize].peer.as_mut();
        let acts = peer.map(|peer| peer.receive(&bytes, &mut self.rng));
        self.plan_all(slot, acts.unwrap_or_default());
        Ok(())
    }

    fn is_sending(&self, slot: u32) -> bool {
        self.slots[slot as usize].is_sending
    }

    fn is_busy(&self, slot: u32) -> bool {
        let of = &self.slots[slot as usize];
        of.is_sending || of.is_busy
    }

    fn close(&mut self, slot: u32, _: Close) {
        let of = &mut self.slots[slot as usize];
        assert!(of.peer.is_some(), "slot {slot} is open");
        *of = Slot { generation: of.generation + 1, ..Slot::default() };
    }

    fn poll(&mut self, timeout: Nanos, sink: &mut dyn Sink) -> io::Result<usize> {
        self.polls += 1;
        assert!(self.polls < POLLS_MAX, "the load never ends");
        let now = self.clock.read();
        let late = Nanos(pick(&mut self.rng, 20_000));
        let until = now + timeout;
        let first = self.calendar.first_key_value().map_or(until, |((at, _), _)| *at);
        if timeout > Nanos::ZERO {
            self.clock.advance_to(first.min(until) + late);
        }
        let events_max = 1 + pick(&mut self.rng, 32);
        for handled in 0..events_max {
            let Some(entry) = self.calendar.first_entry() else {
                return Ok(handled as usize);
            };
            if entry.key().0 > self.clock.read() {
                return Ok(handled as usize);
            }
            let (slot, generation, happens) = entry.remove();
            if self.slots[slot as usize].generation == generation {
                self.tell(slot, happens, sink);
            }
        }
        Ok(events_max as usize)
    }
}
