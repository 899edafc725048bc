//! Response times over time as a heat map or as percentiles. Both use the logarithmic scale of the
//! bands in which histograms arrive.

use super::charts::{MARGIN, axis, below, columns, plot_width, span};
use super::terminal_style::TerminalStyle;
use super::{LiveInterval, LiveState};
use crate::document::line::Ink;
use crate::number::time_short;
use knee_load::measure::{band_of, band_start};
use knee_load::time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

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
            let all: u64 = rows.iter().sum();
            for (row, n) in rows.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                let share = n as f64 / all as f64;
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
        let label = |t: Nanos| time_short(round_2(t.0));
        axis(style, buffer, self.area, [label(top), label(bottom)]);
    }
}

/// Rounds to two digits, the precision of an end of the scale.
fn round_2(ns: u64) -> u64 {
    let unit = 10u64.pow(ns.max(1).ilog10().saturating_sub(1));
    (ns + unit / 2) / unit * unit
}
