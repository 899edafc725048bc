//! The keys of the live view among the bytes that a terminal sends.

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

/// The keys among the bytes of one read. Others mean nothing, and neither does text behind an escape
/// (ECMA-48 §5.4, XTerm Control Sequences): a terminal sends a sequence at once. Control characters
/// are keys wherever they stand.
pub fn keys(bytes: &[u8]) -> impl Iterator<Item = ViewKey> {
    let escape = bytes.iter().position(|byte| *byte == 0x1b).unwrap_or(bytes.len());
    bytes.iter().enumerate().filter_map(move |(at, byte)| match byte {
        0x03 => Some(ViewKey::Interrupt),
        0x1a => Some(ViewKey::Suspend),
        0x0c => Some(ViewKey::Redraw),
        b'q' if at < escape => Some(ViewKey::Quit),
        b'v' if at < escape => Some(ViewKey::View),
        b'?' if at < escape => Some(ViewKey::Help),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<ViewKey> {
        keys(bytes).collect()
    }

    #[test]
    fn each_key_is_found_also_in_a_burst() {
        use ViewKey::{Help, Interrupt, Quit, Redraw, Suspend, View};
        assert_eq!(read(b"qv?\x03\x1a\x0c"), [Quit, View, Help, Interrupt, Suspend, Redraw]);
        assert_eq!(read(b"vxv \r\nQV"), [View, View]);
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
            assert!(read(bytes).is_empty(), "{bytes:?}");
            assert_eq!(read(&[&b"v"[..], bytes].concat()), [ViewKey::View], "{bytes:?}");
            assert_eq!(read(&[bytes, b"\x03"].concat()), [ViewKey::Interrupt], "{bytes:?}");
        }
    }
}
