//! A run: response times over percentiles and over time, throughput, outcomes, and how well the
//! load was kept.

use super::generator::{gap_facts, pacing_facts, quantiles, stall_facts};
use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::timing::{key_times_table, latency_table};
use super::trial_plots::{
    dispersion, heat_map, is_dense, pacing, rates, response_spectrum, response_times,
};
use super::{Document, Fact, Layout, Medium, fact, generator, messages, sessions, timing, traffic};
use crate::number::{
    count, number, percent, plural, rate, stated, time, time_short, whole_or_rounded,
};
use crate::plot::Plot;
use knee_core::compare::metric_name;
use knee_core::experiment::run::{RepeatedFigure, RunConclusion};
use knee_core::report::Report;
use knee_core::trial::detail::HttpDetail;
use knee_core::trial::figure::Figure;
use knee_core::trial::offered::OfferedReport;
use knee_core::trial::report::TrialReport;
use knee_load::measure::Outcome;

/// Adds all sections of a run.
pub(super) fn show(doc: &mut Document, report: &Report, c: &RunConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, report, c));
    if !c.repeats.is_empty() {
        doc.section("Repeats", "95 % intervals from the spread between repeats");
        doc.facts(c.repeats.iter().map(repeated));
    }
    for trial in &report.trials {
        if report.trials.len() > 1 {
            doc.section(&trial.label, "");
        }
        show_trial(doc, trial);
    }
}

fn show_trial(doc: &mut Document, t: &TrialReport) {
    show_response_time(doc, t);
    doc.section("Throughput", "");
    if t.intervals.len() > 1 {
        doc.plots([rates(t)], Layout::Wide);
    }
    // A trial that was cut short has no more.
    let Some(http) = t.http() else {
        return;
    };
    doc.facts(throughput_facts(t, http));
    let attempted = plural(t.attempted, "operation");
    doc.section("Outcomes", format!("of {attempted} attempted"));
    doc.table("Outcomes", outcomes_table(t, http));
    doc.facts(traffic::status_facts(&http.traffic, http.protocol.as_ref()));
    doc.facts(traffic::answer_facts(&http.traffic));
    sessions::show_requests(doc, http.requests.as_ref());
    messages::show(doc, http.messages.as_ref());
    sessions::show(doc, http.sessions.as_ref());
    let targets = if http.sessions.is_some() { "Steps" } else { "Targets" };
    traffic::show_targets(doc, &http.traffic, targets);
    doc.section("Load", "how well it was kept");
    let plots = pacing(t).into_iter().chain(dispersion(&t.offered));
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    doc.facts(load_facts(&t.offered));
    if let Some(observed) = &http.observed {
        doc.section("At the server", traffic::observation_source(observed));
        doc.facts(traffic::observed_facts(observed));
    }
    generator::show_agents(doc, t, "");
    generator::show(doc, t);
}

fn show_response_time(doc: &mut Document, t: &TrialReport) {
    let remark = "response: from the intended start; service: from the sending";
    doc.section("Response time", remark);
    if t.response_time_ns.count == 0 {
        doc.paragraph(Line::of(Ink::Warn, "No operation ended."));
        return;
    }
    let layout = if is_dense(&t.intervals) { Layout::Wide } else { Layout::Pairs };
    let mut plots: Vec<Plot> = response_spectrum(t).into_iter().collect();
    if t.intervals.len() > 1 {
        plots.push(response_times(&t.intervals));
    }
    doc.plots(plots, layout);
    doc.only(Medium::Page, |doc| doc.plots(heat_map(t), Layout::Wide));
    doc.table("Response and service time", latency_table(t));
    timing::show(doc, t);
}

