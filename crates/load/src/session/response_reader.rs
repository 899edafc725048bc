//! Values that are looked for in responses while they arrive.

use super::html::{LEVELS_MAX, NODES_MAX, ParsedPage, unescaped};
use super::jar;
use super::json::{CaptureState, JsonScan, Pointer, VALUE_BYTES_MAX, ValueCapture};
use super::plan::{Expectation, RequestStep, SessionPlan, Source};
use crate::digits;
use memchr::memmem::find;

/// Bytes of a body that are kept to show an unexpected response.
const SAMPLE_BYTES_MAX: usize = 160;

/// Bytes of `Set-Cookie` headers that are kept of one response.
const SET_COOKIES_BYTES_MAX: usize = 16 << 10;

/// Bytes of a page that are kept to look for patterns and elements in it.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// No session.
const NONE: u32 = u32::MAX;

/// Readers of the responses that one worker receives, by operation.
///
/// An exchange knows operations only, and tells what comes for them; whose session that is was
/// said when it began.
#[derive(Debug, Default)]
pub struct ResponseReaders {
    /// What is looked for, by request.
    probes: Vec<Probes>,
    /// The session of each operation.
    of_op: Vec<u32>,
    /// What was found, by session.
    readings: Vec<ResponseReader>,
    /// Whole responses, by session, where a script reads them; and most bytes of a body.
    kept: Vec<KeptResponse>,
    kept_max: usize,
}

/// A whole response.
#[derive(Clone, Debug, Default)]
pub struct KeptResponse {
    /// Its header lines, each with CR LF at its end.
    pub head: Vec<u8>,
    /// Its body, as far as it was read.
    pub body: Vec<u8>,
    /// Whether the body was longer.
    pub is_cut: bool,
    /// Whether the body is read at all.
    pub reads_body: bool,
}

/// What is looked for in the responses to one request.
#[derive(Debug, Default)]
struct Probes {
    pointers: Vec<Pointer>,
    /// Beside the values at the pointers, which come first.
    others: Vec<Source>,
    /// Where each expectation's value is, then each extraction's.
    places: Vec<Option<usize>>,
    wants_location: bool,
    /// Whether the body is kept until its end.
    wants_page: bool,
}

/// The values found in one response.
#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    request: u32,
    json: JsonScan,
    found: Vec<ValueCapture>,
    /// Of a stream, the values at the pointers in the messages so far, joined.
    joined: Vec<ValueCapture>,
    /// The body is a stream of messages: pointers are of each of them.
    is_split: bool,
    /// For each text that is looked for between two others, what may be a part of them.
    windows: Vec<Vec<u8>>,
    set_cookies: Vec<u8>,
    set_cookies_ends: Vec<u32>,
    location: Vec<u8>,
    sample: Vec<u8>,
    page: Vec<u8>,
    is_page_cut: bool,
    is_undecoded: bool,
}

impl Probes {
    fn new(step: &RequestStep) -> Probes {
        let expected = step.expect.iter().map(|expectation| match expectation {
            Expectation::Status(_) | Expectation::Time(_) => None,
            Expectation::Value { source, .. } => Some(source),
        });
        let extracted = step.extract.iter().map(|e| Some(&e.source));
        let sources: Vec<Option<&Source>> = expected.chain(extracted).collect();
        let mut probes = Probes { wants_location: step.redirects > 0, ..Probes::default() };
        for source in sources.iter().copied().flatten() {
            match source {
                Source::Status => {}
                Source::Json(pointer) => {
                    let pointer = Pointer::new(pointer);
                    if !probes.pointers.contains(&pointer) {
                        probes.pointers.push(pointer);
                    }
                }
                other if probes.others.contains(other) => {}
                other => probes.others.push(other.clone()),
            }
        }
        let place = |source: Option<&Source>| match source? {
            Source::Status => None,
            Source::Json(pointer) => {
                let pointer = Pointer::new(pointer);
                probes.pointers.iter().position(|p| *p == pointer)
            }
            other => {
                let at = probes.others.iter().position(|known| known == other)?;
                Some(probes.pointers.len() + at)
            }
        };
        probes.places = sources.into_iter().map(place).collect();
        probes.wants_page = probes.others.iter().any(Source::is_of_page);
        probes
    }
}

