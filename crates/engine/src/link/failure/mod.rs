//! Why a connection could not be secured, in words.

mod certificate;
#[cfg(test)]
mod tests;

use super::HUNG_UP;
use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};
use std::fmt::Debug;

/// What went wrong, and where it is known the remedy, in one line.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(what) => certificate::words(what),
        Error::NoCertificatesPresented => "it sent no certificate".to_owned(),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType
            | InvalidMessage::UnknownProtocolVersion
            | InvalidMessage::InvalidEmptyPayload
            | InvalidMessage::MessageTooLarge,
        ) => "it does not answer in TLS: if it speaks cleartext, use http://".to_owned(),
        Error::InvalidMessage(what) => rule(&spelt(what)),
        Error::PeerMisbehaved(what) => rule(&spelt(what)),
        Error::InappropriateMessage { got_type, .. } => {
            rule(&format!("an unexpected record ({})", spelt(got_type)))
        }
        Error::InappropriateHandshakeMessage { got_type, .. } => {
            rule(&format!("an unexpected message ({})", spelt(got_type)))
        }
        Error::PeerSentOversizedRecord => rule("a record that is too long"),
        Error::DecryptError => rule("a record that cannot be decrypted"),
        Error::AlertReceived(alert) => alert_meaning(*alert),
        Error::NoApplicationProtocol => {
            "it speaks none of the protocols that were offered (ALPN)".to_owned()
        }
        Error::PeerIncompatible(why) => incompatible(why),
        Error::General(why) => format!("the TLS handshake failed: {why}"),
        Error::Other(why) => format!("the TLS handshake failed: {why}"),
        other => format!("the TLS handshake failed: {}", spelt(other)),
    }
}

/// A failure after the handshake, in one line.
pub(super) fn after_handshake(error: &Error) -> String {
    match error {
        Error::DecryptError => {
            "it sent a TLS record whose tag is wrong (bad_record_mac)".to_owned()
        }
        Error::InvalidMessage(InvalidMessage::MessageTooLarge) => rule("a record that is too long"),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => rule("bytes that are no record of TLS"),
        Error::InvalidMessage(what) => rule(&spelt(what)),
        Error::General(why) => format!("TLS failed: {why}"),
        other => words(other),
    }
}

fn rule(what: &str) -> String {
    format!("it broke the rules of TLS: {what}")
}

/// What the server needs and was not offered, or the reverse.
fn incompatible(why: &PeerIncompatible) -> String {
    let options = "see --tls-min, --tls-max and --tls-groups";
    match why {
        PeerIncompatible::ServerDoesNotSupportTls12Or13
        | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
        | PeerIncompatible::Tls12NotOffered
        | PeerIncompatible::Tls12NotOfferedOrEnabled
        | PeerIncompatible::SupportedVersionsExtensionRequired => {
            "it chose a version of TLS that was not offered: see --tls-min and --tls-max".to_owned()
        }
        PeerIncompatible::NoCipherSuitesInCommon => {
            format!("it permits none of the cipher suites that were offered: {options}")
        }
        PeerIncompatible::NoKxGroupsInCommon => {
            "it permits none of the groups that were offered: see --tls-groups".to_owned()
        }
        PeerIncompatible::NoSignatureSchemesInCommon
        | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon => {
            "it permits none of the signature algorithms that were offered".to_owned()
        }
        PeerIncompatible::ExtendedMasterSecretExtensionRequired => {
            "it does not have the extended master secret (RFC 7627)".to_owned()
        }
        // One variant carries what the server sent.
        PeerIncompatible::ServerRejectedEncryptedClientHello(_) => {
            "it refused the encrypted ClientHello".to_owned()
        }
        other => format!("it permits nothing that was offered ({}): {options}", spelt(other)),
    }
}

/// What the peer said before it hung up.
fn alert_meaning(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CloseNotify => HUNG_UP.to_owned(),
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
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired => {
            let alert = alert_name(alert);
            format!("it does not take the certificate of the client ({alert}): see --cert")
        }
        AlertDescription::UnrecognisedName => {
            "it does not know the name that was asked for: give another with --sni NAME".to_owned()
        }
        AlertDescription::HandshakeFailure => {
            "it refused the handshake: versions, ciphers or groups that it permits were not \
             offered, or it wants a certificate (--cert, --key)"
                .to_owned()
        }
        other => format!("it ended the connection with the TLS alert {}", alert_name(other)),
    }
}

/// An alert as RFC 8446 §6 writes it: `bad_record_mac`.
fn alert_name(alert: AlertDescription) -> String {
    match alert.as_str() {
        // As the RFC spells it.
        Some("UnrecognisedName") => "unrecognized_name".to_owned(),
        Some(name) => joined(name, '_'),
        None => u8::from(alert).to_string(),
    }
}

/// The name of a variant in plain words, without what it carries: `InvalidKeyShare` is
/// "invalid key share".
fn spelt(variant: &impl Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words = joined(name.into_iter().next().unwrap_or_default(), ' ');
    let words: Vec<&str> = words.split(' ').map(spelt_out).collect();
    words.join(" ")
}

fn spelt_out(word: &str) -> &str {
    match word {
        "kx" => "key exchange",
        "psk" => "PSK",
        "ccs" => "ChangeCipherSpec",
        "cert" => "certificate",
        "tls12" => "TLS 1.2",
        "tls13" => "TLS 1.3",
        "ems" => "extended master secret",
        "ech" => "encrypted ClientHello",
        "sct" => "SCT",
        "dh" => "DH",
        "ec" => "EC",
        word => word,
    }
}

/// The words of a name in camel case, in lower case; capitals in a row are one word.
fn joined(name: &str, between: char) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let ends_capitals = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| !before.is_ascii_uppercase() || ends_capitals);
        if begins {
            out.push(between);
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
