//! A run: what its users would feel, over percentiles and over time, how well the load was kept,
//! and what it cost.

use super::heat_map::heat_map;
use super::line::{Ink, Line};
use super::series::{is_dense, rates, response_times};
use super::stated::{latency_table, stated};
use super::table::{Align, Table};
use super::trial_plots::{dispersion, pacing, response_spectrum};
use super::{
    Block, Document, Fact, Layout, Medium, agents, fact, key_figures, observed, sessions, timing,
    traffic,
};
use crate::number::{
    asked, bytes, count, estimate, known, number, percent, plural, rate, signed_count, time,
    time_short,
};
use crate::plot::Plot;
use knee_core::experiment::run::report::RunConclusion;
use knee_core::measure::Outcome;
use knee_core::report::Report;
use knee_core::spec::WaitPolicy;
use knee_core::trial::detail::HttpDetail;
use knee_core::trial::figure::Figure;
use knee_core::trial::report::{GeneratorReport, OfferedReport, QuantilesReport, TrialReport};
use knee_core::trial::waiting::WaitReport;

/// From this share of the time on it is worth a word that a worker was kept from its core.
const WAITING_SHOWN_PERCENT: f64 = 1.0;

/// Adds it.
pub(super) fn show(doc: &mut Document, report: &Report, c: &RunConclusion) {
    doc.only(Medium::Screen, |doc| key_figures::show(doc, report, c));
    if !c.repeats.is_empty() {
        doc.section("Repeats", "95 % intervals from the spread between repeats");
        doc.facts(key_figures::of_repeats(c));
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
    // Of one that was cut short no more is known.
    let Some(http) = t.http() else {
        return;
    };
    doc.facts(throughput_facts(t, http));
    let attempted = plural(t.attempted, "operation");
    doc.section("Outcomes", format!("of {attempted} attempted"));
    doc.table("Outcomes", outcomes_table(t, http));
    doc.facts(traffic::status_facts(&http.traffic));
    sessions::show(doc, http.sessions.as_ref());
    let targets = if http.sessions.is_some() {
        "Steps"
    } else {
        "Targets"
    };
    traffic::show_targets(doc, &http.traffic, targets);
    doc.section("Load", "how well it was kept");
    let plots = pacing(t).into_iter().chain(dispersion(&t.offered));
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    doc.facts(load_facts(&t.offered));
    if let Some(seen) = &http.observed {
        doc.section("At the server", observed::source(seen));
        doc.facts(observed::facts(seen));
    }
    agents::show(doc, t, "");
    show_generator(doc, t);
}

fn show_response_time(doc: &mut Document, t: &TrialReport) {
    let remark = "response: from the intended start; service: from the sending";
    doc.section("Response time", remark);
    if t.response_time_ns.count == 0 {
        doc.paragraph(Line::of(Ink::Warn, "No operation ended."));
        return;
    }
    let layout = match is_dense(&t.intervals) {
        true => Layout::Wide,
        false => Layout::Pairs,
    };
    let mut plots: Vec<Plot> = response_spectrum(t).into_iter().collect();
    if t.intervals.len() > 1 {
        plots.push(response_times(&t.intervals));
    }
    doc.plots(plots, layout);
    doc.only(Medium::Page, |doc| doc.plots(heat_map(t), Layout::Wide));
    doc.table("Response and service time", latency_table(t));
    timing::show(doc, t);
}

/// Adds what the generator was and what the load cost it, and the counters that moved meanwhile.
pub(super) fn show_generator(doc: &mut Document, t: &TrialReport) {
    doc.section("Generator", generator(&t.generator));
    doc.facts(generator_facts(t));
    if !t.kernel.is_empty() {
        let counters = plural(t.kernel.len() as u64, "counter");
        let table = Block::Table("Kernel counters".to_owned(), kernel_table(t));
        doc.push(Block::Folded(
            format!("Kernel: {counters} that moved"),
            vec![table],
        ));
    }
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
    let some_ended = report.trials.iter().any(|t| t.completed > 0);
    let per_s = c.throughput_per_s.filter(|per_s| *per_s > 0.0);
    let range = report.trials.first().map(TrialReport::throughput);
    let range = range.filter(|figure| matches!(figure, Figure::Within(..)));
    let of_sessions = report.trials.first().and_then(sessions::answer);
    let mut parts = vec![match (per_s, c.asked_per_s) {
        (Some(per_s), _) if let Some(sessions) = &of_sessions => {
            format!("{sessions}, {} requests", rate(per_s))
        }
        (Some(per_s), Some(of)) => format!("Served {} of {}/s asked", rate(per_s), asked(of)),
        (Some(per_s), None) => rate(per_s) + &over_repeats(c),
        (None, _) if let Some(range) = range => stated(range, rate),
        (None, _) if some_ended => "No response within the measured time".to_owned(),
        (None, _) => return format!("No response, {errors}"),
    }];
    for (name, value) in [("p50", c.p50_ns), ("p99", c.p99_ns)] {
        let figure = match report.trials.first() {
            Some(trial) => trial.response_time_ns.figure(name),
            None => value.map_or(Figure::Absent, Figure::Exactly),
        };
        if figure != Figure::Absent {
            parts.push(format!("{name} {}", stated(figure, time_short)));
        }
    }
    parts.push(errors);
    parts.join(", ")
}

/// The interval of the throughput over repeats.
fn over_repeats(c: &RunConclusion) -> String {
    let throughput = c.repeats.iter().find(|f| f.metric == "throughput_per_s");
    throughput.map_or(String::new(), |f| {
        let [lo, hi] = f.ci95.map(number);
        format!(" ({lo} to {hi} over {} repeats)", f.repeats)
    })
}

/// What was measured, and how long.
pub(super) fn remark(report: &Report) -> String {
    let [trial] = report.trials.as_slice() else {
        return format!(", {}", plural(report.trials.len() as u64, "trial"));
    };
    format!(
        ", {}, measured for {}",
        trial.label,
        time_short(trial.duration_ns)
    )
}

/// How much was done, and how steadily.
pub(super) fn throughput_facts(t: &TrialReport, http: &HttpDetail) -> Vec<Fact> {
    let mut line = Line::plain(stated(t.throughput(), rate));
    if let Some([lo, hi]) = t.throughput_ci95_per_s {
        line.push(
            Ink::Plain,
            format!(", 95 %: {} to {}", number(lo), number(hi)),
        );
    }
    let mut facts = vec![fact("responses", line)];
    if t.throughput_per_s.is_some() && t.goodput_per_s != t.throughput_per_s {
        facts.push(fact("goodput", Line::plain(known(t.goodput_per_s, rate))));
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
    facts.push(fact("connections", Line::plain(connections)));
    facts.extend(super::protocol::facts(http.protocol.as_ref()));
    facts.extend(traffic::transfer_facts(t.bytes_received, &http.traffic));
    facts
}

fn stationary(t: &TrialReport) -> Line {
    if !t.stationary {
        return Line::of(
            Ink::Warn,
            "no: it drifts or jumps, so one figure does not describe it",
        );
    }
    if t.transient_ns() == 0 {
        return Line::plain("yes");
    }
    Line::plain(format!(
        "yes, after the first {}",
        time_short(t.transient_ns())
    ))
}

/// How well the load was kept.
fn load_facts(o: &OfferedReport) -> Vec<Fact> {
    let rate_line = match o.asked_per_s {
        Some(per_s) => format!(
            "{}/s asked, {} achieved, {}",
            asked(per_s),
            rate(o.achieved_per_s),
            o.arrival
        ),
        None => format!("closed loop, {} started", rate(o.achieved_per_s)),
    };
    let mut facts = vec![fact("rate", Line::plain(rate_line))];
    facts.extend(gap_facts(o));
    if o.asked_per_s.is_some() || o.pacing_error_ns.max > Some(0) {
        facts.push(fact("pacing error", quantiles(&o.pacing_error_ns)));
    }
    let wait = o.connection_wait_ns.as_ref();
    if let Some(wait) = wait.filter(|wait| wait.max > Some(0)) {
        facts.push(fact("connection wait", quantiles(wait)));
    }
    if o.stall_ns_max > 0 {
        facts.push(fact(
            "longest stall",
            Line::plain(time_short(o.stall_ns_max)),
        ));
    }
    facts
}

pub(super) fn gap_facts(o: &OfferedReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut gaps: Vec<String> = Vec::new();
    gaps.extend(
        o.gap_cv
            .map(|cv| format!("coefficient of variation {}", number(cv))),
    );
    gaps.extend(
        o.ks_p_value
            .map(|p| format!("Kolmogorov-Smirnov p {}", number(p))),
    );
    if !gaps.is_empty() {
        facts.push(fact("gaps", Line::plain(gaps.join(", "))));
    }
    let knee_core::stats::gaps::Dispersion {
        ms1,
        ms10,
        ms100,
        s1,
    } = o.dispersion.clone().unwrap_or_default();
    let scales = [
        ("1 ms", ms1),
        ("10 ms", ms10),
        ("100 ms", ms100),
        ("1 s", s1),
    ];
    let scales = scales
        .into_iter()
        .filter_map(|(t, d)| Some(format!("{} in {t}", number(d?))));
    let scales: Vec<String> = scales.collect();
    if !scales.is_empty() {
        facts.push(fact("dispersion", Line::plain(scales.join(", "))));
    }
    facts
}

pub(super) fn quantiles(q: &QuantilesReport) -> Line {
    let named = [
        ("p50", q.p50),
        ("p99", q.p99),
        ("p99.9", q.p999),
        ("max", q.max),
    ];
    let named = named.map(|(name, ns)| format!("{name} {}", known(ns, time_short)));
    Line::plain(named.join(", "))
}

/// How the operations ended, and what that means.
fn outcomes_table(t: &TrialReport, http: &HttpDetail) -> Table {
    let outcomes: Vec<(Outcome, u64)> = t.outcomes.iter().collect();
    let mut table = Table::default();
    let names = outcomes
        .iter()
        .map(|(o, _)| Line::of(outcome_ink(*o), o.name()));
    table.column("", Align::Left, names.collect());
    let counts = outcomes.iter().map(|(_, n)| Line::plain(count(*n)));
    table.column("", Align::Right, counts.collect());
    let tls = http.protocol.as_ref().and_then(|p| p.tls.as_ref());
    let meanings = outcomes.iter().map(|(o, _)| {
        let because = match o {
            Outcome::Malformed => http.malformed_because.as_ref(),
            Outcome::StreamReset => http.stream_reset_because.as_ref(),
            Outcome::HandshakeFailed => tls.and_then(|tls| tls.failed_because.as_ref()),
            _ => None,
        };
        match because {
            Some(because) => Line::of(Ink::Dim, format!("the first: {because}")),
            None => Line::of(Ink::Dim, o.meaning()),
        }
    });
    table.column("", Align::Left, meanings.collect());
    table
}

pub(super) fn outcome_ink(outcome: Outcome) -> Ink {
    match outcome {
        Outcome::Ok => Ink::Good,
        Outcome::InFlight => Ink::Plain,
        _ => Ink::Bad,
    }
}

/// What the generator was.
fn generator(g: &GeneratorReport) -> String {
    format!("{}, {}", plural(u64::from(g.workers), "worker"), g.backend)
}

/// What the load cost it.
fn generator_facts(t: &TrialReport) -> Vec<Fact> {
    let g = &t.generator;
    let mut facts = cpu_facts(g);
    facts.push(fact("busiest worker", busiest(g)));
    facts.extend(g.wait.as_ref().map(|w| fact("waiting", waiting(w))));
    facts.extend(g.woken_by_target_per_s.map(|woken| {
        let words = format!("{}/s, by the target on this host", estimate(woken));
        fact("woken from sleep", Line::plain(words))
    }));
    facts.push(fact(
        "stolen by the host",
        Line::plain(known(g.steal_percent, percent)),
    ));
    facts.push(fact("peak memory", Line::plain(bytes(g.peak_rss_bytes))));
    facts
}

/// Processor time per operation and in all.
fn cpu_facts(g: &GeneratorReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(per_million) = g.cpu_s_per_million_ops {
        let mut text = format!("{} s", estimate(per_million));
        if let Some(user) = g.cpu_user_s_per_million_ops {
            text.push_str(&format!(", of it user {} s", estimate(user)));
        }
        facts.push(fact("CPU per million operations", Line::plain(text)));
    }
    let (user, system) = (estimate(g.cpu_user_s), estimate(g.cpu_system_s));
    facts.push(fact(
        "CPU",
        Line::plain(format!("{user} s user, {system} s system")),
    ));
    facts
}

fn busiest(g: &GeneratorReport) -> Line {
    let mut line = Line::plain(format!("{} of a core", percent(g.busiest_worker_percent)));
    if g.busiest_worker_spin_percent > 0.0 {
        let spin = percent(g.busiest_worker_spin_percent);
        line.push(Ink::Plain, format!(", {spin} polling for deadlines"));
    }
    if g.busiest_worker_waiting_percent >= WAITING_SHOWN_PERCENT {
        let waiting = percent(g.busiest_worker_waiting_percent);
        line.push(Ink::Plain, format!("; others had it for {waiting}"));
    }
    line
}

/// How it waited, and how late its sleeps ended.
fn waiting(wait: &WaitReport) -> Line {
    let mut line = Line::plain(match wait.policy {
        WaitPolicy::Auto => "auto",
        WaitPolicy::Hybrid => "hybrid",
        WaitPolicy::Sleep => "sleep",
        WaitPolicy::Spin => "spin",
    });
    if wait.policy == WaitPolicy::Auto {
        line.push(
            Ink::Plain,
            match wait.polling_percent > 0.0 {
                true => format!(
                    ": polled all the time for {} of the trial ({})",
                    percent(wait.polling_percent),
                    plural(wait.changes.len() as u64, "change")
                ),
                false => ": slept, then polled".to_owned(),
            },
        );
    }
    if wait.realtime_percent > 0.0 {
        let share = percent(wait.realtime_percent);
        line.push(Ink::Plain, format!("; real-time priority for {share}"));
    }
    let late = &wait.lateness_ns;
    if let (Some(p50), Some(p99)) = (late.p50, late.p99) {
        let [p50, p99] = [p50, p99].map(time);
        let text = format!("; wake-ups late: p50 {p50}, p99 {p99}");
        line.push(Ink::Plain, text);
    }
    line
}

/// Counters and by how much they moved.
fn kernel_table(t: &TrialReport) -> Table {
    let mut table = Table::default();
    let names = t.kernel.keys().map(|name| Line::plain(name.as_str()));
    table.column("", Align::Left, names.collect());
    let moves = t.kernel.values().map(|n| Line::plain(signed_count(*n)));
    table.column("", Align::Right, moves.collect());
    table
}
