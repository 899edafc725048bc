//! Response times over time: as a heat map, or by their percentiles. Both on one scale: that of
//! the bands in which histograms are handed over, which is logarithmic.

use super::charts::{MARGIN, axis, below, plot_width};
use super::columns::{columns, span};
use super::look::Look;
use super::{Live, Moment};
use crate::document::line::Ink;
use crate::number::time_short;
use knee_core::measure::{band_of, band_start};
use knee_core::time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// From these shares of an interval's operations on a cell is hotter.
const HEATS: [f64; 3] = [0.02, 0.1, 0.3];

/// What the chart shows of response times (or pings).
pub(super) struct Latency<'a> {
    pub live: &'a Live,
    pub look: Look,
    /// What the times are of.
    pub name: &'a str,
}

impl Latency<'_> {
    /// How many operations took how long.
    pub(super) fn heat_map(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        let name = format!("{}, heat map", self.name);
        self.look
            .heading(buffer, area, &name, &span(self.live, &columns));
        let area = below(area);
        let Some(scale) = Scale::of(&columns, area) else {
            return;
        };
        scale.axis(self.look, buffer);
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
                let (symbol, style) = self.look.heat(heat);
                self.look.put(buffer, (x, scale.y(row)), symbol, style);
            }
        }
    }

    /// Median, 90th and 99th percentile and maximum.
    pub(super) fn percentiles(&self, buffer: &mut Buffer, area: Rect) {
        let columns = columns(self.live, plot_width(area));
        let marks = self.look.pick(['▴', '◆', '▪', '•'], ['^', '9', '+', 'o']);
        let [max, p99, p90, p50] = marks;
        let name = format!("{}: {p50} p50  {p90} p90  {p99} p99  {max} max", self.name);
        self.look.heading(buffer, area, &name, "");
        let area = below(area);
        let Some(scale) = Scale::of(&columns, area) else {
            return;
        };
        scale.axis(self.look, buffer);
        let styles = [Ink::Dim, Ink::Bad, Ink::Warn, Ink::Data].map(|i| self.look.style(i));
        for (x, moment) in (area.x + MARGIN..).zip(&columns) {
            let Some(moment) = moment.filter(|m| has_times(m)) else {
                continue;
            };
            let i = &moment.interval;
            // Where several fall together the median is seen.
            let times = [i.max_ns, i.p99_ns, i.p90_ns, i.p50_ns];
            for ((ns, mark), style) in times.into_iter().zip(marks).zip(styles) {
                let y = scale.y(scale.row(band_of(Nanos(ns))));
                self.look.put(buffer, (x, y), mark, style);
            }
        }
    }
}

fn has_times(moment: &Moment) -> bool {
    moment.interval.max_ns > 0
}

/// Which row shows which bands.
struct Scale {
    area: Rect,
    /// The lowest band.
    from: u16,
    /// How many bands there are.
    bands: u16,
}

impl Scale {
    /// The scale for all that these columns show; `None` where there is nothing, or no room.
    fn of(columns: &[Option<&Moment>], area: Rect) -> Option<Scale> {
        let shown = columns.iter().flatten().filter(|m| has_times(m));
        let bands = |m: &&Moment| {
            let low = m.bands.first().map_or(u16::MAX, |b| b.0);
            let high = m.bands.last().map_or(0, |b| b.0);
            [
                low.min(band_of(Nanos(m.interval.p50_ns))),
                high.max(band_of(Nanos(m.interval.max_ns))),
            ]
        };
        let [from, to] = shown
            .map(bands)
            .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])?;
        (area.height > 0).then_some(Scale {
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

    fn axis(&self, look: Look, buffer: &mut Buffer) {
        let [top, bottom] = [self.from + self.bands, self.from].map(band_start);
        let label = |t: Nanos| time_short(round_2(t.0));
        axis(look, buffer, self.area, [label(top), label(bottom)]);
    }
}

/// Two digits are as much as an end of such a scale says.
fn round_2(ns: u64) -> u64 {
    let unit = 10u64.pow(ns.max(1).ilog10().saturating_sub(1));
    (ns + unit / 2) / unit * unit
}
