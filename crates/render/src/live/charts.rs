//! Charts over time: which column shows which interval, the axis, bars. Response times over time
//! are a heat map or percentiles. Both use the logarithmic scale of the bands in which histograms
//! arrive.

use super::terminal_style::TerminalStyle;
use super::{LiveInterval, LiveKind, LiveState};
use crate::document::line::{Ink, Line};
use crate::number::time_short;
use knee_load::measure::{band_of, band_start};
use knee_load::time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Columns for the labels of the axis.
pub(super) const MARGIN: u16 = 12;

/// A chart of one figure of each interval, with the rate asked for, if any.
pub(super) struct BarChart<'a> {
    pub live: &'a LiveState,
    pub style: TerminalStyle,
    pub name: &'a str,
    /// The figure.
    pub value: fn(&LiveInterval) -> f64,
    /// Formats the figure.
    pub label: fn(f64) -> String,
}

impl BarChart<'_> {
    /// Draws it with its heading.
    pub(super) fn draw(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        self.style.heading(buffer, area, self.name, &span(self.live, &columns));
        let area = below(area);
        let fails = |c: &Option<&LiveInterval>| c.is_some_and(|m| m.interval.errors > 0);
        let marks_errors = columns.iter().any(fails) && area.height > 2;
        let rows = area.height - u16::from(marks_errors);
        let plot = Rect { height: rows, ..area };
        let values = columns.iter().flatten().map(|m| (self.value)(m));
        let asked = self.live.trial.as_ref().and_then(|trial| trial.asked_per_s);
        let top = round_up(values.fold(asked.unwrap_or(0.0), f64::max));
        axis(self.style, buffer, plot, [(self.label)(top), "0".into()]);
        let style = self.style.style(Ink::Data);
        for (x, moment) in (area.x + MARGIN..).zip(&columns) {
            let Some(moment) = moment else {
                continue;
            };
            if let Some(asked) = asked {
                // A bar that reaches the rate asked for hides its mark.
                let row = (asked / top * f64::from(plot.height)).ceil() as u16;
                let y = plot.bottom() - row.clamp(1, plot.height.max(1));
                let (mark, style) = (self.style.pick('┄', '-'), self.style.style(Ink::Guide));
                self.style.put(buffer, (x, y), mark, style);
            }
            let value = (self.value)(moment);
            let eighths = (value / top * f64::from(rows) * 8.0).round() as usize;
            for row in 0..rows {
                let filled = eighths.saturating_sub(8 * usize::from(row));
                if filled > 0 {
                    let y = plot.bottom() - 1 - row;
                    self.style.put(buffer, (x, y), self.style.filled(filled), style);
                }
            }
            if marks_errors && fails(&Some(moment)) {
                let (mark, style) = (self.style.pick('×', 'x'), self.style.style(Ink::Bad));
                self.style.put(buffer, (x, area.bottom() - 1), mark, style);
            }
        }
        if marks_errors {
            let label = Line::of(Ink::Bad, format!("{:>10}", "errors"));
            self.style.write(buffer, area, rows.into(), &label);
        }
    }
}

/// The widest interval, in columns.
const WIDTH_MAX: usize = 8;

/// The interval of each column of a chart, from the left; `None` is a gap between two trials. At
/// most `width` columns, of the latest intervals.
pub(super) fn columns(live: &LiveState, width: usize) -> Vec<Option<&LiveInterval>> {
    let columns_each = column_width(live, width);
    let mut columns = Vec::with_capacity(width);
    'intervals: for (i, moment) in live.intervals.iter().enumerate().rev() {
        let gap = moment.begins && i > 0;
        for cell in std::iter::repeat_n(Some(moment), columns_each).chain(gap.then_some(None)) {
            if columns.len() == width {
                break 'intervals;
            }
            columns.push(cell);
        }
    }
    columns.reverse();
    columns
}

/// The width of an interval at which the expected rest of the running trial fits in.
fn column_width(live: &LiveState, width: usize) -> usize {
    let mut expected = live.intervals.len();
    if let Some(trial) = &live.trial {
        let so_far = live.intervals.iter().rev().take_while(|m| !m.begins).count() + 1;
        let in_all = match (trial.kind, trial.total) {
            (LiveKind::Row { .. }, _) | (_, None) => so_far,
            (_, Some(total)) => ((total - trial.warmup).0 / trial.interval.0.max(1)) as usize,
        };
        let earlier = if live.is_running { live.intervals.len().saturating_sub(so_far) } else { 0 };
        expected = expected.max(earlier + in_all) + live.begun;
    }
    (width / expected.max(1)).clamp(1, WIDTH_MAX)
}

/// The time of these columns since the begin of the trial; empty if they show several trials.
pub(super) fn span(live: &LiveState, columns: &[Option<&LiveInterval>]) -> String {
    let (Some(Some(first)), Some(Some(last))) = (columns.first(), columns.last()) else {
        return String::new();
    };
    if columns.iter().any(Option::is_none) {
        return String::new();
    }
    let seconds = |ns: u64| format!("{:.1}", (live.warmup() + Nanos(ns)).as_secs_f64());
    let (from, to) = (first.interval.start_ns, last.interval.end_ns);
    format!("{} to {} s", seconds(from), seconds(to))
}

/// Columns of an area beside the axis.
fn plot_width(area: Rect) -> usize {
    area.width.saturating_sub(MARGIN).into()
}

