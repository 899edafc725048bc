//! The whole screen: which part goes where.

use super::charts::Bars;
use super::header::{bit_rate, figures, progress, title};
use super::latency::Latency;
use super::look::Look;
use super::{Live, LiveKind, Moment, agents, log};
use crate::document::line::{Ink, Line};
use crate::number::rate;
use knee_core::time::Nanos;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

/// From so many columns on two charts stand side by side.
const TWO_FROM: u16 = 100;
/// The fewest rows of a chart, its heading included.
const CHART_MIN: u16 = 4;

/// What is shown of response times, where there is room for one chart of them only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// How many took how long.
    #[default]
    HeatMap,
    /// Median, 90th and 99th percentile, maximum.
    Percentiles,
}

impl Pane {
    /// The other one.
    pub fn other(self) -> Pane {
        match self {
            Pane::HeatMap => Pane::Percentiles,
            Pane::Percentiles => Pane::HeatMap,
        }
    }
}

/// One picture of a running experiment. It fits any size; 60 columns and 16 rows show all parts.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// What is known.
    pub live: &'a Live,
    /// What may be used.
    pub look: Look,
    /// Since the running trial began.
    pub elapsed: Nanos,
    /// The user has ended it: it comes to its end.
    pub stopping: bool,
    /// What is shown of response times.
    pub pane: Pane,
    /// Whether the keys are explained instead.
    pub help: bool,
    /// What the last key came to, where that has to be said.
    pub hint: &'a str,
}

impl Widget for Screen<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 4 || area.height == 0 {
            return;
        }
        let width = usize::from(area.width);
        let mut lines = vec![title(self.live, width), progress(&self, width)];
        lines.extend(figures(self.live, width));
        for (row, line) in lines.iter().enumerate() {
            self.look.write(buffer, area, row, line);
        }
        let used = lines.len() as u16;
        let body = Rect {
            y: area.y + used.min(area.height),
            height: area.height.saturating_sub(used + 1),
            ..area
        };
        if area.height > used {
            let last = usize::from(area.height) - 1;
            self.look
                .write(buffer, area, last, &self.footer(area.width));
        }
        match self.help {
            true => self.explain(buffer, body),
            false => self.body(buffer, body),
        }
    }
}

