//! The text of a message as far as it is looked at.

use memchr::memchr2;

/// A message up to this length is kept as it is. Memory beyond it is given back.
const PLAIN_BYTES_MAX: usize = 16 << 10;

/// Bytes of each JSON string and of each row of numbers that are kept of a longer message: more than
/// is shown of any.
const PART_BYTES_MAX: usize = 4 << 10;

/// Bytes of a message that are kept.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;

/// The text of the message that is coming. Strings and rows of numbers of a long one are shortened, so
/// that it stays JSON, and what stands behind an image or a context is kept.
#[derive(Debug, Default)]
pub(super) struct KeptText {
    bytes: Vec<u8>,
    /// Strings and rows of numbers are shortened.
    is_long: bool,
    in_string: bool,
    /// Bytes of the current string or row that are kept.
    part_bytes: usize,
    /// The rest of that is left out.
    leaves_out: bool,
    /// Bytes of an escape that are to come.
    escape_left: u8,
    /// The message has more than [`TEXT_BYTES_MAX`] even so.
    is_cut: bool,
}

impl KeptText {
    /// Begins another message.
    pub(super) fn begin(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.shrink_to(PLAIN_BYTES_MAX);
        *self = KeptText { bytes, ..KeptText::default() };
    }

    /// What is kept of the message.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Whether more than such had to be left out.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes the next bytes of the message.
    #[inline]
    pub(super) fn put(&mut self, data: &[u8]) {
        if !self.is_long {
            if self.bytes.len() + data.len() <= PLAIN_BYTES_MAX {
                return self.bytes.extend_from_slice(data);
            }
            self.is_long = true;
            let begin = std::mem::take(&mut self.bytes);
            self.shorten(&begin);
        }
        self.shorten(data);
    }

    fn shorten(&mut self, data: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = data.get(at) {
            if self.leaves_out {
                at += self.leave_out(&data[at..]);
                continue;
            }
            let begins_unit = self.escape_left == 0 && !(0x80..0xc0).contains(&byte);
            let may_end = if self.in_string { begins_unit } else { byte == b',' };
            if may_end && self.part_bytes >= PART_BYTES_MAX {
                self.leaves_out = true;
                continue;
            }
            at += 1;
            self.keep(byte);
            if byte == b'"' && begins_unit {
                (self.in_string, self.part_bytes) = (!self.in_string, 0);
                continue;
            }
            let is_part = self.in_string || is_of_numbers(byte);
            self.part_bytes = if is_part { self.part_bytes + 1 } else { 0 };
            self.escape_left = match self.escape_left {
                0 => u8::from(self.in_string && byte == b'\\'),
                1 if byte == b'u' => 4,
                left => left - 1,
            };
        }
    }

    /// Bytes of a string or a row that are left out; how many.
    fn leave_out(&mut self, data: &[u8]) -> usize {
        if self.escape_left > 0 {
            self.escape_left = 0;
            return 1;
        }
        let end = if self.in_string {
            memchr2(b'"', b'\\', data)
        } else {
            data.iter().position(|byte| !is_of_numbers(*byte))
        };
        match end {
            None => data.len(),
            Some(at) if data[at] == b'\\' => {
                self.escape_left = 1;
                at + 1
            }
            Some(at) => {
                (self.leaves_out, self.part_bytes) = (false, 0);
                // What follows other than the end of the row is set off by a comma.
                if !self.in_string && data[at] != b']' {
                    self.keep(b',');
                }
                at
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        self.is_cut |= self.bytes.len() >= TEXT_BYTES_MAX;
        if !self.is_cut {
            self.bytes.push(byte);
        }
    }
}

/// Whether a row of numbers may have this byte.
fn is_of_numbers(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE, \t\r\n".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn kept(text: &str, piece: usize) -> (String, bool) {
        let mut kept = KeptText::default();
        text.as_bytes().chunks(piece).for_each(|piece| kept.put(piece));
        (String::from_utf8(kept.bytes().to_vec()).unwrap(), kept.is_cut())
    }

    #[test]
    fn long_strings_are_shortened_wherever_they_are_cut() {
        let whole = PLAIN_BYTES_MAX / 8;
        for unit in ["a", "ä", "€", "😀", "\\n", "\\\"", "\\\\", "\\u00e4", "x\\u00e4"] {
            for before in ["", "a", "aa", "aaa", "aaaa"] {
                let long = unit.repeat(4 * whole);
                let text = format!("{{\"a\":\"{before}{long}\",\"b\":[1,\"c\\\"\"]}}");
                for piece in [1, 7, 4096, text.len()] {
                    let (kept, is_cut) = kept(&text, piece);
                    let value: Value = serde_json::from_str(&kept).unwrap();
                    assert_eq!(value["b"], serde_json::json!([1, "c\""]), "{unit} {before}");
                    let is_shorter = kept.len() < PART_BYTES_MAX + 64;
                    assert_eq!((is_shorter, is_cut), (text.len() > PLAIN_BYTES_MAX, false));
                }
            }
        }
    }

    #[test]
    fn long_rows_of_numbers_are_shortened_wherever_they_are_cut() {
        for unit in ["1,", "-12345.5e+3,", "128000 , ", "1,\n"] {
            for behind in ["7]", "7,\"a\"]", "7,null,-1]", "7,[2],3]"] {
                let text = format!("{{\"a\":[{}{behind},\"b\":false}}", unit.repeat(10_000));
                for piece in [1, 7, text.len()] {
                    let (kept, is_cut) = kept(&text, piece);
                    let value: Value = serde_json::from_str(&kept).unwrap();
                    assert_eq!(value["b"], false, "{unit} {behind}");
                    assert_eq!((kept.len() < 2 * PART_BYTES_MAX, is_cut), (true, false));
                }
            }
        }
    }

    #[test]
    fn what_is_no_long_string_stays_up_to_the_limit() {
        let short = format!("{{\"a\":\"{}\"}}", "a".repeat(PLAIN_BYTES_MAX - 8));
        assert_eq!(kept(&short, 100), (short.clone(), false));
        let lists = "[],".repeat(TEXT_BYTES_MAX / 3);
        assert_eq!(kept(&lists, 4096), (lists.clone(), false));
        let (more, is_cut) = kept(&format!("{lists}[],"), 4096);
        assert_eq!((more.len(), is_cut), (TEXT_BYTES_MAX, true));
    }
}
