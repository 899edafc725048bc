//! The layout of the whole screen.

use super::charts::{BarChart, TimesChart};
use super::panels::{bit_rate, figures, title};
use super::terminal_style::TerminalStyle;
use super::{LiveInterval, LiveKind, LiveState, LiveTrial, panels};
use crate::document::line::{Ink, Line};
use crate::number::rate;
use knee_load::time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

/// The least columns for two charts side by side.
const TWO_FROM: u16 = 100;
/// The fewest rows of a chart, its heading included.
const CHART_MIN: u16 = 4;

/// The chart of response times, if there is room for one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyView {
    /// Number of operations by response time.
    #[default]
    HeatMap,
    /// Median, 90th and 99th percentile, maximum.
    Percentiles,
}

impl LatencyView {
    /// The other one.
    pub fn other(self) -> LatencyView {
        match self {
            LatencyView::HeatMap => LatencyView::Percentiles,
            LatencyView::Percentiles => LatencyView::HeatMap,
        }
    }
}

/// A picture of a running experiment. It fits any size; 60 columns and 16 rows show all parts.
#[derive(Clone, Copy, Debug)]
pub struct LiveScreen<'a> {
    /// The state of the experiment.
    pub live: &'a LiveState,
    /// The abilities of the terminal.
    pub style: TerminalStyle,
    /// Time since the begin of the running trial.
    pub elapsed: Nanos,
    /// Whether the user has ended the experiment.
    pub stopping: bool,
    /// The chart of response times.
    pub pane: LatencyView,
    /// Whether help on the keys is shown instead.
    pub help: bool,
    /// The message of the last key; may be empty.
    pub hint: &'a str,
}

impl Widget for LiveScreen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 4 || area.height == 0 {
            return;
        }
        let width = usize::from(area.width);
        let mut lines = vec![title(self.live, width), progress(&self, width)];
        lines.extend(figures(self.live, width));
        for (row, line) in lines.iter().enumerate() {
            self.style.write(buffer, area, row, line);
        }
        let used = lines.len() as u16;
        let body = Rect {
            y: area.y + used.min(area.height),
            height: area.height.saturating_sub(used + 1),
            ..area
        };
        if area.height > used {
            let last = usize::from(area.height) - 1;
            self.style.write(buffer, area, last, &self.footer(area.width));
        }
        if self.help {
            self.explain(buffer, body);
        } else {
            self.body(buffer, body);
        }
    }
}

impl LiveScreen<'_> {
    fn footer(&self, width: u16) -> Line {
        if !self.hint.is_empty() {
            return Line::of(Ink::Warn, self.hint);
        }
        if self.stopping {
            return Line::of(Ink::Warn, "ending; Ctrl-C again aborts without a report");
        }
        let mut line = Line::of(Ink::Strong, "q").with(Ink::Dim, " ends early  ");
        let has_times = matches!(self.live.kind(), Some(LiveKind::Operations | LiveKind::Flows));
        if has_times && width < TWO_FROM {
            line.push(Ink::Strong, "v");
            line.push(Ink::Dim, " heat map or percentiles  ");
        }
        line.with(Ink::Strong, "?").with(Ink::Dim, " help")
    }

    /// Draws log, ended trials and agents at the lower end, charts in the rest.
    fn body(&self, buffer: &mut Buffer, mut area: Rect) {
        let width = usize::from(area.width);
        let share = area.height / 4;
        let log_rows = panels::log_rows(self.live, width, self.style).clamp(1, 12) as u16;
        self.panel(&mut area, 1 + log_rows.min(share.max(1)), |area| {
            panels::draw_log(self.live, self.style, buffer, area);
        });
        let ended = self.live.ended.len() as u16;
        if ended > 0 {
            self.panel(&mut area, 2 + ended.min(share.max(1)), |area| {
                panels::draw_ended(self.live, self.style, buffer, area);
            });
        }
        let agents = self.live.agents.len() as u16;
        if agents > 0 {
            self.panel(&mut area, 2 + agents.min(share.max(1)), |area| {
                panels::draw_agents(self.live, self.style, buffer, area);
            });
        }
        match self.live.kind() {
            Some(LiveKind::Operations) => self.operations(buffer, area),
            Some(LiveKind::Datagrams) => self.datagrams(buffer, area),
            Some(LiveKind::Flows) => self.flows(buffer, area),
            Some(LiveKind::Row { .. }) | None => {}
        }
    }

    /// Draws a panel in the last `rows` rows of `area`, if a chart still fits above.
    fn panel(&self, area: &mut Rect, rows: u16, draw: impl FnOnce(Rect)) {
        if area.height < rows + CHART_MIN && area.height != rows {
            return;
        }
        area.height -= rows;
        draw(Rect { y: area.bottom(), height: rows, ..*area });
    }

    fn operations(&self, buffer: &mut Buffer, area: Rect) {
        let [upper, lower] = split(area);
        self.bars(buffer, upper, "completed per second", rate, |m| {
            m.interval.per_s(m.interval.completed)
        });
        self.times(buffer, lower, "response time");
    }

    fn datagrams(&self, buffer: &mut Buffer, area: Rect) {
        self.bars(buffer, area, "sent per second", rate, |m| {
            m.interval.per_s(m.interval.sent.unwrap_or(0))
        });
    }

    fn flows(&self, buffer: &mut Buffer, area: Rect) {
        let [upper, lower] = split(area);
        let down = |m: &LiveInterval| m.interval.per_s(m.interval.down_bytes.unwrap_or(0));
        let up = |m: &LiveInterval| m.interval.per_s(m.interval.up_bytes.unwrap_or(0));
        let [left, right] = match beside(upper) {
            Some(halves) => halves,
            None => split_at(upper, upper.height.div_ceil(2).max(2)),
        };
        self.bars(buffer, left, "down", bit_rate, down);
        self.bars(buffer, right, "up", bit_rate, up);
        self.times(buffer, lower, "ping");
    }

    fn bars(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        name: &str,
        label: fn(f64) -> String,
        value: fn(&LiveInterval) -> f64,
    ) {
        let bars = BarChart { live: self.live, style: self.style, name, value, label };
        if area.height >= 2 {
            bars.draw(buffer, area);
        }
    }

    fn times(&self, buffer: &mut Buffer, area: Rect, name: &str) {
        if area.height < 2 {
            return;
        }
        let chart = TimesChart { live: self.live, style: self.style, name };
        match (beside(area), self.pane) {
            (Some([left, right]), _) => {
                chart.heat_map(buffer, left);
                chart.percentiles(buffer, right);
            }
            (None, LatencyView::HeatMap) => chart.heat_map(buffer, area),
            (None, LatencyView::Percentiles) => chart.percentiles(buffer, area),
        }
    }

    fn explain(&self, buffer: &mut Buffer, area: Rect) {
        let keys = [
            ("q, Ctrl-C", "end early, with a report of what was measured"),
            ("Ctrl-C again", "abort at once, without a report"),
            ("v", "heat map or percentiles, where there is room for one"),
            ("Ctrl-L", "draw the screen anew"),
            ("?", "this help, and back"),
        ];
        let marks = self.style.pick(["░▒▓█", "┄"], [".:+#", "-"]);
        let signs = [
            (marks[0], "the share of an interval's operations: few to most"),
            (marks[1], "the rate asked for"),
        ];
        self.style.heading(buffer, area, "keys and signs", "");
        for (row, (key, what)) in keys.into_iter().chain(signs).enumerate() {
            let line = Line::of(Ink::Strong, format!("{key:<14}")).with(Ink::Plain, what);
            self.style.write(buffer, area, row + 1, &line);
        }
    }
}

