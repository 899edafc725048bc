//! What to do about each finding, with the very flags to use.

use super::Diagnosis;
use crate::experiment::sweep::findings::AxisKind;
use crate::words::time;

impl Diagnosis {
    /// What to do next, with the very flags to use.
    pub(super) fn next_step(&self) -> String {
        match self {
            Diagnosis::NonStationary { longest_s, .. } => {
                let s = longest_s.max(1.0).ceil();
                format!(
                    "let the target settle and measure longer: --warmup {s}s --duration {}s; if \
                     it still drifts, the target itself changes",
                    4.0 * s
                )
            }
            Diagnosis::LittlesLawViolation { .. } => {
                "repeat it for longer: --duration 60s; until the two agree, trust neither the \
                 throughput nor the response times of this load"
                    .into()
            }
            Diagnosis::GeneratorLimited { workers, .. } => format!(
                "give it more cores: --threads {} where as many are idle, or run it on another \
                 machine than the server; for response times, ask for less: a --rate below this",
                workers + 1
            ),
            Diagnosis::GeneratorDistorted { .. } => {
                "repeat on a quieter or larger machine, or offer less: a lower --rate or --vusers"
                    .into()
            }
            Diagnosis::ThinkDeviation { .. } => {
                "wait more precisely: --wait spin, or use fewer users per core".into()
            }
            Diagnosis::Errors {
                kind: "http_4xx" | "malformed",
                ..
            } => "see what the target answers to such a request: curl -i URL".into(),
            Diagnosis::Errors { kind: "shed", .. } => {
                "offer less with a lower --rate, or permit more in flight: --max-in-flight".into()
            }
            Diagnosis::Errors { .. } | Diagnosis::ErrorsRise { .. } => {
                "read the failures by kind in `outcomes`; find the level where they begin: a \
                 lower --vusers or --rate"
                    .into()
            }
            Diagnosis::TargetQueueGrows { served_per_s, .. } => format!(
                "offer less: --rate {}, or find the highest rate that is served: knee sweep \
                 --axis rate",
                (0.8 * served_per_s).max(1.0).floor()
            ),
            Diagnosis::ServerStalled { .. } => {
                "look at that moment in the server's log (collection of garbage, a checkpoint, a \
                 lock), and repeat to see whether it is periodic: --duration 60s"
                    .into()
            }
            Diagnosis::ConnectionsLimit { .. } | Diagnosis::SurplusBytes { .. } => {
                self.connections_next_step()
            }
            Diagnosis::Udp(of_datagrams) => of_datagrams.next_step(),
            Diagnosis::StoppedEarly { .. } => {
                "make one request work first: knee run URL --vusers 1 -n 1".into()
            }
            Diagnosis::Throttle(of_throttle) => of_throttle.next_step(),
            Diagnosis::Latency(of_flows) => of_flows.next_step(),
            Diagnosis::Overload(of_overload) => of_overload.next_step(),
            Diagnosis::Unreachable { .. } => {
                "start the target, or correct its address, then run it again".into()
            }
            Diagnosis::Interrupted { .. } => "run it again to its end".into(),
            _ => self.further_next_step(),
        }
    }

    fn further_next_step(&self) -> String {
        let of_silence = self.silence_next_step();
        of_silence.unwrap_or_else(|| self.sweep_next_step())
    }

    fn connections_next_step(&self) -> String {
        match self {
            Diagnosis::ConnectionsLimit { .. } => format!(
                "permit more connections: --connections {}, enough if the target takes no longer \
                 for each then; if it does, offer less: a lower --rate",
                (1.2 * self.connections_needed()).ceil()
            ),
            Diagnosis::SurplusBytes { .. } => {
                "see what the target sends after its body: does Content-Length say less than there \
                 is? curl -i URL"
                    .into()
            }
            _ => String::new(),
        }
    }

