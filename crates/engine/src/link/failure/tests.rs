//! Certificates as servers present them, and the message about each.

use super::super::verify::Verifier;
use super::words;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    Issuer, KeyPair, NameConstraints, SanType,
};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ContentType, Error, ExtendedKeyPurpose, HandshakeType,
    InvalidMessage, OtherError, PeerIncompatible, PeerMisbehaved, RootCertStore,
};
use std::sync::Arc;

/// An issuer and its certificate.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

fn params(names: &[&str], common_name: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

fn authority(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Authority {
    let mut params = params(&[], name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let issuer = Issuer::new(params, key);
    Authority { certificate, issuer }
}

impl Authority {
    fn signs(&self, params: &CertificateParams) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().der().clone()
    }

    /// An issuer below this one.
    fn issuer(&self, name: &str, is_ca: IsCa) -> Authority {
        let mut params = params(&[], name);
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Authority { certificate: signed.der().clone(), issuer: Issuer::new(params, key) }
    }
}

/// The message about a chain, the server's certificate first, from a client that trusts `root`.
fn said(root: &CertificateDer<'static>, chain: &[CertificateDer<'static>], name: &str) -> String {
    said_by(root, Vec::new(), chain, name)
}

/// The same of a client whose user gave these certificates to be trusted.
fn said_by(
    root: &CertificateDer<'static>,
    given: Vec<CertificateDer<'static>>,
    chain: &[CertificateDer<'static>],
    name: &str,
) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier::of(Arc::new(roots), given, provider).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let verified = verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now());
    verified.map_or_else(|error| plain(&words(&error)), |_| "it is taken".to_owned())
}

/// The line, which has no syntax of Rust.
fn plain(line: &str) -> String {
    assert!(!line.contains('\n'), "{line}");
    assert!(!line.contains(['{', '}', '[', ']', '"']), "{line}");
    // (CA:TRUE) and units apart, no variant with what it carries, nor its name in camel case.
    let is_camel = |word: &str| {
        let mut letters = word.chars().skip(1);
        let has_small = word.chars().any(|c| c.is_ascii_lowercase());
        has_small && letters.any(|c| c.is_ascii_uppercase())
    };
    let known = ["subjectAltName", "ChangeCipherSpec", "ClientHello"];
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    let found = words.find(|word| is_camel(word) && !known.contains(word));
    assert_eq!(found, None, "{line}");
    line.to_owned()
}

#[test]
fn constraints_of_issuers_are_named() {
    let leaf = params(&["localhost"], "leaf");
    let plain = authority("root", |_| {});
    assert_eq!(said(&plain.certificate, &[plain.signs(&leaf)], "localhost"), "it is taken");
    let short = authority("short", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let below = short.issuer("below", IsCa::Ca(BasicConstraints::Unconstrained));
    let chain = [&below.signs(&leaf), &below.certificate].map(Clone::clone);
    // The limit of a root itself is not enforced (RFC 5280 §6.1).
    assert_eq!(said(&short.certificate, &chain, "localhost"), "it is taken");
    let middle = plain.issuer("middle", IsCa::Ca(BasicConstraints::Constrained(0)));
    let below = middle.issuer("below", IsCa::Ca(BasicConstraints::Unconstrained));
    let issuers = [&below.certificate, &middle.certificate].map(Clone::clone);
    let chain = [&[below.signs(&leaf)][..], &issuers].concat();
    let line = said(&plain.certificate, &chain, "localhost");
    assert!(line.contains("permits fewer issuers below it (path length)"), "{line}");

    let narrow = authority("narrow", |params| {
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName("example.com".to_owned())],
            excluded_subtrees: Vec::new(),
        });
    });
    let line = said(&narrow.certificate, &[narrow.signs(&leaf)], "localhost");
    assert!(line.contains("may not issue for its names (name constraints)"), "{line}");

    let no_issuer = plain.issuer("no issuer", IsCa::ExplicitNoCa);
    let chain = [no_issuer.signs(&leaf), no_issuer.certificate.clone()];
    let line = said(&plain.certificate, &chain, "localhost");
    assert!(line.contains("may not issue any (CA:FALSE)"), "{line}");

    let line = said(&plain.certificate, std::slice::from_ref(&plain.certificate), "localhost");
    assert!(line.contains("(CA:TRUE) and not of a server"), "{line}");

    let other = authority("root", |_| {});
    let line = said(&other.certificate, &[plain.signs(&leaf)], "localhost");
    assert!(line.contains("not of the issuer of that name"), "{line}");
}

