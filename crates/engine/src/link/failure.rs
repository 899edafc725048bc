//! Why a connection could not be secured, in words.

use super::records::Violation;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// What went wrong, and where it is known the remedy, in one line.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(what) => certificate(what),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::InvalidEmptyPayload
            | InvalidMessage::MessageTooLarge,
        ) => "it does not answer in TLS: if it speaks cleartext, use http://".to_owned(),
        Error::AlertReceived(alert) => told(*alert),
        Error::NoApplicationProtocol => {
            "it speaks none of the protocols that were offered (ALPN)".to_owned()
        }
        Error::PeerIncompatible(why) => {
            format!(
                "it permits nothing that was offered ({why:?}): see --tls-min, --tls-max and \
                 --tls-groups"
            )
        }
        other => format!("the TLS handshake failed: {other}"),
    }
}

/// What went wrong after the handshake, in one line.
pub(super) fn of_records(violation: &Violation) -> String {
    match violation {
        Violation::Malformed(what) | Violation::Unexpected(what) | Violation::Illegal(what) => {
            format!("it broke the rules of TLS: {what}")
        }
        Violation::Oversized => "it broke the rules of TLS: a record that is too long".to_owned(),
        Violation::Unauthentic => {
            "it sent a TLS record whose tag is wrong (bad_record_mac)".to_owned()
        }
        Violation::Told(alert) => told(AlertDescription::from(*alert)),
        Violation::Internal(why) => format!("TLS failed: {why}"),
    }
}

fn certificate(what: &CertificateError) -> String {
    let trust = "give its issuer with --cacert FILE, or --insecure to take any";
    match what {
        CertificateError::UnknownIssuer => {
            format!("its certificate is of an issuer that is not trusted here: {trust}")
        }
        // Keys that were made anew under the old name, as those of `knee serve` at each start; the
        // second, where they are of another kind.
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!(
                "its certificate is not of the issuer of that name that is trusted here: {trust}"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: renew it, or give --insecure to take it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: compare the clocks of both hosts".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            let names = match names.is_empty() {
                true => "no name".to_owned(),
                false => names.join(", "),
            };
            format!(
                "its certificate is for {names} and not for {}: use that name, or --sni NAME",
                expected.to_str()
            )
        }
        CertificateError::NotValidForName => {
            "its certificate is for another name: use that name, or --sni NAME".to_owned()
        }
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        CertificateError::BadEncoding => "its certificate cannot be read".to_owned(),
        CertificateError::Other(why) if format!("{why:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an issuer (CA:TRUE) and not of a server: make one with \
             CA:FALSE, or give --insecure to take it"
                .to_owned()
        }
        other => format!("its certificate is not valid ({other}): {trust}"),
    }
}

/// A name as rustls gives it, without what says its kind: `DnsName("a")` is a, and
/// `IpAddress(::1)` is ::1.
fn plain_name(name: &str) -> &str {
    let inside = name.split_once('(').map_or(name, |(_, rest)| rest);
    inside.trim_end_matches(')').trim_matches('"')
}

/// What the peer said before it hung up.
fn told(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::ProtocolVersion => {
            "it speaks none of the versions of TLS that were offered: see --tls-min and --tls-max"
                .to_owned()
        }
        AlertDescription::NoApplicationProtocol => {
            "it speaks none of the protocols that were offered (ALPN)".to_owned()
        }
        AlertDescription::CertificateRequired => {
            "it asks for a certificate of the client: give --cert FILE and --key FILE".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired => {
            format!("it does not take the certificate of the client ({alert:?}): see --cert")
        }
        AlertDescription::UnrecognisedName => {
            "it does not know the name that was asked for: give another with --sni NAME".to_owned()
        }
        AlertDescription::HandshakeFailure => {
            "it refused the handshake: versions, ciphers or groups that it permits were not \
             offered, or it wants a certificate (--cert, --key)"
                .to_owned()
        }
        other => format!("it refused the TLS handshake ({other:?})"),
    }
}
