//! Which answers to calls of gRPC are a success, beside what the official client takes for one.

use super::super::super::frame::kind;
use super::rig::*;
use crate::exchange::OpEvent;
use knee_load::measure::Outcome;

/// Answers, with the verdicts of the specification and of the official client on each.
const MODES: &str = include_str!("grpc_modes.txt");

/// Answers that the official client judges otherwise, and the rule that it does not keep to.
const DIFFERENT: &[(&str, &str)] = &[
    ("an interim response before", "RFC 9113 8.1: interim responses come before the final one"),
    ("a message and another cut", "Length-Prefixed-Message: a message has its length"),
    ("a message cut", "Length-Prefixed-Message: a message has its length"),
    ("a prefix cut", "Length-Prefixed-Message: a message has its length"),
    ("a prefix alone", "Length-Prefixed-Message: a message has its length"),
    ("a message longer than its length", "Length-Prefixed-Message: a message has its length"),
    ("a status with a sign", "Status: digits alone"),
    ("a failure and a status", "Trailers: one Status"),
    ("a flag of 2", "Compressed-Flag: 0 or 1"),
    ("a flag of 128", "Compressed-Flag: 0 or 1"),
    ("text/html", "Content-Type: application/grpc"),
    ("no content type", "Content-Type: application/grpc"),
    ("a type that only begins so", "Content-Type: application/grpc"),
    ("HTTP 204", "HTTP-Status: 200"),
];

/// What a server answers a call with.
pub(crate) struct CallMode {
    name: &'static str,
    /// Of a method that returns one message, and of one that returns a stream.
    pub(crate) is_ok: [bool; 2],
    is_ok_to_other: [bool; 2],
    frames: Vec<&'static str>,
}

impl CallMode {
    /// The answer on a stream.
    pub(crate) fn bytes(&self, stream: u32) -> Vec<u8> {
        self.frames.iter().flat_map(|frame| bytes_of(frame, stream)).collect()
    }
}

pub(crate) fn call_modes() -> Vec<CallMode> {
    let rows = MODES.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let words: Vec<&str> = row.splitn(5, ' ').collect();
        let mut frames = words[4].split(" | ");
        let is_ok = |from: usize| [words[from] == "ok", words[from + 1] == "ok"];
        let name = frames.next().unwrap();
        CallMode { name, is_ok: is_ok(0), is_ok_to_other: is_ok(2), frames: frames.collect() }
    })
    .collect()
}

fn bytes_of(frame: &str, stream: u32) -> Vec<u8> {
    let (kind, rest) = frame.split_once(' ').unwrap_or((frame, ""));
    let ends = kind.ends_with('!');
    match &kind[..1] {
        "H" => {
            let fields =
                if rest.is_empty() { ":status=200 content-type=application/grpc" } else { rest };
            let fields: Vec<_> = fields.split(' ').map(|f| f.split_once('=').unwrap()).collect();
            headers(stream, ends, &fields)
        }
        "D" => {
            let digits = rest.as_bytes().chunks(2);
            let byte =
                |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
            data(stream, ends, &digits.map(byte).collect::<Vec<_>>())
        }
        _ => f(kind::RST_STREAM, 0, stream, &rest.parse::<u32>().unwrap().to_be_bytes()),
    }
}

#[test]
fn a_call_is_ok_where_the_specification_says_so() {
    for mode in call_modes() {
        let (CallMode { name, is_ok, .. }, bytes) = (&mode, mode.bytes(1));
        for (request, is_ok) in [GET, POST].into_iter().zip(*is_ok) {
            for size in [1, 2, 7, bytes.len()] {
                let mut rig = Rig::of_calls();
                rig.begin(9, request);
                bytes.chunks(size).for_each(|piece| rig.feed(piece));
                let events = rig.events();
                let end = end_of(&events, 9).unwrap_or_else(|| panic!("{name}: {events:?}"));
                assert_eq!(end == Ok(0), is_ok, "{name}, request {request}: {events:?}");
                if end == Err(Outcome::Malformed) {
                    let says = |event: &OpEvent| matches!(event, OpEvent::Violated(_));
                    assert!(events.iter().any(says), "{name}: {events:?}");
                }
            }
        }
    }
}

#[test]
fn others_judge_alike_but_for_known_differences() {
    let modes = call_modes();
    let differs = |mode: &&CallMode| mode.is_ok != mode.is_ok_to_other;
    let different: Vec<&str> = modes.iter().filter(differs).map(|mode| mode.name).collect();
    let known: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    assert_eq!(different, known);
}

#[test]
fn padding_is_no_part_of_a_message() {
    let mut rig = Rig::of_calls();
    rig.begin(9, GET);
    rig.feed(&bytes_of("H", 1));
    rig.feed(&f(kind::DATA, 8, 1, b"\x03\0\0\0\0\x01a\0\0\0"));
    rig.feed(&bytes_of("H! grpc-status=0", 1));
    assert_eq!(end_of(&rig.events(), 9), Some(Ok(0)));
}
