//! `knee serve http --tls`: the certificate, and where clients find what to trust.

use crate::args::{RESUMES, VERSIONS, one_of};
use crate::failure::Failure;
use clap::Args;
use knee_engine::serve::http::{Identity, IdentityError, ServerTls};
use knee_engine::sys::socket::Address;
use knee_load::spec::{TlsResume, TlsVersion};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How a server secures its connections.
#[derive(Args, Clone, Debug)]
pub struct ServerTlsArgs {
    /// TLS on every connection. Without --cert a certificate is made at the start, for localhost
    /// and this host, valid for a week. 'certificate FILE' before 'listening on' names the
    /// certificate to trust (--cacert)
    #[arg(long)]
    tls: bool,

    /// PEM file with the server's certificate, then those between it and its root
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<PathBuf>,

    /// PEM file with the private key of --cert
    #[arg(long, value_name = "FILE", requires_all = ["tls", "cert"])]
    key: Option<PathBuf>,

    /// Oldest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), default_value = "1.2")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_min: TlsVersion,

    /// Newest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), default_value = "1.3")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_max: TlsVersion,

    /// Resumption of earlier sessions: ticket, off, or 0rtt (with early data, each session once)
    #[arg(long, value_name = "HOW", value_parser = one_of(RESUMES), default_value = "ticket")]
    #[arg(hide_possible_values = true, requires = "tls")]
    tls_resume: TlsResume,
}

impl ServerTlsArgs {
    /// How connections at `listen` are secured, and the certificate that clients have to trust
    /// where it was made here; `None`: not at all.
    pub fn resolve(self, listen: &Address) -> Result<Option<(ServerTls, Option<String>)>, Failure> {
        if !self.tls {
            return Ok(None);
        }
        if self.tls_min > self.tls_max {
            return Err(Failure::argument("--tls-max", "is below --tls-min"));
        }
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => read(certificate, key)?,
            _ => {
                let address = match listen {
                    Address::Tcp(address) => Some(address.ip()),
                    Address::Unix(_) => None,
                };
                Identity::make(address).map_err(|e| Failure::argument("--tls", e))?
            }
        };
        let authority = identity.authority().map(String::from);
        let tls = ServerTls::new(identity, (self.tls_min, self.tls_max), self.tls_resume);
        let tls = tls.map_err(|wrong| Failure::argument("--cert, --key", wrong))?;
        Ok(Some((tls, authority)))
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Identity, Failure> {
    Identity::read(certificate, key).map_err(|e| match e {
        IdentityError::Certificate(wrong) => Failure::argument("--cert", wrong),
        IdentityError::Key(wrong) => Failure::argument("--key", wrong),
    })
}

/// A file with a certificate to trust, in the directory for temporary files; gone when dropped.
#[derive(Debug)]
pub struct TrustFile {
    /// Where it is.
    pub path: PathBuf,
}

impl TrustFile {
    /// Writes it. A file that is there already, or a link, is never written to.
    pub fn write(pem: &str) -> Result<TrustFile, Failure> {
        let directory = std::env::temp_dir();
        let failed = |e: io::Error| {
            let directory = directory.display();
            let wrong = format!("the certificate cannot be written to '{directory}': {e}");
            Failure::argument("--tls", wrong)
        };
        for attempt in 0..100 {
            let name = format!("knee-{}-{attempt}.pem", std::process::id());
            let path = directory.join(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let written = TrustFile { path };
                    return file.write_all(pem.as_bytes()).map_err(failed).map(|()| written);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for TrustFile {
    fn drop(&mut self) {
        // What cannot be removed stays in the directory for temporary files.
        let _ = std::fs::remove_file(&self.path);
    }
}
