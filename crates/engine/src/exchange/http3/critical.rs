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

/// What a peer said of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerSettings {
    /// Whether its SETTINGS have come.
    pub has_come: bool,
    /// Most bytes of a field section that it takes; `None`: it sets no limit.
    pub section_max: Option<u64>,
}

/// The peer's streams of one direction.
#[derive(Debug)]
pub struct CriticalStreams {
    /// The side of the peer.
    peer: Role,
    streams: HashMap<StreamId, UniStream>,
    /// Types of its streams that have come: control, encoder, decoder.
    opened: [bool; 4],
    settings: PeerSettings,
    /// The least identifier of its GOAWAY frames; `None`: it sent none.
    goaway: Option<u64>,
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
            settings: PeerSettings::default(),
            goaway: None,
        }
    }

    /// What the peer said of itself.
    pub fn settings(&self) -> PeerSettings {
        self.settings
    }

    /// The first request that a server no longer takes; `None`: it takes all.
    pub fn goaway(&self) -> Option<u64> {
        self.goaway
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
        let CriticalStreams { peer, streams, opened, settings, goaway } = self;
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
            *kept = begin(stream_type, opened)?;
            rest = after;
        }
        match kept {
            UniStream::Unknown(_) | UniStream::Ignored => Ok(()),
            UniStream::Encoder => qpack::read_encoder(rest),
            UniStream::Decoder(is_within) => qpack::read_decoder(rest, is_within),
            UniStream::Control(reader) => {
                while let Some(piece) = reader.next(&mut rest)? {
                    if let FramePiece::Whole { kind, payload } = piece {
                        take_control(kind, payload, *peer, (settings, goaway))?;
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
fn begin(stream_type: u64, opened: &mut [bool; 4]) -> Result<UniStream, Http3Violation> {
    let (stream, again) = match stream_type {
        stream_type::CONTROL => (
            UniStream::Control(FrameReader::new(FrameStream::Control)),
            Http3Violation::ControlTwice,
        ),
        stream_type::ENCODER => (UniStream::Encoder, Http3Violation::QpackTwice),
        stream_type::DECODER => (UniStream::Decoder(false), Http3Violation::QpackTwice),
        stream_type::PUSH => return Err(Http3Violation::PushStream),
        _ => return Ok(UniStream::Ignored),
    };
    let is_again = std::mem::replace(&mut opened[stream_type as usize], true);
    if is_again { Err(again) } else { Ok(stream) }
}

/// Takes a frame of the control stream.
fn take_control(
    kind: u64,
    payload: &[u8],
    peer: Role,
    (settings, goaway): (&mut PeerSettings, &mut Option<u64>),
) -> Result<(), Http3Violation> {
    if kind == kind::SETTINGS {
        if std::mem::replace(&mut settings.has_come, true) {
            return Err(Http3Violation::SettingsAgain);
        }
        return frame::read_settings(payload, &mut |id, value| {
            if id == id::MAX_FIELD_SECTION_SIZE {
                settings.section_max = Some(value);
            }
        });
    }
    let number = frame::only_varint(payload)?;
    match (kind, peer) {
        (kind::GOAWAY, _) => {
            // A server names a request stream: opened by the client, in both directions.
            if peer == Role::Server && number & 3 != 0 {
                return Err(Http3Violation::GoawayId);
            }
            if goaway.is_some_and(|before| number > before) {
                return Err(Http3Violation::GoawayRises);
            }
            *goaway = Some(number);
            Ok(())
        }
        (kind::MAX_PUSH_ID, Role::Server) => Err(Http3Violation::MaxPushByServer),
        (kind::CANCEL_PUSH, _) => Err(Http3Violation::CancelPush),
        _ => Ok(()),
    }
}
