//! A sweep: where the target bends, what that costs its users, the levels, the models.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use super::{
    Block, Document, Fact, Layout, Medium, agents, fact, heat_map, observed, opening, sweep_plots,
    timing,
};
use crate::number::{
    self, MISSING, asked, count, estimate, known, number, percent, plural, rate, time, time_short,
    words,
};
use knee_core::experiment::sweep::report::{
    BoundAsked, GoalBounds, ModelFit, OpenLoopComparison, SweepConclusion, SweepLevel,
};
use knee_core::report::Report;
use knee_core::spec::Level;

/// Adds it.
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
        doc.facts(opening::left_out(report));
    }
    timing::show_levels(doc, report.trials.iter());
    observed::show_levels(doc, &report.trials);
    agents::show_levels(doc, &report.trials);
    if !c.models.is_empty() {
        let remark = "fitted to throughput against load; residual as root mean square";
        doc.section("Models", remark);
        doc.facts(model_facts(c));
    }
    doc.only(Medium::Page, |doc| {
        show_rounds(doc, c);
        show_over_time(doc, report);
    });
    heat_map::show_levels(doc, &report.trials);
}

/// Adds what a person looks at first.
fn show_key_figures(doc: &mut Document, c: &SweepConclusion) {
    if c.levels.len() > 1 {
        doc.plots([sweep_plots::throughput(c)], Layout::Wide);
    }
    let columns = [
        "users",
        "asked/s",
        "",
        "throughput",
        "p50",
        "p90",
        "p99",
        "errors",
    ];
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
        let both = [Some(throughput.clone()), response.clone()];
        doc.plots(both.into_iter().flatten(), Layout::Pairs);
    });
    doc.only(Medium::Page, |doc| {
        doc.plots([throughput], Layout::Wide);
        let trade = sweep_plots::trade(c);
        doc.plots(response.into_iter().chain(trade), Layout::Pairs);
        let more = [sweep_plots::spectra(report, c), sweep_plots::cost(c)];
        doc.plots(more.into_iter().flatten(), Layout::Pairs);
    });
}

/// Throughput of each level by round, one small figure each: what depends on time shows in all.
fn show_rounds(doc: &mut Document, c: &SweepConclusion) {
    let plots = sweep_plots::rounds(c);
    if plots.is_empty() {
        return;
    }
    doc.section("Throughput by round", "");
    doc.plots(plots, Layout::Pairs);
    doc.note(
        "Each round visits all levels in random order. A slow round shows at all levels, an effect \
         of the load at its own level alone."
            .to_owned(),
    );
}

fn show_over_time(doc: &mut Document, report: &Report) {
    let plots = sweep_plots::over_time(report);
    let (shown, all) = (plots.len(), report.trials.len());
    if plots.is_empty() {
        return;
    }
    doc.section("Each trial over time", "");
    let plots = vec![Block::Plots(plots, Layout::Pairs)];
    doc.push(Block::Folded(
        format!("Throughput of {shown} trials"),
        plots,
    ));
    if shown < all {
        doc.note(format!(
            "{shown} of {all} trials, those that do not count or lie nearest to the knee first; \
             the intervals of all are in the JSON report."
        ));
    }
}

/// Which levels do not count, by the reason.
fn levels_out(c: &SweepConclusion) -> Vec<Fact> {
    let reason = |l: &SweepLevel| l.excluded_because.clone();
    let mut reasons: Vec<String> = c.levels.iter().filter_map(reason).collect();
    let mut seen = std::collections::BTreeSet::new();
    reasons.retain(|because| seen.insert(because.clone()));
    let out = |because: String| {
        let levels = c.levels.iter();
        let levels = levels.filter(|l| l.excluded_because.as_ref() == Some(&because));
        let levels: Vec<String> = levels.map(|l| level_name(l.level)).collect();
        let line = Line::of(Ink::Warn, levels.join("; "));
        fact(format!("out, {because}"), line)
    };
    reasons.into_iter().map(out).collect()
}

/// The answer in a line.
pub(super) fn answer(conclusion: &SweepConclusion) -> String {
    if conclusion.answer.is_empty() {
        return format!("At most {}.", rate(conclusion.max_throughput_per_s));
    }
    conclusion.answer.clone()
}

/// How it was got.
pub(super) fn remark(report: &Report, conclusion: &SweepConclusion) -> String {
    if opening::is_of_others(report) {
        let levels = plural(conclusion.levels.len() as u64, "level");
        return format!(", {levels}, measured elsewhere: knee cannot vouch for them");
    }
    let trials = plural(report.trials.len() as u64, "trial");
    let of_sessions = report.trials.iter().any(|t| t.sessions().is_some());
    let unit = match of_sessions {
        true => "; throughput is in sessions, response times are of requests",
        false => "",
    };
    format!(", {trials}{unit}")
}

