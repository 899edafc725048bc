//! One line on the progress of a running trial or of a table, or on an ended trial.

use crate::number::{TIE, count, known, number, percent, plural, rate, time_short};
use knee_core::trial::detail::{DatagramReport, FlowsReport};
use knee_load::measure::Interval;
use knee_load::time::Nanos;

/// The bar of a progress line, in columns.
const BAR_WIDTH: usize = 16;

/// The content of a progress line. Formatting it reads no clock and writes nothing.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLine<'a> {
    /// The trial's name, such as `vusers=10`.
    pub label: &'a str,
    /// Time since its begin, warm-up included; of a row, the duration of the rows before it.
    pub elapsed: Nanos,
    /// Its duration, if known; of a row, the estimated duration of all rows.
    pub total: Option<Nanos>,
    /// The interval that ended last; `None` before the first.
    pub interval: Option<&'a Interval>,
    /// Counts over all intervals so far.
    pub so_far: ProgressCounts,
    /// Columns that may be used; the line is never wider.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// The kind of a trial, and its counts so far.
#[derive(Clone, Copy, Debug)]
pub enum ProgressCounts {
    /// Operations.
    Operations {
        /// Failed operations.
        errors: u64,
    },
    /// Datagrams. Losses are known at the end only.
    Datagrams {
        /// Sent datagrams.
        sent: u64,
    },
    /// Flows and the pings beside them.
    Flows {
        /// The longest ping.
        ping_max: Nanos,
    },
    /// A row of a table whose rows are measured one after another, without intervals.
    Row {
        /// Its number, from 1.
        number: usize,
        /// The number of rows.
        of: usize,
    },
}

impl ProgressCounts {
    /// The text before the first interval.
    fn beginning(self) -> Option<&'static str> {
        match self {
            ProgressCounts::Operations { .. } => Some("warming up"),
            ProgressCounts::Datagrams { .. } | ProgressCounts::Flows { .. } => Some("starting"),
            ProgressCounts::Row { .. } => None,
        }
    }

    /// The figures of an interval and the counts so far.
    fn parts(self, interval: &Interval) -> Vec<String> {
        match self {
            ProgressCounts::Row { .. } => Vec::new(),
            ProgressCounts::Operations { errors } => vec![
                rate(interval.per_s(interval.completed)),
                format!("p50 {}", time_short(interval.p50_ns)),
                format!("p99 {}", time_short(interval.p99_ns)),
                plural(errors, "error"),
            ]
            .into_iter()
            .chain(messages(interval))
            .chain(under_way(interval))
            .collect(),
            ProgressCounts::Datagrams { sent } => {
                let per_s = interval.per_s(interval.sent.unwrap_or(0));
                vec![format!("sending {}", rate(per_s)), format!("{} sent", count(sent))]
            }
            ProgressCounts::Flows { ping_max } => flow_parts(interval, ping_max),
        }
    }
}

/// The rate of messages of streams.
fn messages(interval: &Interval) -> Option<String> {
    Some(format!("{} messages", rate(interval.per_s(interval.messages?))))
}

/// The number of operations in flight and the age of the oldest.
fn under_way(interval: &Interval) -> Option<String> {
    let in_flight = format!("{} in flight", count(interval.in_flight?));
    Some(match interval.oldest_ns {
        Some(ns) => format!("{in_flight}, oldest {}", time_short(ns)),
        None => in_flight,
    })
}

impl ProgressLine<'_> {
    /// Formats the line without a newline. If there is too little room, the bar is left out first,
    /// then the end is cut.
    pub fn format(&self) -> String {
        let mut line = self.parts().join("  ").replace(TIE, " ");
        if !self.unicode {
            line = line.replace('µ', "u");
        }
        let total = self.total.filter(|total| *total > Nanos::ZERO);
        if let Some(total) = total.filter(|_| line.chars().count() + 2 + BAR_WIDTH <= self.width) {
            let share = self.elapsed.as_secs_f64() / total.as_secs_f64();
            let full = ((share.min(1.0) * BAR_WIDTH as f64) as usize).min(BAR_WIDTH);
            let (done, left) = if self.unicode { ("━", "┄") } else { ("=", ".") };
            let (done, left) = (done.repeat(full), left.repeat(BAR_WIDTH - full));
            line = format!("{done}{left}  {line}");
        }
        let cut: String = line.chars().take(self.width).collect();
        cut.trim_end().to_string()
    }

    fn parts(&self) -> Vec<String> {
        let elapsed = seconds(self.elapsed);
        let time = match self.total {
            Some(total) => format!("{elapsed} of {}", seconds(total)),
            None => elapsed,
        };
        let mut parts = vec![self.label.to_string(), time];
        if let ProgressCounts::Row { number, of } = self.so_far {
            parts.insert(0, format!("row {number} of {of}"));
        }
        match self.interval {
            Some(interval) => parts.extend(self.so_far.parts(interval)),
            None => parts.extend(self.so_far.beginning().map(str::to_string)),
        }
        parts
    }
}

