//! Readers of the messages in responses, by operation.

use super::{CountMode, MessageFormat, MessagePiece, MessageRules, Splitter};
use crate::session::json::{JsonScan, Pointer, ValueCapture};
use crate::time::Nanos;

/// Reads the bodies of responses and finds their messages.
///
/// Whoever decodes responses knows operations only, and hands over what belongs to their bodies.
#[derive(Debug, Default)]
pub struct MessageReaders {
    /// Rules by request.
    rules: Vec<RequestMessages>,
    /// All requests have the rules by default.
    is_plain: bool,
    /// Readers by operation.
    readers: Vec<BodyReader>,
    /// Why a response is no whole stream of its kind, for the first time.
    fault: Option<String>,
}

/// A complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    /// The operation.
    pub op: u32,
    /// The number that it counts as; `None` where it has none.
    pub units: Option<u64>,
    /// It began in an earlier piece of the body than it ended in.
    pub is_cut: bool,
}

/// The rules of a request, ready for use.
#[derive(Debug)]
struct RequestMessages {
    rules: MessageRules,
    pointer: Vec<Pointer>,
}

/// What the responses to a request are known to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    /// No response is under way, or it is no stream.
    #[default]
    Off,
    /// It is a stream of server-sent events if its head says so.
    Waits,
    /// It is read.
    On,
}

/// One response that is read.
#[derive(Debug, Default)]
struct BodyReader {
    reading: Reading,
    request: u32,
    splitter: Option<Splitter>,
    /// Bytes of the end message that agree so far; `None`: the message is another.
    matched: Option<usize>,
    json: JsonScan,
    number: [ValueCapture; 1],
    /// The last count of the stream so far.
    counted: u64,
    messages: u64,
    /// The end message has come.
    has_ended: bool,
    /// The head says that the body is compressed.
    is_encoded: bool,
    /// The content type, where it is not that of the format.
    other_type: Option<Box<str>>,
    /// A value at the place of the count was no number.
    no_number: bool,
}

