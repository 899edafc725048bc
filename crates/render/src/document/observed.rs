//! The observations at the server's host during a trial.

use super::line::{Ink, Line};
use super::table::TableOf;
use super::{Document, Fact, fact, keep_first_of_levels};
use crate::number::{count, known, percent, plural, signed_count, time, time_short};
use knee_core::trial::report::TrialReport;
use knee_load::measure::{HostTimes, Observed, PartTimes, SynSource};

/// The source of the numbers.
pub(super) fn source(o: &Observed) -> &'static str {
    match o.source {
        SynSource::Capture => "counted by a packet capture",
        SynSource::Counters => "counted by the kernel's counters",
        SynSource::Attempts => "not seen",
    }
}

/// The observations as facts.
pub(super) fn facts(o: &Observed) -> Vec<Fact> {
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
            let of = limit.map_or_else(String::new, |l| format!(", backlog {}", count(l.into())));
            let is_over = limit.is_some_and(|limit| max > limit);
            let ink = if is_over { Ink::Warn } else { Ink::Plain };
            let text = format!("at most {} waiting{of}", count(max.into()));
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
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let mut rows: Vec<(&str, &HostTimes)> = trials
        .iter()
        .filter_map(|t| Some((t.label.as_str(), t.observed()?.server_host.as_ref()?)))
        .filter(|(_, times)| times.operations > 0)
        .collect();
    keep_first_of_levels(&mut rows);
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
    let part = |of: &PartTimes| {
        let [mean, p50, p99] = [of.mean, of.p50, of.p99].map(|ns| known(ns, time));
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
