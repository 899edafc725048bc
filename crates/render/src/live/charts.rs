//! Bars over time.

use super::columns::{columns, span};
use super::look::Look;
use super::{Live, Moment};
use crate::document::line::{Ink, Line};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns for the labels of the axis.
pub(super) const MARGIN: u16 = 12;

/// A chart of one figure of each interval.
pub(super) struct Bars<'a> {
    pub live: &'a Live,
    pub look: Look,
    pub name: &'a str,
    /// The figure.
    pub value: fn(&Moment) -> f64,
    /// How it is written.
    pub label: fn(f64) -> String,
    /// What was asked for, to compare with.
    pub asked: Option<f64>,
}

impl Bars<'_> {
    /// Draws it with its heading.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        self.look
            .heading(buffer, area, self.name, &span(self.live, &columns));
        let area = below(area);
        let fails = |c: &Option<&Moment>| c.is_some_and(|m| m.interval.errors > 0);
        let marks_errors = columns.iter().any(fails) && area.height > 2;
        let rows = area.height - u16::from(marks_errors);
        let plot = Rect {
            height: rows,
            ..area
        };
        let values = columns.iter().flatten().map(|m| (self.value)(m));
        let top = round_up(values.fold(self.asked.unwrap_or(0.0), f64::max));
        axis(self.look, buffer, plot, [(self.label)(top), "0".into()]);
        let style = self.look.style(Ink::Data);
        for (x, moment) in (area.x + MARGIN..).zip(&columns) {
            let Some(moment) = moment else {
                continue;
            };
            self.asked_at(buffer, plot, x, top);
            let value = (self.value)(moment);
            let eighths = (value / top * f64::from(rows) * 8.0).round() as usize;
            for row in 0..rows {
                let filled = eighths.saturating_sub(8 * usize::from(row));
                if filled > 0 {
                    let y = plot.bottom() - 1 - row;
                    self.look
                        .put(buffer, (x, y), self.look.filled(filled), style);
                }
            }
            if marks_errors && fails(&Some(moment)) {
                let (mark, style) = (self.look.pick('×', 'x'), self.look.style(Ink::Bad));
                self.look.put(buffer, (x, area.bottom() - 1), mark, style);
            }
        }
        if marks_errors {
            let label = Line::of(Ink::Bad, format!("{:>10}", "errors"));
            self.look.write(buffer, area, rows.into(), &label);
        }
    }

    /// Marks what was asked for; a bar that reaches it hides the mark.
    fn asked_at(&self, buffer: &mut Buffer, plot: Rect, x: u16, top: f64) {
        let Some(asked) = self.asked else {
            return;
        };
        let row = (asked / top * f64::from(plot.height)).ceil() as u16;
        let y = plot.bottom() - row.clamp(1, plot.height.max(1));
        let (mark, style) = (self.look.pick('┄', '-'), self.look.style(Ink::Guide));
        self.look.put(buffer, (x, y), mark, style);
    }
}

/// How many columns of an area are left beside the axis.
pub(super) fn plot_width(area: Rect) -> usize {
    area.width.saturating_sub(MARGIN).into()
}

/// An area without its heading.
pub(super) fn below(area: Rect) -> Rect {
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    }
}

/// The line at the left, with what its upper and its lower end stand for.
pub(super) fn axis(look: Look, buffer: &mut Buffer, area: Rect, [top, bottom]: [String; 2]) {
    for row in 0..area.height {
        let label = match row {
            0 => top.as_str(),
            _ if row + 1 == area.height => bottom.as_str(),
            _ => "",
        };
        let mut line = Line::of(Ink::Dim, format!("{label:>10}"));
        line.push(Ink::Dim, look.pick(" │", " |"));
        look.write(buffer, area, row.into(), &line);
    }
}

/// The next round number: 1, 2, 2.5 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0].map(|r| r * unit);
    round
        .into_iter()
        .find(|r| value <= *r)
        .unwrap_or(10.0 * unit)
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, expected) in [
            (0.0, 1.0),
            (0.03, 0.05),
            (1.0, 1.0),
            (998.0, 1_000.0),
            (1_001.0, 2_000.0),
            (2_300.0, 2_500.0),
            (7_000.0, 10_000.0),
        ] {
            assert!((round_up(value) / expected - 1.0).abs() < 1e-9, "{value}");
        }
    }
}
