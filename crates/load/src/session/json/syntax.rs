//! Whether a text is JSON, byte by byte, without keeping it.

/// The most containers within each other.
const DEPTH_MAX: usize = 4096;

/// Checks that a text is one JSON value (RFC 8259).
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonSyntax {
    place: Place,
    /// The containers that are open: whether each is an object.
    open: Vec<bool>,
    /// Of a character of several bytes: how many are to come, and the bounds of the next.
    coming: u8,
    bounds: (u8, u8),
    /// Strings need not be UTF-8.
    takes_any_bytes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before a value.
    #[default]
    Value,
    /// The same, or before the end of an array.
    Element,
    /// Before a key.
    Key,
    /// The same, or before the end of an object.
    Member,
    Colon,
    /// Behind a value in a container.
    After,
    /// In a string, which is a key or a value.
    Text(bool),
    Escape(bool),
    /// In the digits of `\u`: how many are to come.
    Digits(bool, u8),
    /// In true, false or null: what is to come.
    Word(&'static [u8]),
    Number(NumberPlace),
    /// The value is whole.
    Whole,
    Broken,
}

/// Behind which part of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberPlace {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl JsonSyntax {
    /// Begins another text.
    pub(crate) fn begin(&mut self) {
        *self = JsonSyntax {
            open: std::mem::take(&mut self.open),
            takes_any_bytes: self.takes_any_bytes,
            ..JsonSyntax::default()
        };
        self.open.clear();
    }

    /// Has bytes of strings that are not UTF-8 taken, or not: a server-sent event is decoded before
    /// it is JSON, and such bytes are replaced then (WHATWG HTML §9.2.6).
    pub(crate) fn take_any_bytes(&mut self, takes: bool) {
        self.takes_any_bytes = takes;
    }

    /// The next bytes of the text.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            rest = after;
            if let Place::Text(is_key) = self.place {
                let plain =
                    |byte: &u8| (0x20..0x80).contains(byte) && !matches!(byte, b'"' | b'\\');
                if self.coming > 0 || !plain(byte) {
                    self.text(*byte, is_key);
                } else {
                    rest = &rest[rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len())..];
                }
                continue;
            }
            self.step(*byte);
        }
    }

    /// Whether the text, which is over, is one value.
    pub(crate) fn is_whole(&self) -> bool {
        let ends_number = matches!(self.place, Place::Number(place) if place.may_end());
        self.place == Place::Whole || ends_number && self.open.is_empty()
    }

    /// Whether the text is no JSON, whatever may follow.
    pub(crate) fn is_broken(&self) -> bool {
        self.place == Place::Broken
    }

    /// A byte outside of the plain characters of a string.
    fn step(&mut self, byte: u8) {
        if let Place::Number(place) = self.place {
            match place.after(byte) {
                Some(next) => return self.place = Place::Number(next),
                None if place.may_end() => self.end_value(),
                None => return self.place = Place::Broken,
            }
        }
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.place = match (self.place, byte) {
            (Place::Escape(is_key), b'u') => Place::Digits(is_key, 4),
            (Place::Escape(is_key), byte) if br#""\/bfnrt"#.contains(&byte) => Place::Text(is_key),
            (Place::Digits(is_key, left), byte) if byte.is_ascii_hexdigit() => match left {
                1 => Place::Text(is_key),
                left => Place::Digits(is_key, left - 1),
            },
            (Place::Word([expected, rest @ ..]), byte) if *expected == byte => match rest {
                [] => return self.end_value(),
                rest => Place::Word(rest),
            },
            (Place::Escape(_) | Place::Digits(..) | Place::Word(_) | Place::Broken, _) => {
                Place::Broken
            }
            (place, _) if is_blank => place,
            (Place::Element, b']') | (Place::Member, b'}') => return self.close(byte),
            (Place::After, b']' | b'}') => return self.close(byte),
            (Place::Value | Place::Element, byte) => return self.begin_value(byte),
            (Place::Key | Place::Member, b'"') => Place::Text(true),
            (Place::Colon, b':') => Place::Value,
            (Place::After, b',') => match self.open.last() {
                Some(true) => Place::Key,
                _ => Place::Value,
            },
            _ => Place::Broken,
        };
    }

    fn begin_value(&mut self, byte: u8) {
        self.place = match byte {
            b'"' => Place::Text(false),
            b't' => Place::Word(b"rue"),
            b'f' => Place::Word(b"alse"),
            b'n' => Place::Word(b"ull"),
            b'-' => Place::Number(NumberPlace::Minus),
            b'0' => Place::Number(NumberPlace::Zero),
            b'1'..=b'9' => Place::Number(NumberPlace::Integer),
            b'{' | b'[' if self.open.len() < DEPTH_MAX => {
                self.open.push(byte == b'{');
                if byte == b'{' { Place::Member } else { Place::Element }
            }
            _ => Place::Broken,
        };
    }

    fn close(&mut self, byte: u8) {
        match self.open.pop() {
            Some(is_object) if is_object == (byte == b'}') => self.end_value(),
            _ => self.place = Place::Broken,
        }
    }

    fn end_value(&mut self) {
        self.place = if self.open.is_empty() { Place::Whole } else { Place::After };
    }

    /// A byte of a string that is not plain, or within a character: UTF-8 by RFC 3629 §4.
    fn text(&mut self, byte: u8, is_key: bool) {
        if self.takes_any_bytes && byte >= 0x80 {
            return;
        }
        if self.coming > 0 {
            let (low, high) = self.bounds;
            if !(low..=high).contains(&byte) {
                self.place = Place::Broken;
            }
            self.bounds = (0x80, 0xbf);
            self.coming -= 1;
            return;
        }
        (self.coming, self.bounds) = match byte {
            b'"' if is_key => return self.place = Place::Colon,
            b'"' => return self.end_value(),
            b'\\' => return self.place = Place::Escape(is_key),
            0xc2..=0xdf => (1, (0x80, 0xbf)),
            0xe0 => (2, (0xa0, 0xbf)),
            0xed => (2, (0x80, 0x9f)),
            0xe1..=0xef => (2, (0x80, 0xbf)),
            0xf0 => (3, (0x90, 0xbf)),
            0xf1..=0xf3 => (3, (0x80, 0xbf)),
            0xf4 => (3, (0x80, 0x8f)),
            _ => return self.place = Place::Broken,
        };
    }
}

impl NumberPlace {
    fn after(self, byte: u8) -> Option<NumberPlace> {
        use NumberPlace::*;
        Some(match (self, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Integer, b'0'..=b'9') => Integer,
            (Zero | Integer, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Integer | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => ExponentSign,
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => ExponentDigits,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        use NumberPlace::*;
        matches!(self, Zero | Integer | Fraction | ExponentDigits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_events_need_not_be_utf8() {
        for (text, as_event, as_json) in [
            (&b"{\"a\":\"\xff\"}"[..], true, false),
            (b"[\"\xc3\"]", true, false),
            (b"[\"\xc3\xa9\"]", true, true),
            (b"[\xff]", false, false),
            (b"[\"\xff\x01\"]", false, false),
        ] {
            for (takes, expected) in [(true, as_event), (false, as_json)] {
                let mut syntax = JsonSyntax::default();
                syntax.take_any_bytes(takes);
                syntax.begin();
                syntax.feed(text);
                assert_eq!(syntax.is_whole(), expected, "{takes} {}", text.escape_ascii());
            }
        }
    }
}
