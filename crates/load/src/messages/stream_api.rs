//! Streams of language models: what each message means, by the API that sends it.
//!
//! [`APIS`] has all that is known of an API. A message is read once, without a tree and without a
//! copy of what is of no interest.
//!
//! To add an API: its variant, its name and its row in [`APIS`], and its word in the schema of
//! scenarios.

use crate::shown::shown;
use memchr::memmem::find;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Deserializer;
use std::fmt;

/// The API whose streams are read.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum StreamApi {
    /// The one that the first messages of a stream are of.
    #[default]
    Auto,
    /// None: each message is output.
    None,
    /// Chat completions and completions of OpenAI, and of the many servers that speak like it.
    Openai,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    Anthropic,
    /// `streamGenerateContent` of Gemini.
    Gemini,
    /// `generate` and `chat` of Ollama.
    Ollama,
}

/// What a message of a stream says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageMeaning {
    /// It has output of the model: a part of a text, of reasoning or of a call of a tool.
    pub(crate) is_output: bool,
    /// It is an error: its text, which may be empty.
    pub(crate) error: Option<String>,
    /// The output is complete.
    pub(crate) is_finish: bool,
    /// Choices that it has a part of, and those of them whose output is complete: a bit for each of
    /// the first 64.
    pub(crate) choices: u64,
    pub(crate) choices_finished: u64,
    /// It has to be JSON.
    pub(crate) needs_json: bool,
    /// It is the last message.
    pub(crate) is_end: bool,
    /// Tokens of output of the stream so far.
    pub(crate) tokens: Option<u32>,
}

/// All that is known of an API.
pub(crate) struct StreamApiRules {
    api: StreamApi,
    /// How its responses are split unless their content type says otherwise.
    pub(crate) format: super::MessageFormat,
    /// How many values of [`Fact::Sign`] say that a message is of this API.
    signs: u32,
    /// So does a kind that begins like this.
    sign_kinds: &'static [&'static str],
    /// Kinds that may have output, by their ends; without any, all.
    output_kinds: &'static [&'static str],
    /// Kinds that are errors.
    error_kinds: &'static [&'static str],
    /// Kinds of a last message.
    end_kinds: &'static [&'static str],
    /// The message that ends a stream, for people.
    pub(crate) end: &'static str,
    /// A message of its own ends a stream, behind the one with which the output is complete.
    pub(crate) has_end_message: bool,
    /// What the values at these places say.
    facts: &'static [(Path, Fact)],
}

/// A place in a message: the keys that lead there, `*` for each element of an array.
type Path = &'static [&'static str];

/// What a value at a place says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fact {
    /// That the message is of this API.
    Sign,
    /// The kind of the message.
    Kind,
    /// Output, unless empty.
    Output,
    /// Output, if it is a text that is not empty: its parts, where it has some, are facts of their
    /// own.
    OutputText,
    /// One of several outputs.
    Choice,
    /// Its number.
    ChoiceIndex,
    /// That the output is complete, unless empty: of a choice, where it stands in one. One that an
    /// error completed says so.
    Finish,
    /// That it is the last message, if true.
    End,
    /// That it is an error, if true or not empty.
    Error,
    /// The text of an error, if it is one.
    ErrorText,
    /// A field that only an object of an error has.
    ErrorObject,
    /// That something failed: a status of 400 or more, false for success, a list of errors. It is an
    /// error where a text says what.
    Failure,
    /// Tokens of output so far. Numbers at several places add up.
    Tokens,
    /// All tokens of output so far, at any of several places.
    AllTokens,
}

use Fact::{
    AllTokens, Choice, ChoiceIndex, ErrorText, Failure, Finish, Kind, Output, OutputText, Sign,
    Tokens,
};

