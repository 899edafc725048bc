//! What was spoken over the connections of a trial, and how they were secured.

use knee_load::measure::{Agreed, EarlyData, Handshakes, PartTimes, Trial};
use knee_load::spec::{HttpVersion, TlsResume, TlsSpec};
use serde::{Deserialize, Serialize};

/// The protocol of connections, unless that was HTTP/1.1 in cleartext.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// What operations were carried by, such as `WebSocket`; absent where that was HTTP itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Most concurrent streams of a connection that were asked for; absent where the target's
    /// limit alone counts, and in HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_max: Option<u32>,
    /// The flow-control window of a stream that was asked for, in bytes; absent where it was so
    /// large that it never limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// The handshakes of the application's own that opened connections; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openings: Option<OpeningsReport>,
    /// How connections were secured; absent in cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsReport>,
}

impl ProtocolReport {
    /// All that makes two protocols alike, in words: `HTTP/2 over TLS 1.3, …`.
    pub fn words(&self) -> String {
        let mut words = self.application.clone().unwrap_or_else(|| self.http.to_string());
        if let Some(tls) = &self.tls {
            words.push_str(&match &tls.agreed {
                Some(Agreed { version, cipher, .. }) => {
                    format!(" over TLS {version} with {cipher}")
                }
                None => " over TLS".to_owned(),
            });
            if let Some(group) = tls.agreed.as_ref().and_then(|agreed| agreed.group.as_ref()) {
                words.push_str(&format!(" and {group}"));
            }
            if tls.handshakes_resumed > 0 {
                words.push_str(", resumed");
            }
            if tls.early_data.is_some_and(|early| early.taken > 0) {
                words.push_str(" with early data");
            }
        }
        if let Some(streams) = self.streams_max {
            words.push_str(&format!(", {streams} streams"));
        }
        if let Some(window) = self.window_bytes {
            words.push_str(&format!(", windows of {window} bytes"));
        }
        words
    }
}

/// The opening handshakes of a trial's connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpeningsReport {
    /// Connections that were opened.
    pub opened: u64,
    /// From the beginning to connect until the connection was established, in nanoseconds.
    pub connect_ns: PartTimes,
    /// From then, or from when it was secured, until it was open, in nanoseconds.
    pub opening_ns: PartTimes,
}

/// How the connections of a trial were secured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TlsReport {
    /// The parameters of the first secured connection; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Agreed>,
    /// Handshakes with certificate and key exchange.
    pub handshakes_full: u64,
    /// Handshakes that resumed an earlier session.
    pub handshakes_resumed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Handshakes that requests came with; absent where none was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_data: Option<EarlyData>,
    /// Why the first handshake failed; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_because: Option<String>,
    /// From the beginning to connect until the connection was established, in nanoseconds.
    pub connect_ns: PartTimes,
    /// From then until it was secured, in nanoseconds.
    pub handshake_ns: PartTimes,
    /// The generator's own time for the cryptography of all handshakes, in nanoseconds.
    pub generator_ns: u64,
}

/// The protocol of a trial; `None`: HTTP/1.1 in cleartext.
pub fn protocol_report(trial: &Trial) -> Option<ProtocolReport> {
    let target = &trial.spec.target;
    let http = target.version();
    let is_http2 = http == HttpVersion::Http2;
    let handshakes = &trial.measurement.handshakes;
    let application = target.protocol.application();
    // All servers of a target have the same parameters, those that are secured.
    let mut further = target.further.iter();
    let tls = target.tls.as_ref().or_else(|| further.find_map(|server| server.tls.as_ref()));
    if !is_http2 && tls.is_none() && application.is_none() {
        return None;
    }
    let openings = OpeningsReport {
        opened: handshakes.opening.count(),
        connect_ns: PartTimes::of(&handshakes.connect),
        opening_ns: PartTimes::of(&handshakes.opening),
    };
    Some(ProtocolReport {
        application: application.map(str::to_owned),
        http,
        streams_max: target.protocol.http().http2.streams_max.filter(|_| is_http2),
        window_bytes: target.protocol.http().http2.window_bytes.filter(|_| is_http2),
        openings: target.protocol.has_opening().then_some(openings),
        tls: tls.map(|spec| tls_report(spec, handshakes)),
    })
}

fn tls_report(spec: &TlsSpec, of: &Handshakes) -> TlsReport {
    TlsReport {
        agreed: of.agreed.clone(),
        handshakes_full: of.full,
        handshakes_resumed: of.resumed,
        handshakes_failed: of.failed,
        early_data: (spec.resume == TlsResume::EarlyData).then_some(of.early_data),
        failed_because: of.failed_because.clone(),
        connect_ns: PartTimes::of(&of.connect),
        handshake_ns: PartTimes::of(&of.time),
        generator_ns: of.generator.0,
    }
}
