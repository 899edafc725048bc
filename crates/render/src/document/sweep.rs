//! A sweep: the knee, response times, levels, models.

use super::line::{Ink, Line};
use super::sweep_plots::level_name;
use super::table::{Table, TableOf};
use super::{
    Block, Document, Fact, Layout, Medium, fact, generator, grouped, head, messages, sessions,
    sweep_plots, timing, traffic, trial_plots,
};
use crate::number::{
    TIE, count, estimate, fixed, known, named, number, percent, percent_cell, plural, rate, time,
    time_short, whole_or_rounded, words,
};
use knee_core::experiment::sweep::report::{
    BoundAsked, GoalBounds, ModelFit, OpenLoopComparison, SweepConclusion, SweepLevel,
};
use knee_core::report::Report;
use knee_load::spec::Level;

/// Adds all sections of a sweep.
pub(super) fn show(doc: &mut Document, report: &Report, c: &SweepConclusion) {
    doc.only(Medium::Screen, |doc| show_key_figures(doc, c));
    show_plots(doc, report, c);
    doc.section("Figures", "");
    doc.facts(facts(c));
    if !c.levels.is_empty() {
        doc.section("Levels", "");
        doc.table("Levels", levels_table(&c.levels));
        doc.note(legend(&c.levels));
        doc.facts(levels_out(c));
        doc.facts(head::left_out(report));
    }
    timing::show_levels(doc, &report.trials);
    sessions::show_requests_of_levels(doc, &report.trials);
    messages::show_levels(doc, &report.trials);
    traffic::show_host_times_of_levels(doc, &report.trials);
    generator::show_agents_of_levels(doc, &report.trials);
    if !c.models.is_empty() {
        let remark = "fitted to throughput against load; residual as root mean square";
        doc.section("Models", remark);
        doc.facts(model_facts(c));
    }
    doc.only(Medium::Page, |doc| {
        show_rounds(doc, c);
        show_over_time(doc, report);
    });
    trial_plots::show_heat_maps_of_levels(doc, &report.trials);
}

/// Adds the first screen.
fn show_key_figures(doc: &mut Document, c: &SweepConclusion) {
    if c.levels.len() > 1 {
        doc.plots([sweep_plots::throughput(c)], Layout::Wide);
    }
    let columns = ["users", "asked/s", "", "throughput", "mean", "p50", "p90", "p99", "errors"];
    if !c.levels.is_empty() {
        doc.table("Levels", levels_table(&c.levels).with_columns(&columns));
    }
}

fn show_plots(doc: &mut Document, report: &Report, c: &SweepConclusion) {
    if c.levels.len() < 2 {
        return;
    }
    doc.section("Throughput and its price", "");
    let (throughput, response) = (sweep_plots::throughput(c), sweep_plots::response(c));
    doc.only(Medium::Lines, |doc| {
        let plots = [Some(throughput.clone()), response.clone()];
        doc.plots(plots.into_iter().flatten(), Layout::Pairs);
    });
    doc.only(Medium::Page, |doc| {
        doc.plots([throughput], Layout::Wide);
        let trade = sweep_plots::trade(c);
        doc.plots(response.into_iter().chain(trade), Layout::Pairs);
        let more = [sweep_plots::spectra(report, c), sweep_plots::cost(c)];
        doc.plots(more.into_iter().flatten(), Layout::Pairs);
    });
}

/// Throughput of each level by round, in small figures: what depends on time shows in all.
fn show_rounds(doc: &mut Document, c: &SweepConclusion) {
    let plots = sweep_plots::rounds(c);
    if plots.is_empty() {
        return;
    }
    doc.section("Throughput by round", "");
    doc.plots(plots, Layout::Pairs);
    doc.note(
        "Each round visits all levels in random order. A slow round shows at all levels, an effect \
         of the load at its own level alone.",
    );
}

