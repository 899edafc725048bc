//! Where the connections of a trial went.

use serde::{Deserialize, Serialize};

/// The addresses and proxies of the connections of one worker, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutedConnections {
    /// The addresses, in the order of their first connections.
    pub addresses: Vec<AddressUse>,
    /// Lookups of names in the course of the trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lookups: u64,
    /// The proxies, each with the option or variable that names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<String>,
    /// How a proxy refused a connection to the target, for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_because: Option<String>,
}

/// The connections to one address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressUse {
    /// Address and port.
    pub address: String,
    /// Connections that were begun.
    pub opened: u64,
    /// Connections that were established.
    pub answered: u64,
    /// Why no connections go to it: how the attempt before the trial ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_because: Option<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl RoutedConnections {
    /// Adds those of another worker, agent or slice.
    pub fn merge(&mut self, other: RoutedConnections) {
        for theirs in other.addresses {
            let mine = self.addresses.iter_mut().find(|mine| mine.address == theirs.address);
            match mine {
                Some(mine) => {
                    mine.opened += theirs.opened;
                    mine.answered += theirs.answered;
                    mine.left_out_because =
                        mine.left_out_because.take().or(theirs.left_out_because);
                }
                None => self.addresses.push(theirs),
            }
        }
        self.lookups += other.lookups;
        for proxy in other.proxies {
            if !self.proxies.contains(&proxy) {
                self.proxies.push(proxy);
            }
        }
        self.refused_because = self.refused_because.take().or(other.refused_because);
    }

    /// Whether the connections went to one address that needs no words.
    pub fn is_plain(&self) -> bool {
        self.addresses.len() < 2 && self.lookups == 0 && self.proxies.is_empty()
    }
}
