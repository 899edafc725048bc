//! Address and credentials of a NATS, with the names and files of the `nats` tool.
//!
//! In a cluster, NATS, its streams and the agents start together: [`Patience`] waits for them.

use async_nats::ConnectOptions;
use knee_engine::error::RunError;
use knee_engine::{input, interrupt};
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Address and credentials of a NATS. Only the address is ever stored or reported.
///
/// A context of the `nats` tool is a JSON file of the same fields.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct NatsAccess {
    /// `nats://HOST:PORT`, or several with commas between them.
    pub url: String,
    /// A user's name, with `password`.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// A token, in place of user and password.
    pub token: Option<String>,
    /// A file of a user's JWT and seed, as `nsc` writes it.
    pub creds: Option<PathBuf>,
    /// A file of a user's seed.
    pub nkey: Option<PathBuf>,
    /// A PEM file of the certificates to trust beside the system's.
    pub ca: Option<PathBuf>,
    /// A PEM file of the certificate to show, with `key`.
    pub cert: Option<PathBuf>,
    /// A PEM file of the key of `cert`.
    pub key: Option<PathBuf>,
}

/// Without secrets.
impl std::fmt::Debug for NatsAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("at", &self.place()).finish_non_exhaustive()
    }
}

impl NatsAccess {
    /// Takes fields that are not given from the context `name` in `folder`
    /// (`~/.config/nats/context`).
    ///
    /// # Errors
    /// The file of the context cannot be read or parsed.
    pub fn or_context(self, name: &str, folder: &Path) -> Result<NatsAccess, RunError> {
        let path = folder.join(format!("{name}.json"));
        let invalid = |why: String| {
            RunError::NotPermitted(format!("invalid context {name}: {}: {why}", path.display()))
        };
        if name.contains(['/', '\\']) {
            return Err(invalid("expected a name, not a path".to_owned()));
        }
        let text = input::read_text(&path, input::SECRETS_MAX).map_err(|e| invalid(e.into()))?;
        let context: NatsAccess =
            serde_json::from_str(&text).map_err(|e| invalid(e.to_string()))?;
        let url = Some(self.url).filter(|url| !url.is_empty());
        Ok(NatsAccess {
            url: url.unwrap_or(context.url),
            user: given_or(self.user, context.user),
            password: given_or(self.password, context.password),
            token: given_or(self.token, context.token),
            creds: given_or(self.creds, context.creds),
            nkey: given_or(self.nkey, context.nkey),
            ca: given_or(self.ca, context.ca),
            cert: given_or(self.cert, context.cert),
            key: given_or(self.key, context.key),
        })
    }

    /// Addresses, without users and passwords.
    pub fn place(&self) -> String {
        let places = self.url.split(',').map(|url| {
            let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
            let host = rest.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}")
        });
        places.collect::<Vec<_>>().join(",")
    }

    /// Options of the client. The server lists the connection as `name`.
    pub(crate) fn options(&self, name: &str) -> Result<ConnectOptions, RunError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(Duration::from_secs(2))
            // Requests that are lost while NATS is away are repeated by their senders.
            .request_timeout(Some(Duration::from_secs(5)))
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| {
                Duration::from_millis(50 << attempt.min(5)).min(Duration::from_secs(1))
            });
        if let Some(user) = &self.user {
            let password = self.password.clone().unwrap_or_default();
            options = options.user_and_password(user.clone(), password);
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.creds {
            let creds = read(path, "credentials")?;
            options = options
                .credentials(&creds)
                .map_err(|e| unfit(path, "credentials", &e.to_string()))?;
        }
        if let Some(path) = &self.nkey {
            let text = read(path, "a seed")?;
            let seed = text.lines().map(str::trim).find(|line| line.starts_with('S'));
            let seed = seed.ok_or_else(|| unfit(path, "a seed", "no line begins with S"))?;
            options = options.nkey(seed.to_owned());
        }
        if let Some(path) = &self.ca {
            read(path, "certificates")?;
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                read(cert, "a certificate")?;
                read(key, "a key")?;
                options =
                    options.add_client_certificate(cert.clone(), key.clone()).require_tls(true);
            }
            (None, None) => {}
            _ => {
                let line = "a client certificate for NATS requires both a certificate and a key";
                return Err(RunError::NotPermitted(line.to_owned()));
            }
        }
        Ok(options)
    }
}

