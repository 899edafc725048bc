//! The server's certificate and its key: read from files, or made on the spot.

use crate::input;
use crate::sys::clock;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// How long a certificate that was made here is valid.
const VALIDITY: Duration = Duration::from_secs(7 * 86_400);
/// Validity before the time at which it was made: clients' clocks may be behind.
const BEFORE: Duration = Duration::from_secs(3_600);

/// A certificate with those between it and its root, and its private key.
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    authority: Option<String>,
}

/// The key stays out of it.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity of {} certificates", self.chain.len())
    }
}

/// What is wrong with the files of an identity, as a line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// With that of the certificate.
    Certificate(String),
    /// With that of the key.
    Key(String),
}

impl Identity {
    /// Makes one for `localhost`, its addresses, the name of this host and `address`, valid for a
    /// week. An authority that exists for this alone signs it; its key is gone when this returns.
    ///
    /// # Errors
    /// The library cannot, as a line for people.
    pub fn make(address: Option<IpAddr>) -> Result<Identity, String> {
        make(names(address)).map_err(|e| format!("no certificate can be made: {e}"))
    }

    /// Reads one from PEM files: the certificate first, behind it those that lead to its root.
    ///
    /// # Errors
    /// A file cannot be read, or has no such thing in it.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, IdentityError> {
        let chain = read_chain(certificate).map_err(IdentityError::Certificate)?;
        let key = read_key(key).map_err(IdentityError::Key)?;
        Ok(Identity { chain, key, authority: None })
    }

    /// The certificate of the authority that signed a certificate made here, as PEM: what clients
    /// have to trust.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Puts the key of another in the place of this one's.
    #[cfg(test)]
    pub(in crate::serve::http) fn set_key(&mut self, of: Identity) {
        self.key = of.key;
    }
}

fn read_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read_pem(file)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.and_then(|chain| {
        if chain.is_empty() {
            return Err(pem::Error::NoItemsFound);
        }
        Ok(chain)
    });
    chain.map_err(|e| wrong_file(file, "certificate", &e))
}

fn read_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let key = PrivateKeyDer::from_pem_slice(&read_pem(file)?);
    key.map_err(|e| wrong_file(file, "private key", &e))
}

fn read_pem(file: &Path) -> Result<Vec<u8>, String> {
    let pem = input::read(file, input::SECRETS_MAX);
    pem.map_err(|why| format!("'{}' {why}", file.display()))
}

fn wrong_file(path: &Path, what: &str, error: &pem::Error) -> String {
    let path = path.display();
    match error {
        pem::Error::NoItemsFound => format!("'{path}' has no {what} in PEM format"),
        other => format!("'{path}' is not valid PEM: {other}"),
    }
}

fn names(address: Option<IpAddr>) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(String::from).to_vec();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let address = address.filter(|a| !a.is_unspecified());
    let others = [host.trim().to_owned()].into_iter();
    for name in others.chain(address.map(|a| a.to_string())) {
        if !name.is_empty() && name.is_ascii() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn make(names: Vec<String>) -> Result<Identity, rcgen::Error> {
    let now = Duration::from_nanos(clock::realtime_ns());
    let from = rcgen::date_time_ymd(1970, 1, 1) + now.saturating_sub(BEFORE);
    let until = from + BEFORE + VALIDITY;
    let params = |names: Vec<String>, common_name: &str| {
        let mut params = CertificateParams::new(names)?;
        (params.not_before, params.not_after) = (from, until);
        params.distinguished_name.push(DnType::CommonName, common_name);
        Ok::<_, rcgen::Error>(params)
    };
    let mut authority = params(Vec::new(), "knee serve, made on the spot")?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut leaf = params(names, "localhost")?;
    leaf.use_authority_key_identifier_extension = true;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?;
    Ok(Identity {
        chain: vec![certificate.der().clone()],
        key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        authority: Some(authority_pem),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_this_host_once_each() {
        let all = names(Some([192, 0, 2, 7].into()));
        assert_eq!(&all[..3], ["localhost", "127.0.0.1", "::1"]);
        assert!(all.contains(&"192.0.2.7".to_owned()));
        assert_eq!(names(Some([127, 0, 0, 1].into())), names(None));
        assert_eq!(names(Some([0, 0, 0, 0].into())), names(None));
    }

    #[test]
    fn files_that_are_none_are_named() {
        let nowhere = Path::new("/nonexistent/a.pem");
        let error = Identity::read(nowhere, nowhere).unwrap_err();
        let IdentityError::Certificate(line) = error else {
            panic!("{error:?}");
        };
        assert!(line.starts_with("'/nonexistent/a.pem' cannot be read"), "{line}");
    }

    #[test]
    fn the_key_is_never_shown() {
        let identity = Identity::make(None).unwrap();
        assert_eq!(format!("{identity:?}"), "Identity of 1 certificates");
        let pem = identity.authority().unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(!pem.contains("KEY"));
    }
}
