//! Why connects are not answered, and whether a silent server accepts: by what was seen at its
//! host.

use super::{OverloadPoint, ServerObservation};
use knee_load::measure::{Outcome, SynSource};

/// The server's kernel dropped this share of the SYNs at least where its queues are the reason.
const DROPPED_SHARE: f64 = 0.5;
/// A server accepts that has a smaller share of its connections in the accept queue.
const ACCEPTING_SHARE: f64 = 0.1;
/// More connections than this multiple of the accept queue are established only if the server
/// accepts.
const QUEUES: u64 = 2;
/// A smaller share of the SYNs arrives where they are lost on their way.
const ARRIVED_SHARE: f64 = 0.5;

/// Why datagrams are not answered within T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnansweredDatagrams {
    /// The receive buffer of the server's socket was full.
    BufferFull,
    /// Their answers came after T.
    AnsweredLate,
    /// No counter says.
    Unknown,
}

/// Why connects are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnansweredCause {
    /// The accept queue, or that of requests, was full.
    QueueFull,
    /// SYNs reach the server's host, and none of its listening sockets dropped them.
    DroppedThere,
    /// SYNs do not reach the server's host.
    DroppedBefore,
    /// Nothing is ever answered, and nobody looked at the server.
    Silent,
    /// Nobody looked at the server.
    Unknown,
}

/// Whether a server that answers no request takes connections out of its accept queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptState {
    /// Connections do not stay in the queue.
    Yes,
    /// Connections stay in the queue until it is full.
    No,
    /// Nobody looked.
    Unknown,
}

impl ServerObservation {
    /// Whether its accept queue was full at some time.
    pub fn is_queue_full(&self) -> bool {
        match (self.accept_queue_max, self.accept_queue_limit) {
            (Some(max), Some(limit)) => max >= limit,
            _ => false,
        }
    }
}

impl OverloadPoint {
    /// Why connects of this trial were not answered; of one in which all were it means nothing.
    pub fn why_unanswered(&self) -> UnansweredCause {
        let timeouts = self.outcomes.count(Outcome::ConnectTimeout) as f64;
        let server = self.server.as_ref();
        let Some((server, drops)) = server.and_then(|s| Some((s, s.queue_drops?))) else {
            return match self.established() {
                0 => UnansweredCause::Silent,
                _ => UnansweredCause::Unknown,
            };
        };
        let uncounted = drops == 0 && server.is_queue_full();
        if drops as f64 >= DROPPED_SHARE * timeouts || uncounted {
            return UnansweredCause::QueueFull;
        }
        let is_captured = self.source == SynSource::Capture;
        if is_captured && self.first_syn_per_s < ARRIVED_SHARE * self.attempts_per_s {
            UnansweredCause::DroppedBefore
        } else {
            UnansweredCause::DroppedThere
        }
    }

    /// Why datagrams of this trial were not answered; of one in which all were it means nothing.
    pub fn why_datagrams_unanswered(&self) -> UnansweredDatagrams {
        let timeouts = self.outcomes.count(Outcome::ResponseTimeout) as f64;
        let drops = self.server.and_then(|s| s.queue_drops).unwrap_or(0);
        if drops as f64 >= DROPPED_SHARE * timeouts {
            UnansweredDatagrams::BufferFull
        } else if (drops + self.closed_port_datagrams) as f64 >= DROPPED_SHARE * timeouts {
            UnansweredDatagrams::AnsweredLate
        } else {
            UnansweredDatagrams::Unknown
        }
    }

    /// Whether a server that answered no request of this trial accepts.
    pub fn accepts(&self) -> AcceptState {
        // An established connection that was never one there found the queue full.
        let ghosts = self.outcomes.count(Outcome::Ghost);
        let established = self.established() - ghosts;
        let server = self.server.as_ref();
        let Some(most) = server.and_then(|s| s.accept_queue_max) else {
            return match ghosts {
                0 => AcceptState::Unknown,
                _ => AcceptState::No,
            };
        };
        let holds = server.and_then(|s| s.accept_queue_limit).unwrap_or(0);
        let holds = u64::from(holds.max(most)) + 1;
        let is_full = server.is_some_and(ServerObservation::is_queue_full);
        let stays = is_full || f64::from(most) >= ACCEPTING_SHARE * established as f64;
        if stays && established <= QUEUES * holds { AcceptState::No } else { AcceptState::Yes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::overload::tests::trials::{SETTING, report};
    use knee_load::measure::Observed;
    use knee_load::spec::Level;

    /// 1,000 connects without an answer, and this number of established ones.
    fn point(established: u64, see: impl FnOnce(&mut Observed)) -> OverloadPoint {
        let ends = [(Outcome::ConnectTimeout, 1_000), (Outcome::ResponseTimeout, established)];
        let mut trial = report(Level::Descriptors(50), &ends);
        see(trial.as_http_mut().observed.as_mut().expect("captured"));
        OverloadPoint::of(&trial, &SETTING).expect("an overload")
    }

    fn unseen(established: u64) -> OverloadPoint {
        point(established, |o| o.elapsed_ns = 0)
    }

    #[test]
    fn unanswered_connects_by_the_evidence() {
        let drops = |n: i64| {
            move |o: &mut Observed| {
                o.kernel.insert("TcpExtListenDrops".to_owned(), n);
            }
        };
        assert_eq!(point(129, drops(500)).why_unanswered(), UnansweredCause::QueueFull);
        assert_eq!(point(129, drops(499)).why_unanswered(), UnansweredCause::DroppedThere);
        let full = |o: &mut Observed| {
            (o.accept_queue_max, o.accept_queue_limit) = (Some(129), Some(128));
        };
        assert_eq!(point(129, full).why_unanswered(), UnansweredCause::QueueFull);
        let both = |o: &mut Observed| {
            full(o);
            drops(10)(o);
        };
        assert_eq!(point(129, both).why_unanswered(), UnansweredCause::DroppedThere);
        let few = |o: &mut Observed| o.first_syns = 499;
        assert_eq!(point(0, few).why_unanswered(), UnansweredCause::DroppedBefore);
        assert_eq!(
            point(0, |o| o.first_syns = 500).why_unanswered(),
            UnansweredCause::DroppedThere
        );
        assert_eq!(unseen(0).why_unanswered(), UnansweredCause::Silent);
        assert_eq!(unseen(1).why_unanswered(), UnansweredCause::Unknown);
    }

    #[test]
    fn a_silent_server_accepts_if_its_queue_is_empty() {
        let queue = |most: u32| {
            move |o: &mut Observed| {
                (o.accept_queue_max, o.accept_queue_limit) = (Some(most), Some(4_096));
            }
        };
        assert_eq!(point(500, queue(49)).accepts(), AcceptState::Yes);
        assert_eq!(point(500, queue(50)).accepts(), AcceptState::No);
        assert_eq!(point(8_194, queue(4_096)).accepts(), AcceptState::No, "full");
        assert_eq!(point(8_195, queue(4_096)).accepts(), AcceptState::Yes, "full, but it moves");
        assert_eq!(unseen(500).accepts(), AcceptState::Unknown);
    }
}
