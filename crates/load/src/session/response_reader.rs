//! Values that are looked for in responses while they arrive.

use super::jar;
use super::json::{CaptureState, JsonScan, Pointer, VALUE_BYTES_MAX, ValueCapture};
use super::plan::{Expectation, RequestStep, SessionPlan, Source};

/// Bytes of a body that are kept to show an unexpected response.
const SAMPLE_BYTES_MAX: usize = 160;

/// Bytes of `Set-Cookie` headers that are kept of one response.
const SET_COOKIES_BYTES_MAX: usize = 16 << 10;

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
}

/// What is looked for in the responses to one request.
#[derive(Debug, Default)]
struct Probes {
    pointers: Vec<Pointer>,
    /// Beside the values at the pointers, which come first.
    others: Vec<BodyProbe>,
    /// Where each expectation's value is, then each extraction's.
    places: Vec<Option<usize>>,
    wants_location: bool,
}

#[derive(Debug)]
enum BodyProbe {
    Header(String),
    Cookie(String),
    Between(Vec<u8>, Vec<u8>),
    Body,
}

/// The values found in one response.
#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    request: u32,
    json: JsonScan,
    found: Vec<ValueCapture>,
    /// For each text that is looked for between two others, what may be a part of them.
    windows: Vec<Vec<u8>>,
    set_cookies: Vec<u8>,
    set_cookies_ends: Vec<u32>,
    location: Vec<u8>,
    sample: Vec<u8>,
    is_encoded: bool,
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
            if let Source::Json(pointer) = source {
                let pointer = Pointer::new(pointer);
                if !probes.pointers.contains(&pointer) {
                    probes.pointers.push(pointer);
                }
            }
        }
        let count = probes.pointers.len();
        for source in sources {
            let place = match source {
                None | Some(Source::Status) => None,
                Some(Source::Json(pointer)) => {
                    let pointer = Pointer::new(pointer);
                    probes.pointers.iter().position(|p| *p == pointer)
                }
                Some(other) => {
                    probes.others.extend(BodyProbe::new(other));
                    Some(count + probes.others.len() - 1)
                }
            };
            probes.places.push(place);
        }
        probes
    }
}

impl BodyProbe {
    fn new(source: &Source) -> Option<BodyProbe> {
        match source {
            Source::Json(_) | Source::Status => None,
            Source::Header(name) => Some(BodyProbe::Header(name.clone())),
            Source::Cookie(name) => Some(BodyProbe::Cookie(name.clone())),
            Source::Between { before, after } => {
                let texts = [before, after].map(|text| text.as_bytes().to_vec());
                let [before, after] = texts;
                Some(BodyProbe::Between(before, after))
            }
            Source::Body => Some(BodyProbe::Body),
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
        }
    }

    /// The operation `op` of a session begins, which asks for request number `request`.
    pub fn begin(&mut self, op: u32, session: u32, request: usize) {
        if self.of_op.len() <= op as usize {
            self.of_op.resize(op as usize + 1, NONE);
        }
        self.of_op[op as usize] = session;
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
        if let Some((reading, probes)) = self.of(op) {
            reading.field(name, value, probes);
        }
    }

    /// Bytes of the body.
    pub fn body(&mut self, op: u32, bytes: &[u8]) {
        if let Some((reading, probes)) = self.of(op) {
            reading.body(bytes, probes);
        }
    }

    fn of(&mut self, op: u32) -> Option<(&mut ResponseReader, &Probes)> {
        let session = *self.of_op.get(op as usize)?;
        let reading = self.readings.get_mut(session as usize)?;
        let probes = self.probes.get(reading.request as usize)?;
        Some((reading, probes))
    }