/// As `openssl req -x509` makes one: its own issuer (CA:TRUE).
#[test]
fn given_certificate_of_an_issuer_is_good_as_the_servers() {
    let made = |names: &[&str], year: i32| {
        let mut params = params(names, "own");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    };
    let (own, other) = (made(&["localhost"], 4000), made(&["localhost"], 4000));
    let said = |trusted: &CertificateDer<'static>, given: &CertificateDer<'static>, name: &str| {
        said_by(trusted, vec![given.clone()], std::slice::from_ref(trusted), name)
    };
    assert_eq!(said(&own, &own, "localhost"), "it is taken");
    let line = said(&own, &own, "example.com");
    assert!(line.contains("localhost") && line != "it is taken", "another name: {line}");
    let old = made(&["localhost"], 2000);
    let line = said(&old, &old, "localhost");
    assert!(line.contains("has expired"), "{line}");
    // A root of the system's is not given by the user.
    let line = said(&own, &other, "localhost");
    assert!(line.contains("(CA:TRUE) and not of a server"), "{line}");
}

#[test]
fn purposes_and_dates_are_named() {
    let root = authority("root", |_| {});
    let with = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = params(&["localhost"], "leaf");
        change(&mut params);
        said(&root.certificate, &[root.signs(&params)], "localhost")
    };
    let line = with(&|params| {
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 4, 1, 311]),
        ];
    });
    let says = "its certificate is for client authentication, another purpose and not for servers";
    assert!(line.starts_with(says), "{line}");
    let line = with(&|params| params.not_after = rcgen::date_time_ymd(2000, 1, 1));
    assert!(line.contains("has expired"), "{line}");
    let line = with(&|params| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1);
        params.not_after = rcgen::date_time_ymd(4001, 1, 1);
    });
    assert!(line.contains("is not valid yet"), "{line}");
    let critical = with(&|params| {
        let mut extension = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    });
    assert!(critical.contains("a critical extension that is not known here"), "{critical}");
}

#[test]
fn name_of_another_kind_is_told_from_another_name() {
    let root = authority("root", |_| {});
    let named = |names: Vec<SanType>, wanted: &str| {
        let mut params = params(&[], "leaf");
        params.subject_alt_names = names;
        said(&root.certificate, &[root.signs(&params)], wanted)
    };
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let ip = |address: &str| SanType::IpAddress(address.parse().unwrap());
    for (names, wanted, says) in [
        (
            vec![dns("127.0.0.1")],
            "127.0.0.1",
            "its certificate has 127.0.0.1 as a DNS name and not as an IP address: make one with \
             IP:127.0.0.1, or give --insecure to take it",
        ),
        (vec![dns("127.0.0.1"), ip("127.0.0.1")], "127.0.0.1", "it is taken"),
        (
            vec![dns("a"), ip("::1"), SanType::URI("http://b".try_into().unwrap())],
            "127.0.0.1",
            "its certificate is for a, ::1 and not for 127.0.0.1: use that name, or --sni NAME",
        ),
        (
            vec![ip("127.0.0.1")],
            "localhost",
            "its certificate is for 127.0.0.1 and not for localhost: use that name, or --sni NAME",
        ),
        (
            vec![],
            "localhost",
            "its certificate has no name of a server (subjectAltName): make one with \
             DNS:localhost, or give --insecure to take it",
        ),
    ] {
        assert_eq!(named(names, wanted), says);
    }
    let many = (0..100).map(|n| dns(&format!("host{n}"))).collect();
    let line = named(many, "localhost");
    assert!(line.contains("host7 and 92 more and not for localhost"), "{line}");
}

#[test]
fn keys_and_signatures_that_are_too_weak_are_named() {
    let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let line = said(&read(SHA1_ISSUER), &[read(SIGNED_WITH_SHA1)], "localhost");
    assert!(line.contains("signed with SHA-1, which is not accepted"), "{line}");
    let chain = [read(SIGNED_BY_SHORT_KEY), read(SHORT_KEY_ISSUER)];
    for chain in [&chain[..], &chain[..1]] {
        let line = said(&read(SHORT_KEY_ISSUER), chain, "localhost");
        assert!(
            line.contains("an issuer of its certificate has an RSA key of 1024 bits"),
            "{line}"
        );
    }
    // Its own key, with which it signs the handshake.
    let wrong = || Error::InvalidCertificate(CertificateError::BadSignature);
    let of =
        |certificate| plain(&words(&super::super::verify::of_handshake(wrong(), &certificate)));
    let line = of(read(SHORT_KEY_ISSUER));
    assert!(line.contains("an RSA key of 1024 bits: 2048 to 8192 are accepted"), "{line}");
    let line = of(read(SHA1_ISSUER));
    assert!(line.contains("does not hold the key of its certificate"), "{line}");
}