    fn sweep_next_step(&self) -> String {
        match self {
            Diagnosis::SaturatedBelowRange { axis, range, .. } => axis.lower_levels(range[0]),
            Diagnosis::PastKnee {
                knee, recommended, ..
            } => format!(
                "use fewer users: --vusers {}",
                recommended.map_or(knee.round().max(1.0), f64::from)
            ),
            Diagnosis::NotSaturated {
                last,
                failing: Some(failing),
                ..
            } => format!(
                "find what fails between the two: --vusers 1,{last},{},{failing}",
                (last * failing).sqrt().round()
            ),
            Diagnosis::NotSaturated { axis, last, .. } => axis.higher_levels(*last),
            Diagnosis::KneeNotBracketed { lowest, .. } => AxisKind::Vusers.lower_levels(*lowest),
            Diagnosis::TooFewLevels { axis, .. } => axis.automatic(),
            Diagnosis::Retrograde { axis, peak, .. } => format!(
                "keep the load at or below {}, and look for what {} contend for (locks, memory, \
                 retries)",
                axis.amount(*peak),
                if *axis == AxisKind::Vusers {
                    "more users"
                } else {
                    "higher rates"
                }
            ),
            Diagnosis::KneeMethodsDisagree {
                asymptotes,
                others,
                range,
                ..
            } => {
                let all = || others.iter().map(|o| o.1).chain([*asymptotes]);
                let lo = all().fold(f64::INFINITY, f64::min);
                let hi = all().fold(0.0, f64::max);
                levels_between(range.unwrap_or([lo, hi]))
            }
            Diagnosis::ConfidenceNotReached { .. } => {
                "measure each level for longer: --duration 30s, on a quieter host".into()
            }
            Diagnosis::WarmedUp { .. } => {
                "let the target warm up before it is measured: --warmup 10s".into()
            }
            Diagnosis::BoundUnreachable {
                figure_ns, bound, ..
            } => {
                let figure = bound.split("<=").next().unwrap_or("p90");
                let limit = time(1.5 * figure_ns)
                    .replace([' ', ','], "")
                    .replace('µ', "u");
                format!("ask for what it can meet, such as --bound {figure}={limit}")
            }
            _ => self.target_next_step(),
        }
    }

    fn target_next_step(&self) -> String {
        match self {
            Diagnosis::DriftsBetweenTrials { .. } => {
                "let the target settle before it is measured (--warmup 30s), and look for what \
                 grows in it with time (memory, files, connections)"
                    .into()
            }
            Diagnosis::IdleUsers { .. } => {
                "count the connections that the server accepted, and the requests without a \
                 response"
                    .into()
            }
            _ => String::new(),
        }
    }
}

/// One user, and five levels from `lo` to `hi`.
fn levels_between([lo, hi]: [f64; 2]) -> String {
    let between = (0..=4).map(|i| lo * (hi / lo).powf(f64::from(i) / 4.0));
    let mut steps: Vec<u64> = between.map(|n| n.round().max(1.0) as u64).collect();
    steps.insert(0, 1);
    steps.dedup();
    let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
    format!("measure between them: --vusers {}", steps.join(","))
}

impl AxisKind {
    fn automatic(self) -> String {
        match self {
            AxisKind::Vusers => "let the levels be found: --vusers auto".into(),
            AxisKind::Rate => "let the rates be found: --axis rate (without --rates)".into(),
        }
    }

    /// Two levels to the decade, from the beginning to just below `lowest`.
    fn lower_levels(self, lowest: f64) -> String {
        let first = match self {
            AxisKind::Vusers => 1.0,
            AxisKind::Rate => 10f64.powf((lowest / 100.0).log10().floor()),
        };
        let steps: Vec<String> = (0..12)
            .map(|i| first * [1.0, 3.0][i % 2] * 10f64.powi(i as i32 / 2))
            .take_while(|&level| level < lowest)
            .map(|level| level.to_string())
            .collect();
        let steps = if steps.is_empty() {
            "1".to_owned()
        } else {
            steps.join(",")
        };
        match self {
            AxisKind::Vusers => format!("start at 1: --vusers {steps} (or --vusers auto)"),
            AxisKind::Rate => format!("start lower: --axis rate --rates {steps}"),
        }
    }

    fn higher_levels(self, last: f64) -> String {
        let steps: Vec<String> = [1.0, 2.0, 4.0, 8.0]
            .iter()
            .map(|f| (f * last).round().to_string())
            .collect();
        let steps = steps.join(",");
        match self {
            AxisKind::Vusers => format!("go on: --vusers 1,{steps} (or --vusers auto)"),
            AxisKind::Rate => format!("go on: --axis rate --rates {steps}"),
        }
    }
}
