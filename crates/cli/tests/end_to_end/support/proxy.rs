//! A small HTTP proxy in the test itself, which logs what it is asked.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// What a proxy does with a request.
#[derive(Clone, Debug)]
pub enum ProxyAnswer {
    /// Sends it on to this server, whatever it names.
    To(String),
    /// Answers it with this head.
    Head(&'static str),
    /// Closes the connection.
    Nothing,
}

/// A running proxy. Its threads end with their connections, and the one that accepts ends with the
/// process.
pub struct LoggingProxy {
    /// `127.0.0.1:PORT`
    pub address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl LoggingProxy {
    /// Starts one.
    pub fn start(answer: ProxyAnswer) -> LoggingProxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (answer, log) = (answer.clone(), Arc::clone(&log));
                // A peer that is gone ends the conversation.
                std::thread::spawn(move || converse(client, &answer, &log));
            }
        });
        LoggingProxy { address, seen }
    }

    /// The requests since the last call: method and target, and the value of Proxy-Authorization
    /// where there is one.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn converse(mut client: TcpStream, answer: &ProxyAnswer, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let line = head.lines().next()?.strip_suffix(" HTTP/1.1")?;
    let authorization = head.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: "));
    let user = authorization.map_or(String::new(), |value| format!(" {value}"));
    log.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{line}{user}"));
    let mut server = match answer {
        ProxyAnswer::To(address) => TcpStream::connect(address).ok()?,
        ProxyAnswer::Head(head) => {
            client.write_all(format!("{head}\r\nContent-Length: 0\r\n\r\n").as_bytes()).ok()?;
            return client.read_exact(&mut byte).ok();
        }
        ProxyAnswer::Nothing => return None,
    };
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    } else {
        let (method, url) = line.split_once(' ')?;
        let path = url.strip_prefix("http://").and_then(|rest| Some(&rest[rest.find('/')?..]))?;
        let rest = &head[head.find("\r\n")?..];
        let request = format!("{method} {path} HTTP/1.1\r\nConnection: close{rest}");
        server.write_all(request.as_bytes()).ok()?;
    }
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    client.shutdown(Shutdown::Both).ok()
}
