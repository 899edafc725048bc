//! How operations end.

use super::FailedStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Declares the outcomes: the variant, its name in reports and its meaning for people. Failed
/// statuses of protocols stand after the first.
macro_rules! outcomes {
    (
        $(#[$first_doc:meta])* $first:ident $first_name:literal $first_meaning:literal;
        $($(#[$doc:meta])* $outcome:ident $name:literal $meaning:literal;)*
    ) => {
        /// How an operation ended. Every operation ends in exactly one of these. All but
        /// [`Outcome::Failed`] are common to all protocols.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Outcome {
            $(#[$first_doc])*
            $first,
            /// A whole response whose status is a failure in the terms of its protocol.
            Failed(FailedStatus),
            $($(#[$doc])* $outcome,)*
        }

        const SHARED: &[(Outcome, &str, &str)] = &[
            (Outcome::$first, $first_name, $first_meaning),
            $((Outcome::$outcome, $name, $meaning),)*
        ];

        impl Outcome {
            /// Place in the table.
            #[inline]
            const fn row(self) -> usize {
                match self {
                    Outcome::$first => return 0,
                    Outcome::Failed(status) => return 1 + status as usize,
                    _ => {}
                }
                let mut row = 1 + FAILED;
                $(
                    if matches!(self, Outcome::$outcome) {
                        return row;
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
    /// A whole response whose status is no failure.
    Ok "ok" "a whole response, status below 400";
    /// No whole response within the timeout.
    Timeout "timeout" "no whole response in time";
    /// No connection within the connect timeout.
    ConnectTimeout "connect_timeout" "no connection in time";
    /// The connection was refused.
    Refused "refused" "connection refused";
    /// The connection was reset.
    Reset "reset" "connection reset";
    /// The peer closed before a byte of the response came.
    Closed "closed" "closed before a byte of the response";
    /// The peer closed in the middle of the response. Over TLS, only `close_notify` ends a response
    /// without a length.
    Truncated "truncated" "closed within the response";
    /// What came broke the rules of HTTP, or more came than was asked for.
    Malformed "malformed" "not HTTP, or more than asked for";
    /// Host or network unreachable.
    Unreachable "unreachable" "host or network unreachable";
    /// This host ran out of ports, descriptors or memory.
    NoResources "no_resources" "no port, descriptor or memory left here";
    /// Another error of the operating system.
    OtherError "other_error" "another error of the system";
    /// Never started: more in flight than `--max-in-flight` permits.
    Shed "shed" "not started: too many in flight";
    /// Still in flight when the trial ended: a censored observation.
    InFlight "in_flight" "not ended when time was up";
    /// A datagram that was sent but not received.
    Lost "lost" "sent, but not received";
    /// A datagram that the kernel refused to send.
    SendError "send_error" "refused by the kernel here";
    /// A datagram that the sender never came to.
    NotAttempted "not_attempted" "the sender never came to it";
    /// A datagram that reached the service but was not counted.
    Discarded "discarded" "received, but not counted";
    /// A connection of its own that was established in time and brought a whole response; over
    /// datagrams, an answer in time.
    Served "served" "of an overload: a whole response in time";
    /// Established here, but never taken in there: not a byte sent over it was acknowledged.
    Ghost "ghost" "connected here, never taken in there";
    /// Established and its request acknowledged, but no whole response in time; over datagrams, no
    /// answer in time.
    ResponseTimeout "response_timeout" "request sent, no whole response in time";
    /// No local port left for it (EADDRNOTAVAIL).
    PortExhausted "port_exhausted" "no local port left";
    /// No descriptor left for it (EMFILE, ENFILE).
    DescriptorExhausted "descriptor_exhausted" "no descriptor left";
    /// Established only after the time limit.
    Late "late" "connected after its time limit";
    /// Connected, but not secured within the connect timeout.
    HandshakeTimeout "handshake_timeout" "connected, not secured in time";
    /// Connected, but the TLS handshake failed.
    HandshakeFailed "handshake_failed" "the TLS handshake failed";
    /// The target refused its stream: it was not processed (RFC 9113 §8.7).
    RefusedStream "refused_stream" "its stream refused, not processed";
    /// The target gave its stream up.
    StreamReset "stream_reset" "its stream reset by the target";
    /// The target closed the connection in order and did not process it, twice in a row.
    Unprocessed "unprocessed" "connection closed, not processed";
    /// A whole response that was not what the step of the session expected.
    Unexpected "unexpected" "failed a check of its step";
    /// A whole response that redirects once more than is permitted.
    TooManyRedirections "too_many_redirections" "redirected more often than permitted";
    /// The program of its step gave no value that could be used: it was never sent.
    ProgramFailed "program_failed" "not sent: no value from its program";
    /// A place in its request cannot have the value for it: it was never sent.
    UnfitValue "unfit_value" "not sent: a value does not fit its place";
    /// The script of its user failed, which ended the iteration.
    ScriptFailed "script_failed" "its script threw, or went over a limit";
    /// No message of its stream within the message timeout.
    MessageTimeout "message_timeout" "no further message in time";
    /// Its stream ended without its end message or in the middle of a message, or was none.
    Incomplete "incomplete" "the stream ended before its end";
    /// A message of its stream is an error, whatever else came.
    StreamError "stream_error" "an error within the stream";
    /// A whole response whose compressed body is read, and cannot be decoded.
    Undecodable "undecodable" "a compressed body that cannot be read";
    /// The proxy did not connect to the target.
    ProxyRefused "proxy_refused" "the proxy did not connect to the target";
}

/// All outcomes in the order of the variants, each with its name and meaning.
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

    /// Its name in words, for people.
    pub fn label(self) -> String {
        match self {
            Outcome::Unexpected => "failed a check".to_owned(),
            other => other.name().replace('_', " "),
        }
    }

    /// Its meaning for people.
    pub fn meaning(self) -> &'static str {
        ROWS[self.row()].2
    }

    /// Whether a whole response came, whatever its status.
    #[inline]
    pub fn is_response(self) -> bool {
        matches!(
            self,
            Outcome::Ok
                | Outcome::Failed(_)
                | Outcome::Served
                | Outcome::Unexpected
                | Outcome::TooManyRedirections
        )
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