/// The APIs, in the order in which a message is compared with them. Sources, read in November 2026:
/// developers.openai.com/api/reference, platform.claude.com/docs/build-with-claude/streaming,
/// ai.google.dev/api/generate-content, docs.ollama.com/api/streaming; of servers that speak like
/// OpenAI: vLLM, SGLang, llama.cpp, OpenRouter, Azure, Mistral, Groq.
pub(crate) const APIS: &[StreamApiRules] = &[
    StreamApiRules {
        api: StreamApi::Openai,
        format: super::MessageFormat::Sse,
        signs: 1,
        sign_kinds: &["chat.completion", "text_completion"],
        output_kinds: &[],
        error_kinds: &["error"],
        end_kinds: &[],
        end: super::MessageRules::SSE_END,
        has_end_message: true,
        facts: &[
            (&["choices"], Sign),
            (&["object"], Kind),
            (&["choices", "*"], Choice),
            (&["choices", "*", "index"], ChoiceIndex),
            (&["choices", "*", "delta", "content"], OutputText),
            (&["choices", "*", "delta", "content", "*", "text"], Output),
            (&["choices", "*", "delta", "content", "*", "thinking", "*", "text"], Output),
            (&["choices", "*", "delta", "images"], Output),
            (&["choices", "*", "delta", "reasoning_content"], Output),
            (&["choices", "*", "delta", "reasoning"], Output),
            (&["choices", "*", "delta", "reasoning_text"], Output),
            (&["choices", "*", "delta", "reasoning_details", "*", "text"], Output),
            (&["choices", "*", "delta", "reasoning_details", "*", "summary"], Output),
            (&["choices", "*", "delta", "reasoning_details", "*", "data"], Output),
            (&["choices", "*", "delta", "thinking"], Output),
            (&["choices", "*", "delta", "refusal"], Output),
            (&["choices", "*", "delta", "tool_calls", "*", "function", "name"], Output),
            (&["choices", "*", "delta", "tool_calls", "*", "function", "arguments"], Output),
            (&["choices", "*", "delta", "tool_calls", "*", "custom", "name"], Output),
            (&["choices", "*", "delta", "tool_calls", "*", "custom", "input"], Output),
            (&["choices", "*", "delta", "function_call", "name"], Output),
            (&["choices", "*", "delta", "function_call", "arguments"], Output),
            (&["choices", "*", "delta", "audio", "data"], Output),
            (&["choices", "*", "delta", "audio", "transcript"], Output),
            (&["choices", "*", "text"], Output),
            (&["choices", "*", "finish_reason"], Finish),
            (&["choices", "*", "error"], Fact::Error),
            (&["choices", "*", "error", "message"], ErrorText),
            (&["x_groq", "error"], Fact::Error),
            (&["error"], Fact::Error),
            (&["error", "message"], ErrorText),
            (&["message"], ErrorText),
            (&["usage", "completion_tokens"], AllTokens),
            (&["choices", "*", "usage", "completion_tokens"], AllTokens),
            (&["x_groq", "usage", "completion_tokens"], AllTokens),
        ],
    },
    StreamApiRules {
        api: StreamApi::Anthropic,
        format: super::MessageFormat::Sse,
        signs: 1,
        sign_kinds: &["message_", "content_block_"],
        output_kinds: &["content_block_start", "content_block_delta"],
        error_kinds: &["error"],
        end_kinds: &["message_stop"],
        end: "message_stop",
        has_end_message: true,
        facts: &[
            (&["type"], Kind),
            (&["delta", "text"], Output),
            (&["delta", "thinking"], Output),
            (&["delta", "partial_json"], Output),
            (&["content_block", "text"], Output),
            (&["content_block", "thinking"], Output),
            (&["content_block", "data"], Output),
            (&["content_block", "name"], Output),
            (&["delta", "stop_reason"], Finish),
            (&["error"], Fact::Error),
            (&["error", "message"], ErrorText),
            (&["message", "usage", "output_tokens"], Tokens),
            (&["usage", "output_tokens"], Tokens),
        ],
    },
    StreamApiRules {
        api: StreamApi::Responses,
        format: super::MessageFormat::Sse,
        signs: 1,
        sign_kinds: &["response."],
        output_kinds: &[".delta", "response.output_item.added", ".partial_image"],
        // The last two are of the response that a message holds.
        error_kinds: &["error", "response.failed", "response.cancelled", "failed", "cancelled"],
        end_kinds: &[
            "response.completed",
            "response.incomplete",
            "response.failed",
            "response.cancelled",
        ],
        end: "response.completed",
        has_end_message: true,
        facts: &[
            (&["type"], Kind),
            (&["delta"], Output),
            (&["item", "name"], Output),
            (&["partial_image_b64"], Output),
            (&["error"], Fact::Error),
            (&["error", "message"], ErrorText),
            (&["message"], ErrorText),
            (&["response", "status"], Kind),
            (&["response", "error", "message"], ErrorText),
            (&["response", "usage", "output_tokens"], Tokens),
        ],
    },
    StreamApiRules {
        api: StreamApi::Gemini,
        format: super::MessageFormat::Sse,
        signs: 1,
        sign_kinds: &[],
        output_kinds: &[],
        error_kinds: &[],
        end_kinds: &[],
        end: "that has a finishReason",
        has_end_message: false,
        facts: &[
            (&["candidates"], Sign),
            (&["promptFeedback"], Sign),
            (&["usageMetadata"], Sign),
            (&["candidates", "*"], Choice),
            (&["candidates", "*", "index"], ChoiceIndex),
            (&["candidates", "*", "content", "parts", "*", "text"], Output),
            (&["candidates", "*", "content", "parts", "*", "functionCall"], Output),
            (&["candidates", "*", "content", "parts", "*", "executableCode"], Output),
            (&["candidates", "*", "content", "parts", "*", "codeExecutionResult"], Output),
            (&["candidates", "*", "content", "parts", "*", "fileData"], Output),
            (&["candidates", "*", "content", "parts", "*", "inlineData"], Output),
            (&["candidates", "*", "finishReason"], Finish),
            (&["promptFeedback", "blockReason"], Finish),
            (&["error"], Fact::Error),
            (&["error", "message"], ErrorText),
            (&["usageMetadata", "candidatesTokenCount"], Tokens),
            (&["usageMetadata", "thoughtsTokenCount"], Tokens),
        ],
    },
    StreamApiRules {
        api: StreamApi::Ollama,
        format: super::MessageFormat::Ndjson,
        signs: 2,
        sign_kinds: &[],
        output_kinds: &[],
        error_kinds: &[],
        end_kinds: &[],
        end: "that has \"done\": true",
        has_end_message: true,
        facts: &[
            (&["model"], Sign),
            (&["done"], Sign),
            (&["response"], Output),
            (&["thinking"], Output),
            (&["message", "content"], Output),
            (&["message", "thinking"], Output),
            (&["message", "tool_calls"], Output),
            (&["done"], Fact::End),
            (&["error"], Fact::Error),
            (&["eval_count"], Tokens),
        ],
    },
];