/// The answer in a line.
pub(super) fn answer(report: &Report, c: &RunConclusion) -> String {
    let errors = if report.trials.iter().any(TrialReport::is_cut_short) {
        // A response may be an error by its status.
        format!("{} without a response", percent(c.error_percent))
    } else if c.error_percent > 0.0 {
        format!("{} errors", percent(c.error_percent))
    } else {
        "no errors".to_string()
    };
    let failed = |t: &TrialReport| Some(t.sessions()?.script.as_ref()?.failed).filter(|n| *n > 0);
    let errors = match report.trials.iter().find_map(failed).unwrap_or(0) {
        0 => errors,
        1 => format!("{errors}, 1 iteration failed").replace("no errors, ", ""),
        n => format!("{errors}, {} iterations failed", count(n)).replace("no errors, ", ""),
    };
    let some_ended = report.trials.iter().any(|t| t.completed > 0);
    let per_s = c.throughput_per_s.filter(|per_s| *per_s > 0.0);
    let achieved = |per_s| stated(c.throughput_is.of(per_s), rate);
    let limited = if c.throughput_is.is_determined() { "" } else { LIMITED };
    let range = report.trials.first().map(TrialReport::throughput);
    let range = range.filter(|figure| matches!(figure, Figure::Within(..)));
    let of_sessions = report.trials.first().and_then(sessions::answer);
    let mut parts = vec![match (per_s, c.asked_per_s) {
        (Some(per_s), _) if let Some(sessions) = &of_sessions => {
            format!("{sessions}, {} requests", rate(per_s))
        }
        (Some(per_s), Some(asked_per_s)) => {
            format!(
                "Served {} of {}/s asked{limited}",
                achieved(per_s),
                whole_or_rounded(asked_per_s)
            )
        }
        (Some(per_s), None) => achieved(per_s) + limited + &over_repeats(c),
        (None, _) if let Some(range) = range => stated(range, rate),
        (None, _) if some_ended => "No response within the measured time".to_owned(),
        (None, _) => return format!("No response, {errors}"),
    }];
    let messages = report.trials.first().and_then(TrialReport::messages);
    let messages = messages.filter(|messages| messages.streams > 0);
    parts.extend(messages.into_iter().flat_map(messages::answer));
    let served = report.trials.first().and_then(TrialReport::served_of_few);
    let of_served = if served.is_some() { " of what was served" } else { "" };
    let times = [("p50", c.p50_ns), ("p99", c.p99_ns)];
    for (name, value) in times.into_iter().filter(|_| messages.is_none()) {
        let figure = match report.trials.first() {
            Some(trial) => served.unwrap_or(&trial.response_time_ns).figure(name),
            None => value.map_or(Figure::Absent, Figure::Exactly),
        };
        if figure != Figure::Absent {
            parts.push(format!("{name}{of_served} {}", stated(figure, time_short)));
        }
    }
    parts.push(errors);
    parts.join(", ")
}

/// Follows a throughput that is a bound.
const LIMITED: &str = " (the generator was the limit)";

/// The interval of the throughput over repeats.
fn over_repeats(c: &RunConclusion) -> String {
    let throughput = c.repeats.iter().find(|f| f.metric == "throughput_per_s");
    throughput.map_or(String::new(), |f| {
        let [lo, hi] = f.ci95.map(number);
        format!(" ({lo} to {hi} over {} repeats)", f.repeats)
    })
}

/// Throughput, its steadiness, connections and bytes.
fn throughput_facts(t: &TrialReport, http: &HttpDetail) -> Vec<Fact> {
    let mut responses = stated(t.throughput(), rate);
    if let Some([lo, hi]) = t.throughput_ci95_per_s {
        responses += &format!(", 95 %: {} to {}", number(lo), number(hi));
    }
    if t.transient_ns() > 0 {
        responses += &format!(", without the first {}", time_short(t.transient_ns()));
    }
    if !t.throughput_is.is_determined() {
        let workers = t.generator.workers + 1;
        responses += &format!(
            "{LIMITED}: give it -t {workers}, processors of its own with taskset, or more agents"
        );
    }
    let mut facts = vec![fact("responses", responses)];
    if let Some(per_s) = http.throughput_whole_per_s {
        facts.push(fact("of the whole time", rate(per_s)));
    }
    if t.throughput_per_s.is_some() && t.goodput_per_s != t.throughput_per_s {
        facts.push(fact("goodput", stated(t.goodput(), rate)));
    }
    if t.completed > 0 {
        facts.push(fact("stationary", stationary(t)));
    }
    if let Some(law) = &http.littles_law {
        let ink = if law.ok { Ink::Plain } else { Ink::Warn };
        let text = format!(
            "{} user{}, X·(R+Z) {}: {} off",
            number(law.n),
            if law.n == 1.0 { "" } else { "s" },
            number(law.x_times_r),
            percent(law.deviation_percent)
        );
        facts.push(fact("Little's law", Line::of(ink, text)));
    }
    let connections = format!(
        "{} opened, at most {} at once",
        count(http.connections_opened),
        count(http.connections_max)
    );
    facts.push(fact("connections", connections));
    facts.extend(traffic::protocol_facts(http.protocol.as_ref()));
    facts.extend(traffic::transfer_facts(t.bytes_received, &http.traffic));
    facts
}

fn stationary(t: &TrialReport) -> Line {
    if !t.stationary && t.offered.changes_by_plan {
        return Line::plain("no: the load changes by plan, so one figure does not describe it");
    }
    if !t.stationary {
        let text = "no: it drifts or jumps, so one figure does not describe it";
        return Line::of(Ink::Warn, text);
    }
    match t.transient_ns() {
        0 => Line::plain("yes"),
        ns => Line::plain(format!("yes, after the first {}", time_short(ns))),
    }
}

