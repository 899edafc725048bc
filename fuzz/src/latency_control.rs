//! Any bytes on the control connection of flows, at the head of a record or in a probe. They are
//! what they read as, and nothing panics.

use knee_engine::experiment::latency::payload::{HEADER_BYTES, ProbeDatagram, RecordHeader};
use knee_engine::experiment::latency::wire;
use knee_engine::experiment::latency::wire::{FLOWS_MAX, LatencyReply, LatencyRequest, Lines};
use knee_load::time::Nanos;

/// Lines are short here, so that some are too long.
const LINE_MAX: usize = 4_096;

/// The longest session that the service permits.
const SESSION_MAX: Nanos = Nanos::from_secs(3_600);

/// The bytes are taken as lines, as a head, and as a probe.
pub fn check(data: &[u8]) {
    let mut lines = Lines::new(LINE_MAX);
    lines.push(data);
    while let Ok(Some(line)) = lines.take() {
        if let Ok(ask) = serde_json::from_slice::<LatencyRequest>(&line) {
            heard_by_service(&ask);
        }
        if let Ok(said) = serde_json::from_slice::<LatencyReply>(&line) {
            let again = wire::line(&said);
            assert_eq!(again.iter().filter(|&&b| b == b'\n').count(), 1);
        }
    }
    if let Some(head) = data.first_chunk::<HEADER_BYTES>() {
        let number = u64::from_le_bytes(*head[8..].first_chunk().expect("eight bytes"));
        if let Some(header) = RecordHeader::decode(head, number) {
            assert_eq!(&header.encode(), head);
            assert!(header.length as usize >= HEADER_BYTES);
        }
    }
    if let Some(probe) = ProbeDatagram::decode(data) {
        assert_eq!(probe.encode()[..], *data);
    }
}

fn heard_by_service(ask: &LatencyRequest) {
    let again = wire::line(ask);
    let again: LatencyRequest =
        serde_json::from_slice(&again).expect("what was read can be written");
    assert_eq!(again, *ask);
    if let LatencyRequest::Begin(begin) = ask {
        match begin.check(SESSION_MAX) {
            Ok(()) => assert!(begin.up + begin.down <= FLOWS_MAX && begin.interval > Nanos::ZERO),
            Err(reason) => assert!(!reason.chars().any(char::is_control), "{reason:?}"),
        }
    }
}