/// The figures of the conclusion.
fn facts(c: &SweepConclusion) -> Vec<Fact> {
    let mut maximum = Line::plain(rate(c.max_throughput_per_s));
    if let Some([lo, hi]) = c.max_throughput_ci95_per_s {
        let tie = number::TIE;
        let interval = format!(", 95{tie}%: {} to {}", number(lo), number(hi));
        maximum.push(Ink::Plain, interval);
    }
    let mut facts = vec![("maximum".to_string(), maximum)];
    let mut fact = |name: &str, line: Line| facts.push((name.to_string(), line));
    if let Some(knee) = c.knee_vusers {
        let knee = estimate(knee);
        let s = if knee == "1" { "" } else { "s" };
        let mut line = Line::plain(format!("{knee} user{s}"));
        if let Some([lo, hi]) = c.knee_ci95 {
            let tie = number::TIE;
            line.push(
                Ink::Plain,
                format!(", 95{tie}%: {} to {}", estimate(lo), estimate(hi)),
            );
        }
        if let Some(method) = &c.knee_method {
            line.push(Ink::Dim, format!(" (by {})", words(method)));
        }
        fact("knee", line);
    }
    if let Some(line) = known_range(c) {
        fact("knee", line);
    }
    if !c.knee_alternatives.is_empty() {
        let others = c
            .knee_alternatives
            .iter()
            .map(|(method, v)| format!("{} {}", estimate(*v), found_at(method)));
        let others = others.collect::<Vec<_>>().join(", ");
        fact("other methods", Line::of(Ink::Dim, others));
    }
    if let Some(x) = c.throughput_at_knee_per_s {
        let mut line = Line::plain(rate(x));
        if let Some(p90) = c.p90_at_knee_ns {
            line.push(Ink::Plain, format!(", p90 {}", time_short(p90)));
        }
        fact("at the knee", line);
    }
    if let Some(open) = &c.open_loop {
        fact("in open loop", open_loop(open));
    }
    if c.goals.is_empty() || c.best_within_bound.is_some() {
        for (name, line) in bound_facts(c) {
            fact(&name, line);
        }
    }
    for goal in &c.goals {
        fact(&words(&goal.goal), goal_line(goal));
    }
    if let Some(users) = c.recommended_vusers {
        fact("recommended", Line::plain(plural(u64::from(users), "user")));
    }
    facts
}

