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
        MessagePiece::Name(_) | MessagePiece::Error(_) => {}
    };
    for piece in pieces {
        splitter.feed(piece, &mut each);
    }
    splitter.end(false, &mut each);
    let is_between = !splitter.is_within();
    (messages, is_between)
}

/// A text of the characters that matter.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "data",
        "event: a\n",
        "error",
        ":",
        " ",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "x",
        "dat",
        "data: y\n\n",
        "id: 1",
    ];
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
            // Blanks before a JSON text are no part of it, and a line of them alone has none.
            let text_of = |line: &Vec<u8>| {
                let is_of_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
                Some(line[line.iter().position(is_of_text)?..].to_vec())
            };
            let expected: Vec<_> = lines.iter().filter_map(text_of).collect();
            prop_assert_eq!(messages, expected, "cut at {}", at);
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
    splitter.end(false, &mut each);
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
    let fault = match readers.finish(3).expect("it was read") {
        StreamEnding::Whole => readers.first_faults().incomplete.unwrap_or_default(),
        StreamEnding::Incomplete(why) => why,
        StreamEnding::Error(text) => format!("error: {text}"),
    };
    (units, fault)
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
    let ndjson = MessageRules { format: Some(MessageFormat::Ndjson), ..MessageRules::default() };
    assert!(read(&ndjson, &[], "<html>\n").1.contains("no JSON"));
    assert!(read(&ndjson, &[], "").1.contains("no message"));
    assert_eq!(read(&ndjson, &[], "{}\n[1]\n").1, "");
    // The newline of the last line says nothing where that is whole.
    assert_eq!(read(&ndjson, &[], "[3]\n[1]"), (vec![Some(1); 2], String::new()));
    for cut in ["[3]\n[1", "[3]\n{\"a\":1", "[3]\ntru"] {
        let fault = "the response ended in the middle of a message";
        assert_eq!(read(&ndjson, &[], cut), (vec![Some(1)], fault.to_owned()), "{cut}");
    }
    for line in
        ["tru", "{\"a\":NaN}", "{\"a\":01}", "{\"a\":1},", "{}{}", "{'a':1}", "{\"a\":1", "x"]
    {
        assert_eq!(read(&ndjson, &[], &format!("{{}}\n{line}\n")).1, "a line is no JSON", "{line}");
    }
    let array = MessageRules { format: Some(MessageFormat::Array), ..MessageRules::default() };
    for (body, fault) in [
        ("[{\"a\":1},\n2, \"]\"]", ""),
        ("[{\"a\":tru}]", "a message is no JSON"),
        ("[1 2]", "a message is no JSON"),
        ("<html>", "the body is no JSON"),
        ("[,1]", "the body is no JSON"),
        ("[1,,2]", "the body is no JSON"),
        ("[1,2,]", "the body is no JSON"),
        ("[{}{}]", "the body is no JSON"),
        ("[{} {}]", "the body is no JSON"),
        ("[1],", "the body is no JSON"),
        ("{}{}", "the body is no JSON"),
        ("{},", "the body is no JSON"),
        ("{}]", "the body is no JSON"),
        ("1", "the body is no JSON"),
        ("[1}", "a message is no JSON"),
        ("[1 , {} ,[],-2\t]\n", ""),
        ("[1,", "the response ended in the middle of a message"),
    ] {
        assert_eq!(read(&array, &[], body).1, fault, "{body}");
    }
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
    let times = "per_message<20ms,per_token<15ms,stream<20s";
    assert_eq!(StreamBounds::parse(times).unwrap().to_string(), times);
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

/// The data and the name of each event.
fn named<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
    let mut splitter = Splitter::new(MessageFormat::Sse);
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), Vec::new());
    let text = |bytes: &mut Vec<u8>| String::from_utf8(std::mem::take(bytes)).unwrap();
    for piece in pieces {
        splitter.feed(piece, |piece| match piece {
            MessagePiece::Name(b"") => name.clear(),
            MessagePiece::Name(bytes) => name.extend_from_slice(bytes),
            MessagePiece::Data(bytes) => data.extend_from_slice(bytes),
            MessagePiece::Error(bytes) => name.extend([&b"error "[..], bytes].concat()),
            MessagePiece::End => events.push((text(&mut name), text(&mut data))),
        });
    }
    events
}

