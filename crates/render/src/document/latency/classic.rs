//! The text of the original latency test, letter by letter. `knee analyze latency` reads it, and
//! results compare with old ones.

use crate::document::{Block, Document, Medium};
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};

/// Adds the text. Of several congestion controls it covers the first, as the overall figures do.
pub(super) fn show(doc: &mut Document, c: &LatencyConclusion) {
    let first = c.scenarios.first();
    let control = first.map_or("", |row| row.congestion_control.as_str());
    let mut lines = Vec::new();
    lines.extend(c.min_rtt_ns.map(|ns| format!("MinRTT: {:.1}ms", ns as f64 / 1e6)));
    let of_first = c.scenarios.iter().filter(|row| row.congestion_control == control);
    lines.extend(of_first.enumerate().map(|(i, row)| scenario(i + 1, row)));
    lines.push("OVERALL:".to_owned());
    let overall = [
        ("Upload Capacity", c.upload_capacity_kib_per_s, "KiB/s"),
        ("Download Capacity", c.download_capacity_kib_per_s, "KiB/s"),
        ("Link Responsiveness", c.responsiveness_hz, "Hz"),
        ("Flow Smoothness", c.smoothness_hz, "Hz"),
    ];
    let known = overall.into_iter().filter_map(|(name, value, unit)| Some((name, value?, unit)));
    lines.extend(known.map(|(name, value, unit)| format!("{name:>19}: {value} {unit}")));
    doc.only(Medium::Lines, |doc| doc.push(Block::Verbatim(lines)));
}

/// `Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, 2.90 Hz smoothness`; a
/// direction without flows is left out.
fn scenario(number: usize, row: &ScenarioRow) -> String {
    let mut parts = Vec::new();
    for (kib_per_s, direction) in [(row.up_kib_per_s, "up"), (row.down_kib_per_s, "down")] {
        parts.extend(kib_per_s.map(|n| format!("{:.0} KiB/s {direction}", n.floor())));
    }
    parts.extend(row.smoothness_hz.map(|hz| format!("{} Hz smoothness", hundredths(hz))));
    format!("Scenario {number}: {} uploads, {} downloads... {}", row.up, row.down, parts.join(", "))
}

/// With two decimals, rounded down as the overall figure is. A report made of this text is then the
/// same: 2.996 Hz must not become 3.
fn hundredths(hz: f64) -> String {
    // What was read as 2.90 is a little less than that in binary.
    format!("{:.2}", (hz * 100.0 + 1e-6).floor() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_written_as_they_always_were() {
        let row = |up, down, up_kib_per_s, down_kib_per_s, smoothness_hz| ScenarioRow {
            up,
            down,
            up_kib_per_s,
            down_kib_per_s,
            smoothness_hz,
            ..ScenarioRow::default()
        };
        for (row, expected) in [
            (
                row(1, 1, Some(50_998.9), Some(85_859.0), Some(2.9)),
                "Scenario 4: 1 uploads, 1 downloads... 50998 KiB/s up, 85859 KiB/s down, \
                 2.90 Hz smoothness",
            ),
            (
                row(0, 32, None, Some(0.0), Some(0.0)),
                "Scenario 4: 0 uploads, 32 downloads... 0 KiB/s down, 0.00 Hz smoothness",
            ),
            (
                row(2, 0, Some(7.2), None, Some(2.9999)),
                "Scenario 4: 2 uploads, 0 downloads... 7 KiB/s up, 2.99 Hz smoothness",
            ),
        ] {
            assert_eq!(scenario(4, &row), expected);
        }
    }
}
