//! A server of HTTP/2.

use super::{
    Act, Acts, ServerTraits, Spoken, answers, breaks_off, chance, ends, events, floods, pick,
    sends, soon,
};
use crate::exchange::http2::connection;
use crate::exchange::http2::frame::{self, FrameHead, PREFACE, flag, kind};
use crate::exchange::http2::{CallMode, call_modes};
use knee_load::rng::Rng;

/// `:status: 200` (RFC 7541, Appendix A).
const STATUS_200: &[u8] = &[0x88];

/// Finds the ends of requests, and knows which streams are open.
pub(in super::super) struct Peer {
    traits: ServerTraits,
    /// Answers to calls of gRPC, of servers of that.
    modes: Vec<CallMode>,
    /// What it says in its SETTINGS of how many streams may be open.
    streams_max: Option<u32>,
    grants_window: bool,
    pending: Vec<u8>,
    preface_left: usize,
    open: Vec<u32>,
    last: u32,
}

impl Peer {
    pub(super) fn new(traits: ServerTraits, rng: &mut Rng) -> Peer {
        let limits = [None, None, Some(0), Some(1), Some(2), Some(5), Some(100)];
        let is_grpc = traits.speaks == Spoken::Grpc;
        Peer {
            traits,
            modes: if is_grpc { call_modes() } else { Vec::new() },
            streams_max: limits[pick(rng, 7) as usize],
            grants_window: chance(rng, 80),
            pending: Vec::new(),
            preface_left: PREFACE.len(),
            open: Vec::new(),
            last: 0,
        }
    }

    pub(super) fn accept(&mut self, rng: &mut Rng) -> Acts {
        let mut out = Vec::new();
        let limit = self.streams_max.map(|n| (connection::id::MAX_CONCURRENT_STREAMS, n));
        connection::put_settings(&mut out, &limit.into_iter().collect::<Vec<_>>());
        if self.grants_window {
            frame::put_window_update(&mut out, 0, 1 << 24);
        }
        match pick(rng, 20) {
            0 => Acts::new(),
            1 => breaks_off(&out, rng),
            2 => sends(b"HTTP/1.1 400 Bad Request\r\n\r\n", rng),
            _ => sends(&out, rng),
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], rng: &mut Rng) -> Acts {
        let skipped = self.preface_left.min(bytes.len());
        self.preface_left -= skipped;
        self.pending.extend_from_slice(&bytes[skipped..]);
        let mut acts = Acts::new();
        while let Some((head, after)) = FrameHead::read(&self.pending) {
            let length = head.length as usize;
            if after.len() < length {
                break;
            }
            self.pending.drain(..frame::HEAD_BYTES + length);
            acts.extend(self.on_frame(head, rng));
        }
        acts
    }

    fn on_frame(&mut self, head: FrameHead, rng: &mut Rng) -> Acts {
        let mut out = Vec::new();
        if head.kind == kind::HEADERS {
            self.last = head.stream;
            if self.streams_max.is_some_and(|max| self.open.len() >= max as usize) {
                frame::put_reset(&mut out, head.stream, code(7));
                return sends(&out, rng);
            }
            self.open.push(head.stream);
            if self.grants_window {
                frame::put_window_update(&mut out, head.stream, 1 << 20);
            }
        }
        let asks = matches!(head.kind, kind::HEADERS | kind::DATA) && head.has(flag::END_STREAM);
        if head.kind == kind::RST_STREAM {
            self.open.retain(|id| *id != head.stream);
        }
        if asks && self.open.contains(&head.stream) {
            return self.answer(head.stream, out, rng);
        }
        if out.is_empty() { Acts::new() } else { sends(&out, rng) }
    }

    fn answer(&mut self, id: u32, out: Vec<u8>, rng: &mut Rng) -> Acts {
        let traits = self.traits;
        let (open, last) = (self.open.clone(), self.last);
        traits.draw(rng, |rng| {
            (self.open, self.last) = (open.clone(), last);
            self.draw_answer(id, out.clone(), rng)
        })
    }

    fn draw_answer(&mut self, id: u32, mut out: Vec<u8>, rng: &mut Rng) -> Acts {
        self.open.retain(|open| *open != id);
        if !self.modes.is_empty() && chance(rng, 60) {
            let mode = &self.modes[pick(rng, self.modes.len() as u64) as usize];
            let is_ok = mode.is_ok[usize::from(self.traits.streams)];
            out.extend_from_slice(&mode.bytes(id));
            // In pieces it would be whole before the last of them, which may be RST_STREAM.
            return if is_ok { vec![(soon(rng), Act::Sends(out, 1))] } else { sends(&out, rng) };
        }
        if self.traits.streams && self.modes.is_empty() && chance(rng, 60) {
            let (body, is_whole) = events(rng);
            frame::put(&mut out, kind::HEADERS, flag::END_HEADERS, id, STATUS_200);
            for piece in body.chunks(5) {
                frame::put(&mut out, kind::DATA, 0, id, piece);
            }
            frame::put(&mut out, kind::DATA, flag::END_STREAM, id, b"");
            return answers(&out, u32::from(is_whole), rng);
        }
        // What is a whole response is not yet a whole stream, nor a call.
        let whole = u32::from(!self.traits.streams && self.modes.is_empty());
        let mut ends_whole = 0;
        let end = flag::END_HEADERS | flag::END_STREAM;
        match pick(rng, 40) {
            // Nothing comes, and the stream stays open.
            0 | 1 => self.open.push(id),
            2 => return ends(rng),
            3 | 4 => frame::put_reset(&mut out, id, code(7)),
            5 => frame::put_reset(&mut out, id, code(pick(rng, 14) as u32)),
            6 => frame::put_goaway(&mut out, self.last, code(0), ""),
            7 => frame::put_goaway(&mut out, id.saturating_sub(2), code(0), "gone"),
            8 => frame::put_goaway(&mut out, pick(rng, 9) as u32, code(2), "broken"),
            9 => return floods(&[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8], rng),
            10 => return floods(&[0, 0, 0, 4, 0, 0, 0, 0, 0], rng),
            11 => {
                frame::put(&mut out, kind::HEADERS, flag::END_HEADERS, id, STATUS_200);
                let mut data = Vec::new();
                frame::put(&mut data, kind::DATA, 0, id, &[0; 1_000]);
                let mut acts = sends(&out, rng);
                acts.extend(floods(&data, rng));
                return acts;
            }
            12 => {
                frame::put(&mut out, kind::HEADERS, end, id, STATUS_200);
                return breaks_off(&out, rng);
            }
            13 => connection::put_settings(
                &mut out,
                &[(connection::id::MAX_CONCURRENT_STREAMS, pick(rng, 4) as u32)],
            ),
            14 => frame::put(&mut out, 0xEE, 0, 0, &[1; 40]),
            15 => frame::put(&mut out, kind::HEADERS, end, id + 2 * pick(rng, 3) as u32, &[0xFF]),
            16 => {
                frame::put(&mut out, kind::HEADERS, end, id, STATUS_200);
                return vec![(soon(rng), Act::SendsLast(out, whole))];
            }
            _ => {
                frame::put(&mut out, kind::HEADERS, flag::END_HEADERS, id, STATUS_200);
                frame::put(&mut out, kind::DATA, flag::END_STREAM, id, b"hello");
                ends_whole = whole;
            }
        }
        if out.is_empty() { Acts::new() } else { answers(&out, ends_whole, rng) }
    }
}

fn code(number: u32) -> crate::exchange::http2::ErrorCode {
    crate::exchange::http2::ErrorCode(number)
}
