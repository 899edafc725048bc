//! What went over the connections, how they were secured, and to which target or step it went.

use super::figure::TimesReport;
use super::times::{is_zero, times_of_part};
use crate::trial::step_names::step_name;
use knee_load::measure::{
    Agreed, EarlyData, Handshakes, Outcomes, PacketsMeasured, PartTimes, Series, Stage,
    StatusCodes, TargetMeasured, Trial, known_keys,
};
use knee_load::spec::{HttpVersion, Load, Protocol, Target, TlsResume, TlsSpec};
use knee_load::stats::correlation::Correlation;
use knee_load::stats::sample::batch_means_ci95;
use knee_load::stats::stationarity::{RESPONSE_SHARE, THROUGHPUT_SHARE, is_stationary};
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What went over the connections; its keys stand among those of the trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Numbers of responses by status; they sum to `completed`.
    #[serde(default, skip_serializing_if = "StatusCodes::is_empty")]
    pub status_codes: StatusCodes,
    /// Bytes of the requests that were sent whole and ended in the window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_sent: u64,
    /// Bytes sent per second of the window; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_sent_per_s: Option<f64>,
    /// Bytes received in the window per second of it; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_received_per_s: Option<f64>,
    /// The most connections that may be open at once; open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_limit: Option<u64>,
    /// Operations that timed out before they were sent, as they waited for a connection.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent: u64,
    /// Whole responses after which bytes came that nobody asked for, in the whole trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub surplus_responses: u64,
    /// Answers that no operation under way waited for, in the whole trial: late, repeated or never
    /// asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmatched_answers: u64,
    /// Answers that did not fit into their datagrams, in the whole trial. Their operations went on
    /// over TCP.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated_answers: u64,
    /// Lines of the file of questions that are none, and were not sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped_lines: u64,
    /// Times at which all 65,536 ids of a connection were taken, in the whole trial.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ids_exhausted: u64,
    /// Each target on its own, in the order of the targets file; absent where there is one. Of
    /// sessions each step, however many there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetReport>,
}

/// The figures of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// `GET /path`; of the last of very many `other targets`.
    pub target: String,
    /// Number of targets that it sums up; absent for one target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_of: Option<u64>,
    /// Operations intended in the window.
    pub attempted: u64,
    /// Operations that ended in a whole response.
    pub completed: u64,
    /// Outcomes of its operations; they sum to `attempted`.
    pub outcomes: Outcomes,
    /// Numbers of responses by status; they sum to `completed`.
    pub status_codes: StatusCodes,
    /// Response times: completed − intended.
    pub response_time_ns: TimesReport,
    /// Further figures if it is a step of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepReport>,
}

/// The traffic of a trial, as reported.
pub(super) fn traffic_report(trial: &Trial) -> TrafficReport {
    let measured = &trial.measurement;
    let window_s = measured.window.length().as_secs_f64();
    let per_s = |bytes: u64| (window_s > 0.0).then(|| bytes as f64 / window_s);
    TrafficReport {
        status_codes: measured.status_codes.clone(),
        bytes_sent: measured.bytes_sent,
        bytes_sent_per_s: per_s(measured.bytes_sent),
        bytes_received_per_s: per_s(measured.bytes_received),
        connections_limit: match &trial.spec.load {
            Load::Open(load) => Some(load.connections_max.into()),
            Load::Closed { .. } | Load::Overload(_) => None,
        },
        unsent: measured.unsent,
        surplus_responses: measured.surplus,
        unmatched_answers: measured.unmatched,
        truncated_answers: measured.diverted,
        skipped_lines: match trial.spec.target.protocol {
            Protocol::Dns(settings) => settings.skipped.count.into(),
            _ => 0,
        },
        ids_exhausted: measured.exhausted,
        targets: targets(&measured.targets, &trial.spec.target, measured.window.length()),
    }
}

/// The reports of requests or steps. With fewer measurements than requests the last measurement is
/// of all further requests.
fn targets(measured: &[TargetMeasured], target: &Target, window: Nanos) -> Vec<TargetReport> {
    let (requests, plan) = (&target.requests, target.sessions.as_deref());
    let recording = &target.recording;
    let is_step = |index: usize| !plan.is_some_and(|plan| plan.is_unlisted(index as u32));
    let rows = measured.iter().enumerate().map(|(index, target)| {
        let further = requests.len().saturating_sub(measured.len());
        let is_sum = further > 0 && index + 1 == measured.len();
        let name = match requests.get(index) {
            Some(request) if !is_sum => match plan {
                Some(plan) => step_name(plan, index as u32),
                // Each recorded request has a path of its own.
                None if recording.is_some() => request.method.clone(),
                None => format!("{} {}", request.method, request.path),
            },
            _ => "other targets".to_owned(),
        };
        TargetReport {
            target: name,
            sum_of: is_sum.then_some(further as u64 + 1),
            attempted: target.outcomes.total(),
            completed: target.outcomes.responses(),
            outcomes: target.outcomes.clone(),
            status_codes: target.status_codes.clone(),
            response_time_ns: times_of_part(&target.response, step_correlation(target, window)),
            step: step_report(target, window),
        }
    });
    // Redirections count as operations of their steps, and have no row of their own.
    rows.enumerate().filter(|(index, _)| is_step(*index)).map(|(_, row)| row).collect()
}