#[test]
fn events_have_the_name_that_is_said_last_and_only_their_own() {
    for (body, name) in [
        ("event: a\ndata: x\n\n", "a"),
        ("data: x\nevent: a\n\n", "a"),
        ("event:a\r\ndata: x\r\n\r\n", "a"),
        ("event: a\nevent: b\ndata: x\n\n", "b"),
        ("event: a\nevent\ndata: x\n\n", ""),
        ("event: a\n\ndata: x\n\n", ""),
        ("events: a\neven: b\ndata: x\n\n", ""),
        (": event: a\ndata: x\n\n", ""),
        ("data: x\n\n", ""),
        ("error: a\n\ndata: x\n\n", ""),
    ] {
        for size in 1..=body.len() {
            let events = named(body.as_bytes().chunks(size));
            let data = events.first().map(|(_, data)| data.as_str());
            assert_eq!((events.len(), data), (1, Some("x")), "{body:?} {size}");
            assert_eq!(events[0].0, name, "{body:?} {size}");
        }
    }
}

#[test]
fn elements_of_an_array_are_messages() {
    for (body, messages, is_whole) in [
        ("[{\"a\":1}\n,\r\n{\"b\":[2,\"]\"]}]", &["{\"a\":1}", "{\"b\":[2,\"]\"]}"][..], true),
        ("[{\"a\":\"}\\\"{\"}]\n", &["{\"a\":\"}\\\"{\"}"], true),
        ("[]", &[], true),
        (" [ 1 , \"a,b\", null ] ", &["1 ", "\"a,b\"", "null "], true),
        ("[[1],[]]", &["[1]", "[]"], true),
        ("{\"error\":{}}", &["{\"error\":{}}"], true),
        ("[{\"a\":1}", &["{\"a\":1}"], false),
        ("[{\"a\":1},{\"b\"", &["{\"a\":1}"], false),
    ] {
        for size in 1..=body.len() {
            let split = split(MessageFormat::Array, body.as_bytes().chunks(size));
            let expected = messages.iter().map(|message| message.as_bytes().to_vec());
            assert_eq!(split, (expected.collect(), is_whole), "{body} {size}");
        }
    }
    let array = MessageRules { format: Some(MessageFormat::Array), ..MessageRules::default() };
    assert_eq!(read(&array, &[], "<html>").1, "the body is no JSON");
    assert_eq!(read(&array, &[], "[1] [2]").1, "the body is no JSON");
    assert_eq!(read(&array, &[], "[1, 2]"), (vec![Some(1); 2], String::new()));
}

#[test]
fn an_end_message_may_be_a_pointer_with_a_value() {
    let ndjson = |end: &str, count: Option<&str>| MessageRules {
        format: Some(MessageFormat::Ndjson),
        api: StreamApi::None,
        end: Some(MessageRules::parse_end(end).unwrap()),
        count: count.map(str::to_owned),
        ..MessageRules::default()
    };
    let body = "{\"a\":1}\n{\"done\":true,\"n\":7,\"why\":\"stop\"}\n{\"late\":1}\n";
    for (end, is_end) in [
        ("/done=true", true),
        ("/why=stop", true),
        ("/n=7", true),
        ("/done=false", false),
        ("/done=\"true\"", false),
        ("/why=stopped", false),
        ("/none=true", false),
        ("done=true", false),
    ] {
        let (units, fault) = read(&ndjson(end, None), &[], body);
        assert_eq!(units.len(), if is_end { 2 } else { 3 }, "{end}");
        let expected = format!("the response ended without the message {end}");
        assert_eq!(fault, if is_end { "" } else { &expected }, "{end}");
    }
    let (units, _) = read(&ndjson("/done=true", Some("/n")), &[], body);
    assert_eq!(units, [None, Some(7)], "the last one may have the number");
    assert!(MessageRules::parse_end("/a~2=1").is_err());
    assert!(MessageRules::parse_end("{\"done\":true}").is_ok());
}

