//! The service over loopback.

use super::*;
use std::time::Duration;

/// Far beyond what any answer takes: a test that would hang fails instead.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

fn spec(listen: &str) -> QotdSpec {
    QotdSpec {
        listen: listen.parse().unwrap(),
        quote: "Wait for it.".to_owned(),
        allow: Vec::new(),
    }
}

fn client(server: SocketAddr) -> UdpSocket {
    let any = SocketAddr::new(server.ip(), 0);
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(PATIENCE).unwrap();
    socket
}

fn ask(socket: &UdpSocket) -> String {
    let mut quote = [0; 1024];
    socket.send(b"?").unwrap();
    let length = socket.recv(&mut quote).unwrap();
    String::from_utf8(quote[..length].to_vec()).unwrap()
}

#[test]
fn datagrams_and_connections_get_the_quote() {
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let server = QotdServer::start(spec(listen)).unwrap();
        let socket = client(server.address());
        for _ in 0..3 {
            assert_eq!(ask(&socket), "Wait for it.\r\n");
        }
        socket.send(b"").unwrap();
        assert_eq!(socket.recv(&mut [0; 64]).unwrap(), 14, "an empty one asks as well");
        for speaks in [false, true] {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.set_read_timeout(PATIENCE).unwrap();
            if speaks {
                // It may have ended before.
                let _ = stream.write(b"hello");
            }
            let mut quote = [0; 14];
            stream.read_exact(&mut quote).unwrap();
            assert_eq!(&quote, b"Wait for it.\r\n");
            match stream.read(&mut [0; 1]) {
                Ok(count) => assert_eq!(count, 0),
                Err(e) => assert!(speaks && e.kind() == ErrorKind::ConnectionReset, "{e}"),
            }
        }
        let stats = QotdStats { datagrams: 4, answered: 4, refused: 0, connections: 2 };
        assert_eq!(server.stop(), stats);
    }
}

#[test]
fn loopback_clients_are_answered_wherever_it_listens() {
    for (listen, from) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.1")] {
        let server = QotdServer::start(spec(listen)).unwrap();
        let at = (from.parse::<IpAddr>().unwrap(), server.address().port());
        assert_eq!(ask(&client(at.into())), "Wait for it.\r\n");
        let stats = server.stop();
        assert_eq!((stats.datagrams, stats.answered, stats.refused), (1, 1, 0));
    }
}

/// A second network namespace would be another host; the rule itself is what counts.
#[test]
fn beyond_loopback_only_those_allowed_are_answered() {
    let wake = EventFd::new().unwrap();
    let friend: IpAddr = "192.0.2.7".parse().unwrap();
    let beyond = |listen| QotdSpec { allow: vec![friend], ..spec(listen) };
    let server = QuoteServer::bind(beyond("0.0.0.0:0"), &wake).unwrap();
    for (from, expected) in [
        ("127.0.0.1:5000", true),
        ("[::ffff:127.0.0.9]:5000", true),
        ("[::1]:5000", true),
        ("192.0.2.7:5000", true),
        ("192.0.2.8:5000", false),
        // A service: it might answer in turn.
        ("127.0.0.1:53", false),
    ] {
        assert_eq!(server.may_answer(from.parse().unwrap()), expected, "{from}");
    }
}

#[test]
fn another_service_is_not_answered() {
    let server = QotdServer::start(spec("127.0.0.1:0")).unwrap();
    let own_port = server.address().port();
    let twin = UdpSocket::bind(("127.0.0.2", own_port)).unwrap();
    twin.send_to(b"?", server.address()).unwrap();
    ask(&client(server.address()));
    let stats = server.stop();
    assert_eq!((stats.datagrams, stats.refused), (2, 1));
}

#[test]
fn an_address_in_use_and_a_bad_quote_are_errors() {
    let server = QotdServer::start(spec("127.0.0.1:0")).unwrap();
    let twice = QotdServer::start(QotdSpec { listen: server.address(), ..QotdSpec::default() });
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::AddrInUse);
    let bad = QotdServer::start(QotdSpec { quote: "\u{7}".to_owned(), ..spec("127.0.0.1:0") });
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_quote_is_short_printable_and_ends_its_lines() {
    assert_eq!(parse_quote("a\nb\r\n").unwrap(), "a\r\nb\r\n");
    assert_eq!(parse_quote("x").unwrap(), "x\r\n");
    for bad in ["", "\n", "é", "a\tb", "a\rb", &"x".repeat(511)] {
        assert!(parse_quote(bad).is_err(), "{bad:?}");
    }
    assert!(parse_quote(&"x".repeat(510)).is_ok());
}

#[test]
fn every_day_has_a_quote() {
    assert!(QUOTES.iter().all(|quote| parse_quote(quote).is_ok()));
    assert!(QUOTES.contains(&of_the_day().as_str()));
}

#[test]
fn what_is_sent_there_is_never_refused() {
    let sink = UdpSink::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let sender = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    sender.connect(sink.address()).unwrap();
    // Far more than any buffer holds.
    for _ in 0..10_000 {
        assert_eq!(sender.send(&[0; 64]).unwrap(), 64);
    }
}