impl Source {
    fn is_of_page(&self) -> bool {
        matches!(self, Source::Regex { .. } | Source::Css { .. })
    }

    /// Ends the search with the end of the body. `tree` is the page as elements, once one of the
    /// probes has made it.
    fn end(&self, page: &[u8], tree: &mut Option<ParsedPage>, found: &mut ValueCapture) {
        match self {
            Source::Body if found.state == CaptureState::Coming => {
                found.state = CaptureState::Whole;
            }
            Source::Between { unescape: true, .. } if found.state == CaptureState::Whole => {
                let plain = unescaped(&found.bytes);
                found.set(&plain);
            }
            Source::Regex { pattern, group, unescape } => {
                let captures = pattern.regex.captures(page);
                let value = captures.as_ref().and_then(|groups| groups.get(usize::from(*group)));
                match value.map(|value| value.as_bytes()) {
                    Some(value) if *unescape => found.set(&unescaped(value)),
                    Some(value) => found.set(value),
                    None => {}
                }
            }
            Source::Css { selector, attribute } => {
                let tree = tree.get_or_insert_with(|| ParsedPage::read(page));
                match tree.value(selector, attribute.as_deref()) {
                    Some(value) => found.set(&value),
                    None if tree.is_cut => found.state = CaptureState::Unread,
                    None => {}
                }
            }
            Source::Header(_)
            | Source::Cookie(_)
            | Source::Between { .. }
            | Source::Body
            | Source::Json(_)
            | Source::Status => {}
        }
    }
}

impl ResponseReaders {
    /// Readers for a plan, with room for this number of sessions at once.
    pub fn new(plan: &SessionPlan, sessions: usize) -> ResponseReaders {
        ResponseReaders {
            probes: plan.requests.iter().map(Probes::new).collect(),
            of_op: Vec::new(),
            readings: vec![ResponseReader::default(); sessions],
            kept: match &plan.script {
                Some(_) => vec![KeptResponse::default(); sessions],
                None => Vec::new(),
            },
            kept_max: plan.script.as_ref().map_or(0, |script| script.body_max as usize),
        }
    }

    /// The whole response to a session's request, where a script reads it.
    pub fn kept(&mut self, session: u32) -> Option<&mut KeptResponse> {
        self.kept.get_mut(session as usize)
    }

    /// The operation `op` of a session begins, which asks for request number `request`.
    pub fn begin(&mut self, op: u32, session: u32, request: usize) {
        if self.of_op.len() <= op as usize {
            self.of_op.resize(op as usize + 1, NONE);
        }
        self.of_op[op as usize] = session;
        if let Some(kept) = self.kept.get_mut(session as usize) {
            kept.head.clear();
            kept.body.clear();
            kept.is_cut = false;
            return;
        }
        let probes = &self.probes[request];
        let reading = &mut self.readings[session as usize];
        reading.begin(request as u32, probes);
    }

    /// Whether the response of an operation is read.
    #[inline]
    pub fn reads(&self, op: u32) -> bool {
        self.of_op.get(op as usize).is_some_and(|s| *s != NONE)
    }

    /// A field of the head of the final response.
    pub fn field(&mut self, op: u32, name: &[u8], value: &[u8]) {
        if let Some(kept) = self.kept_of(op) {
            return kept.field(name, value);
        }
        if let Some((reading, probes)) = self.of(op) {
            reading.field(name, value, probes);
        }
    }

    /// Bytes of the body.
    pub fn body(&mut self, op: u32, bytes: &[u8]) {
        let most = self.kept_max;
        if let Some(kept) = self.kept_of(op) {
            return kept.put(bytes, most);
        }
        if let Some((reading, probes)) = self.of(op) {
            reading.body(bytes, probes);
        }
    }

