//! Traffic: bytes, status codes, protocol and handshakes, and each target. The observations at the
//! server's host.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Document, Fact, fact, first_of_levels};
use crate::number::{bytes, count, known, percent, plural, signed_count, time, time_short};
use knee_core::trial::report::TrialReport;
use knee_core::trial::traffic::{
    PacketsReport, ProtocolReport, TargetReport, TlsReport, TrafficReport,
};
use knee_load::measure::{
    AddressUse, HostTimes, Observed, PartTimes, RoutedConnections, SynSource, grpc_status_name,
};

/// Targets shown of one trial.
const TARGETS_SHOWN: usize = 20;

/// Steps shown of all trials together.
const STEPS_OF_LEVELS: usize = 60;

/// The longest name of a target, in characters.
const TARGET_WIDTH: usize = 40;

/// Bytes in each direction.
pub(super) fn transfer_facts(received: u64, traffic: &TrafficReport) -> Vec<Fact> {
    let transfer = |n: u64, per_s: Option<f64>| {
        let per_s = per_s.filter(|_| n > 0);
        let rate = per_s.map(|per_s| format!(", {}/s", bytes(per_s.round() as u64)));
        bytes(n) + &rate.unwrap_or_default()
    };
    let mut facts = Vec::new();
    if traffic.bytes_sent > 0 {
        facts.push(fact("sent", transfer(traffic.bytes_sent, traffic.bytes_sent_per_s)));
    }
    facts.push(fact("received", transfer(received, traffic.bytes_received_per_s)));
    facts
}

/// The count of each status, unless all are 200.
pub(super) fn status_facts(
    traffic: &TrafficReport,
    protocol: Option<&ProtocolReport>,
) -> Option<Fact> {
    let codes = &traffic.status_codes;
    if codes.iter().all(|(status, _)| status == 200) {
        return None;
    }
    let is_grpc = protocol.is_some_and(|p| p.application.as_deref() == Some("gRPC"));
    let name = |status| grpc_status_name(status).filter(|_| is_grpc);
    let counts = codes.iter().map(|(status, n)| match name(status) {
        Some(name) => format!("{status} {name}: {}", count(n)),
        None => format!("{status}: {}", count(n)),
    });
    Some(fact("status codes", counts.collect::<Vec<_>>().join(", ")))
}

/// Counts of answers that did not end the operations they came for.
pub(super) fn answer_facts(traffic: &TrafficReport) -> Vec<Fact> {
    let rows = [
        (
            "truncated answers",
            traffic.truncated_answers,
            "in the whole trial, asked again over TCP",
        ),
        (
            "unmatched answers",
            traffic.unmatched_answers,
            "in the whole trial, late, repeated or never asked for",
        ),
        ("skipped lines", traffic.skipped_lines, "of --targets, which are no questions"),
    ];
    let rows = rows.into_iter().filter(|(_, n, _)| *n > 0);
    rows.map(|(name, n, what)| fact(name, format!("{} {what}", count(n)))).collect()
}

/// The proxy that connections went through, if any.
pub(super) fn proxy_fact(routed: &RoutedConnections) -> Option<Fact> {
    let proxies = routed.proxies.join(", ");
    (!proxies.is_empty()).then(|| fact("proxy", format!("through the proxy {proxies}")))
}

/// The addresses and proxies of the connections of all trials; nothing for one address without a
/// proxy.
pub(super) fn routed_facts(trials: &[TrialReport]) -> Vec<Fact> {
    let mut routed = RoutedConnections::default();
    for http in trials.iter().filter_map(TrialReport::http) {
        routed.merge(http.routed.clone());
    }
    let mut facts = Vec::from_iter(proxy_fact(&routed));
    let (mut used, mut left_out) = (Vec::new(), Vec::new());
    for AddressUse { address, opened, answered, left_out_because } in &routed.addresses {
        match left_out_because {
            Some(why) if *opened == 0 => left_out.push(format!("{address}: {why}")),
            _ => used.push(format!("{address} {} of {}", count(*answered), count(*opened))),
        }
    }
    if !routed.is_plain() && !used.is_empty() {
        let established = format!("{} connections established", used.join(", "));
        facts.push(fact("addresses", established));
    }
    if !left_out.is_empty() {
        facts.push(fact("addresses left out", left_out.join(", ")));
    }
    if routed.lookups > 0 {
        let times = plural(routed.lookups, "time");
        facts.push(fact("names", format!("looked up again {times} for new connections")));
    }
    facts
}