/// The figures that only a step of sessions has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Operations of it per second, of those intended in the window.
    pub rate_per_s: f64,
    /// 95 % confidence interval of that; absent where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ci95_per_s: Option<[f64; 2]>,
    /// The mean time in each stage that took any; they sum to the mean response time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(deserialize_with = "known_keys")]
    pub mean_ns: BTreeMap<Stage, u64>,
}

/// The report of a step within a window of this length; `None` where the target is no step, or the
/// window is empty.
fn step_report(measured: &TargetMeasured, window: Nanos) -> Option<StepReport> {
    let step = measured.step.as_ref()?;
    let window_s = window.as_secs_f64();
    if window_s <= 0.0 {
        return None;
    }
    let rate_per_s = measured.outcomes.total() as f64 / window_s;
    let operations = measured.response.count();
    let stages = Stage::all().zip(&step.stages_ns);
    let mean_ns = |sum: &u64| (*sum as f64 / operations.max(1) as f64).round() as u64;
    Some(StepReport {
        rate_per_s,
        // What ended in the slots is not quite what was intended: their spread has both.
        rate_ci95_per_s: rate_ci95(&step.series, window, rate_per_s),
        mean_ns: stages
            .map(|(stage, sum)| (stage, mean_ns(sum)))
            .filter(|(_, ns)| *ns > 0)
            .collect(),
    })
}

/// 95 % confidence interval of a rate of what ended in these slots; `None` where that drifts or
/// jumps, or is too little.
pub(super) fn rate_ci95(series: &Series, window: Nanos, rate_per_s: f64) -> Option<[f64; 2]> {
    let counts = &series.response_count[..series.whole_slots(window)];
    let counts: Vec<f64> = counts.iter().map(|n| *n as f64).collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    let ends = batch_means_ci95(&counts).filter(|_| mean > 0.0)?;
    let is_steady = is_stationary(&counts, THROUGHPUT_SHARE);
    is_steady.then(|| ends.map(|end| (end / mean * rate_per_s).max(0.0)))
}

/// The correlation of the response times of a step; `None` of other targets.
/// `None` too where the response times of the step drift or jump, so that its percentiles may not
/// be bounded.
pub(super) fn step_correlation(measured: &TargetMeasured, window: Nanos) -> Option<Correlation> {
    let series = &measured.step.as_ref()?.series;
    let means = series.means_ns(0..series.whole_slots(window));
    is_stationary(&means, RESPONSE_SHARE).then(|| Correlation::of(series, &measured.response))
}

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
    /// Packets of all connections; absent where the protocol does not number them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketsReport>,
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

/// The packets of all connections of a trial. Which packets of the target were lost is not known
/// to the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketsReport {
    /// Packets sent, those that repeat lost data included.
    pub sent: u64,
    /// Packets sent that were lost on the way.
    pub lost: u64,
    /// Received datagrams.
    pub received: u64,
    /// Complete responses, in the warm-up too.
    pub responses: u64,
    /// Of them those during which packets of their connection were lost.
    pub responses_beside_loss: u64,
    /// How long these took, in nanoseconds.
    pub beside_loss_ns: PartTimes,
}

impl PacketsReport {
    fn of(packets: &PacketsMeasured) -> PacketsReport {
        let PacketsMeasured { sent, lost, received, responses, beside_loss } = packets;
        PacketsReport {
            sent: *sent,
            lost: *lost,
            received: *received,
            responses: *responses,
            responses_beside_loss: beside_loss.count(),
            beside_loss_ns: PartTimes::of(beside_loss),
        }
    }
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
    let has_streams = http.has_streams();
    let handshakes = &trial.measurement.handshakes;
    let application = target.protocol.application();
    // All servers of a target have the same parameters, those that are secured.
    let mut further = target.further.iter();
    let tls = target.tls.as_ref().or_else(|| further.find_map(|server| server.tls.as_ref()));
    if !has_streams && tls.is_none() && application.is_none() {
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
        streams_max: target.protocol.http().http2.streams_max.filter(|_| has_streams),
        window_bytes: target.protocol.http().http2.window_bytes.filter(|_| has_streams),
        openings: target.protocol.has_opening().then_some(openings),
        tls: tls.map(|spec| tls_report(spec, handshakes)),
        packets: trial.measurement.packets.as_ref().map(PacketsReport::of),
    })
}

fn tls_report(spec: &TlsSpec, handshakes: &Handshakes) -> TlsReport {
    TlsReport {
        agreed: handshakes.agreed.clone(),
        handshakes_full: handshakes.full,
        handshakes_resumed: handshakes.resumed,
        handshakes_failed: handshakes.failed,
        early_data: (spec.resume == TlsResume::EarlyData).then_some(handshakes.early_data),
        failed_because: handshakes.failed_because.clone(),
        connect_ns: PartTimes::of(&handshakes.connect),
        handshake_ns: PartTimes::of(&handshakes.time),
        generator_ns: handshakes.generator.0,
    }
}
