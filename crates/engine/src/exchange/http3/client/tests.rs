//! The client against a server by quinn-proto over a simulated path, and against servers that
//! misbehave.

mod losses;
mod rig;
mod violations;

use super::*;
use knee_load::measure::Status;
use rig::{Path, Peer, Rig, ok_response};

#[test]
fn requests_are_answered() {
    let mut rig = Rig::new(Peer::default(), Path::perfect());
    rig.ask(100, 0);
    rig.run();
    assert_eq!(rig.statuses(), vec![Status::Http(200); 100]);
    assert_eq!(rig.violations, Vec::<String>::new());
    let mut handshakes = Handshakes::default();
    rig.client.note(&mut handshakes);
    assert_eq!((handshakes.full, handshakes.resumed), (1, 0));
    let agreed = handshakes.agreed.unwrap();
    assert_eq!((agreed.version.as_str(), agreed.protocol.as_deref()), ("1.3", Some("h3")));
}

/// The server permits five streams: a sixth request waits until it permits more.
#[test]
fn the_servers_limit_of_streams_holds() {
    let mut rig = Rig::new(Peer { streams: 5, ..Peer::default() }, Path::perfect());
    rig.ask(50, 0);
    rig.run();
    assert_eq!(rig.statuses().len(), 50);
    assert!(rig.under_way_max <= 5, "{}", rig.under_way_max);
    assert!(rig.was_targets_limit);
}

#[test]
fn a_long_body_respects_the_windows() {
    let mut rig = Rig::new(Peer { window: 10_000, ..Peer::default() }, Path::perfect());
    rig.ask(4, 1);
    rig.run();
    assert_eq!(rig.statuses(), vec![Status::Http(200); 4]);
    assert_eq!(rig.server.body_bytes, 4 * rig::BODY_BYTES as u64);
    assert_eq!(rig.written, 4);
}

#[test]
fn an_operation_is_cancelled_and_others_go_on() {
    let mut rig = Rig::new(Peer { holds_back: 1, ..Peer::default() }, Path::perfect());
    rig.ask(3, 0);
    rig.run_for(Nanos::from_secs(1));
    assert_eq!(rig.statuses().len(), 2);
    let after = rig.cancel(0);
    assert_eq!(after, AfterCancel::GoesOn);
    rig.ask(1, 0);
    rig.run_for(Nanos::from_secs(1));
    assert_eq!(rig.statuses().len(), 3);
}

/// A peer that vanished is not waited for by each operation anew.
#[test]
fn a_silent_server_breaks_the_connection() {
    let mut rig = Rig::new(Peer::default(), Path::perfect());
    rig.ask(1, 0);
    rig.run();
    rig.run_for(Nanos::from_millis(100));
    rig.path.is_cut = true;
    rig.ask(1, 0);
    rig.run_for(Nanos::from_secs(5));
    assert_eq!(rig.cancel(1), AfterCancel::Broken);
    assert_eq!(rig.client.state(), ConnectionState::Broken);
}

#[test]
fn the_idle_limit_ends_the_connection() {
    let mut rig = Rig::new(Peer::default(), Path::perfect());
    rig.ask(1, 0);
    rig.run();
    rig.run_for(Nanos::from_secs(40));
    assert_eq!(rig.client.state(), ConnectionState::Broken);
    assert_eq!(rig.statuses().len(), 1);
}

#[test]
fn goaway_lets_begun_requests_end() {
    let peer = Peer { goaway_after: Some(2), holds_back: 1, ..Peer::default() };
    let mut rig = Rig::new(peer, Path::perfect());
    rig.ask(4, 0);
    rig.run_for(Nanos::from_secs(1));
    assert_eq!(rig.unprocessed, 2, "streams 8 and 12");
    assert_eq!(rig.client.state(), ConnectionState::Closing);
    assert_eq!(rig.client.capacity(&rig.shared).operations, 0);
    rig.cancel(0);
    assert_eq!(rig.client.state(), ConnectionState::Broken, "nothing is under way");
}

#[test]
fn a_close_ends_what_is_under_way() {
    for (code, outcome) in
        [(Http3Code::NO_ERROR, Outcome::Closed), (Http3Code::INTERNAL_ERROR, Outcome::StreamReset)]
    {
        let peer = Peer { closes_with: Some(code.0), ..Peer::default() };
        let mut rig = Rig::new(peer, Path::perfect());
        rig.ask(1, 0);
        rig.run_for(Nanos::from_secs(1));
        assert_eq!(rig.failed, [outcome], "{code}");
    }
}

