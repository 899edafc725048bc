//! Distributions side by side: a line for each, from its first to its last percentile.

use super::plot::x_axis;
use crate::axis::Axis;
use crate::document::line::{Ink, Line, cleaned};

/// Percentiles of one distribution, in the units of the axis.
#[derive(Clone, Debug)]
pub(super) struct Whisker {
    /// Its name.
    pub name: String,
    /// The whole line: the 1st and the 99th percentile.
    pub ends: [f64; 2],
    /// The heavy part of it: the 10th and the 90th.
    pub most: [f64; 2],
    /// The mark on it: the 50th.
    pub median: f64,
}

/// What the parts of a line are drawn with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyphs {
    /// The thin ends.
    pub thin: char,
    /// The heavy part.
    pub heavy: char,
    /// The median.
    pub mark: char,
    /// Where it begins and where it ends.
    pub stops: [char; 2],
    /// The vertical axis.
    axis: char,
}

impl Glyphs {
    /// Those of a page.
    pub(super) fn new(unicode: bool) -> Glyphs {
        let [thin, heavy, mark, left, right, axis] = if unicode {
            ['─', '━', '●', '├', '┤', '│']
        } else {
            ['-', '=', 'O', '|', '|', '|']
        };
        Glyphs {
            thin,
            heavy,
            mark,
            stops: [left, right],
            axis,
        }
    }
}

/// A line for each of them over a common axis, within `width` columns. What lies outside the axis
/// is drawn at its end.
pub(super) fn laid_out(spreads: &[Whisker], axis: &Axis, width: usize, unicode: bool) -> Vec<Line> {
    let names: Vec<String> = spreads.iter().map(|s| cleaned(&s.name, unicode)).collect();
    let margin = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).max(10);
    let glyphs = Glyphs::new(unicode);
    let row = |(spread, name): (&Whisker, String)| {
        let mut line = Line::plain(name);
        line.pad_to(margin + 1);
        line.push(Ink::Dim, glyphs.axis);
        line.append(drawn(spread, axis, columns, glyphs));
        line
    };
    let mut lines: Vec<Line> = spreads.iter().zip(names).map(row).collect();
    lines.extend(x_axis(axis, margin, columns, unicode));
    lines
}

fn drawn(spread: &Whisker, axis: &Axis, columns: usize, glyphs: Glyphs) -> Line {
    let column = |value: f64| {
        let position = axis.position(value).clamp(0.0, 1.0);
        (position * (columns - 1) as f64).round() as usize
    };
    let (ends, most) = (spread.ends.map(column), spread.most.map(column));
    let median = column(spread.median);
    let mut line = Line::new();
    for at in 0..=ends[1] {
        let (ink, glyph) = match at {
            at if at == median => (Ink::Strong, glyphs.mark),
            at if (most[0]..=most[1]).contains(&at) => (Ink::Data, glyphs.heavy),
            at if at < ends[0] => (Ink::Plain, ' '),
            at if at == ends[0] => (Ink::Data, glyphs.stops[0]),
            at if at == ends[1] => (Ink::Data, glyphs.stops[1]),
            _ => (Ink::Data, glyphs.thin),
        };
        line.push(ink, glyph);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::number;

    fn text(spread: [f64; 5], unicode: bool) -> Vec<String> {
        let [p1, p10, p50, p90, p99] = spread;
        let spread = Whisker {
            name: "é".into(),
            ends: [p1, p99],
            most: [p10, p90],
            median: p50,
        };
        let axis = Axis::linear(0.0, 20.0, number);
        let lines = laid_out(&[spread], &axis, 24, unicode);
        let write = |line: &Line| {
            let mut bytes = Vec::new();
            line.write(false, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap().trim_end().to_string()
        };
        lines.iter().map(write).collect()
    }

    #[test]
    fn a_line_from_end_to_end_with_its_median() {
        assert_eq!(
            text([2.0, 5.0, 10.0, 12.0, 18.0], true),
            [
                "é │  ├──━━━━━●━━─────┤",
                "  └┬─────────┬─────────┬",
                "   0        10        20"
            ]
        );
        let ascii = text([2.0, 5.0, 10.0, 12.0, 18.0], false);
        assert_eq!(ascii[0], "? |  |--=====O==-----|");
        assert_eq!(text([7.0; 5], true)[0], "é │       ●");
        assert_eq!(text([30.0; 5], true)[0], "é │                    ●");
    }
}
