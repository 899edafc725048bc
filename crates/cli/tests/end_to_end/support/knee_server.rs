//! `knee serve` in a process of its own.

use super::process::{Ended, knee, signal};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running reference server; killed when dropped.
pub struct KneeServer {
    /// Absent once it was terminated.
    child: Option<Child>,
    /// `127.0.0.1:40123`
    pub address: String,
    /// The PEM file of the certificate to trust, where it made one for TLS.
    pub certificate: Option<String>,
}

impl KneeServer {
    /// Starts one on a free port that tells what it served as JSON, and waits until it listens.
    pub fn start(options: &[&str]) -> KneeServer {
        let always: &[&str] = &["--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
        KneeServer::with(&[always, options].concat())
    }

    /// Starts one with these options alone.
    pub fn with(options: &[&str]) -> KneeServer {
        KneeServer::of(&[&["http"], options].concat())
    }

    /// Starts a server of any kind.
    pub fn of(kind_and_options: &[&str]) -> KneeServer {
        KneeServer::placed(kind_and_options, |_| {})
    }

    /// Starts a server of any kind where `place` puts it.
    pub fn placed(kind_and_options: &[&str], place: impl FnOnce(&mut Command)) -> KneeServer {
        let mut command = knee(&[&["serve"], kind_and_options].concat());
        place(&mut command);
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        let mut next = || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line
        };
        let mut line = next();
        let certificate = line.trim().strip_prefix("certificate ").map(String::from);
        if certificate.is_some() {
            line = next();
        }
        let address = line.trim().strip_prefix("listening on ");
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_string();
        KneeServer { child: Some(child), address, certificate }
    }

    pub fn url(&self) -> String {
        match self.certificate {
            Some(_) => format!("https://{}/", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// Ends it as a service manager does; what it printed after it listened, and its status.
    pub fn terminate(self) -> (String, Option<i32>) {
        self.end_by(libc::SIGTERM)
    }

    /// Ends it by this signal; the same.
    pub fn end_by(mut self, number: libc::c_int) -> (String, Option<i32>) {
        let child = self.child.take().unwrap();
        signal(&child, number);
        let ended = Ended::of(child);
        (ended.stdout, ended.status)
    }

    /// Ends it once it has read all that clients who are gone sent; what it served.
    pub fn served(self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        while connections(&self.address) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (rest, status) = self.terminate();
        assert_eq!(status, Some(0), "{rest}");
        serde_json::from_str(&rest).unwrap_or_else(|e| panic!("{e}: {rest}"))
    }
}

/// Connections to this address that the server there has not closed.
pub fn connections(address: &str) -> usize {
    // A path of a Unix socket has no port.
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let Some(port) = port else {
        return 0;
    };
    let ours = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().filter(|row| {
        let mut columns = row.split_whitespace().skip(1);
        let is_ours = columns.next().is_some_and(|local| local.ends_with(&ours));
        // ESTABLISHED or, where the client has closed, CLOSE_WAIT.
        is_ours && matches!(columns.nth(1), Some("01" | "08"))
    });
    rows.count()
}

impl Drop for KneeServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself, which the test has noticed.
            let _ = child.kill();
            let _ = child.wait();
            // A server that is killed leaves it.
            if let Some(certificate) = &self.certificate {
                let _ = std::fs::remove_file(certificate);
            }
        }
    }
}
