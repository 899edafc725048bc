//! What is spoken over a connection once bytes can be carried: operations in, bytes out; bytes in,
//! what became of the operations.
//!
//! Nothing here reads, writes, waits or knows the time, so the same code runs over epoll, io_uring,
//! TLS, a test's byte slice and a fuzzer.

pub mod http1;
pub mod http2;

use knee_core::measure::Outcome;
use knee_core::session::{Fills, ResponseReaders};
use std::ops::{Deref, DerefMut};

/// The most interim responses to one request.
pub(crate) const INTERIMS_MAX: u8 = 100;

/// The number of an operation under way, by which its connection and its pool both know it.
pub type FlightId = u32;

/// One connection's application protocol, from its establishment to its end.
pub trait Exchange: Sized {
    /// What all connections of a worker share: the requests in the form that the protocol sends,
    /// and caches.
    type Shared;

    /// Whether more than one operation may be under way over a connection. Where not, what is to be
    /// sent for one goes out at once; otherwise once all that is due has begun.
    const MULTIPLEXED: bool;

    /// A connection that has just been established; what goes out before any operation is put into
    /// `out`.
    fn established(shared: &mut Self::Shared, out: &mut Outbox) -> Self;

    /// How many more operations may begin now, and whose limit it is.
    fn room(&self, shared: &Self::Shared) -> Room;

    /// Begins an operation. There was room for it.
    fn begin(
        &mut self,
        op: FlightId,
        asked: Asked<'_>,
        shared: &mut Self::Shared,
        out: &mut Outbox,
        told: &mut Tell,
    );

    /// The next bytes of the connection, all that have arrived, never none. What has to be answered
    /// is put into `out`.
    fn feed(&mut self, bytes: &[u8], shared: &mut Self::Shared, out: &mut Outbox, told: &mut Tell);

    /// All that was put into `out` so far is with the kernel: where requests wait for room, their
    /// next bytes may follow.
    fn sent(&mut self, shared: &mut Self::Shared, out: &mut Outbox, told: &mut Tell);

    /// The peer ended its side of the stream. Tells the end of every operation under way.
    fn ended(&mut self, end: StreamEnd, told: &mut Tell);

    /// An operation is given up by the pool, which says no more of it. Whether the connection may
    /// go on without it.
    fn cancel(&mut self, op: FlightId, out: &mut Outbox) -> bool;

    /// What the connection may still be used for.
    fn standing(&self) -> Standing;
}

/// What an operation asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The number of its request.
    pub request: usize,
    /// What that request's holes are filled with.
    pub fills: &'a Fills,
}

/// A request without holes.
impl From<usize> for Asked<'static> {
    fn from(request: usize) -> Asked<'static> {
        static NOTHING: Fills = Fills::new();
        Asked {
            request,
            fills: &NOTHING,
        }
    }
}

/// What a connection tells, in order; and where goes what is read of responses.
#[derive(Debug, Default)]
pub struct Tell {
    told: Vec<Told>,
    /// The responses that are read, where any is.
    pub readings: Option<Box<ResponseReaders>>,
}

impl Tell {
    /// Where what comes for an operation is to go as well, if its response is read.
    #[inline]
    pub fn reading(&mut self, op: FlightId) -> Option<&mut ResponseReaders> {
        let readings = self.readings.as_deref_mut()?;
        readings.reads(op).then_some(readings)
    }
}

impl Deref for Tell {
    type Target = Vec<Told>;

    #[inline]
    fn deref(&self) -> &Vec<Told> {
        &self.told
    }
}

impl DerefMut for Tell {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<Told> {
        &mut self.told
    }
}

/// How many more operations a connection has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// So many.
    pub operations: u32,
    /// Whether it is the target that permits no more, and not what was configured.
    pub is_targets_limit: bool,
}

/// What a connection may still be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// More operations, as far as there is room.
    #[default]
    Open,
    /// Those under way may end; none may begin. The target will close it, or the pool once they
    /// have.
    Closing,
    /// Nothing: it is to be closed at once.
    Broken,
}

/// How the peer ended its side of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// A FIN, without TLS.
    Fin,
    /// A `close_notify` of TLS (RFC 8446 §6.1). The FIN is still to come.
    CloseNotify,
    /// A FIN over TLS without `close_notify`. Anyone on the path may have cut the stream.
    Cut,
}

impl StreamEnd {
    /// What a connection may be used for after this end, if `before` was permitted until then.
    pub fn standing_after(self, before: Standing) -> Standing {
        match self {
            StreamEnd::CloseNotify if before != Standing::Broken => Standing::Closing,
            _ => Standing::Broken,
        }
    }
}

/// What a connection tells of its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// All of its request has been put into the outbox. Only told where several operations may be
    /// under way: else a request is put in whole.
    Written(FlightId),
    /// So many bytes of its response came: the first of them come with the first of these.
    Received {
        /// The operation.
        op: FlightId,
        /// Bytes that are its own, heads and frames included; at least 1.
        bytes: u64,
    },
    /// Its response is whole.
    Answered {
        /// The operation.
        op: FlightId,
        /// The final status.
        status: u16,
    },
    /// It ends without a whole response.
    Failed {
        /// The operation.
        op: FlightId,
        /// How.
        outcome: Outcome,
    },
    /// The target has not processed it and never will, so that it may go again over another
    /// connection.
    Unprocessed(FlightId),
    /// The target broke the protocol's rules, and the operations that cannot go on for it have been
    /// told as failed: all of the connection, whose standing is then broken, or a single one. The
    /// rule, for people.
    Violated(String),
    /// The target ended operations that have been told as failed, though its rules are kept. How it
    /// said so, for people.
    Reset(String),
    /// After a whole response came what nobody asked for; told before that response, where both
    /// came together.
    Surplus,
}

/// What is to be sent over a connection, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// A request that goes out as it was registered, before `bytes`.
    request: Option<usize>,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Adds request number `request` as it was registered, whole. Nothing else may be in the
    /// outbox.
    #[inline]
    pub fn put_request(&mut self, request: usize) {
        debug_assert!(self.is_empty());
        self.request = Some(request);
    }

    /// What has been put in and not taken out yet, to be appended to.
    #[inline]
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether there is nothing to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.request.is_none() && self.bytes.is_empty()
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.request = None;
        self.bytes.clear();
    }

    /// Takes the registered request out.
    #[inline]
    pub fn take_request(&mut self) -> Option<usize> {
        self.request.take()
    }
}
