//! Readers of the messages in responses, by operation.

use super::kept_text::{KeptText, TEXT_BYTES_MAX};
use super::stream_api::MessageMeaning;
use super::{CountMode, MessageFormat, MessagePiece, MessageRules, Splitter, StreamApi};
use crate::session::json::{JsonScan, JsonSyntax, Pointer, ValueCapture, replace_lone_surrogates};
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
    faults: StreamFaults,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnding {
    /// It is whole.
    Whole,
    /// It is no whole stream of its kind: why, in words.
    Incomplete(String),
    /// A message of it is an error: the text of the first.
    Error(String),
}

/// What was wrong with streams, for the first time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFaults {
    /// Why one was not whole, in words.
    pub incomplete: Option<String>,
    /// The text of an error in one.
    pub error: Option<String>,
}

impl StreamFaults {
    /// Of each kind that of `self`, or else that of `other`.
    pub fn or(self, other: StreamFaults) -> StreamFaults {
        StreamFaults {
            incomplete: self.incomplete.or(other.incomplete),
            error: self.error.or(other.error),
        }
    }
}

/// A complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadMessage {
    /// The operation.
    pub op: u32,
    /// The number that it counts as; `None` where it has none.
    pub units: Option<u64>,
    /// Tokens of output of its stream so far; 0 where it does not say.
    pub tokens: u32,
    /// The API of its stream, as far as that is known.
    pub api: StreamApi,
    /// It has output. All messages have, unless an API says otherwise.
    pub is_output: bool,
    /// It began in an earlier piece of the body than it ended in.
    pub is_cut: bool,
}

