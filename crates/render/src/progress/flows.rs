//! The line of a scenario of flows.

use crate::number::{TIE, known, number, time_short};
use knee_core::measure::Interval;
use knee_core::time::Nanos;
use knee_core::trial::flows::FlowsReport;

/// What is told of an interval of flows and of the longest ping so far.
pub(super) fn parts(interval: &Interval, ping_max: Nanos) -> Vec<String> {
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

/// What an ended scenario of flows showed, in one line; of the idle path its pings alone.
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
    use crate::progress::{ProgressLine, SoFar};
    use knee_core::trial::flows::{DirectionReport, ProbeReport};
    use knee_core::trial::report::TimesReport;

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
            so_far: SoFar::Flows {
                ping_max: Nanos::from_millis(31),
            },
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
                round_trip_ns: TimesReport {
                    p50: Some(730_000),
                    ..TimesReport::default()
                },
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
