//! One line that tells how a running trial fares.

mod flows;

pub use flows::scenario_line;

use crate::number::{TIE, count, percent, plural, rate, time_short};
use knee_core::measure::Interval;
use knee_core::time::Nanos;
use knee_core::trial::datagrams::DatagramReport;

/// The bar of a progress line, in columns.
const BAR_WIDTH: usize = 16;

/// All that a progress line tells; formatting it reads no clock and writes nothing.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLine<'a> {
    /// The trial's name, such as `vusers=10`.
    pub label: &'a str,
    /// Since its beginning, warm-up included.
    pub elapsed: Nanos,
    /// How long it takes in all, where known.
    pub total: Option<Nanos>,
    /// The interval that ended last; `None` before the first.
    pub interval: Option<&'a Interval>,
    /// What is counted over all intervals so far.
    pub so_far: SoFar,
    /// Columns that may be used; the line is never wider.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// What a trial is of, and what is told of it beside the last interval.
#[derive(Clone, Copy, Debug)]
pub enum SoFar {
    /// Operations.
    Operations {
        /// Those that failed.
        errors: u64,
    },
    /// Datagrams while they are sent: what became of them is known at the end.
    Datagrams {
        /// Those that were sent.
        sent: u64,
    },
    /// Flows and the pings beside them.
    Flows {
        /// The longest ping.
        ping_max: Nanos,
    },
}

impl SoFar {
    /// What is told before the first interval.
    fn beginning(self) -> &'static str {
        match self {
            SoFar::Operations { .. } => "warming up",
            SoFar::Datagrams { .. } | SoFar::Flows { .. } => "starting",
        }
    }

    /// What is told of an interval and of what was before it.
    fn parts(self, interval: &Interval) -> Vec<String> {
        match self {
            SoFar::Operations { errors } => vec![
                rate(interval.per_s(interval.completed)),
                format!("p50 {}", time_short(interval.p50_ns)),
                format!("p99 {}", time_short(interval.p99_ns)),
                plural(errors, "error"),
            ]
            .into_iter()
            .chain(under_way(interval))
            .collect(),
            SoFar::Datagrams { sent } => {
                let per_s = interval.per_s(interval.sent.unwrap_or(0));
                vec![
                    format!("sending {}", rate(per_s)),
                    format!("{} sent", count(sent)),
                ]
            }
            SoFar::Flows { ping_max } => flows::parts(interval, ping_max),
        }
    }
}

/// How many operations are under way, and how long the oldest has been.
fn under_way(interval: &Interval) -> Option<String> {
    let in_flight = format!("{} in flight", count(interval.in_flight?));
    Some(match interval.oldest_ns {
        Some(ns) => format!("{in_flight}, oldest {}", time_short(ns)),
        None => in_flight,
    })
}

impl ProgressLine<'_> {
    /// The line, without a newline. Where it is too narrow the bar goes first, then what stands
    /// last.
    pub fn format(&self) -> String {
        let elapsed = seconds(self.elapsed);
        let time = match self.total {
            Some(total) => format!("{elapsed} of {}", seconds(total)),
            None => elapsed,
        };
        let mut parts = vec![self.label.to_string(), time];
        match self.interval {
            Some(interval) => parts.extend(self.so_far.parts(interval)),
            None => parts.push(self.so_far.beginning().to_string()),
        }
        let canvas = Canvas {
            width: self.width,
            unicode: self.unicode,
        };
        canvas.line(&parts, self.elapsed, self.total)
    }
}

/// What an ended trial of datagrams showed, in one line.
pub fn sent_line(number: &str, label: &str, datagrams: &DatagramReport) -> String {
    let lost = match &datagrams.service_lost {
        Some(why) => why.clone(),
        None => format!("lost {}", percent(datagrams.loss_percent)),
    };
    let sent = rate(datagrams.sent_per_s);
    format!("{number}  sent {sent:>10}  {lost:<12}  {label}").replace(TIE, " ")
}

/// All that is told while the rows of a table are measured one after another.
#[derive(Clone, Copy, Debug)]
pub struct RowLine<'a> {
    /// The row that is measured, from 1 on.
    pub number: usize,
    /// How many there are.
    pub of: usize,
    /// Its name, such as `hybrid 1 ms`.
    pub label: &'a str,
    /// The time that the rows before it took.
    pub elapsed: Nanos,
    /// The time that all take, roughly.
    pub total: Nanos,
    /// Columns that may be used; the line is never wider.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