/// What is known of a message of any other API: errors and signs of life that many servers send.
static OTHERS: StreamApiRules = StreamApiRules {
    api: StreamApi::None,
    format: super::MessageFormat::Sse,
    signs: 0,
    sign_kinds: &[],
    output_kinds: &[],
    error_kinds: &["error"],
    end_kinds: &[],
    end: "",
    has_end_message: false,
    facts: &[
        (&["type"], Kind),
        (&["object"], Kind),
        (&["event"], Kind),
        (&["error"], Fact::Error),
        (&["error", "message"], Fact::ErrorObject),
        (&["error", "code"], Fact::ErrorObject),
        (&["error", "message"], ErrorText),
        (&["message"], ErrorText),
        (&["msg"], ErrorText),
        (&["detail"], ErrorText),
        (&["errors", "*", "message"], ErrorText),
        (&["errors"], Failure),
        (&["code"], Failure),
        (&["status"], Failure),
        (&["status_code"], Failure),
        (&["statusCode"], Failure),
        (&["success"], Failure),
    ],
};

/// The keys of a message that is an error and nothing else. Another key makes it one of data, such
/// as a record of a log, unless its error is an object with a message or a code.
const ERROR_KEYS: [&str; 29] = [
    "error",
    "errors",
    "error_type",
    "type",
    "event",
    "code",
    "message",
    "msg",
    "status",
    "status_code",
    "statusCode",
    "success",
    "object",
    "param",
    "detail",
    "details",
    "id",
    "request_id",
    "trace_id",
    "task_id",
    "message_id",
    "conversation_id",
    "user_id",
    "sequence_number",
    "created",
    "timestamp",
    "path",
    "model",
    "provider",
];

/// The name of an event, or the kind of a message, that is an error.
const ERROR: &str = "error";

/// Reasons of an end that are errors: "abort" of vLLM and SGLang, "cancelled" of TensorRT-LLM,
/// "insufficient_system_resource" of DeepSeek, "network_error" of Zhipu.
const ERROR_REASONS: [&str; 5] =
    [ERROR, "abort", "cancelled", "insufficient_system_resource", "network_error"];