/// Rate, gaps and delays of the load.
fn load_facts(o: &OfferedReport) -> Vec<Fact> {
    let rate_line = match o.asked_per_s {
        Some(per_s) => {
            format!(
                "{}/s asked, {} achieved, {}",
                whole_or_rounded(per_s),
                rate(o.achieved_per_s),
                o.arrival
            )
        }
        None => format!("closed loop, {} started", rate(o.achieved_per_s)),
    };
    let mut facts = vec![fact("rate", rate_line)];
    facts.extend(gap_facts(o));
    facts.extend(pacing_facts(o));
    let wait = o.connection_wait_ns.as_ref();
    let wait = wait.filter(|wait| wait.max > Some(0));
    facts.extend(wait.map(|wait| fact("connection wait", quantiles(wait))));
    facts.extend(stall_facts(o));
    facts
}

/// Number and meaning of each outcome.
fn outcomes_table(t: &TrialReport, http: &HttpDetail) -> Table {
    let tls = http.protocol.as_ref().and_then(|p| p.tls.as_ref());
    let because = |outcome: Outcome| match outcome {
        Outcome::Malformed => http.malformed_because.as_ref(),
        Outcome::Undecodable => http.undecodable_because.as_ref(),
        Outcome::StreamReset => http.stream_reset_because.as_ref(),
        Outcome::Incomplete => {
            http.messages.as_ref().and_then(|messages| messages.incomplete_because.as_ref())
        }
        Outcome::StreamError => {
            http.messages.as_ref().and_then(|messages| messages.first_error.as_ref())
        }
        Outcome::ProxyRefused => http.routed.refused_because.as_ref(),
        Outcome::HandshakeFailed => tls.and_then(|tls| tls.failed_because.as_ref()),
        _ => None,
    };
    let outcomes: Vec<(Outcome, u64)> = t.outcomes.iter().collect();
    let mut table = TableOf::new(&outcomes);
    table.left("", |(o, _)| Line::of(outcome_ink(*o), o.label()));
    table.right("", |(_, n)| count(*n));
    table.left("", |(o, _)| match because(*o) {
        Some(because) => Line::of(Ink::Dim, format!("the first: {because}")),
        None => Line::of(Ink::Dim, o.meaning()),
    });
    table.done()
}

fn outcome_ink(outcome: Outcome) -> Ink {
    match outcome {
        Outcome::Ok => Ink::Good,
        Outcome::InFlight => Ink::Plain,
        _ => Ink::Bad,
    }
}

/// Adds the first screen.
fn show_key_figures(doc: &mut Document, report: &Report, c: &RunConclusion) {
    let [t] = report.trials.as_slice() else {
        doc.table("Trials", trials_table(&report.trials));
        return doc.facts(c.repeats.iter().map(repeated));
    };
    if t.response_time_ns.count > 0 {
        doc.table("Response and service time", key_times_table(t));
    }
    timing::show_slowest_sentence(doc, t);
    let Some(http) = t.http() else {
        return;
    };
    messages::show_key_figures(doc, http.messages.as_ref());
    let mut facts = throughput_facts(t, http);
    facts.retain(|(name, _)| matches!(name.as_str(), "responses" | "goodput"));
    facts.push(fact("outcomes", outcomes_line(t)));
    facts.extend(traffic::status_facts(&http.traffic, http.protocol.as_ref()));
    facts.extend(traffic::answer_facts(&http.traffic));
    facts.extend(http.requests.as_ref().map(sessions::request_facts).unwrap_or_default());
    facts.extend(traffic::proxy_fact(&http.routed));
    doc.facts(facts);
}

/// Number and name of each outcome.
fn outcomes_line(t: &TrialReport) -> Line {
    let mut line = Line::default();
    for (i, (outcome, n)) in t.outcomes.iter().enumerate() {
        line.push(Ink::Plain, if i > 0 { ", " } else { "" });
        line.push(outcome_ink(outcome), format!("{} {}", count(n), outcome.label()));
    }
    line
}

/// A row for each trial.
fn trials_table(trials: &[TrialReport]) -> Table {
    let mut table = TableOf::new(trials);
    table.left("", |t| t.label.as_str());
    table.right("responses/s", |t| stated(t.throughput(), number));
    table.right("p50", |t| stated(t.response_time_ns.figure("p50"), time));
    table.right("p99", |t| stated(t.response_time_ns.figure("p99"), time));
    table.right("errors", |t| count(t.outcomes.errors()));
    table.done()
}

/// A figure over repeats.
fn repeated(f: &RepeatedFigure) -> Fact {
    let shown: fn(f64) -> String =
        if f.metric.ends_with("_ns") { |ns| time_short(ns.round() as u64) } else { rate };
    let [lo, hi] = f.ci95.map(shown);
    let spread = percent(f.spread_percent);
    fact(metric_name(&f.metric), format!("{}, {lo} to {hi}, spread {spread}", shown(f.value)))
}
