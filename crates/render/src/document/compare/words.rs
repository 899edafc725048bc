//! The rows of a comparison in words, as text and page have them alike.

use crate::number::{MISSING, TIE, bytes, number, percent, rate, time};
use knee_core::compare::metric_name;
use knee_core::compare::report::{ComparisonRow, ComparisonVerdict};

/// `p90 at vusers=8`
pub(super) fn metric(row: &ComparisonRow) -> String {
    let name = metric_name(&row.metric);
    match row.label.as_str() {
        "" => name,
        label => format!("{name} at {label}"),
    }
}

/// A value with its unit.
pub(super) fn figure(unit: &str, value: Option<f64>) -> String {
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
pub(super) fn ratio(of: f64) -> String {
    match of {
        of if (0.1..100.0).contains(&of) => format!("{of:.2}"),
        of => number(of),
    }
}

/// `0.98–1.02`
pub(super) fn interval(bounds: Option<[f64; 2]>) -> String {
    bounds.map_or(MISSING.to_owned(), |[low, high]| {
        format!("{}–{}", ratio(low), ratio(high))
    })
}

/// `6.2 %`
pub(super) fn smallest(change: Option<f64>) -> String {
    change.map_or(MISSING.to_owned(), percent)
}

/// `0.03`, `<0.001`
pub(super) fn probability(p: Option<f64>) -> String {
    match p {
        None => MISSING.to_owned(),
        Some(p) if p < 0.001 => "<0.001".to_owned(),
        Some(p) if p < 0.1 => format!("{p:.3}"),
        Some(p) => format!("{p:.2}"),
    }
}

/// What became of B.
pub(super) fn verdict_word(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Different => "different",
        ComparisonVerdict::Same => "within chance",
        ComparisonVerdict::Unknown => "unknown",
    }
}