    /// Whether anything is looked for in the body of an operation's response.
    pub fn reads_body(&self, op: u32) -> bool {
        let session = self.of_op.get(op as usize);
        let reading = session.and_then(|session| self.readings.get(*session as usize));
        let probes = reading.and_then(|reading| self.probes.get(reading.request as usize));
        let is_in_head = |probe: &Source| matches!(probe, Source::Header(_) | Source::Cookie(_));
        probes.is_some_and(|probes| {
            !probes.pointers.is_empty() || !probes.others.iter().all(is_in_head)
        })
    }

    /// The body was compressed and could not be decoded.
    pub fn undecoded(&mut self, op: u32) {
        if let Some((reading, _)) = self.of(op) {
            reading.is_undecoded = true;
        }
    }

    /// The body is a stream of messages, which come one by one beside it.
    pub fn split(&mut self, op: u32) {
        if let Some((reading, _)) = self.of(op) {
            reading.is_split = true;
        }
    }

    /// Bytes of a message of the stream; `None`: it is complete.
    pub fn message(&mut self, op: u32, bytes: Option<&[u8]>) {
        if let Some((reading, probes)) = self.of(op) {
            reading.message(bytes, probes);
        }
    }

    fn kept_of(&mut self, op: u32) -> Option<&mut KeptResponse> {
        if self.kept.is_empty() {
            return None;
        }
        let session = *self.of_op.get(op as usize)?;
        self.kept.get_mut(session as usize)
    }

    fn of(&mut self, op: u32) -> Option<(&mut ResponseReader, &Probes)> {
        let session = *self.of_op.get(op as usize)?;
        let reading = self.readings.get_mut(session as usize)?;
        let probes = self.probes.get(reading.request as usize)?;
        Some((reading, probes))
    }

    /// Ends the response to a session: what was found in it.
    pub(super) fn end(&mut self, session: u32) -> ReadResponse<'_> {
        let reading = &mut self.readings[session as usize];
        let probes = &self.probes[reading.request as usize];
        reading.end(probes);
        ReadResponse { reading, probes }
    }

    /// What was found in the last response to a session, which has ended.
    pub(super) fn last_response(&self, session: u32) -> ReadResponse<'_> {
        let reading = &self.readings[session as usize];
        ReadResponse { reading, probes: &self.probes[reading.request as usize] }
    }
}

/// Most bytes of header lines that are kept of one response.
const KEPT_HEAD_BYTES_MAX: usize = 256 << 10;

impl KeptResponse {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.head.len() + name.len() + value.len() <= KEPT_HEAD_BYTES_MAX {
            self.head.extend_from_slice(name);
            self.head.extend_from_slice(b": ");
            self.head.extend_from_slice(value);
            self.head.extend_from_slice(b"\r\n");
        }
    }

    fn put(&mut self, bytes: &[u8], most: usize) {
        if self.reads_body {
            let room = bytes.len().min(most - self.body.len());
            self.body.extend_from_slice(&bytes[..room]);
            self.is_cut |= room < bytes.len();
        }
    }
}

/// A whole response, as far as it was read.
pub(super) struct ReadResponse<'a> {
    reading: &'a ResponseReader,
    probes: &'a Probes,
}

