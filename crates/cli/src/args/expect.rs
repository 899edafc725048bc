//! What is expected of the responses to a single request.

use super::first_given;
use crate::failure::Failure;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::spec::HttpTarget;
use knee_scenario::{Expected, parse_status};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// As many redirections as curl follows.
const REDIRECTS: u32 = 50;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Target")]
pub struct ExpectArgs {
    /// Statuses that count as success, repeatable: 200, 2xx, 200-204 [default: below 400]
    #[arg(long, value_name = "STATUS", value_parser = parse_status, hide_short_help = true)]
    #[arg(conflicts_with = "targets")]
    #[serde(serialize_with = "typed")]
    expect_status: Vec<(u16, u16)>,

    /// A text that each response's body has to contain
    #[arg(long, value_name = "TEXT", hide_short_help = true, conflicts_with = "targets")]
    expect_body: Option<String>,

    /// Follow up to 50 redirections to the same server. Each of them is an operation
    #[arg(short = 'L', long, hide_short_help = true, conflicts_with = "targets")]
    location: bool,
}

impl ExpectArgs {
    /// The option, if any is given.
    pub fn given(&self) -> Option<&'static str> {
        first_given(&[
            (!self.expect_status.is_empty(), "--expect-status"),
            (self.expect_body.is_some(), "--expect-body"),
            (self.location, "--location"),
        ])
    }

    /// The same target with what is expected of its only request.
    pub fn apply(&self, mut target: HttpTarget) -> HttpTarget {
        let expected = Expected {
            status: self.expect_status.clone(),
            body: self.expect_body.clone(),
            redirects: if self.location { REDIRECTS } else { 0 },
        };
        if !expected.is_nothing()
            && let Some(request) = target.requests.first()
        {
            let (requests, plan) = expected.of(request.clone());
            target.requests = requests;
            target.sessions = Some(Arc::new(plan));
        }
        target
    }

    /// Refuses them for an experiment that reads no response.
    pub fn refuse(&self, why: &str) -> Result<(), Failure> {
        match self.given() {
            Some(option) => Err(Failure::argument(option, why)),
            None => Ok(()),
        }
    }
}

/// A range of statuses: `200`, `200-204`.
impl Typed for (u16, u16) {
    fn typed(&self) -> Value {
        let (low, high) = self;
        if low == high { low.to_string().into() } else { format!("{low}-{high}").into() }
    }
}
