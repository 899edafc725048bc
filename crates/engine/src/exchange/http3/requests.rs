//! Http3Requests as frames, made before the run.

use super::frame::{self, kind};
use super::qpack::{PREFIX, put_field};
use crate::exchange::RequestRef;
use crate::exchange::http2::requests::{Field, Segment, cut, fields, made_fields, put_segments};
use crate::reactor::WireRequest;
use knee_load::spec::{Body, Part, Target};

/// All requests of a target, for all connections of one thread.
#[derive(Debug)]
pub(super) struct Http3Requests(Vec<Http3Request>);

#[derive(Debug)]
struct Http3Request {
    /// The frames before the content; of a request with holes, empty.
    head: Vec<u8>,
    /// The field section in pieces; of a request without holes, empty.
    pieces: Vec<SectionPart>,
    /// Its body, if that has holes.
    filled_body: Option<Vec<Segment>>,
    body: Body,
    is_head: bool,
}

/// A part of a field section with holes.
#[derive(Debug)]
enum SectionPart {
    /// Encoded fields.
    Fixed(Vec<u8>),
    /// A field whose value has holes.
    Filled { name: String, value: Vec<Segment> },
}

impl Http3Requests {
    pub(super) fn new(target: &Target) -> Http3Requests {
        let made = target.requests.iter().map(|request| {
            let mut pieces = Vec::new();
            for field in fields(request, "https") {
                match (field, pieces.last_mut()) {
                    (Field::Text((name, value)), Some(SectionPart::Fixed(fixed))) => {
                        put_field(fixed, name.as_bytes(), value.as_bytes());
                    }
                    (Field::Text((name, value)), _) => {
                        let mut fixed = Vec::new();
                        put_field(&mut fixed, name.as_bytes(), value.as_bytes());
                        pieces.push(SectionPart::Fixed(fixed));
                    }
                    (Field::Open { name, part }, _) => {
                        let value = part.map_or(vec![Segment::Length], |p| cut(request, p));
                        pieces.push(SectionPart::Filled { name, value });
                    }
                }
            }
            let mut head = Vec::new();
            if let [SectionPart::Fixed(fixed)] = &pieces[..]
                && request.holes.is_empty()
            {
                put_frames(&[&PREFIX[..], fixed].concat(), request.body.len(), &mut head);
                pieces.clear();
            }
            let in_body = request.holes.iter().any(|hole| hole.part == Part::Body);
            Http3Request {
                head,
                pieces,
                filled_body: in_body.then(|| cut(request, Part::Body)),
                body: request.body.clone(),
                is_head: request.method == "HEAD",
            }
        });
        Http3Requests(made.collect())
    }

    /// The requests as they leave, values for their holes apart.
    pub(super) fn wire(&self) -> Vec<WireRequest> {
        self.0.iter().map(|request| WireRequest::new(request.head.clone(), &request.body)).collect()
    }

    pub(super) fn body(&self, request: usize) -> &[u8] {
        &self.0[request].body
    }

    /// The body of a request whose body has holes.
    #[inline]
    pub(super) fn filled_body(&self, request: RequestRef<'_>) -> Option<Vec<u8>> {
        if let Some(made) = request.fills.made() {
            return Some(made.body.to_vec());
        }
        let segments = self.0[request.number].filled_body.as_ref()?;
        let mut body = Vec::new();
        put_segments(segments, (request.fills, 0), &mut body);
        Some(body)
    }

    pub(super) fn is_head(&self, request: RequestRef<'_>) -> bool {
        match request.fills.made() {
            Some(made) => made.method == "HEAD",
            None => self.0[request.number].is_head,
        }
    }

    /// Appends the frames of a request that come before its content of `body_bytes`.
    #[inline]
    pub(super) fn put_head(&self, request: RequestRef<'_>, body_bytes: usize, out: &mut Vec<u8>) {
        let own = &self.0[request.number];
        if request.fills.made().is_none() && !own.head.is_empty() {
            out.extend_from_slice(&own.head);
            return;
        }
        put_frames(&self.filled_section(request, body_bytes), body_bytes, out);
    }

    /// The field section of a request with holes, or of one made at run time.
    fn filled_section(&self, request: RequestRef<'_>, body_bytes: usize) -> Vec<u8> {
        let mut section = PREFIX.to_vec();
        if let Some(made) = request.fills.made() {
            made_fields(made, &mut |name, value| {
                put_field(&mut section, name.as_bytes(), value.trim_ascii());
            });
            return section;
        }
        let mut text = Vec::new();
        for piece in &self.0[request.number].pieces {
            match piece {
                SectionPart::Fixed(fixed) => section.extend_from_slice(fixed),
                SectionPart::Filled { name, value } => {
                    text.clear();
                    put_segments(value, (request.fills, body_bytes), &mut text);
                    // A field that is nothing but a hole is left out without a value, and none has
                    // a blank at its ends (RFC 9110 §5.5).
                    if !text.is_empty() {
                        put_field(&mut section, name.as_bytes(), text.trim_ascii());
                    }
                }
            }
        }
        section
    }
}

/// Appends a field section as a frame, and the head of the DATA frame of the content that follows.
fn put_frames(section: &[u8], body_bytes: usize, out: &mut Vec<u8>) {
    frame::put(out, kind::HEADERS, section);
    if body_bytes > 0 {
        frame::put_head(out, kind::DATA, body_bytes);
    }
}
