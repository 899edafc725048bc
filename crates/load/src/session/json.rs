//! Finds values in a JSON text by their pointers as it comes in, in bounded memory, without keeping
//! the text.

mod syntax;

use crate::quantity::{ParseError, error, quoted};
use memchr::memchr;
pub(crate) use syntax::JsonSyntax;

/// A value longer than this is not kept.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 10;

/// A key longer than this matches nothing.
const KEY_BYTES_MAX: usize = 512;

/// The most pointers that are looked for at once.
pub(crate) const POINTERS_MAX: usize = 64;

/// A value as far as it has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueCapture {
    pub(crate) state: CaptureState,
    pub(crate) bytes: Vec<u8>,
    /// It is what a string says.
    pub(crate) is_text: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CaptureState {
    #[default]
    Missing,
    /// It has begun.
    Coming,
    Whole,
    /// It has more than [`VALUE_BYTES_MAX`].
    TooLong,
    /// It was not found in what was read of a page with too many elements.
    Unread,
}

impl ValueCapture {
    pub(crate) fn reset(&mut self) {
        self.state = CaptureState::Missing;
        self.is_text = false;
        self.bytes.clear();
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        (self.state == CaptureState::Whole).then_some(&self.bytes)
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.state == CaptureState::TooLong {
            return;
        }
        if self.bytes.len() + bytes.len() > VALUE_BYTES_MAX {
            self.state = CaptureState::TooLong;
            self.bytes = Vec::new();
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn set(&mut self, value: &[u8]) {
        self.reset();
        self.state = CaptureState::Whole;
        self.put(value);
    }

    /// Appends a further value; null is none.
    pub(crate) fn join(&mut self, further: &ValueCapture) {
        let is_null = !further.is_text && further.bytes == b"null";
        match further.state {
            CaptureState::Whole if !is_null && self.state != CaptureState::TooLong => {
                self.state = CaptureState::Whole;
                self.put(&further.bytes);
            }
            CaptureState::TooLong => self.state = CaptureState::TooLong,
            _ => {}
        }
    }

    fn end(&mut self) {
        if self.state == CaptureState::Coming {
            self.state = CaptureState::Whole;
        }
    }
}

/// A JSON Pointer (RFC 6901), cut into what its parts say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<Vec<u8>>);

/// Checks a JSON Pointer (RFC 6901).
pub fn parse_pointer(text: &str) -> Result<String, ParseError> {
    let shown = quoted(text);
    if !(text.is_empty() || text.starts_with('/')) {
        let meant = text.trim_start_matches('$').replace(['.', '['], "/").replace(']', "");
        let meant = quoted(&format!("/{}", meant.trim_start_matches('/')));
        return Err(error(format!("{shown} is no JSON Pointer: it begins with '/', as {meant}")));
    }
    let mut escapes = text.split('~').skip(1);
    if escapes.any(|rest| !rest.starts_with(['0', '1'])) {
        return Err(error(format!("{shown} is no JSON Pointer: write ~0 for '~' and ~1 for '/'")));
    }
    Ok(text.to_owned())
}

impl Pointer {
    /// Of a valid pointer: empty, or beginning with `/`.
    pub(crate) fn new(text: &str) -> Pointer {
        let parts = text.split('/').skip(1);
        let plain = |part: &str| part.replace("~1", "/").replace("~0", "~").into_bytes();
        Pointer(parts.map(plain).collect())
    }
}

/// Where in a JSON text the bytes so far have led.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonScan {
    syntax: JsonSyntax,
    state: State,
    /// The containers around the current place, as far as pointers lead into them: no more than the
    /// longest pointer has parts.
    levels: Vec<Level>,
    /// Bit by bit, the pointers that lead to the current value or through it.
    leads: u64,
    /// Those whose value is a string or bare word that is coming in.
    takes: u64,
    /// Those whose value is a container that is coming in, …
    raw: u64,
    /// … and how many containers were open around each when it began.
    raw_from: Vec<u32>,
    /// Containers open in one that no pointer leads into.
    skipped: u32,
    key: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    leads: u64,
    is_array: bool,
    index: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Value,
    /// In a string value; whether the byte before was an open backslash.
    Text(bool),
    /// In a number, true, false or null.
    Bare,
    /// In an object, before a key.
    Key,
    KeyText(bool),
    Colon,
    After,
    /// In a container that no pointer leads into; in a string there, after an open backslash there.
    Skip(bool, bool),
    /// The text is one whole value: nothing but blanks may follow.
    Whole,
    /// The text is no JSON.
    Broken,
}

impl JsonScan {
    /// Begins a text in which `pointers` are looked for, whose values go into `found`.
    pub(crate) fn begin(&mut self, pointers: &[Pointer]) {
        let count = pointers.len().min(POINTERS_MAX);
        self.syntax.begin();
        *self = JsonScan {
            syntax: std::mem::take(&mut self.syntax),
            state: match count {
                0 => State::Whole,
                _ => State::Value,
            },
            leads: match count {
                POINTERS_MAX => u64::MAX,
                n => (1 << n) - 1,
            },
            levels: std::mem::take(&mut self.levels),
            raw_from: std::mem::take(&mut self.raw_from),
            key: std::mem::take(&mut self.key),
            ..JsonScan::default()
        };
        self.levels.clear();
        self.key.clear();
        self.raw_from.clear();
        self.raw_from.resize(count, 0);
    }

