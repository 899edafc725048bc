//! A JSON object per line over TCP: what the control connections of all services share.

pub(crate) mod clients;
pub(crate) mod connection;
mod greeting;
pub(crate) mod identity;
mod lines;
mod talk;

pub(crate) use greeting::Door;
pub use greeting::{Greeting, Hello};
pub use lines::{Lines, TooLong, line};
pub(crate) use talk::{Lost, SILENCE_NS, ServiceClock, Talk, printable};

use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};

/// What client and service share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// The machine, so that they have one clock.
    Machine,
    /// The network namespace too, so that what they send passes the loopback interface alone.
    Namespace,
}

impl Sharing {
    /// With a process of this boot in this network namespace; `None`: not even the machine.
    pub(crate) fn with(boot: &str, namespace: &str) -> Option<Sharing> {
        if boot.is_empty() || boot != identity::boot() {
            return None;
        }
        let same = !namespace.is_empty() && namespace == identity::network_namespace();
        Some(if same {
            Sharing::Namespace
        } else {
            Sharing::Machine
        })
    }
}

/// How a service greets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Welcome<F> {
    /// The machine's boot (/proc/sys/kernel/random/boot_id): the same on one machine alone.
    pub boot: String,
    /// The service's network namespace.
    pub namespace: String,
    /// What it is.
    pub facts: F,
}

impl<F> Welcome<F> {
    /// That of a service in this process.
    pub(crate) fn from_here(facts: F) -> Welcome<F> {
        Welcome {
            boot: identity::boot(),
            namespace: identity::network_namespace(),
            facts,
        }
    }
}

/// A number that nobody can guess: the standard library seeds its hashers from the system's source
/// of randomness.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Whether two secrets are equal, in a time that does not tell where they differ.
pub(crate) fn is_equal(a: &str, b: &str) -> bool {
    let differing = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differing == 0
}
