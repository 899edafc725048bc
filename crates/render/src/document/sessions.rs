//! The outcome of sessions, if operations are their steps. Requests of users, and the attempts that
//! they took.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::trial_plots::stair_to;
use super::{Document, Fact, Layout, fact, first_of_levels};
use crate::number::{count, known, number, percent, rate, stated, time_short, whole_or_rounded};
use crate::plot::{Dash, Plot, PlotSeries, Scale, Tone, Unit};
use knee_core::trial::attempts::{AttemptsInterval, AttemptsReport};
use knee_core::trial::figure::TimesReport;
use knee_core::trial::report::TrialReport;
use knee_core::trial::sessions::{
    CheckReport, GroupReport, ProgramsReport, ScriptMetricReport, SessionReport, SessionsReport,
};

/// Failed steps named for each kind of session.
const FAILED_AT_SHOWN: usize = 5;

/// Lines of a script's console that are shown.
const LOG_LINES_SHOWN: usize = 10;

/// Facts shown of all trials together; the JSON has all.
const FACTS_OF_LEVELS: usize = 5;

/// Adds the sessions of a trial, if any.
pub(super) fn show(doc: &mut Document, sessions: Option<&SessionsReport>) {
    let Some(sessions) = sessions else {
        return;
    };
    doc.section("Sessions", "from the intended begin, pauses included");
    let kinds: Vec<_> = sessions.kinds.iter().map(|kind| ("", kind)).collect();
    doc.table("Sessions", table(&kinds));
    show_groups(doc, &sessions.groups.iter().map(|group| ("", group)).collect::<Vec<_>>());
    let checks = sessions.script.iter().flat_map(|script| &script.checks);
    show_checks(doc, &checks.map(|check| ("", check)).collect::<Vec<_>>());
    doc.facts(completed(sessions).into_iter().chain(facts("", sessions)));
}

/// Completed sessions per second, if their confidence interval is known.
fn completed(sessions: &SessionsReport) -> Option<Fact> {
    let (per_s, [lo, hi]) = sessions.completed_per_s.zip(sessions.completed_ci95_per_s)?;
    let line = format!("{}, 95 %: {} to {}", rate(per_s), number(lo), number(hi));
    Some(fact("completed", line))
}

/// Adds the sessions of several trials, a row for each trial and kind.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let reports: Vec<(&str, &SessionsReport)> =
        trials.iter().filter_map(|t| Some((t.label.as_str(), t.sessions()?))).collect();
    let kinds = reports.iter();
    let kinds = kinds.flat_map(|(label, r)| r.kinds.iter().map(|kind| (*label, kind)));
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() {
        return;
    }
    doc.section("Sessions", "from the intended begin, pauses included");
    doc.table("Sessions", table(&kinds));
    let groups = reports.iter();
    let groups = groups.flat_map(|(label, r)| r.groups.iter().map(|group| (*label, group)));
    show_groups(doc, &groups.collect::<Vec<_>>());
    let checks = reports.iter().flat_map(|(label, r)| {
        let checks = r.script.iter().flat_map(|script| &script.checks);
        checks.map(|check| (*label, check))
    });
    show_checks(doc, &checks.collect::<Vec<_>>());
    let facts = reports.iter().flat_map(|(label, r)| facts(label, r));
    doc.facts(facts.take(FACTS_OF_LEVELS));
}

/// Answered sessions per second, for the answer of a run.
pub(super) fn answer(trial: &TrialReport) -> Option<String> {
    let sessions = trial.sessions()?;
    let per_s = sessions.answered_per_s?;
    let asked_rate =
        trial.offered.asked_per_s.map(|per_s| format!(" of {}/s", whole_or_rounded(per_s)));
    Some(format!("{}{} sessions", rate(per_s), asked_rate.unwrap_or_default()))
}

/// A row for each kind of session, with its trial if there are several.
fn table(kinds: &[(&str, &SessionReport)]) -> Table {
    let mut table = TableOf::new(kinds);
    table.left_if_any("trial", |(trial, _)| *trial);
    table.left("", |(_, k)| k.session.as_str());
    table.right("completed", |(_, k)| count(k.completed));
    table.right("failed", |(_, k)| match k.failed {
        0 => Line::plain(count(0)),
        n => Line::of(Ink::Bad, count(n)),
    });
    table.right("unfinished", |(_, k)| count(k.unfinished));
    table.right("completion", |(_, k)| known(k.completed_percent, percent));
    table.right("p50", |(_, k)| known(k.session_time_ns.p50, time_short));
    table.right("p95", |(_, k)| known(k.session_time_ns.p95, time_short));
    table.right("p99", |(_, k)| known(k.session_time_ns.p99, time_short));
    table.done()
}

