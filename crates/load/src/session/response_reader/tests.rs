use super::*;
use crate::session::json::VALUE_BYTES_MAX;
use crate::session::{Extraction, Match};

const BODY: &str = "<p>some <b>bold</b> text</p> {\"a\": 1}";

fn read(sources: &[Source], fields: &[(&str, &str)], pieces: &[&str]) -> Vec<Option<String>> {
    let extract = sources.iter().map(|source| Extraction {
        name: "x".to_owned(),
        variable: 0,
        source: source.clone(),
        otherwise: None,
    });
    let step = RequestStep {
        expect: vec![Expectation::Value { source: Source::Body, is: Match::Exists }],
        extract: extract.collect(),
        redirects: 1,
        ..RequestStep::default()
    };
    let plan = SessionPlan { requests: vec![step], ..SessionPlan::default() };
    let mut readings = ResponseReaders::new(&plan, 1);
    readings.begin(5, 0, 0);
    for (name, value) in fields {
        readings.field(5, name.as_bytes(), value.as_bytes());
    }
    for piece in pieces {
        readings.body(5, piece.as_bytes());
    }
    assert!(readings.reads(5) && !readings.reads(4) && !readings.reads(6));
    let answer = readings.end(0);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (1..=sources.len()).map(|number| answer.value(number).map(text)).collect()
}

fn within(before: &str, after: &str) -> Source {
    Source::Between { before: before.to_owned(), after: after.to_owned(), unescape: false }
}

#[test]
fn texts_between_others_however_the_body_is_cut() {
    let sources = [
        within("<b>", "</b>"),
        within("{", "}"),
        within("</b>", "<b>"),
        within("none", "</b>"),
        within("te", "xt"),
        Source::Body,
    ];
    let want = [Some("bold"), Some("\"a\": 1"), None, None, Some(""), Some(BODY)];
    let want = want.map(|w| w.map(str::to_owned));
    for cut in 0..=BODY.len() {
        let (a, b) = BODY.split_at(cut);
        assert_eq!(read(&sources, &[], &[a, b]), want, "cut at {cut}");
    }
    let single: Vec<String> = BODY.chars().map(String::from).collect();
    let single: Vec<&str> = single.iter().map(String::as_str).collect();
    assert_eq!(read(&sources, &[], &single), want);
}

/// A piece of the body may be larger than a value may be.
#[test]
fn what_follows_a_text_does_not_count_as_its_value() {
    let filler = "x".repeat(2 * VALUE_BYTES_MAX);
    let long = "v".repeat(VALUE_BYTES_MAX / 2);
    let sources = [within("<a>", "</a>")];
    for pieces in [
        vec![format!("<a>{long}</a>{filler}")],
        vec![format!("<a>{long}"), format!("</a>{filler}")],
        vec![format!("<a>{long}</"), format!("a>{filler}")],
        vec![filler.clone(), format!("<a>{long}<"), "/".to_owned(), format!("a>{filler}")],
    ] {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(read(&sources, &[], &pieces), [Some(long.clone())]);
    }
    let too_long = format!("<a>{filler}</a>");
    assert_eq!(read(&sources, &[], &[&too_long]), [None]);
}

#[test]
fn headers_and_cookies() {
    let sources = [
        Source::Header("x-csrf".to_owned()),
        Source::Cookie("session".to_owned()),
        Source::Header("none".to_owned()),
    ];
    let fields = [
        ("X-Csrf", "first"),
        ("x-csrf", "second"),
        ("Set-Cookie", "other=1"),
        ("SET-COOKIE", "session=abc; Path=/"),
    ];
    let got = read(&sources, &fields, &[]);
    assert_eq!(got, [Some("first".to_owned()), Some("abc".to_owned()), None]);
}

#[test]
fn of_a_stream_the_values_in_its_messages_are_joined() {
    let chunk =
        |content: &str| format!("{{\"choices\":[{{\"delta\":{{\"content\":{content}}}}}]}}");
    let source = |pointer: &str| Source::Json(pointer.to_owned());
    let sources = [source("/choices/0/delta/content"), source("/usage/n"), source("/none")];
    for (messages, want) in [
        (vec![chunk("null"), chunk("\"Hel\""), chunk("\"lo\\n\"")], Some("Hello\n")),
        (vec![chunk("\"null\"")], Some("null")),
        (vec![chunk("1"), chunk("[2]")], Some("1[2]")),
        (vec![chunk("\"\"")], Some("")),
        (vec!["[DONE]".to_owned(), chunk("\"a\"")], Some("a")),
        (vec![chunk("null")], None),
        (vec!["{}".to_owned()], None),
        (vec![], None),
    ] {
        let step = RequestStep {
            extract: (sources.iter().cloned())
                .map(|source| Extraction {
                    name: String::new(),
                    variable: 0,
                    source,
                    otherwise: None,
                })
                .collect(),
            ..RequestStep::default()
        };
        let plan = SessionPlan { requests: vec![step], ..SessionPlan::default() };
        let mut readings = ResponseReaders::new(&plan, 1);
        readings.begin(0, 0, 0);
        readings.split(0);
        for message in messages.iter().chain(&["{\"usage\":{\"n\":7}}".to_owned()]) {
            readings.body(0, format!("data: {message}\n\n").as_bytes());
            message.as_bytes().chunks(3).for_each(|part| readings.message(0, Some(part)));
            readings.message(0, None);
        }
        let answer = readings.end(0);
        let value = |number| answer.value(number).map(|value| String::from_utf8_lossy(value));
        assert_eq!(value(0).as_deref(), want, "{messages:?}");
        assert_eq!((value(1).as_deref(), value(2)), (Some("7"), None), "{messages:?}");
    }
}
