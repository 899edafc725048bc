//! Packets of connections whose protocol numbers them itself, as QUIC does.

use super::Histogram;
use super::sums::merged;
use serde::{Deserialize, Serialize};

merged! {
/// The packets of all connections of a worker, or of several together.
///
/// A sender knows which of its packets were lost (RFC 9002 §6). Which packets of the server were
/// lost is known only there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketsMeasured {
    /// Packets sent, those that repeat lost data included.
    pub sent: u64 => add,
    /// Packets sent that were lost: later ones were acknowledged, or a time limit was over.
    pub lost: u64 => add,
    /// Received datagrams.
    pub received: u64 => add,
    /// Complete responses.
    pub responses: u64 => add,
    /// From the start to the end of those responses during which packets of their connection were
    /// lost.
    pub beside_loss: Histogram => merge,
}
}

impl PacketsMeasured {
    /// Adds another's.
    pub fn merge(&mut self, mut other: PacketsMeasured) {
        self.merge_fields(&mut other);
    }
}
