//! Bodies that are split at every byte, against parsers that see the whole text.

use super::*;
use crate::time::Nanos;
use proptest::prelude::*;

/// The data of all events of a whole stream, and whether it ends between two. Reads line by line,
/// by WHATWG HTML §9.2.5 and §9.2.6.
fn events_of(body: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = body.iter().peekable();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if(|&&next| next == b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            _ => lines.last_mut().unwrap().push(byte),
        }
    }
    let rest = lines.pop().unwrap();
    let (mut events, mut data) = (Vec::new(), None::<Vec<u8>>);
    for line in &lines {
        if line.is_empty() {
            events.extend(data.take());
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        if &line[..colon] != b"data" {
            continue;
        }
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut data {
            None => data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
    }
    let is_between = data.is_none() && (rest.is_empty() || rest.starts_with(b":"));
    (events, is_between)
}

/// The lines of a whole text that have any characters, and whether the last one ends.
fn lines_of(body: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').collect();
    let rest = lines.pop().unwrap();
    let lines = lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec);
    (lines.collect(), rest.strip_suffix(b"\r").unwrap_or(rest).is_empty())
}

/// What a splitter makes of these pieces of a body.
fn split<'a>(
    format: MessageFormat,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Vec<u8>>, bool) {
    let mut splitter = Splitter::new(format);
    let (mut messages, mut data) = (Vec::new(), Vec::new());
    let mut each = |piece: MessagePiece<'_>| match piece {
        MessagePiece::Data(bytes) => data.extend_from_slice(bytes),
        MessagePiece::End => messages.push(std::mem::take(&mut data)),
    };
    for piece in pieces {
        splitter.feed(piece, &mut each);
    }
    splitter.end(&mut each);
    let is_between = !splitter.is_within();
    (messages, is_between)
}

/// A text of the characters that matter.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = ["data", ":", " ", "\n", "\r", "\r\n", "\n\n", "x", "dat", "data: y\n\n", "id: 1"];
    let words = prop::sample::select(words.map(str::as_bytes).to_vec());
    let text = prop::collection::vec(words, 0..24).prop_map(|words| words.concat());
    (any::<bool>(), text).prop_map(|(has_bom, text)| {
        let bom: &[u8] = if has_bom { b"\xef\xbb\xbf" } else { b"" };
        [bom, &text].concat()
    })
}

proptest! {
    #[test]
    fn events_are_the_same_however_they_are_cut(body in text(), size in 1_usize..6) {
        let expected = events_of(&body);
        for at in 0..=body.len() {
            let (a, b) = body.split_at(at);
            prop_assert_eq!(split(MessageFormat::Sse, [a, b]), expected.clone(), "cut at {}", at);
        }
        prop_assert_eq!(split(MessageFormat::Sse, body.chunks(size)), expected);
    }

    #[test]
    fn lengths_are_kept_however_messages_are_cut(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..6),
        rest in 0_usize..6,
    ) {
        let mut body = Vec::new();
        for message in &messages {
            put_grpc_message(message, &mut body);
        }
        body.extend_from_slice(&[0, 0, 0, 0, 9, 1][..rest]);
        let expected = (messages, rest == 0);
        for at in 0..=body.len() {
            let (a, b) = body.split_at(at);
            prop_assert_eq!(split(MessageFormat::Grpc, [a, b]), expected.clone(), "cut at {}", at);
        }
        prop_assert_eq!(split(MessageFormat::Grpc, body.chunks(1)), expected);
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut(body in text(), size in 1_usize..6) {
        let (lines, is_ended) = lines_of(&body);
        for at in 0..=body.len() {
            let (a, b) = body.split_at(at);
            let (messages, is_between) = split(MessageFormat::Ndjson, [a, b]);
            // A line of blanks alone is no JSON text.
            let has_text = |line: &&Vec<u8>| line.iter().any(|byte| !byte.is_ascii_whitespace());
            let expected: Vec<_> = lines.iter().filter(has_text).cloned().collect();
            let trimmed = |all: &[Vec<u8>]| -> Vec<Vec<u8>> {
                all.iter().map(|line| line.trim_ascii().to_vec()).collect()
            };
            prop_assert_eq!(trimmed(&messages), trimmed(&expected), "cut at {}", at);
            prop_assert!(!is_ended || is_between);
        }
        let (messages, is_between) = split(MessageFormat::Lines, body.chunks(size));
        prop_assert!(is_between, "the end of the body ends the last line");
        prop_assert!(messages.len() <= lines.len() + 1);
        prop_assert_eq!(&messages[..lines.len().min(messages.len())], &lines[..]);
    }
}

#[test]
fn an_event_is_complete_at_its_empty_line() {
    let body =
        b"\xef\xbb\xbf: hello\n\ndata: a\ndata:b\nid: 7\n\nevent: x\r\n\r\ndata\rdata: \r\rdata: c";
    let (events, is_between) = split(MessageFormat::Sse, [&body[..]]);
    assert_eq!(events, [&b"a\nb"[..], b"\n"]);
    assert!(!is_between, "the last event is not complete");
}

#[test]
fn chunks_are_messages_as_they_are_framed() {
    let mut splitter = Splitter::new(MessageFormat::Chunks);
    let mut ends = 0;
    let mut each = |piece: MessagePiece<'_>| ends += usize::from(piece == MessagePiece::End);
    splitter.feed(b"a", &mut each);
    splitter.feed(b"b", &mut each);
    splitter.on_border(&mut each);
    splitter.on_border(&mut each);
    splitter.feed(b"c", &mut each);
    splitter.end(&mut each);
    assert!(!splitter.is_within());
    assert_eq!(ends, 2);
}

