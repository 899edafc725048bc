//! DNS (RFC 1035): queries and their answers, over UDP, TCP and TLS.
//!
//! Messages as they stand on the wire (RFC 1035 §4.1), and the client's side of a connection or of
//! a source port.
//!
//! An **unmatched answer** has an id, name and type of no query under way: it is late, repeated, or
//! was never asked for (RFC 5452 §9.1). A **truncated answer** did not fit into its datagram. Its
//! operation is **diverted**: it goes on over TCP and ends there (RFC 7766 §5).

#[cfg(test)]
mod tests;

use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, Conversation, FlightId, OpEvent, Received,
    RequestRef, SocketKind, StreamEnd, TargetConversation, WorkerSetup,
};
use crate::reactor::WireRequest;
use knee_load::measure::{Outcome, Status};
use knee_load::rng::{self, Rng};
use knee_load::session::Fills;
use knee_load::spec::{Body, Cut, DnsQuestion, DnsSettings, HttpRequest, Part, Target};
use knee_load::time::Nanos;
use rand_core::RngCore as _;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

/// Length of the header (RFC 1035 §4.1.1).
pub const HEADER_BYTES: usize = 12;

/// The class of the Internet (RFC 1035 §3.2.4).
const CLASS_IN: u16 = 1;

/// What is read of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsHeader {
    /// The number that an answer has in common with its query.
    pub id: u16,
    /// Whether it is an answer (QR).
    pub is_answer: bool,
    /// The kind of query (OPCODE): 0 is a standard one.
    pub opcode: u8,
    /// Whether it was cut to the size of a datagram (TC).
    pub is_truncated: bool,
    /// The lower four bits of the response code.
    pub rcode: u16,
    /// Entries of the sections: questions, answers, authorities, additional records.
    pub counts: [u16; 4],
}

impl DnsHeader {
    /// The header at the begin of `message`; `None` where that is shorter.
    pub fn read(message: &[u8]) -> Option<DnsHeader> {
        let header = message.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let flags = word(2);
        Some(DnsHeader {
            id: word(0),
            is_answer: flags & 0x8000 != 0,
            opcode: (flags >> 11 & 0xF) as u8,
            is_truncated: flags & 0x0200 != 0,
            rcode: flags & 0xF,
            counts: [word(4), word(6), word(8), word(10)],
        })
    }
}

/// Appends a query as `settings` say, with the id 0.
pub fn put_query(question: &DnsQuestion, settings: &DnsSettings, out: &mut Vec<u8>) {
    let (recursion, records) = (u8::from(!settings.no_recursion), u8::from(has_opt(settings)));
    out.extend_from_slice(&[0, 0, recursion, 0, 0, 1, 0, 0, 0, 0, 0, records]);
    out.extend_from_slice(&question.name);
    out.extend_from_slice(&question.kind.to_be_bytes());
    out.extend_from_slice(&CLASS_IN.to_be_bytes());
    if has_opt(settings) {
        let bytes = settings.edns_bytes.unwrap_or(EDNS_BYTES).to_be_bytes();
        let dnssec = if settings.dnssec { 0x80 } else { 0 };
        let kind = OPT.to_be_bytes();
        out.extend_from_slice(&[0, kind[0], kind[1], bytes[0], bytes[1], 0, 0, dnssec, 0, 0, 0]);
    }
}

/// The type of the record of EDNS.
const OPT: u16 = 41;

/// Length of the OPT record of a query (RFC 6891 §6.1.2).
const OPT_BYTES: usize = 11;

/// The largest answer that queries with EDNS permit unless another is given (RFC 9715 §3.2).
const EDNS_BYTES: u16 = 1232;

fn has_opt(settings: &DnsSettings) -> bool {
    settings.edns_bytes.is_some() || settings.dnssec
}

/// Whether a message repeats the question at the end of a query, whose name has no case (RFC 4343).
fn has_question(message: &[u8], query: &[u8]) -> bool {
    let Some((asked, repeated)) =
        query.get(HEADER_BYTES..).zip(message.get(HEADER_BYTES..query.len()))
    else {
        return false;
    };
    // Type and class are numbers, and have no letters.
    let name = asked.len() - 4;
    asked[name..] == repeated[name..] && asked[..name].eq_ignore_ascii_case(&repeated[..name])
}