    /// The next bytes of the text.
    pub(crate) fn feed(&mut self, bytes: &[u8], pointers: &[Pointer], found: &mut [ValueCapture]) {
        self.syntax.feed(bytes);
        if self.syntax.is_broken() {
            self.state = State::Broken;
        }
        let mut at = 0;
        while at < bytes.len() && self.state != State::Broken {
            let from = at;
            let raw_before = self.raw;
            at += match self.state {
                State::Text(escaped) => self.text(&bytes[at..], escaped, found),
                State::Skip(in_text, escaped) => self.skip(&bytes[at..], in_text, escaped, found),
                _ => self.step(bytes[at], pointers, found),
            };
            // The first byte of a container counts, as does its last.
            each(raw_before | self.raw, |p| found[p].put(&bytes[from..at]));
            self.end_raw(raw_before, found);
        }
    }

    /// The text is over. One that is no JSON has no values.
    pub(crate) fn end(&mut self, found: &mut [ValueCapture]) {
        // Only a number at the top has no byte of its own that ends it.
        if self.state == State::Bare && self.levels.is_empty() {
            self.end_value(found);
        }
        if !self.is_whole() {
            found.iter_mut().for_each(ValueCapture::reset);
        }
    }

    /// Whether the text so far is one whole value.
    pub(crate) fn is_whole(&self) -> bool {
        self.syntax.is_whole()
    }

    /// How many containers are open.
    fn depth(&self) -> u32 {
        self.levels.len() as u32 + self.skipped
    }

    /// Containers that have closed are whole.
    fn end_raw(&mut self, before: u64, found: &mut [ValueCapture]) {
        if before == 0 {
            return;
        }
        let depth = self.depth();
        let mut ended = 0;
        each(self.raw & before, |p| {
            if self.raw_from[p] >= depth {
                ended |= 1 << p;
                found[p].end();
            }
        });
        self.raw &= !ended;
        if ended != 0 {
            self.finish_if_all(found);
        }
    }

    fn finish_if_all(&mut self, found: &[ValueCapture]) {
        let is_settled =
            |f: &ValueCapture| matches!(f.state, CaptureState::Whole | CaptureState::TooLong);
        if self.raw == 0 && found.iter().take(self.raw_from.len()).all(is_settled) {
            // The rest is passed over up to its end.
            self.leads = 0;
            self.levels.iter_mut().for_each(|level| level.leads = 0);
        }
    }

    /// One byte outside of strings; how many bytes that took.
    fn step(&mut self, byte: u8, pointers: &[Pointer], found: &mut [ValueCapture]) -> usize {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Bare if is_blank || matches!(byte, b',' | b']' | b'}') => {
                self.end_value(found);
                return 0;
            }
            State::Bare => each(self.takes, |p| found[p].put(&[byte])),
            _ if is_blank => {}
            State::Value => self.value(byte, pointers, found),
            State::Key => match byte {
                b'"' => {
                    self.key.clear();
                    self.state = State::KeyText(false);
                }
                b'}' => self.close(),
                b',' => {}
                _ => self.state = State::Broken,
            },
            State::KeyText(escaped) => self.key_byte(byte, escaped, pointers),
            State::Colon => {
                self.state = match byte {
                    b':' => State::Value,
                    _ => State::Broken,
                }
            }
            State::After => match byte {
                b',' => self.next_element(pointers),
                b']' | b'}' => self.close(),
                _ => self.state = State::Broken,
            },
            State::Whole => self.state = State::Broken,
            State::Text(_) | State::Skip(..) | State::Broken => {}
        }
        1
    }

    /// A value begins.
    fn value(&mut self, byte: u8, pointers: &[Pointer], found: &mut [ValueCapture]) {
        let depth = self.levels.len();
        let mut hits = 0;
        each(self.leads, |p| {
            if pointers[p].0.len() == depth && found[p].state == CaptureState::Missing {
                hits |= 1 << p;
            }
        });
        // An empty array closes at once.
        if byte == b']' {
            return self.close();
        }
        each(hits, |p| {
            found[p].bytes.clear();
            found[p].state = CaptureState::Coming;
            found[p].is_text = byte == b'"';
        });
        match byte {
            b'"' => {
                self.takes = hits;
                self.state = State::Text(false);
            }
            b'{' | b'[' => self.open(byte == b'[', hits, pointers),
            _ => {
                each(hits, |p| found[p].put(&[byte]));
                self.takes = hits;
                self.state = State::Bare;
            }
        }
    }