fn show_over_time(doc: &mut Document, report: &Report) {
    let plots = sweep_plots::over_time(report);
    let (shown, trials) = (plots.len(), report.trials.len());
    if plots.is_empty() {
        return;
    }
    doc.section("Each trial over time", "");
    let title = format!("Throughput of {shown} trials");
    doc.push(Block::Folded(title, vec![Block::Plots(plots, Layout::Pairs)]));
    if shown < trials {
        doc.note(format!(
            "{shown} of {trials} trials, those that do not count or lie nearest to the knee first; \
             the intervals of all are in the JSON report."
        ));
    }
}

/// The excluded levels by reason.
fn levels_out(c: &SweepConclusion) -> Vec<Fact> {
    let levels = c.levels.iter();
    let out = levels.filter_map(|l| Some((l.excluded_because.as_deref()?, level_name(l.level))));
    let line = |(because, levels): (&str, Vec<String>)| {
        fact(format!("out, {because}"), Line::of(Ink::Warn, levels.join("; ")))
    };
    grouped(out).into_iter().map(line).collect()
}

/// The answer in a line.
pub(super) fn answer(conclusion: &SweepConclusion) -> String {
    if conclusion.answer.is_empty() {
        return format!("At most {}.", rate(conclusion.max_throughput_per_s));
    }
    conclusion.answer.clone()
}

/// The number of trials, and the unit of throughput.
pub(super) fn remark(report: &Report, conclusion: &SweepConclusion) -> String {
    if head::is_of_others(report) {
        let levels = plural(conclusion.levels.len() as u64, "level");
        return format!(", {levels}, measured elsewhere: knee cannot vouch for them");
    }
    let trials = plural(report.trials.len() as u64, "trial");
    let unit = if report.trials.iter().any(|t| t.sessions().is_some()) {
        "; throughput is in sessions, response times are of requests"
    } else {
        ""
    };
    format!(", {trials}{unit}")
}

/// The figures of the conclusion.
fn facts(c: &SweepConclusion) -> Vec<Fact> {
    let interval = |ci95: Option<[f64; 2]>, number: fn(f64) -> String| match ci95 {
        Some([lo, hi]) => format!(", 95{TIE}%: {} to {}", number(lo), number(hi)),
        None => String::new(),
    };
    let maximum = rate(c.max_throughput_per_s) + &interval(c.max_throughput_ci95_per_s, number);
    let mut facts = vec![fact("maximum", maximum)];
    if let Some(pauses) = c.pauses.as_ref().filter(|pauses| pauses.count > 1) {
        let between = c.max_between_pauses_per_s.unwrap_or(c.max_throughput_per_s);
        let share = percent(pauses.percent);
        let length = time_short(pauses.length_ns);
        let line = format!("{} between pauses of {length}, {share} of the time", rate(between));
        facts.push(fact("pauses", line));
    }
    if let Some(knee) = c.knee_vusers {
        let knee = estimate(knee);
        let s = if knee == "1" { "" } else { "s" };
        let mut line = Line::plain(format!("{knee} user{s}{}", interval(c.knee_ci95, estimate)));
        if let Some(method) = &c.knee_method {
            line.push(Ink::Dim, format!(" (by {})", words(method)));
        }
        facts.push(fact("knee", line));
    }
    facts.extend(known_range(c).map(|range| fact("knee", range)));
    if !c.knee_alternatives.is_empty() {
        let knees = c.knee_alternatives.iter().map(|(method, knee)| {
            let place = match method.as_str() {
                "kneedle" => "at the sharpest bend (Kneedle)".to_owned(),
                "max_power" => "at the most throughput per response time".to_owned(),
                other => format!("by {}", words(other)),
            };
            format!("{} {place}", estimate(*knee))
        });
        let knees = knees.collect::<Vec<_>>().join(", ");
        facts.push(fact("other methods", Line::of(Ink::Dim, knees)));
    }
    if let Some(x) = c.throughput_at_knee_per_s {
        let p90 = c.p90_at_knee_ns.map(|p90| format!(", p90 {}", time_short(p90)));
        facts.push(fact("at the knee", rate(x) + &p90.unwrap_or_default()));
    }
    facts.extend(c.open_loop.as_ref().map(|open| fact("in open loop", open_loop(open))));
    if c.goals.is_empty() || c.best_within_bound.is_some() {
        facts.extend(bound_facts(c));
    }
    let goals = c.goals.iter();
    facts.extend(goals.map(|goal| fact(words(&goal.goal), goal_line(goal))));
    let recommended = c.recommended_vusers;
    facts.extend(recommended.map(|users| fact("recommended", plural(users.into(), "user"))));
    facts
}

