//! What a user does after a failed attempt.

use super::{ParseError, parse_duration};
use crate::law::Law;
use crate::names::names;
use crate::rng::{self, Rng};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Retries of a request that failed: how often, when, and after which failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Most retries of one request; 0: none.
    pub retries_max: u32,
    /// Pause before each retry.
    pub backoff: Backoff,
    /// What of the pause is random.
    pub jitter: Jitter,
    /// Most retries as a share of the requests, above 0; `None`: no limit.
    pub budget: Option<f64>,
    /// Failures that are retried.
    pub causes: RetryCauses,
}

impl RetryPolicy {
    /// No retries: each request is one attempt.
    pub const ONCE: RetryPolicy = RetryPolicy {
        retries_max: 0,
        backoff: Backoff::DEFAULT,
        jitter: Jitter::Full,
        budget: None,
        causes: RetryCauses::DEFAULT,
    };

    /// Most retries of one request that can be asked for.
    pub const RETRIES_MAX: u32 = 100;

    /// The pause before retry number `retry`, which counts from 0.
    #[inline]
    pub fn pause(&self, retry: u32, rng: &mut Rng) -> Nanos {
        let longest = self.backoff.before(retry);
        match self.jitter {
            Jitter::None => longest,
            Jitter::Full => Law::Uniform(Nanos::ZERO, longest).sample(rng),
        }
    }

    /// The longest time from the first attempt of a request to the end of its last.
    pub fn lasts_at_most(&self, timeout: Nanos) -> Nanos {
        let pauses = (0..self.retries_max).map(|retry| self.backoff.before(retry).0);
        let attempts = timeout.0.saturating_mul(u64::from(self.retries_max) + 1);
        Nanos(pauses.fold(attempts, u64::saturating_add))
    }
}

/// The pause before a retry, without jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the same.
    Fixed(Nanos),
    /// The first, doubled with each further retry, and the longest.
    Exp(Nanos, Nanos),
}

impl Backoff {
    /// What is waited unless something else is asked for.
    pub const DEFAULT: Backoff = Backoff::Exp(Nanos::from_millis(100), Nanos::from_secs(2));

    /// The pause before retry number `retry`, which counts from 0.
    #[inline]
    fn before(self, retry: u32) -> Nanos {
        match self {
            Backoff::Fixed(pause) => pause,
            Backoff::Exp(first, longest) => {
                Nanos(first.0.saturating_mul(1 << retry.min(62))).min(longest)
            }
        }
    }

    /// Reads `fixed(100ms)`, `exp(100ms,2s)` or a time alone, which is fixed.
    ///
    /// # Errors
    /// It is none of these, or the longest pause is shorter than the first.
    pub fn parse(text: &str) -> Result<Backoff, ParseError> {
        let arguments = |name: &str| {
            let rest = text.trim().strip_prefix(name)?.trim();
            rest.strip_prefix('(')?.strip_suffix(')')
        };
        if let Some(pause) = arguments("fixed") {
            return parse_duration(pause).map(Backoff::Fixed);
        }
        let Some(both) = arguments("exp") else {
            return parse_duration(text).map(Backoff::Fixed).map_err(|_| {
                ParseError(format!(
                    "'{text}' is no backoff: give fixed(T) or exp(T,T), such as exp(100ms,2s)"
                ))
            });
        };
        let Some((first, longest)) = both.split_once(',') else {
            return Err(ParseError(format!(
                "'{text}' lacks its longest pause: give exp(T,T), such as exp(100ms,2s)"
            )));
        };
        let (first, longest) = (parse_duration(first)?, parse_duration(longest)?);
        if longest < first {
            return Err(ParseError(format!(
                "'{text}' has a longest pause below the first: give exp(T,T) with the longer last"
            )));
        }
        Ok(Backoff::Exp(first, longest))
    }
}

/// As it is typed.
impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backoff::Fixed(pause) => write!(f, "fixed({})", pause.exactly()),
            Backoff::Exp(first, longest) => {
                write!(f, "exp({},{})", first.exactly(), longest.exactly())
            }
        }
    }
}

/// What of a pause is random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// All of it: uniform from 0 to the backoff, so that users who failed together spread out.
    #[default]
    Full,
    /// Nothing.
    None,
}

impl Jitter {
    /// Each kind by its name.
    pub const NAMES: [(&'static str, Jitter); 2] = [("full", Jitter::Full), ("none", Jitter::None)];
}

names! {
    /// A kind of failure that may be retried.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RetryCause {
        /// No whole response, connection or further message in time.
        Timeout = "timeout",
        /// Status 500 or more.
        Http5xx = "5xx",
        /// Status 429.
        Http429 = "429",
        /// Connection or stream refused.
        Refused = "refused",
        /// Connection or stream broken off before the whole response.
        Reset = "reset",
        /// An error within a stream of messages.
        StreamError = "stream_error",
    }
}

/// The failures that are retried, a bit for each cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryCauses(u8);

impl RetryCauses {
    /// All but status 429, by which a server asks for less, and errors within streams, after which
    /// a user has a part of the answer.
    pub const DEFAULT: RetryCauses = RetryCauses(0b1_1011);

