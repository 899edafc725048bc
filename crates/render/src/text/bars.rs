//! Bars and sparklines: plots that fit into a line.

/// Eighths of a block, from the left and from below.
const FROM_LEFT: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const FROM_BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// A horizontal bar over `share` (0 to 1) of `width` columns; never quite empty.
pub(super) fn bar(share: f64, width: usize, unicode: bool) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round().max(1.0) as usize;
    if !unicode {
        return "#".repeat(eighths.div_ceil(8));
    }
    let mut bar = FROM_LEFT[7].to_string().repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(FROM_LEFT[eighths % 8 - 1]);
    }
    bar
}

/// The value shown for several neighbours if a sparkline has more values than columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptExtreme {
    /// The largest: no peak is lost.
    Peaks,
    /// The smallest: no gap is lost.
    Dips,
}

/// Values as heights over a common base of 0, one character each, at most `width`.
pub(super) fn sparkline(values: &[f64], keep: KeptExtreme, width: usize, unicode: bool) -> String {
    let top = values.iter().copied().fold(0.0, f64::max);
    let per_column = values.len().div_ceil(width.max(1)).max(1);
    let columns = values.chunks(per_column);
    let levels = if unicode { FROM_BELOW } else { ASCII_LEVELS };
    let glyph = |chunk: &[f64]| {
        let values = chunk.iter().copied();
        let value = match keep {
            KeptExtreme::Peaks => values.fold(0.0, f64::max),
            KeptExtreme::Dips => values.fold(f64::INFINITY, f64::min),
        };
        if value <= 0.0 || top <= 0.0 {
            return if unicode { ' ' } else { '_' };
        }
        levels[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    columns.map(glyph).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_in_eighths_and_whole_columns() {
        for (share, unicode, expected) in [
            (0.0, true, "▏"),
            (0.25, true, "█"),
            (0.28, true, "█▏"),
            (1.0, true, "████"),
            (7.0, true, "████"),
            (0.28, false, "##"),
        ] {
            assert_eq!(bar(share, 4, unicode), expected, "{share}");
        }
    }

    #[test]
    fn a_sparkline_keeps_its_peaks_or_its_dips() {
        let values = [0.0, 1.0, 2.0, 4.0, 8.0, 8.0];
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 10, true), " ▁▂▄██");
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 3, true), "▁▄█");
        assert_eq!(sparkline(&values, KeptExtreme::Dips, 3, true), " ▂█");
        assert_eq!(sparkline(&values, KeptExtreme::Peaks, 10, false), "__.-##");
        assert_eq!(sparkline(&[], KeptExtreme::Dips, 10, true), "");
    }
}
