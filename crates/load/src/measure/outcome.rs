//! How operations end.

use super::FailedStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How an operation ended. Every operation ends in exactly one of these. All but
/// [`Outcome::Failed`] are common to all protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A whole response whose status is no failure.
    Ok,
    /// A whole response whose status is a failure in the terms of its protocol.
    Failed(FailedStatus),
    /// No whole response within the timeout.
    Timeout,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The peer closed before a byte of the response came.
    Closed,
    /// The peer closed in the middle of the response. Over TLS, only `close_notify` ends a response
    /// without a length.
    Truncated,
    /// What came broke the rules of HTTP, or more came than was asked for.
    Malformed,
    /// Host or network unreachable.
    Unreachable,
    /// This host ran out of ports, descriptors or memory.
    NoResources,
    /// Another error of the operating system.
    OtherError,
    /// Never started: more in flight than `--max-in-flight` permits.
    Shed,
    /// Still in flight when the trial ended: a censored observation.
    InFlight,
    /// A datagram that was sent but not received.
    Lost,
    /// A datagram that the kernel refused to send.
    SendError,
    /// A datagram that the sender never came to.
    NotAttempted,
    /// A datagram that reached the service but was not counted.
    Discarded,
    /// A connection of its own that was established in time and brought a whole response; over
    /// datagrams, an answer in time.
    Served,
    /// Established here, but never taken in there: not a byte sent over it was acknowledged.
    Ghost,
    /// Established and its request acknowledged, but no whole response in time; over datagrams, no
    /// answer in time.
    ResponseTimeout,
    /// No local port left for it (EADDRNOTAVAIL).
    PortExhausted,
    /// No descriptor left for it (EMFILE, ENFILE).
    DescriptorExhausted,
    /// Established only after the time limit.
    Late,
    /// Connected, but not secured within the connect timeout.
    HandshakeTimeout,
    /// Connected, but the TLS handshake failed.
    HandshakeFailed,
    /// The target refused its stream: it was not processed (RFC 9113 §8.7).
    RefusedStream,
    /// The target gave its stream up.
    StreamReset,
    /// The target closed the connection in order and did not process it, twice in a row.
    Unprocessed,
    /// A whole response that was not what the step of the session expected.
    Unexpected,
    /// The program of its step gave no value that could be used: it was never sent.
    ProgramFailed,
    /// A place in its request cannot have the value for it: it was never sent.
    UnfitValue,
    /// No message of its stream within the message timeout.
    MessageTimeout,
    /// Its stream ended without its end message or in the middle of a message, or was none.
    Incomplete,
}

/// Declares the outcomes that all protocols share: the variant, its name in reports and its meaning
/// for people, in the order of the variants. Failed statuses of protocols stand after the first.
macro_rules! outcomes {
    ($($outcome:ident $name:literal $meaning:literal;)*) => {
        const SHARED: &[(Outcome, &str, &str)] = &[$((Outcome::$outcome, $name, $meaning),)*];

        const ROWS: [(Outcome, &str, &str); FAILED + SHARED.len()] = {
            let mut rows = [SHARED[0]; FAILED + SHARED.len()];
            let mut at = 0;
            while at < FAILED {
                let (status, name, meaning) = FailedStatus::ROWS[at];
                rows[1 + at] = (Outcome::Failed(status), name, meaning);
                at += 1;
            }
            at = 1;
            while at < SHARED.len() {
                rows[FAILED + at] = SHARED[at];
                at += 1;
            }
            rows
        };

        impl Outcome {
            /// Place in the table.
            #[inline]
            const fn row(self) -> usize {
                if let Outcome::Failed(status) = self {
                    return 1 + status as usize;
                }
                let mut row = 0;
                $(
                    if matches!(self, Outcome::$outcome) {
                        return if row == 0 { 0 } else { FAILED + row };
                    }
                    row += 1;
                )*
                row
            }
        }
    };
}

/// Number of failed statuses.
const FAILED: usize = FailedStatus::ROWS.len();

outcomes! {
    Ok "ok" "a whole response, status below 400";
    Timeout "timeout" "no whole response in time";
    ConnectTimeout "connect_timeout" "no connection in time";
    Refused "refused" "connection refused";
    Reset "reset" "connection reset";
    Closed "closed" "closed before a byte of the response";
    Truncated "truncated" "closed within the response";
    Malformed "malformed" "not HTTP, or more than asked for";
    Unreachable "unreachable" "host or network unreachable";
    NoResources "no_resources" "no port, descriptor or memory left here";
    OtherError "other_error" "another error of the system";
    Shed "shed" "not started: too many in flight";
    InFlight "in_flight" "not ended when time was up";
    Lost "lost" "sent, but not received";
    SendError "send_error" "refused by the kernel here";
    NotAttempted "not_attempted" "the sender never came to it";
    Discarded "discarded" "received, but not counted";
    Served "served" "of an overload: a whole response in time";
    Ghost "ghost" "connected here, never taken in there";
    ResponseTimeout "response_timeout" "request sent, no whole response in time";
    PortExhausted "port_exhausted" "no local port left";
    DescriptorExhausted "descriptor_exhausted" "no descriptor left";
    Late "late" "connected after its time limit";
    HandshakeTimeout "handshake_timeout" "connected, not secured in time";
    HandshakeFailed "handshake_failed" "the TLS handshake failed";
    RefusedStream "refused_stream" "its stream refused, not processed";
    StreamReset "stream_reset" "its stream reset by the target";
    Unprocessed "unprocessed" "connection closed, not processed";
    Unexpected "unexpected" "not what the step expected";
    ProgramFailed "program_failed" "not sent: no value from its program";
    UnfitValue "unfit_value" "not sent: a value does not fit its place";
    MessageTimeout "message_timeout" "no further message in time";
    Incomplete "incomplete" "the stream ended before its end";
}

