//! The keys of the live view among the bytes that a terminal sends.

use std::time::{Duration, Instant};

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// To end early: q.
    Quit,
    /// Ctrl-C, which does not come as a signal here.
    Interrupt,
    /// Ctrl-Z, which does not either.
    Suspend,
    /// Ctrl-L: draw anew.
    Redraw,
    /// v
    View,
    /// ?
    Help,
}

/// Time limit of the next byte of a sequence. What follows later are keys again.
const SEQUENCE_PATIENCE: Duration = Duration::from_millis(100);

/// Finds keys, byte by byte. Other keys, escape sequences (ECMA-48 §5.4, XTerm Control Sequences)
/// and text that is not ASCII mean nothing, whole or not.
#[derive(Debug, Default)]
pub struct KeyReader {
    within: Sequence,
    /// When the last byte came.
    last: Option<Instant>,
}

/// Place within an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sequence {
    /// In none.
    #[default]
    None,
    /// After ESC. Alt and a key is ESC and that key.
    Escape,
    /// After ESC and `[`.
    Opened,
    /// In its parameters.
    Parameters,
    /// This number of bytes is left, whatever they are.
    Rest(u8),
}

impl KeyReader {
    /// The key that this byte is, which came at `now`.
    pub fn on_byte(&mut self, byte: u8, now: Instant) -> Option<ViewKey> {
        if self.last.is_some_and(|last| now - last > SEQUENCE_PATIENCE) {
            self.within = Sequence::None;
        }
        self.last = Some(now);
        let control = match byte {
            0x03 => Some(ViewKey::Interrupt),
            0x1a => Some(ViewKey::Suspend),
            0x0c => Some(ViewKey::Redraw),
            _ => None,
        };
        if control.is_some() {
            self.within = Sequence::None;
            return control;
        }
        let within = self.within;
        self.within = after(within, byte);
        match (within, byte) {
            (Sequence::None, b'q') => Some(ViewKey::Quit),
            (Sequence::None, b'v') => Some(ViewKey::View),
            (Sequence::None, b'?') => Some(ViewKey::Help),
            _ => None,
        }
    }
}

/// Where `byte` leads.
fn after(within: Sequence, byte: u8) -> Sequence {
    match (within, byte) {
        (_, 0x1b) => Sequence::Escape,
        (Sequence::Escape, b'[') => Sequence::Opened,
        // A key of the keypad, and a report of the mouse: button, column, row.
        (Sequence::Escape, b'O') => Sequence::Rest(1),
        (Sequence::Opened, b'M') => Sequence::Rest(3),
        (Sequence::Opened | Sequence::Parameters, 0x20..=0x3f) => Sequence::Parameters,
        (Sequence::Rest(left @ 2..), _) => Sequence::Rest(left - 1),
        _ => Sequence::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<ViewKey> {
        let (mut reader, now) = (KeyReader::default(), Instant::now());
        bytes.iter().filter_map(|byte| reader.on_byte(*byte, now)).collect()
    }

    #[test]
    fn each_key_is_found_also_in_a_burst() {
        use ViewKey::{Help, Interrupt, Quit, Redraw, Suspend, View};
        assert_eq!(keys(b"qv?\x03\x1a\x0c"), [Quit, View, Help, Interrupt, Suspend, Redraw]);
        assert_eq!(keys(b"vxv \r\nQV"), [View, View]);
    }

    #[test]
    fn sequences_and_other_text_mean_nothing() {
        let whole: [&[u8]; 11] = [
            b"\x1b[A",
            b"\x1b[1;5D",
            b"\x1b[15~",
            b"\x1bOq",
            b"\x1bq",
            b"\x1b\x1b[A",
            b"\x1b[Mqqq",
            b"\x1b[<0;81;81M",
            b"\x1b[?62;22c",
            "é".as_bytes(),
            b"\xff\xc3",
        ];
        for bytes in whole {
            assert!(keys(bytes).is_empty(), "{bytes:?}");
            assert_eq!(keys(&[bytes, b"v"].concat()), [ViewKey::View], "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_without_end_is_given_up() {
        for begun in [&b"\x1b"[..], b"\x1b[", b"\x1bO", b"\x1b[M", b"\x1b[1;", b"\xc3"] {
            let (mut reader, now) = (KeyReader::default(), Instant::now());
            for byte in begun {
                assert_eq!(reader.on_byte(*byte, now), None);
            }
            assert_eq!(reader.on_byte(3, now), Some(ViewKey::Interrupt), "{begun:?}");
            for byte in begun {
                assert_eq!(reader.on_byte(*byte, now), None);
            }
            let later = now + 2 * SEQUENCE_PATIENCE;
            assert_eq!(reader.on_byte(b'q', later), Some(ViewKey::Quit), "{begun:?}");
        }
    }
}
