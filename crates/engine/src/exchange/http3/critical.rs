//! The streams that each side opens for the connection (RFC 9114 §6.2, RFC 9204 §4.2).

use super::frame::{self, FramePiece, FrameReader, FrameStream, id, kind};
use super::{Http3Violation, qpack};
use crate::exchange::http2::fields::LIST_BYTES_MAX;
use quinn_proto::{Connection, Dir, ReadError, StreamId};
use std::collections::HashMap;

/// Types of streams of one direction (RFC 9114 §6.2, RFC 9204 §4.2).
mod stream_type {
    pub(super) const CONTROL: u64 = 0;
    pub(super) const PUSH: u64 = 1;
    pub(super) const ENCODER: u64 = 2;
    pub(super) const DECODER: u64 = 3;
}

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends requests.
    Client,
    /// It answers them.
    Server,
}

/// The peer's streams of one direction.
#[derive(Debug)]
pub struct CriticalStreams {
    /// The side of the peer.
    peer: Role,
    streams: HashMap<StreamId, UniStream>,
    /// Types of its streams that have come: control, encoder, decoder.
    opened: [bool; 4],
    said: ControlFrames,
}

/// What the frames of the peer's control stream said.
#[derive(Clone, Copy, Debug, Default)]
struct ControlFrames {
    has_settings: bool,
    /// The least identifier of its GOAWAY frames; `None`: it sent none.
    goaway: Option<u64>,
    /// The largest push that a client permits; `None`: it permits none.
    push_max: Option<u64>,
}

/// One of them.
#[derive(Debug)]
enum UniStream {
    /// Its type is not whole.
    Unknown(Vec<u8>),
    Control(FrameReader),
    Encoder,
    /// Whether the last instruction goes on.
    Decoder(bool),
    /// Of a type that means nothing (§9).
    Ignored,
}

impl CriticalStreams {
    /// None yet, of a peer on this side.
    pub fn new(peer: Role) -> CriticalStreams {
        CriticalStreams {
            peer,
            streams: HashMap::new(),
            opened: [false; 4],
            said: ControlFrames::default(),
        }
    }

    /// The first request that a server no longer takes; `None`: it takes all.
    pub fn goaway(&self) -> Option<u64> {
        self.said.goaway
    }

    /// Opens this side's streams. Without a dynamic table the QPACK streams have nothing to say and
    /// are not opened (RFC 9204 §4.2).
    pub fn open(connection: &mut Connection) {
        let Some(control) = connection.streams().open(Dir::Uni) else {
            return;
        };
        let mut bytes = Vec::new();
        frame::put_varint(&mut bytes, stream_type::CONTROL);
        let settings = [
            (id::QPACK_MAX_TABLE_CAPACITY, 0),
            (id::MAX_FIELD_SECTION_SIZE, LIST_BYTES_MAX as u64),
            (id::QPACK_BLOCKED_STREAMS, 0),
        ];
        frame::put_settings(&mut bytes, &settings);
        // A peer without room for it has its answer by the limit that it set.
        let _ = connection.send_stream(control).write(&bytes);
    }