/// Whether a reason of an end says that there is one. Gemini has a constant for none, and some
/// servers write null as a text.
fn is_reason(text: &str) -> bool {
    !text.is_empty() && text != "null" && !text.ends_with("_UNSPECIFIED")
}

/// Names of events, kinds of messages and texts that only keep a connection open.
const SIGNS_OF_LIFE: [&str; 4] = ["ping", "heartbeat", "keepalive", "keep-alive"];

/// Messages that say nothing.
const EMPTY: [&[u8]; 5] = [b"", b"null", b"{}", b"[]", b"\"\""];

/// Bytes of a message in which the word of an error has to begin, where the API is not known.
const ERROR_WITHIN: usize = 64;

/// Characters of an error's text that are kept.
const ERROR_SHOWN: usize = 300;

impl StreamApi {
    /// All that can be asked for, with their names.
    pub const NAMES: [(&'static str, StreamApi); 7] = [
        ("auto", StreamApi::Auto),
        ("openai", StreamApi::Openai),
        ("responses", StreamApi::Responses),
        ("anthropic", StreamApi::Anthropic),
        ("gemini", StreamApi::Gemini),
        ("ollama", StreamApi::Ollama),
        ("none", StreamApi::None),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = StreamApi::NAMES.iter();
        all.find(|(_, api)| *api == self).map_or("", |(name, _)| name)
    }

    /// Whether it is a certain one.
    pub fn is_known(self) -> bool {
        !matches!(self, StreamApi::Auto | StreamApi::None)
    }

    /// What is known of it; `None` where it is not certain.
    #[inline]
    pub(crate) fn rules(self) -> Option<&'static StreamApiRules> {
        APIS.iter().find(|rules| rules.api == self)
    }

    /// What a message means, by the name of its event and its text. An API that is not known
    /// becomes the one that the message is of, or none.
    pub(crate) fn meaning(&mut self, event: &[u8], text: &[u8]) -> MessageMeaning {
        if let Some(rules) = self.rules() {
            let found = rules.read(event, text);
            let mut meaning = found.meaning(rules, text);
            if meaning.error.is_none() && !found.is_of(rules) {
                // A gateway before the API tells of errors in its own words: any text is one here.
                let mut other = OTHERS.read(event, text);
                other.is_failure |= !other.is_sign_of_life;
                let error = other.meaning(&OTHERS, text).error;
                meaning.error = error.filter(|_| !other.has_other_keys);
            }
            return meaning;
        }
        if *self == StreamApi::Auto {
            for rules in APIS {
                let found = rules.read(event, text);
                if found.is_of(rules) {
                    *self = rules.api;
                    return found.meaning(rules, text);
                }
            }
        }
        let head = &text[..text.len().min(ERROR_WITHIN)];
        let is_named = event == ERROR.as_bytes();
        if is_named || *self == StreamApi::Auto || find(head, b"\"error\"").is_some() {
            let found = OTHERS.read(event, text);
            let meaning = found.meaning(&OTHERS, text);
            let is_of_data = found.has_other_keys && !found.is_error_object;
            if meaning.error.is_some() && (is_named || !is_of_data) {
                return MessageMeaning { is_output: false, needs_json: false, ..meaning };
            }
            // A server may send a sign of life before it says anything.
            if *self == StreamApi::Auto && (found.is_sign_of_life || says_nothing(text)) {
                return MessageMeaning::default();
            }
        }
        *self = StreamApi::None;
        MessageMeaning { is_output: true, ..MessageMeaning::default() }
    }

    /// The text of an error that was sent as such.
    pub(crate) fn error_of(text: &[u8]) -> Option<String> {
        OTHERS.read(ERROR.as_bytes(), text).meaning(&OTHERS, text).error
    }
}

/// What was found in a message.
#[derive(Debug, Default)]
struct FoundFacts {
    /// Bit by bit, the facts that are signs.
    signs: u64,
    has_kind: bool,
    is_sign_kind: bool,
    is_output_kind: bool,
    is_error_kind: bool,
    is_end_kind: bool,
    is_sign_of_life: bool,
    has_output: bool,
    is_finish: bool,
    choices: u64,
    choices_finished: u64,
    /// The choice that is being read: its number, and whether it is complete.
    choice: Option<(u64, bool)>,
    is_error_object: bool,
    needs_json: bool,
    is_end: bool,
    is_error: bool,
    is_failure: bool,
    error_text: Option<String>,
    tokens: Option<u32>,
    has_other_keys: bool,
}

