//! Values in their places: whatever a value is, what an independent parser finds in a place is that
//! value, and nothing around it has changed.

use super::{parse, with_steps};
use knee_load::session::{Fills, Next, Origin, UnfitReason, UnfitValue, Users, Walk};
use knee_load::spec::{Cut, HttpRequest, Part};
use knee_load::time::Nanos;
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use std::sync::Arc;
use url::form_urlencoded;

/// One step, and what its only user sends where the name in its record is `value`.
fn sent(step: &str, value: &str) -> Result<Sent, UnfitValue> {
    let mut scenario = parse(&with_steps(&format!("      - {step}"))).expect(step);
    scenario.plan.data[0].rows = vec![vec![value.to_owned(), "p".to_owned()]];
    let users = Users::new(Arc::new(scenario.plan), (0, 1), 7);
    let mut users = users.of_origins([Origin::new(false, "h")]);
    let mut walk = Walk::default();
    assert!(walk.begin(&mut users, false));
    assert_eq!(walk.next(&mut users, Nanos::ZERO, 0, &mut 1_000), Next::Request(0));
    let request = scenario.requests.remove(0);
    let mut fills = Fills::new();
    let cuts = request.cut(Part::Path);
    let holes = cuts.iter().filter(|cut| matches!(cut, Cut::Hole(_)));
    let path = |fills: &Fills, out: &mut Vec<u8>| cuts.iter().for_each(|cut| cut.put(fills, out));
    walk.fill(0, &mut users, 0, &mut fills, (holes.count(), path))?;
    Ok(Sent { request, fills })
}

struct Sent {
    request: HttpRequest,
    fills: Fills,
}

impl Sent {
    fn part(&self, part: Part) -> String {
        let mut bytes = Vec::new();
        let cuts = self.request.cut(part);
        cuts.iter().for_each(|cut| cut.put(&self.fills, &mut bytes));
        String::from_utf8(bytes).unwrap()
    }

    fn url(&self) -> String {
        self.part(Part::Path)
    }
}

fn pairs(text: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

/// Values of all kinds, those that mean something in some place most of all.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z/?#&=%+.;:@\\\\\"'{} \r\n\t\u{0}\u{e4}]{0,12}", "[./]{0,4}",]
}

proptest! {
    #[test]
    fn a_segment_stays_one_whatever_its_value(value in values()) {
        let url = sent("get: /a/${users.name}/b", &value).unwrap().url();
        prop_assert!(url.bytes().all(|b| b.is_ascii_graphic()), "{}", url);
        prop_assert!(!url.contains(['#', '?']), "{}", url);
        let segments: Vec<_> = url.split('/').collect();
        prop_assert_eq!(segments.len(), 4);
        prop_assert!(!matches!(segments[2], "." | ".."));
        prop_assert_eq!(decoded(segments[2]), value.clone());
        // This parser takes encoded dots for dots, which no encoding can prevent.
        if !matches!(&*value, "." | "..") {
            let parsed = url::Url::parse(&format!("http://h{url}")).unwrap();
            let found: Vec<_> = parsed.path_segments().unwrap().map(decoded).collect();
            prop_assert_eq!(found, ["a", &value, "b"]);
        }
    }

    #[test]
    fn a_part_of_a_segment_adds_no_other(value in values()) {
        for (step, before, after) in [
            ("get: /a/.${users.name}/b", ".", ""),
            ("get: /a/${users.name}./b", "", "."),
            ("get: /a/x${users.name}/b", "x", ""),
            ("get: /a/${urlencode(users.name)}/b", "", ""),
        ] {
            let url = sent(step, &value).unwrap().url();
            let segments: Vec<_> = url.split('/').collect();
            prop_assert_eq!(segments.len(), 4, "{}", url);
            prop_assert!(!matches!(segments[2], "." | ".."), "{}", url);
            prop_assert_eq!(decoded(segments[2]), format!("{before}{value}{after}"));
        }
    }

    #[test]
    fn a_query_has_the_same_parameters_whatever_its_value(value in values()) {
        let step = "get: \"/q?a=${users.name}&b=x${users.name}y&${users.name}=c&d=1\"";
        let url = sent(step, &value).unwrap().url();
        let parsed = url::Url::parse(&format!("http://h{url}")).unwrap();
        prop_assert_eq!(parsed.path(), "/q");
        prop_assert_eq!(parsed.fragment(), None);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let middle = format!("x{value}y");
        let want = [pair("a", &value), pair("b", &middle), pair(&value, "c"), pair("d", "1")];
        prop_assert_eq!(pairs(parsed.query().unwrap()), want);
    }

    #[test]
    fn a_form_has_the_same_fields_whatever_its_value(value in values()) {
        let step = "post: /\n        form: {a: \"${users.name}\", b: \"x ${users.name}\", c: 1}";
        let body = sent(step, &value).unwrap().part(Part::Body);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let second = format!("x {value}");
        prop_assert_eq!(pairs(&body), [pair("a", &value), pair("b", &second), pair("c", "1")]);
    }

    #[test]
    fn a_json_text_is_the_value(value in values()) {
        let step = "post: /\n        json: {a: \"${users.name}\", b: [\"x${users.name}\", 1]}";
        let body = sent(step, &value).unwrap().part(Part::Body);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let want = serde_json::json!({"a": value, "b": [format!("x{value}"), 1]});
        prop_assert_eq!(body, want);
    }

    #[test]
    fn a_header_is_the_value_or_the_step_fails(value in values()) {
        let step = "get: /\n        headers: {X-A: \"<${users.name}>\", \
                    X-B: \"${raw(users.name)}\"}";
        let is_line = !value.chars().any(|c| c.is_ascii_control() && c != '\t');
        match sent(step, &value) {
            Ok(sent) => {
                prop_assert!(is_line);
                prop_assert_eq!(sent.part(Part::Header(0)), format!("<{value}>"));
                prop_assert_eq!(sent.part(Part::Header(1)), value);
            }
            Err(unfit) => {
                prop_assert!(!is_line);
                prop_assert_eq!(unfit.reason, UnfitReason::Control);
                prop_assert!(!unfit.misfit.chars().any(char::is_control));
            }
        }
    }

    #[test]
    fn raw_pieces_keep_to_the_request_line(value in values()) {
        let url = sent("get: \"/a${raw(users.name)}\"", &value).unwrap().url();
        prop_assert!(url.bytes().all(|b| b.is_ascii_graphic()), "{}", url);
        if let Ok(sent) = sent("get: \"${raw(users.name)}\"", &value) {
            let url = sent.url();
            prop_assert!(url.starts_with('/'), "{}", url);
            prop_assert!(url.bytes().all(|b| b.is_ascii_graphic()), "{}", url);
        }
    }
}

