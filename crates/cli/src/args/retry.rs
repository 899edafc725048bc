//! What users do after a failed attempt: `--retries` and what belongs to it.

use super::values::{Choices, one_of, parse_whole};
use super::{first_given, refuse_first};
use crate::failure::Failure;
use crate::resolved_options::displayed;
use clap::Args;
use knee_load::spec::{
    Backoff, Jitter, ParseError, RetryCauses, RetryPolicy, Target, parse_retry_budget,
};
use serde::Serialize;

const JITTERS: Choices<Jitter> = &Jitter::NAMES;

#[derive(Args, Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Retries")]
pub struct RetryArgs {
    /// Most retries of a request that failed, 1 to 100 [default: none]
    ///
    /// Retries are load: the report then tells requests offered, attempts and good requests apart.
    /// Each attempt has the whole --timeout.
    #[arg(long, value_name = "N", value_parser = parse_retries, hide_short_help = true)]
    retries: Option<u32>,

    /// Pause before a retry: fixed(T), or exp(T,T), which doubles from the first to the longest
    /// [default: exp(100ms,2s)]
    #[arg(long, value_name = "B", value_parser = Backoff::parse, hide_short_help = true)]
    #[serde(serialize_with = "displayed")]
    backoff: Option<Backoff>,

    /// Random part of the pause: full (uniform from 0 to the backoff) or none [default: full]
    #[arg(long, value_name = "J", value_parser = one_of(JITTERS), hide_short_help = true)]
    #[arg(hide_possible_values = true)]
    jitter: Option<Jitter>,

    /// Most retries in percent of the requests, such as 10% [default: no limit]
    ///
    /// A token bucket: each request adds its share of a token, each retry takes a whole one. At
    /// most 10 tokens are kept, by each worker. A request without a token fails.
    #[arg(long, value_name = "P", value_parser = parse_retry_budget, hide_short_help = true)]
    #[serde(serialize_with = "share")]
    retry_budget: Option<f64>,

    /// Failures to retry: some of timeout, 5xx, 429, refused, reset, stream_error, with commas
    /// between them
    /// [default: timeout,5xx,refused,reset]
    #[arg(long, value_name = "F,F...", value_parser = RetryCauses::parse, hide_short_help = true)]
    #[serde(serialize_with = "displayed")]
    retry_on: Option<RetryCauses>,
}

impl RetryArgs {
    /// The policy for requests to this target; `None` without retries. Defaults are settled.
    pub fn resolve(&mut self, target: &Target) -> Result<Option<RetryPolicy>, Failure> {
        let Some(retries_max) = self.retries else {
            let given = first_given(&[
                (self.backoff.is_some(), "--backoff"),
                (self.jitter.is_some(), "--jitter"),
                (self.retry_budget.is_some(), "--retry-budget"),
                (self.retry_on.is_some(), "--retry-on"),
            ]);
            return match given {
                Some(option) => Err(Failure::argument(option, "needs --retries, such as 3")),
                None => Ok(None),
            };
        };
        let several = "a retry repeats its request, so it needs a single one: give one URL";
        let subscribes = "the server sends by itself: leave it or --subscribe out";
        refuse_first(&[
            (target.sessions.is_none() && target.requests.len() > 1, "--retries", several),
            (target.protocol.subscribes(), "--retries", subscribes),
        ])?;
        Ok(Some(RetryPolicy {
            retries_max,
            backoff: *self.backoff.get_or_insert(Backoff::DEFAULT),
            jitter: *self.jitter.get_or_insert(Jitter::Full),
            budget: self.retry_budget,
            causes: *self.retry_on.get_or_insert(RetryCauses::DEFAULT),
        }))
    }
}

fn parse_retries(text: &str) -> Result<u32, ParseError> {
    let most = RetryPolicy::RETRIES_MAX;
    match u32::try_from(parse_whole(text)?) {
        Ok(0) => Err(ParseError("'0' is none: leave it out, or give 1 to 100".to_owned())),
        Ok(n) if n <= most => Ok(n),
        _ => Err(ParseError(format!("'{text}' is too many: at most {most}"))),
    }
}

/// Serializes a share as a percentage.
fn share<S: serde::Serializer>(share: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    // A percentage that was typed with a few digits is written with these again.
    share.map(|share| format!("{}%", (share * 1e8).round() / 1e6)).serialize(serializer)
}
