//! What the server's host saw of a trial.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use super::{Document, Fact, fact, keep_first_of_levels};
use crate::number::{count, known, percent, plural, signed_count, time, time_short};
use knee_core::measure::{HostTimes, Observed, PartTimes, SynSource};
use knee_core::trial::report::TrialReport;

/// Where the numbers come from.
pub(crate) fn source(o: &Observed) -> &'static str {
    match o.source {
        SynSource::Capture => "counted by a packet capture",
        SynSource::Counters => "counted by the kernel's counters",
        SynSource::Attempts => "not seen",
    }
}

/// What was seen.
pub(crate) fn facts(o: &Observed) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(because) = &o.because {
        let ink = match o.source {
            SynSource::Attempts => Ink::Warn,
            _ => Ink::Plain,
        };
        facts.push(fact("because", Line::of(ink, because.as_str())));
    }
    if o.elapsed_ns > 0 {
        facts.push(fact("SYNs", syns(o)));
        if o.source == SynSource::Capture {
            facts.push(fact("FINs and RSTs", Line::plain(count(o.client_ends))));
        }
        if o.capture_lost > 0 {
            let lost = format!(
                "{} not seen by the capture",
                plural(o.capture_lost, "packet")
            );
            facts.push(fact("lost", Line::of(Ink::Warn, lost)));
        }
        facts.extend(o.accept_queue_max.map(|max| {
            let limit = o.accept_queue_limit;
            let of = limit.map_or_else(String::new, |l| format!(", backlog {}", count(l.into())));
            let ink = match limit {
                Some(limit) if max > limit => Ink::Warn,
                _ => Ink::Plain,
            };
            let text = format!("at most {} waiting{of}", count(max.into()));
            fact("accept queue", Line::of(ink, text))
        }));
        let busy = format!("{} busy", percent(o.cpu_busy_percent));
        facts.push(fact("processors", Line::plain(busy)));
        let moved = o.kernel.iter();
        let moved: Vec<_> = moved
            .map(|(n, by)| format!("{n} {}", signed_count(*by)))
            .collect();
        if !moved.is_empty() {
            facts.push(fact("counters", Line::plain(moved.join(", "))));
        }
    }
    facts.extend(o.server_host.iter().flat_map(host_facts));
    facts
}

/// Adds where the time of operations went that were followed at both ends, where any were: a row
/// for the first trial of each level.
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
    let mut table = Table::default();
    let labels = rows.iter().map(|(label, _)| Line::plain(*label));
    table.column("trial", Align::Left, labels.collect());
    let mut column = |title: &str, cell: &dyn Fn(&HostTimes) -> String| {
        let cells = rows.iter().map(|(_, times)| Line::plain(cell(times)));
        table.column(title, Align::Right, cells.collect());
    };
    let time = |ns: Option<u64>| known(ns, time_short);
    column("operations", &|t| count(t.operations));
    column("host p50", &|t| time(t.host_ns.p50));
    column("host p99", &|t| time(t.host_ns.p99));
    column("network p50", &|t| time(t.network_ns.p50));
    column("network p99", &|t| time(t.network_ns.p99));
    doc.table(title, table);
}

/// Where the time of operations went that were followed at both ends.
fn host_facts(times: &HostTimes) -> Vec<Fact> {
    if let Some(because) = times.because.as_ref().filter(|_| times.operations == 0) {
        let text = format!("not known: {because}");
        return vec![fact("server host", Line::plain(text))];
    }
    let part = |of: &PartTimes| {
        let [mean, p50, p99] = [of.mean, of.p50, of.p99].map(|ns| known(ns, time));
        format!("mean {mean}, p50 {p50}, p99 {p99}")
    };
    let mut followed = format!("{} at both ends", plural(times.operations, "operation"));
    for (n, why) in [
        (times.incomplete, "not seen whole"),
        (times.unseen, "on connections not seen"),
    ] {
        if n > 0 {
            followed.push_str(&format!(", {} {why}", count(n)));
        }
    }
    vec![
        fact("in server host", Line::plain(part(&times.host_ns))),
        fact("in network", Line::plain(part(&times.network_ns))),
        fact("followed", Line::plain(followed)),
    ]
}

fn syns(o: &Observed) -> Line {
    let (first, time) = (count(o.first_syns), time_short(o.elapsed_ns));
    match o.source {
        SynSource::Capture => {
            let repeated = count(o.repeated_syns);
            Line::plain(format!("{first} first, {repeated} repeated, in {time}"))
        }
        // The counters do not tell the two apart.
        _ => Line::plain(format!("{first}, repeated ones included, in {time}")),
    }
}
