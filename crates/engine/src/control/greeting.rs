//! Hello of a client, and the answer of a service.

use serde::{Deserialize, Serialize};
use std::{fmt, fs};

/// Version of the control protocol of all services. Client and service have to be of the same.
/// Raise it whenever a message changes.
pub(super) const VERSION: u32 = 4;

/// First message of a client. Its form must stay, so that a service of any version can read the
/// version of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the client's control protocol.
    pub version: u32,
    /// The service that the client wants, by the command that starts it: `serve udp`.
    #[serde(default)]
    pub service: String,
    /// The secret; empty: none.
    #[serde(default)]
    pub token: String,
}

/// Why a service refuses a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloRefusal {
    /// The client is of this other version.
    Version(u32),
    /// The client wants another service than this one.
    Service(&'static str),
    /// The client does not know the secret.
    Token,
}

impl Hello {
    /// Hello of a client of this version.
    pub fn new(service: &str, token: &str) -> Hello {
        Hello { version: VERSION, service: service.to_owned(), token: token.to_owned() }
    }

    /// Whether `service` admits the client. An empty `token` admits any.
    pub(crate) fn check(&self, service: &'static str, token: &str) -> Result<(), HelloRefusal> {
        if self.version != VERSION {
            return Err(HelloRefusal::Version(self.version));
        }
        if self.service != service {
            return Err(HelloRefusal::Service(service));
        }
        // A token that is not asked for may come from the client's environment.
        if !token.is_empty() && !is_equal(&self.token, token) {
            return Err(HelloRefusal::Token);
        }
        Ok(())
    }
}

/// Reason of a refusal because of the token.
pub(super) const WRONG_TOKEN: &str = "wrong token: the token is not the service's";

impl fmt::Display for HelloRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelloRefusal::Version(client) => write!(
                f,
                "the service speaks version {VERSION} of the control language and the client \
                 version {client}: both have to be of one release of knee"
            ),
            HelloRefusal::Service(service) => {
                write!(f, "this is `knee {service}`, and the client expects another service")
            }
            HelloRefusal::Token => f.write_str(WRONG_TOKEN),
        }
    }
}

/// Answer of a service to [`Hello`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum HelloReply<F> {
    /// The client holds the service.
    Welcome(Welcome<F>),
    /// The client is refused; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// Another client holds the service; the connection ends.
    Busy,
}

/// What client and service have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// The machine: they have one clock.
    Machine,
    /// The network namespace too: their traffic passes the loopback interface alone.
    Namespace,
}

impl Sharing {
    /// What this process shares with one of that boot and network namespace; `None`: nothing.
    pub(crate) fn with(boot: &str, namespace: &str) -> Option<Sharing> {
        if boot.is_empty() || boot != boot_id() {
            return None;
        }
        let same = !namespace.is_empty() && namespace == network_namespace();
        Some(if same { Sharing::Namespace } else { Sharing::Machine })
    }
}

/// The answer to a client that gets the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Welcome<F> {
    /// Boot of the service's machine (/proc/sys/kernel/random/boot_id).
    pub boot: String,
    /// The service's network namespace.
    pub namespace: String,
    /// Properties of the service.
    pub facts: F,
}

impl<F> Welcome<F> {
    /// Welcome of a service in this process.
    pub(crate) fn with_facts(facts: F) -> Welcome<F> {
        Welcome { boot: boot_id(), namespace: network_namespace(), facts }
    }
}

/// Identifies the running kernel of one machine. Empty where the kernel does not tell it.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Network namespace of the calling thread, such as `net:[4026531840]`. Empty where the kernel
/// does not tell it.
fn network_namespace() -> String {
    let link = fs::read_link("/proc/thread-self/ns/net");
    link.map_or_else(|_| String::new(), |l| l.display().to_string())
}

/// Compares two secrets in a time that does not depend on where they differ.
fn is_equal(a: &str, b: &str) -> bool {
    let differing = a.bytes().zip(b.bytes()).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_of_any_version_is_understood() {
        let first = r#"{"ask":"hello","version":1,"token":"secret"}"#;
        let hello: Hello = serde_json::from_str(first).unwrap();
        assert_eq!(hello.check("serve udp", ""), Err(HelloRefusal::Version(1)));
        let later = r#"{"ask":"hello","version":99,"service":"serve udp","more":[1]}"#;
        let hello: Hello = serde_json::from_str(later).unwrap();
        assert_eq!(hello.check("serve udp", ""), Err(HelloRefusal::Version(99)));
    }

    #[test]
    fn who_wants_another_service_or_has_no_token_is_told() {
        let hello = Hello::new("serve udp", "secret");
        assert_eq!(hello.check("serve udp", "secret"), Ok(()));
        assert_eq!(hello.check("serve udp", ""), Ok(()));
        assert_eq!(hello.check("serve udp", "other"), Err(HelloRefusal::Token));
        let other = HelloRefusal::Service("serve latency");
        assert_eq!(hello.check("serve latency", ""), Err(other));
        for unfit in [HelloRefusal::Version(1), other, HelloRefusal::Token] {
            assert!(!unfit.to_string().contains('\n'));
        }
    }
}