/// A rule that an answer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsViolation {
    /// It ends within a name or a record.
    Short,
    /// A label has a type that does not exist.
    Label,
    /// A pointer in a name leads to itself, forward or out of the message.
    Pointer,
    /// A name is too long.
    Name,
    /// The data of a record are not those of its type.
    Data,
    /// Bytes follow its last record.
    Surplus,
}

/// With the section that has the rule.
impl fmt::Display for DnsViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DnsViolation::Short => "it ends within a record (RFC 1035 §4.1.3)",
            DnsViolation::Label => "a label is neither text nor pointer (RFC 1035 §4.1.4)",
            DnsViolation::Pointer => "a pointer leads to no name before it (RFC 1035 §4.1.4)",
            DnsViolation::Name => "a name has over 255 bytes (RFC 1035 §2.3.4)",
            DnsViolation::Data => "the data of a record do not fit its type (RFC 1035 §3.3)",
            DnsViolation::Surplus => "bytes follow its last record (RFC 1035 §4.1)",
        })
    }
}

/// Checks that a message holds all that its header counts, and no more; that each name ends; and
/// that records of the commonest types have the data of their type. Returns the whole response
/// code: its upper eight bits stand in the record of EDNS (RFC 6891 §6.1.3).
///
/// # Errors
/// The first rule that it breaks.
pub fn check_answer(message: &[u8], header: &DnsHeader) -> Result<u16, DnsViolation> {
    let (mut at, mut rcode) = (HEADER_BYTES, header.rcode);
    let [questions, records @ ..] = header.counts;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    for _ in 0..records.into_iter().map(u32::from).sum::<u32>() {
        at = after_name(message, at)?;
        let fixed = message.get(at..).and_then(<[u8]>::first_chunk::<RECORD_FIXED_BYTES>);
        let fixed = fixed.ok_or(DnsViolation::Short)?;
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        if word(0) == OPT {
            rcode |= u16::from(fixed[4]) << 4;
        }
        let data = at + RECORD_FIXED_BYTES;
        at = data + usize::from(word(8));
        if at > message.len() {
            return Err(DnsViolation::Short);
        }
        if after_data(message, (word(0), word(2)), data)?.is_some_and(|end| end != at) {
            return Err(DnsViolation::Data);
        }
    }
    match at.cmp(&message.len()) {
        Ordering::Less => Err(DnsViolation::Surplus),
        Ordering::Equal => Ok(rcode),
        Ordering::Greater => Err(DnsViolation::Short),
    }
}

/// Bytes of a record between its name and its data (RFC 1035 §4.1.3).
const RECORD_FIXED_BYTES: usize = 10;

/// Where the data of a record of this type and class end that begin at `at`; `None` where that does
/// not follow from them (RFC 1035 §3.3 and §3.4, RFC 3596 §2.2).
#[inline]
fn after_data(
    message: &[u8],
    kind_and_class: (u16, u16),
    at: usize,
) -> Result<Option<usize>, DnsViolation> {
    Ok(Some(match kind_and_class {
        // A, AAAA
        (1, CLASS_IN) => at + 4,
        (28, CLASS_IN) => at + 16,
        // NS, CNAME, PTR
        (2 | 5 | 12, _) => after_name(message, at)?,
        // SOA
        (6, _) => after_name(message, after_name(message, at)?)? + 20,
        // MX
        (15, _) => after_name(message, at + 2)?,
        _ => return Ok(None),
    }))
}