/// The rates between which a goal is no longer reached.
fn goal_line(goal: &GoalBounds) -> Line {
    let per_s = |rate: &f64| format!("{}/s", whole_or_rounded(*rate));
    let lower = goal.lower_per_s.as_ref().map(per_s);
    let upper = goal.upper_per_s.as_ref().map(per_s);
    let text = match (lower, upper) {
        (Some(lower), Some(upper)) => format!("reached at {lower}, not at {upper}"),
        (Some(lower), None) => format!("reached at {lower}, limit not found"),
        (None, Some(upper)) => format!("not reached at {upper}"),
        (None, None) => "not decided".to_owned(),
    };
    let undecided: Vec<String> = goal.undecided_per_s.iter().map(per_s).collect();
    let line = Line::plain(text);
    if undecided.is_empty() {
        line
    } else {
        line.with(Ink::Dim, format!(" (undecided: {})", undecided.join(", ")))
    }
}

/// The figures of an open loop, and those of the closed loop for comparison.
fn open_loop(open: &OpenLoopComparison) -> Line {
    let users = plural(u64::from(open.vusers), "user");
    let text = format!(
        "p99 {} at {}/s, {} of the maximum",
        time_short(open.p99_ns),
        whole_or_rounded(open.rate_per_s),
        percent(open.percent_of_maximum)
    );
    let closed = format!(" (in the closed loop {} with {users})", time_short(open.closed_p99_ns));
    Line::plain(text).with(Ink::Dim, closed)
}

/// A knee known as a range; over rates the highest rate served and the lowest not served.
fn known_range(c: &SweepConclusion) -> Option<String> {
    Some(match (c.knee_rate_per_s, c.knee_range) {
        (Some(served), Some([_, not_served])) => {
            let [served, not_served] = [served, not_served].map(whole_or_rounded);
            format!("{served}/s asked are served, {not_served}/s are not")
        }
        (Some(served), None) => format!("{}/s asked", whole_or_rounded(served)),
        (None, Some([lo, hi])) => format!("between {} and {} users", estimate(lo), estimate(hi)),
        (None, None) => return None,
    })
}

fn bound_facts(c: &SweepConclusion) -> Vec<Fact> {
    let Some(best) = &c.best_within_bound else {
        let none = |b: &BoundAsked| {
            let limit = time_short(b.limit_ns).replace(TIE, "");
            let line = Line::of(Ink::Warn, "no level lies within the bounds");
            match b.least_percent {
                None => fact(format!("{}<={limit}", b.metric), line),
                Some(least) => fact(format!("{}>={}", b.metric, percent(least)), line),
            }
        };
        return c.bounds.iter().map(none).collect();
    };
    let level = match best.rate_per_s {
        Some(per_s) => format!("{}/s asked", whole_or_rounded(per_s)),
        None => plural(u64::from(best.vusers), "user"),
    };
    let (throughput, p90) = (rate(best.throughput_per_s), known(best.p90_ns, time_short));
    let mut line = Line::plain(format!("{level}: {throughput}, p90 {p90}"));
    if !best.confident {
        line.push(Ink::Warn, ", but its confidence interval crosses the bound");
    }
    vec![(best.bound.clone(), line)]
}

