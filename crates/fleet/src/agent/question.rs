//! Questions about a target, as seen from an agent.

use super::AgentService;
use crate::bus::{json, parse};
use crate::permit::pin;
use crate::protocol::{AgentAnswer, TargetAddress, TargetGreeting};
use async_nats::Message;
use knee_engine::permit::Permit;
use knee_load::spec::Target;
use knee_load::time::Nanos;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of a question for the limit on operations per second.
const QUESTION_WAIT: Duration = Duration::from_secs(3);

impl AgentService {
    /// Answers a question about a target, in a thread for blocking work.
    pub(super) fn on_question<Q: DeserializeOwned + 'static, A: Serialize + 'static>(
        self: &Arc<Self>,
        message: Message,
        answer: fn(&Permit, Q) -> Result<A, AgentAnswer>,
    ) {
        let service = self.clone();
        tokio::task::spawn_blocking(move || {
            let answer = match parse::<Q>(&message.payload) {
                Some(_) if !service.spacing.wait(QUESTION_WAIT) => Err(AgentAnswer::No(
                    "its --rate-max permits no further connects now".to_owned(),
                )),
                None => Err(AgentAnswer::No("it cannot read the question".to_owned())),
                Some(question) => answer(&service.options.permit, question),
            };
            let answer = json(&answer);
            tokio::runtime::Handle::current()
                .spawn(async move { service.reply(&message, answer).await });
        });
    }
}

pub(super) fn greet(
    permit: &Permit,
    (mut target, patience): (Target, Nanos),
) -> Result<TargetGreeting, AgentAnswer> {
    pin(permit, &mut target)?;
    let (address, greeting) = knee_engine::preflight(&target, patience)
        .map_err(|e| AgentAnswer::Unreachable(e.to_string()))?;
    Ok(TargetGreeting { version: greeting.version, address })
}

pub(super) fn aim(permit: &Permit, mut target: Target) -> Result<TargetAddress, AgentAnswer> {
    pin(permit, &mut target)?;
    let (address, answers) = knee_engine::preflight_overload(&target)?;
    Ok(TargetAddress { address, answers })
}
