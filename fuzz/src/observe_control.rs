//! Each line between an observer and its client that is a message reads back as itself, and no
//! other panics. How lines are cut is checked with `udp_control`.

use knee_engine::observe::wire::{ObserverReply, ObserverRequest};

/// Lines that either side might read.
pub fn check(data: &[u8]) {
    for line in data.split(|&byte| byte == b'\n') {
        if let Ok(ask) = serde_json::from_slice::<ObserverRequest>(line) {
            let again = serde_json::to_vec(&ask).expect("what was read can be written");
            assert_eq!(serde_json::from_slice::<ObserverRequest>(&again).ok(), Some(ask));
        }
        if let Ok(say) = serde_json::from_slice::<ObserverReply>(line) {
            let again = serde_json::to_vec(&say).expect("what was read can be written");
            assert_eq!(serde_json::from_slice::<ObserverReply>(&again).ok(), Some(say));
        }
    }
}