/// The given value, or else that of the context, where an empty one means none.
fn given_or<T: AsRef<OsStr>>(given: Option<T>, in_context: Option<T>) -> Option<T> {
    given.or(in_context.filter(|value| !value.as_ref().is_empty()))
}

fn read(path: &Path, what: &str) -> Result<String, RunError> {
    input::read_text(path, input::SECRETS_MAX).map_err(|e| unfit(path, what, &e.to_string()))
}

fn unfit(path: &Path, what: &str, why: &str) -> RunError {
    RunError::NotPermitted(format!("cannot read {what} for NATS from {}: {why}", path.display()))
}

/// Time between two attempts.
const AGAIN: Duration = Duration::from_millis(500);

/// How long to wait for NATS, its streams and agents.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time limit; 0: fail at once.
    pub limit: Duration,
    /// Receives a line for each new reason to wait.
    pub tell: fn(&str),
}

impl Patience {
    /// Repeats an attempt that fails with `FleetLost`, until the time limit or a signal.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub(crate) fn retry<T>(
        self,
        mut attempt: impl FnMut() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let since = Instant::now();
        let mut shown_reason = String::new();
        loop {
            let ended = attempt();
            let Err(RunError::FleetLost(why)) = &ended else {
                return ended;
            };
            if since.elapsed() >= self.limit || interrupt::is_raised() {
                return ended;
            }
            if *why != shown_reason {
                (self.tell)(&format!("waiting for up to {:.0?}: {why}", self.limit));
                shown_reason.clone_from(why);
            }
            sleep(AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_place_has_no_secrets() {
        let access = |url: &str| NatsAccess { url: url.to_owned(), ..NatsAccess::default() };
        let place = access("nats://me:secret@n1:4222,tls://token@n2,n3:1").place();
        assert_eq!(place, "nats://n1:4222,tls://n2,nats://n3:1");
        assert!(!format!("{:?}", access("nats://me:secret@n1")).contains("secret"));
    }

    #[test]
    fn a_context_fills_what_is_not_said() {
        let folder = std::env::temp_dir().join(format!("knee-context-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = r#"{"url": "nats://n:1", "user": "u", "password": "p", "creds": "", "x": 1}"#;
        fs::write(folder.join("lab.json"), text).unwrap();
        let own = NatsAccess { user: Some("me".to_owned()), ..NatsAccess::default() };
        let filled = own.clone().or_context("lab", &folder).unwrap();
        assert_eq!((filled.url.as_str(), filled.user.as_deref()), ("nats://n:1", Some("me")));
        assert_eq!((filled.password.as_deref(), filled.creds), (Some("p"), None));
        for wrong in ["none", "../lab"] {
            let line = own.clone().or_context(wrong, &folder).unwrap_err().to_string();
            assert!(line.contains(wrong), "{line}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    fn attempts(limit: Duration, outcomes: &[Result<(), RunError>]) -> (u32, bool) {
        let mut count = 0;
        let patience = Patience { limit, tell: |line| assert!(line.contains("no NATS"), "{line}") };
        let ended = patience.retry(|| {
            count += 1;
            outcomes[(count as usize - 1).min(outcomes.len() - 1)].clone()
        });
        (count, ended.is_ok())
    }

    #[test]
    fn waits_for_what_may_come_and_for_nothing_else() {
        let gone = Err(RunError::FleetLost("no NATS".to_owned()));
        let refused = Err(RunError::NotPermitted("no such login".to_owned()));
        let minute = Duration::from_secs(60);
        assert_eq!(attempts(minute, &[gone.clone(), Ok(())]), (2, true));
        assert_eq!(attempts(minute, &[gone.clone(), refused.clone()]), (2, false));
        assert_eq!(attempts(minute, &[refused]), (1, false));
        assert_eq!(attempts(Duration::ZERO, &[gone]), (1, false));
    }
}
