//! Any bytes on the control connection, however they are cut, are the same lines to either side,
//! and nothing panics.

use knee_engine::experiment::udp::wire;
use knee_engine::experiment::udp::wire::{Lines, TooLong, UdpReply, UdpRequest};

/// Lines are short here, so that some are too long.
const LINE_MAX: usize = 512;

/// The first byte says how to cut; the rest is what comes over the connection.
pub fn check(data: &[u8]) {
    let Some((&choice, stream)) = data.split_first() else {
        return;
    };
    let whole = lines(stream, |left| left);
    assert_eq!(lines(stream, |_| 1), whole, "byte by byte");
    let piece = |left: usize| (usize::from(choice) % 31 + 1).min(left);
    assert_eq!(lines(stream, piece), whole, "in pieces");
    for line in &whole.0 {
        assert!(line.len() <= LINE_MAX && !line.contains(&b'\n'));
        if let Ok(ask) = serde_json::from_slice::<UdpRequest>(line) {
            heard_by_service(ask);
        }
        if let Ok(said) = serde_json::from_slice::<UdpReply>(line) {
            heard_by_client(said);
        }
    }
}

fn heard_by_service(ask: UdpRequest) {
    let again = wire::line(&ask);
    let again: UdpRequest = serde_json::from_slice(&again).expect("what was read can be written");
    if let UdpRequest::Begin(begin) = &ask {
        match begin.check() {
            Ok(()) => assert!(begin.size >= 40 && begin.clients > 0),
            Err(reason) => assert!(!reason.chars().any(char::is_control), "{reason:?}"),
        }
    }
    assert_eq!(again, ask);
}

fn heard_by_client(said: UdpReply) {
    let again = wire::line(&said);
    assert_eq!(again.iter().filter(|&&b| b == b'\n').count(), 1);
    if let UdpReply::Record(mut record) = said {
        record.unpack();
        assert!(record.received.arrivals.is_sorted(), "gaps never go back");
    }
}

/// The lines up to the first that is too long, and whether one was.
fn lines(stream: &[u8], piece: impl Fn(usize) -> usize) -> (Vec<Vec<u8>>, bool) {
    let mut reader = Lines::new(LINE_MAX);
    let (mut all, mut at) = (Vec::new(), 0);
    loop {
        match reader.take() {
            Ok(Some(line)) => all.push(line),
            Ok(None) if at == stream.len() => return (all, false),
            Ok(None) => {
                let here = piece(stream.len() - at);
                reader.push(&stream[at..at + here]);
                at += here;
            }
            Err(TooLong) => return (all, true),
        }
    }
}
