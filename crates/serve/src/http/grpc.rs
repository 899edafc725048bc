//! Calls of gRPC: the service `knee.Echo` on messages `knee.Note`, and reflection.
//!
//! Say returns its note. Tell returns it as often as its `count` says. Gather returns the last of
//! several notes, with their number as its `count`. Talk returns each at once. A note's `status` is
//! that of its call.

use super::response::encoded;
use knee_load::messages::{GRPC_PREFIX, put_grpc_message};

/// The services as `knee serve grpc` describes them by reflection.
pub const ECHO_PROTO: &str = r#"syntax = "proto3";
package knee;

message Note {
  string text = 1;
  uint32 count = 2;
  uint32 status = 3;
}

service Echo {
  rpc Say(Note) returns (Note);
  rpc Tell(Note) returns (stream Note);
  rpc Gather(stream Note) returns (Note);
  rpc Talk(stream Note) returns (stream Note);
}
"#;

/// The answer of reflection to an encoded question.
pub type Reflect = fn(&[u8]) -> Option<Vec<u8>>;

/// Longest message, in bytes.
const MESSAGE_MAX: usize = 4 << 20;

/// Most notes that Tell returns, …
const TOLD_MAX: u64 = 100_000;

/// … and most bytes of them.
const TOLD_BYTES_MAX: u64 = 16 << 20;

/// Statuses (grpc/status.proto).
mod status {
    pub(super) const OK: u64 = 0;
    pub(super) const INVALID_ARGUMENT: u64 = 3;
    pub(super) const NOT_FOUND: u64 = 5;
    pub(super) const RESOURCE_EXHAUSTED: u64 = 8;
    pub(super) const UNIMPLEMENTED: u64 = 12;
    pub(super) const MAX: u64 = 16;
}

/// A call under way.
#[derive(Debug)]
pub(super) struct GrpcCall {
    method: EchoMethod,
    reflect: Reflect,
    /// Received bytes of messages that are not whole.
    unread: Vec<u8>,
    last: Vec<u8>,
    messages: u64,
    status: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EchoMethod {
    Say,
    Tell,
    Gather,
    Talk,
    Reflect,
    Unknown,
}

impl GrpcCall {
    /// A call of the method that a path names.
    pub(super) fn new(path: &str, reflect: Reflect) -> GrpcCall {
        let method = match path {
            "/knee.Echo/Say" => EchoMethod::Say,
            "/knee.Echo/Tell" => EchoMethod::Tell,
            "/knee.Echo/Gather" => EchoMethod::Gather,
            "/knee.Echo/Talk" => EchoMethod::Talk,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
                EchoMethod::Reflect
            }
            _ => EchoMethod::Unknown,
        };
        let status = if method == EchoMethod::Unknown { status::UNIMPLEMENTED } else { status::OK };
        GrpcCall { method, reflect, unread: Vec::new(), last: Vec::new(), messages: 0, status }
    }

    /// Whether messages are answered as they come.
    pub(super) fn answers_at_once(&self) -> bool {
        matches!(self.method, EchoMethod::Talk | EchoMethod::Reflect)
    }

    /// Receives bytes of the request, and appends immediate answers to `out`.
    pub(super) fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut unread = std::mem::take(&mut self.unread);
        unread.extend_from_slice(bytes);
        let mut rest = unread.as_slice();
        while let Some((prefix, after)) = rest.split_first_chunk::<GRPC_PREFIX>() {
            let [is_compressed, length @ ..] = *prefix;
            let length = u32::from_be_bytes(length) as usize;
            if is_compressed != 0 || length > MESSAGE_MAX {
                self.status = status::RESOURCE_EXHAUSTED;
                return;
            }
            let Some((message, next)) = after.split_at_checked(length) else {
                break;
            };
            self.messages += 1;
            self.on_message(message, out);
            rest = next;
        }
        self.unread = rest.to_vec();
    }

    fn on_message(&mut self, message: &[u8], out: &mut Vec<u8>) {
        match self.method {
            EchoMethod::Talk => put_grpc_message(message, out),
            EchoMethod::Reflect => match (self.reflect)(message) {
                Some(answer) => put_grpc_message(&answer, out),
                None => self.status = status::NOT_FOUND,
            },
            EchoMethod::Say | EchoMethod::Tell | EchoMethod::Gather | EchoMethod::Unknown => {
                self.last = message.to_vec();
            }
        }
        if let Some(status @ 1..=status::MAX) = number(message, 3)
            && self.method != EchoMethod::Reflect
        {
            self.status = status;
        }
    }

    /// Ends the request: appends the remaining messages to `out` and returns the trailers.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) -> Vec<u8> {
        let is_single = matches!(self.method, EchoMethod::Say | EchoMethod::Tell);
        let is_cut = !self.unread.is_empty() || is_single && self.messages != 1;
        let count = number(&self.last, 2).unwrap_or(1).min(TOLD_MAX);
        let answer_bytes = count * (GRPC_PREFIX + self.last.len()) as u64;
        if self.status == status::OK && is_cut {
            self.status = status::INVALID_ARGUMENT;
        } else if self.status == status::OK
            && self.method == EchoMethod::Tell
            && answer_bytes > TOLD_BYTES_MAX
        {
            self.status = status::RESOURCE_EXHAUSTED;
        }
        if self.status == status::OK {
            match self.method {
                EchoMethod::Say => put_grpc_message(&self.last, out),
                EchoMethod::Tell => {
                    (0..count).for_each(|_| put_grpc_message(&self.last, out));
                }
                EchoMethod::Gather => {
                    let mut note = self.last.clone();
                    // Of a field that comes twice the last one counts.
                    note.push(2 << 3);
                    put_varint(self.messages, &mut note);
                    put_grpc_message(&note, out);
                }
                EchoMethod::Talk | EchoMethod::Reflect | EchoMethod::Unknown => {}
            }
        }
        trailers(self.status)
    }
}