/// Between which rates a goal stops to be reached.
fn goal_line(goal: &GoalBounds) -> Line {
    let per_s = |rate: &f64| format!("{}/s", asked(*rate));
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

/// The figures of an open loop beside the users, and theirs.
fn open_loop(open: &OpenLoopComparison) -> Line {
    let users = plural(u64::from(open.vusers), "user");
    let text = format!(
        "p99 {} at {}/s, {} of the maximum",
        time_short(open.p99_ns),
        asked(open.rate_per_s),
        percent(open.percent_of_maximum)
    );
    let closed = format!(
        " (in the closed loop {} with {users})",
        time_short(open.closed_p99_ns)
    );
    Line::plain(text).with(Ink::Dim, closed)
}

/// A knee of which a range is known, or (over rates) the highest rate served and the lowest not.
fn known_range(c: &SweepConclusion) -> Option<Line> {
    let text = match (c.knee_rate_per_s, c.knee_range) {
        (Some(served), Some([_, not_served])) => {
            let [served, not_served] = [served, not_served].map(asked);
            format!("{served}/s asked are served, {not_served}/s are not")
        }
        (Some(served), None) => format!("{}/s asked", asked(served)),
        (None, Some([lo, hi])) => format!("between {} and {} users", estimate(lo), estimate(hi)),
        (None, None) => return None,
    };
    Some(Line::plain(text))
}

/// What another method takes for the knee.
fn found_at(method: &str) -> String {
    match method {
        "kneedle" => "at the sharpest bend (Kneedle)".to_owned(),
        "max_power" => "at the most throughput per response time".to_owned(),
        other => format!("by {}", words(other)),
    }
}

fn bound_facts(c: &SweepConclusion) -> Vec<Fact> {
    let Some(best) = &c.best_within_bound else {
        let none = |b: &BoundAsked| {
            let name = format!(
                "{}<={}",
                b.metric,
                time_short(b.limit_ns).replace(number::TIE, "")
            );
            (name, Line::of(Ink::Warn, "no level lies within the bounds"))
        };
        return c.bounds.iter().map(none).collect();
    };
    let level = match best.rate_per_s {
        Some(per_s) => format!("{}/s asked", asked(per_s)),
        None => plural(u64::from(best.vusers), "user"),
    };
    let measured = format!(
        "{}, p90 {}",
        rate(best.throughput_per_s),
        known(best.p90_ns, time_short)
    );
    let mut line = Line::plain(format!("{level}: {measured}"));
    if !best.confident {
        line.push(Ink::Warn, ", but its confidence interval crosses the bound");
    }
    vec![(best.bound.clone(), line)]
}

/// A row for each level. Its marks stand by its name, so that no narrow window parts them.
fn levels_table(levels: &[SweepLevel]) -> Table {
    let mut table = Table::default();
    let users = levels.iter().all(|l| matches!(l.level, Level::Vusers(_)));
    let names = levels
        .iter()
        .map(|l| Line::of(row_ink(l), level_name(l.level)));
    let title = if users { "users" } else { "asked/s" };
    table.column(title, Align::Right, names.collect());
    let marks: Vec<Line> = levels.iter().map(mark).collect();
    if marks.iter().any(|m| m.width() > 0) {
        table.column("", Align::Left, marks);
    }
    add_figures(&mut table, levels);
    table
}

fn add_figures(table: &mut Table, levels: &[SweepLevel]) {
    let mut column = |title: &str, optional: bool, cell: &dyn Fn(&SweepLevel) -> Option<String>| {
        let cells: Vec<Option<String>> = levels.iter().map(cell).collect();
        if optional && cells.iter().all(Option::is_none) {
            return;
        }
        let inked = cells.into_iter().zip(levels).map(|(text, level)| {
            Line::of(row_ink(level), text.unwrap_or_else(|| MISSING.to_string()))
        });
        table.column(title, Align::Right, inked.collect());
    };
    column("throughput", false, &|l| Some(number(l.throughput_per_s)));
    column("95 %", true, &|l| {
        let [lo, hi] = l.throughput_ci95_per_s?;
        Some(format!("{}–{}", number(lo), number(hi)))
    });
    column("mean", false, &|l| l.mean_ns.map(time));
    column("p50", true, &|l| l.p50_ns.map(time));
    column("p90", false, &|l| l.p90_ns.map(time));
    column("p95", true, &|l| l.p95_ns.map(time));
    column("p99", true, &|l| l.p99_ns.map(time));
    if !is_free_of_errors(levels) {
        column("errors", true, &|l| l.errors.map(count));
    }
    column("CPU", true, &|l| {
        l.busiest_worker_percent.map(number::percent_cell)
    });
    column("µs/op", true, &|l| {
        l.cpu_us_per_op.map(|v| number::fixed(v, 2))
    });
    column("Little", true, &|l| {
        l.littles_law_deviation_percent.map(number::percent_cell)
    });
}

fn is_free_of_errors(levels: &[SweepLevel]) -> bool {
    levels.iter().all(|l| l.errors == Some(0))
}

/// What the columns of the levels' table mean.
fn legend(levels: &[SweepLevel]) -> String {
    let mut notes = vec!["throughput per second"];
    if levels.iter().any(|l| l.throughput_ci95_per_s.is_some()) {
        notes[0] = "throughput per second, with its 95 % confidence interval";
    }
    if levels.iter().any(|l| l.busiest_worker_percent.is_some()) {
        notes.push("CPU: busiest worker, % of a core; µs/op: CPU per operation");
    }
    if levels
        .iter()
        .any(|l| l.littles_law_deviation_percent.is_some())
    {
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

/// A level without its unit.
pub(super) fn level_name(level: Level) -> String {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => count(u64::from(n)),
        Level::RatePerS(r) => asked(r),
        Level::Flows { up, down } => format!("{up}/{down}"),
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
        (false, false) => return Line::new(),
    };
    Line::of(Ink::Good, format!("◀ {text}"))
}

/// The models with their residuals and parameters.
fn model_facts(c: &SweepConclusion) -> Vec<Fact> {
    let residual = |m: &ModelFit| percent(m.rmse_percent);
    let widest = c
        .models
        .iter()
        .map(|m| residual(m).chars().count())
        .max()
        .unwrap_or(0);
    let facts = c.models.iter().map(|m| {
        let line = Line::plain(format!("{:>widest$}  ", residual(m)));
        (words(&m.name), parameters(m, line))
    });
    facts.collect()
}

fn parameters(model: &ModelFit, line: Line) -> Line {
    if !model.good {
        return line.with(Ink::Dim, "fits badly: its parameters would mean nothing");
    }
    if model.parameters.is_empty() {
        return line.with(
            Ink::Dim,
            "fits, but these levels do not tell its parameters",
        );
    }
    let parameters = model
        .parameters
        .iter()
        .map(|(name, value)| number::named(name, *value));
    line.with(Ink::Plain, parameters.collect::<Vec<_>>().join(", "))
}
