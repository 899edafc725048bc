//! What the text looks like: each report as a person sees it.

use crate::{Renderer, Text, fixtures};
use knee_core::report::Report;

fn shown(report: &Report, text: Text) -> String {
    let mut bytes = Vec::new();
    text.render(report, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_report_as_it_is_by_default() {
    for (name, report) in fixtures::all() {
        insta::assert_snapshot!(name, shown(&report, Text::default()));
    }
}

#[test]
fn narrow_and_in_ascii() {
    for (name, report) in [
        ("sweep", fixtures::sweep_good()),
        ("run", fixtures::run_errors()),
    ] {
        let narrow = Text {
            width: 60,
            ..Text::default()
        };
        insta::assert_snapshot!(format!("narrow_{name}"), shown(&report, narrow));
        let ascii = Text {
            unicode: false,
            ..Text::default()
        };
        insta::assert_snapshot!(format!("ascii_{name}"), shown(&report, ascii));
    }
}

#[test]
fn nothing_is_wider_than_the_page_and_no_line_ends_in_a_space() {
    for (name, report) in fixtures::all() {
        for width in [0, 60, 61, 72, 80, 90, 100, 132, 200] {
            for unicode in [true, false] {
                let text = shown(
                    &report,
                    Text {
                        color: false,
                        width,
                        unicode,
                    },
                );
                for line in text.lines() {
                    let columns = line.chars().count();
                    assert!(columns <= width.max(60), "{name} at {width}: {line:?}");
                    assert_eq!(line, line.trim_end(), "{name} at {width}");
                    assert!(unicode || line.is_ascii(), "{name}: {line:?}");
                }
                assert!(
                    text.ends_with('\n') && !text.contains("\n\n\n"),
                    "{name} at {width}"
                );
            }
        }
    }
}

/// Colour only adds: without its sequences the text is the same.
#[test]
fn colour_changes_no_character() {
    for (name, report) in fixtures::all() {
        let plain = shown(&report, Text::default());
        let colored = shown(
            &report,
            Text {
                color: true,
                ..Text::default()
            },
        );
        assert!(!plain.contains('\x1b'), "{name}");
        assert!(colored.contains("\x1b["), "{name}");
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped.push_str(before);
            rest = after.split_once('m').map_or("", |(_, text)| text);
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain, "{name}");
    }
}
