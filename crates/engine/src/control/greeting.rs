//! How a client and a service of any kind meet: what is said first, and the answer to it.

use super::talk::{Lost, Talk};
use super::{Welcome, is_equal};
use crate::error::RunError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Of the control language of all services; a client and a service of different versions do not
/// talk. To be raised whenever any of their messages changes.
pub(super) const VERSION: u32 = 4;

/// How long an answer to hello may take.
const HELLO_NS: u64 = 5_000_000_000;

/// How often a busy service is asked again, and after how long each time.
const BUSY_TRIES: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(150);

/// What a client says first of all. Its form must stay, so that a service of any version
/// understands of which version the client is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the client's control protocol.
    pub version: u32,
    /// The service that it wants, by the command that starts it: `serve udp`.
    #[serde(default)]
    pub service: String,
    /// The secret; empty where none is needed.
    #[serde(default)]
    pub token: String,
}

/// Why a service does not take a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It is of this other version.
    Version(u32),
    /// It wants another service than this one.
    Service(&'static str),
    /// It does not know the secret.
    Token,
}

impl Hello {
    /// That of a client of this version.
    pub fn new(service: &str, token: &str) -> Hello {
        Hello {
            version: VERSION,
            service: service.to_owned(),
            token: token.to_owned(),
        }
    }

    /// Whether `service` takes a client that says this; an empty `token` is none.
    pub(crate) fn check(&self, service: &'static str, token: &str) -> Result<(), Unfit> {
        if self.version != VERSION {
            return Err(Unfit::Version(self.version));
        }
        if self.service != service {
            return Err(Unfit::Service(service));
        }
        // Who asks for none takes any: a client's may be of its environment.
        if !token.is_empty() && !is_equal(&self.token, token) {
            return Err(Unfit::Token);
        }
        Ok(())
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Version(client) => write!(
                f,
                "the service speaks version {VERSION} of the control language and the client \
                 version {client}: both have to be of one release of knee"
            ),
            Unfit::Service(service) => write!(
                f,
                "this is `knee {service}`, and the client expects another service"
            ),
            Unfit::Token => f.write_str(
                "wrong token: the token is not the service's; give the client the same, with \
                 --token or --observe-token",
            ),
        }
    }
}

/// What a client sends first.
#[derive(Debug, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum First<'a> {
    Hello(&'a Hello),
}

/// How a service answers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Greeting<F> {
    /// The client has the service.
    Welcome(Welcome<F>),
    /// It may not have it; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// Another client has it; the connection ends.
    Busy,
}

/// Where a client wants to be let in.
pub(crate) struct Door<'a> {
    /// As the user named it.
    pub(crate) at: &'a str,
    /// The command that starts the service: `serve udp`.
    pub(crate) service: &'static str,
    pub(crate) token: &'a str,
    /// What the service is for, in words that go on with "so start one there".
    pub(crate) purpose: &'a str,
    /// The longest line that it may say.
    pub(crate) line_max: usize,
}

impl Door<'_> {
    /// Connects and says hello, several times where the service is busy: a client that has just
    /// left may still be seen there, as its last packet was lost.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody there, nobody of ours, refused, or busy.
    pub(crate) fn enter<F: DeserializeOwned>(
        &self,
        stop: &AtomicBool,
    ) -> Result<(Talk, Welcome<F>), RunError> {
        let (purpose, service, at) = (self.purpose, self.service, self.at);
        let nobody = format!("{purpose}, so start one there with `knee {service} --listen {at}`");
        let mut tries = BUSY_TRIES;
        loop {
            let mut talk = Talk::connect(at, self.line_max, &nobody)?;
            if let Some(welcome) = self.hello(&mut talk, stop)? {
                return Ok((talk, welcome));
            }
            if tries == 0 || stop.load(Ordering::Relaxed) {
                return Err(talk.unreachable("is busy with another client"));
            }
            tries -= 1;
            thread::sleep(BUSY_PAUSE);
        }
    }

    /// `None`: the service is busy.
    fn hello<F: DeserializeOwned>(
        &self,
        talk: &mut Talk,
        stop: &AtomicBool,
    ) -> Result<Option<Welcome<F>>, RunError> {
        let hello = Hello::new(self.service, self.token);
        let told = talk.tell(&First::Hello(&hello));
        match told.and_then(|()| talk.hear(HELLO_NS, Some(stop))) {
            Ok(Greeting::Welcome(welcome)) => Ok(Some(welcome)),
            Ok(Greeting::Busy) => Ok(None),
            Ok(Greeting::Refused { reason }) => Err(talk.lost(Lost::unexpected(Some(&reason)))),
            Err(lost @ Lost::Interrupted) => Err(talk.lost(lost)),
            Err(Lost::Because(_)) => Err(talk.unreachable(&format!(
                "accepts connections but does not answer as a knee service: start one there with \
                 `knee {}`",
                self.service
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_of_any_version_is_understood() {
        let first = r#"{"ask":"hello","version":1,"token":"secret"}"#;
        let hello: Hello = serde_json::from_str(first).unwrap();
        assert_eq!(hello.check("serve udp", ""), Err(Unfit::Version(1)));
        let later = r#"{"ask":"hello","version":99,"service":"serve udp","more":[1]}"#;
        let hello: Hello = serde_json::from_str(later).unwrap();
        assert_eq!(hello.check("serve udp", ""), Err(Unfit::Version(99)));
    }

    #[test]
    fn who_wants_another_service_or_has_no_token_is_told() {
        let hello = Hello::new("serve udp", "secret");
        assert_eq!(hello.check("serve udp", "secret"), Ok(()));
        assert_eq!(hello.check("serve udp", ""), Ok(()));
        assert_eq!(hello.check("serve udp", "other"), Err(Unfit::Token));
        let other = Unfit::Service("serve latency");
        assert_eq!(hello.check("serve latency", ""), Err(other));
        for unfit in [Unfit::Version(1), other, Unfit::Token] {
            assert!(!unfit.to_string().contains('\n'));
        }
    }
}