impl MessageReaders {
    /// Readers by these rules, one for each request.
    pub fn new<'a>(rules: impl Iterator<Item = Option<&'a MessageRules>>) -> MessageReaders {
        let mut is_plain = true;
        let each = |rules: Option<&MessageRules>| {
            is_plain &= rules.is_none();
            let rules = rules.cloned().unwrap_or_default();
            let pointer = rules.count.iter().map(|text| Pointer::new(text)).collect();
            RequestMessages { rules, pointer }
        };
        let rules = rules.map(each).collect();
        MessageReaders { rules, is_plain, ..MessageReaders::default() }
    }

    /// Whether any response was or is read.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        !self.readers.is_empty()
    }

    /// An operation begins, which asks for request number `request`. Costs nothing where all have
    /// the rules by default.
    #[inline]
    pub fn begin(&mut self, op: u32, request: usize) {
        if !self.is_plain {
            self.prepare(op, request);
        }
    }

    fn prepare(&mut self, op: u32, request: usize) {
        if self.readers.len() <= op as usize {
            self.readers.resize_with(op as usize + 1, BodyReader::default);
        }
        let Some(of) = self.rules.get(request) else {
            return;
        };
        let reader = &mut self.readers[op as usize];
        reader.begin(request, of);
        if of.rules.format.is_none() {
            reader.reading = Reading::Waits;
        }
    }

    /// The response of an operation turns out to be a stream of server-sent events.
    pub fn open_events(&mut self, op: u32) {
        if self.is_plain {
            self.prepare(op, 0);
        }
        if let Some(reader) = self.readers.get_mut(op as usize)
            && reader.reading == Reading::Waits
        {
            reader.open(MessageFormat::Sse);
        }
    }

    /// Whether the response of an operation is read, or waits for its head.
    #[inline]
    pub fn reads(&self, op: u32) -> bool {
        self.readers.get(op as usize).is_some_and(|reader| reader.reading != Reading::Off)
    }

    /// Whether the response of an operation is known to be a stream.
    #[inline]
    pub fn is_stream(&self, op: u32) -> bool {
        self.readers.get(op as usize).is_some_and(|reader| reader.reading == Reading::On)
    }

    /// The longest time without a message in the response of an operation.
    #[inline]
    pub fn timeout(&self, op: u32) -> Option<Nanos> {
        let reader = self.readers.get(op as usize)?;
        self.rules.get(reader.request as usize)?.rules.timeout
    }

    /// A field of the head of the final response.
    pub fn on_field(&mut self, op: u32, name: &[u8], value: &[u8]) {
        if self.is_plain && name.eq_ignore_ascii_case(b"content-type") && is_event_stream(value) {
            return self.open_events(op);
        }
        let Some((reader, of)) = self.of(op) else {
            return;
        };
        if name.eq_ignore_ascii_case(b"content-encoding") {
            reader.is_encoded = !value.eq_ignore_ascii_case(b"identity");
        } else if name.eq_ignore_ascii_case(b"content-type") {
            let is_events = is_event_stream(value);
            if reader.reading == Reading::Waits && is_events {
                reader.open(MessageFormat::Sse);
            } else if of.rules.format == Some(MessageFormat::Sse) && !is_events {
                let shown = &value[..value.len().min(TYPE_SHOWN)];
                reader.other_type = Some(String::from_utf8_lossy(shown).into());
            }
        }
    }

    /// Bytes of the body of an operation's response. `each` is given the messages that they
    /// complete.
    pub fn on_body(&mut self, op: u32, bytes: &[u8], mut each: impl FnMut(ReadMessage)) {
        if let Some((reader, of)) = self.of(op) {
            reader.take(op, of, &mut each, |splitter, each| splitter.feed(bytes, each));
        }
    }

    /// A chunk or frame of the body has ended.
    #[inline]
    pub fn on_border(&mut self, op: u32, mut each: impl FnMut(ReadMessage)) {
        if let Some((reader, of)) = self.of(op) {
            reader.take(op, of, &mut each, |splitter, each| splitter.on_border(each));
        }
    }

    /// The body is over, with the response or with its connection.
    pub fn on_end(&mut self, op: u32, mut each: impl FnMut(ReadMessage)) {
        if let Some((reader, of)) = self.of(op) {
            reader.take(op, of, &mut each, |splitter, each| splitter.end(each));
        }
    }

    /// Ends the reading of an operation's response: why it is no whole stream, if it is none.
    /// `None` where it was not read.
    #[inline]
    pub fn finish(&mut self, op: u32) -> Option<Option<String>> {
        let (reader, of) = self.of(op)?;
        let reading = std::mem::take(&mut reader.reading);
        if reading != Reading::On {
            return None;
        }
        let fault = reader.fault(&of.rules);
        if let (None, Some(no_number)) = (&fault, reader.count_fault(&of.rules)) {
            self.note_fault(no_number);
        }
        Some(fault)
    }

    /// Keeps the first fault of a stream.
    pub fn note_fault(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    /// Why a response was no whole stream of its kind, for the first time.
    pub fn first_fault(&self) -> Option<String> {
        self.fault.clone()
    }

    fn of(&mut self, op: u32) -> Option<(&mut BodyReader, &RequestMessages)> {
        let reader = self.readers.get_mut(op as usize)?;
        let of = self.rules.get(reader.request as usize)?;
        Some((reader, of))
    }
}

/// Bytes of a content type that are shown.
const TYPE_SHOWN: usize = 60;