/// Where a name ends that begins at `at`. Each pointer in it leads to what stands before, so that
/// it ends (RFC 1035 §4.1.4).
#[inline]
pub fn after_name(message: &[u8], at: usize) -> Result<usize, DnsViolation> {
    let (mut here, mut begin, mut bytes) = (at, at, 0);
    let mut end = None;
    loop {
        let &length = message.get(here).ok_or(DnsViolation::Short)?;
        match length {
            0 => return Ok(end.unwrap_or(here + 1)),
            1..=63 => {
                bytes += 1 + usize::from(length);
                if bytes >= NAME_BYTES_MAX {
                    return Err(DnsViolation::Name);
                }
                here += 1 + usize::from(length);
            }
            0xC0.. => {
                let &low = message.get(here + 1).ok_or(DnsViolation::Short)?;
                let to = usize::from(u16::from_be_bytes([length & 0x3F, low]));
                let end = *end.get_or_insert(here + 2);
                if to < HEADER_BYTES || to >= begin {
                    return Err(DnsViolation::Pointer);
                }
                if to == HEADER_BYTES {
                    // The first name of the message has been checked.
                    return Ok(end);
                }
                (here, begin) = (to, to);
            }
            _ => return Err(DnsViolation::Label),
        }
    }
}

/// Most bytes of a name, its end included (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// Ids of DNS.
const IDS: usize = DnsSettings::QUERIES_MAX as usize;

/// State that the connections of one worker share.
#[derive(Debug)]
pub struct DnsShared {
    settings: DnsSettings,
    /// Each query behind its length, with the id 0.
    queries: Vec<Vec<u8>>,
    /// Bytes behind the question of each.
    opt_bytes: usize,
    /// Texts and holes of the questions that are filled in each time; no cuts for others.
    open: Vec<Vec<Cut>>,
    /// First ids.
    rng: Rng,
}

impl DnsShared {
    /// For the questions of `target`. First ids come from this worker's stream of `seed`.
    pub fn new(target: &Target, settings: &DnsSettings, (seed, worker): (u64, u64)) -> DnsShared {
        DnsShared {
            settings: *settings,
            queries: queries_of(target, settings).map(|query| behind_length(&query)).collect(),
            opt_bytes: if has_opt(settings) { OPT_BYTES } else { 0 },
            open: target.requests.iter().map(open_question).collect(),
            rng: rng::stream(seed, rng::MASKS + worker),
        }
    }
}

/// The cuts of a question with holes; none of another.
fn open_question(request: &HttpRequest) -> Vec<Cut> {
    let has_holes = request.holes.iter().any(|hole| hole.part == Part::Path);
    if has_holes { request.cut(Part::Path) } else { Vec::new() }
}

/// The queries of a target, with the id 0. Their names are valid where the target was resolved; one
/// that is not, and one with holes, asks for the root.
fn queries_of(target: &Target, settings: &DnsSettings) -> impl Iterator<Item = Vec<u8>> {
    target.requests.iter().map(|request| {
        let root = DnsQuestion { name: vec![0], kind: 1 };
        let mut query = Vec::new();
        let question = DnsQuestion::of_path(&request.path).unwrap_or(root);
        put_query(&question, settings, &mut query);
        query
    })
}

fn behind_length(message: &[u8]) -> Vec<u8> {
    let length = message.len() as u16;
    [&length.to_be_bytes(), message].concat()
}

/// Queries under way over one connection, by id.
#[derive(Debug)]
pub struct Dns {
    state: ConnectionState,
    /// What is under way, each at the place of its id. There is one for each query that may be,
    /// rounded up to a power of two.
    asked: Box<[Asked]>,
    under_way: u32,
    /// Queries under way that were filled in, by id.
    filled: HashMap<u16, Vec<u8>>,
    /// Operations whose question is none once it is filled in.
    unfit: Vec<FlightId>,
    /// The id that is tried next. Each has its turn, so that one that timed out is used again as
    /// late as possible.
    next: u16,
    /// The id whose place is looked at first for one that times out: they do so nearly in order.
    oldest: u16,
    /// Over TCP: what has come of a message and its length.
    partial: Vec<u8>,
}

/// A query under way, or none.
#[derive(Clone, Copy, Debug)]
struct Asked {
    op: FlightId,
    /// Number of the request plus one; 0: none.
    request: u32,
    id: u16,
}

const NOTHING: Asked = Asked { op: 0, request: 0, id: 0 };

impl TargetConversation for Dns {
    type Settings = DnsSettings;

    fn shared(settings: &DnsSettings, worker: &WorkerSetup<'_>) -> DnsShared {
        let queries_max = settings.queries_max.min(worker.streams_max);
        let settings = DnsSettings { queries_max, ..*settings };
        DnsShared::new(worker.target, &settings, worker.seed)
    }

