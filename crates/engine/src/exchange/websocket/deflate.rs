//! Compressed messages: permessage-deflate (RFC 7692).

use super::WebSocketViolation;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use knee_load::spec::DeflateParameter;

/// The end of what is flushed, which no message has (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// Room for a message that is kept; more is given back.
const KEPT_BYTES: usize = 4096;

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateAgreement {
    /// The server begins each message without the text of those before.
    pub server_resets: bool,
    /// The client does.
    pub client_resets: bool,
}

impl DeflateAgreement {
    /// What a server's answer to an offer without `client_max_window_bits` says. `None`: it is not
    /// permitted.
    pub fn read(answer: &str) -> Option<DeflateAgreement> {
        let mut parts = answer.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case("permessage-deflate") {
            return None;
        }
        let mut agreed = DeflateAgreement::default();
        let mut has_window = false;
        for part in parts {
            // None stands there twice (RFC 7692 §7.1).
            let is_there = match DeflateParameter::parse(part)? {
                DeflateParameter::ServerResets => &mut agreed.server_resets,
                DeflateParameter::ClientResets => &mut agreed.client_resets,
                DeflateParameter::ServerWindow(_) => &mut has_window,
                DeflateParameter::ClientWindow(_) => return None,
            };
            if std::mem::replace(is_there, true) {
                return None;
            }
        }
        Some(agreed)
    }
}

/// Compresses messages.
#[derive(Debug)]
pub struct MessageDeflater {
    stream: Compress,
    /// Each message begins without the text of those before.
    resets: bool,
}

impl MessageDeflater {
    /// A new one, which `resets` before each message or not.
    pub fn new(resets: bool) -> MessageDeflater {
        MessageDeflater { stream: Compress::new(Compression::fast(), false), resets }
    }

    /// Puts a compressed message in the place of what `out` holds.
    pub fn deflate(&mut self, message: &[u8], out: &mut Vec<u8>) {
        if self.resets {
            self.stream.reset();
        }
        out.clear();
        let before = self.stream.total_in();
        loop {
            let taken = (self.stream.total_in() - before) as usize;
            out.reserve((message.len() - taken) / 2 + 64);
            // Without an end there is no state in which it fails.
            let _ = self.stream.compress_vec(&message[taken..], out, FlushCompress::Sync);
            let is_taken = self.stream.total_in() - before == message.len() as u64;
            if is_taken && out.len() < out.capacity() {
                break;
            }
        }
        if out.ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
    }
}

/// Reads compressed messages.
#[derive(Debug)]
pub struct MessageInflater {
    stream: Decompress,
    /// Each message begins without the text of those before.
    resets: bool,
    text: Vec<u8>,
}

impl MessageInflater {
    /// A new one, which `resets` before each message or not.
    pub fn new(resets: bool) -> MessageInflater {
        MessageInflater { stream: Decompress::new(false), resets, text: Vec::new() }
    }