/// Errors that carry something, and some that do not.
#[test]
fn no_error_of_a_server_is_in_the_syntax_of_rust() {
    let of_webpki = |error: webpki::Error| {
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
    };
    let algorithm = |signature_algorithm_id: &[u8]| {
        Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: signature_algorithm_id.to_vec(),
            supported_algorithms: Vec::new(),
        })
    };
    for (error, says) in [
        (Error::NoCertificatesPresented, "it sent no certificate"),
        (
            Error::InvalidMessage(InvalidMessage::MissingData("KeyUpdate")),
            "it broke the rules of TLS: missing data",
        ),
        (
            Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedKxGroup),
            "it broke the rules of TLS: selected unoffered key exchange group",
        ),
        (
            Error::InappropriateMessage {
                expect_types: vec![ContentType::Handshake],
                got_type: ContentType::ApplicationData,
            },
            "it broke the rules of TLS: an unexpected record (application data)",
        ),
        (
            Error::InappropriateHandshakeMessage {
                expect_types: vec![HandshakeType::ServerHello],
                got_type: HandshakeType::CertificateRequest,
            },
            "it broke the rules of TLS: an unexpected message (certificate request)",
        ),
        (Error::PeerSentOversizedRecord, "it broke the rules of TLS: a record that is too long"),
        (Error::DecryptError, "it broke the rules of TLS: a record that cannot be decrypted"),
        (Error::FailedToGetRandomBytes, "the TLS handshake failed: failed to get random bytes"),
        (
            Error::PeerIncompatible(PeerIncompatible::ServerRejectedEncryptedClientHello(Some(
                vec![],
            ))),
            "it refused the encrypted ClientHello",
        ),
        (
            Error::PeerIncompatible(PeerIncompatible::NullCompressionRequired),
            "it permits nothing that was offered (null compression required): see --tls-min, \
             --tls-max and --tls-groups",
        ),
        (
            Error::AlertReceived(AlertDescription::CloseNotify),
            "it closed the connection during the TLS handshake",
        ),
        (
            Error::AlertReceived(AlertDescription::InternalError),
            "it ended the connection with the TLS alert internal_error",
        ),
        (
            Error::AlertReceived(AlertDescription::from(250)),
            "it ended the connection with the TLS alert 250",
        ),
        (
            Error::AlertReceived(AlertDescription::UnknownCA),
            "it does not take the certificate of the client (unknown_ca): see --cert",
        ),
        (
            of_webpki(webpki::Error::MalformedExtensions),
            "its certificate is not valid (malformed extensions): make another, or give \
             --insecure to take it",
        ),
        (
            of_webpki(webpki::Error::UnsupportedCertVersion),
            "its certificate is not of X.509 version 3: make one that is, or give --insecure to \
             take it",
        ),
        (
            Error::InvalidCertificate(CertificateError::InvalidPurposeContext {
                required: ExtendedKeyPurpose::ServerAuth,
                presented: Vec::new(),
            }),
            "its certificate is for nothing and not for servers (extended key usage): make one \
             for server authentication, or give --insecure to take it",
        ),
        (
            Error::InvalidCertificate(CertificateError::UnknownRevocationStatus),
            "its certificate is not valid (unknown revocation status): make another, or give \
             --insecure to take it",
        ),
        (
            algorithm(&[6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 5, 5, 0]),
            "its certificate is signed with SHA-1, which is not accepted: make one with SHA-256, \
             or give --insecure to take it",
        ),
        (
            algorithm(&[6, 3, 85, 4, 129, 0]),
            "its certificate is signed with an algorithm that is not accepted (2.5.4): make one \
             with SHA-256, or give --insecure to take it",
        ),
    ] {
        assert_eq!(plain(&words(&error)), says);
    }
}

// Made with OpenSSL, as rcgen makes none that are so weak. They end in the year 3943.

const SHA1_ISSUER: &str = "\
-----BEGIN CERTIFICATE-----
MIIBgjCCASmgAwIBAgIUOCY78aAyXAW2FNiaea3PZv5UPkUwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLc2hhMSBpc3N1ZXIwIBcNMjYxMTI1MDEzMjIwWhgPMzk0MzA2
MDkwMTMyMjBaMBYxFDASBgNVBAMMC3NoYTEgaXNzdWVyMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEWsqWKo/NtJ0WmMi49v1JhIzCBYmE1dHvlOOV21Cipn02pqVH
WLCfZ+HPVx9lyZVYtX/f3UX8kn9sKAkizqL2fqNTMFEwHQYDVR0OBBYEFF8lo8/q
D+OamJT6iZsZY5gB6EI1MB8GA1UdIwQYMBaAFF8lo8/qD+OamJT6iZsZY5gB6EI1
MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgNAdHQIhTJh3FEOqj
gu+gxgMiz6nHcPcLoM0Uoe7KoTsCIB2MdeuiYJwCcfXSHOgQg2Uh6sot1OHbr8cA
LXttNTfC
-----END CERTIFICATE-----";

