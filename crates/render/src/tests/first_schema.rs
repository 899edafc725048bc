//! Reports of the first schema, `knee.report/1`, as knee 0.1.0 wrote them after short runs on
//! loopback: they are read, and their text is what that version rendered.

use crate::{Renderer, Text, parse_report};
use knee_core::report::{Kind, Report};

/// Each with the text that knee 0.1.0 made of it, in a snapshot of the same name.
const STORED: [(&str, &str); 11] = [
    ("run_open", include_str!("first_schema/run_open.json")),
    ("run_closed", include_str!("first_schema/run_closed.json")),
    ("sweep", include_str!("first_schema/sweep.json")),
    ("overload", include_str!("first_schema/overload.json")),
    ("udp", include_str!("first_schema/udp.json")),
    ("udp_compare", include_str!("first_schema/udp_compare.json")),
    ("latency", include_str!("first_schema/latency.json")),
    (
        "throttle_waits",
        include_str!("first_schema/throttle_waits.json"),
    ),
    (
        "throttle_rates",
        include_str!("first_schema/throttle_rates.json"),
    ),
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
    for kind in Kind::all() {
        let is_of = |(name, text): &(&str, &str)| read(name, text).command.kind == kind;
        assert!(STORED.iter().any(is_of), "{kind:?}");
    }
}