/// A row for each level. Marks stand beside its name, so that no narrow window separates them.
fn levels_table(levels: &[SweepLevel]) -> Table {
    let is_users = levels.iter().all(|l| matches!(l.level, Level::Vusers(_)));
    let title = if is_users { "users" } else { "asked/s" };
    let mut table = TableOf::new(levels);
    table.right(title, |l| Line::of(row_ink(l), level_name(l.level)));
    table.left_if_any("", mark);
    let mut column =
        |title: &str, is_optional: bool, figure: &dyn Fn(&SweepLevel) -> Option<String>| {
            if !is_optional || levels.iter().any(|l| figure(l).is_some()) {
                table.right(title, |l| Line::of(row_ink(l), known(figure(l), |text| text)));
            }
        };
    let interval = |[lo, hi]: [f64; 2]| format!("{}–{}", number(lo), number(hi));
    column("throughput", false, &|l| Some(number(l.throughput_per_s)));
    column("95 %", true, &|l| l.throughput_ci95_per_s.map(interval));
    column("mean", false, &|l| l.mean_ns.map(time));
    column("p50", true, &|l| l.p50_ns.map(time));
    column("p90", false, &|l| l.p90_ns.map(time));
    column("p95", true, &|l| l.p95_ns.map(time));
    column("p99", true, &|l| l.p99_ns.map(time));
    if !is_free_of_errors(levels) {
        column("errors", true, &|l| l.errors.map(count));
    }
    column("CPU", true, &|l| l.busiest_worker_percent.map(percent_cell));
    column("µs/op", true, &|l| l.cpu_us_per_op.map(|us| fixed(us, 2)));
    column("Little", true, &|l| l.littles_law_deviation_percent.map(percent_cell));
    table.done()
}

fn is_free_of_errors(levels: &[SweepLevel]) -> bool {
    levels.iter().all(|l| l.errors == Some(0))
}

/// The legend of the table of levels.
fn legend(levels: &[SweepLevel]) -> String {
    let mut notes = vec!["throughput per second"];
    if levels.iter().any(|l| l.throughput_ci95_per_s.is_some()) {
        notes[0] = "throughput per second, with its 95 % confidence interval";
    }
    if levels.iter().any(|l| l.busiest_worker_percent.is_some()) {
        notes.push("CPU: busiest worker, % of a core; µs/op: CPU per operation");
    }
    let has_law = |l: &SweepLevel| l.littles_law_deviation_percent.is_some();
    if levels.iter().any(has_law) {
        notes.push("Little: X·(R+Z) off N, %");
    }
    if is_free_of_errors(levels) {
        notes.push("no errors");
    }
    notes.join("; ")
}

fn row_ink(level: &SweepLevel) -> Ink {
    match level {
        l if l.excluded_because.is_some() => Ink::Dim,
        l if l.is_knee => Ink::Strong,
        _ => Ink::Plain,
    }
}

fn mark(level: &SweepLevel) -> Line {
    if level.excluded_because.is_some() {
        return Line::of(Ink::Warn, "out");
    }
    let text = match (level.is_knee, level.is_best_within_bound) {
        (true, true) => "knee, best",
        (true, false) => "knee",
        (false, true) => "best",
        (false, false) => return Line::default(),
    };
    Line::of(Ink::Good, format!("◀ {text}"))
}

/// Residual and parameters of each model.
fn model_facts(c: &SweepConclusion) -> Vec<Fact> {
    let residual = |m: &ModelFit| percent(m.rmse_percent);
    let widest = c.models.iter().map(|m| residual(m).chars().count()).max().unwrap_or(0);
    let facts = c.models.iter().map(|m| {
        let line = Line::plain(format!("{:>widest$}  ", residual(m)));
        fact(words(&m.name), parameters(m, line))
    });
    facts.collect()
}

fn parameters(model: &ModelFit, line: Line) -> Line {
    if !model.good {
        return line.with(Ink::Dim, "fits badly: its parameters would mean nothing");
    }
    if model.parameters.is_empty() {
        let text = "fits, but these levels do not tell its parameters";
        return line.with(Ink::Dim, text);
    }
    let parameters = model.parameters.iter().map(|(name, value)| named(name, *value));
    line.with(Ink::Plain, parameters.collect::<Vec<_>>().join(", "))
}