    /// Puts the text of a compressed message in its place.
    ///
    /// # Errors
    /// It is none, or has more than `bytes_max` bytes.
    pub fn inflate(
        &mut self,
        message: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), WebSocketViolation> {
        if self.resets {
            self.stream.reset(false);
        }
        message.extend_from_slice(&TAIL);
        self.text.clear();
        self.text.shrink_to(KEPT_BYTES);
        let mut rest = &message[..];
        loop {
            let room = rest.len().saturating_mul(2).max(64).min(bytes_max + 1 - self.text.len());
            self.text.reserve(room);
            let before = (self.stream.total_in(), self.text.len());
            let read = self.stream.decompress_vec(rest, &mut self.text, FlushDecompress::Sync);
            let status = read.map_err(|_| WebSocketViolation::NotDeflate)?;
            let taken = (self.stream.total_in() - before.0) as usize;
            rest = &rest[taken..];
            if self.text.len() > bytes_max {
                return Err(WebSocketViolation::MessageTooLong(bytes_max));
            }
            if status == Status::StreamEnd {
                // Another block follows one that says that it is the last (RFC 7692 §7.2.3.4).
                self.stream.reset(false);
            } else if rest.is_empty() && self.text.len() < self.text.capacity() {
                break;
            } else if taken == 0 && self.text.len() == before.1 {
                return Err(WebSocketViolation::NotDeflate);
            }
            if rest.is_empty() && status == Status::StreamEnd {
                break;
            }
        }
        std::mem::swap(message, &mut self.text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples_of_the_standard_are_read() {
        // RFC 7692 §7.2.3.1 to .5: one block, one again by its window, no compression, a last
        // block, and two blocks.
        let mut inflater = MessageInflater::new(false);
        for compressed in [
            &b"\xf2\x48\xcd\xc9\xc9\x07\x00"[..],
            b"\xf2\x00\x11\x00\x00",
            b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00",
            b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
            b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
        ] {
            let mut message = compressed.to_vec();
            inflater.inflate(&mut message, 5).unwrap();
            assert_eq!(message, b"Hello", "{}", compressed.escape_ascii());
        }
        let mut message = b"\xf2\x48\xcd\xc9\xc9\x07\x00".to_vec();
        let too_long = inflater.inflate(&mut message, 4);
        assert_eq!(too_long, Err(WebSocketViolation::MessageTooLong(4)));
    }

    #[test]
    fn a_bomb_is_no_longer_than_its_bound() {
        let (mut deflater, mut inflater) = (MessageDeflater::new(true), MessageInflater::new(true));
        let mut bomb = Vec::new();
        deflater.deflate(&vec![0; 8 << 20], &mut bomb);
        assert!(bomb.len() < 128 << 10, "{}", bomb.len());
        let error = inflater.inflate(&mut bomb.clone(), 1 << 20);
        assert_eq!(error, Err(WebSocketViolation::MessageTooLong(1 << 20)));
        assert!(inflater.text.capacity() <= 3 << 20, "{}", inflater.text.capacity());
        inflater.inflate(&mut bomb, 8 << 20).unwrap();
        assert_eq!(bomb.len(), 8 << 20);
    }

    #[test]
    fn an_answer_may_say_what_was_offered() {
        let agreed =
            |server_resets, client_resets| Some(DeflateAgreement { server_resets, client_resets });
        for (answer, want) in [
            ("permessage-deflate", agreed(false, false)),
            ("permessage-deflate; server_no_context_takeover", agreed(true, false)),
            ("permessage-deflate;client_no_context_takeover", agreed(false, true)),
            ("Permessage-Deflate; server_max_window_bits=10", agreed(false, false)),
            ("permessage-deflate; client_max_window_bits=15", None),
            ("permessage-deflate; server_max_window_bits=7", None),
            ("permessage-deflate; other", None),
            ("x-deflate", None),
            ("permessage-deflate, permessage-deflate", None),
            ("permessage-deflate; server_no_context_takeover; server_no_context_takeover", None),
            ("permessage-deflate; server_max_window_bits=10; server_max_window_bits=10", None),
        ] {
            assert_eq!(DeflateAgreement::read(answer), want, "{answer}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn messages_come_back_whole(
            messages in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..2000),
                    "[ab]{0,3000}".prop_map(String::into_bytes),
                ],
                1..6,
            ),
            client_resets in any::<bool>(),
        ) {
            let mut deflater = MessageDeflater::new(client_resets);
            // One that keeps its window reads both.
            let mut inflater = MessageInflater::new(false);
            let mut compressed = Vec::new();
            for message in messages {
                deflater.deflate(&message, &mut compressed);
                let mut text = compressed.clone();
                prop_assert_eq!(inflater.inflate(&mut text, 3000), Ok(()));
                prop_assert_eq!(&text, &message);
                if client_resets {
                    let mut alone = compressed.clone();
                    prop_assert_eq!(MessageInflater::new(true).inflate(&mut alone, 3000), Ok(()));
                    prop_assert_eq!(alone, message);
                }
            }
        }

        #[test]
        fn any_bytes_are_a_bounded_text_or_none(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..4),
            resets in any::<bool>(),
        ) {
            let mut inflater = MessageInflater::new(resets);
            for mut message in messages {
                if inflater.inflate(&mut message, 100).is_err() {
                    break;
                }
                prop_assert!(message.len() <= 100);
            }
        }
    }
}
