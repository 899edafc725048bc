//! Rules for the messages of a step's responses.

use super::fault::Read;
use super::fields::{Fields, duration, parsed, text, word};
use knee_load::messages::{CountMode, MessageFormat, MessageRules};

/// Reads the keys of a step that say what its messages are; `None` without any.
pub(super) fn read(fields: &Fields<'_>) -> Read<Option<Box<MessageRules>>> {
    let format = fields.read_key("messages", |node| word(node, &MessageFormat::NAMES))?;
    let count = fields.read_key("message_count", |node| {
        let expected = "a JSON Pointer such as /usage/completion_tokens";
        parsed(node, expected, MessageRules::parse_count)
    })?;
    let end = fields.read_key("end_message", |node| text(node, "a text ('' for none)"))?;
    let timeout = fields.read_key("message_timeout", duration)?;
    if format.is_none() && count.is_none() && end.is_none() && timeout.is_none() {
        return Ok(None);
    }
    let (count_mode, count) = count.map_or((CountMode::Each, None), |(mode, at)| (mode, Some(at)));
    let end = end.map(|end| end.text.to_string());
    Ok(Some(Box::new(MessageRules { format, count, count_mode, end, timeout })))
}