    /// Reads what has come on a stream of the peer.
    ///
    /// # Errors
    /// The rule that the peer broke, which ends the connection.
    pub fn read(
        &mut self,
        stream: StreamId,
        connection: &mut Connection,
    ) -> Result<(), Http3Violation> {
        let mut receiver = connection.recv_stream(stream);
        let Ok(mut chunks) = receiver.read(true) else {
            return Ok(());
        };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.take(stream, &chunk.bytes)?,
                Err(ReadError::Blocked) => return Ok(()),
                Ok(None) | Err(ReadError::Reset(_)) => return self.end(stream),
            }
        }
    }

    /// Takes bytes of a stream of the peer.
    ///
    /// # Errors
    /// See [`CriticalStreams::read`].
    pub fn take(&mut self, stream: StreamId, bytes: &[u8]) -> Result<(), Http3Violation> {
        let CriticalStreams { peer, streams, opened, said } = self;
        let kept = streams.entry(stream).or_insert(UniStream::Unknown(Vec::new()));
        let mut rest = bytes;
        let begun;
        if let UniStream::Unknown(head) = kept {
            head.extend_from_slice(bytes);
            begun = std::mem::take(head);
            let Some((stream_type, after)) = frame::read_varint(&begun) else {
                *head = begun;
                return Ok(());
            };
            *kept = begin(stream_type, *peer, opened)?;
            rest = after;
        }
        match kept {
            UniStream::Unknown(_) | UniStream::Ignored => Ok(()),
            UniStream::Encoder => qpack::read_encoder(rest),
            UniStream::Decoder(is_within) => qpack::read_decoder(rest, is_within),
            UniStream::Control(reader) => {
                while let Some(piece) = reader.next(&mut rest)? {
                    if let FramePiece::Whole { kind, payload } = piece {
                        said.take(kind, payload, *peer)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// A stream of the peer has ended.
    ///
    /// # Errors
    /// It is one that lasts as long as the connection.
    pub fn end(&mut self, stream: StreamId) -> Result<(), Http3Violation> {
        match self.streams.remove(&stream) {
            None | Some(UniStream::Unknown(_) | UniStream::Ignored) => Ok(()),
            Some(UniStream::Control(_) | UniStream::Encoder | UniStream::Decoder(_)) => {
                Err(Http3Violation::CriticalClosed)
            }
        }
    }
}

/// The stream of a type, whose bytes begin.
fn begin(
    stream_type: u64,
    peer: Role,
    opened: &mut [bool; 4],
) -> Result<UniStream, Http3Violation> {
    let (stream, again) = match stream_type {
        stream_type::CONTROL => (
            UniStream::Control(FrameReader::new(FrameStream::Control)),
            Http3Violation::ControlTwice,
        ),
        stream_type::ENCODER => (UniStream::Encoder, Http3Violation::QpackTwice),
        stream_type::DECODER => (UniStream::Decoder(false), Http3Violation::QpackTwice),
        stream_type::PUSH if peer == Role::Client => return Err(Http3Violation::PushByClient),
        stream_type::PUSH => return Err(Http3Violation::PushStream),
        _ => return Ok(UniStream::Ignored),
    };
    let is_again = std::mem::replace(&mut opened[stream_type as usize], true);
    if is_again { Err(again) } else { Ok(stream) }
}

impl ControlFrames {
    /// Takes a frame of the control stream.
    fn take(&mut self, kind: u64, payload: &[u8], peer: Role) -> Result<(), Http3Violation> {
        if kind == kind::SETTINGS {
            if std::mem::replace(&mut self.has_settings, true) {
                return Err(Http3Violation::SettingsAgain);
            }
            // None of them changes what is sent: the dynamic table stays empty.
            return frame::read_settings(payload, &mut |_, _| ());
        }
        let number = frame::only_varint(payload)?;
        match (kind, peer) {
            (kind::GOAWAY, _) => {
                // A server names a request stream: opened by the client, in both directions.
                if peer == Role::Server && number & 3 != 0 {
                    return Err(Http3Violation::GoawayId);
                }
                if self.goaway.is_some_and(|before| number > before) {
                    return Err(Http3Violation::GoawayRises);
                }
                self.goaway = Some(number);
                Ok(())
            }
            (kind::MAX_PUSH_ID, Role::Server) => Err(Http3Violation::MaxPushByServer),
            (kind::MAX_PUSH_ID, Role::Client) => {
                if self.push_max.is_some_and(|before| number < before) {
                    return Err(Http3Violation::MaxPushFalls);
                }
                self.push_max = Some(number);
                Ok(())
            }
            (kind::CANCEL_PUSH, _) => Err(Http3Violation::CancelPush),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::http3::Http3Code;
    use quinn_proto::Side;

    /// What becomes of a stream of one direction from a peer.
    fn taken(peer: Role, bytes: &[u8]) -> Result<(), Http3Violation> {
        let stream = StreamId::new(Side::Client, Dir::Uni, 0);
        CriticalStreams::new(peer).take(stream, bytes)
    }

    #[test]
    fn a_client_pushes_nothing_and_permits_ever_more_pushes() {
        // SETTINGS, then MAX_PUSH_ID 5, 5 and 6.
        let rises = [0, 4, 0, 13, 1, 5, 13, 1, 5, 13, 1, 6];
        assert_eq!(taken(Role::Client, &rises), Ok(()));
        assert_eq!(taken(Role::Server, &rises), Err(Http3Violation::MaxPushByServer));
        let falls = taken(Role::Client, &[0, 4, 0, 13, 1, 5, 13, 1, 4]);
        assert_eq!(falls, Err(Http3Violation::MaxPushFalls));
        assert_eq!(Http3Violation::MaxPushFalls.code(), Http3Code::ID_ERROR);
        for (peer, code) in
            [(Role::Client, Http3Code::STREAM_CREATION_ERROR), (Role::Server, Http3Code::ID_ERROR)]
        {
            assert_eq!(taken(peer, &[1, 0]).unwrap_err().code(), code, "{peer:?}");
        }
        let promise = [5, 2, 0, 0];
        for (on, code) in [
            (FrameStream::Request, Http3Code::FRAME_UNEXPECTED),
            (FrameStream::Control, Http3Code::FRAME_UNEXPECTED),
            (FrameStream::Response, Http3Code::ID_ERROR),
        ] {
            let settings: &[u8] = if on == FrameStream::Control { &[4, 0] } else { &[] };
            let stream = [settings, &promise].concat();
            let mut reader = FrameReader::new(on);
            let mut rest = &stream[..];
            let read = std::iter::from_fn(|| match reader.next(&mut rest) {
                Ok(piece) => piece.map(|_| Ok(())),
                Err(violation) => Some(Err(violation)),
            });
            let violation = read.flat_map(Result::err).next().unwrap();
            assert_eq!(violation.code(), code, "{on:?}");
        }
    }
}
