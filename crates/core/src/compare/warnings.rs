//! Warnings: reasons why a difference may not be the target's.

use super::NamedReport;
use crate::report::Report;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::timing::ClockKind;
use crate::trial::traffic::ProtocolReport;
use crate::words::list;
use knee_load::spec::HttpVersion;
use serde_json::Value;
use std::collections::BTreeSet;

/// Options that do not change the measurement.
const IRRELEVANT_OPTIONS: &[&str] =
    &["seed", "fail-if", "observe", "interval", "file", "bound", "fleet"];
/// Options that set levels, which are matched one by one.
const LEVEL_OPTIONS: &[&str] = &["vusers", "rates", "axis", "simple", "descriptors", "max_vusers"];

/// All warnings.
pub(super) fn warnings(
    a: &[NamedReport],
    b: &[NamedReport],
    only: &[Vec<String>; 2],
) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(protocols(a, b));
    warnings.extend(specs(a, b));
    let differing = unlike_generators(a[0].report, b[0].report);
    if !differing.is_empty() {
        warnings.push(format!("the generator was not the same in A and B: {}", list(&differing)));
    }
    warnings.extend(clocks(a, b));
    for (side, reports) in [("A", a), ("B", b)] {
        for named in reports {
            warnings
                .extend(report_warnings(&side_name(side, reports.len(), named.name), named.report));
        }
    }
    for (side, labels) in ["A", "B"].iter().zip(only) {
        if !labels.is_empty() {
            let levels = level_range(labels);
            warnings.push(format!("only {side} has {levels}, which cannot be compared"));
        }
    }
    warnings
}

/// The values of both sides' trials, if both have any and they differ.
fn differing<T: Ord>(
    a: &[NamedReport],
    b: &[NamedReport],
    value: impl Fn(&TrialReport) -> Option<T>,
) -> Option<[BTreeSet<T>; 2]> {
    let [a, b] = [a, b].map(|side| {
        let trials = side.iter().flat_map(|named| &named.report.trials);
        trials.filter_map(&value).collect::<BTreeSet<T>>()
    });
    (!a.is_empty() && !b.is_empty() && a != b).then_some([a, b])
}

/// Protocols that differ: their cost is no difference between targets.
fn protocols(a: &[NamedReport], b: &[NamedReport]) -> Option<String> {
    let spoken = |t: &TrialReport| {
        let protocol = t.http()?.protocol.as_ref().map(ProtocolReport::words);
        Some(protocol.unwrap_or_else(|| HttpVersion::Http11.to_string()))
    };
    let [a, b] = differing(a, b, spoken)?.map(Vec::from_iter);
    Some(format!("A spoke {}, B {}", list(&a), list(&b)))
}

/// Clocks that differ: without the kernel's timestamps a response time includes the time until the
/// generator read the response.
fn clocks(a: &[NamedReport], b: &[NamedReport]) -> Option<String> {
    let is_kernel = |t: &TrialReport| {
        let clock = t.timing().and_then(|timing| timing.clock);
        (t.http().is_some() && t.completed > 0).then_some(clock == Some(ClockKind::Kernel))
    };
    let [_, b] = differing(a, b, is_kernel)?;
    let (kernel, process) = if b.contains(&true) { ("B", "A") } else { ("A", "B") };
    Some(format!(
        "{kernel} took the arrival of a response from the kernel's timestamps, {process} from \
         when it was read, so that its response times contain that delay"
    ))
}

/// `A`, or where there are several, `A (file)`.
fn side_name(side: &str, reports: usize, name: &str) -> String {
    match reports {
        1 => side.to_owned(),
        _ => format!("{side} ({name})"),
    }
}

fn level_range(labels: &[String]) -> String {
    match labels {
        [first, .., last] if labels.len() > 6 => {
            format!("{} levels from {first} to {last}", labels.len())
        }
        labels => list(labels),
    }
}

