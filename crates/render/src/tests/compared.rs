//! Comparisons in every form.

use crate::{Html, Json, Renderer, Text, fixtures};
use knee_core::compare::report::Comparison;

fn shown(form: &dyn Renderer<Comparison>, comparison: &Comparison) -> String {
    let mut bytes = Vec::new();
    form.render(comparison, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn comparisons_as_text() {
    let wide = Text::default();
    let narrow = Text { width: 60, ..wide };
    let ascii = Text { unicode: false, ..wide };
    insta::assert_snapshot!("compare_slower", shown(&wide, &fixtures::slower()));
    insta::assert_snapshot!("compare_sweeps", shown(&wide, &fixtures::sweeps()));
    insta::assert_snapshot!("narrow_compare", shown(&narrow, &fixtures::sweeps()));
    insta::assert_snapshot!("ascii_compare", shown(&ascii, &fixtures::slower()));
    for comparison in [fixtures::slower(), fixtures::sweeps()] {
        for width in [60, 72, 100, 160] {
            let text = shown(&Text { width, ..wide }, &comparison);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "at {width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
        assert!(shown(&ascii, &comparison).is_ascii());
    }
}

#[test]
fn comparisons_as_json_read_back_equal() {
    for comparison in [fixtures::slower(), fixtures::sweeps()] {
        let json = shown(&Json, &comparison);
        let read: Comparison = serde_json::from_str(&json).unwrap();
        assert_eq!(read, comparison);
    }
    let json: serde_json::Value = serde_json::from_str(&shown(&Json, &fixtures::slower())).unwrap();
    assert_eq!(json["schema"], "knee.comparison/1");
    assert_eq!(json["rows"][0]["verdict"], "worse");
}

#[test]
fn comparisons_as_pages_need_nothing_and_escape_all() {
    for comparison in [fixtures::slower(), fixtures::sweeps()] {
        let page = shown(&Html, &comparison);
        assert_eq!(page, shown(&Html, &comparison), "the same bytes again");
        assert_eq!(page.matches("<h1").count(), 1);
        assert!(page.contains("no difference"), "the plot's reference");
        assert!(!page.contains("<b>vusers"), "escaped");
        for outside in ["src=", "@import", "url(http"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.len() < 200_000, "{}", page.len());
    }
}
