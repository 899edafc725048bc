//! Requests with holes, and responses that are read, over HTTP/2.

use super::super::super::frame::{flag, kind};
use super::super::super::hpack::Decoder;
use super::super::{Http2, Http2Shared};
use super::rig::*;
use crate::exchange::{CallContext, Conversation, EventQueue, Outbox, RequestRef};
use knee_load::session::{
    AfterResponse, Expectation, Extraction, Fills, Instruction, RequestStep, ResponseReaders,
    SessionKind, SessionPlan, Source, Users, Walk, WholeResponse,
};
use knee_load::spec::{Hole, HttpRequest, Part, Pick, Target, Url, parse_header};
use knee_load::time::Nanos;
use std::sync::Arc;

fn plan() -> SessionPlan {
    let sources = [Source::Json("/a/1".to_owned()), Source::Header("x-b".to_owned()), Source::Body];
    let extract = sources.into_iter().enumerate().map(|(number, source)| Extraction {
        name: "x".to_owned(),
        variable: number as u16,
        source,
        otherwise: None,
    });
    SessionPlan {
        kinds: vec![SessionKind {
            name: "one".to_owned(),
            weight: 1,
            data: Vec::new(),
            program: vec![Instruction::Request(0)],
            variables: Vec::new(),
            repetitions: Vec::new(),
            new_connection: false,
        }],
        requests: vec![RequestStep {
            name: "get".to_owned(),
            expect: vec![Expectation::Status(vec![(200, 200)])],
            extract: extract.collect(),
            ..RequestStep::default()
        }],
        ..SessionPlan::default()
    }
}

/// What follows from a response that comes in these pieces.
fn follows<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> AfterResponse {
    let plan = Arc::new(plan());
    let mut users = Users::new(Arc::clone(&plan), (0, 1), 1);
    let mut walk = Walk::default();
    assert!(walk.begin(&mut users, false));
    walk.next(&mut users, Nanos::ZERO, 0, &mut 1_000);
    let mut rig = Rig::greeted();
    let mut readings = ResponseReaders::new(&plan, 1);
    readings.begin(5, 0, 0);
    rig.events.readings = Some(Box::new(readings));
    rig.begin(5, GET);
    rig.begin(6, GET);
    for piece in pieces {
        rig.feed(piece);
    }
    assert_eq!(end_of(&rig.events, 5), Some(Ok(200)));
    let answered = WholeResponse {
        session: 0,
        status: 200,
        is_success: true,
        response: Nanos(1),
        realtime_ns: 0,
    };
    let mut readings = rig.events.readings.take().expect("as given");
    walk.answered(0, answered, &mut readings, &mut users)
}

#[test]
fn responses_are_read_through_padding_and_other_streams() {
    let body: &[u8] = br#"{"a": [0, "right"]}"#;
    let (first, second) = body.split_at(9);
    let padded = |id, content: &[u8], end| {
        f(kind::DATA, flag::PADDED | end, id, &[&[3][..], content, b"\"\"\""].concat())
    };
    let bytes = [
        headers(1, false, &[(":status", "103"), ("x-b", "wrong")]),
        headers(3, false, &[(":status", "200"), ("x-b", "wrong")]),
        headers(1, false, &[(":status", "200"), ("x-b", "right")]),
        data(3, false, b"{\"a\": [0, \"wrong\"]}"),
        padded(1, first, 0),
        data(1, false, b""),
        padded(1, second, flag::END_STREAM),
    ]
    .concat();
    assert_eq!(follows([&bytes[..]].into_iter()), AfterResponse::Next);
    assert_eq!(follows(bytes.chunks(1)), AfterResponse::Next);
    for cut in 1..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(follows([a, b].into_iter()), AfterResponse::Next, "cut at {cut}");
    }
    let none = [ok(3), headers(1, false, &[(":status", "200")]), data(1, true, body)].concat();
    assert_eq!(follows([&none[..]].into_iter()), AfterResponse::Unexpected(2), "no header");
}