fn report_warnings(name: &str, report: &Report) -> Vec<String> {
    let mut warnings = Vec::new();
    let invalid = report.trials.iter().filter(|t| t.verdict == Verdict::Invalid);
    let reasons: BTreeSet<String> =
        invalid.clone().flat_map(|t| t.invalid_because.iter().cloned()).collect();
    let reasons = Vec::from_iter(reasons);
    let because = if reasons.is_empty() { String::new() } else { format!(": {}", list(&reasons)) };
    match (invalid.count(), report.trials.len()) {
        (0, _) if report.verdict == Verdict::Invalid => {
            warnings.push(format!("{name} is INVALID: its numbers are not the target's alone"));
        }
        (0, _) => {}
        (n, all) if n == all => warnings.push(format!(
            "{name} is INVALID and not judged, as the generator shaped its numbers{because}"
        )),
        (n, all) => warnings
            .push(format!("{n} of {all} trials of {name} are INVALID and left out{because}")),
    }
    let moving = report.trials.iter().filter(|t| !t.stationary).count();
    if moving > 0 {
        let suffix = match report.trials.len() {
            1 => String::new(),
            all => format!(" in {moving} of {all} trials"),
        };
        warnings.push(format!(
            "{name} was not stationary{suffix}: its figures moved while they were measured"
        ));
    }
    if report.interrupted {
        warnings.push(format!("{name} was interrupted before its time"));
    }
    warnings
}

/// Differing options.
fn specs(a: &[NamedReport], b: &[NamedReport]) -> Vec<String> {
    let (first, second) = (a[0].report, b[0].report);
    let mut warnings = Vec::new();
    if first.command != second.command {
        warnings.push(format!(
            "A is of knee {} and B of knee {}: only levels that both have are compared",
            first.command, second.command
        ));
        return warnings;
    }
    let differing = differences(first, second);
    if !differing.is_empty() {
        warnings.push(format!(
            "A and B were not loaded alike, which may be all that differs: {}",
            list(&differing)
        ));
    }
    for (side, reports) in [("A", a), ("B", b)] {
        for named in &reports[1..] {
            let differing = differences(reports[0].report, named.report);
            if !differing.is_empty() {
                warnings.push(format!(
                    "the runs of {side} were not made alike: {} and {} differ in {}",
                    reports[0].name,
                    named.name,
                    list(&differing)
                ));
            }
        }
    }
    warnings
}

/// `rate (1000/s and 2000/s)` for each option that matters and differs.
pub(super) fn differences(a: &Report, b: &Report) -> Vec<String> {
    let keys: BTreeSet<&String> = a.spec.keys().chain(b.spec.keys()).collect();
    let has_levels = a.trials.len() > 1 || b.trials.len() > 1;
    let mut differing = Vec::new();
    for key in keys {
        let name = key.as_str();
        if IRRELEVANT_OPTIONS.contains(&name) || has_levels && LEVEL_OPTIONS.contains(&name) {
            continue;
        }
        let [value_a, value_b] = [a, b].map(|r| shown(name, r.spec.get(key)));
        if value_a != value_b {
            differing.push(format!("{} ({value_a} and {value_b})", name.replace('_', " ")));
        }
    }
    differing
}

/// An option's value as typed; of a target only the path, as hosts are what is compared.
fn shown(name: &str, value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null | Value::Bool(false)) => return "not given".to_owned(),
        Some(Value::Bool(true)) => return "given".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if name != "target" && name != "url" {
        return text;
    }
    let after = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    match after.find('/') {
        Some(slash) if !after.starts_with("unix:") => after[slash..].to_owned(),
        _ => "/".to_owned(),
    }
}

/// `kernel (6.1 and 6.2)` for each fact of the host and of knee that differs.
pub(super) fn unlike_generators(first: &Report, second: &Report) -> Vec<String> {
    let (x, y) = (&first.host, &second.host);
    let mut differing = Vec::new();
    let mut note = |what: &str, value_a: &str, value_b: &str| {
        if value_a != value_b && !value_a.is_empty() && !value_b.is_empty() {
            differing.push(format!("{what} ({value_a} and {value_b})"));
        }
    };
    note("CPUs", &x.cpus.to_string(), &y.cpus.to_string());
    note("processor", &x.cpu_model, &y.cpu_model);
    note("kernel", &x.kernel, &y.kernel);
    note("backend", &x.backend, &y.backend);
    note("congestion control", &x.congestion_control, &y.congestion_control);
    note("version of knee", &first.knee_version, &second.knee_version);
    differing
}
