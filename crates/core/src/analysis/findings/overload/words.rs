//! The words, the numbers and the next steps of findings about overload.

use super::OverloadDiagnosis;
use crate::analysis::overload::times;
use crate::analysis::words::{exact, levels, number, percent, time};
use crate::spec::{CloseKind, Level};

impl OverloadDiagnosis {
    pub(in super::super) fn text(&self) -> String {
        self.server_text()
            .or_else(|| self.connections_text())
            .or_else(|| self.syns_text())
            .or_else(|| self.generator_text())
            .or_else(|| self.counts_text())
            .unwrap_or_default()
    }

    /// Of what the server serves.
    fn server_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::SimpleClientsFlatten {
                clients,
                most_per_s,
                capacity_per_s,
                pressed_per_s,
            } => format!(
                "clients that wait for each answer cannot overload a server: up to {} of them \
                 never asked for more than {}/s where {}/s are served; started without waiting, \
                 connections were offered at {}/s, {} times as many",
                exact(f64::from(*clients)),
                number(*most_per_s),
                number(*capacity_per_s),
                number(*pressed_per_s),
                times(*pressed_per_s, *capacity_per_s)
            ),
            OverloadDiagnosis::ThroughputFalls {
                capacity_per_s,
                served_per_s,
                served_ci95_per_s: [low, high],
                offered_per_s,
            } => format!(
                "throughput falls under overload: of {}/s offered {}/s are served (95 %: {} to \
                 {}), {} less than the {}/s that it can serve",
                number(*offered_per_s),
                number(*served_per_s),
                number(*low),
                number(*high),
                percent(100.0 * (1.0 - served_per_s / capacity_per_s)),
                number(*capacity_per_s)
            ),
            OverloadDiagnosis::ThroughputFlat {
                capacity_per_s,
                served_per_s,
                served_ci95_per_s,
                offered_per_s,
            } => {
                let range = served_ci95_per_s.map_or(String::new(), |[low, high]| {
                    format!(" (95 %: {} to {})", number(low), number(high))
                });
                format!(
                    "throughput does not suffer from overload: with {}/s offered, {} times the \
                     capacity, {}/s are served{range}",
                    number(*offered_per_s),
                    times(*offered_per_s, *capacity_per_s),
                    number(*served_per_s)
                )
            }
            OverloadDiagnosis::NeverAccepts {
                attempts,
                established,
            } => format!(
                "not one response came to {} attempts; {} of the connections were established, \
                 which the server's kernel does by itself until the accept queue is full: the \
                 server does not accept",
                exact(*attempts as f64),
                exact(*established as f64)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// Of what becomes of connections.
    fn connections_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::Ghosts {
                at,
                count,
                percent: p,
            } => format!(
                "{} connections with {} ({}) were established here and never there: the accept \
                 queue was full when the handshake's last segment came",
                exact(*count as f64),
                one(*at),
                percent(*p)
            ),
            OverloadDiagnosis::RefusesConnections {
                at,
                count,
                percent: p,
            } => format!(
                "the server's host refused {} connections with {} ({}): nothing listens there at \
                 times, a firewall rejects, or tcp_abort_on_overflow is set",
                exact(*count as f64),
                one(*at),
                percent(*p)
            ),
            OverloadDiagnosis::Resets {
                at,
                count,
                percent: p,
                served_per_s,
            } => format!(
                "{} connections with {} ({}) were reset before their response, while {}/s were \
                 served: the server gives up what it has accepted, or tcp_abort_on_overflow is set",
                exact(*count as f64),
                one(*at),
                percent(*p),
                number(*served_per_s)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// Of SYNs.
    fn syns_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::SyncookiesActive { at, sent } => format!(
                "the server's kernel answered {} SYNs with cookies with {}: its queue of requests \
                 was full, and connections made of cookies lack some TCP options",
                exact(*sent as f64),
                one(*at)
            ),
            OverloadDiagnosis::SynRetransmissions {
                at,
                repeated_per_s,
                first_per_s,
                ..
            } => format!(
                "with {} SYNs were sent again at {}/s, beside {}/s first ones: whoever waits for \
                 longer than a second sends again, so that what arrives is not what was started; \
                 the two are counted apart",
                one(*at),
                number(*repeated_per_s),
                number(*first_per_s)
            ),
            OverloadDiagnosis::PatienceTooLong { patience_ns } => format!(
                "T is {}, but an unanswered SYN is sent again after 1 s: the server gets more SYNs \
                 than connections are started",
                time(*patience_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// Of the generator and its host.
    fn generator_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::PortsExhausted {
                at,
                count,
                percent: p,
                close,
            } => format!(
                "{} attempts with {} ({}) found no local port: a connection has one for as long \
                 as it lives{}",
                exact(*count as f64),
                one(*at),
                percent(*p),
                match close {
                    CloseKind::Fin => ", and one that this side closes first for a minute more",
                    CloseKind::Rst => "",
                }
            ),
            OverloadDiagnosis::DescriptorsExhausted {
                at,
                count,
                percent: p,
            } => format!(
                "{} attempts with {} ({}) found no descriptor: this process may not have more \
                 open files",
                exact(*count as f64),
                one(*at),
                percent(*p)
            ),
            OverloadDiagnosis::GeneratorLimitsSynRate {
                at,
                started_per_s,
                due_per_s,
                busy_percent,
                kept_per_s,
            } => {
                let kept = kept_per_s.map_or(String::new(), |kept| {
                    format!("; up to {}/s it kept up", number(kept))
                });
                format!(
                    "from {} on the generator is the limit: it started {}/s of {}/s, and its \
                     busiest worker used {} of a core{kept}",
                    one(*at),
                    number(*started_per_s),
                    number(*due_per_s),
                    percent(*busy_percent)
                )
            }
            _ => return None,
        };
        Some(text)
    }

    /// Of what was counted.
    fn counts_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::CapturesDisagree {
                at,
                captured_per_s,
                started_per_s,
                percent: p,
                capture_lost,
            } => {
                let lost = match capture_lost {
                    0 => String::new(),
                    n => format!("; the capture itself lost {} packets", exact(*n as f64)),
                };
                format!(
                    "with {} the capture at the server counts {}/s first SYNs where {}/s were \
                     started, {} apart: somebody else connects too, SYNs are lost on the way, or \
                     the two windows differ{lost}",
                    one(*at),
                    number(*captured_per_s),
                    number(*started_per_s),
                    percent(*p)
                )
            }
            OverloadDiagnosis::FactorNotReached {
                offered_per_s,
                capacity_per_s,
                wanted,
            } => format!(
                "only {}/s were offered, {} times what is served, in place of {} times: there \
                 were no more descriptors to use",
                number(*offered_per_s),
                times(*offered_per_s, *capacity_per_s),
                exact(*wanted)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// The numbers it rests on, by name; those that are not finite are not known.
    pub(in super::super) fn evidence(&self) -> Vec<(&'static str, f64)> {
        self.rates_evidence()
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
                served_ci95_per_s: [low, high],
                offered_per_s,
            } => vec![
                ("capacity_per_s", *capacity_per_s),
                ("served_per_s", *served_per_s),
                ("served_low_per_s", *low),
                ("served_high_per_s", *high),
                ("offered_per_s", *offered_per_s),
            ],
            OverloadDiagnosis::ThroughputFlat {
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

    fn counts_evidence(&self) -> Option<Vec<(&'static str, f64)>> {
        let numbers = match self {
            OverloadDiagnosis::Ghosts { count, percent, .. }
            | OverloadDiagnosis::PortsExhausted { count, percent, .. }
            | OverloadDiagnosis::DescriptorsExhausted { count, percent, .. }
            | OverloadDiagnosis::RefusesConnections { count, percent, .. }
            | OverloadDiagnosis::Resets { count, percent, .. } => {
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
            OverloadDiagnosis::PatienceTooLong { patience_ns } => {
                vec![("connect_timeout_ns", *patience_ns)]
            }
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
            OverloadDiagnosis::NeverAccepts {
                attempts,
                established,
            } => vec![
                ("attempts", *attempts as f64),
                ("established", *established as f64),
            ],
            OverloadDiagnosis::SyncookiesActive { sent, .. } => vec![("sent", *sent as f64)],
            _ => return None,
        };
        Some(numbers)
    }

    pub(in super::super) fn next_step(&self) -> String {
        match self {
            OverloadDiagnosis::PortsExhausted { close, .. } => ports_remedy(*close),
            OverloadDiagnosis::DescriptorsExhausted { .. } => {
                "raise the limit (ulimit -Hn and -n), or use fewer descriptors with a shorter T: \
                 --descriptors, --connect-timeout"
                    .into()
            }
            OverloadDiagnosis::FactorNotReached { .. } => {
                "raise the limit (ulimit -Hn and -n), or halve T: the same descriptors then offer \
                 twice as much (--connect-timeout)"
                    .into()
            }
            OverloadDiagnosis::GeneratorLimitsSynRate { .. } => {
                "take levels beyond that rate as “at least”; add workers (-t) or a second \
                 host, and see with one process against two which of them is the limit"
                    .into()
            }
            OverloadDiagnosis::CapturesDisagree { .. } => {
                "have the server to yourself, and see with `knee observe --port P` on its host who \
                 else connects"
                    .into()
            }
            OverloadDiagnosis::PatienceTooLong { .. } => {
                "keep T below it: --connect-timeout 500ms".into()
            }
            OverloadDiagnosis::SynRetransmissions {
                at: Level::Descriptors(_) | Level::RatePerS(_),
                ..
            } => "keep T below the first repetition: --connect-timeout 500ms".into(),
            OverloadDiagnosis::NeverAccepts { .. } => {
                "see whether the server is stuck: its accept queue is Recv-Q in `ss -ltn`".into()
            }
            OverloadDiagnosis::RefusesConnections { .. } | OverloadDiagnosis::Resets { .. } => {
                "on the server's host: sysctl net.ipv4.tcp_abort_on_overflow, and `ss -ltn` for \
                 the listening socket"
                    .into()
            }
            OverloadDiagnosis::SyncookiesActive { .. } => {
                "a longer queue on the server's host: sysctl -w net.ipv4.tcp_max_syn_backlog=4096, \
                 net.core.somaxconn=4096, and a larger backlog in listen(2)"
                    .into()
            }
            OverloadDiagnosis::ThroughputFalls { .. } => {
                "let the server shed what it cannot serve in time, or accept no more than it can: \
                 a shorter backlog costs nothing here"
                    .into()
            }
            _ => String::new(),
        }
    }
}

/// What makes local ports last.
pub(crate) fn ports_remedy(close: CloseKind) -> String {
    let rst = match close {
        CloseKind::Fin => ", or no TIME_WAIT: --close rst",
        CloseKind::Rst => "",
    };
    format!(
        "more source addresses: --source 127.0.0.2-127.0.0.20 on loopback, else addresses of this \
         host{rst}; or more ports: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" \
         net.ipv4.tcp_tw_reuse=1"
    )
}

fn one(level: Level) -> String {
    levels(&[level])
}