impl RowLine<'_> {
    /// The line, without a newline. Where it is too narrow the bar goes first, then what stands
    /// last.
    pub fn format(&self) -> String {
        let parts = [
            format!("row {} of {}", self.number, self.of),
            self.label.to_string(),
            format!("{} of {}", seconds(self.elapsed), seconds(self.total)),
        ];
        let canvas = Canvas {
            width: self.width,
            unicode: self.unicode,
        };
        canvas.line(&parts, self.elapsed, Some(self.total))
    }
}

/// What a line may use.
struct Canvas {
    width: usize,
    unicode: bool,
}

impl Canvas {
    /// The parts behind a bar, where there is room for one.
    fn line(&self, parts: &[String], elapsed: Nanos, total: Option<Nanos>) -> String {
        let mut line = parts.join("  ").replace(TIE, " ");
        if !self.unicode {
            line = line.replace('µ', "u");
        }
        let bar = self.bar(elapsed, total);
        if !bar.is_empty() && line.chars().count() + 2 + bar.chars().count() <= self.width {
            line = format!("{bar}  {line}");
        }
        let cut: String = line.chars().take(self.width).collect();
        cut.trim_end().to_string()
    }

    fn bar(&self, elapsed: Nanos, total: Option<Nanos>) -> String {
        let Some(total) = total.filter(|t| *t > Nanos::ZERO) else {
            return String::new();
        };
        let share = elapsed.as_secs_f64() / total.as_secs_f64();
        let full = ((share.min(1.0) * BAR_WIDTH as f64) as usize).min(BAR_WIDTH);
        let (done, left) = if self.unicode {
            ("━", "┄")
        } else {
            ("=", ".")
        };
        format!("{}{}", done.repeat(full), left.repeat(BAR_WIDTH - full))
    }
}

/// Seconds with one decimal, so that the line does not jump from tick to tick.
fn seconds(t: Nanos) -> String {
    format!("{:.1}{TIE}s", t.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        in_flight: Some(40),
        oldest_ns: Some(2_000_000),
        sent: None,
        received: None,
        dropped: None,
        up_bytes: None,
        down_bytes: None,
        steps: Vec::new(),
        sessions: Vec::new(),
        agents: Vec::new(),
    };

    const LINE: ProgressLine = ProgressLine {
        label: "vusers=8",
        elapsed: Nanos::from_millis(3_000),
        total: Some(Nanos::from_secs(10)),
        interval: Some(&INTERVAL),
        so_far: SoFar::Operations { errors: 12 },
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
                ProgressLine {
                    width: 60,
                    unicode: false,
                    ..LINE
                },
                "vusers=8  3.0 s of 10.0 s  8,572/s  p50 730 us  p99 1.31 ms",
            ),
            (
                ProgressLine {
                    total: None,
                    interval: None,
                    ..LINE
                },
                "vusers=8  3.0 s  warming up",
            ),
            (
                ProgressLine {
                    elapsed: Nanos::from_secs(11),
                    unicode: false,
                    ..LINE
                },
                "================  vusers=8  11.0 s of 10.0 s  8,572/s  p50 730 us  \
                 p99 1.31 ms  12 errors  40 in flight, oldest 2 ms",
            ),
        ] {
            assert_eq!(line.format(), expected);
        }
    }

    #[test]
    fn datagrams_are_counted_as_they_are_sent() {
        let interval = Interval {
            sent: Some(5_000),
            ..INTERVAL
        };
        let line = ProgressLine {
            label: "3 of 9  yield*64",
            elapsed: Nanos::from_millis(2_500),
            total: Some(Nanos::from_secs(10)),
            interval: Some(&interval),
            so_far: SoFar::Datagrams { sent: 25_000 },
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
    }

    const ROW: RowLine = RowLine {
        number: 5,
        of: 130,
        label: "hybrid 50 µs",
        elapsed: Nanos::from_millis(2_000),
        total: Nanos::from_secs(65),
        width: 100,
        unicode: true,
    };

    #[test]
    fn rows_are_counted() {
        assert_eq!(
            ROW.format(),
            "┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄  row 5 of 130  hybrid 50 µs  2.0 s of 65.0 s"
        );
        let narrow = RowLine {
            width: 30,
            unicode: false,
            ..ROW
        };
        assert_eq!(narrow.format(), "row 5 of 130  hybrid 50 us  2.");
    }

    #[test]
    fn it_is_never_wider_than_asked() {
        for width in 0..120 {
            let text = ProgressLine { width, ..LINE }.format();
            assert!(text.chars().count() <= width, "{width}: {text}");
        }
    }
}
