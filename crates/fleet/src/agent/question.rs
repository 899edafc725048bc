//! Questions about a target, as seen from an agent.

use super::Desk;
use crate::FleetError;
use crate::bus::{json, parse};
use crate::permit::Permit;
use crate::words::{Aimed, Answer, Greeted};
use async_nats::Message;
use knee_core::spec::HttpTarget;
use knee_core::time::Nanos;
use knee_engine::error::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A question waits for the limit on operations per second no longer than this.
const QUESTION_WAIT: Duration = Duration::from_secs(3);

impl Desk {
    /// Something about a target, as seen from here, that takes its time.
    pub(super) fn on_question<Q: DeserializeOwned + 'static, A: Serialize + 'static>(
        &self,
        message: Message,
        answer: fn(&Permit, Q) -> Result<A, Answer>,
    ) {
        let (permit, client) = (self.options.permit.clone(), self.client.clone());
        let spacing = self.spacing.clone();
        tokio::task::spawn_blocking(move || {
            let told = match parse::<Q>(&message.payload) {
                Some(_) if !spacing.wait(QUESTION_WAIT) => Err(Answer::No(
                    "its --rate-max permits no further connects now".to_owned(),
                )),
                None => Err(Answer::No("it cannot read the question".to_owned())),
                Some(question) => answer(&permit, question),
            };
            let told = json(&told);
            tokio::runtime::Handle::current().spawn(async move {
                if let Some(reply) = message.reply {
                    let _ = client.publish(reply, told).await;
                }
            });
        });
    }
}

fn told(error: FleetError) -> Answer {
    match error {
        FleetError::Unreachable(line) => Answer::Unreachable(line),
        FleetError::Refused(line) | FleetError::Gone(line) => Answer::No(line),
    }
}

pub(super) fn greet(
    permit: &Permit,
    (mut target, patience): (HttpTarget, Nanos),
) -> Result<Greeted, Answer> {
    let limit = Duration::from_nanos(patience.0);
    permit.pin(&mut target, Some(limit)).map_err(told)?;
    let met = knee_engine::preflight(&target, patience);
    let (address, greeting) = met.map_err(|e| Answer::Unreachable(e.to_string()))?;
    let version = greeting.version;
    Ok(Greeted { version, address })
}

pub(super) fn aim(
    permit: &Permit,
    (mut target, sources): (HttpTarget, Vec<String>),
) -> Result<Aimed, Answer> {
    permit.pin(&mut target, None).map_err(told)?;
    match knee_engine::preflight_overload(&target, &sources) {
        Ok((address, answers)) => Ok(Aimed { address, answers }),
        Err(RunError::Unreachable(line)) => Err(Answer::Unreachable(line)),
        Err(e) => Err(Answer::No(e.to_string())),
    }
}