/// Adds a row for each group of steps, with its trial if there are several.
fn show_groups(doc: &mut Document, groups: &[(&str, &GroupReport)]) {
    if groups.is_empty() {
        return;
    }
    let mut table = TableOf::new(groups);
    table.left_if_any("trial", |(trial, _)| *trial);
    table.left("", |(_, group)| group.group.as_str());
    table.right("completed", |(_, group)| count(group.completed));
    table.right("p50", |(_, group)| known(group.time_ns.p50, time_short));
    table.right("p95", |(_, group)| known(group.time_ns.p95, time_short));
    table.right("p99", |(_, group)| known(group.time_ns.p99, time_short));
    doc.table("Groups of steps", table.done());
}

/// Adds a row for each check of a script, with its trial if there are several.
fn show_checks(doc: &mut Document, checks: &[(&str, &CheckReport)]) {
    if checks.is_empty() {
        return;
    }
    let mut table = TableOf::new(checks);
    table.left_if_any("trial", |(trial, _)| *trial);
    table.left("", |(_, check)| check.name.as_str());
    table.right("succeeded", |(_, check)| count(check.succeeded));
    table.right("failed", |(_, check)| match check.failed {
        0 => Line::plain(count(0)),
        n => Line::of(Ink::Bad, count(n)),
    });
    table.right("share", |(_, check)| percent(check.succeeded_percent));
    doc.table("Checks", table.done());
}

/// Failed steps, unexpected responses and programs of a trial, with its name if there are several.
fn facts(trial: &str, sessions: &SessionsReport) -> Vec<Fact> {
    let mut facts = Vec::new();
    let labelled = |line: String| match trial {
        "" => line,
        trial => format!("{trial}: {line}"),
    };
    let failed = sessions.kinds.iter().filter(|kind| !kind.failed_at.is_empty());
    for kind in failed {
        let steps = kind.failed_at.iter().take(FAILED_AT_SHOWN);
        let steps = steps.map(|at| format!("{} at {}", count(at.count), at.step));
        let line = labelled(steps.collect::<Vec<_>>().join(", "));
        facts.push(fact("failed", Line::of(Ink::Bad, line)));
    }
    for unexpected in &sessions.unexpected {
        let line = format!(
            "{}: expected {}, got {}; status {}, body {}",
            unexpected.step,
            unexpected.expected,
            unexpected.came,
            unexpected.status,
            unexpected.body
        );
        facts.push(fact("failed checks", labelled(line)));
    }
    if let Some(script) = &sessions.script {
        let failures =
            script.failures.iter().map(|line| Line::of(Ink::Bad, labelled(line.clone())));
        facts.extend(failures.map(|line| fact("script failed", line)));
        let computed = script.computed_per_request_ns.map(|ns| {
            fact("script", labelled(format!("computed for {} a request", time_short(ns))))
        });
        facts.extend(computed);
        facts.extend(script.metrics.iter().map(|m| fact("metric", labelled(metric_line(m)))));
        let lines = script.log.lines().take(LOG_LINES_SHOWN);
        facts.extend(lines.map(|line| fact("console", labelled(line.to_owned()))));
    }
    let programs = sessions.programs.iter().filter_map(programs_line);
    facts.extend(programs.map(|line| fact("programs", labelled(line))));
    facts
}

/// A metric of a script, in a line.
fn metric_line(metric: &ScriptMetricReport) -> String {
    let name = &metric.metric;
    if let Some([hits, all]) = metric.hits {
        let share = hits as f64 * 100.0 / all.max(1) as f64;
        return format!("{name}: {} of {} ({})", count(hits), count(all), percent(share));
    }
    if let Some(values) = &metric.trend {
        let shown = |value: f64| {
            if metric.is_time { time_short((value * 1e6) as u64) } else { number(value) }
        };
        let range = metric.range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        let of_times = |ns: u64| shown((ns as f64 / 1e6).clamp(range[0], range[1]));
        let figures = ["p50", "p95", "p99"]
            .map(|key| format!("{key} {}", stated(values.figure(key), of_times)));
        let [mean, max] = [metric.value, metric.range.map(|[_, max]| max)];
        return format!(
            "{name}: {} values, mean {}, {}, max {}",
            count(values.count),
            known(mean, shown),
            figures.join(", "),
            known(max, shown)
        );
    }
    format!("{name}: {}", known(metric.value, number))
}

