//! Requests as fields, and their header blocks on one connection.
//!
//! Recurring fields go into the peer's dynamic table. The first request with such a field sends it
//! in full, later ones send a byte or two. All chosen fields fit the table together, so none is
//! ever evicted and every index follows from a count. Paths that do not fit the table are sent in
//! full each time.

use super::call::CallAnswer;
use super::hpack::{
    ENTRY_OVERHEAD, Indexing, TABLE_BYTES_DEFAULT, put_field, put_indexed, put_table_size,
};
use crate::exchange::RequestRef;
use crate::exchange::http1::put_decimal;
use knee_load::messages::TimedMessages;
use knee_load::session::{Fills, MadeRequest};
use knee_load::spec::{Body, Cut, Hole, HttpRequest, Part, Protocol, Target};
use std::collections::HashMap;

/// Entries of the static table. The dynamic table's indices follow.
const STATIC_ENTRIES: usize = 61;

/// Remembered blocks, by the lowest bits of the request's number.
const REMEMBERED: usize = 8;

/// Longest remembered block, in bytes.
const REMEMBERED_BYTES: usize = 26;

/// All requests of a target, for all connections of one thread.
#[derive(Debug)]
pub(super) struct Requests {
    requests: Vec<Request>,
    /// Fields for the dynamic table, those that save the most first. About 120 fit at most.
    entries: Vec<Entry>,
    /// Bytes of all other fields.
    fixed: Vec<u8>,
    /// Fields with holes.
    filled: Vec<FilledField>,
}

/// A field whose value has holes.
#[derive(Debug)]
struct FilledField {
    name: Vec<u8>,
    value: Vec<Segment>,
}

/// A part of a text with holes.
#[derive(Debug)]
pub(crate) enum Segment {
    /// A text or a hole.
    Part(Cut),
    /// The length of the body.
    Length,
}

#[derive(Debug)]
struct Request {
    pieces: Vec<Piece>,
    /// It has holes.
    is_filled: bool,
    /// Its body, if that has holes.
    filled_body: Option<Vec<Segment>>,
    body: Body,
    /// Its messages, if they leave at times of their own.
    timed: Option<Box<TimedMessages>>,
    is_head: bool,
    /// What is asked of the answers to a call of gRPC; `None` of others.
    call: Option<CallAnswer>,
}

/// A part of a block.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// Encoded bytes without the dynamic table.
    Fixed { from: u32, to: u32 },
    /// An entry of the dynamic table.
    Entry(u8),
    /// A field that has holes.
    Filled(u32),
}

#[derive(Debug)]
struct Entry {
    /// The field in full, to be remembered by the peer.
    remember: Vec<u8>,
    /// The field in full, not to be remembered.
    pass: Vec<u8>,
    /// Size of the table with this entry and all before it.
    size_up_to: usize,
}

pub(crate) type TextField = (String, String);

/// A field of a request.
pub(crate) enum Field {
    /// A constant field.
    Text(TextField),
    /// A field with the holes of this part; without a part, the length of a body with holes.
    Open { name: String, part: Option<Part> },
}

/// Cuts a part of a request at its holes.
pub(crate) fn cut(request: &HttpRequest, part: Part) -> Vec<Segment> {
    request.cut(part).into_iter().map(Segment::Part).collect()
}

/// Appends a text, its holes filled.
pub(crate) fn put_segments(
    segments: &[Segment],
    (fills, body_bytes): (&Fills, usize),
    out: &mut Vec<u8>,
) {
    for segment in segments {
        match segment {
            Segment::Part(cut) => cut.put(fills, out),
            Segment::Length => put_decimal(body_bytes, out),
        }
    }
}

