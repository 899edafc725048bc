//! The stages of an operation's response time.

use crate::time::Nanos;
use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A part of an operation's response time. The stages follow one another without a gap, so that
/// they sum to the response time exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the intended time until the generator began the operation: its pacing error.
    Pacing,
    /// Until a connection was free for it.
    ConnectionWait,
    /// Until its new connection was established.
    Connect,
    /// Until that connection was secured: its TLS handshake.
    Tls,
    /// Until a stream of a connection was free for it, where a configured limit was reached.
    StreamWait,
    /// Until a stream was free for it, where the target's limit was reached.
    TargetStreamWait,
    /// Until the generator handed the request to the kernel.
    Write,
    /// Until the kernel had taken all of the request: it waited for the target's receive window.
    WindowWait,
    /// Until the first byte of the response arrived.
    FirstByte,
    /// Until the last message of its stream arrived.
    Streaming,
    /// Until its last byte arrived.
    Receive,
}

/// Who causes a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The generator's own delay.
    Generator,
    /// A limit that the user configured, such as `-c`.
    Limit,
    /// The target, and the path to it where the two cannot be told apart.
    Target,
    /// The host of the server, where an observer there tells it from the network.
    ServerHost,
    /// The network, both ways, where an observer tells it from the server's host.
    Network,
}

/// Declares the table of stages: the variant, its owner, its key in reports and its name in
/// sentences, in the order of the variants.
macro_rules! stages {
    ($($stage:ident $owner:ident $key:literal $words:literal;)*) => {
        const ROWS: &[(Stage, Owner, &str, &str)] =
            &[$((Stage::$stage, Owner::$owner, $key, $words),)*];
    };
}

stages! {
    Pacing Generator "pacing" "the generator's late start";
    ConnectionWait Limit "connection_wait" "waiting for a free connection";
    Connect Target "connect" "connecting";
    Tls Target "tls" "the TLS handshake";
    StreamWait Limit "stream_wait" "waiting for a free stream";
    TargetStreamWait Target "target_stream_wait" "waiting for a stream that the target permits";
    Write Generator "write" "the generator's late write";
    WindowWait Target "window_wait" "waiting for the target's receive window";
    FirstByte Target "first_byte" "waiting for the first byte";
    Streaming Target "streaming" "waiting for the last message";
    Receive Target "receive" "receiving the rest of the response";
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = ROWS.len();

    /// All stages in their order.
    pub fn all() -> impl Iterator<Item = Stage> {
        ROWS.iter().map(|(stage, ..)| *stage)
    }

    /// Who causes its delay.
    pub fn owner(self) -> Owner {
        ROWS[self as usize].1
    }

    /// Its key in reports.
    pub fn key(self) -> &'static str {
        ROWS[self as usize].2
    }

    /// Its name in sentences.
    pub fn words(self) -> &'static str {
        ROWS[self as usize].3
    }
}

/// Reads what is known of stages or owners, and skips those that a later version has.
///
/// # Errors
/// Not a map; a value of a known one is not of its type.
pub fn known_keys<'de, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: DeserializeOwned + Ord,
    V: DeserializeOwned,
{
    let all = BTreeMap::<String, serde_json::Value>::deserialize(from)?;
    let known = all.into_iter().filter_map(|(name, value)| {
        let name = IntoDeserializer::<serde::de::value::Error>::into_deserializer(name);
        let name = K::deserialize(name).ok()?;
        Some(V::deserialize(value).map(|value| (name, value)))
    });
    known.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// The length of each stage of an operation, by `stage as usize`.
pub type Stages = [Nanos; Stage::COUNT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_stages() {
        for (index, stage) in Stage::all().enumerate() {
            assert_eq!(stage as usize, index);
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.key());
        }
    }
}
