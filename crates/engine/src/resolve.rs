//! From an endpoint to an address that answers.

use crate::RunError;
use crate::sys::socket::{Address, RawAddress};
use knee_core::spec::Endpoint;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The first address of the endpoint that accepts a connection, tried in the order in which the
/// resolver gives them (RFC 6724).
///
/// # Errors
/// [`RunError::Unreachable`]: what was tried and what came of it.
pub fn reach(endpoint: &Endpoint, patience: Duration) -> Result<(RawAddress, String), RunError> {
    match endpoint {
        Endpoint::Unix { path } => reach_unix(path),
        Endpoint::Tcp { host, port } => reach_tcp(host, *port, patience),
    }
}

fn reach_unix(path: &str) -> Result<(RawAddress, String), RunError> {
    let refused = |error: io::Error| {
        RunError::Unreachable(format!(
            "cannot connect to the Unix socket {path}: {}",
            reason(&error)
        ))
    };
    let address = Address::Unix(PathBuf::from(path));
    let raw = RawAddress::new(&address).map_err(refused)?;
    UnixStream::connect(path).map_err(refused)?;
    Ok((raw, address.to_string()))
}

fn reach_tcp(host: &str, port: u16, patience: Duration) -> Result<(RawAddress, String), RunError> {
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|e| RunError::Unreachable(format!("cannot resolve '{host}': {}", reason(&e))))?
        .collect();
    let mut tried = Vec::new();
    for address in addresses {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(_) => {
                let address = Address::Tcp(address);
                let raw = RawAddress::new(&address);
                let raw = raw.map_err(|e| RunError::Unreachable(reason(&e)))?;
                return Ok((raw, address.to_string()));
            }
            Err(error) => tried.push(format!("{address}: {}", reason(&error))),
        }
    }
    if tried.is_empty() {
        return Err(RunError::Unreachable(format!("'{host}' has no address")));
    }
    Err(RunError::Unreachable(format!(
        "cannot connect to {}",
        tried.join("; ")
    )))
}

/// An error in words, without the number of the operating system.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = text
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(text);
    text.to_lowercase()
}