    /// What was found in the last response to a session. The response is over.
    pub(super) fn take(&mut self, session: u32) -> ReadResponse<'_> {
        let reading = &mut self.readings[session as usize];
        let probes = &self.probes[reading.request as usize];
        reading.json.end(&mut reading.found[..probes.pointers.len()]);
        for (other, found) in probes.others.iter().zip(&mut reading.found[probes.pointers.len()..])
        {
            if matches!(other, BodyProbe::Body) && found.state == CaptureState::Coming {
                found.state = CaptureState::Whole;
            }
        }
        ReadResponse { reading, probes }
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
        let place = (*self.probes.places.get(number)?)?;
        self.reading.found.get(place)?.value()
    }

    /// Why there is no such value, in words.
    pub(super) fn missing_because(&self, number: usize) -> &'static str {
        let place = self.probes.places.get(number).copied().flatten();
        let found = place.and_then(|place| self.reading.found.get(place));
        match found.map(|f| f.state) {
            Some(CaptureState::TooLong) => "its value is longer than 64 KiB",
            _ if self.reading.is_encoded => "the body is compressed",
            _ => "there is none",
        }
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
        self.windows.resize_with(probes.others.len(), Vec::new);
        self.windows.iter_mut().for_each(Vec::clear);
        self.set_cookies.clear();
        self.set_cookies_ends.clear();
        self.location.clear();
        self.sample.clear();
        self.is_encoded = false;
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
        } else if is(b"content-encoding") {
            self.is_encoded = !value.eq_ignore_ascii_case(b"identity");
        }
        let found = &mut self.found[probes.pointers.len()..];
        for (other, found) in probes.others.iter().zip(found) {
            if found.state != CaptureState::Missing {
                continue;
            }
            match other {
                BodyProbe::Header(wanted) if is(wanted.as_bytes()) => found.set(value),
                BodyProbe::Cookie(wanted) if is(b"set-cookie") => {
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
        if self.is_encoded {
            return;
        }
        let (json, others) = self.found.split_at_mut(probes.pointers.len());
        if !json.is_empty() {
            self.json.feed(bytes, &probes.pointers, json);
        }
        for ((other, found), window) in probes.others.iter().zip(others).zip(&mut self.windows) {
            match other {
                BodyProbe::Body => {
                    if found.state == CaptureState::Missing {
                        found.state = CaptureState::Coming;
                    }
                    found.put(bytes);
                }
                BodyProbe::Between(before, after) => between((before, after), bytes, found, window),
                BodyProbe::Header(_) | BodyProbe::Cookie(_) => {}
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
            let from = found.bytes.len().saturating_sub(after.len());
            found.put(bytes);
            if let Some(at) = find(&found.bytes[from.min(found.bytes.len())..], after) {
                found.bytes.truncate(from + at);
                found.state = CaptureState::Whole;
            }
        }
        CaptureState::Whole | CaptureState::TooLong => {}
    }
}

/// Where `text` first lies in `bytes`.
pub(super) fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let Some((&first, rest)) = text.split_first() else {
        return Some(0);
    };
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at + 1..].starts_with(rest) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Extraction, Match};

    const BODY: &str = "<p>some <b>bold</b> text</p> {\"a\": 1}";

    fn read(sources: &[Source], fields: &[(&str, &str)], pieces: &[&str]) -> Vec<Option<String>> {
        let extract = sources.iter().map(|source| Extraction {
            name: "x".to_owned(),
            variable: 0,
            source: source.clone(),
            otherwise: None,
        });
        let step = RequestStep {
            name: String::new(),
            kind: 0,
            fills: Vec::new(),
            expect: vec![Expectation::Value { source: Source::Body, is: Match::Exists }],
            extract: extract.collect(),
            redirects: 1,
            redirected: None,
            timeout: None,
            goes_on: false,
            ask: None,
        };
        let plan = SessionPlan { requests: vec![step], ..SessionPlan::default() };
        let mut readings = ResponseReaders::new(&plan, 1);
        readings.begin(5, 0, 0);
        for (name, value) in fields {
            readings.field(5, name.as_bytes(), value.as_bytes());
        }
        for piece in pieces {
            readings.body(5, piece.as_bytes());
        }
        assert!(readings.reads(5) && !readings.reads(4) && !readings.reads(6));
        let answer = readings.take(0);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (1..=sources.len()).map(|number| answer.value(number).map(text)).collect()
    }

    fn within(before: &str, after: &str) -> Source {
        Source::Between { before: before.to_owned(), after: after.to_owned() }
    }

    #[test]
    fn texts_between_others_however_the_body_is_cut() {
        let sources = [
            within("<b>", "</b>"),
            within("{", "}"),
            within("</b>", "<b>"),
            within("none", "</b>"),
            within("te", "xt"),
            Source::Body,
        ];
        let want = [Some("bold"), Some("\"a\": 1"), None, None, Some(""), Some(BODY)];
        let want = want.map(|w| w.map(str::to_owned));
        for cut in 0..=BODY.len() {
            let (a, b) = BODY.split_at(cut);
            assert_eq!(read(&sources, &[], &[a, b]), want, "cut at {cut}");
        }
        let single: Vec<String> = BODY.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(read(&sources, &[], &single), want);
    }

    #[test]
    fn headers_and_cookies() {
        let sources = [
            Source::Header("x-csrf".to_owned()),
            Source::Cookie("session".to_owned()),
            Source::Header("none".to_owned()),
        ];
        let fields = [
            ("X-Csrf", "first"),
            ("x-csrf", "second"),
            ("Set-Cookie", "other=1"),
            ("SET-COOKIE", "session=abc; Path=/"),
        ];
        let got = read(&sources, &fields, &[]);
        assert_eq!(got, [Some("first".to_owned()), Some("abc".to_owned()), None]);
    }

    #[test]
    fn a_compressed_body_is_not_searched() {
        let fields = [("content-encoding", "gzip")];
        assert_eq!(read(&[Source::Json("/a".to_owned())], &fields, &["{\"a\":1}"]), [None]);
    }
}
