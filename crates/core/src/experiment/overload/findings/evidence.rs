//! The numbers that findings about overload rest on.

use super::OverloadDiagnosis;

impl OverloadDiagnosis {
    /// The numbers it rests on, by name; those that are not finite are not known.
    pub(crate) fn evidence(&self) -> Vec<(&'static str, f64)> {
        self.rates_evidence()
            .or_else(|| self.server_evidence())
            .or_else(|| self.counts_evidence())
            .unwrap_or_default()
    }

    fn rates_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            OverloadDiagnosis::SimpleClientsFlatten {
                clients,
                most_per_s,
                capacity_per_s,
                pressed_per_s,
            } => vec![
                ("clients", f64::from(*clients)),
                ("first_syn_per_s", *most_per_s),
                ("capacity_per_s", *capacity_per_s),
                ("offered_per_s", *pressed_per_s),
                ("times_capacity", pressed_per_s / capacity_per_s),
            ],
            OverloadDiagnosis::ThroughputFalls {
                capacity_per_s,
                served_per_s,
                served_ci95_per_s,
                offered_per_s,
            }
            | OverloadDiagnosis::ThroughputFlat {
                capacity_per_s,
                served_per_s,
                served_ci95_per_s,
                offered_per_s,
            } => {
                let [low, high] = served_ci95_per_s.unwrap_or([f64::NAN; 2]);
                vec![
                    ("capacity_per_s", *capacity_per_s),
                    ("served_per_s", *served_per_s),
                    ("served_low_per_s", low),
                    ("served_high_per_s", high),
                    ("offered_per_s", *offered_per_s),
                    ("times_capacity", offered_per_s / capacity_per_s),
                ]
            }
            OverloadDiagnosis::GeneratorLimitsSynRate {
                started_per_s,
                due_per_s,
                busy_percent,
                kept_per_s,
                ..
            } => vec![
                ("started_per_s", *started_per_s),
                ("due_per_s", *due_per_s),
                ("busiest_worker_percent", *busy_percent),
                ("kept_per_s", kept_per_s.unwrap_or(f64::NAN)),
            ],
            OverloadDiagnosis::FactorNotReached {
                offered_per_s,
                capacity_per_s,
                wanted,
            } => vec![
                ("offered_per_s", *offered_per_s),
                ("capacity_per_s", *capacity_per_s),
                ("times_capacity", offered_per_s / capacity_per_s),
                ("times_wanted", *wanted),
            ],
            _ => return None,
        };
        Some(numbers)
    }

    fn server_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            OverloadDiagnosis::Fails {
                count,
                percent,
                served_per_s,
                ..
            } => vec![
                ("count", *count as f64),
                ("percent", *percent),
                ("served_per_s", *served_per_s),
            ],
            OverloadDiagnosis::Unanswered {
                count,
                percent,
                arrived_per_s,
                listen_drops,
                queue,
                ..
            } => vec![
                ("count", *count as f64),
                ("percent", *percent),
                ("first_syn_per_s", *arrived_per_s),
                ("listen_drops", listen_drops.map_or(f64::NAN, |n| n as f64)),
                ("accept_queue_max", queue.map_or(f64::NAN, |q| q.0.into())),
                ("accept_queue_limit", queue.map_or(f64::NAN, |q| q.1.into())),
            ],
            OverloadDiagnosis::Stopped(stop) => vec![
                ("from_ns", stop.from_ns as f64),
                ("served_before", stop.served_before as f64),
                ("count", stop.count as f64),
                ("not_served", stop.unserved as f64),
            ],
            OverloadDiagnosis::LevelsLeftOut { at, of, .. } => {
                vec![("levels_left_out", at.len() as f64), ("levels", *of as f64)]
            }
            OverloadDiagnosis::NeverAnswers {
                attempts,
                established,
                queue,
                ..
            } => vec![
                ("attempts", *attempts as f64),
                ("established", *established as f64),
                ("accept_queue_max", queue.map_or(f64::NAN, |q| q.0.into())),
                ("accept_queue_limit", queue.map_or(f64::NAN, |q| q.1.into())),
            ],
            _ => return None,
        };
        Some(numbers)
    }

    fn counts_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            OverloadDiagnosis::PortsExhausted { count, percent, .. }
            | OverloadDiagnosis::DescriptorsExhausted { count, percent, .. } => {
                vec![("count", *count as f64), ("percent", *percent)]
            }
            OverloadDiagnosis::SynRetransmissions {
                repeated_per_s,
                first_per_s,
                patience_ns,
                ..
            } => vec![
                ("repeated_per_s", *repeated_per_s),
                ("first_syn_per_s", *first_per_s),
                ("connect_timeout_ns", *patience_ns),
            ],
            OverloadDiagnosis::CapturesDisagree {
                captured_per_s,
                started_per_s,
                percent,
                capture_lost,
                ..
            } => vec![
                ("captured_per_s", *captured_per_s),
                ("started_per_s", *started_per_s),
                ("percent", *percent),
                ("capture_lost", *capture_lost as f64),
            ],
            OverloadDiagnosis::SyncookiesActive { sent, .. } => vec![("sent", *sent as f64)],
            _ => return None,
        };
        Some(numbers)
    }
}
