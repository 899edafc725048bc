//! Connecting to a service: the client's side of the greeting.

use super::control_client::{ControlClient, ServiceLost};
use super::greeting::{Hello, HelloReply, WRONG_TOKEN, Welcome};
use crate::error::RunError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time limit of the answer to hello.
const HELLO_NS: u64 = 5_000_000_000;

/// Further attempts where a service is busy, and the pause before each.
const BUSY_TRIES: u32 = 4;
const BUSY_PAUSE: Duration = Duration::from_millis(150);

/// [`Hello`] as it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum HelloMessage<'a> {
    Hello(&'a Hello),
}

/// What a client needs to connect to a service.
pub(crate) struct ServiceLogin<'a> {
    /// Address as the user wrote it.
    pub(crate) at: &'a str,
    /// The command that starts the service: `serve udp`.
    pub(crate) service: &'static str,
    pub(crate) token: &'a str,
    /// The option of this client that gives the token.
    pub(crate) token_option: &'static str,
    /// Purpose of the service, in words that go on with "so start one there".
    pub(crate) purpose: &'a str,
    /// Longest line of the service, in bytes.
    pub(crate) line_max: usize,
}

impl ServiceLogin<'_> {
    /// Connects and says hello, several times where the service is busy: it may not have noticed
    /// yet that the client before has left.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nothing answers, no knee service, refused, or busy.
    pub(crate) fn connect<F: DeserializeOwned>(
        &self,
        stop: &AtomicBool,
    ) -> Result<(ControlClient, Welcome<F>), RunError> {
        let (purpose, service, at) = (self.purpose, self.service, self.at);
        let nobody = format!("{purpose}, so start one there with `knee {service} --listen {at}`");
        let mut tries = BUSY_TRIES;
        loop {
            let mut client = ControlClient::connect(at, self.line_max, &nobody)?;
            if let Some(welcome) = self.hello(&mut client, stop)? {
                return Ok((client, welcome));
            }
            if tries == 0 || stop.load(Ordering::Relaxed) {
                return Err(client.unreachable("is busy with another client"));
            }
            tries -= 1;
            thread::sleep(BUSY_PAUSE);
        }
    }

    /// `None`: the service is busy.
    fn hello<F: DeserializeOwned>(
        &self,
        client: &mut ControlClient,
        stop: &AtomicBool,
    ) -> Result<Option<Welcome<F>>, RunError> {
        let hello = Hello::new(self.service, self.token);
        let sent = client.send(&HelloMessage::Hello(&hello));
        match sent.and_then(|()| client.receive(HELLO_NS, Some(stop))) {
            Ok(HelloReply::Welcome(welcome)) => Ok(Some(welcome)),
            Ok(HelloReply::Busy) => Ok(None),
            Ok(HelloReply::Refused { mut reason }) => {
                if reason == WRONG_TOKEN {
                    reason += &format!("; give the client the same, with {}", self.token_option);
                }
                Err(client.lost(ServiceLost::unexpected(Some(&reason))))
            }
            Err(lost @ ServiceLost::Interrupted) => Err(client.lost(lost)),
            Err(ServiceLost::Because(_)) => Err(client.unreachable(&format!(
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
    use crate::control::greeting::HelloRefusal;
    use crate::control::line;
    use std::io::Write;
    use std::net::TcpListener;

    /// Error of a client whose service refuses it for this reason.
    fn refused(reason: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let service = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&line(&HelloReply::<()>::Refused { reason })).unwrap();
            stream
        });
        let login = ServiceLogin {
            at: &at,
            service: "serve udp",
            token: "other",
            token_option: "--some-token",
            purpose: "a test",
            line_max: 4_096,
        };
        let error = login.connect::<()>(&AtomicBool::new(false)).map(drop).unwrap_err();
        drop(service.join());
        error.to_string()
    }

    #[test]
    fn a_wrong_token_names_the_option_of_the_client() {
        let token = refused(HelloRefusal::Token.to_string());
        assert!(token.ends_with("service's; give the client the same, with --some-token"));
        let other = refused(HelloRefusal::Version(1).to_string());
        assert!(!other.contains("--some-token"), "{other}");
    }
}