impl ReadResponse<'_> {
    /// The value for expectation or extraction number `number`, expectations first.
    pub(super) fn value(&self, number: usize) -> Option<&[u8]> {
        self.searched(number)?.0.value()
    }

    /// Why there is no such value, in words.
    pub(super) fn missing_because(&self, number: usize) -> String {
        let searched = self.searched(number);
        match searched.map(|(found, _)| found.state) {
            Some(CaptureState::TooLong) => {
                return format!("its value is longer than {} KiB", VALUE_BYTES_MAX >> 10);
            }
            Some(CaptureState::Unread) => {
                let nodes = digits::exact(NODES_MAX as f64);
                return format!(
                    "there is none in the first {nodes} nodes and {LEVELS_MAX} levels of the page"
                );
            }
            _ if self.reading.is_undecoded => "the compressed body cannot be read",
            _ if self.is_no_json(searched) => "the body is not one whole JSON text",
            _ if self.is_cut(searched) => {
                return format!(
                    "there is none in the first {} MiB of the body",
                    PAGE_BYTES_MAX >> 20
                );
            }
            _ => "there is none",
        }
        .to_owned()
    }

    /// Whether it may have such a value that could not be read.
    pub(super) fn is_unknown(&self, number: usize) -> bool {
        let searched = self.searched(number);
        let Some((found, probe)) = searched else {
            return false;
        };
        let is_of_head = matches!(probe, Some(Source::Header(_) | Source::Cookie(_)));
        match found.state {
            CaptureState::TooLong | CaptureState::Unread => true,
            CaptureState::Whole => false,
            _ if !is_of_head && self.reading.is_undecoded => true,
            _ => self.is_cut(searched) || self.is_no_json(searched),
        }
    }

    /// What was found for a number, and by which probe if not at a JSON Pointer.
    fn searched(&self, number: usize) -> Option<(&ValueCapture, Option<&Source>)> {
        let place = (*self.probes.places.get(number)?)?;
        let other = place.checked_sub(self.probes.pointers.len());
        let probe = other.and_then(|other| self.probes.others.get(other));
        Some((self.reading.found.get(place)?, probe))
    }

    /// Whether this is a value of JSON, and the body is no whole text of that.
    fn is_no_json(&self, searched: Option<(&ValueCapture, Option<&Source>)>) -> bool {
        searched.is_some_and(|(_, probe)| probe.is_none()) && !self.reading.json.is_whole()
    }

    /// Whether only the begin of the body was searched for this.
    fn is_cut(&self, searched: Option<(&ValueCapture, Option<&Source>)>) -> bool {
        let probe = searched.and_then(|(_, probe)| probe);
        self.reading.is_page_cut && probe.is_some_and(Source::is_of_page)
    }

    pub(super) fn set_cookies(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.reading.set_cookies_ends.iter().map(move |&end| {
            let value = &self.reading.set_cookies[from..end as usize];
            from = end as usize;
            value
        })
    }

    pub(super) fn location(&self) -> &[u8] {
        &self.reading.location
    }

    /// What the body began with.
    pub(super) fn sample(&self) -> &[u8] {
        &self.reading.sample
    }
}

impl ResponseReader {
    fn begin(&mut self, request: u32, probes: &Probes) {
        self.request = request;
        self.json.begin(&probes.pointers);
        let count = probes.pointers.len() + probes.others.len();
        self.found.resize_with(count, ValueCapture::default);
        self.found.iter_mut().for_each(ValueCapture::reset);
        self.joined.resize_with(probes.pointers.len(), ValueCapture::default);
        self.joined.iter_mut().for_each(ValueCapture::reset);
        self.is_split = false;
        self.windows.resize_with(probes.others.len(), Vec::new);
        self.windows.iter_mut().for_each(Vec::clear);
        self.set_cookies.clear();
        self.set_cookies_ends.clear();
        self.location.clear();
        self.sample.clear();
        self.page.clear();
        self.is_page_cut = false;
        self.is_undecoded = false;
    }