const SIGNED_WITH_SHA1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfDCCASOgAwIBAgIBATAJBgcqhkjOPQQBMBYxFDASBgNVBAMMC3NoYTEgaXNz
dWVyMCAXDTI2MTEyNTAxMzIyMFoYDzM5NDMwNjA5MDEzMjIwWjAUMRIwEAYDVQQD
DAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATbaTseefWxvnkn
2zRiNfTRwH0xPGhSOvn3KXSBDX6pySXjryafiYLXXsCETcIjfuFdZNEtq0ldF5KH
7ZRFtH5Uo2MwYTAUBgNVHREEDTALgglsb2NhbGhvc3QwCQYDVR0TBAIwADAdBgNV
HQ4EFgQUwC34W0wgjUWShru0zu3/aFpNAgEwHwYDVR0jBBgwFoAUXyWjz+oP45qY
lPqJmxljmAHoQjUwCQYHKoZIzj0EAQNIADBFAiAukJOtzYhklKzy/Sg84p95VKjQ
j48RTaKeoogVdlJafwIhAM8PCCIq4gQ3rjExm/DkLnP3dRF/BB+YCZLrC2ojioFS
-----END CERTIFICATE-----";

const SHORT_KEY_ISSUER: &str = "\
-----BEGIN CERTIFICATE-----
MIICDDCCAXWgAwIBAgIUC9cgDYBeIWUJsPWZbRKtOSVtZVUwDQYJKoZIhvcNAQEL
BQAwFzEVMBMGA1UEAwwMc2hvcnQgaXNzdWVyMCAXDTI2MTEyNTAxMzIyMFoYDzM5
NDMwNjA5MDEzMjIwWjAXMRUwEwYDVQQDDAxzaG9ydCBpc3N1ZXIwgZ8wDQYJKoZI
hvcNAQEBBQADgY0AMIGJAoGBAM6nspSco6roh7f5l/VmAUBop58QqovtYTDVUkJc
Tv38//xgFpzGPL3KT+mXpiAQwaacbqjUGirtOC3nJupVgX8GZmcQB5IIe1CVmfS9
bnl5gVgNEkh1s1t3wwisUbDGmuoyiPG2bcLQT71jqCR1hgON2zYkmnC2SXbx+Pdr
gl2HAgMBAAGjUzBRMB0GA1UdDgQWBBSHI9xxP1SOXigv3y5+GvipsOTakzAfBgNV
HSMEGDAWgBSHI9xxP1SOXigv3y5+GvipsOTakzAPBgNVHRMBAf8EBTADAQH/MA0G
CSqGSIb3DQEBCwUAA4GBAJ4bD90/0L3sEu8Xya3xjGOk7Mz3G1HWvlK2F3LPxgOw
hU+Qqe1elZtcy4q3xySg9OCGc+q/7R2MpLmFaSt9kyvEMbkcElCgHEXpQV87omdc
tW1z5kPtXvcltVAXpnTUYGX/r7Rvzamdlysy/G37HhBrKyS1iYej84AIxptrn4yv
-----END CERTIFICATE-----";

const SIGNED_BY_SHORT_KEY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBvzCCASigAwIBAgIBATANBgkqhkiG9w0BAQsFADAXMRUwEwYDVQQDDAxzaG9y
dCBpc3N1ZXIwIBcNMjYxMTI1MDEzMjIwWhgPMzk0MzA2MDkwMTMyMjBaMBQxEjAQ
BgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNtpOx55
9bG+eSfbNGI19NHAfTE8aFI6+fcpdIENfqnJJeOvJp+JgtdewIRNwiN+4V1k0S2r
SV0XkoftlEW0flSjYzBhMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAJBgNVHRMEAjAA
MB0GA1UdDgQWBBTALfhbTCCNRZKGu7TO7f9oWk0CATAfBgNVHSMEGDAWgBSHI9xx
P1SOXigv3y5+GvipsOTakzANBgkqhkiG9w0BAQsFAAOBgQByWv2sclMAe+/QN5J2
Z2Rm/58ofhTljI9ByslbtZYxq4E/pUCRUlgM3rmx/0qQvpF/ybcDM1x4KY1lyvwA
0mR1VHFmA54eOPoBBa7zwuTZ8f1WX74ZtzjyJbeWpIaoFfklcNturVPaiVAXZGvz
Iy8M3UGdsLI2aTzVwhaRaCNwAw==
-----END CERTIFICATE-----";
