//! Datagrams lost, doubled, delayed and out of order.

use super::rig::{BODY_BYTES, Path, Peer, Rig, ok_response};
use super::*;
use knee_load::measure::Status;

/// Every operation ends with its whole response, whatever the path does.
#[test]
fn responses_are_whole_over_bad_paths() {
    for seed in 0..200 {
        let mut rig = Rig::new(Peer::default(), Path::bad(seed));
        rig.ask(20, 0);
        rig.run();
        assert_eq!(rig.statuses(), vec![Status::Http(200); 20], "seed {seed}");
        assert_eq!(rig.received, 20 * ok_response().len() as u64, "seed {seed}");
        assert!(rig.violations.is_empty() && rig.resets.is_empty(), "seed {seed}");
        assert_eq!(rig.client.state(), ConnectionState::Open, "seed {seed}");
    }
}

#[test]
fn bodies_are_whole_over_bad_paths() {
    for seed in 0..20 {
        let mut rig = Rig::new(Peer { window: 50_000, ..Peer::default() }, Path::bad(seed));
        rig.ask(2, 1);
        rig.run();
        assert_eq!(rig.statuses().len(), 2, "seed {seed}");
        assert_eq!(rig.server.body_bytes, 2 * BODY_BYTES as u64, "seed {seed}");
    }
}