impl Requests {
    pub(super) fn new(target: &Target) -> Requests {
        let scheme = |number| if target.is_secured(number) { "https" } else { "http" };
        let all = target.requests.iter().enumerate();
        let all: Vec<Vec<Field>> = all.map(|(number, r)| fields(r, scheme(number))).collect();
        let is_grpc = matches!(target.protocol, Protocol::Grpc(_));
        let mut made = Requests {
            requests: Vec::with_capacity(all.len()),
            entries: Vec::new(),
            fixed: Vec::new(),
            filled: Vec::new(),
        };
        let weighted = all.iter().zip(&target.requests).flat_map(|(fields, request)| {
            fields.iter().filter_map(move |field| match field {
                Field::Text(text) => Some((text, request.weight)),
                Field::Open { .. } => None,
            })
        });
        let chosen = made.choose(weighted);
        for (fields, request) in all.iter().zip(&target.requests) {
            let mut pieces = Vec::new();
            for field in fields {
                match field {
                    Field::Text(text) => match chosen.get(text) {
                        Some(&entry) => pieces.push(Piece::Entry(entry)),
                        None => made.put_fixed(text, &mut pieces),
                    },
                    Field::Open { name, part } => {
                        pieces.push(Piece::Filled(made.filled.len() as u32));
                        let name = name.clone().into_bytes();
                        let value = part.map_or(vec![Segment::Length], |p| cut(request, p));
                        made.filled.push(FilledField { name, value });
                    }
                }
            }
            let in_body = |hole: &Hole| hole.part == Part::Body;
            pieces.shrink_to_fit();
            made.requests.push(Request {
                pieces,
                body: request.body.clone(),
                timed: request.timed.clone(),
                is_head: request.method == "HEAD",
                is_filled: !request.holes.is_empty(),
                filled_body: request.holes.iter().any(in_body).then(|| cut(request, Part::Body)),
                call: is_grpc.then(|| CallAnswer {
                    is_stream: request.answers_stream,
                    accepts_compression: request.has_header("grpc-accept-encoding"),
                }),
            });
        }
        made
    }

    pub(super) fn body(&self, request: usize) -> &[u8] {
        &self.requests[request].body
    }

    /// The messages of a request, if they leave at times of their own.
    #[inline]
    pub(super) fn timed(&self, request: usize) -> Option<&TimedMessages> {
        self.requests[request].timed.as_deref()
    }

    /// Whether a request has holes.
    #[inline]
    pub(super) fn is_filled(&self, request: usize) -> bool {
        self.requests[request].is_filled
    }

    /// The body of a request whose body has holes.
    #[inline]
    pub(super) fn filled_body(&self, request_ref: RequestRef<'_>) -> Option<Vec<u8>> {
        if let Some(made) = request_ref.fills.made() {
            return Some(made.body.to_vec());
        }
        let segments = self.requests[request_ref.number].filled_body.as_ref()?;
        let mut body = Vec::new();
        put_segments(segments, (request_ref.fills, 0), &mut body);
        Some(body)
    }

    /// What is asked of the answers to a request, if it is a call of gRPC.
    #[inline]
    pub(super) fn call(&self, request: usize) -> Option<CallAnswer> {
        self.requests[request].call
    }

    pub(super) fn is_head(&self, request: usize) -> bool {
        self.requests[request].is_head
    }

    /// Chooses fields for the dynamic table: those that save the most bytes for their size.
    fn choose<'a>(
        &mut self,
        all: impl Iterator<Item = (&'a TextField, u32)>,
    ) -> HashMap<&'a TextField, u8> {
        let mut uses: HashMap<&TextField, (u64, usize)> = HashMap::new();
        for (field, weight) in all {
            let first = uses.len();
            uses.entry(field).or_insert((0, first)).0 += u64::from(weight);
        }
        let mut rows = Vec::new();
        for (field, (weight, first)) in uses {
            let pass = literal(field, Indexing::Without);
            if pass.len() > 1 {
                let size = field.0.len() + field.1.len() + ENTRY_OVERHEAD;
                let worth = weight as f64 * (pass.len() - 1) as f64 / size as f64;
                rows.push((worth, first, field, pass, size));
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut chosen = HashMap::new();
        let mut size_up_to = 0;
        for (_, _, field, pass, size) in rows {
            if size_up_to + size > TABLE_BYTES_DEFAULT {
                continue;
            }
            size_up_to += size;
            chosen.insert(field, self.entries.len() as u8);
            self.entries.push(Entry {
                remember: literal(field, Indexing::Incremental),
                pass,
                size_up_to,
            });
        }
        chosen
    }

    fn put_fixed(&mut self, field: &TextField, pieces: &mut Vec<Piece>) {
        let from = self.fixed.len() as u32;
        self.fixed.extend_from_slice(&literal(field, Indexing::Without));
        let to = self.fixed.len() as u32;
        match pieces.last_mut() {
            Some(Piece::Fixed { to: end, .. }) if *end == from => *end = to,
            _ => pieces.push(Piece::Fixed { from, to }),
        }
    }
}

fn literal((name, value): &TextField, indexing: Indexing) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_field(&mut bytes, name.as_bytes(), value.as_bytes(), indexing);
    bytes
}

