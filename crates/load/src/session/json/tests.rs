use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn scan(pieces: &[&[u8]], pointers: &[&str]) -> Vec<Option<String>> {
    let pointers: Vec<Pointer> = pointers.iter().map(|p| Pointer::new(p)).collect();
    let mut found = vec![ValueCapture::default(); pointers.len()];
    let mut scan = JsonScan::default();
    scan.begin(&pointers);
    for piece in pieces {
        scan.feed(piece, &pointers, &mut found);
    }
    scan.end(&mut found);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    found.iter().map(|f| f.value().map(text)).collect()
}

const SHOP: &str = r#" {"a": {"b": [1, {"c": "x\"\u00e4\n"}, [], {}], "d~/e": null},
    "other": {"deep": [[[{"b": 1}]], "]}"]}, "t": true, "n": -1.5e3, "s": ""} "#;

#[test]
fn values_by_their_pointers_however_the_text_is_cut() {
    let rows = [
        ("/a/b/0", Some("1")),
        ("/a/b/1/c", Some("x\"ä\n")),
        ("/a/b/1", Some(r#"{"c": "x\"\u00e4\n"}"#)),
        ("/a/b/2", Some("[]")),
        ("/a/b/3", Some("{}")),
        ("/a/b/4", None),
        ("/a/d~0~1e", Some("null")),
        ("/other/deep/1", Some("]}")),
        ("/other/deep/0/0/0/b", Some("1")),
        ("/t", Some("true")),
        ("/n", Some("-1.5e3")),
        ("/s", Some("")),
        ("/none", None),
        ("/t/x", None),
        ("/other/b", None),
    ];
    let pointers: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let want: Vec<_> = rows.iter().map(|row| row.1.map(str::to_owned)).collect();
    assert_eq!(scan(&[SHOP.as_bytes()], &pointers), want);
    for cut in 0..=SHOP.len() {
        let (a, b) = SHOP.as_bytes().split_at(cut);
        assert_eq!(scan(&[a, b], &pointers), want, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = SHOP.as_bytes().chunks(1).collect();
    assert_eq!(scan(&bytes, &pointers), want);
}

#[test]
fn half_a_surrogate_pair_is_replaced() {
    for (inside, text) in [
        (r"a\ud83d", "a\u{fffd}"),
        (r"\uDE00b", "\u{fffd}b"),
        (r"\ud83d\ude00", "\u{1f600}"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\\ud83d", r"\ud83d"),
        (r"\ud7ff\ue000", "\u{d7ff}\u{e000}"),
    ] {
        let json = format!("{{\"a\":\"{inside}\"}}");
        assert_eq!(scan(&[json.as_bytes()], &["/a"]), [Some(text.to_owned())], "{inside}");
    }
}

#[test]
fn the_whole_text_and_what_is_no_json() {
    assert_eq!(scan(&[b"[1, 2]"], &[""]), [Some("[1, 2]".to_owned())]);
    assert_eq!(scan(&[b"12", b"3"], &[""]), [Some("123".to_owned())]);
    assert_eq!(scan(&[b"\"a\""], &[""]), [Some("a".to_owned())]);
    for text in ["", "<html>", "{", "{\"a\"", "{\"a\":", "}", "]", "{\"a\" 1}", "{\"a\": \"x"] {
        assert_eq!(scan(&[text.as_bytes()], &["/a"]), [None], "{text}");
    }
}

#[test]
fn text_that_is_cut_or_goes_on_has_no_values() {
    for whole in ["{\"a\":1}", " {\"a\":1,\"b\":[{}]}\r\n ", "{\"b\":{\"c\":[]},\"a\":1}\t"] {
        assert_eq!(scan(&[whole.as_bytes()], &["/a"]), [Some("1".to_owned())], "{whole}");
        assert_eq!(scan(&[whole.as_bytes(), b"\n"], &["/a"]), [Some("1".to_owned())], "{whole}");
        for behind in ["x", "}", "]", "{\"a\":1}", ",", "\"", "1", "<!-- -->", "\0"] {
            assert_eq!(scan(&[whole.as_bytes(), behind.as_bytes()], &["/a"]), [None], "{behind}");
        }
        let text = whole.trim_end();
        for end in 0..text.len() {
            assert_eq!(scan(&[&text.as_bytes()[..end]], &["/a"]), [None], "cut at {end}");
        }
    }
    for (text, want) in [("12", Some("12")), ("12 ", Some("12")), ("12 3", None), ("[1]]", None)] {
        assert_eq!(scan(&[text.as_bytes()], &[""]), [want.map(str::to_owned)], "{text}");
    }
}

#[test]
fn a_value_that_is_too_long_is_not_kept() {
    let long = format!("{{\"a\": \"{}\", \"b\": 1}}", "x".repeat(VALUE_BYTES_MAX + 1));
    let got = scan(&[long.as_bytes()], &["/a", "/b"]);
    assert_eq!(got, [None, Some("1".to_owned())]);
}

#[test]
fn depth_costs_no_memory() {
    let deep = "[".repeat(1 << 20);
    let pointers = [Pointer::new("/0/0/x")];
    let mut found = vec![ValueCapture::default()];
    let mut scan = JsonScan::default();
    scan.begin(&pointers);
    scan.feed(deep.as_bytes(), &pointers, &mut found);
    assert!(scan.levels.capacity() < 16);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c\"\\\\\\[\\]{}:,äö\n]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]{1}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// RFC 8259, and RFC 3629 within strings.
#[test]
fn what_is_json_and_what_is_not() {
    let check = |text: &[u8]| {
        let mut syntax = JsonSyntax::default();
        syntax.feed(text);
        let whole = syntax.is_whole();
        syntax.begin();
        text.chunks(1).for_each(|byte| syntax.feed(byte));
        assert_eq!(syntax.is_whole(), whole, "{}", text.escape_ascii());
        whole
    };
    for text in [
        "0",
        "-0",
        " 1.5e-3 ",
        "1E+9",
        "true",
        "null\n",
        "\"\"",
        "\"\\u00e4\\n\\/\"",
        "\"\\ud83d\"",
        "\"\u{7f}ä€😀\"",
        "[]",
        "[1,[],{}]",
        "{\"a\":{\"b\":[false]} , \"\":0}",
    ] {
        assert!(check(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        " ",
        "tru",
        "True",
        "nulll",
        "NaN",
        "Infinity",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "[1,]",
        "[,1]",
        "[1,,2]",
        "[1 2]",
        "[1}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "{'a':1}",
        "{1:2}",
        "\"a",
        "\"\\q\"",
        "\"\\u12\"",
        "\"\t\"",
        "\"\u{1}\"",
        "[1]]",
        "1//x",
        "\u{feff}1",
        "1\0",
    ] {
        assert!(!check(text.as_bytes()), "{text:?}");
    }
    for text in [
        &b"\"\xff\""[..],
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf4\x90\x80\x80\"",
        b"\"\xc3\"",
    ] {
        assert!(!check(text), "{}", text.escape_ascii());
    }
    assert!(check(&[vec![b'['; 4096], vec![b']'; 4096]].concat()));
    assert!(!check(&[vec![b'['; 4097], vec![b']'; 4097]].concat()), "beyond the depth");
}

proptest! {
    #[test]
    fn json_is_what_a_parser_takes(
        text in "([\\[\\]{},:]|\"a\"|\"\\\\[u\"n0]|[ \n]|true|null|-?[0-9.]{1,3}(e[+-]?1)?|ä){0,9}",
        value in any_json(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut changed = serde_json::to_vec(&value).unwrap();
        let at = at.index(changed.len());
        changed[at] = byte;
        for text in [text.as_bytes(), &changed] {
            let mut syntax = JsonSyntax::default();
            syntax.feed(text);
            let is_json = std::str::from_utf8(text)
                .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
            prop_assert_eq!(syntax.is_whole(), is_json, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn agrees_with_a_parser_that_keeps_all(
        value in any_json(),
        pointers in proptest::collection::vec("(/[a-c0-2]){0,4}", 1..5),
        cuts in proptest::collection::vec(0_usize..200, 0..4),
        pretty in any::<bool>(),
    ) {
        let text = if pretty {
serde_json::to_string_pretty(&value)
} else {
serde_json::to_string(&value)
}.unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts.into_iter().map(|to| {
            let piece = &text.as_bytes()[from..to];
            from = to;
            piece
        }).collect();
        let pointers: Vec<&str> = pointers.iter().map(String::as_str).collect();
        let got = scan(&pieces, &pointers);
        for (pointer, got) in pointers.iter().zip(got) {
            match (value.pointer(pointer), got) {
                (None, None) => {}
                (Some(Value::String(want)), Some(got)) => prop_assert_eq!(want, &got),
                (Some(want), Some(got)) => {
                    let got: Value = serde_json::from_str(&got).unwrap();
                    prop_assert_eq!(want, &got);
                }
                (want, got) => prop_assert!(false, "{}: {:?} {:?}", pointer, want, got),
            }
        }
    }
}