/// Whether a content type is that of server-sent events.
pub fn is_event_stream(value: &[u8]) -> bool {
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

impl BodyReader {
    fn begin(&mut self, request: usize, of: &RequestMessages) {
        *self = BodyReader {
            request: request as u32,
            matched: Some(0),
            json: std::mem::take(&mut self.json),
            number: std::mem::take(&mut self.number),
            ..BodyReader::default()
        };
        if let Some(format) = of.rules.format.filter(|format| *format != MessageFormat::None) {
            self.open(format);
        }
        self.begin_number(of);
    }

    fn open(&mut self, format: MessageFormat) {
        self.reading = Reading::On;
        self.splitter = Some(Splitter::new(format));
    }

    fn begin_number(&mut self, of: &RequestMessages) {
        if !of.pointer.is_empty() {
            self.json.begin(&of.pointer);
            self.number[0].reset();
        }
    }

    /// Has the splitter take a part of the body, and completes the messages in it.
    #[inline]
    fn take(
        &mut self,
        op: u32,
        of: &RequestMessages,
        each: &mut impl FnMut(ReadMessage),
        part: impl FnOnce(&mut Splitter, &mut dyn FnMut(MessagePiece<'_>)),
    ) {
        let Some(mut splitter) = self.splitter.filter(|_| self.reading == Reading::On) else {
            return;
        };
        if self.is_encoded {
            return;
        }
        let end = of.rules.end_of(splitter.format()).as_bytes();
        let mut is_cut = splitter.is_within();
        part(&mut splitter, &mut |piece| match piece {
            MessagePiece::Data(data) => self.put(data, end, of),
            MessagePiece::End => {
                if let Some(units) = self.complete(end, of) {
                    each(ReadMessage { op, units, is_cut });
                }
                is_cut = false;
            }
        });
        self.splitter = Some(splitter);
    }

    #[inline]
    fn put(&mut self, data: &[u8], end: &[u8], of: &RequestMessages) {
        self.matched = self.matched.filter(|&at| end[at..].starts_with(data));
        self.matched = self.matched.map(|at| at + data.len());
        if !of.pointer.is_empty() {
            self.json.feed(data, &of.pointer, &mut self.number);
        }
    }

    /// Completes a message. Returns what it counts as, unless it is the end message or comes after
    /// it.
    #[inline]
    fn complete(&mut self, end: &[u8], of: &RequestMessages) -> Option<Option<u64>> {
        let matched = self.matched.replace(0);
        self.has_ended |= !end.is_empty() && matched == Some(end.len());
        if self.has_ended {
            return None;
        }
        self.messages += 1;
        if of.pointer.is_empty() {
            return Some(Some(1));
        }
        self.json.end(&mut self.number);
        let units = self.number(of.rules.count_mode);
        self.begin_number(of);
        Some(units)
    }

    /// The count that was found in the message.
    fn number(&mut self, mode: CountMode) -> Option<u64> {
        let text = self.number[0].value().filter(|text| *text != b"null")?;
        let text = std::str::from_utf8(text).ok();
        let number = text.and_then(|text| text.parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite() && *number >= 0.0) else {
            self.no_number = true;
            return None;
        };
        let number = number.round() as u64;
        Some(match mode {
            CountMode::Each => number,
            CountMode::Last => {
                let before = std::mem::replace(&mut self.counted, number);
                number.saturating_sub(before)
            }
        })
    }

    /// Why it is no whole stream, in words.
    fn fault(&self, rules: &MessageRules) -> Option<String> {
        let splitter = self.splitter?;
        let format = splitter.format();
        let end = rules.end_of(format);
        if self.is_encoded {
            return Some("the body is compressed, so that no message can be read".to_owned());
        }
        if splitter.is_other() {
            return Some("a line is no JSON".to_owned());
        }
        if self.has_ended {
            return None;
        }
        if let (Some(other), 0) = (&self.other_type, self.messages) {
            return Some(format!("the content type is {other}, not text/event-stream"));
        }
        if splitter.is_within() {
            return Some("the response ended in the middle of a message".to_owned());
        }
        if !end.is_empty() && rules.needs_end() {
            return Some(format!("the response ended without the message {end}"));
        }
        // A server of gRPC may have nothing to send.
        (self.messages == 0 && format != MessageFormat::Grpc)
            .then(|| "the response has no message".to_owned())
    }

    /// What is wrong with the counts of a whole stream, in words.
    fn count_fault(&self, rules: &MessageRules) -> Option<String> {
        let place = rules.count.as_ref().filter(|_| self.no_number)?;
        Some(format!("the value at {place} is no number"))
    }
}