/// The rules of a request, ready for use.
#[derive(Debug)]
struct RequestMessages {
    rules: MessageRules,
    /// The place of the count and that of the end, each if any.
    pointers: Vec<Pointer>,
    /// The value at the last of them that ends a stream.
    end_value: Option<String>,
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
    found: Vec<ValueCapture>,
    /// The API of the stream, as far as that is known.
    api: StreamApi,
    /// Whether messages are looked at.
    is_looked_at: bool,
    /// Of the message that is coming: the name of its event and its text, as far as they are kept.
    event: Vec<u8>,
    text: KeptText,
    /// The count of the stream so far.
    counted: u64,
    /// Messages with output.
    messages: u64,
    /// The text of the first error in a message.
    error: Option<String>,
    /// What a field `error` says, as far as it is kept.
    error_field: Vec<u8>,
    /// The output is complete, by the word of the API.
    has_finished: bool,
    /// Choices that had a part, and those that are complete: see [`MessageMeaning::choices`].
    choices: u64,
    choices_finished: u64,
    /// Whether the message that is coming is JSON, where it may have to be, …
    syntax: JsonSyntax,
    /// … by the format of the body.
    needs_json: bool,
    /// A message had to be JSON and was not.
    is_broken: bool,
    /// The end message has come.
    has_ended: bool,
    /// A message was too long to be looked at as a whole.
    is_cut: bool,
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
            let end = rules.end.as_deref().and_then(MessageRules::end_value);
            let pointers = rules.count.as_deref().into_iter().chain(end.map(|(at, _)| at));
            let pointers = pointers.map(Pointer::new).collect();
            RequestMessages { end_value: end.map(|(_, value)| value.to_owned()), pointers, rules }
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
    }

    /// The response of an operation turns out to be a stream of server-sent events.
    pub fn open_events(&mut self, op: u32) {
        if self.is_plain {
            self.prepare(op, 0);
        }
        if let Some((reader, of)) = self.of(op)
            && reader.reading == Reading::Waits
        {
            reader.open(MessageFormat::Sse, of.rules.api);
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
        if name.eq_ignore_ascii_case(b"content-type") {
            reader.on_content_type(value, &of.rules);
        }
    }

    /// Bytes of the body of an operation's response. `each` is given the messages that they
    /// complete.
    pub fn on_body(&mut self, op: u32, bytes: &[u8], each: impl FnMut(ReadMessage)) {
        self.on_pieces(op, bytes, each, |_| {});
    }

    /// The same, where others are given the pieces of messages too.
    pub fn on_pieces(
        &mut self,
        op: u32,
        bytes: &[u8],
        mut each: impl FnMut(ReadMessage),
        mut pieces: impl FnMut(MessagePiece<'_>),
    ) {
        if let Some((reader, of)) = self.of(op) {
            reader.take(op, of, &mut each, |splitter, each| {
                splitter.feed(bytes, |piece| {
                    pieces(piece);
                    each(piece);
                });
            });
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
            // A last line that is JSON lacks its newline only.
            let is_whole = reader.syntax.is_whole();
            reader.take(op, of, &mut each, |splitter, each| splitter.end(is_whole, each));
            reader.end_without_empty_line(of);
        }
    }

    /// Whether the response of an operation is split into messages that may each be JSON.
    #[inline]
    pub fn is_of_json(&self, op: u32) -> bool {
        let reader = self.readers.get(op as usize);
        let reader = reader.filter(|reader| reader.reading == Reading::On);
        let splitter = reader.and_then(|reader| reader.splitter.as_ref());
        splitter.is_some_and(|splitter| splitter.format().may_be_of_api())
    }

    /// Ends the reading of an operation's response: how its stream ended. `None` where it was not
    /// read.
    #[inline]
    pub fn finish(&mut self, op: u32) -> Option<StreamEnding> {
        let (reader, of) = self.of(op)?;
        let reading = std::mem::take(&mut reader.reading);
        if reading != Reading::On {
            return None;
        }
        let ending = match (reader.take_error(), reader.fault(&of.rules)) {
            (Some(error), _) => StreamEnding::Error(error),
            (None, Some(fault)) => StreamEnding::Incomplete(fault),
            (None, None) => StreamEnding::Whole,
        };
        if let (StreamEnding::Whole, Some(no_number)) = (&ending, reader.count_fault(&of.rules)) {
            self.note_fault(StreamEnding::Incomplete(no_number));
        }
        Some(ending)
    }

    /// Keeps what was wrong with a stream, for the first time.
    pub fn note_fault(&mut self, ending: StreamEnding) {
        match ending {
            StreamEnding::Whole => {}
            StreamEnding::Incomplete(why) => drop(self.faults.incomplete.get_or_insert(why)),
            StreamEnding::Error(text) => drop(self.faults.error.get_or_insert(text)),
        }
    }

    /// What was wrong with streams, for the first time.
    pub fn first_faults(&self) -> StreamFaults {
        self.faults.clone()
    }

    fn of(&mut self, op: u32) -> Option<(&mut BodyReader, &RequestMessages)> {
        let reader = self.readers.get_mut(op as usize)?;
        let of = self.rules.get(reader.request as usize)?;
        Some((reader, of))
    }
}

/// Bytes of a content type that are shown.
const TYPE_SHOWN: usize = 60;

/// Bytes of the name of an event that are kept.
const EVENT_BYTES_MAX: usize = 64;

/// Bytes of a field `error` that are kept.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// Whether a content type is that of server-sent events.
pub fn is_event_stream(value: &[u8]) -> bool {
    MessageFormat::of_content_type(value) == Some(MessageFormat::Sse)
}

/// Replaces bytes that are not UTF-8, as a reader of events does.
fn replace_invalid(text: &mut [u8]) {
    let mut from = 0;
    while let Err(error) = std::str::from_utf8(&text[from..]) {
        from += error.valid_up_to() + 1;
        text[from - 1] = b'?';
    }
}

/// Whether a content type is that of JSON.
fn is_json(value: &[u8]) -> bool {
    const JSON: &[u8] = b"application/json";
    value.get(..JSON.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(JSON))
}

/// Appends as many bytes as there is room for.
fn put_within(room: usize, bytes: &[u8], out: &mut Vec<u8>) {
    let room = room.saturating_sub(out.len());
    out.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

impl BodyReader {
    fn begin(&mut self, request: usize, of: &RequestMessages) {
        *self = BodyReader {
            request: request as u32,
            matched: Some(0),
            json: std::mem::take(&mut self.json),
            found: std::mem::take(&mut self.found),
            event: std::mem::take(&mut self.event),
            text: std::mem::take(&mut self.text),
            syntax: std::mem::take(&mut self.syntax),
            ..BodyReader::default()
        };
        self.event.clear();
        self.text.begin();
        self.syntax.begin();
        self.found.resize_with(of.pointers.len(), ValueCapture::default);
        self.begin_values(of);
        let MessageRules { format, api, .. } = of.rules;
        match format.or(api.rules().map(|rules| rules.format)) {
            None => self.reading = Reading::Waits,
            Some(MessageFormat::None) => {}
            Some(format) => self.open(format, api),
        }
    }

    fn open(&mut self, format: MessageFormat, api: StreamApi) {
        self.reading = Reading::On;
        self.splitter = Some(Splitter::new(format));
        let is_possible = format.may_be_of_api() || api != StreamApi::Auto;
        self.api = if is_possible { api } else { StreamApi::None };
        self.is_looked_at = self.api != StreamApi::None;
        self.needs_json = matches!(format, MessageFormat::Ndjson | MessageFormat::Array);
        self.syntax.take_any_bytes(format == MessageFormat::Sse);
    }

    fn on_content_type(&mut self, value: &[u8], rules: &MessageRules) {
        let named = MessageFormat::of_content_type(value);
        let is_events = named == Some(MessageFormat::Sse);
        if self.reading == Reading::Waits {
            if is_events {
                self.open(MessageFormat::Sse, rules.api);
            }
            return;
        }
        let of_api = rules.api.rules();
        if let (None, Some(of_api)) = (rules.format, of_api) {
            let is_array = rules.api == StreamApi::Gemini && is_json(value);
            let format = named.unwrap_or(of_api.format);
            self.open(if is_array { MessageFormat::Array } else { format }, rules.api);
        }
        let format = self.splitter.map(|splitter| splitter.format());
        let is_asked = rules.format.is_some() || of_api.is_some();
        if is_asked && format == Some(MessageFormat::Sse) && !is_events {
            let shown = &value[..value.len().min(TYPE_SHOWN)];
            self.other_type = Some(String::from_utf8_lossy(shown).into());
        }
    }

    fn begin_values(&mut self, of: &RequestMessages) {
        if !of.pointers.is_empty() {
            self.json.begin(&of.pointers);
            self.found.iter_mut().for_each(ValueCapture::reset);
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
        let end = of.rules.end_of(splitter.format()).as_bytes();
        let mut is_cut = splitter.is_within();
        part(&mut splitter, &mut |piece| match piece {
            MessagePiece::Data(data) => self.put(data, end, of),
            MessagePiece::Name(name) => self.put_name(name),
            MessagePiece::Error(text) => self.put_error(text),
            MessagePiece::End => {
                if let Some(message) = self.complete(end, of) {
                    each(ReadMessage { op, is_cut, ..message });
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
        if !of.pointers.is_empty() {
            self.json.feed(data, &of.pointers, &mut self.found);
        }
        if self.is_looked_at {
            self.text.put(data);
        }
        if self.needs_json || self.is_looked_at && self.api != StreamApi::None {
            self.syntax.feed(data);
        }
    }

    fn put_name(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.event.clear();
        } else if self.is_looked_at {
            put_within(EVENT_BYTES_MAX, name, &mut self.event);
        }
    }

    fn put_error(&mut self, text: &[u8]) {
        if self.is_looked_at && !self.has_ended {
            put_within(ERROR_BYTES_MAX, text, &mut self.error_field);
        }
    }

    /// The text of the first error, if there is one.
    fn take_error(&mut self) -> Option<String> {
        let field = std::mem::take(&mut self.error_field);
        let of_field = || StreamApi::error_of(&field).filter(|_| !field.is_empty());
        self.error.take().or_else(of_field)
    }

    /// Completes a message, unless it is the end message or comes after it.
    #[inline]
    fn complete(&mut self, end: &[u8], of: &RequestMessages) -> Option<ReadMessage> {
        let matched = self.matched.replace(0);
        self.has_ended |= !end.is_empty() && matched == Some(end.len());
        let message = (!self.has_ended).then(|| self.read(of));
        if self.is_looked_at {
            self.event.clear();
            self.text.begin();
        }
        self.syntax.begin();
        if !of.pointers.is_empty() {
            self.begin_values(of);
        }
        message
    }

    /// The body is over: an end message behind a complete output needs no empty line.
    fn end_without_empty_line(&mut self, of: &RequestMessages) {
        let format = self.splitter.map(|splitter| splitter.format());
        let end = format.map_or("", |format| of.rules.end_of(format));
        let is_end = !end.is_empty() && self.matched == Some(end.len());
        self.has_ended |= is_end && self.api.rules().is_some() && self.has_finished();
    }

    /// What the message says that is complete.
    #[inline]
    fn read(&mut self, of: &RequestMessages) -> ReadMessage {
        let meaning = if self.is_looked_at {
            self.is_cut |= self.text.is_cut();
            let text = self.text.bytes();
            replace_lone_surrogates(text);
            replace_invalid(text);
            self.api.meaning(&self.event, text)
        } else {
            MessageMeaning { is_output: true, ..MessageMeaning::default() }
        };
        let MessageMeaning { mut is_output, tokens, .. } = meaning;
        self.error = self.error.take().or(meaning.error);
        self.choices |= meaning.choices;
        self.choices_finished |= meaning.choices_finished;
        self.has_finished |= meaning.is_finish;
        self.is_broken |= (meaning.needs_json || self.needs_json) && !self.syntax.is_whole();
        self.has_ended |= meaning.is_end;
        if !of.pointers.is_empty() {
            self.json.end(&mut self.found);
        }
        if of.end_value.is_some()
            && self.found.last().and_then(ValueCapture::value)
                == of.end_value.as_deref().map(str::as_bytes)
        {
            self.has_ended = true;
            // Without an API nobody knows whether it has output beside.
            is_output &= self.api.rules().is_some();
        }
        self.messages += u64::from(is_output);
        let units = match &of.rules.count {
            Some(_) => self.number(of.rules.count_mode),
            None => {
                let counted = self.messages.max(tokens.unwrap_or(0).into()).max(self.counted);
                Some(counted - std::mem::replace(&mut self.counted, counted))
            }
        };
        let tokens = tokens.unwrap_or(0);
        ReadMessage { op: 0, units, tokens, api: self.api, is_output, is_cut: false }
    }

    /// The count that was found in the message.
    fn number(&mut self, mode: CountMode) -> Option<u64> {
        let text = self.found[0].value().filter(|text| *text != b"null")?;
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
        if splitter.is_other() || self.is_broken || self.needs_json && self.syntax.is_broken() {
            let wrong = match format {
                MessageFormat::Array if splitter.is_other() => "the body",
                MessageFormat::Ndjson => "a line",
                _ => "a message",
            };
            return Some(format!("{wrong} is no JSON"));
        }
        if self.is_cut && self.api.rules().is_some() {
            let limit = TEXT_BYTES_MAX >> 20;
            return Some(format!(
                "a message has more than {limit} MiB beside long strings and numbers"
            ));
        }
        let has_output = self.messages > 0;
        if !has_output && self.api.rules().is_some() && (self.has_ended || self.has_finished()) {
            return Some(format!("no message has output of the API {}", self.api.name()));
        }
        if let (Some(other), false) = (&self.other_type, has_output) {
            return Some(format!("the content type is {other}, not text/event-stream"));
        }
        if splitter.is_within() && !self.has_ended {
            return Some("the response ended in the middle of a message".to_owned());
        }
        if let Some(end) = self.missing_end(rules, format).filter(|_| !self.has_ended) {
            return Some(format!("the response ended without the message {end}"));
        }
        // A server of gRPC may have nothing to send.
        (!has_output && format != MessageFormat::Grpc)
            .then(|| "the response has no message".to_owned())
    }

    /// Whether the output is complete, by the word of the API: that of each choice, where it has
    /// choices.
    fn has_finished(&self) -> bool {
        let are_finished = self.choices != 0 && self.choices == self.choices_finished;
        self.has_finished || are_finished
    }

    /// The end that a stream needed and did not have. Where the API is known, it is enough that the
    /// output is complete, unless its format was asked for.
    fn missing_end<'a>(&self, rules: &'a MessageRules, format: MessageFormat) -> Option<&'a str> {
        let end = rules.end_of(format);
        match self.api.rules() {
            Some(api) if rules.end.is_none() => {
                let is_strict = rules.format == Some(api.format) && api.has_end_message;
                (!self.has_finished() || is_strict).then_some(api.end)
            }
            _ => (!end.is_empty() && rules.needs_end()).then_some(end),
        }
    }

    /// What is wrong with the counts of a whole stream, in words.
    fn count_fault(&self, rules: &MessageRules) -> Option<String> {
        let place = rules.count.as_ref().filter(|_| self.no_number)?;
        Some(format!("the value at {place} is no number"))
    }
}