impl Screen<'_> {
    fn footer(&self, width: u16) -> Line {
        if !self.hint.is_empty() {
            return Line::of(Ink::Warn, self.hint);
        }
        if self.stopping {
            return Line::of(Ink::Warn, "ending; Ctrl-C again aborts without a report");
        }
        let mut line = Line::of(Ink::Strong, "q").with(Ink::Dim, " ends early  ");
        let has_times = matches!(
            self.live.kind(),
            Some(LiveKind::Operations | LiveKind::Flows)
        );
        if has_times && width < TWO_FROM {
            line.push(Ink::Strong, "v");
            line.push(Ink::Dim, " heat map or percentiles  ");
        }
        line.with(Ink::Strong, "?").with(Ink::Dim, " help")
    }

    /// What was said and the ended trials at the lower end, charts in the rest.
    fn body(&self, buffer: &mut Buffer, mut area: Rect) {
        let width = usize::from(area.width);
        let share = area.height / 4;
        let said = log::rows(self.live, width, self.look).clamp(1, 12) as u16;
        let said = 1 + said.min(share.max(1));
        self.panel(&mut area, said, |area| {
            log::draw(self.live, self.look, buffer, area);
        });
        let ended = self.live.ended.len() as u16;
        if ended > 0 {
            self.panel(&mut area, 2 + ended.min(share.max(1)), |area| {
                log::table(self.live, self.look, buffer, area);
            });
        }
        let made_by = self.live.agents.len() as u16;
        if made_by > 0 {
            self.panel(&mut area, 2 + made_by.min(share.max(1)), |area| {
                agents::draw(self.live, self.look, buffer, area);
            });
        }
        match self.live.kind() {
            Some(LiveKind::Operations) => self.operations(buffer, area),
            Some(LiveKind::Datagrams) => self.datagrams(buffer, area),
            Some(LiveKind::Flows) => self.flows(buffer, area),
            Some(LiveKind::Row { .. }) | None => {}
        }
    }

    /// Cuts so many rows off the lower end of `area` for a panel, if a chart still fits above.
    fn panel(&self, area: &mut Rect, rows: u16, draw: impl FnOnce(Rect)) {
        if area.height < rows + CHART_MIN && area.height != rows {
            return;
        }
        area.height -= rows;
        draw(Rect {
            y: area.bottom(),
            height: rows,
            ..*area
        });
    }

    fn operations(&self, buffer: &mut Buffer, area: Rect) {
        let [upper, lower] = split(area);
        let asked = self.live.trial.as_ref().and_then(|t| t.asked_per_s);
        self.bars(buffer, upper, "completed per second", rate, asked, |m| {
            m.interval.per_s(m.interval.completed)
        });
        self.times(buffer, lower, "response time");
    }

    fn datagrams(&self, buffer: &mut Buffer, area: Rect) {
        let asked = self.live.trial.as_ref().and_then(|t| t.asked_per_s);
        self.bars(buffer, area, "sent per second", rate, asked, |m| {
            m.interval.per_s(m.interval.sent.unwrap_or(0))
        });
    }

    fn flows(&self, buffer: &mut Buffer, area: Rect) {
        let [upper, lower] = split(area);
        let down = |m: &Moment| m.interval.per_s(m.interval.down_bytes.unwrap_or(0));
        let up = |m: &Moment| m.interval.per_s(m.interval.up_bytes.unwrap_or(0));
        let [left, right] = match beside(upper) {
            Some(halves) => halves,
            None => split_evenly(upper),
        };
        self.bars(buffer, left, "down", bit_rate, None, down);
        self.bars(buffer, right, "up", bit_rate, None, up);
        self.times(buffer, lower, "ping");
    }

    fn bars(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        name: &str,
        label: fn(f64) -> String,
        asked: Option<f64>,
        value: fn(&Moment) -> f64,
    ) {
        if area.height < 2 {
            return;
        }
        let bars = Bars {
            live: self.live,
            look: self.look,
            name,
            value,
            label,
            asked,
        };
        bars.draw(buffer, area);
    }

    fn times(&self, buffer: &mut Buffer, area: Rect, name: &str) {
        if area.height < 2 {
            return;
        }
        let latency = Latency {
            live: self.live,
            look: self.look,
            name,
        };
        match (beside(area), self.pane) {
            (Some([left, right]), _) => {
                latency.heat_map(buffer, left);
                latency.percentiles(buffer, right);
            }
            (None, Pane::HeatMap) => latency.heat_map(buffer, area),
            (None, Pane::Percentiles) => latency.percentiles(buffer, area),
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
        let marks = self.look.pick(["░▒▓█", "┄"], [".:+#", "-"]);
        let signs = [
            (
                marks[0],
                "the share of an interval's operations: few to most",
            ),
            (marks[1], "the rate asked for"),
        ];
        self.look.heading(buffer, area, "keys and signs", "");
        for (row, (key, what)) in keys.into_iter().chain(signs).enumerate() {
            let line = Line::of(Ink::Strong, format!("{key:<14}")).with(Ink::Plain, what);
            self.look.write(buffer, area, row + 1, &line);
        }
    }
}

/// Two fifths above, the rest below, or all above where there is no room for two.
fn split(area: Rect) -> [Rect; 2] {
    split_at(area, (area.height * 2 / 5).max(CHART_MIN))
}

fn split_evenly(area: Rect) -> [Rect; 2] {
    split_at(area, area.height.div_ceil(2).max(2))
}

fn split_at(area: Rect, upper: u16) -> [Rect; 2] {
    let upper = upper.min(area.height);
    [
        Rect {
            height: upper,
            ..area
        },
        Rect {
            y: area.y + upper,
            height: area.height - upper,
            ..area
        },
    ]
}

/// Two halves side by side, where there is room.
fn beside(area: Rect) -> Option<[Rect; 2]> {
    let half = (area.width - area.width.min(2)) / 2;
    let left = Rect {
        width: half,
        ..area
    };
    let right = Rect {
        x: area.right() - half,
        ..left
    };
    (area.width >= TWO_FROM).then_some([left, right])
}