/// Protocol and handshakes; nothing for HTTP/1.1 in cleartext.
pub(super) fn protocol_facts(protocol: Option<&ProtocolReport>) -> Vec<Fact> {
    let Some(protocol) = protocol else {
        return Vec::new();
    };
    let mut facts = vec![fact("protocol", protocol.words())];
    if let (Some(name), Some(opened)) = (&protocol.application, &protocol.openings) {
        let times = [("connecting", &opened.connect_ns), ("opening", &opened.opening_ns)];
        let times = times.into_iter().filter_map(|(what, quantiles)| {
            Some(format!("{what} p50 {}, max {}", time(quantiles.p50?), time(quantiles.max?)))
        });
        let mut parts = vec![format!("{} opened", count(opened.opened))];
        parts.extend(times);
        facts.push(fact(format!("{name} connections"), parts.join("; ")));
    }
    if let Some(tls) = &protocol.tls {
        facts.extend(handshakes(tls));
    }
    facts.extend(protocol.packets.as_ref().map(packets));
    facts
}

fn packets(packets: &PacketsReport) -> Fact {
    let mut line = Line::plain(format!("{} sent, ", count(packets.sent)));
    let lost = format!("{} lost", count(packets.lost));
    if packets.lost > 0 {
        line.push(Ink::Warn, lost);
    } else {
        line.push(Ink::Plain, lost);
    }
    line.push(Ink::Plain, format!("; {} datagrams received", count(packets.received)));
    if let (Some(p50), Some(max)) = (packets.beside_loss_ns.p50, packets.beside_loss_ns.max) {
        let responses = plural(packets.responses_beside_loss, "response");
        let took =
            format!("; {responses} beside lost packets: p50 {}, max {}", time(p50), time(max));
        line.push(Ink::Plain, took);
    }
    fact("packets", line)
}

fn handshakes(tls: &TlsReport) -> Vec<Fact> {
    let mut words =
        format!("{} full, {} resumed", count(tls.handshakes_full), count(tls.handshakes_resumed));
    if let Some(early) = &tls.early_data {
        words.push_str(&format!(" ({} with early data", count(early.taken)));
        if early.refused > 0 {
            words.push_str(&format!(", {} with it refused", count(early.refused)));
        }
        words.push(')');
    }
    let mut line = Line::plain(words);
    if tls.handshakes_failed > 0 {
        line.push(Ink::Bad, format!(", {} failed", count(tls.handshakes_failed)));
    }
    let mut facts = vec![fact("handshakes", line)];
    if let (Some(p50), Some(p99)) = (tls.handshake_ns.p50, tls.handshake_ns.p99) {
        let mut took = format!("p50 {}, p99 {}", time(p50), time(p99));
        if let Some(connect) = tls.connect_ns.p50 {
            took.push_str(&format!(", after connecting in p50 {}", time(connect)));
        }
        took.push_str(&format!("; {} of the generator's own", time(tls.generator_ns)));
        facts.push(fact("handshake", took));
    }
    facts
}

/// Adds the targets, or the steps of sessions.
pub(super) fn show_targets(doc: &mut Document, traffic: &TrafficReport, title: &str) {
    let targets: Vec<_> = traffic.targets.iter().map(|target| ("", target)).collect();
    show_first(doc, &targets, title, TARGETS_SHOWN);
}

/// Adds the steps of sessions of several trials.
pub(super) fn show_steps_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let of_sessions = trials.iter().filter(|t| t.sessions().is_some());
    let steps = of_sessions.filter_map(|t| Some((t.label.as_str(), &t.http()?.traffic)));
    let steps =
        steps.flat_map(|(label, traffic)| traffic.targets.iter().map(move |step| (label, step)));
    show_first(doc, &steps.collect::<Vec<_>>(), "Steps", STEPS_OF_LEVELS);
}

fn show_first(doc: &mut Document, targets: &[(&str, &TargetReport)], title: &str, most: usize) {
    if targets.is_empty() {
        return;
    }
    let mut remark = String::new();
    if targets.len() > most {
        remark = format!("the first {most} of {}; all are in the JSON", targets.len());
    }
    doc.section(title, remark);
    doc.table(title, targets_table(&targets[..targets.len().min(most)]));
}

/// A row for each target, with its trial if there are several.
fn targets_table(targets: &[(&str, &TargetReport)]) -> Table {
    let mut table = TableOf::new(targets);
    table.left_if_any("trial", |(trial, _)| *trial);
    table.left("", |(_, t)| match t.sum_of {
        Some(n) => format!("{} ({})", t.target, count(n)),
        None => cut(&t.target, TARGET_WIDTH),
    });
    table.right("attempted", |(_, t)| count(t.attempted));
    table.right("errors", |(_, t)| count(t.outcomes.errors()));
    table.right("p50", |(_, t)| known(t.response_time_ns.p50, time_short));
    table.right("p95", |(_, t)| known(t.response_time_ns.p95, time_short));
    table.right("p99", |(_, t)| known(t.response_time_ns.p99, time_short));
    table.done()
}

/// The text, shortened with an ellipsis to `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() > width {
        text.chars().take(width - 1).chain(['…']).collect()
    } else {
        text.to_string()
    }
}

/// The source of the numbers.
pub(super) fn observation_source(o: &Observed) -> &'static str {
    match o.source {
        SynSource::Capture => "counted by a packet capture",
        SynSource::Counters => "counted by the kernel's counters",
        SynSource::Attempts => "not seen",
    }
}

