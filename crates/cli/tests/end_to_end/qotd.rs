//! `knee serve qotd`, over UDP and TCP.

use crate::support::{KneeServer, run};
use std::io::Read;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// The answer to a datagram.
fn ask(address: &str) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"anything", address).unwrap();
    let mut answer = [0; 1_000];
    let (length, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!(from.to_string(), address);
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

/// What a connection says before it is closed.
fn connect(address: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = String::new();
    connection.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn it_answers_datagrams_and_connections_and_tells_of_them() {
    let listen = ["qotd", "--listen", "127.0.0.1:0"];
    let server =
        KneeServer::of(&[&listen[..], &["--quote", "So it goes.", "--json", "-"]].concat());
    for _ in 0..3 {
        assert_eq!(ask(&server.address), "So it goes.\r\n");
    }
    for _ in 0..2 {
        assert_eq!(connect(&server.address), "So it goes.\r\n");
    }
    let served = server.served();
    assert_eq!(served["datagrams"], 3, "{served}");
    assert_eq!(served["answered"], 3, "{served}");
    assert_eq!(served["connections"], 2, "{served}");
}

#[test]
fn it_has_a_quote_of_its_own() {
    let server = KneeServer::of(&["qotd", "--listen", "127.0.0.1:0"]);
    let quote = ask(&server.address);
    assert!(quote.len() > 10 && quote.ends_with("\r\n"), "{quote:?}");
    assert_eq!(connect(&server.address), quote);
    let (told, status) = server.terminate();
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("datagrams    1, answered 1"), "{told}");
}

#[test]
fn a_port_in_use_is_one_line_and_exit_2() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(&["serve", "qotd", "--listen", &address]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert_eq!(ended.stdout, "");
    let expected = format!("error: --listen: cannot listen on {address}: ");
    assert!(ended.stderr.starts_with(&expected), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}
