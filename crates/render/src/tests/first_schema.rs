//! Reports of the first schema, `knee.report/1`, as knee 0.1.0 wrote them after short runs on
//! loopback. They are read, and their text is what that version rendered.

use crate::{Json, Renderer, Text, parse_report};
use knee_core::report::{Kind, Report};
use serde_json::Value;

/// Each with the text that knee 0.1.0 made of it, in a snapshot of the same name.
const STORED: [(&str, &str); 11] = [
    ("run_open", include_str!("first_schema/run_open.json")),
    ("run_closed", include_str!("first_schema/run_closed.json")),
    ("sweep", include_str!("first_schema/sweep.json")),
    ("overload", include_str!("first_schema/overload.json")),
    ("udp", include_str!("first_schema/udp.json")),
    ("udp_compare", include_str!("first_schema/udp_compare.json")),
    ("latency", include_str!("first_schema/latency.json")),
    ("throttle_waits", include_str!("first_schema/throttle_waits.json")),
    ("throttle_rates", include_str!("first_schema/throttle_rates.json")),
    // Of processes that were killed, as `knee history show --json` wrote them.
    ("killed_run", include_str!("first_schema/killed_run.json")),
    ("killed_udp", include_str!("first_schema/killed_udp.json")),
];

fn read(name: &str, text: &str) -> Report {
    assert!(text.contains(r#""schema":"knee.report/1""#), "{name}");
    parse_report(text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn their_text_is_what_it_was() {
    for (name, text) in STORED {
        let mut shown = Vec::new();
        let report = read(name, text);
        Text::default().render(&report, &mut shown).unwrap();
        insta::assert_snapshot!(name, String::from_utf8(shown).unwrap());
    }
}

#[test]
fn every_experiment_has_one() {
    // knee 0.1.0 had no other.
    for kind in Kind::all().filter(|&kind| kind != Kind::Recover) {
        let is_of = |(name, text): &(&str, &str)| read(name, text).command.kind == kind;
        assert!(STORED.iter().any(is_of), "{kind:?}");
    }
}

/// Keys that trials of some kinds no longer have, as they did not apply to them.
const GONE: [&str; 6] = [
    "transient_ns",
    "littles_law",
    "connections_opened",
    "connections_max",
    "connection_wait_ns",
    "schema",
];

#[test]
fn all_other_keys_stay_where_they_are() {
    for (name, text) in STORED {
        let mut written = Vec::new();
        Json.render(&read(name, text), &mut written).unwrap();
        let before: Value = serde_json::from_str(text).unwrap();
        let after: Value = serde_json::from_slice(&written).unwrap();
        stays(&before, &after, name);
        let again = String::from_utf8(written).unwrap();
        assert_eq!(parse_report(&again), Ok(read(name, text)), "{name}");
    }
}

/// Whether a value of a document is in another, where it was.
fn stays(before: &Value, after: &Value, place: &str) {
    match (before, after) {
        (Value::Object(keys), Value::Object(kept)) => {
            for (key, value) in keys.iter().filter(|(k, _)| !GONE.contains(&k.as_str())) {
                let place = format!("{place}/{key}");
                stays(value, kept.get(key).unwrap_or(&Value::Null), &place);
            }
        }
        (Value::Array(items), Value::Array(kept)) => {
            assert_eq!(items.len(), kept.len(), "{place}");
            for (item, kept) in items.iter().zip(kept) {
                stays(item, kept, place);
            }
        }
        _ => assert_eq!(before, after, "{place}"),
    }
}