/// The result of an ended trial of datagrams in one line: what the kernel refused is lost too.
pub fn sent_line(number: &str, label: &str, datagrams: &DatagramReport) -> String {
    let lost = match &datagrams.service_lost {
        Some(why) => why.clone(),
        None => format!("lost {}", percent(datagrams.loss_percent)),
    };
    let (tried, per_s) = if datagrams.send_errors.is_empty() {
        ("sent", datagrams.sent_per_s)
    } else {
        ("tried", datagrams.attempted_per_s())
    };
    let per_s = rate(per_s);
    format!("{number}  {tried:<5}{per_s:>10}  {lost:<12}  {label}").replace(TIE, " ")
}

/// Seconds with one decimal, so that the line does not jump from tick to tick.
fn seconds(t: Nanos) -> String {
    format!("{:.1}{TIE}s", t.as_secs_f64())
}

/// Goodput and pings of an interval, and the longest ping so far.
fn flow_parts(interval: &Interval, ping_max: Nanos) -> Vec<String> {
    let mut parts = Vec::new();
    for (way, bytes) in [("up", interval.up_bytes), ("down", interval.down_bytes)] {
        if let Some(bytes) = bytes.filter(|n| *n > 0) {
            let kib = number(interval.per_s(bytes) / 1024.0);
            parts.push(format!("{way} {kib}{TIE}KiB/s"));
        }
    }
    if interval.p50_ns > 0 {
        parts.push(format!("ping p50 {}", time_short(interval.p50_ns)));
    }
    parts.push(format!("max {}", time_short(ping_max.0)));
    parts
}

