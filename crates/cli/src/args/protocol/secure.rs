//! How connections are secured, and what is spoken over them.

use crate::args::first_given;
use crate::args::values::{Choices, one_of, parse_count, within, word_of};
use crate::failure::Failure;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::spec::{
    ClientCertificate, Endpoint, Http2Limits, HttpSettings, HttpVersion, Pem, Protocol, Scheme,
    Target, TlsGroup, TlsResume, TlsSpec, TlsVersion,
};
use serde::Serialize;
use serde_json::Value;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Protocol")]
pub struct SecureArgs {
    /// Speak HTTP/1.1 [default over TLS: what the server chooses of HTTP/2 and HTTP/1.1 (ALPN)]
    #[arg(long = "http1.1", hide_short_help = true)]
    #[arg(conflicts_with_all = ["http2", "http2_prior_knowledge"])]
    #[serde(rename = "http1.1")]
    http1: bool,

    /// Speak HTTP/2, as the server has to choose by ALPN
    #[arg(long, hide_short_help = true, conflicts_with = "http2_prior_knowledge")]
    http2: bool,

    /// Speak HTTP/2 without asking, also in cleartext
    #[arg(long, hide_short_help = true)]
    http2_prior_knowledge: bool,

    /// Speak HTTP/3 over QUIC at once, without asking; needs https://
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["http1", "http2", "http2_prior_knowledge"])]
    http3: bool,

    /// Speak HTTP/3 where the server offers it: one HEAD request over TLS asks for Alt-Svc
    #[arg(help_heading = "TLS")]
    #[arg(long, hide_short_help = true)]
    #[arg(conflicts_with_all = ["http1", "http2", "http2_prior_knowledge", "http3"])]
    http3_if_offered: bool,

    /// Most concurrent streams of an HTTP/2 or HTTP/3 connection, or messages under way on a WebSocket
    /// [default: what the server permits, up to 100]
    #[arg(long, value_name = "N", value_parser = parse_count, hide_short_help = true)]
    pub(super) streams: Option<u32>,

    /// Flow-control window of an HTTP/2 or HTTP/3 stream in bytes [default: so large that it never
    /// limits]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    #[arg(value_parser = within::<u32>(1, WINDOW_MAX))]
    window: Option<u32>,

    /// Trust the certificates in this PEM file [default: those that this system trusts]
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    cacert: Option<String>,

    /// Take any certificate; without TLS of no effect
    #[arg(help_heading = "TLS")]
    #[arg(short = 'k', long, conflicts_with = "cacert", hide_short_help = true)]
    insecure: bool,

    /// Certificate of this client, a PEM file
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "FILE", requires = "key", hide_short_help = true)]
    cert: Option<String>,

    /// Its private key, a PEM file
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "FILE", requires = "cert", hide_short_help = true)]
    key: Option<String>,

    /// Name that is asked for and that the certificate must be for [default: the URL's host]
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    sni: Option<String>,

    /// Oldest version of TLS to offer [default: 1.2]
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), hide_short_help = true)]
    tls_min: Option<TlsVersion>,

    /// Newest version of TLS to offer [default: 1.3]
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "VERSION", value_parser = one_of(VERSIONS), hide_short_help = true)]
    tls_max: Option<TlsVersion>,

    /// Groups for the key exchange to offer, the preferred first: x25519, secp256r1, secp384r1,
    /// X25519MLKEM768
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "LIST", value_parser = one_of(GROUPS), value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    tls_groups: Vec<TlsGroup>,

    /// Resume earlier TLS sessions: by ticket, as browsers do; 0rtt, with early data; or off
    #[arg(help_heading = "TLS")]
    #[arg(long, value_name = "HOW", default_value = TICKET, value_parser = one_of(RESUMES))]
    #[arg(hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    tls_resume: TlsResume,
}

/// The largest window (RFC 9113 §6.9.1).
const WINDOW_MAX: u64 = (1 << 31) - 1;

impl SecureArgs {
    /// See `ProtocolArgs::take_any_certificate`.
    pub fn take_any_certificate(&mut self, asked: bool) {
        self.insecure |= asked && self.cacert.is_none();
    }