    fn end(&mut self, probes: &Probes) {
        let (json, others) = self.found.split_at_mut(probes.pointers.len());
        self.json.end(json);
        if std::mem::take(&mut self.is_split) {
            json.swap_with_slice(&mut self.joined);
        }
        let mut tree = None;
        for (probe, found) in probes.others.iter().zip(others) {
            probe.end(&self.page, &mut tree, found);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8], probes: &Probes) {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if is(b"set-cookie") {
            if self.set_cookies.len() + value.len() <= SET_COOKIES_BYTES_MAX {
                self.set_cookies.extend_from_slice(value);
                self.set_cookies_ends.push(self.set_cookies.len() as u32);
            }
        } else if is(b"location") && probes.wants_location && self.location.is_empty() {
            let length = value.len().min(VALUE_BYTES_MAX);
            self.location.extend_from_slice(&value[..length]);
        }
        let found = &mut self.found[probes.pointers.len()..];
        for (other, found) in probes.others.iter().zip(found) {
            if found.state != CaptureState::Missing {
                continue;
            }
            match other {
                Source::Header(wanted) if is(wanted.as_bytes()) => found.set(value),
                Source::Cookie(wanted) if is(b"set-cookie") => {
                    if let Some(value) = jar::value_of(value, wanted.as_bytes()) {
                        found.set(value);
                    }
                }
                _ => {}
            }
        }
    }

    fn body(&mut self, bytes: &[u8], probes: &Probes) {
        let room = SAMPLE_BYTES_MAX - self.sample.len();
        self.sample.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let (json, others) = self.found.split_at_mut(probes.pointers.len());
        if !json.is_empty() && !self.is_split {
            self.json.feed(bytes, &probes.pointers, json);
        }
        if probes.wants_page {
            let room = PAGE_BYTES_MAX - self.page.len();
            self.page.extend_from_slice(&bytes[..bytes.len().min(room)]);
            self.is_page_cut |= bytes.len() > room;
        }
        for ((other, found), window) in probes.others.iter().zip(others).zip(&mut self.windows) {
            match other {
                Source::Body => {
                    if found.state == CaptureState::Missing {
                        found.state = CaptureState::Coming;
                    }
                    found.put(bytes);
                }
                Source::Between { before, after, .. } => {
                    between((before.as_bytes(), after.as_bytes()), bytes, found, window);
                }
                Source::Header(_)
                | Source::Cookie(_)
                | Source::Regex { .. }
                | Source::Css { .. }
                | Source::Json(_)
                | Source::Status => {}
            }
        }
    }

    fn message(&mut self, bytes: Option<&[u8]>, probes: &Probes) {
        let json = &mut self.found[..probes.pointers.len()];
        match bytes {
            Some(bytes) => self.json.feed(bytes, &probes.pointers, json),
            None => {
                self.json.end(json);
                for (joined, found) in self.joined.iter_mut().zip(json) {
                    joined.join(found);
                    found.reset();
                }
                self.json.begin(&probes.pointers);
            }
        }
    }
}

/// Captures the text between two others. Before the first was seen, `window` has the last bytes,
/// which may be a part of it. Afterwards `found` has all bytes since, up to the second.
fn between(
    (before, after): (&[u8], &[u8]),
    bytes: &[u8],
    found: &mut ValueCapture,
    window: &mut Vec<u8>,
) {
    match found.state {
        CaptureState::Missing => {
            window.extend_from_slice(bytes);
            let Some(at) = find(window, before) else {
                let kept = window.len().min(before.len().saturating_sub(1));
                window.drain(..window.len() - kept);
                return;
            };
            found.state = CaptureState::Coming;
            let rest = window.split_off(at + before.len());
            window.clear();
            between((before, after), &rest, found, window);
        }
        CaptureState::Coming => {
            // The second text may have begun in what came before.
            let most = after.len().saturating_sub(1);
            let from = found.bytes.len().saturating_sub(most);
            let seam = [&found.bytes[from..], &bytes[..most.min(bytes.len())]].concat();
            if let Some(at) = find(&seam, after) {
                found.bytes.truncate(from + at);
                found.state = CaptureState::Whole;
                return;
            }
            // What follows it is no part of the value, however much it is.
            let end = find(bytes, after);
            found.put(&bytes[..end.unwrap_or(bytes.len())]);
            if end.is_some() && found.state == CaptureState::Coming {
                found.state = CaptureState::Whole;
            }
        }
        CaptureState::Whole | CaptureState::TooLong | CaptureState::Unread => {}
    }
}

#[cfg(test)]
mod tests;