impl StreamApiRules {
    /// Reads a message. Of one that is no JSON, its begin counts.
    fn read(&'static self, event: &[u8], text: &[u8]) -> FoundFacts {
        let mut found = FoundFacts::default();
        let active = (1 << self.facts.len()) - 1;
        let walk = Walk { rules: self, active, depth: 0, found: &mut found };
        let _ = walk.deserialize(&mut Deserializer::from_slice(text));
        if !found.has_kind {
            found.note_kind(self, &String::from_utf8_lossy(event));
        }
        found.is_error |= event == ERROR.as_bytes();
        found.needs_json = !found.is_error
            && !found.is_sign_of_life
            && !says_nothing(text)
            && text.trim_ascii() != super::MessageRules::SSE_END.as_bytes();
        found
    }
}

/// Whether a message, of any API or none, is there to keep a connection open.
fn says_nothing(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    EMPTY.contains(&text)
        || SIGNS_OF_LIFE.iter().any(|sign| text.eq_ignore_ascii_case(sign.as_bytes()))
}

impl FoundFacts {
    fn is_of(&self, rules: &StreamApiRules) -> bool {
        self.is_sign_kind || rules.signs > 0 && self.signs.count_ones() >= rules.signs
    }

    fn meaning(&self, rules: &StreamApiRules, text: &[u8]) -> MessageMeaning {
        let is_failure = self.is_failure && self.error_text.is_some();
        let is_error = self.is_error || self.is_error_kind || is_failure;
        let raw = || String::from_utf8_lossy(text).chars().take(ERROR_SHOWN).collect();
        MessageMeaning {
            is_output: self.has_output && (rules.output_kinds.is_empty() || self.is_output_kind),
            error: is_error
                .then(|| shown(&self.error_text.clone().unwrap_or_else(raw)).into_owned()),
            is_finish: self.is_finish,
            choices: self.choices,
            choices_finished: self.choices_finished,
            needs_json: self.needs_json,
            is_end: self.is_end || self.is_end_kind,
            tokens: self.tokens,
        }
    }

    fn note_kind(&mut self, rules: &StreamApiRules, kind: &str) {
        self.has_kind = true;
        self.is_sign_kind |= rules.sign_kinds.iter().any(|sign| kind.starts_with(sign));
        self.is_output_kind |= rules.output_kinds.iter().any(|output| kind.ends_with(output));
        self.is_error_kind |= rules.error_kinds.contains(&kind);
        self.is_end_kind |= rules.end_kinds.contains(&kind);
        self.is_sign_of_life |= SIGNS_OF_LIFE.contains(&kind);
    }

    /// Notes what a fact's value says. That of a container is noted as it begins and as it is filled.
    fn note(&mut self, rules: &StreamApiRules, number: usize, value: &FactValue<'_>) {
        let (_, fact) = rules.facts[number];
        let is_filled = value.is_filled();
        match (fact, value) {
            (Sign, _) => self.signs |= 1 << number,
            (Kind, FactValue::Text(kind)) => self.note_kind(rules, kind),
            (Output, _) | (OutputText, FactValue::Text(_)) => self.has_output |= is_filled,
            (Choice, FactValue::Over) => {
                if let Some((index, is_finished)) = self.choice.take() {
                    let bit = 1_u64.checked_shl(index as u32).unwrap_or(0);
                    self.choices |= bit;
                    self.choices_finished |= if is_finished { bit } else { 0 };
                }
            }
            (Choice, FactValue::Container { is_filled: false }) => self.choice = Some((0, false)),
            (ChoiceIndex, FactValue::Number(index)) => {
                let is_finished = self.choice.is_some_and(|(_, is_finished)| is_finished);
                self.choice = Some((*index, is_finished));
            }
            (Finish, FactValue::Text(reason)) => {
                match &mut self.choice {
                    Some((_, is_finished)) => *is_finished |= is_reason(reason),
                    None => self.is_finish |= is_reason(reason),
                }
                self.is_error |= ERROR_REASONS.contains(reason);
            }
            (Fact::ErrorObject, FactValue::Text(_) | FactValue::Number(_)) => {
                self.is_error_object |= is_filled;
            }
            (Failure, FactValue::Number(status)) => self.is_failure |= *status >= 400,
            (Failure, FactValue::Flag(is_success)) => self.is_failure |= !is_success,
            (Failure, FactValue::Container { .. }) => self.is_failure |= is_filled,
            (Fact::End, FactValue::Flag(is_end)) => self.is_end |= is_end,
            (Fact::Error | ErrorText, FactValue::Text(text)) => {
                self.is_error |= fact == Fact::Error && is_filled;
                if is_filled && self.error_text.is_none() {
                    self.error_text = Some(text.chars().take(ERROR_SHOWN).collect());
                }
            }
            (Fact::Error, FactValue::Flag(_) | FactValue::Container { .. }) => {
                self.is_error |= is_filled;
            }
            // A code; 0 is none.
            (Fact::Error, FactValue::Number(code)) => self.is_error |= *code > 0,
            (Tokens | AllTokens, FactValue::Number(tokens)) => {
                let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
                let before = self.tokens.unwrap_or(0);
                let is_part = fact == Tokens;
                self.tokens =
                    Some(if is_part { before.saturating_add(tokens) } else { before.max(tokens) });
            }
            _ => {}
        }
    }
}