/// The messages of a body under these rules, and why it is no whole stream.
fn read(rules: &MessageRules, fields: &[(&str, &str)], body: &str) -> (Vec<Option<u64>>, String) {
    let mut readers = MessageReaders::new([Some(rules)].into_iter());
    readers.begin(3, 0);
    for (name, value) in fields {
        readers.on_field(3, name.as_bytes(), value.as_bytes());
    }
    let mut units = Vec::new();
    let mut each = |message: ReadMessage| units.push(message.units);
    readers.on_body(3, body.as_bytes(), &mut each);
    readers.on_end(3, &mut each);
    let fault = readers.finish(3).expect("it was read").or_else(|| readers.first_fault());
    (units, fault.unwrap_or_default())
}

fn sse() -> MessageRules {
    MessageRules { format: Some(MessageFormat::Sse), ..MessageRules::default() }
}

#[test]
fn the_end_message_ends_a_stream_and_is_not_counted() {
    let body = "data: a\n\ndata: [DONE]\n\ndata: later\n\n";
    assert_eq!(read(&sse(), &[], body), (vec![Some(1)], String::new()));
    let (_, fault) = read(&sse(), &[], "data: a\n\n");
    assert!(fault.contains("without the message [DONE]"), "{fault}");
    let events = [("content-type", "text/event-stream")];
    let unasked = read(&MessageRules::default(), &events, "data: a\n\n");
    assert_eq!(unasked, (vec![Some(1)], String::new()), "nobody said how its streams end");
    let none = MessageRules { end: Some(String::new()), ..sse() };
    assert_eq!(read(&none, &[], "data: a\n\n"), (vec![Some(1)], String::new()));
    let (_, fault) = read(&none, &[], "data: a\n\ndata: b");
    assert!(fault.contains("in the middle of a message"), "{fault}");
    let (_, fault) = read(&sse(), &[], "data: [DON\n\ndata: E]\n\n");
    assert!(fault.contains("without"), "two messages are not one");
}

#[test]
fn counts_are_found_at_their_pointer() {
    let rules = |count: &str| {
        let (count_mode, count) = MessageRules::parse_count(count).unwrap();
        MessageRules { count: Some(count), count_mode, end: Some(String::new()), ..sse() }
    };
    let body = "data: {\"n\":3}\n\ndata: {}\n\ndata: {\"n\":null}\n\ndata: {\"n\":5}\n\n";
    let read_units = |rules: &MessageRules, body| read(rules, &[], body).0;
    assert_eq!(read_units(&rules("/n"), body), [Some(3), None, None, Some(5)]);
    assert_eq!(read_units(&rules("last:/n"), body), [Some(3), None, None, Some(2)]);
    let (units, fault) = read(&rules("/n"), &[], "data: {\"n\":\"many\"}\n\n");
    assert_eq!((units, fault.as_str()), (vec![None], "the value at /n is no number"));
    assert!(MessageRules::parse_count("usage.tokens").is_err());
}

#[test]
fn what_is_no_stream_of_its_kind_is_said() {
    let (_, fault) = read(&sse(), &[("Content-Type", "application/json")], "{\"error\": 1}");
    assert_eq!(fault, "the content type is application/json, not text/event-stream");
    let gzip = [("Content-Type", "text/event-stream"), ("content-encoding", "gzip")];
    assert!(read(&sse(), &gzip, "data: a\n\n").1.contains("compressed"));
    let ndjson = MessageRules { format: Some(MessageFormat::Ndjson), ..MessageRules::default() };
    assert!(read(&ndjson, &[], "<html>\n").1.contains("no JSON"));
    assert!(read(&ndjson, &[], "").1.contains("no message"));
    assert_eq!(read(&ndjson, &[], "{}\n[1]\n").1, "");
}

#[test]
fn streams_of_events_are_found_by_their_content_type() {
    let mut readers = MessageReaders::new([None].into_iter());
    readers.begin(0, 0);
    assert!(!readers.reads(0), "nothing is read by default");
    readers.on_field(0, b"content-type", b"text/plain");
    assert!(!readers.is_stream(0));
    readers.on_field(0, b"content-type", b"Text/Event-Stream; charset=utf-8");
    assert!(readers.is_stream(0));
    let none = MessageRules { format: Some(MessageFormat::None), ..MessageRules::default() };
    let mut off = MessageReaders::new([Some(&none)].into_iter());
    off.begin(0, 0);
    off.open_events(0);
    assert!(!off.is_stream(0));
}

#[test]
fn bounds_of_a_stream_are_read_and_written() {
    let text = "first_message<500ms,gap_p95<50ms,gap_max<2s,stream<20s";
    let bounds = StreamBounds::parse(text).unwrap();
    assert_eq!(bounds.to_string(), text);
    assert_eq!(bounds.first_message, Some(Nanos::from_millis(500)));
    let p999 = StreamBounds::parse("gap_p999 < 1s").unwrap();
    assert_eq!(p999.gaps[0].unwrap().percentile, 99.9);
    for bad in [
        "",
        "stream",
        "stream<0s",
        "stream<x",
        "gap<1s",
        "p99<1s",
        "gap_p0<1s",
        "gap_p100<1s",
        "stream<1s,stream<2s",
    ] {
        assert!(StreamBounds::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_percentile_of_gaps_is_met_by_counting() {
    let p95 = GapBound { percentile: 95.0, below: Nanos(1) };
    assert!(p95.is_met(0, 0) && p95.is_met(20, 1) && !p95.is_met(20, 2) && !p95.is_met(19, 1));
    let max = GapBound { percentile: 100.0, below: Nanos(1) };
    assert!(max.is_met(9, 0) && !max.is_met(9, 1));
}