#[test]
fn a_cookie_of_a_header_adds_no_other() {
    let part = "get: /\n        headers: {Cookie: \"a=${users.name}; b=1\"}";
    let whole = "get: /\n        headers: {cookie: \"${users.name}\"}";
    let raw = "get: /\n        headers: {Cookie: \"a=${raw(users.name)}; b=1\"}";
    let cookie = |step, value| sent(step, value).map(|sent| sent.part(Part::Header(0)));
    assert_eq!(cookie(part, "x=y").unwrap(), "a=x=y; b=1");
    assert_eq!(cookie(part, "x; c=2").unwrap_err().reason, UnfitReason::Semicolon);
    assert_eq!(cookie(whole, "x; c=2").unwrap(), "x; c=2");
    assert_eq!(cookie(raw, "x; c=2").unwrap(), "a=x; c=2; b=1");
    assert_eq!(cookie(raw, "x\n").unwrap_err().reason, UnfitReason::Control);
}

/// Steps as they are sent, where the name is `value`.
#[test]
fn what_is_written_raw_is_a_piece_of_its_place() {
    let body = Part::Body;
    let json = "put: /\n        json:\n          ";
    for (step, value, part, want) in [
        ("get: /a${raw(users.name)}", "/b?c=d&e=%20", Part::Path, "/a/b?c=d&e=%20"),
        ("get: /a?${raw(users.name)}&f=1", "c=d&e", Part::Path, "/a?c=d&e&f=1"),
        ("get: ${raw(users.name)}", "http://h/a?b#c", Part::Path, "/a?b"),
        ("get: ${raw(users.name)}/x?${users.name}", "/a", Part::Path, "/a/x?%2Fa"),
        ("get: ${raw(users.name)}", "?a=b", Part::Path, "/?a=b"),
        ("get: /${raw('a/b')}/${users.name}", "/", Part::Path, "/a/b/%2F"),
        ("get: /${raw(urlencode(users.name))}", "/", Part::Path, "/%2F"),
        ("get: /${base64(raw(users.name))}", "??>", Part::Path, "/Pz8%2B"),
        ("put: /\n        form: {a: \"${raw(users.name)}\"}", "1&b=2", body, "a=1&b=2"),
        (&format!("{json}a: ${{raw(users.name)}}"), "[1, {}]", body, "{\"a\":[1, {}]}"),
        (&format!("{json}a: \"${{raw(users.name)}}\""), "\\n", body, "{\"a\":\"\\n\"}"),
        ("put: /\n        body: \"<${users.name}>\"", "a&b\"\r\n", body, "<a&b\"\r\n>"),
    ] {
        let sent = sent(step, value).unwrap_or_else(|unfit| panic!("{step}: {unfit:?}"));
        assert_eq!(sent.part(part), want, "{step}");
    }
}

#[test]
fn a_link_to_elsewhere_fails_the_step() {
    for (value, reason, misfit) in [
        ("", UnfitReason::Empty, "an empty value"),
        ("https://h/a", UnfitReason::Elsewhere, "a URL of 'https://h'"),
        ("http://h:81/a", UnfitReason::Elsewhere, "a URL of 'http://h:81'"),
        ("javascript:void(0)", UnfitReason::Elsewhere, "a URL of 'javascript'"),
    ] {
        let unfit = sent("get: ${raw(users.name)}", value).err().unwrap();
        let want = (reason, misfit, 0, 0);
        let UnfitValue { request, hole, .. } = unfit;
        assert_eq!((unfit.reason, &*unfit.misfit, request, hole), want);
    }
}

/// A value of the environment is settled before the run, and one all the same.
#[test]
fn values_of_the_environment_are_encoded_too() {
    for (step, want) in [
        ("get: /${env(SECRET)}/x?a=${env(SECRET)}", "/s3%22cret/x?a=s3%22cret"),
        ("get: /${urlencode('a/${env(SECRET)}')}", "/a%2Fs3%22cret"),
        ("get: /${urlencode('..')}/x", "/%2E%2E/x"),
        ("get: /../x.${urlencode('.')}", "/../x.."),
        ("get: http://${env(HOST)}/a", ""),
        ("get: /${raw(env(HOST))}", "/shop.test"),
    ] {
        let text = with_steps(&format!("      - {step}"));
        match parse(&text) {
            Ok(scenario) => assert_eq!(scenario.requests[0].path, want, "{step}"),
            Err(told) => {
                assert_eq!(want, "", "{step}: {told}");
                assert!(told.contains("another server than the target"), "{told}");
            }
        }
    }
}
