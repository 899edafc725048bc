//! Distributions side by side: a line for each, from its first to its last percentile.

use super::plot::x_axis;
use crate::document::line::{Ink, Line, cleaned};
use crate::plot::{BoxPlot, Scale};

/// A line for each distribution over a common axis, within `width` columns. What lies outside the
/// axis is drawn at its end.
pub(super) fn laid_out(
    boxes: &[BoxPlot],
    names: &Scale,
    x: &Scale,
    width: usize,
    unicode: bool,
) -> Vec<Line> {
    let names: Vec<String> = boxes.iter().map(|b| cleaned(&names.value(b.at), unicode)).collect();
    let margin = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let columns = width.saturating_sub(margin + 2).max(10);
    let column = |value: f64| {
        let position = x.axis.position(value).clamp(0.0, 1.0);
        (position * (columns - 1) as f64).round() as usize
    };
    let bar = if unicode { '│' } else { '|' };
    let mut lines = Vec::new();
    for (name, b) in names.into_iter().zip(boxes) {
        let mut line = Line::plain(name);
        line.pad_to(margin + 1);
        line.push(Ink::Dim, bar);
        line.append(drawn(b.percentiles.map(column), unicode));
        lines.push(line);
    }
    lines.extend(x_axis(&x.axis, margin, columns, unicode));
    lines
}

/// A distribution whose percentiles lie in these columns.
fn drawn([begin, from, middle, to, end]: [usize; 5], unicode: bool) -> Line {
    let [thin, heavy, mark, left, right] =
        if unicode { ['─', '━', '●', '├', '┤'] } else { ['-', '=', 'O', '|', '|'] };
    let mut line = Line::new();
    for at in 0..=end {
        let (ink, glyph) = match at {
            at if at == middle => (Ink::Strong, mark),
            at if (from..=to).contains(&at) => (Ink::Data, heavy),
            at if at < begin => (Ink::Plain, ' '),
            at if at == begin => (Ink::Data, left),
            at if at == end => (Ink::Data, right),
            _ => (Ink::Data, thin),
        };
        line.push(ink, glyph);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Unit;

    fn text(percentiles: [f64; 5], unicode: bool) -> Vec<String> {
        let spread = BoxPlot { at: 0.0, percentiles };
        let names = Scale::categories(vec!["é".into()]);
        let x = Scale::linear(0.0, 20.0, Unit::Number, "");
        let lines = laid_out(&[spread], &names, &x, 24, unicode);
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
            ["é │  ├──━━━━━●━━─────┤", "  └┬─────────┬─────────┬", "   0        10        20"]
        );
        let ascii = text([2.0, 5.0, 10.0, 12.0, 18.0], false);
        assert_eq!(ascii[0], "? |  |--=====O==-----|");
        assert_eq!(text([7.0; 5], true)[0], "é │       ●");
        assert_eq!(text([30.0; 5], true)[0], "é │                    ●");
    }
}
