//! What went over the connections: bytes, status codes, and each target on its own.

use super::line::Line;
use super::table::{Align, Table};
use super::{Document, Fact};
use crate::number::{bytes, count, time_short};
use knee_core::trial::report::{TargetReport, TimesReport, TrafficReport, TrialReport};

/// So many targets are shown.
const TARGETS_SHOWN: usize = 20;

/// So many steps are shown of several trials together.
const STEPS_OF_LEVELS: usize = 60;

/// The longest name of a target, in characters.
const TARGET_WIDTH: usize = 40;

/// What went in each direction.
pub(super) fn transfer_facts(bytes_received: u64, traffic: &TrafficReport) -> Vec<Fact> {
    let sent = (traffic.bytes_sent, traffic.bytes_sent_per_s);
    let received = (bytes_received, traffic.bytes_received_per_s);
    let sent = (sent.0 > 0).then(|| ("sent".to_string(), transfer(sent)));
    let received = ("received".to_string(), transfer(received));
    sent.into_iter().chain([received]).collect()
}

/// Bytes, and as many per second.
fn transfer((n, per_s): (u64, Option<f64>)) -> Line {
    let each = per_s.filter(|_| n > 0).map_or_else(String::new, |per_s| {
        format!(", {}/s", bytes(per_s.round() as u64))
    });
    Line::plain(format!("{}{each}", bytes(n)))
}

/// Each status with its count, where there is another than 200.
pub(super) fn status_facts(traffic: &TrafficReport) -> Vec<Fact> {
    let codes = &traffic.status_codes;
    if codes.iter().all(|(status, _)| status == 200) {
        return Vec::new();
    }
    let each = codes
        .iter()
        .map(|(status, n)| format!("{status}: {}", count(n)));
    let line = Line::plain(each.collect::<Vec<_>>().join(", "));
    vec![("status codes".to_string(), line)]
}

/// Adds the targets, or the steps of sessions, where there are several.
pub(super) fn show_targets(doc: &mut Document, traffic: &TrafficReport, title: &str) {
    let targets: Vec<_> = traffic.targets.iter().map(|target| ("", target)).collect();
    show_some(doc, &targets, title, TARGETS_SHOWN);
}

/// Adds the steps of sessions of several trials.
pub(super) fn show_steps_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let of_sessions = trials.iter().filter(|t| t.sessions().is_some());
    let steps = of_sessions.filter_map(|t| Some((t.label.as_str(), &t.http()?.traffic)));
    let steps = steps.flat_map(|(label, of)| of.targets.iter().map(move |step| (label, step)));
    show_some(doc, &steps.collect::<Vec<_>>(), "Steps", STEPS_OF_LEVELS);
}

fn show_some(doc: &mut Document, targets: &[(&str, &TargetReport)], title: &str, most: usize) {
    if targets.is_empty() {
        return;
    }
    let remark = match targets.len() > most {
        true => format!("the first {most} of {}; all are in the JSON", targets.len()),
        false => String::new(),
    };
    doc.section(title, remark);
    let shown = &targets[..targets.len().min(most)];
    doc.table(title, targets_table(shown));
}

/// A row for each target of a trial, which is named where there are several.
fn targets_table(targets: &[(&str, &TargetReport)]) -> Table {
    let mut table = Table::default();
    let column = |cell: &dyn Fn(&TargetReport) -> String| -> Vec<Line> {
        let targets = targets.iter();
        targets.map(|(_, t)| Line::plain(cell(t))).collect()
    };
    super::add_trials(&mut table, targets.iter().map(|(trial, _)| *trial));
    let name = |t: &TargetReport| match t.sum_of {
        Some(n) => format!("{} ({})", t.target, count(n)),
        None => cut(&t.target, TARGET_WIDTH),
    };
    let errors = |t: &TargetReport| count(t.outcomes.errors());
    table.column("", Align::Left, column(&name));
    table.column("attempted", Align::Right, column(&|t| count(t.attempted)));
    table.column("errors", Align::Right, column(&errors));
    type Time = fn(&TimesReport) -> Option<u64>;
    let times: [(&str, Time); 3] = [("p50", |l| l.p50), ("p95", |l| l.p95), ("p99", |l| l.p99)];
    for (title, of) in times {
        let cell =
            |t: &TargetReport| of(&t.response_time_ns).map_or_else(|| "–".to_string(), time_short);
        table.column(title, Align::Right, column(&cell));
    }
    table
}

/// The first characters of a text, with a sign where some are left out.
pub(super) fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 1).chain(['…']).collect(),
        false => text.to_string(),
    }
}
