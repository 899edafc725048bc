//! The first connection to a target, before any load. Reports in one line why a load cannot work.

use super::{HUNG_UP, Link, Tls, TlsTarget};
use crate::error::{RunError, reason};
use crate::exchange::http2::frame::PREFACE;
use crate::exchange::websocket::{frame, handshake};
use knee_load::measure::Agreed;
use knee_load::spec::{HttpVersion, Protocol, Target};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Result of the first connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// The version of HTTP in use; never `Auto`.
    pub version: HttpVersion,
    /// Parameters of TLS, if any.
    pub agreed: Option<Agreed>,
}

/// An empty SETTINGS frame: the least that follows the preface (RFC 9113 §3.4, §6.5).
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// Performs the handshakes of TLS and HTTP/2 over `stream`, as the target asks. Reads and writes of
/// the stream end after `patience`.
///
/// # Errors
/// [`RunError::Unreachable`]: the target speaks another protocol, or its identity is wrong.
pub(crate) fn greet(
    stream: &mut (impl Read + Write),
    target: &Target,
    tls: Option<TlsTarget>,
    patience: Duration,
) -> Result<Greeting, RunError> {
    let told = |why: String| RunError::Unreachable(format!("{}: {why}", target.endpoint));
    let Some(tls) = tls else {
        let version = target.version();
        match target.protocol {
            Protocol::WebSocket(_) => opens_websocket(stream, None, target).map_err(told)?,
            Protocol::Http(_) if version == HttpVersion::Http2 => {
                speaks_http2(stream).map_err(told)?;
            }
            Protocol::Http(_) => {}
        }
        return Ok(Greeting { version, agreed: None });
    };
    let (mut tls, agreed) = secure(stream, tls, patience).map_err(told)?;
    if let Protocol::WebSocket(_) = target.protocol {
        opens_websocket(stream, Some(&mut tls), target).map_err(told)?;
    }
    let is_h2 = agreed.protocol.as_deref() == Some("h2");
    let version = match (target.version(), is_h2) {
        (HttpVersion::Http2, false) => {
            let why = "it does not choose HTTP/2 (ALPN): use --http1.1, or leave --http2 out";
            return Err(told(why.to_owned()));
        }
        (_, true) => HttpVersion::Http2,
        (_, false) => HttpVersion::Http11,
    };
    Ok(Greeting { version, agreed: Some(agreed) })
}

fn secure(
    stream: &mut (impl Read + Write),
    target: TlsTarget,
    patience: Duration,
) -> Result<(Tls, Agreed), String> {
    let begun = Instant::now();
    let own = Arc::clone(&target.client_certificate);
    let mut target = target;
    let mut tls = Tls::new(&mut target)?;
    let mut buffer = vec![0; 16 << 10];
    loop {
        let mut wire = Vec::new();
        tls.take_wire(&mut wire);
        stream.write_all(&wire).map_err(|error| lost(&error))?;
        if let Some(agreed) = tls.agreed() {
            if own.was_asked_for() && tls.may_refuse_client_later() {
                takes_the_client(stream, &mut tls)?;
            }
            return Ok((tls, agreed));
        }
        if begun.elapsed() > patience {
            return Err(SILENT.to_owned());
        }
        let count = stream.read(&mut buffer).map_err(|error| lost(&error))?;
        if count == 0 {
            return Err(format!("{HUNG_UP}: if it speaks cleartext, use http://"));
        }
        if let Err(why) = take_in(&mut tls, &buffer[..count]) {
            let mut alert = Vec::new();
            tls.take_wire(&mut alert);
            // The alert, if it still listens.
            let _ = stream.write_all(&alert);
            return Err(why);
        }
    }
}

/// Processes bytes of the handshake and of what follows it.
fn take_in(tls: &mut Tls, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() && !tls.is_secured() {
        tls.secure(&mut rest)?;
    }
    tls.open(rest, |_, _| {})
}

/// A TLS 1.3 server refuses the client's certificate only after the handshake (RFC 8446 §4.4.2.4).
/// One that accepts it sends tickets or SETTINGS, or nothing.
fn takes_the_client(stream: &mut impl Read, tls: &mut Tls) -> Result<(), String> {
    let mut buffer = vec![0; 16 << 10];
    match stream.read(&mut buffer) {
        Ok(count @ 1..) => take_in(tls, &buffer[..count])?,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Ok(());
        }
        Ok(0) | Err(_) => return Err(NOT_TAKEN.to_owned()),
    }
    if tls.is_ended() {
        return Err(NOT_TAKEN.to_owned());
    }
    Ok(())
}

const NOT_TAKEN: &str =
    "it asks for a certificate of the client and closed the connection: see --cert and --key";

const SILENT: &str = "it does not answer in TLS in time: if it speaks cleartext, use http://";

fn lost(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SILENT.to_owned(),
        _ => format!("the TLS handshake failed: {}", reason(error)),
    }
}

/// Random bytes of the first handshake's key, whose connection carries no load.
const KEY: [u8; 16] = *b"knee's greeting.";

/// Checks that a target upgrades to WebSocket, and closes that connection.
fn opens_websocket(
    stream: &mut (impl Read + Write),
    mut tls: Option<&mut Tls>,
    target: &Target,
) -> Result<(), String> {
    let Some(request) = target.requests.first() else {
        return Ok(());
    };
    let key = handshake::key_of(KEY);
    let mut ask = handshake::request_head(request);
    handshake::put_key(&mut ask, &key);
    let send = |stream: &mut dyn Write, tls: &mut Option<&mut Tls>, bytes: &[u8]| {
        let mut wire = Vec::new();
        match tls {
            Some(tls) => tls.seal(bytes, &mut wire),
            None => wire.extend_from_slice(bytes),
        }
        stream.write_all(&wire)
    };
    let lost =
        |error: std::io::Error| format!("it does not upgrade to WebSocket: {}", reason(&error));
    send(stream, &mut tls, &ask).map_err(lost)?;
    let offered = handshake::offered(request);
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let count = stream.read(&mut buffer).map_err(lost)?;
        if count == 0 {
            return Err("it closed the connection in the WebSocket handshake".to_owned());
        }
        match &mut tls {
            Some(tls) => tls.open(&buffer[..count], |plain, _| answer.extend_from_slice(plain))?,
            None => answer.extend_from_slice(&buffer[..count]),
        }
        let read = handshake::read_response(&answer, &key, offered);
        if read.map_err(|violation| violation.to_string())?.is_some() {
            break;
        }
    }
    let mut close = Vec::new();
    frame::put_close(&mut close, frame::close_code::NORMAL, Some([0; 4]));
    // Whether it still listens says nothing of the load.
    let _ = send(stream, &mut tls, &close);
    Ok(())
}

/// Checks that a target answers the preface with SETTINGS (RFC 9113 §3.4).
fn speaks_http2(stream: &mut (impl Read + Write)) -> Result<(), String> {
    let not = || "it does not speak HTTP/2 without TLS: use --http1.1, or https://".to_owned();
    let mut header = [0; 9];
    let answered = stream
        .write_all(&[PREFACE, SETTINGS].concat())
        .and_then(|()| stream.read_exact(&mut header));
    match answered {
        Ok(()) if header[3] == 4 && header[5..] == [0; 4] => Ok(()),
        _ => Err(not()),
    }
}
