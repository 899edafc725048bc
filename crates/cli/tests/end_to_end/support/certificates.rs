//! Certificates made for a test, in files that go with it.

use super::TempPath;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::sync::atomic::{AtomicU32, Ordering};

/// An issuer, and what it signed for a server and for a client, as PEM files.
pub struct Certificates {
    /// What to trust.
    pub authority: TempPath,
    /// For `localhost` and 127.0.0.1.
    pub server: TempPath,
    /// Its private key.
    pub server_key: TempPath,
    /// The server's certificate and its key in one file, as HAProxy takes them.
    pub server_pair: TempPath,
    /// For a client.
    pub client: TempPath,
    /// Its private key.
    pub client_key: TempPath,
}

impl Certificates {
    /// Certificates that are valid.
    pub fn new() -> Certificates {
        Certificates::until(4000)
    }

    /// Certificates for a server that were valid until the end of the year 2020.
    pub fn expired() -> Certificates {
        Certificates::until(2021)
    }

    /// Those of the server end with the year before.
    fn until(year: i32) -> Certificates {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = |name: &str, text: &str| {
            TempPath::with(&format!("certificates-{number}-{name}.pem"), text)
        };
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let name = format!("knee's tests {number}");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let names = ["localhost", "127.0.0.1"].map(String::from).to_vec();
        let (server, server_key) = signed(&issuer, names, year);
        let (client, client_key) = signed(&issuer, vec!["client".into()], 4000);
        Certificates {
            authority: file("authority", &authority),
            server: file("server", &server),
            server_key: file("server-key", &server_key),
            server_pair: file("server-pair", &format!("{server}{server_key}")),
            client: file("client", &client),
            client_key: file("client-key", &client_key),
        }
    }
}

fn signed(issuer: &Issuer<'_, KeyPair>, names: Vec<String>, until: i32) -> (String, String) {
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}