/// Fields of a request in order (RFC 9113 §8.3.1), without those of HTTP/1.1 alone (§8.2.2).
pub(crate) fn fields(request: &HttpRequest, scheme: &str) -> Vec<Field> {
    let host = request.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case("host"));
    let authority = host.map_or(&request.host, |(_, value)| value);
    let mut fields = Vec::with_capacity(request.headers.len() + 7);
    let has = |part: Part| request.holes.iter().any(|hole| hole.part == part);
    let mut put = |name: &str, value: &str, part: Option<Part>| {
        let name = name.to_ascii_lowercase();
        fields.push(match part.filter(|part| has(*part)) {
            Some(Part::Body) => Field::Open { name, part: None },
            Some(part) => Field::Open { name, part: Some(part) },
            None => Field::Text((name, value.to_owned())),
        });
    };
    put(":method", &request.method, None);
    put(":scheme", scheme, None);
    put(":authority", authority, None);
    put(":path", &request.path, Some(Part::Path));
    let mut unless_given = |name: &str, value: &str, part| {
        if !request.has_header(name) {
            put(name, value, part);
        }
    };
    let agent = concat!("knee/", env!("CARGO_PKG_VERSION"));
    unless_given("user-agent", agent, None);
    // A call of gRPC accepts what it is by its type, and its messages tell their own lengths.
    let mut headers = request.headers.iter();
    let is_call =
        headers.any(|(n, v)| n.eq_ignore_ascii_case("content-type") && v == "application/grpc");
    if !is_call {
        unless_given("accept", "*/*", None);
    }
    let implied = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if !is_call && (implied || !request.body.is_empty() || has(Part::Body)) {
        let length = request.body.len().to_string();
        unless_given("content-length", &length, Some(Part::Body));
    }
    for (number, (name, value)) in request.headers.iter().enumerate() {
        if is_for_http2(name, value) {
            put(name, value, Some(Part::Header(number as u16)));
        }
    }
    fields
}

/// Hands each field of a request that was made at run time to `put`, in order.
pub(crate) fn made_fields(made: &MadeRequest, put: &mut impl FnMut(&str, &[u8])) {
    let given = |name: &str| made.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    let authority = given("host").map_or(&*made.authority, |(_, value)| value);
    put(":method", made.method.as_bytes());
    put(":scheme", if made.is_secure { &b"https"[..] } else { b"http" });
    put(":authority", authority.as_bytes());
    put(":path", &made.path);
    if given("user-agent").is_none() {
        put("user-agent", concat!("knee/", env!("CARGO_PKG_VERSION")).as_bytes());
    }
    if let Some(length) = made.content_length()
        && given("content-length").is_none()
    {
        put("content-length", length.to_string().as_bytes());
    }
    for (name, value) in &made.headers {
        if is_for_http2(name, value) {
            put(&name.to_ascii_lowercase(), value.as_bytes());
        }
    }
}

fn is_for_http2(name: &str, value: &str) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    let of_connection = ["host", "connection", "keep-alive", "proxy-connection"];
    let dropped = of_connection.into_iter().chain(["transfer-encoding", "upgrade"]).any(is);
    !dropped && (!is("te") || value.eq_ignore_ascii_case("trailers"))
}

/// State of the dynamic table of one connection's peer, as far as [`Requests`] use it.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Number of each entry in the order of insertion, from 1; 0 if absent.
    inserted: Vec<u8>,
    count: u8,
    /// Number of first entries that fit the table together.
    usable: u8,
    /// Size of the peer's table.
    table_bytes: usize,
    /// Change of the table's size that the next block must announce.
    resized: Option<Resized>,
    remembered: [Remembered; REMEMBERED],
}

/// A change of the table's size, not announced yet.
#[derive(Clone, Copy, Debug)]
struct Resized {
    /// The table is emptied first, so that its content is known.
    is_emptied: bool,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    request: u32,
    length: u8,
    bytes: [u8; REMEMBERED_BYTES],
}

const NOTHING: Remembered =
    Remembered { request: u32::MAX, length: 0, bytes: [0; REMEMBERED_BYTES] };

impl Blocks {
    pub(super) fn new(requests: &Requests) -> Blocks {
        Blocks {
            inserted: vec![0; requests.entries.len()],
            count: 0,
            usable: requests.entries.len() as u8,
            table_bytes: TABLE_BYTES_DEFAULT,
            resized: None,
            remembered: [NOTHING; REMEMBERED],
        }
    }