/// The result of an ended scenario of flows in one line; of the idle path only its pings.
pub fn scenario_line(which: &str, label: &str, flows: &FlowsReport) -> String {
    let mut parts = vec![format!("{which}  {label}")];
    for (way, direction) in [("up", &flows.up), ("down", &flows.down)] {
        if let Some(direction) = direction {
            let kib = number(direction.capacity_kib_per_s);
            parts.push(format!("{way} {kib:>9} KiB/s"));
        }
    }
    let [p50, max] =
        [flows.tcp.round_trip_ns.p50, Some(flows.latency_ns_max)].map(|ns| known(ns, time_short));
    parts.push(format!("ping p50 {p50}, max {max}"));
    if flows.smoothness_hz.is_some() {
        parts.push(flows.state.clone());
    }
    parts.join("  ").replace(TIE, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::trial::detail::{DirectionReport, ProbeReport};
    use knee_core::trial::figure::TimesReport;
    use std::collections::BTreeMap;

    const INTERVAL: Interval = Interval {
        start_ns: 2_000_000_000,
        end_ns: 2_500_000_000,
        attempted: 4_300,
        completed: 4_286,
        errors: 3,
        p50_ns: 730_000,
        p90_ns: 1_000_000,
        p95_ns: 1_150_000,
        p99_ns: 1_310_000,
        max_ns: 5_000_000,
        pacing_error_ns_mean: None,
        pacing_error_ns_max: None,
        messages: None,
        units: None,
        in_flight: Some(40),
        oldest_ns: Some(2_000_000),
        sent: None,
        received: None,
        dropped: None,
        up_bytes: None,
        down_bytes: None,
        failed: BTreeMap::new(),
        steps: Vec::new(),
        sessions: Vec::new(),
        agents: Vec::new(),
    };

    const LINE: ProgressLine = ProgressLine {
        label: "vusers=8",
        elapsed: Nanos::from_millis(3_000),
        total: Some(Nanos::from_secs(10)),
        interval: Some(&INTERVAL),
        so_far: ProgressCounts::Operations { errors: 12 },
        width: 120,
        unicode: true,
    };

    #[test]
    fn it_tells_elapsed_time_rate_percentiles_and_errors() {
        for (line, expected) in [
            (
                LINE,
                "━━━━┄┄┄┄┄┄┄┄┄┄┄┄  vusers=8  3.0 s of 10.0 s  \
                 8,572/s  p50 730 µs  \
                 p99 1.31 ms  12 errors  40 in flight, oldest 2 ms",
            ),
            (
                ProgressLine { width: 60, unicode: false, ..LINE },
                "vusers=8  3.0 s of 10.0 s  8,572/s  p50 730 us  p99 1.31 ms",
            ),
            (ProgressLine { total: None, interval: None, ..LINE }, "vusers=8  3.0 s  warming up"),
            (
                ProgressLine { elapsed: Nanos::from_secs(11), unicode: false, ..LINE },
                "================  vusers=8  11.0 s of 10.0 s  8,572/s  p50 730 us  \
                 p99 1.31 ms  12 errors  40 in flight, oldest 2 ms",
            ),
        ] {
            assert_eq!(line.format(), expected);
        }
    }

    #[test]
    fn datagrams_are_counted_as_they_are_sent() {
        let interval = Interval { sent: Some(5_000), ..INTERVAL };
        let line = ProgressLine {
            label: "3 of 9  yield*64",
            elapsed: Nanos::from_millis(2_500),
            total: Some(Nanos::from_secs(10)),
            interval: Some(&interval),
            so_far: ProgressCounts::Datagrams { sent: 25_000 },
            width: 100,
            unicode: true,
        };
        assert_eq!(
            line.format(),
            "━━━━┄┄┄┄┄┄┄┄┄┄┄┄  3 of 9  yield*64  2.5 s of 10.0 s  sending 10,000/s  25,000 sent"
        );
        let datagrams = DatagramReport {
            sent_per_s: 10_000.0,
            loss_percent: 1.25,
            ..DatagramReport::default()
        };
        assert_eq!(
            sent_line("3 of 9", "yield*64", &datagrams),
            "3 of 9  sent   10,000/s  lost 1.25 %   yield*64"
        );
        let refused = DatagramReport {
            sent_per_s: 1_420.0,
            received_per_s: 1_420.0,
            dropped_per_s: 2_580.0,
            loss_percent: 64.5,
            send_errors: [("ENOBUFS".to_owned(), 2_580)].into(),
            ..DatagramReport::default()
        };
        assert_eq!(
            sent_line("1 of 1", "constant@4000/s", &refused),
            "1 of 1  tried   4,000/s  lost 64.5 %   constant@4000/s"
        );
    }

    const ROW: ProgressLine = ProgressLine {
        label: "hybrid 50 µs",
        elapsed: Nanos::from_millis(2_000),
        total: Some(Nanos::from_secs(65)),
        interval: None,
        so_far: ProgressCounts::Row { number: 5, of: 130 },
        width: 100,
        unicode: true,
    };

    #[test]
    fn rows_are_counted() {
        assert_eq!(ROW.format(), "┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  row 5 of 130  hybrid 50 µs  2.0 s of 65.0 s");
        let narrow = ProgressLine { width: 30, unicode: false, ..ROW };
        assert_eq!(narrow.format(), "row 5 of 130  hybrid 50 us  2.");
    }

    #[test]
    fn it_is_never_wider_than_asked() {
        for width in 0..120 {
            let text = ProgressLine { width, ..LINE }.format();
            assert!(text.chars().count() <= width, "{width}: {text}");
        }
    }

    #[test]
    fn flows_tell_what_they_carry_and_the_pings_beside_them() {
        let interval = Interval {
            end_ns: 500_000_000,
            p50_ns: 730_000,
            up_bytes: Some(512_000),
            down_bytes: Some(0),
            ..Interval::default()
        };
        let line = ProgressLine {
            label: "2 of 20  1 up",
            elapsed: Nanos::from_millis(2_500),
            total: None,
            interval: Some(&interval),
            so_far: ProgressCounts::Flows { ping_max: Nanos::from_millis(31) },
            width: 100,
            unicode: true,
        };
        assert_eq!(
            line.format(),
            "2 of 20  1 up  2.5 s  up 1,000 KiB/s  ping p50 730 µs  max 31 ms"
        );
        let flows = FlowsReport {
            down: Some(DirectionReport {
                capacity_kib_per_s: 85_859.0,
                ..DirectionReport::default()
            }),
            smoothness_hz: Some(2.9),
            latency_ns_max: 31_000_000,
            state: "settled".into(),
            tcp: ProbeReport {
                round_trip_ns: TimesReport { p50: Some(730_000), ..TimesReport::default() },
                ..ProbeReport::default()
            },
            ..FlowsReport::default()
        };
        assert_eq!(
            scenario_line(" 2 of 20", "1 down        ", &flows),
            " 2 of 20  1 down          down    85,860 KiB/s  ping p50 730 µs, max 31 ms  settled"
        );
    }
}
