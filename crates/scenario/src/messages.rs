//! Rules for the messages of a step's responses.

use super::fault::Read;
use super::fields::{Fields, duration, parsed, word};
use knee_load::messages::{CountMode, MessageFormat, MessageRules, StreamApi};

/// Reads the keys of a step that say what its messages are; `None` without any.
pub(super) fn read(fields: &Fields<'_>) -> Read<Option<Box<MessageRules>>> {
    let format = fields.read_key("messages", |node| word(node, &MessageFormat::NAMES))?;
    let count = fields.read_key("message_count", |node| {
        let expected = "a JSON Pointer such as /usage/completion_tokens";
        parsed(node, expected, MessageRules::parse_count)
    })?;
    let api = fields.read_key("stream_api", |node| word(node, &StreamApi::NAMES))?;
    let end = fields.read_key("end_message", |node| {
        parsed(node, "a text ('' for none)", MessageRules::parse_end)
    })?;
    let timeout = fields.read_key("message_timeout", duration)?;
    let is_any = format.is_some() || count.is_some() || api.is_some() || end.is_some();
    if !is_any && timeout.is_none() {
        return Ok(None);
    }
    let (count_mode, count) = count.map_or((CountMode::Each, None), |(mode, at)| (mode, Some(at)));
    let api = api.unwrap_or_default();
    Ok(Some(Box::new(MessageRules { format, count, count_mode, api, end, timeout })))
}