#[test]
fn compressed_bodies_are_read_across_frames() {
    let body = zstd::encode_all(&br#"{"a": [0, "right"]}"#[..], 3).unwrap();
    let (first, second) = body.split_at(9);
    let fields = |coding| [(":status", "200"), ("content-encoding", coding), ("x-b", "right")];
    let frames = |coding| {
        let [head, first] = [headers(1, false, &fields(coding)), data(1, false, first)];
        [ok(3), head, first, data(1, true, second)].concat()
    };
    let bytes = frames("zstd");
    assert_eq!(follows([&bytes[..]].into_iter()), AfterResponse::Next);
    assert_eq!(follows(bytes.chunks(1)), AfterResponse::Next);
    // That it is none is in the events; what is looked for is unknown.
    assert_eq!(follows([&frames("gzip")[..]].into_iter()), AfterResponse::Unexpected(1));
}

/// A connection over which requests with holes go, and what its peer decodes.
struct Filled {
    http2: Http2,
    shared: Http2Shared,
    out: Outbox,
    events: EventQueue,
    decoder: Decoder,
}

impl Filled {
    /// The fields and the body of a request whose holes are filled so.
    fn sent(&mut self, op: u32, fills: &Fills) -> (Vec<String>, Vec<u8>) {
        let request = RequestRef { number: 0, fills, intended: Nanos::ZERO };
        let Filled { http2, shared, out, events, .. } = self;
        http2.start(op, request, &mut CallContext { now: Nanos::ZERO, shared, out, events });
        let bytes = std::mem::take(self.out.bytes());
        let mut fields = Vec::new();
        let mut body = Vec::new();
        for (head, payload) in frames(&bytes) {
            match head.kind {
                kind::HEADERS => {
                    let mut each = |name: &[u8], value: &[u8]| {
                        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                        fields.push(format!("{}: {}", text(name), text(value)));
                    };
                    self.decoder.decode(&payload, 1 << 16, &mut each).unwrap();
                }
                _ => body.extend_from_slice(&payload),
            }
        }
        (fields, body)
    }
}

#[test]
fn requests_are_filled_anew_each_time() {
    let url = Url::parse("http://h/").unwrap();
    let headers = ["X-A: []", "Cookie:", "B: c"].map(|h| parse_header(h).unwrap());
    let body = b"<>".to_vec();
    let mut request = HttpRequest::new("POST", &url, headers.to_vec(), body, 1).unwrap();
    let hole = |part, at| Hole { part, at };
    request.holes = vec![
        hole(Part::Path, 1),
        hole(Part::Header(0), 1),
        hole(Part::Header(1), 0),
        hole(Part::Body, 1),
    ];
    let endpoint = url.endpoint().clone();
    let target = Target::new(endpoint, vec![request], Pick::InOrder, true).unwrap();
    let mut shared = Http2Shared::new(&target);
    let (mut out, mut events) = (Outbox::default(), EventQueue::default());
    let http2 = Http2::established(&mut CallContext {
        now: Nanos::ZERO,
        shared: &mut shared,
        out: &mut out,
        events: &mut events,
    });
    out.clear();
    let mut filled = Filled { http2, shared, out, events, decoder: Decoder::default() };
    for (op, (cookie, content)) in [("c=1", "12345678"), ("", ""), ("c=2", "1")].iter().enumerate()
    {
        let mut fills = Fills::new();
        for value in ["items", "x", cookie, content] {
            fills.push(value.as_bytes());
        }
        let (fields, body) = filled.sent(op as u32, &fills);
        assert_eq!(body, format!("<{content}>").into_bytes());
        let has = |field: &str| fields.iter().any(|other| other == field);
        assert!(has(":path: /items") && has("x-a: [x]") && has("b: c"), "{fields:?}");
        assert!(has(&format!("content-length: {}", content.len() + 2)), "{fields:?}");
        let cookies = fields.iter().filter(|field| field.starts_with("cookie"));
        assert_eq!(cookies.count(), usize::from(!cookie.is_empty()), "{fields:?}");
    }
}