/// A value in a message.
enum FactValue<'a> {
    Null,
    Flag(bool),
    /// A number. Negative numbers and fractions are not used.
    Number(u64),
    Text(&'a str),
    Container {
        is_filled: bool,
    },
    /// The end of an object.
    Over,
}

impl FactValue<'_> {
    fn is_filled(&self) -> bool {
        match self {
            FactValue::Null | FactValue::Over => false,
            FactValue::Flag(is_true) => *is_true,
            FactValue::Number(_) => true,
            FactValue::Text(text) => !text.is_empty(),
            FactValue::Container { is_filled } => *is_filled,
        }
    }
}

/// Goes through a message to the places of facts, and over everything else.
struct Walk<'f> {
    rules: &'static StreamApiRules,
    /// Bit by bit, the facts whose paths lead to the current value or through it.
    active: u64,
    depth: usize,
    found: &'f mut FoundFacts,
}

impl Walk<'_> {
    /// The facts whose paths lead to the child of this name.
    fn child(&self, key: &str) -> u64 {
        let mut active = 0;
        each(self.active, |fact| {
            let (path, _) = self.rules.facts[fact];
            if path.get(self.depth).is_some_and(|part| *part == key) {
                active |= 1 << fact;
            }
        });
        active
    }

    fn inner(&mut self, active: u64) -> Walk<'_> {
        Walk { rules: self.rules, active, depth: self.depth + 1, found: &mut *self.found }
    }

    fn note(&mut self, value: &FactValue<'_>) {
        each(self.active, |number| {
            let (path, _) = self.rules.facts[number];
            if path.len() == self.depth {
                self.found.note(self.rules, number, value);
            }
        });
    }

    fn end<E: Error>(mut self, value: &FactValue<'_>) -> Result<(), E> {
        self.note(value);
        Ok(())
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

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        if self.active == 0 {
            return value.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.end(&FactValue::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.end(&FactValue::Flag(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.end(&FactValue::Number(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.end(&FactValue::Number(value.max(0) as u64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.end(&FactValue::Number(value as u64))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.end(&FactValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let active = self.child("*");
        self.note(&FactValue::Container { is_filled: false });
        while elements.next_element_seed(self.inner(active))?.is_some() {
            self.note(&FactValue::Container { is_filled: true });
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.note(&FactValue::Container { is_filled: false });
        while let Some(active) = entries.next_key_seed(Key(&mut self))? {
            self.note(&FactValue::Container { is_filled: true });
            entries.next_value_seed(self.inner(active))?;
        }
        self.note(&FactValue::Over);
        Ok(())
    }
}

/// A key of an object: the facts whose paths lead to its value.
struct Key<'w, 'f>(&'w mut Walk<'f>);

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = u64;

    fn deserialize<D: serde::Deserializer<'de>>(self, key: D) -> Result<u64, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<u64, E> {
        let walk = self.0;
        if walk.depth == 0 && walk.rules.api == StreamApi::None {
            walk.found.has_other_keys |= !ERROR_KEYS.contains(&key);
        }
        Ok(walk.child(key))
    }
}

#[cfg(test)]
mod tests;
