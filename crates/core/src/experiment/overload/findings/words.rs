//! The words, the numbers and the next steps of findings about overload.

use super::OverloadDiagnosis;
use super::diagnose::ends_connections;
use super::remedy::failure;
use crate::experiment::overload::analysis::{Accepts, Stop, Why, end, times};
use crate::spec::{CloseKind, Level};
use crate::words::{exact, levels, number, percent, time};

impl OverloadDiagnosis {
    pub(crate) fn text(&self) -> String {
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
                served_ci95_per_s,
                offered_per_s,
            } => format!(
                "throughput falls under overload: of {}/s offered {}/s are served{}, {} less than \
                 the {}/s that it can serve",
                number(*offered_per_s),
                number(*served_per_s),
                within(*served_ci95_per_s),
                percent(100.0 * (1.0 - served_per_s / capacity_per_s)),
                number(*capacity_per_s)
            ),
            OverloadDiagnosis::ThroughputFlat {
                capacity_per_s,
                served_per_s,
                served_ci95_per_s,
                offered_per_s,
            } => format!(
                "throughput does not suffer from overload: with {}/s offered, {} times the \
                 capacity, {}/s are served{}",
                number(*offered_per_s),
                times(*offered_per_s, *capacity_per_s),
                number(*served_per_s),
                within(*served_ci95_per_s)
            ),
            OverloadDiagnosis::NeverAnswers {
                attempts,
                established,
                accepts,
                queue,
            } => format!(
                "none of {} attempts received a response; {} of the connections were \
                 established: {}",
                exact(*attempts as f64),
                exact(*established as f64),
                never_answers(*accepts, *queue)
            ),
            OverloadDiagnosis::Stopped(stop) => stopped(stop),
            _ => return None,
        };
        Some(text)
    }

    /// Of what becomes of connections.
    fn connections_text(&self) -> Option<String> {
        let text = match self {
            OverloadDiagnosis::Fails {
                how,
                at,
                count,
                percent: p,
                served_per_s,
            } => format!(
                "{} connections with {} ({}{}) {}, while {}/s were served: {}",
                exact(*count as f64),
                one(*at),
                percent(*p),
                match ends_connections(*how) {
                    true => " of those established",
                    false => "",
                },
                end(*how),
                number(*served_per_s),
                failure(*how).0
            ),
            OverloadDiagnosis::Unanswered {
                at,
                count,
                percent: p,
                why,
                arrived_per_s,
                listen_drops,
                queue,
            } => {
                let seen = (*arrived_per_s, listen_drops.unwrap_or(0), *queue);
                let because = why_unanswered(*why, seen);
                format!(
                    "{} connects with {} ({}) received no answer: {because}",
                    exact(*count as f64),
                    one(*at),
                    percent(*p)
                )
            }
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
                is_left_out,
            } => {
                let mut kept = kept_per_s.map_or(String::new(), |kept| {
                    format!("; up to {}/s it kept up", number(kept))
                });
                if *is_left_out {
                    kept += "; the conclusion leaves such levels out";
                }
                format!(
                    "from {} on the generator is the limit: it started {}/s of {}/s, and its \
                     busiest worker used {} of a core{kept}",
                    one(*at),
                    number(*started_per_s),
                    number(*due_per_s),
                    percent(*busy_percent)
                )
            }
            OverloadDiagnosis::LevelsLeftOut { at, of, clauses } => format!(
                "the conclusion leaves out {} of {} levels, {}, as {}",
                at.len(),
                of,
                levels(at),
                clauses.join("; ")
            ),
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
}

fn one(level: Level) -> String {
    levels(&[level])
}
fn within(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or(String::new(), |[low, high]| {
        format!(" (95 %: {} to {})", number(low), number(high))
    })
}

/// Why connects were not answered: with the SYNs per second that arrived, how many the listening
/// sockets dropped, and the accept queue at the most.
fn why_unanswered(
    why: Why,
    (arrived_per_s, drops, queue): (f64, u64, Option<(u32, u32)>),
) -> String {
    let dropped = match drops {
        0 => String::new(),
        n => format!(", and the server's kernel dropped {}", exact(n as f64)),
    };
    let drops = match drops {
        0 => "none".to_owned(),
        n => format!("only {}", exact(n as f64)),
    };
    match (why, queue) {
        (Why::QueueFull, Some((most, limit))) => format!(
            "the accept queue was full ({} of {}){dropped}",
            exact(f64::from(most)),
            exact(f64::from(limit))
        ),
        (Why::QueueFull, None) => {
            format!("the accept queue or the queue of requests was full{dropped}")
        }
        (Why::DroppedThere, _) => format!(
            "the server's listening sockets dropped {drops}: something else drops SYNs or \
             their answers, such as a packet filter"
        ),
        (Why::DroppedBefore, _) => format!(
            "only {}/s SYNs reached the server: they are dropped on the way, such as by a firewall",
            number(arrived_per_s)
        ),
        (Why::Silent, _) => "a firewall drops SYNs, no host has this address, or the accept queue \
                             was full from the begin on; nobody looked at the server"
            .into(),
        (Why::Unknown, _) => {
            "the accept queue was full, or something drops SYNs; nobody looked at \
                              the server"
                .into()
        }
    }
}

fn never_answers(accepts: Accepts, queue: Option<(u32, u32)>) -> String {
    match (accepts, queue) {
        (Accepts::No, Some((most, limit))) => format!(
            "the server does not accept, its accept queue held {} of {} (its kernel establishes \
             them by itself until the queue is full)",
            exact(f64::from(most)),
            exact(f64::from(limit))
        ),
        (Accepts::No, None) => "the server does not accept (its kernel establishes them by itself \
                                until the accept queue is full)"
            .into(),
        (Accepts::Yes, _) => "the server accepts, as its accept queue is nearly empty, and does \
                              not answer"
            .into(),
        (Accepts::Unknown, _) => "the server does not accept, or does not answer what it \
                                  accepted; nobody looked at its accept queue"
            .into(),
    }
}
fn stopped(stop: &Stop) -> String {
    let at = one(stop.at);
    let when = match stop.from_ns {
        0 => format!("from the begin of the level with {at} on"),
        ns => format!("{} into the level with {at}", time(ns as f64)),
    };
    let before = match stop.served_before {
        0 => String::new(),
        n => format!(", {} responses after its begin", exact(n as f64)),
    };
    let again = match stop.again {
        None => "served nothing to the end".to_owned(),
        Some((level, ns)) if level == stop.at => {
            format!(
                "served nothing for {}",
                time(ns.saturating_sub(stop.from_ns) as f64)
            )
        }
        Some((level, _)) => format!("served nothing until the level with {}", one(level)),
    };
    format!(
        "the server stopped {when}{before}: it {again}; {} of the {} attempts that it did not \
         serve in these levels {}",
        exact(stop.count as f64),
        exact(stop.unserved as f64),
        end(stop.how)
    )
}