#[test]
fn resets_of_streams_have_their_outcomes() {
    for (code, outcome, told) in [
        (Http3Code::REQUEST_REJECTED, Outcome::RefusedStream, None),
        (
            Http3Code::INTERNAL_ERROR,
            Outcome::StreamReset,
            Some("RESET_STREAM with H3_INTERNAL_ERROR"),
        ),
        (Http3Code(0x1234), Outcome::StreamReset, Some("RESET_STREAM with error code 0x1234")),
    ] {
        let peer = Peer { resets_with: Some(code.0), ..Peer::default() };
        let mut rig = Rig::new(peer, Path::perfect());
        rig.ask(1, 0);
        rig.run_for(Nanos::from_secs(1));
        assert_eq!(rig.failed, [outcome]);
        assert_eq!(rig.resets.first().map(String::as_str), told);
        assert_eq!(rig.client.state(), ConnectionState::Open);
    }
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let mut rig = Rig::named("other.example", Peer::default(), Path::perfect());
    rig.run_for(Nanos::from_secs(5));
    assert!(!rig.client.is_secured());
    let Some(HandshakeFault::Tls(rustls::Error::InvalidCertificate(_))) = rig.fault else {
        panic!("{:?}", rig.fault);
    };
}

#[test]
fn a_server_without_http3_is_told_by_its_alert() {
    let mut rig = Rig::new(Peer { alpn: b"h2", ..Peer::default() }, Path::perfect());
    rig.run_for(Nanos::from_secs(5));
    let alert = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    assert_eq!(rig.fault, Some(HandshakeFault::Tls(alert)));
}

#[test]
fn an_answer_before_the_whole_request_ends_it() {
    let peer = Peer { answers_early: true, window: 1_000, ..Peer::default() };
    let mut rig = Rig::new(peer, Path::perfect());
    rig.ask(1, 1);
    rig.run_for(Nanos::from_secs(1));
    assert_eq!(rig.statuses(), [Status::Http(200)]);
    assert_eq!(rig.written, 0);
    assert_eq!(rig.client.state(), ConnectionState::Open);
}

#[test]
fn interim_responses_and_trailers_are_permitted() {
    let section = |fields: &[(&str, &str)]| rig::headers(fields);
    let response = [
        section(&[(":status", "103"), ("link", "</a>")]),
        rig::unknown_frame(),
        section(&[(":status", "200")]),
        rig::data(b"content"),
        rig::unknown_frame(),
        section(&[("server-timing", "a")]),
        rig::unknown_frame(),
    ]
    .concat();
    let mut rig = Rig::new(Peer { response, ..Peer::default() }, Path::perfect());
    rig.ask(2, 0);
    rig.run();
    assert_eq!(rig.statuses(), vec![Status::Http(200); 2]);
    assert_eq!(rig.violations, Vec::<String>::new());
    assert!(!ok_response().is_empty());
}

#[test]
fn a_request_leaves_with_the_handshake_and_goes_again_where_that_is_refused() {
    for (is_known, request, roundtrips) in [(true, 0, 1), (false, 0, 2), (false, 1, 2)] {
        let mut first = Rig::new(Peer::default(), Path::perfect());
        assert!(!first.client.takes_early(), "there is no session yet");
        first.ask(1, 0);
        first.run();
        let mut again = first.again(is_known);
        assert!(again.client.takes_early());
        let began = again.now;
        again.begin(request);
        assert_eq!(again.client.capacity(&again.shared).operations, 0, "others wait");
        again.run();
        let took_ms = (again.now - began).0 / 1_000_000;
        let is_short = request == 0;
        assert!(took_ms >= 2 * roundtrips && (!is_short || took_ms == 2 * roundtrips), "{took_ms}");
        again.ask(1, 0);
        again.run();
        assert_eq!((again.answered.len(), &again.failed[..]), (2, &[][..]));
        assert_eq!(again.server.body_bytes, if is_short { 0 } else { rig::BODY_BYTES as u64 });
        assert_eq!(again.client.is_early_taken(), is_known);
        let mut handshakes = Handshakes::default();
        again.client.note(&mut handshakes);
        let early = handshakes.early_data;
        assert_eq!([early.taken, early.refused], [u64::from(is_known), u64::from(!is_known)]);
        assert_eq!(handshakes.resumed, u64::from(is_known));
    }
}