    fn wire_requests(settings: &DnsSettings, target: &Target) -> Vec<WireRequest> {
        let wire = |query: Vec<u8>| {
            let bytes = if settings.over_tcp { behind_length(&query) } else { query };
            WireRequest::new(bytes, &Body::default())
        };
        queries_of(target, settings).map(wire).collect()
    }

    fn is_open(&self) -> bool {
        true
    }
}

impl Conversation for Dns {
    type Shared = DnsShared;

    const LEAVES_AT_ONCE: bool = false;

    #[inline]
    fn socket(shared: &DnsShared) -> SocketKind {
        if shared.settings.over_tcp { SocketKind::Stream } else { SocketKind::Datagram }
    }

    fn established(cx: &mut CallContext<'_, DnsShared>) -> Dns {
        let next = cx.shared.rng.next_u32() as u16;
        let places = cx.shared.settings.queries_max.next_power_of_two() as usize;
        Dns {
            state: ConnectionState::Open,
            asked: vec![NOTHING; places].into_boxed_slice(),
            under_way: 0,
            filled: HashMap::new(),
            unfit: Vec::new(),
            next,
            oldest: next,
            partial: Vec::new(),
        }
    }

    #[inline]
    fn capacity(&self, shared: &DnsShared) -> Capacity {
        let limit = match self.state {
            ConnectionState::Open => shared.settings.queries_max,
            ConnectionState::Closing | ConnectionState::Broken => 0,
        };
        let operations = limit.saturating_sub(self.under_way);
        Capacity { operations, is_targets_limit: false }
    }

    #[inline]
    fn start(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        cx: &mut CallContext<'_, DnsShared>,
    ) {
        let open = &cx.shared.open[request.number];
        let filled = if open.is_empty() {
            None
        } else if let Some(query) = filled_query(open, request.fills, &cx.shared.settings) {
            Some(query)
        } else {
            return self.unfit.push(op);
        };
        // There is a free place: no more queries than places are under way.
        while self.asked[self.place_of(self.next)].request != 0 {
            self.next = self.next.wrapping_add(1);
        }
        let id = self.next;
        self.next = id.wrapping_add(1);
        let place = self.place_of(id);
        self.asked[place] = Asked { op, request: request.number as u32 + 1, id };
        self.under_way += 1;
        let out = cx.out.bytes();
        let at = out.len() + SocketKind::BORDER_BYTES;
        out.extend_from_slice(filled.as_ref().unwrap_or(&cx.shared.queries[request.number]));
        out[at..at + 2].copy_from_slice(&id.to_be_bytes());
        if let Some(query) = filled {
            self.filled.insert(id, query);
        }
        cx.events.push(OpEvent::Written(op));
        if self.under_way as usize == IDS {
            cx.events.push(OpEvent::Exhausted);
        }
    }

    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, DnsShared>) {
        if self.state == ConnectionState::Broken {
            return;
        }
        if !cx.shared.settings.over_tcp {
            return self.on_message(input.bytes, 0, cx);
        }
        let mut come = std::mem::take(&mut self.partial);
        if come.is_empty() {
            let left = self.on_stream(input.bytes, cx);
            come.extend_from_slice(left);
        } else {
            come.extend_from_slice(input.bytes);
            let left = self.on_stream(&come, cx).len();
            come.drain(..come.len() - left);
        }
        self.partial = come;
    }

    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, DnsShared>) {
        self.handle_timeout(cx);
        for asked in &mut self.asked {
            if asked.request != 0 {
                cx.events.push(OpEvent::Failed { op: asked.op, outcome: Outcome::Closed });
                *asked = NOTHING;
            }
        }
        self.under_way = 0;
        self.filled.clear();
        self.state = end.state_after(self.state);
    }

    fn cancel(&mut self, op: FlightId, _: &mut CallContext<'_, DnsShared>) -> AfterCancel {
        self.unfit.retain(|unfit| *unfit != op);
        let is_it = |asked: &&Asked| asked.request != 0 && asked.op == op;
        let (later, first) = self.asked.split_at(self.place_of(self.oldest));
        if let Some(&Asked { id, .. }) = first.iter().chain(later).find(is_it) {
            self.forget(id);
            self.oldest = id.wrapping_add(1);
        }
        AfterCancel::GoesOn
    }

    /// Questions that are none fail as soon as the caller can hear of it.
    #[inline]
    fn poll_timeout(&self) -> Nanos {
        if self.unfit.is_empty() { Nanos::MAX } else { Nanos::ZERO }
    }

    fn handle_timeout(&mut self, cx: &mut CallContext<'_, DnsShared>) {
        for op in self.unfit.drain(..) {
            cx.events.push(OpEvent::Failed { op, outcome: Outcome::UnfitValue });
        }
    }

    #[inline]
    fn state(&self) -> ConnectionState {
        self.state
    }
}

