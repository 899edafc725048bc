//! Any stream, however it is cut, means the same to each API, and nothing panics.

use knee_load::messages::{
    MessageFormat, MessageReaders, MessageRules, ReadMessage, StreamApi, StreamEnding,
};

/// The first byte says which API is asked for and how the body is split; the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else {
        return;
    };
    let formats = [MessageFormat::Sse, MessageFormat::Ndjson, MessageFormat::Array];
    let (api, format) = (usize::from(choice) % 7, usize::from(choice) / 7 % formats.len());
    let rules = MessageRules {
        format: Some(formats[format]),
        api: StreamApi::NAMES[api].1,
        ..MessageRules::default()
    };
    let whole = read(&rules, std::iter::once(body));
    assert_eq!(read(&rules, body.chunks(1)), whole, "byte by byte");
    let (a, b) = body.split_at(body.len() * usize::from(choice) / 255);
    assert_eq!(read(&rules, [a, b].into_iter()), whole, "in two pieces");
    if rules.api == StreamApi::None {
        assert!(whole.0.iter().all(|message| message.is_output), "each message is output");
        assert!(!matches!(whole.1, Some(StreamEnding::Error(_))), "nothing is an error");
    }
    let mut tokens = 0_u64;
    for message in &whole.0 {
        tokens += message.units.unwrap_or(0);
        assert!(tokens >= u64::from(message.tokens), "units are no fewer");
    }
}

/// What each message is, and how the stream ended.
fn read<'a>(
    rules: &MessageRules,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<ReadMessage>, Option<StreamEnding>) {
    let mut readers = MessageReaders::new([Some(rules)].into_iter());
    readers.begin(0, 0);
    let mut messages = Vec::new();
    // Where a message was cut is all that pieces may change.
    let mut each = |message| messages.push(ReadMessage { is_cut: false, ..message });
    for piece in pieces {
        readers.on_body(0, piece, &mut each);
    }
    readers.on_end(0, &mut each);
    (messages, readers.finish(0))
}