/// The observations as facts.
pub(super) fn observed_facts(o: &Observed) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(because) = &o.because {
        let is_unseen = o.source == SynSource::Attempts;
        let ink = if is_unseen { Ink::Warn } else { Ink::Plain };
        facts.push(fact("because", Line::of(ink, because.as_str())));
    }
    if o.elapsed_ns > 0 {
        if o.source != SynSource::Attempts {
            facts.push(fact("SYNs", syns(o)));
        }
        if o.source == SynSource::Capture {
            facts.push(fact("FINs and RSTs", count(o.client_ends)));
        }
        if o.capture_lost > 0 {
            let packets = plural(o.capture_lost, "packet");
            let lost = format!("{packets} not seen by the capture");
            facts.push(fact("lost", Line::of(Ink::Warn, lost)));
        }
        facts.extend(o.accept_queue_max.map(|max| {
            let limit = o.accept_queue_limit;
            let backlog =
                limit.map_or_else(String::new, |l| format!(", backlog {}", count(l.into())));
            let is_over = limit.is_some_and(|limit| max > limit);
            let ink = if is_over { Ink::Warn } else { Ink::Plain };
            let text = format!("at most {} waiting{backlog}", count(max.into()));
            fact("accept queue", Line::of(ink, text))
        }));
        facts.push(fact("processors", format!("{} busy", percent(o.cpu_busy_percent))));
        let moved = o.kernel.iter().map(|(name, by)| format!("{name} {}", signed_count(*by)));
        let moved: Vec<String> = moved.collect();
        if !moved.is_empty() {
            facts.push(fact("counters", moved.join(", ")));
        }
    }
    facts.extend(o.server_host.iter().flat_map(host_facts));
    facts
}

/// Adds the time inside the server's host and in the network, from operations that were followed at
/// both ends. It has a row for the first trial of each level.
pub(super) fn show_host_times_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let rows = first_of_levels(trials, |t| {
        t.observed()?.server_host.as_ref().filter(|times| times.operations > 0)
    });
    if rows.is_empty() {
        return;
    }
    let title = "Inside the server's host";
    doc.section(title, "operations that were seen at both ends");
    let time = |ns: Option<u64>| known(ns, time_short);
    let mut table = TableOf::new(&rows);
    table.left("trial", |(label, _)| *label);
    table.right("operations", |(_, t)| count(t.operations));
    table.right("host p50", |(_, t)| time(t.host_ns.p50));
    table.right("host p99", |(_, t)| time(t.host_ns.p99));
    table.right("network p50", |(_, t)| time(t.network_ns.p50));
    table.right("network p99", |(_, t)| time(t.network_ns.p99));
    doc.table(title, table.done());
}

/// The time inside the server's host and in the network.
fn host_facts(times: &HostTimes) -> Vec<Fact> {
    if let Some(because) = times.because.as_ref().filter(|_| times.operations == 0) {
        let text = format!("not known: {because}");
        return vec![fact("server host", text)];
    }
    let part = |times: &PartTimes| {
        let [mean, p50, p99] = [times.mean, times.p50, times.p99].map(|ns| known(ns, time));
        format!("mean {mean}, p50 {p50}, p99 {p99}")
    };
    let mut followed = format!("{} at both ends", plural(times.operations, "operation"));
    for (n, why) in
        [(times.incomplete, "not seen whole"), (times.unseen, "on connections not seen")]
    {
        if n > 0 {
            followed.push_str(&format!(", {} {why}", count(n)));
        }
    }
    vec![
        fact("in server host", part(&times.host_ns)),
        fact("in network", part(&times.network_ns)),
        fact("followed", followed),
    ]
}

fn syns(o: &Observed) -> String {
    let (first, time) = (count(o.first_syns), time_short(o.elapsed_ns));
    match o.source {
        SynSource::Capture => {
            let repeated = count(o.repeated_syns);
            format!("{first} first, {repeated} repeated, in {time}")
        }
        // The counters do not distinguish them.
        _ => format!("{first}, repeated ones included, in {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::EarlyData;

    fn handshake_words(early_data: Option<EarlyData>) -> String {
        let tls = TlsReport {
            handshakes_full: 4,
            handshakes_resumed: 1_096,
            early_data,
            ..TlsReport::default()
        };
        let [line] = &handshakes(&tls)[..] else {
            panic!("none took any time");
        };
        line.1.text()
    }

    #[test]
    fn early_data_is_told_where_it_was_asked_for() {
        assert_eq!(handshake_words(None), "4 full, 1,096 resumed");
        let none = EarlyData::default();
        assert_eq!(handshake_words(Some(none)), "4 full, 1,096 resumed (0 with early data)");
        let some = EarlyData { taken: 1_090, refused: 3 };
        assert_eq!(
            handshake_words(Some(some)),
            "4 full, 1,096 resumed (1,090 with early data, 3 with it refused)"
        );
    }
}
