//! How to get at a NATS, with the words and files that the `nats` tool has.

use crate::FleetError;
use async_nats::ConnectOptions;
use knee_engine::input;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a NATS is, and what it asks for. Neither is ever stored or reported, but for the address.
#[derive(Clone, Default)]
pub struct Access {
    /// `nats://HOST:PORT`, or several with commas between them.
    pub url: String,
    /// A user's name, with `password`.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// In place of both.
    pub token: Option<String>,
    /// A file of a user's JWT and seed, as `nsc` writes it.
    pub creds: Option<PathBuf>,
    /// A file of a user's seed.
    pub nkey: Option<PathBuf>,
    /// A PEM file of the certificates to trust beside the system's.
    pub ca: Option<PathBuf>,
    /// A PEM file of the certificate to show, with `key`.
    pub cert: Option<PathBuf>,
    /// A PEM file of its key.
    pub key: Option<PathBuf>,
}

/// Secrets are left out.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("at", &self.place())
            .finish_non_exhaustive()
    }
}

/// A context of the `nats` tool: a JSON file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    url: String,
    user: String,
    password: String,
    token: String,
    creds: String,
    nkey: String,
    ca: String,
    cert: String,
    key: String,
}

impl Access {
    /// Fills what is not said from the context of that name in `folder`
    /// (`~/.config/nats/context`), as the `nats` tool wrote it.
    ///
    /// # Errors
    /// There is no such context, or its file is not of that form.
    pub fn or_context(self, name: &str, folder: &Path) -> Result<Access, FleetError> {
        let path = folder.join(format!("{name}.json"));
        let wrong = |why: String| {
            FleetError::Refused(format!("the context {name}: {}: {why}", path.display()))
        };
        if name.contains(['/', '\\']) {
            return Err(wrong("a context has a name, not a path".to_owned()));
        }
        let text = input::read_text(&path, input::SECRETS_MAX).map_err(|e| wrong(e.into()))?;
        let context: Context = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        let word = |own: Option<String>, theirs: String| {
            own.or(Some(theirs).filter(|text| !text.is_empty()))
        };
        let file = |own: Option<PathBuf>, theirs: String| {
            own.or((!theirs.is_empty()).then(|| PathBuf::from(theirs)))
        };
        Ok(Access {
            url: match self.url.is_empty() {
                true => context.url,
                false => self.url,
            },
            user: word(self.user, context.user),
            password: word(self.password, context.password),
            token: word(self.token, context.token),
            creds: file(self.creds, context.creds),
            nkey: file(self.nkey, context.nkey),
            ca: file(self.ca, context.ca),
            cert: file(self.cert, context.cert),
            key: file(self.key, context.key),
        })
    }

    /// Where it is, without what a URL may have of users and passwords.
    pub fn place(&self) -> String {
        let places = self.url.split(',').map(|url| {
            let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
            let host = rest.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}")
        });
        places.collect::<Vec<_>>().join(",")
    }

    /// The client's options; `name` is what the server's lists show.
    pub(crate) fn options(&self, name: &str) -> Result<ConnectOptions, FleetError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(Duration::from_secs(5))
            .ping_interval(Duration::from_secs(2))
            // What is under way when NATS goes away is asked again by who asked.
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
            let seed = text
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with('S'));
            let seed = seed.ok_or_else(|| unfit(path, "a seed", "no line begins with S"))?;
            options = options.nkey(seed.to_owned());
        }
        if let Some(path) = &self.ca {
            read(path, "certificates")?;
            options = options
                .add_root_certificates(path.clone())
                .require_tls(true);
        }
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                read(cert, "a certificate")?;
                read(key, "a key")?;
                options = options
                    .add_client_certificate(cert.clone(), key.clone())
                    .require_tls(true);
            }
            (None, None) => {}
            _ => {
                let line = "a certificate for NATS needs its key, and a key its certificate";
                return Err(FleetError::Refused(line.to_owned()));
            }
        }
        Ok(options)
    }
}

fn read(path: &Path, what: &str) -> Result<String, FleetError> {
    input::read_text(path, input::SECRETS_MAX).map_err(|e| unfit(path, what, &e.to_string()))
}

fn unfit(path: &Path, what: &str, why: &str) -> FleetError {
    FleetError::Refused(format!(
        "{} is to hold {what} for NATS: {why}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_place_has_no_secrets() {
        let access = |url: &str| Access {
            url: url.to_owned(),
            ..Access::default()
        };
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
        let own = Access {
            user: Some("me".to_owned()),
            ..Access::default()
        };
        let filled = own.clone().or_context("lab", &folder).unwrap();
        assert_eq!(
            (filled.url.as_str(), filled.user.as_deref()),
            ("nats://n:1", Some("me"))
        );
        assert_eq!(
            (filled.password.as_deref(), filled.creds),
            (Some("p"), None)
        );
        for wrong in ["none", "../lab"] {
            let line = own
                .clone()
                .or_context(wrong, &folder)
                .unwrap_err()
                .to_string();
            assert!(line.contains(wrong), "{line}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
