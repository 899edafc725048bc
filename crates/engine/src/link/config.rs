//! TLS settings of a target, made before the run.

use super::failure;
use super::tls::{CertificateResolver, TlsTarget};
use super::verify::Verifier;
use crate::error::RunError;
use crate::input;
use knee_load::spec::{
    Endpoint, HttpVersion, Pem, Target, TlsGroup, TlsResume, TlsSpec, TlsVersion, without_zone,
};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{KeyLogFile, RootCertStore};
use rustls::{SupportedProtocolVersion, version};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Most sessions kept for resumption.
const SESSIONS_MAX: usize = 1_024;

/// TLS settings of `target`, if it has any. Reads files.
///
/// # Errors
/// [`RunError::NotPermitted`]: a file that cannot be read or has the wrong content; a name that no
/// certificate can have.
pub(crate) fn tls_target(target: &Target) -> Result<Option<TlsTarget>, RunError> {
    let Some(spec) = &target.tls else {
        return Ok(None);
    };
    let name = server_name(spec, target)?;
    let provider = Arc::new(provider(spec));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(spec, target.version())?)
        .map_err(|error| wrong(format!("--tls-min, --tls-max: {error}")))?;
    let provider_of_keys = Arc::clone(&provider);
    let verifier = if spec.is_insecure {
        Verifier::insecure(provider)
    } else {
        let (roots, given) = roots(spec)?;
        Verifier::of(roots, given, provider).map_err(wrong)?
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let client_certificate = client_certificate(spec, &provider_of_keys)?;
    let mut config = builder.with_client_cert_resolver(Arc::clone(&client_certificate) as Arc<_>);
    config.alpn_protocols = match target.version() {
        _ if !target.protocol.begins_in_http() => Vec::new(),
        HttpVersion::Auto | HttpVersion::Http3IfOffered => {
            vec![b"h2".to_vec(), b"http/1.1".to_vec()]
        }
        HttpVersion::Http11 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
        HttpVersion::Http3 => vec![b"h3".to_vec()],
    };
    config.resumption = resumption(spec.resume);
    config.enable_early_data = spec.resume == TlsResume::EarlyData;
    // Writes what SSLKEYLOGFILE names, where that is set.
    config.key_log = Arc::new(KeyLogFile::new());
    Ok(Some(TlsTarget { config: Arc::new(config), name, client_certificate, resume: spec.resume }))
}

impl TlsTarget {
    /// The same target without sessions to resume: one for each worker, so that workers share none.
    pub(crate) fn with_own_sessions(&self) -> TlsTarget {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = resumption(self.resume);
        TlsTarget { config: Arc::new(config), ..self.clone() }
    }
}

fn resumption(resume: TlsResume) -> Resumption {
    match resume {
        TlsResume::Off => Resumption::disabled(),
        TlsResume::Ticket | TlsResume::EarlyData => Resumption::in_memory_sessions(SESSIONS_MAX),
    }
}

fn client_certificate(
    spec: &TlsSpec,
    provider: &CryptoProvider,
) -> Result<Arc<CertificateResolver>, RunError> {
    let key = match &spec.certificate {
        None => None,
        Some(own) => {
            let chain = certificates("--cert", &own.certificate)?;
            let (name, pem) = read_pem("--key", &own.key)?;
            let key = PrivateKeyDer::from_pem_slice(&pem);
            let key = key.map_err(|e| wrong(format!("{name}: {}", pem_words(&e))))?;
            let pair = CertifiedKey::from_der(chain, key, provider);
            Some(Arc::new(pair.map_err(|error| wrong(misfit(&error)))?))
        }
    };
    Ok(Arc::new(CertificateResolver::new(key)))
}

/// Why a certificate and a key are refused.
fn misfit(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "--cert and --key do not fit together".to_owned(),
        other => format!("--cert and --key cannot be used: {}", failure::words(other)),
    }
}

fn wrong(line: String) -> RunError {
    RunError::NotPermitted(line)
}

fn server_name(spec: &TlsSpec, target: &Target) -> Result<ServerName<'static>, RunError> {
    let host = match (&spec.server_name, &target.endpoint) {
        (Some(name), _) => name.clone(),
        (None, Endpoint::Tcp { host, .. }) => without_zone(host).to_owned(),
        // The URL still gives the host.
        (None, Endpoint::Unix { .. }) => {
            let host = target.requests.first().map_or("", |r| r.host.as_str());
            host.split(':').next().unwrap_or_default().to_owned()
        }
    };
    ServerName::try_from(host.clone()).map_err(|_| {
        wrong(format!(
            "'{host}' is no name that a certificate can be for: give one with --sni NAME"
        ))
    })
}