/// A query behind its length, with the id 0. `None` where its question is none.
fn filled_query(question: &[Cut], fills: &Fills, settings: &DnsSettings) -> Option<Vec<u8>> {
    let mut path = Vec::new();
    question.iter().for_each(|cut| cut.put(fills, &mut path));
    let question = DnsQuestion::of_path(std::str::from_utf8(&path).ok()?).ok()?;
    let mut query = Vec::new();
    put_query(&question, settings, &mut query);
    Some(behind_length(&query))
}

impl Dns {
    /// The place of an id among what is under way.
    #[inline]
    fn place_of(&self, id: u16) -> usize {
        usize::from(id) & (self.asked.len() - 1)
    }

    /// An id is free again.
    #[inline]
    fn forget(&mut self, id: u16) {
        let place = self.place_of(id);
        self.asked[place] = NOTHING;
        self.under_way -= 1;
        if !self.filled.is_empty() {
            self.filled.remove(&id);
        }
    }

    /// Takes the whole messages at the begin of a stream. Returns what is left of it.
    fn on_stream<'a>(
        &mut self,
        mut bytes: &'a [u8],
        cx: &mut CallContext<'_, DnsShared>,
    ) -> &'a [u8] {
        while let Some((length, rest)) = bytes.split_first_chunk::<{ SocketKind::BORDER_BYTES }>()
            && let Some((message, next)) = rest.split_at_checked(u16::from_be_bytes(*length).into())
        {
            self.on_message(message, length.len(), cx);
            bytes = next;
        }
        bytes
    }

    /// Ends the operation that a message answers; `framing` bytes stood before it.
    #[inline]
    fn on_message(&mut self, message: &[u8], framing: usize, cx: &mut CallContext<'_, DnsShared>) {
        let Some((op, header)) = self.answered(message, cx.shared) else {
            return cx.events.push(OpEvent::Unmatched);
        };
        self.forget(header.id);
        cx.events.push(OpEvent::Received { op, bytes: (message.len() + framing) as u64 });
        if header.is_truncated {
            let status = Status::DnsTruncated;
            return cx.events.push(match cx.shared.settings.after_truncation() {
                Some(_) => OpEvent::Diverted(op),
                None => OpEvent::Answered { op, status },
            });
        }
        match check_answer(message, &header) {
            Ok(rcode) => cx.events.push(OpEvent::Answered { op, status: Status::Dns(rcode) }),
            Err(violation) => {
                cx.events.push(OpEvent::Failed { op, outcome: Outcome::Malformed });
                cx.events.push(OpEvent::Violated(violation.to_string()));
            }
        }
    }

    /// The operation whose id, name and type a message has. An error may leave the question out,
    /// as a server that cannot read it does.
    #[inline]
    fn answered(&self, message: &[u8], shared: &DnsShared) -> Option<(FlightId, DnsHeader)> {
        let header = DnsHeader::read(message).filter(|h| h.is_answer && h.opcode == 0)?;
        let Asked { op, request, id } = self.asked[self.place_of(header.id)];
        let number = (request as usize).checked_sub(1).filter(|_| id == header.id)?;
        let query = self.filled.get(&header.id).unwrap_or(&shared.queries[number]);
        let query = &query[SocketKind::BORDER_BYTES..query.len() - shared.opt_bytes];
        let is_bare = header.counts[0] == 0 && header.rcode != 0 && message.len() == HEADER_BYTES;
        (is_bare || (header.counts[0] == 1 && has_question(message, query))).then_some((op, header))
    }
}