    /// Whether this cause is among them.
    #[inline]
    pub fn has(self, cause: RetryCause) -> bool {
        self.0 & (1 << cause as u8) != 0
    }

    /// Reads names with commas between them, such as `timeout,5xx`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<RetryCauses, ParseError> {
        text.split(',').try_fold(RetryCauses(0), |RetryCauses(bits), word| {
            let known = RetryCause::ALL.into_iter().find(|cause| cause.name() == word.trim());
            let cause = known.ok_or_else(|| {
                let names = RetryCause::ALL.map(RetryCause::name).join(", ");
                ParseError(format!(
                    "'{}' is no failure to retry: give some of {names}",
                    word.trim()
                ))
            })?;
            Ok(RetryCauses(bits | (1 << cause as u8)))
        })
    }
}

/// As they are typed.
impl fmt::Display for RetryCauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = RetryCause::ALL.into_iter().filter(|cause| self.has(*cause));
        let names: Vec<&str> = causes.map(RetryCause::name).collect();
        f.write_str(&names.join(","))
    }
}

impl Serialize for RetryCauses {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RetryCauses {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<RetryCauses, D::Error> {
        let text = String::deserialize(d)?;
        RetryCauses::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Reads a retry budget such as `10%`, as a share.
///
/// # Errors
/// Not a percentage above 0 and up to 1000.
pub fn parse_retry_budget(text: &str) -> Result<f64, ParseError> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent / 100.0),
        _ => Err(ParseError(format!(
            "'{text}' is no budget: give retries in percent of the requests, such as 10%"
        ))),
    }
}

/// A retry budget: each request adds its share of a token, each retry takes a whole one (as in
/// Finagle). So retries never exceed that share of the requests.
#[derive(Clone, Copy, Debug)]
pub struct RetryBudget {
    share: f64,
    tokens: f64,
}

impl RetryBudget {
    /// Most tokens kept, as of gRPC (`maxTokens`): what is saved in good times buys no storm.
    const TOKENS_MAX: f64 = 10.0;

    /// A bucket that is empty, for this share.
    pub fn new(share: f64) -> RetryBudget {
        RetryBudget { share, tokens: 0.0 }
    }

    /// Notes a request.
    #[inline]
    pub fn earn(&mut self) {
        self.tokens = (self.tokens + self.share).min(Self::TOKENS_MAX.max(self.share));
    }

    /// Whether a retry may be made; if so, it is paid for.
    #[inline]
    pub fn spend(&mut self) -> bool {
        // Ten tenths add up to a little less than one.
        let can_pay = self.tokens >= 1.0 - 1e-9;
        if can_pay {
            self.tokens -= 1.0;
        }
        can_pay
    }
}

/// A random stream for the jitter of one worker.
pub(crate) fn jitter_rng(seed: u64, worker: u32) -> Rng {
    rng::stream(seed, rng::RETRIES + u64::from(worker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn backoffs_are_read_and_written() {
        for (text, written) in [
            ("exp(100ms,2s)", "exp(100ms,2s)"),
            (" exp( 100ms , 2s ) ", "exp(100ms,2s)"),
            ("fixed(1s)", "fixed(1s)"),
            ("50ms", "fixed(50ms)"),
            ("fixed(0s)", "fixed(0s)"),
        ] {
            let backoff = Backoff::parse(text).unwrap();
            assert_eq!(backoff.to_string(), written, "{text}");
            assert_eq!(Backoff::parse(written), Ok(backoff));
        }
        for text in ["", "exp", "exp(1s)", "exp(2s,1s)", "linear(1s)", "exp(a,b)", "fixed()"] {
            assert!(Backoff::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn exponential_pauses_double_up_to_the_longest() {
        let backoff = Backoff::Exp(Nanos::from_millis(100), Nanos::from_secs(1));
        let pauses = [0, 1, 2, 3, 4, 90].map(|retry| backoff.before(retry));
        assert_eq!(pauses.map(|t| t.0 / 1_000_000), [100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn causes_are_those_named() {
        let named = RetryCauses::parse("timeout, 429").unwrap();
        assert_eq!(named.to_string(), "timeout,429");
        assert!(named.has(RetryCause::Http429) && !named.has(RetryCause::Http5xx));
        assert_eq!(RetryCauses::DEFAULT.to_string(), "timeout,5xx,refused,reset");
        let wrong = RetryCauses::parse("timeout,oops").unwrap_err().0;
        assert!(wrong.starts_with("'oops' is no failure to retry"), "{wrong}");
    }

    #[test]
    fn budgets_are_percentages() {
        assert_eq!(parse_retry_budget("10%"), Ok(0.1));
        for text in ["10", "0%", "-1%", "x%", "", "1001%", "NaN%"] {
            assert!(parse_retry_budget(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn budget_never_permits_more_than_its_share(
            share in 0.01_f64..3.0,
            wants in proptest::collection::vec(any::<bool>(), 1..400),
        ) {
            let (mut budget, mut retries) = (RetryBudget::new(share), 0.0);
            for (requests, wants) in wants.iter().enumerate() {
                budget.earn();
                while *wants && budget.spend() {
                    retries += 1.0;
                }
                prop_assert!(retries <= share * (requests + 1) as f64 + 1e-6);
            }
        }
    }
}