    fn open(&mut self, is_array: bool, hits: u64, pointers: &[Pointer]) {
        let depth = self.levels.len();
        each(hits, |p| self.raw_from[p] = depth as u32);
        self.raw |= hits;
        let mut leads = 0;
        each(self.leads, |p| {
            if pointers[p].0.len() > depth {
                leads |= 1 << p;
            }
        });
        if leads == 0 {
            self.skipped = 1;
            self.state = State::Skip(false, false);
            return;
        }
        self.levels.push(Level { leads, is_array, index: 0 });
        if is_array {
            self.lead(pointers, b"0");
            self.state = State::Value;
        } else {
            self.state = State::Key
        }
    }

    /// The pointers that lead to the child of this name.
    fn lead(&mut self, pointers: &[Pointer], name: &[u8]) {
        let depth = self.levels.len();
        let mut leads = 0;
        if let Some(level) = self.levels.last() {
            each(level.leads, |p| {
                if pointers[p].0[depth - 1] == name {
                    leads |= 1 << p;
                }
            });
        }
        self.leads = leads;
    }

    fn key_byte(&mut self, byte: u8, escaped: bool, pointers: &[Pointer]) {
        if byte == b'"' && !escaped {
            let key = std::mem::take(&mut self.key);
            if key.contains(&b'\\') {
                self.lead(pointers, &unescape(&key).unwrap_or(key.clone()))
            } else {
                self.lead(pointers, &key)
            }
            self.key = key;
            self.state = State::Colon;
            return;
        }
        if self.key.len() < KEY_BYTES_MAX {
            self.key.push(byte);
        }
        self.state = State::KeyText(byte == b'\\' && !escaped);
    }

    /// Bytes of a string value; how many of them belong to it.
    fn text(&mut self, bytes: &[u8], mut escaped: bool, found: &mut [ValueCapture]) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'"' && !escaped {
                each(self.takes, |p| found[p].put(&bytes[..at]));
                each(self.takes, |p| {
                    if found[p].bytes.contains(&b'\\')
                        && let Some(plain) = unescape(&found[p].bytes)
                    {
                        found[p].bytes = plain;
                    }
                });
                self.end_value(found);
                return at + 1;
            }
            escaped = byte == b'\\' && !escaped;
        }
        each(self.takes, |p| found[p].put(bytes));
        self.state = State::Text(escaped);
        bytes.len()
    }

    /// Bytes of a container that no pointer leads into; how many of them belong to it.
    fn skip(
        &mut self,
        bytes: &[u8],
        mut in_text: bool,
        mut escaped: bool,
        found: &[ValueCapture],
    ) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                b'"' if !escaped => in_text = !in_text,
                b'{' | b'[' if !in_text => self.skipped += 1,
                b'}' | b']' if !in_text => {
                    self.skipped -= 1;
                    if self.skipped == 0 {
                        self.state = State::After;
                        self.after_value(found);
                        return at + 1;
                    }
                }
                _ => {}
            }
            escaped = in_text && byte == b'\\' && !escaped;
        }
        self.state = State::Skip(in_text, escaped);
        bytes.len()
    }

    fn end_value(&mut self, found: &mut [ValueCapture]) {
        each(self.takes, |p| found[p].end());
        self.takes = 0;
        self.state = State::After;
        self.after_value(found);
    }

    fn after_value(&mut self, found: &[ValueCapture]) {
        if self.levels.is_empty() {
            self.state = State::Whole;
        }
        self.finish_if_all(found);
    }

    fn next_element(&mut self, pointers: &[Pointer]) {
        let Some(level) = self.levels.last_mut() else {
            return;
        };
        if !level.is_array {
            self.state = State::Key;
            return;
        }
        level.index = level.index.saturating_add(1);
        let index = level.index.to_string();
        self.lead(pointers, index.as_bytes());
        self.state = State::Value;
    }

    fn close(&mut self) {
        let is_open = self.levels.pop().is_some();
        self.state = match self.levels.is_empty() {
            _ if !is_open => State::Broken,
            true => State::Whole,
            false => State::After,
        };
    }
}

/// Calls `then` with the number of each bit that is set.
#[inline]
fn each(mut bits: u64, mut then: impl FnMut(usize)) {
    while bits != 0 {
        then(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// What the inside of a JSON string says.
fn unescape(inside: &[u8]) -> Option<Vec<u8>> {
    let mut quoted = Vec::with_capacity(inside.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inside);
    quoted.push(b'"');
    replace_lone_surrogates(&mut quoted);
    let text: Option<String> = serde_json::from_slice(&quoted).ok();
    text.map(String::into_bytes)
}

/// Replaces escapes of half a surrogate pair by that of U+FFFD. The grammar permits them (RFC 8259
/// §8.2), and no text has them.
pub(crate) fn replace_lone_surrogates(json: &mut [u8]) {
    let unit = |json: &[u8], at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(next) = json.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += next;
        at += match unit(json, at) {
            Some(0xd800..0xdc00)
                if unit(json, at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low)) =>
            {
                12
            }
            Some(0xd800..0xe000) => {
                json[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            _ => 2,
        };
    }
}

#[cfg(test)]
mod tests;