/// An area without its heading.
pub(super) fn below(area: Rect) -> Rect {
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// Draws the axis at the left with labels at its ends.
pub(super) fn axis(
    style: TerminalStyle,
    buffer: &mut Buffer,
    area: Rect,
    [top, bottom]: [String; 2],
) {
    for row in 0..area.height {
        let label = match row {
            0 => top.as_str(),
            _ if row + 1 == area.height => bottom.as_str(),
            _ => "",
        };
        let mut line = Line::of(Ink::Dim, format!("{label:>10}"));
        line.push(Ink::Dim, style.pick(" │", " |"));
        style.write(buffer, area, row.into(), &line);
    }
}

/// The next round number: 1, 2, 2.5 or 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0].map(|r| r * unit).into_iter().find(|r| value <= *r).unwrap_or(10.0 * unit)
}

/// Shares of an interval's operations from which a cell is hotter.
const HEATS: [f64; 3] = [0.02, 0.1, 0.3];

/// A chart of response times or pings.
pub(super) struct TimesChart<'a> {
    pub live: &'a LiveState,
    pub style: TerminalStyle,
    /// The name of the times.
    pub name: &'a str,
}

impl TimesChart<'_> {
    /// Draws the number of operations by response time.
    pub(super) fn heat_map(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        let name = format!("{}, heat map", self.name);
        self.style.heading(buffer, area, &name, &span(self.live, &columns));
        let area = below(area);
        let Some(scale) = BandScale::of(&columns, area) else {
            return;
        };
        scale.axis(self.style, buffer);
        for (x, moment) in (area.x + MARGIN..).zip(&columns) {
            let Some(moment) = moment else {
                continue;
            };
            let mut rows = vec![0; area.height.into()];
            for (band, n) in &moment.bands {
                rows[scale.row(*band)] += n;
            }
            let operations: u64 = rows.iter().sum();
            for (row, n) in rows.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                let share = n as f64 / operations as f64;
                let heat = 1 + HEATS.iter().filter(|h| share >= **h).count();
                let (symbol, style) = self.style.heat(heat);
                self.style.put(buffer, (x, scale.y(row)), symbol, style);
            }
        }
    }

    /// Draws median, 90th and 99th percentile and maximum.
    pub(super) fn percentiles(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        let marks = self.style.pick(['▴', '◆', '▪', '•'], ['^', '9', '+', 'o']);
        let [max, p99, p90, p50] = marks;
        let name = format!("{}: {p50} p50  {p90} p90  {p99} p99  {max} max", self.name);
        self.style.heading(buffer, area, &name, "");
        let area = below(area);
        let Some(scale) = BandScale::of(&columns, area) else {
            return;
        };
        scale.axis(self.style, buffer);
        let styles = [Ink::Dim, Ink::Bad, Ink::Warn, Ink::Data].map(|i| self.style.style(i));
        for (x, moment) in (area.x + MARGIN..).zip(&columns) {
            let Some(moment) = moment.filter(|m| has_times(m)) else {
                continue;
            };
            let i = &moment.interval;
            // Where several fall together the median is seen.
            let times = [i.max_ns, i.p99_ns, i.p90_ns, i.p50_ns];
            for ((ns, mark), style) in times.into_iter().zip(marks).zip(styles) {
                let y = scale.y(scale.row(band_of(Nanos(ns))));
                self.style.put(buffer, (x, y), mark, style);
            }
        }
    }
}

fn has_times(moment: &LiveInterval) -> bool {
    moment.interval.max_ns > 0
}

/// Maps bands to rows.
struct BandScale {
    area: Rect,
    /// The lowest band.
    from: u16,
    /// The number of bands.
    bands: u16,
}

impl BandScale {
    /// The scale for these columns; `None` without times or without room.
    fn of(columns: &[Option<&LiveInterval>], area: Rect) -> Option<BandScale> {
        let shown = columns.iter().flatten().filter(|m| has_times(m));
        let bands = |m: &&LiveInterval| {
            let low = m.bands.first().map_or(u16::MAX, |b| b.0);
            let high = m.bands.last().map_or(0, |b| b.0);
            [
                low.min(band_of(Nanos(m.interval.p50_ns))),
                high.max(band_of(Nanos(m.interval.max_ns))),
            ]
        };
        let [from, to] = shown.map(bands).reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])?;
        (area.height > 0).then_some(BandScale {
            area,
            from,
            // A row shows one band at the least.
            bands: (to + 1 - from).max(area.height),
        })
    }

    /// The row, counted from below, of a band.
    fn row(&self, band: u16) -> usize {
        let above = band.saturating_sub(self.from).min(self.bands - 1);
        usize::from(above) * usize::from(self.area.height) / usize::from(self.bands)
    }

    fn y(&self, row: usize) -> u16 {
        self.area.bottom() - 1 - row as u16
    }

    fn axis(&self, style: TerminalStyle, buffer: &mut Buffer) {
        let [top, bottom] = [self.from + self.bands, self.from].map(band_start);
        // Two digits are the precision of an end of the scale.
        let label = |t: Nanos| {
            let unit = 10u64.pow(t.0.max(1).ilog10().saturating_sub(1));
            time_short((t.0 + unit / 2) / unit * unit)
        };
        axis(style, buffer, self.area, [label(top), label(bottom)]);
    }
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