    /// The same target with its connections secured and spoken over as asked for. `scheme` is that
    /// of its first server. Further ones are secured where they have TLS parameters.
    pub fn apply(&self, target: Target, scheme: Scheme) -> Result<Target, Failure> {
        let is_secure = scheme.is_secure();
        let mut further = target.further.iter();
        let any_is_secure = is_secure || further.clone().any(|server| server.tls.is_some());
        let all_are_secure = is_secure && further.all(|server| server.tls.is_some());
        if let Some(option) = self.given().filter(|_| !any_is_secure) {
            let secured = Scheme::list(true);
            let wrong = format!("is of TLS: write {secured} in the URL, or leave it out");
            return Err(Failure::argument(option, wrong));
        }
        if self.sni.is_some() && !target.further.is_empty() {
            let wrong = "is the name of one server, and the scenario has several: leave it out";
            return Err(Failure::argument("--sni", wrong));
        }
        if self.http2 && !all_are_secure {
            let wrong = "is chosen in TLS: write https://, or give --http2-prior-knowledge";
            return Err(Failure::argument("--http2", wrong));
        }
        self.check_http3(&target, all_are_secure)?;
        let version = if self.http1 {
            HttpVersion::Http11
        } else if self.wants_http2() {
            HttpVersion::Http2
        } else if self.http3 {
            HttpVersion::Http3
        } else if self.http3_if_offered {
            HttpVersion::Http3IfOffered
        } else {
            HttpVersion::Auto
        };
        let mut target = Target {
            protocol: Protocol::Http(HttpSettings { version, http2: self.http2_limits() }),
            tls: is_secure.then(Box::default),
            ..target
        };
        target.tls_of_servers().for_each(|tls| *tls = self.tls());
        Ok(target)
    }

    /// Checks that HTTP/3 is possible, where it was asked for.
    fn check_http3(&self, target: &Target, is_secure: bool) -> Result<(), Failure> {
        let option = match (self.http3, self.http3_if_offered) {
            (true, _) => "--http3",
            (_, true) => "--http3-if-offered",
            (false, false) => return Ok(()),
        };
        let wrong = if !is_secure {
            "HTTP/3 is always secured: write https://"
        } else if self.tls_max == Some(TlsVersion::Tls12) {
            "HTTP/3 needs TLS 1.3: leave out --tls-max 1.2"
        } else if !target.proxies().is_empty() {
            "a proxy carries no HTTP/3: leave out --proxy"
        } else if matches!(target.endpoint, Endpoint::Unix { .. }) {
            "HTTP/3 is over UDP: leave out --unix-socket"
        } else if self.http3_if_offered && !target.further.is_empty() {
            "asks one server, and the scenario has several: give --http3"
        } else {
            return Ok(());
        };
        Err(Failure::argument(option, wrong))
    }

    fn tls(&self) -> TlsSpec {
        let certificate = self.cert.clone().zip(self.key.clone());
        TlsSpec {
            server_name: self.sni.clone(),
            roots: self.cacert.clone(),
            is_insecure: self.insecure,
            certificate: certificate.map(|(certificate, key)| ClientCertificate {
                certificate: Pem::File(certificate),
                key: Pem::File(key),
            }),
            version_min: self.tls_min,
            version_max: self.tls_max,
            groups: self.tls_groups.clone(),
            resume: self.tls_resume,
        }
    }

    /// An option that was given of those that only HTTP has.
    pub fn of_http(&self) -> Option<&'static str> {
        first_given(&[
            (self.http2, "--http2"),
            (self.http2_prior_knowledge, "--http2-prior-knowledge"),
            (self.http3, "--http3"),
            (self.http3_if_offered, "--http3-if-offered"),
            (self.window.is_some(), "--window"),
            (self.tls_resume == TlsResume::EarlyData, "--tls-resume 0rtt"),
        ])
    }

    /// An option that was given of those that choose a version of HTTP.
    pub fn of_other_http(&self) -> Option<&'static str> {
        first_given(&[
            (self.http1, "--http1.1"),
            (self.http2, "--http2"),
            (self.http2_prior_knowledge, "--http2-prior-knowledge"),
            (self.http3, "--http3"),
            (self.http3_if_offered, "--http3-if-offered"),
        ])
    }

    /// The limits of HTTP/2 connections.
    pub fn http2_limits(&self) -> Http2Limits {
        Http2Limits { streams_max: self.streams, window_bytes: self.window }
    }

    /// Whether HTTP/2 is asked for.
    pub fn wants_http2(&self) -> bool {
        self.http2 || self.http2_prior_knowledge
    }

    /// An option of TLS that was given. Lines of curl for cleartext have --insecure.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
            (self.sni.is_some(), "--sni"),
            (self.tls_min.is_some(), "--tls-min"),
            (self.tls_max.is_some(), "--tls-max"),
            (!self.tls_groups.is_empty(), "--tls-groups"),
            (self.tls_resume != TlsResume::default(), "--tls-resume"),
        ])
    }
}

/// Versions of TLS.
pub const VERSIONS: Choices<TlsVersion> = &[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)];

const GROUPS: Choices<TlsGroup> = &[
    ("x25519", TlsGroup::X25519),
    ("secp256r1", TlsGroup::Secp256r1),
    ("secp384r1", TlsGroup::Secp384r1),
    ("X25519MLKEM768", TlsGroup::X25519MlKem768),
];

/// Ways to resume a TLS session.
pub const RESUMES: Choices<TlsResume> =
    &[(TICKET, TlsResume::Ticket), ("off", TlsResume::Off), ("0rtt", TlsResume::EarlyData)];
const TICKET: &str = "ticket";

impl Typed for TlsResume {
    /// The default is left out.
    fn typed(&self) -> Value {
        let is_default = *self == TlsResume::default();
        (!is_default).then(|| word_of(RESUMES, *self)).into()
    }
}