/// What a stream of these messages is: how many have output, how many have none, the units, and how
/// it ended.
fn stream(rules: &MessageRules, kind: &str, pieces: &[&[u8]]) -> (usize, usize, u64, String) {
    let mut readers = MessageReaders::new([Some(rules)].into_iter());
    readers.begin(0, 0);
    readers.on_field(0, b"content-type", kind.as_bytes());
    let (mut outputs, mut others, mut units) = (0, 0, 0);
    let mut each = |message: ReadMessage| {
        outputs += usize::from(message.is_output);
        others += usize::from(!message.is_output);
        units += message.units.unwrap_or(0);
    };
    for piece in pieces {
        readers.on_body(0, piece, &mut each);
    }
    readers.on_end(0, &mut each);
    let ending = match readers.finish(0) {
        None => "not read".to_owned(),
        Some(StreamEnding::Whole) => "whole".to_owned(),
        Some(StreamEnding::Incomplete(why)) => why,
        Some(StreamEnding::Error(text)) => format!("error: {text}"),
    };
    (outputs, others, units, ending)
}

const SSE: &str = "text/event-stream";

/// Rules, the content type, the body, and what the stream is.
type ServerStream = (MessageRules, &'static str, &'static str, (usize, usize, u64, &'static str));

/// Streams as servers send them: rules, content type, body, and what they are.
fn streams_of_servers() -> Vec<ServerStream> {
    let auto = MessageRules::default;
    let of = |api| MessageRules { api, ..auto() };
    let asked = |format| MessageRules { format: Some(format), ..auto() };
    vec![
        // vLLM: a role, content, the end, usage.
        (
            auto(),
            SSE,
            "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
            (1, 3, 3, "whole"),
        ),
        // Azure's empty first choices; no [DONE], but the output is complete.
        (
            auto(),
            SSE,
            "data: {\"choices\":[],\"prompt_filter_results\":[{}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            (1, 2, 1, "whole"),
        ),
        // The same where the user asked for events that end.
        (
            asked(MessageFormat::Sse),
            SSE,
            "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n",
            (1, 0, 1, "the response ended without the message [DONE]"),
        ),
        // Lines have no [DONE].
        (
            asked(MessageFormat::Ndjson),
            "application/x-ndjson",
            "{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n",
            (1, 0, 1, "whole"),
        ),
        (
            asked(MessageFormat::Ndjson),
            "application/x-ndjson",
            "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n",
            (1, 0, 1, "the response ended without the message [DONE]"),
        ),
        // Cut off by a proxy that ends in order.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            (1, 0, 1, "the response ended without the message [DONE]"),
        ),
        // OpenRouter's comments.
        (
            auto(),
            SSE,
            ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            (1, 0, 1, "whole"),
        ),
        // Errors: alone, after output, before and without an end message.
        (
            auto(),
            SSE,
            "data: {\"error\":{\"message\":\"CUDA out of memory\",\"code\":500}}\n\ndata: [DONE]\n\n",
            (0, 1, 0, "error: CUDA out of memory"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"gone\"}}\n\n",
            (1, 1, 1, "error: gone"),
        ),
        // llama.cpp until September 2025.
        (
            auto(),
            SSE,
            "error: {\"code\":400,\"message\":\"too long\"}\n\ndata: [DONE]\n\n",
            (0, 0, 0, "error: too long"),
        ),
        // vLLM before errors were nested.
        (
            auto(),
            SSE,
            "data: {\"object\":\"error\",\"message\":\"bad\",\"code\":400}\n\ndata: [DONE]\n\n",
            (0, 1, 0, "error: bad"),
        ),
        // A refusal without a word.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\ndata: [DONE]\n\n",
            (0, 1, 0, "no message has output of the API openai"),
        ),
        // Anthropic.
        (
            auto(),
            SSE,
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello there\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
            (1, 4, 5, "whole"),
        ),
        (
            auto(),
            SSE,
            "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
            (0, 2, 0, "error: Overloaded"),
        ),
        (
            of(StreamApi::Anthropic),
            SSE,
            "event: content_block_delta\ndata: {\"delta\":{\"text\":\"a\"}}\n\n",
            (1, 0, 1, "the response ended without the message message_stop"),
        ),
        // Responses.
        (
            auto(),
            SSE,
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"error\":null}}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata: {\"type\":\"response.output_text.done\",\"text\":\"a\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"output_tokens\":2}}}\n\n",
            (1, 3, 2, "whole"),
        ),
        (
            auto(),
            SSE,
            "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"no\"}}}\n\n",
            (0, 2, 0, "error: no"),
        ),
        // Gemini, as events and as an array.
        (
            auto(),
            SSE,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}],\"usageMetadata\":{\"candidatesTokenCount\":4}}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"candidatesTokenCount\":6,\"thoughtsTokenCount\":3}}\n\n",
            (2, 0, 9, "whole"),
        ),
        (
            asked(MessageFormat::Sse),
            SSE,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}]}\n\n",
            (1, 0, 1, "whole"),
        ),
        (
            of(StreamApi::Gemini),
            "application/json; charset=UTF-8",
            "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n,\n{\"candidates\":[{\"finishReason\":\"STOP\"}]}\n]",
            (1, 1, 1, "whole"),
        ),
        (
            of(StreamApi::Gemini),
            "application/json",
            "[{\"error\":{\"code\":503,\"message\":\"overloaded\"}}]",
            (0, 1, 0, "error: overloaded"),
        ),
        (
            of(StreamApi::Gemini),
            "application/json",
            "[{\"candidates\":[]}",
            (0, 1, 0, "the response ended in the middle of a message"),
        ),
        // Ollama: the last message may have output.
        (
            of(StreamApi::Ollama),
            "application/x-ndjson",
            "{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n{\"model\":\"m\",\"response\":\"!\",\"done\":true,\"eval_count\":4}\n",
            (2, 0, 4, "whole"),
        ),
        (
            asked(MessageFormat::Ndjson),
            "application/x-ndjson",
            "{\"model\":\"m\",\"message\":{\"content\":\"a\"},\"done\":false}\n{\"error\":\"runner stopped\"}\n",
            (1, 1, 1, "error: runner stopped"),
        ),
        (
            of(StreamApi::Ollama),
            "application/x-ndjson",
            "{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n",
            (1, 0, 1, "the response ended without the message that has \"done\": true"),
        ),
        // Asked for, and it is another.
        (
            of(StreamApi::Openai),
            "application/json",
            "{\"id\":1}",
            (0, 0, 0, "the content type is application/json, not text/event-stream"),
        ),
        (
            of(StreamApi::Anthropic),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
            (0, 1, 0, "no message has output of the API anthropic"),
        ),
        // Nearest cases, which nobody takes for any of these.
        (
            of(StreamApi::None),
            SSE,
            "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n",
            (1, 0, 1, "whole"),
        ),
        (of(StreamApi::None), SSE, "event: error\ndata: x\n\nerror: x\n\n", (1, 0, 1, "whole")),
        (auto(), SSE, "data: {\"n\":1,\"error\":\"none so far\"}\n\n", (1, 0, 1, "whole")),
        (auto(), SSE, "data: {\"n\":1}\n\ndata: {\"error\":null}\n\n", (2, 0, 2, "whole")),
        (
            auto(),
            SSE,
            "data: {\"n\":1}\n\ndata: {\"error\":\"gone\"}\n\n",
            (1, 1, 1, "error: gone"),
        ),
        (auto(), SSE, "data: error\n\ndata: {\"done\":false}\n\n", (2, 0, 2, "whole")),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"an error\"},\"finish_reason\":\"stop\"}],\"error\":null}\n\ndata: [DONE]\n\n",
            (1, 0, 1, "whole"),
        ),
        (
            asked(MessageFormat::Ndjson),
            "text/plain",
            "{\"level\":\"error\",\"error\":\"disk full\"}\n",
            (1, 0, 1, "whole"),
        ),
        (auto(), "application/x-ndjson", "{\"n\":1}\n", (0, 0, 0, "not read")),
        (auto(), SSE, "data: [DONE]\n\n", (0, 0, 0, "the response has no message")),
        // OpenRouter's errors name the user, and stand in a choice too; Groq's have their own place.
        (
            auto(),
            SSE,
            "data: {\"error\":{\"message\":\"boom\",\"code\":500},\"user_id\":\"u\",\"extra\":1}\n\ndata: [DONE]\n\n",
            (0, 1, 0, "error: boom"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
            (
                1,
                0,
                1,
                "error: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"error\"}]}",
            ),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"x_groq\":{\"id\":\"r\",\"error\":null}}\n\ndata: {\"choices\":[],\"x_groq\":{\"error\":\"over capacity\"}}\n\n",
            (1, 1, 1, "error: over capacity"),
        ),
        // Spring's errors.
        (
            auto(),
            SSE,
            "data: {\"timestamp\":\"t\",\"status\":500,\"error\":\"Internal Server Error\",\"path\":\"/v1\"}\n\n",
            (0, 1, 0, "error: Internal Server Error"),
        ),
        // Signs of life before the first words do not decide on the API, nor in the middle of it.
        (
            auto(),
            SSE,
            "data: {}\n\ndata: null\n\nevent: heartbeat\ndata: 1\n\ndata: {\"type\":\"keepalive\"}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: ping\n\ndata: [DONE]\n\n",
            (1, 5, 1, "whole"),
        ),
        (auto(), SSE, "data: ping\n\ndata: x\n\n", (1, 1, 1, "whole")),
        // What is no JSON is no message of an API.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: Internal Server Error\n\ndata: [DONE]\n\n",
            (1, 1, 1, "a message is no JSON"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"\n\ndata: [DONE]\n\n",
            (2, 0, 2, "a message is no JSON"),
        ),
        // Half of a character, as some servers send it.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\ndata: [DONE]\n\n",
            (2, 0, 2, "whole"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00\"}}],\"usage\":{\"completion_tokens\":5}}\n\ndata: [DONE]\n\n",
            (1, 0, 5, "whole"),
        ),
        // Reasons that say that there is none, and those that are errors.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"null\"}]}\n\n",
            (1, 0, 1, "the response ended without the message [DONE]"),
        ),
        (
            auto(),
            SSE,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"FINISH_REASON_UNSPECIFIED\"}]}\n\n",
            (1, 0, 1, "the response ended without the message that has a finishReason"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n",
            (1, 1, 1, "error: {\"choices\":[{\"finish_reason\":\"abort\"}]}"),
        ),
        // Behind a complete output, the end message needs no empty line.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]",
            (1, 0, 1, "whole"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n",
            (1, 0, 1, "the response ended in the middle of a message"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DON",
            (1, 0, 1, "the response ended in the middle of a message"),
        ),
        // Tokens of Groq, of both places.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":{\"completion_tokens\":12}}}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":12},\"x_groq\":{\"usage\":{\"completion_tokens\":12}}}\n\ndata: [DONE]\n\n",
            (1, 1, 12, "whole"),
        ),
        // Each choice has to be complete.
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"index\":1}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            (2, 1, 2, "the response ended without the message [DONE]"),
        ),
        (
            auto(),
            SSE,
            "data: {\"choices\":[{\"finish_reason\":\"stop\",\"delta\":{\"content\":\"b\"},\"index\":1},{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\n",
            (1, 2, 3, "whole"),
        ),
        (
            auto(),
            SSE,
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\",\"index\":0},{\"content\":{\"parts\":[{\"text\":\"b\"}]},\"index\":1}]}\n\n",
            (1, 0, 1, "the response ended without the message that has a finishReason"),
        ),
    ]
}

