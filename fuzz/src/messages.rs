//! Any body, however it is cut, has the same messages, and nothing panics.

use knee_load::messages::{CountMode, MessageFormat, MessageReaders, MessageRules, StreamEnding};

/// The first byte says how the body is split; the rest is the body.
pub fn check(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else {
        return;
    };
    let formats = MessageFormat::NAMES.map(|(_, format)| format);
    let formats = [&formats[..], &[MessageFormat::Grpc]].concat();
    let format = formats[choice as usize % formats.len()];
    let count_mode = if choice & 0x40 == 0 { CountMode::Each } else { CountMode::Last };
    let rules = MessageRules {
        format: Some(format),
        count: (choice & 0x80 != 0).then(|| "/n".to_owned()),
        count_mode,
        ..MessageRules::default()
    };
    let whole = read(&rules, std::iter::once(body));
    assert_eq!(read(&rules, body.chunks(1)), whole, "byte by byte");
    let (a, b) = body.split_at(body.len() * usize::from(choice) / 255);
    assert_eq!(read(&rules, [a, b].into_iter()), whole, "in two pieces");
}

/// What each message counts as, and why the body is no whole stream.
fn read<'a>(
    rules: &MessageRules,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Option<u64>>, Option<StreamEnding>) {
    let mut readers = MessageReaders::new([Some(rules)].into_iter());
    readers.begin(0, 0);
    let mut units = Vec::new();
    for piece in pieces {
        readers.on_body(0, piece, |message| units.push(message.units));
    }
    readers.on_end(0, |message| units.push(message.units));
    (units, readers.finish(0))
}