fn versions(
    spec: &TlsSpec,
    http: HttpVersion,
) -> Result<Vec<&'static SupportedProtocolVersion>, RunError> {
    // QUIC has no older one (RFC 9001 §4.2).
    let first = if http == HttpVersion::Http3 { TlsVersion::Tls13 } else { TlsVersion::Tls12 };
    let least = spec.version_min.unwrap_or(first).max(first);
    let most = spec.version_max.unwrap_or(TlsVersion::Tls13);
    let all = [(TlsVersion::Tls12, &version::TLS12), (TlsVersion::Tls13, &version::TLS13)];
    let permitted = all.into_iter().filter(|(v, _)| (least..=most).contains(v));
    let permitted: Vec<_> = permitted.map(|(_, version)| version).collect();
    if permitted.is_empty() {
        Err(wrong("--tls-min is above --tls-max: no version is left".to_owned()))
    } else {
        Ok(permitted)
    }
}

fn provider(spec: &TlsSpec) -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    if !spec.groups.is_empty() {
        provider.kx_groups = spec.groups.iter().map(|&group| group_of(group)).collect();
    }
    provider
}

fn group_of(group: TlsGroup) -> &'static dyn SupportedKxGroup {
    match group {
        TlsGroup::X25519 => aws_lc_rs::kx_group::X25519,
        TlsGroup::Secp256r1 => aws_lc_rs::kx_group::SECP256R1,
        TlsGroup::Secp384r1 => aws_lc_rs::kx_group::SECP384R1,
        TlsGroup::X25519MlKem768 => aws_lc_rs::kx_group::X25519MLKEM768,
    }
}

/// Trusted certificates, and those of them that the user gave: of a file, or of this system, which
/// are read once.
fn roots(spec: &TlsSpec) -> Result<(Arc<RootCertStore>, Vec<CertificateDer<'static>>), RunError> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(file) = &spec.roots {
        let mut roots = RootCertStore::empty();
        let given = certificates("--cacert", &Pem::File(file.clone()))?;
        for certificate in &given {
            roots
                .add(certificate.clone())
                .map_err(|_| wrong(format!("--cacert {file}: holds what is no certificate")))?;
        }
        return Ok((Arc::new(roots), given));
    }
    check_system_file()?;
    let system = SYSTEM.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        // What cannot be read of a system's collection is not trusted, as in other clients.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if system.is_empty() {
        Err(wrong(
            "this system has no root certificates: give those to trust with --cacert FILE, or \
             --insecure to take any"
                .to_owned(),
        ))
    } else {
        Ok((Arc::clone(system), Vec::new()))
    }
}

/// Refuses a pipe or a device in the place of the system's collection. A missing file counts as
/// empty, as in other clients.
pub(crate) fn check_system_file() -> Result<(), RunError> {
    const VARIABLE: &str = "SSL_CERT_FILE";
    let file = std::env::var_os(VARIABLE).map(PathBuf::from);
    let Some(file) = file.filter(|file| file.exists()) else {
        return Ok(());
    };
    let of_file = |why| wrong(format!("{VARIABLE} {}: {why}", file.display()));
    input::check_kind(&file).map_err(of_file)
}

fn certificates(option: &str, source: &Pem) -> Result<Vec<CertificateDer<'static>>, RunError> {
    let (name, pem) = read_pem(option, source)?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|e| wrong(format!("{name}: {}", pem_words(&e))))?;
    if all.is_empty() {
        Err(wrong(format!("{name}: holds no certificate in PEM form")))
    } else {
        Ok(all)
    }
}

/// What messages call a source, and its bytes.
fn read_pem(option: &str, source: &Pem) -> Result<(String, Vec<u8>), RunError> {
    match source {
        Pem::Text { name, pem } => Ok((name.clone(), pem.clone().into_bytes())),
        Pem::File(file) => match input::read(file, input::SECRETS_MAX) {
            Ok(pem) => Ok((format!("{option} {file}"), pem)),
            Err(why) => Err(wrong(format!("{option} {file}: {}", String::from(why)))),
        },
    }
}

fn pem_words(error: &rustls::pki_types::pem::Error) -> String {
    use rustls::pki_types::pem::Error;
    match error {
        Error::NoItemsFound => "holds no key in PEM form".to_owned(),
        Error::Base64Decode(_) => "is no PEM file (not in base64)".to_owned(),
        Error::MissingSectionEnd { .. } => "is no PEM file (a section has no end)".to_owned(),
        _ => "is no PEM file".to_owned(),
    }
}