/// The progress as a bar and as time.
fn progress(screen: &LiveScreen<'_>, width: usize) -> Line {
    let Some(trial) = &screen.live.trial else {
        return Line::of(Ink::Dim, "starting");
    };
    let (elapsed, total) = match trial.kind {
        LiveKind::Row { before, all, .. } => (before + screen.elapsed, Some(all)),
        _ => (screen.elapsed, trial.total),
    };
    let mut words = match total {
        Some(total) => format!("{} of {}", seconds(elapsed.min(total)), seconds(total)),
        None => seconds(elapsed),
    };
    words.push_str(&state(screen, trial, elapsed, total));
    let words = Line::of(Ink::Plain, words);
    let bar = width.saturating_sub(words.width() + 2);
    let Some(total) = total.filter(|t| *t > Nanos::ZERO && bar >= 8) else {
        return words;
    };
    let share = (elapsed.as_secs_f64() / total.as_secs_f64()).min(1.0);
    let full = (share * bar as f64) as usize;
    let (done, left) = screen.style.pick(("━", "┄"), ("=", "."));
    let mut line = Line::of(Ink::Data, done.repeat(full)).with(Ink::Dim, left.repeat(bar - full));
    line.push(Ink::Plain, "  ");
    line.append(words);
    line
}

fn state(
    screen: &LiveScreen<'_>,
    trial: &LiveTrial,
    elapsed: Nanos,
    total: Option<Nanos>,
) -> String {
    let words = if screen.stopping {
        "ending"
    } else if !screen.live.is_running {
        "ended"
    } else if elapsed < trial.warmup {
        "warming up"
    } else if trial.kind == LiveKind::Operations && total.is_some_and(|t| elapsed > t) {
        "waiting for what is in flight"
    } else {
        return String::new();
    };
    format!(", {words}")
}

fn seconds(t: Nanos) -> String {
    format!("{:.1} s", t.as_secs_f64())
}

/// Two fifths above, the rest below, or all above without room for two.
fn split(area: Rect) -> [Rect; 2] {
    split_at(area, (area.height * 2 / 5).max(CHART_MIN))
}

fn split_at(area: Rect, upper: u16) -> [Rect; 2] {
    let upper = upper.min(area.height);
    let [above, below] = [(area.y, upper), (area.y + upper, area.height - upper)];
    [above, below].map(|(y, height)| Rect { y, height, ..area })
}

/// Two halves side by side, if there is room.
fn beside(area: Rect) -> Option<[Rect; 2]> {
    let half = (area.width - area.width.min(2)) / 2;
    let left = Rect { width: half, ..area };
    let right = Rect { x: area.right() - half, ..left };
    (area.width >= TWO_FROM).then_some([left, right])
}