#[test]
fn streams_of_servers_mean_what_their_apis_say() {
    for (rules, kind, body, expected) in streams_of_servers() {
        let (outputs, others, units, ending) = stream(&rules, kind, &[body.as_bytes()]);
        assert_eq!((outputs, others, units, ending.as_str()), expected, "{body}");
    }
}

#[test]
fn streams_mean_the_same_wherever_they_are_cut() {
    for (rules, kind, body, _) in streams_of_servers() {
        let whole = stream(&rules, kind, &[body.as_bytes()]);
        for at in 0..=body.len() {
            let (a, b) = body.as_bytes().split_at(at);
            assert_eq!(stream(&rules, kind, &[a, b]), whole, "{body} cut at {at}");
        }
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        assert_eq!(stream(&rules, kind, &bytes), whole, "{body}");
    }
}

#[test]
fn what_stands_behind_a_long_string_is_read() {
    let long = "x\\n\\ud83d\\ude00\\\"ä".repeat(100_000);
    let auto = MessageRules::default;
    let ollama = MessageRules { api: StreamApi::Ollama, ..auto() };
    let limit = "a message has more than 1 MiB beside long strings and numbers";
    let (numbers, lists) = ("128000, ".repeat(1 << 18), "[],".repeat(1 << 19));
    let (long, numbers, lists) = (long.as_str(), numbers.as_str(), lists.as_str());
    for (rules, begin, long, end, expected) in [
        (
            auto(),
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"inlineData\":{\"data\":\"",
            long,
            "\"}}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"candidatesTokenCount\":7}}\n\n",
            (1, 0, 7, "whole"),
        ),
        (
            auto(),
            "data: {\"choices\":[{\"delta\":{\"images\":[{\"image_url\":{\"url\":\"",
            long,
            "\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":9}}\n\ndata: [DONE]\n\n",
            (1, 0, 9, "whole"),
        ),
        (
            auto(),
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata: {\"response\":{\"output\":[{\"result\":\"",
            long,
            "\"}],\"usage\":{\"output_tokens\":22}},\"type\":\"response.completed\"}\n\n",
            (1, 1, 22, "whole"),
        ),
        (
            ollama,
            "{\"model\":\"m\",\"response\":\"",
            long,
            "\",\"done\":true,\"eval_count\":9}\n",
            (1, 0, 9, "whole"),
        ),
        (
            MessageRules { api: StreamApi::Ollama, ..auto() },
            "{\"model\":\"m\",\"response\":\"a\",\"context\":[",
            numbers,
            "1],\"done\":true,\"eval_count\":9}\n",
            (1, 0, 9, "whole"),
        ),
        (
            auto(),
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"logprobs\":[",
            lists,
            "1],\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            (1, 0, 1, limit),
        ),
        // Of no API, nothing has to stand behind.
        (auto(), "data: [", lists, "1]\n\n", (1, 0, 1, "whole")),
    ] {
        let body = [begin, long, end].concat();
        let kind = if begin.starts_with('{') { "application/x-ndjson" } else { SSE };
        for size in [1 << 14, body.len()] {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let (outputs, others, units, ending) = stream(&rules, kind, &pieces);
            assert_eq!((outputs, others, units, ending.as_str()), expected, "{begin}");
        }
    }
}

/// Messages of all APIs, and others, in any order.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let bodies: Vec<_> = streams_of_servers().into_iter().map(|(_, _, body, _)| body).collect();
    let words = [
        "event: error\n",
        "\n",
        "data",
        "error: ",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\\",
        "\u{1f600}",
    ];
    let text = prop_oneof![prop::sample::select(bodies), prop::sample::select(words.to_vec())];
    prop::collection::vec(text, 1..5).prop_map(|texts| texts.concat().into_bytes())
}

proptest! {
    #[test]
    fn any_stream_means_the_same_however_it_is_cut(
        body in any_stream(),
        size in 1_usize..40,
        api in prop::sample::select(StreamApi::NAMES.to_vec()),
        format in prop::sample::select(MessageFormat::NAMES.to_vec()),
    ) {
        let rules = MessageRules { format: Some(format.1), api: api.1, ..MessageRules::default() };
        if format.1 != MessageFormat::Chunks {
            let pieces: Vec<&[u8]> = body.chunks(size).collect();
            prop_assert_eq!(stream(&rules, SSE, &pieces), stream(&rules, SSE, &[&body[..]]));
        }
    }
}
