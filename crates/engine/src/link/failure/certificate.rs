//! Why the certificate of a server is not taken, in words.

use super::super::verify::KeyFault;
use super::spelt;
use knee_load::shown::shown;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ExtendedKeyPurpose, OtherError};
use std::net::IpAddr;

/// Names of a certificate in a message. A certificate may hold hundreds.
const NAMES_MAX: usize = 8;

const TRUST: &str = "give its issuer with --cacert FILE, or --insecure to take any";
const TAKE: &str = "or give --insecure to take it";

/// What is wrong with a certificate, and the remedy, in one line.
pub(super) fn words(what: &CertificateError) -> String {
    match what {
        CertificateError::UnknownIssuer => {
            format!("its certificate is of an issuer that is not trusted here: {TRUST}")
        }
        // Keys that were made anew under the old name, as those of `knee serve` at each start; the
        // second, where they are of another kind.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!(
                "its certificate is not of the issuer of that name that is trusted here: {TRUST}"
            )
        }
        CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id, ..
        } => {
            let algorithm = algorithm(signature_algorithm_id);
            format!("its certificate is signed with {algorithm}: make one with SHA-256, {TAKE}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: renew it, or give --insecure to take it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: compare the clocks of both hosts".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            other_name(expected, presented)
        }
        CertificateError::NotValidForName => {
            "its certificate is for another name: use that name, or --sni NAME".to_owned()
        }
        CertificateError::InvalidPurpose => purpose(&[]),
        CertificateError::InvalidPurposeContext { presented, .. } => purpose(presented),
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        CertificateError::BadEncoding => unreadable("it is not in the form of X.509"),
        CertificateError::UnhandledCriticalExtension => unreadable(CRITICAL),
        CertificateError::Other(why) => other(why),
        other => unreadable(&spelt(other)),
    }
}

const CRITICAL: &str = "it has a critical extension that is not known here";

fn unreadable(why: &str) -> String {
    format!("its certificate is not valid ({why}): make another, {TAKE}")
}

/// Faults that rustls passes on from webpki, and those found beside it.
fn other(why: &OtherError) -> String {
    if let Some(fault) = why.0.downcast_ref::<KeyFault>() {
        return key_fault(*fault);
    }
    let Some(error) = why.0.downcast_ref::<webpki::Error>() else {
        return unreadable("it cannot be verified");
    };
    match error {
        webpki::Error::CaUsedAsEndEntity => {
            format!(
                "its certificate is that of an issuer (CA:TRUE) and not of a server: make one \
                 with CA:FALSE, trust this very one with --cacert, {TAKE}"
            )
        }
        webpki::Error::EndEntityUsedAsCa => {
            format!(
                "an issuer of its certificate may not issue any (CA:FALSE): make one with \
                 CA:TRUE, {TAKE}"
            )
        }
        webpki::Error::PathLenConstraintViolated => {
            format!(
                "an issuer of its certificate permits fewer issuers below it (path length): \
                 issue it with one fewer, {TAKE}"
            )
        }
        webpki::Error::NameConstraintViolation => {
            format!(
                "an issuer of its certificate may not issue for its names (name constraints): \
                 use another issuer, {TAKE}"
            )
        }
        webpki::Error::UnsupportedCertVersion => {
            format!("its certificate is not of X.509 version 3: make one that is, {TAKE}")
        }
        webpki::Error::MaximumPathBuildCallsExceeded
        | webpki::Error::MaximumPathDepthExceeded
        | webpki::Error::MaximumSignatureChecksExceeded
        | webpki::Error::MaximumNameConstraintComparisonsExceeded => {
            format!("its certificate has too many issuers to verify: send fewer, {TAKE}")
        }
        webpki::Error::SignatureAlgorithmMismatch => {
            unreadable("it names two different signature algorithms")
        }
        webpki::Error::UnsupportedCriticalExtension => unreadable(CRITICAL),
        other => unreadable(&spelt(other)),
    }
}