/// The answer times of programs, and the delay of the steps that waited for them.
fn programs_line(programs: &ProgramsReport) -> Option<String> {
    let answers = &programs.answer_ns;
    let shown = |times: &TimesReport| {
        let mean = times.mean.map(|ns| format!("{} on average", time_short(ns)));
        let p99 = times.p99.map(|ns| format!("p99 {}", time_short(ns)));
        let max = times.max.map(|ns| format!("at most {}", time_short(ns)));
        let known: Vec<_> = [mean, p99, max].into_iter().flatten().collect();
        known.join(", ")
    };
    (answers.count > 0).then(|| {
        format!(
            "{} answers after {}; steps waited for them {}",
            count(answers.count),
            shown(answers),
            shown(&programs.late_ns)
        )
    })
}

/// Adds the requests of a trial, where failed attempts are retried.
pub(super) fn show_requests(doc: &mut Document, requests: Option<&AttemptsReport>) {
    let Some(requests) = requests else {
        return;
    };
    doc.section("Requests", REQUESTS_REMARK);
    if requests.intervals.len() > 1 {
        doc.plots([requests_over_time(requests)], Layout::Wide);
    }
    doc.facts(request_facts(requests));
}

/// Adds the requests of a trial without the plot.
pub(super) fn show_request_counts(doc: &mut Document, requests: &AttemptsReport) {
    doc.section("Requests", REQUESTS_REMARK);
    doc.facts(request_facts(requests));
}

const REQUESTS_REMARK: &str = "of users; each may take several attempts";

/// Requests offered, attempted, good, failed and unfinished.
pub(super) fn request_facts(requests: &AttemptsReport) -> Vec<Fact> {
    let attempts = known(requests.amplification, |times| format!("{} each", number(times)));
    let mut facts = vec![
        fact("offered", count(requests.offered)),
        fact("attempted", format!("{}, {attempts}", count(requests.attempted))),
        fact("good", format!("{} ({})", count(requests.good), percent(requests.good_percent))),
    ];
    if requests.failed > 0 {
        let mut words =
            format!("{} ({})", count(requests.failed), percent(requests.failed_percent));
        if requests.over_budget > 0 {
            let over = count(requests.over_budget);
            words += &format!(", {over} of them as the retry budget was spent");
        }
        facts.push(fact("failed", Line::of(Ink::Bad, words)));
    }
    if requests.unfinished > 0 {
        facts.push(fact("unfinished", count(requests.unfinished)));
    }
    if requests.served_ns.count > 0 {
        let times = ["p50", "p99"]
            .map(|key| format!("{key} {}", stated(requests.served_ns.figure(key), time_short)));
        facts.push(fact("until good", times.join(", ") + ", from the first attempt on"));
    }
    facts
}

/// Adds the requests of several trials, a row for each.
pub(super) fn show_requests_of_levels(doc: &mut Document, trials: &[TrialReport]) {
    let rows = first_of_levels(trials, TrialReport::requests);
    if rows.is_empty() {
        return;
    }
    doc.section("Requests", REQUESTS_REMARK);
    doc.table("Requests", requests_table(&rows));
}

fn requests_table(rows: &[(&str, &AttemptsReport)]) -> Table {
    let mut table = TableOf::new(rows);
    table.left("", |(label, _)| *label);
    table.right("offered", |(_, r)| count(r.offered));
    table.right("attempted", |(_, r)| count(r.attempted));
    table.right("good", |(_, r)| count(r.good));
    table.right("attempts each", |(_, r)| known(r.amplification, number));
    table.right("until good p99", |(_, r)| known(r.served_ns.p99, time_short));
    table.done()
}

/// Rates of requests offered and served, and of attempts.
pub(super) fn requests_over_time(requests: &AttemptsReport) -> Plot {
    let intervals = requests.intervals.as_slice();
    let end = intervals.last().map_or(1, |i| i.end_ns);
    let stair = |value: fn(&AttemptsInterval) -> u64| {
        stair_to(end, intervals.iter().map(|i| (i.start_ns, i.per_s(value(i)))))
    };
    let [offered, attempted, good] =
        [stair(|i| i.offered), stair(|i| i.attempted), stair(|i| i.good)];
    let values = offered.iter().chain(&attempted).chain(&good).map(|p| p.y);
    let x = Scale::linear(0.0, end as f64, Unit::Time, "time into the window");
    let y = Scale::from_zero(values, Unit::PerS, "per second");
    let plot = Plot::new("Requests and attempts over time", x, y).zooming();
    let plot = plot
        .with(PlotSeries::step("offered", offered).toned(Tone::Muted).dashed(Dash::Dotted))
        .with(PlotSeries::step("attempted", attempted).toned(Tone::Second).dashed(Dash::Dashed))
        .with(PlotSeries::step("good", good));
    plot.described("Requests offered and served within the timeout, and attempts, over time.")
}