impl Outcome {
    /// A whole response of HTTP with a status of 400 to 499.
    pub const HTTP_4XX: Outcome = Outcome::Failed(FailedStatus::Http4xx);

    /// A whole response of HTTP with a status of 500 or more.
    pub const HTTP_5XX: Outcome = Outcome::Failed(FailedStatus::Http5xx);

    /// All outcomes, in the order of the variants.
    pub const ALL: [Outcome; ROWS.len()] = {
        let mut all = [Outcome::Ok; ROWS.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = ROWS[at].0;
            at += 1;
        }
        all
    };

    /// Its stable name in reports.
    pub fn name(self) -> &'static str {
        ROWS[self.row()].1
    }

    /// Its meaning for people.
    pub fn meaning(self) -> &'static str {
        ROWS[self.row()].2
    }

    /// Whether a whole response came, whatever its status.
    #[inline]
    pub fn is_response(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Failed(_) | Outcome::Served | Outcome::Unexpected)
    }

    /// Whether a whole response came with a status below 400.
    #[inline]
    pub fn is_good(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Served)
    }

    /// Whether the time of such an operation is only a lower bound: it timed out or was cut off
    /// while it waited.
    #[inline]
    pub fn is_censored(self) -> bool {
        matches!(
            self,
            Outcome::Timeout
                | Outcome::ConnectTimeout
                | Outcome::ResponseTimeout
                | Outcome::InFlight
                | Outcome::Ghost
                | Outcome::Late
                | Outcome::HandshakeTimeout
                | Outcome::MessageTimeout
        )
    }
}

/// Its name.
impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Outcome, D::Error> {
        let name = String::deserialize(d)?;
        let row = ROWS.iter().find(|(_, of, _)| *of == name);
        row.map(|(outcome, ..)| *outcome)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown outcome {name:?}")))
    }
}

/// Numbers of operations by outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    counts: [u64; Outcome::ALL.len()],
}

impl Default for Outcomes {
    fn default() -> Outcomes {
        Outcomes { counts: [0; Outcome::ALL.len()] }
    }
}

impl Outcomes {
    /// Counts one operation.
    #[inline]
    pub fn add(&mut self, outcome: Outcome) {
        self.counts[outcome.row()] += 1;
    }

    /// Counts `count` operations.
    #[inline]
    pub fn add_many(&mut self, outcome: Outcome, count: u64) {
        self.counts[outcome.row()] += count;
    }

    /// Number of operations that ended in `outcome`.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.counts[outcome.row()]
    }

    /// Number of all operations.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of operations that ended in a whole response, whatever its status.
    pub fn responses(&self) -> u64 {
        Outcome::ALL.iter().filter(|o| o.is_response()).map(|&o| self.count(o)).sum()
    }

    /// The share of the whole responses that are no failure, 0 to 1; 0 where none came.
    pub fn good_share(&self) -> f64 {
        let good = self.count(Outcome::Ok) + self.count(Outcome::Served);
        good as f64 / self.responses().max(1) as f64
    }

    /// Number of operations that found no port, descriptor or memory on the generator's host.
    pub fn no_resources(&self) -> u64 {
        self.count(Outcome::NoResources)
            + self.count(Outcome::PortExhausted)
            + self.count(Outcome::DescriptorExhausted)
    }

    /// Number of operations that were neither successful nor cut off by the end of the trial.
    pub fn errors(&self) -> u64 {
        let fine = [Outcome::Ok, Outcome::Served, Outcome::InFlight];
        self.total() - fine.map(|o| self.count(o)).iter().sum::<u64>()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Outcomes) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    /// The outcomes that occurred with their counts, in the order of [`Outcome::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        Outcome::ALL.iter().map(|&o| (o, self.count(o))).filter(|&(o, n)| n > 0 || o == Outcome::Ok)
    }
}

/// A map from name to count, `ok` always among them.
impl Serialize for Outcomes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter().map(|(o, n)| (o.name(), n)))
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Outcomes, D::Error> {
        let mut outcomes = Outcomes::default();
        for (outcome, n) in BTreeMap::<Outcome, u64>::deserialize(d)? {
            outcomes.counts[outcome.row()] = n;
        }
        Ok(outcomes)
    }
}

/// Share of the operations that failed, of those that ended before the trial did; 0 where none.
pub fn error_share(outcomes: &Outcomes) -> f64 {
    let ended = outcomes.total() - outcomes.count(Outcome::InFlight);
    outcomes.errors() as f64 / ended.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_their_places_and_names() {
        for (place, (outcome, name, _)) in ROWS.iter().enumerate() {
            assert_eq!(outcome.row(), place);
            let value = serde_json::to_value(outcome).unwrap();
            assert_eq!(value, *name);
            assert_eq!(serde_json::from_value::<Outcome>(value).unwrap(), *outcome);
        }
    }
}