fn key_fault(fault: KeyFault) -> String {
    match fault {
        KeyFault::OwnSize(bits) => {
            format!("its certificate has an RSA key of {bits} bits: 2048 to 8192 are accepted")
        }
        KeyFault::IssuerSize(bits) => {
            format!(
                "an issuer of its certificate has an RSA key of {bits} bits, and 2048 to 8192 are \
                 accepted: make one with a longer key, {TAKE}"
            )
        }
        KeyFault::NotItsKey => {
            "its signature of the handshake is wrong: it does not hold the key of its certificate"
                .to_owned()
        }
    }
}

/// What a certificate is for, if not for servers.
fn purpose(presented: &[ExtendedKeyPurpose]) -> String {
    let names = presented.iter().map(|purpose| match purpose {
        ExtendedKeyPurpose::ClientAuth => "client authentication",
        ExtendedKeyPurpose::ServerAuth => "server authentication",
        ExtendedKeyPurpose::Other(_) => "another purpose",
    });
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    names.truncate(NAMES_MAX);
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    format!(
        "its certificate is for {names} and not for servers (extended key usage): make one for \
         server authentication, {TAKE}"
    )
}

/// The kind of a name in a certificate.
enum PresentedName<'a> {
    Dns(&'a str),
    Ip(&'a str),
}

/// A name as rustls gives it: `DnsName("a")` is the DNS name a, and `IpAddress(::1)` is ::1. Names
/// of other kinds are never those of a server.
fn presented_name(text: &str) -> Option<PresentedName<'_>> {
    let inside = |prefix: &str, suffix: &str| text.strip_prefix(prefix)?.strip_suffix(suffix);
    let dns = inside("DnsName(\"", "\")").map(PresentedName::Dns);
    dns.or_else(|| inside("IpAddress(", ")").map(PresentedName::Ip))
}

/// A certificate is for `presented` and not for `expected`.
fn other_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let wanted = expected.to_str();
    let is_address = matches!(expected, ServerName::IpAddress(_));
    let names = || presented.iter().filter_map(|text| presented_name(text));
    let has_as_text =
        names().any(|name| matches!(name, PresentedName::Dns(dns) if *dns == *wanted));
    if is_address && has_as_text {
        return format!(
            "its certificate has {wanted} as a DNS name and not as an IP address: make one with \
             IP:{wanted}, {TAKE}"
        );
    }
    let mut texts: Vec<_> = names()
        .map(|name| match name {
            PresentedName::Dns(name) => shown(name).into_owned(),
            // In its usual form.
            PresentedName::Ip(text) => match text.parse::<IpAddr>() {
                Ok(address) => address.to_string(),
                Err(_) => shown(text).into_owned(),
            },
        })
        .collect();
    if texts.is_empty() {
        let kind = if is_address { "IP" } else { "DNS" };
        return format!(
            "its certificate has no name of a server (subjectAltName): make one with \
             {kind}:{wanted}, {TAKE}"
        );
    }
    let more = texts.len().saturating_sub(NAMES_MAX);
    texts.truncate(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "its certificate is for {}{more} and not for {wanted}: use that name, or --sni NAME",
        texts.join(", ")
    )
}

/// A signature algorithm that is not accepted: its identifier in DER.
fn algorithm(id: &[u8]) -> String {
    let content = match id {
        [6, length, rest @ ..] => rest.get(..usize::from(*length)).unwrap_or(rest),
        other => other,
    };
    let numbers: Vec<String> = object_id(content).iter().map(usize::to_string).collect();
    let name = match numbers.join(".").as_str() {
        "1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" | "1.2.840.10040.4.3" | "1.3.14.3.2.29" => {
            "SHA-1"
        }
        "1.2.840.113549.1.1.4" => "MD5",
        "1.2.840.113549.1.1.2" => "MD2",
        "1.2.840.113549.1.1.10" => "RSA-PSS of unusual parameters",
        "1.3.101.113" => "Ed448",
        other => return format!("an algorithm that is not accepted ({other})"),
    };
    format!("{name}, which is not accepted")
}

/// The numbers of an object identifier (X.690 §8.19).
fn object_id(content: &[u8]) -> Vec<usize> {
    let mut numbers = Vec::new();
    let mut number = 0_usize;
    for byte in content {
        number = (number << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if numbers.is_empty() {
            let first = (number / 40).min(2);
            numbers.push(first);
            number -= first * 40;
        }
        numbers.push(number);
        number = 0;
    }
    numbers
}
