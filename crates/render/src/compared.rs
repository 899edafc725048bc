//! The rows of a comparison in words, as text and page have them alike.

use crate::number::{MISSING, TIE, bytes, number, percent, rate, time};
use knee_core::compare::metric_name;
use knee_core::compare::report::{ComparisonRow, ComparisonVerdict};

/// `p90 at vusers=8`
pub fn metric(row: &ComparisonRow) -> String {
    let name = metric_name(&row.metric);
    match row.label.as_str() {
        "" => name,
        label => format!("{name} at {label}"),
    }
}

/// A value with its unit.
pub fn figure(unit: &str, value: Option<f64>) -> String {
    let Some(value) = value else {
        return MISSING.to_owned();
    };
    match unit {
        "ns" => time(value.max(0.0).round() as u64),
        "per_s" => rate(value),
        "percent" => percent(value),
        "kib_per_s" => format!("{}{TIE}KiB/s", number(value)),
        "bytes_per_s" => format!("{}/s", bytes(value.max(0.0).round() as u64)),
        "hz" => format!("{}{TIE}Hz", number(value)),
        _ => number(value),
    }
}

/// Two digits after the point, more significant ones where that is next to nothing.
pub fn ratio(of: f64) -> String {
    match of {
        of if (0.1..100.0).contains(&of) => format!("{of:.2}"),
        of => number(of),
    }
}

/// `0.98–1.02`
pub fn interval(bounds: Option<[f64; 2]>) -> String {
    bounds.map_or(MISSING.to_owned(), |[low, high]| {
        format!("{}–{}", ratio(low), ratio(high))
    })
}

/// `6.2 %`
pub fn smallest(change: Option<f64>) -> String {
    change.map_or(MISSING.to_owned(), percent)
}

/// `0.03`, `<0.001`
pub fn probability(p: Option<f64>) -> String {
    match p {
        None => MISSING.to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) if p < 0.1 => format!("{p:.3}"),
        Some(p) => format!("{p:.2}"),
    }
}

/// What became of B.
pub fn verdict_word(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Different => "different",
        ComparisonVerdict::Same => "within chance",
        ComparisonVerdict::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
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
        let ascii = Text {
            unicode: false,
            ..wide
        };
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
        let json: serde_json::Value =
            serde_json::from_str(&shown(&Json, &fixtures::slower())).unwrap();
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
}