/// The head of each response, as a block of HPACK.
pub(super) fn head() -> Vec<u8> {
    encoded([(":status", "200"), ("server", "knee"), ("content-type", "application/grpc")])
}

fn trailers(status: u64) -> Vec<u8> {
    encoded([("grpc-status", status.to_string().as_str())])
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The number in a field of a message (protobuf wire format); `None` if it has none.
fn number(message: &[u8], field: u64) -> Option<u64> {
    let (mut rest, mut found) = (message, None);
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        match tag & 7 {
            0 => {
                let value = take_varint(&mut rest)?;
                found = if tag >> 3 == field { Some(value) } else { found };
            }
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// What a call with this body answers, however the body is cut.
    fn answer(path: &str, body: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let of = |pieces: [&[u8]; 2]| {
            let (mut call, mut out) = (GrpcCall::new(path, none), Vec::new());
            pieces.into_iter().for_each(|piece| call.receive(piece, &mut out));
            let trailers = call.end(&mut out);
            (out, trailers)
        };
        let whole = of([body, b""]);
        for at in 0..body.len() {
            let (a, b) = body.split_at(at);
            assert_eq!(of([a, b]), whole, "cut at {at}");
        }
        whole
    }

    fn answer_whole(path: &str, body: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut call, mut out) = (GrpcCall::new(path, none), Vec::new());
        call.receive(body, &mut out);
        let trailers = call.end(&mut out);
        (out, trailers)
    }

    const NOTE: &[u8] = b"\0\0\0\0\x04\x0a\x02hi";

    #[test]
    fn methods_echo_their_notes() {
        let ok = trailers(0);
        assert_eq!(answer("/knee.Echo/Say", NOTE), (NOTE.to_vec(), ok.clone()));
        let two = [NOTE, NOTE].concat();
        assert_eq!(answer("/knee.Echo/Talk", &two), (two.clone(), ok.clone()));
        let counted = b"\0\0\0\0\x06\x0a\x02hi\x10\x02";
        assert_eq!(answer("/knee.Echo/Gather", &two), (counted.to_vec(), ok.clone()));
        let told = answer("/knee.Echo/Tell", counted);
        assert_eq!(told, ([*counted, *counted].concat(), ok));
    }

    #[test]
    fn calls_that_fail_have_a_status() {
        let failing = b"\0\0\0\0\x02\x18\x0e";
        assert_eq!(answer("/knee.Echo/Say", failing), (Vec::new(), trailers(14)));
        for (path, body, status) in [
            ("/knee.Echo/Shout", NOTE, 12),
            ("/knee.Echo/Say", b"", 3),
            ("/knee.Echo/Say", b"\0\0\0\0\x02\x18", 3),
            ("/knee.Echo/Say", b"\x01\0\0\0\0", 8),
            ("/knee.Echo/Say", b"\0\xff\0\0\0", 8),
        ] {
            assert_eq!(answer(path, body).1, trailers(status), "{path} {body:?}");
        }
        // 100,000 notes of 1 KB would be answered.
        let mut long = vec![0, 0, 0, 4, 7, 0x10, 0xa0, 0x8d, 0x06, 0x0a, 0x80, 0x08];
        long.extend_from_slice(&[b'x'; 1_024]);
        assert_eq!(answer_whole("/knee.Echo/Tell", &long), (Vec::new(), trailers(8)));
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(answer(reflection, NOTE).1, trailers(5));
    }
}