    /// Limits the peer's table to `bytes` from now on.
    pub(super) fn set_limit(&mut self, bytes: u32, requests: &Requests) {
        let bytes = (bytes as usize).min(TABLE_BYTES_DEFAULT);
        if bytes == self.table_bytes {
            return;
        }
        let shrinks = bytes < self.table_bytes;
        self.resized = Some(Resized {
            is_emptied: shrinks || self.resized.is_some_and(|before| before.is_emptied),
            bytes,
        });
        if shrinks {
            self.inserted.fill(0);
            self.count = 0;
        }
        self.table_bytes = bytes;
        let fit = requests.entries.iter().take_while(|entry| entry.size_up_to <= bytes);
        self.usable = fit.count() as u8;
        self.remembered = [NOTHING; REMEMBERED];
    }

    /// Appends the block of a request.
    #[inline]
    pub(super) fn put(&mut self, request: usize, requests: &Requests, out: &mut Vec<u8>) {
        let known = &self.remembered[request % REMEMBERED];
        if known.request == request as u32 {
            out.extend_from_slice(&known.bytes[..usize::from(known.length)]);
            return;
        }
        self.put_anew(request, requests, out);
    }

    /// Appends the block of a request with holes: their values, and the length of the body.
    pub(super) fn put_filled(
        &mut self,
        request: usize,
        fills: (&Fills, usize),
        requests: &Requests,
        out: &mut Vec<u8>,
    ) {
        let mut changed = self.put_sizes(out);
        let mut value = Vec::new();
        for piece in &requests.requests[request].pieces {
            let Piece::Filled(field) = *piece else {
                changed |= self.put_piece(*piece, requests, out);
                continue;
            };
            let field = &requests.filled[field as usize];
            value.clear();
            put_segments(&field.value, fills, &mut value);
            // As in HTTP/1.1, a field that is nothing but a hole is left out without a value.
            if !value.is_empty() {
                // A field has no blank at its ends (RFC 9113 §8.2.1).
                put_field(out, &field.name, value.trim_ascii(), Indexing::Without);
            }
        }
        if changed {
            self.remembered = [NOTHING; REMEMBERED];
        }
    }

    /// Appends the block of a request that was made at run time.
    pub(super) fn put_made(&mut self, made: &MadeRequest, out: &mut Vec<u8>) {
        if self.put_sizes(out) {
            self.remembered = [NOTHING; REMEMBERED];
        }
        made_fields(made, &mut |name, value| {
            put_field(out, name.as_bytes(), value.trim_ascii(), Indexing::Without);
        });
    }

    /// Appends a piece without holes. Returns whether that changed the peer's table.
    #[inline]
    fn put_piece(&mut self, piece: Piece, requests: &Requests, out: &mut Vec<u8>) -> bool {
        let entry = match piece {
            Piece::Fixed { from, to } => {
                out.extend_from_slice(&requests.fixed[from as usize..to as usize]);
                return false;
            }
            Piece::Entry(entry) => entry,
            Piece::Filled(_) => return false,
        };
        let inserted = &mut self.inserted[usize::from(entry)];
        if *inserted > 0 {
            put_indexed(out, STATIC_ENTRIES + usize::from(self.count - *inserted) + 1);
        } else if entry < self.usable {
            out.extend_from_slice(&requests.entries[usize::from(entry)].remember);
            self.count += 1;
            *inserted = self.count;
            return true;
        } else {
            out.extend_from_slice(&requests.entries[usize::from(entry)].pass);
        }
        false
    }

    fn put_anew(&mut self, request: usize, requests: &Requests, out: &mut Vec<u8>) {
        let start = out.len();
        let mut changed = self.put_sizes(out);
        for piece in &requests.requests[request].pieces {
            changed |= self.put_piece(*piece, requests, out);
        }
        if changed {
            self.remembered = [NOTHING; REMEMBERED];
            return;
        }
        let block = &out[start..];
        if block.len() <= REMEMBERED_BYTES {
            let known = &mut self.remembered[request % REMEMBERED];
            known.request = request as u32;
            known.length = block.len() as u8;
            known.bytes[..block.len()].copy_from_slice(block);
        }
    }

    /// Announces due changes of the table's size. Returns whether there were any.
    fn put_sizes(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(resized) = self.resized.take() else {
            return false;
        };
        if resized.is_emptied && resized.bytes > 0 {
            put_table_size(out, 0);
        }
        put_table_size(out, resized.bytes);
        true
    }
}

#[cfg(test)]
mod tests;
