//! Verification of server certificates.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use webpki::EndEntityCert;

/// Permitted bits of an RSA key.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;

/// Faults that rustls reports as a wrong signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// The server's own RSA key has this number of bits, which is out of range.
    OwnSize(usize),
    /// The RSA key of an issuer has this number of bits, which is out of range.
    IssuerSize(usize),
    /// The handshake is not signed by the key of the certificate.
    NotItsKey,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for KeyFault {}

impl From<KeyFault> for Error {
    fn from(fault: KeyFault) -> Error {
        CertificateError::Other(OtherError(Arc::new(fault))).into()
    }
}

/// Verifies certificates, or accepts any. Both check that the server has the key of its
/// certificate, so that a handshake costs the same.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None` to accept any certificate.
    trusted: Option<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    roots: Arc<RootCertStore>,
    /// Roots that the user gave. A server may present one of them as its own certificate.
    given: Vec<CertificateDer<'static>>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl Verifier {
    /// Accepts any certificate.
    pub(super) fn insecure(provider: Arc<CryptoProvider>) -> Verifier {
        Verifier { provider, trusted: None }
    }

    /// Accepts certificates of these issuers, at least one, and the `given` ones themselves.
    ///
    /// # Errors
    /// None in correct use: a line of text.
    pub(super) fn of(
        roots: Arc<RootCertStore>,
        given: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = builder.build().map_err(|error| error.to_string())?;
        Ok(Verifier { provider, trusted: Some(Trusted { roots, given, verifier }) })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(Trusted { roots, given, verifier }) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = verifier.verify_server_cert(certificate, issuers, name, ocsp, now);
        // An issuer's certificate, as `openssl req -x509` makes it, is good as a server's where it is
        // the very one to be trusted. webpki has checked its time by then, and not yet its name.
        if let Err(Error::InvalidCertificate(CertificateError::Other(why))) = &verified
            && let Some(webpki::Error::CaUsedAsEndEntity) = why.0.downcast_ref()
            && given.iter().any(|trusted| trusted == certificate)
        {
            let parsed = ParsedCertificate::try_from(certificate)?;
            return verify_server_name(&parsed, name).map(|()| ServerCertVerified::assertion());
        }
        verified.map_err(|error| match error {
            Error::InvalidCertificate(CertificateError::BadSignature) => {
                let bits = issuer_bits(certificate, issuers, roots);
                bits.map_or(error, |bits| KeyFault::IssuerSize(bits).into())
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
            .map_err(|error| of_handshake(error, certificate))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
            .map_err(|error| of_handshake(error, certificate))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The fault of a server's signature of the handshake.
pub(super) fn of_handshake(error: Error, certificate: &CertificateDer<'_>) -> Error {
    match error {
        Error::InvalidCertificate(
            CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => {
            let bits = own_bits(certificate).filter(|bits| !RSA_BITS.contains(bits));
            bits.map_or(KeyFault::NotItsKey, KeyFault::OwnSize).into()
        }
        other => other,
    }
}

/// The bits of an issuer's RSA key, if they are out of range.
fn issuer_bits(
    certificate: &CertificateDer<'_>,
    issuers: &[CertificateDer<'_>],
    roots: &RootCertStore,
) -> Option<usize> {
    let all = || std::iter::once(certificate).chain(issuers);
    let names: Vec<Vec<u8>> = all()
        .filter_map(|der| Some(EndEntityCert::try_from(der).ok()?.issuer().to_vec()))
        .collect();
    let of_roots = roots
        .roots
        .iter()
        .filter(|root| names.iter().any(|name| *name == root.subject.as_ref()))
        .filter_map(|root| rsa_bits(webpki::spki_for_anchor(root).as_ref()));
    let mut of_issuers = issuers.iter().filter_map(own_bits).chain(of_roots);
    of_issuers.find(|bits| !RSA_BITS.contains(bits))
}

/// The bits of a certificate's own key, if it is of RSA.
fn own_bits(certificate: &CertificateDer<'_>) -> Option<usize> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    rsa_bits(certificate.subject_public_key_info().as_ref())
}

/// 1.2.840.113549.1.1.1, the identifier of RSA keys.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

/// The bits of an RSA key's modulus (RFC 3279 §2.3.1).
fn rsa_bits(key_info: &[u8]) -> Option<usize> {
    let (key_info, _) = der_value(key_info, 0x30)?;
    let (algorithm, key) = der_value(key_info, 0x30)?;
    let (id, _) = der_value(algorithm, 6)?;
    // The first byte of a bit string is the number of bits without meaning.
    let ([_, key @ ..], _) = der_value(key, 3)? else {
        return None;
    };
    let (key, _) = der_value(key, 0x30)?;
    let (modulus, _) = der_value(key, 2)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    let bits = (modulus.len() - zeros) * 8 - first.leading_zeros() as usize;
    (id == RSA).then_some(bits)
}

/// The content of the value that `der` begins with, if it has this tag, and what follows it.
fn der_value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(&a, rest)| (usize::from(a), rest))?,
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    (found == tag).then(|| rest.split_at_checked(length))?
}
