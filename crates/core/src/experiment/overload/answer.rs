//! The conclusion in one or two sentences. Each says no more than the figures beside it: what
//! throughput does beyond the capacity is described as in the finding about it.

use crate::experiment::overload::analysis::{
    BeyondCapacity, OverloadPoint, OverloadSummary, ServerStop, end, times,
};
use crate::experiment::overload::report::{CameBack, OverloadConclusion, Recovery};
use crate::words::{exact, levels, number, percent};
use knee_load::measure::{Outcome, Outcomes};

/// SYN rates that are farther from served + D/T than this do not follow it, in percent.
const FOLLOWS_PERCENT: f64 = 3.0;
/// The line through them must account for this share of their variance.
const FOLLOWS_R_SQUARED: f64 = 0.99;

/// What simple clients and S-Clients found together.
pub(super) fn in_words(summary: &OverloadSummary, conclusion: &OverloadConclusion) -> String {
    if summary.points.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    if !summary.points.iter().any(OverloadPoint::has_served) {
        return nothing_served(summary);
    }
    if summary.capacity_per_s <= 0.0 {
        return none_in_time(summary);
    }
    let mut sentences: Vec<String> = summary.stops.first().map(stopped).into_iter().collect();
    if summary.points.iter().any(OverloadPoint::counts) || summary.stops.is_empty() {
        let mut first = vec![served(summary)];
        first.extend(simple(conclusion));
        first.extend(pressed(summary));
        sentences.push(first.join("; ") + ".");
        sentences.extend(relation(summary, conclusion));
    }
    sentences.push(recovered(&summary.recovery));
    sentences.join(" ")
}

/// The server answers, and no attempt was served before its level was over.
fn none_in_time(summary: &OverloadSummary) -> String {
    let what = if summary.points.iter().any(|p| p.of_sessions) {
        "No session came to its end"
    } else {
        "No attempt was served"
    };
    format!("{what} within a level: the levels are too short.")
}

fn nothing_served(summary: &OverloadSummary) -> String {
    let mut all = Outcomes::default();
    summary.points.iter().for_each(|p| all.merge(&p.outcomes));
    let established: u64 = summary.points.iter().map(OverloadPoint::established).sum();
    let attempts = match all.total() {
        1 => "The one attempt was not served".to_owned(),
        n => format!("None of {} attempts was served", exact(n as f64)),
    };
    let most = all.iter().max_by_key(|&(_, n)| n);
    match most.filter(|&(_, n)| n > 0) {
        Some((how, n)) => format!("{attempts}: {}.", unserved(how, n, all.total(), established)),
        None => "Nothing was served.".to_owned(),
    }
}

/// How most of the attempts ended, where none was served.
fn unserved(how: Outcome, count: u64, of: u64, established: u64) -> String {
    let count = if count == of { "all".to_owned() } else { exact(count as f64) };
    // What is established stays in the accept queue, and then no more is.
    if how == Outcome::ConnectTimeout && established > 0 {
        return format!(
            "{} were established and received no response, {count} {}",
            exact(established as f64),
            end(how)
        );
    }
    format!("{count} {}", end(how))
}

fn stopped(stop: &ServerStop) -> String {
    let (when, until) = stop.words();
    format!(
        "The server stopped {when} {until}: {} of {} attempts {}.",
        exact(stop.count as f64),
        exact(stop.unserved as f64),
        end(stop.how)
    )
}

/// Whether service came back after the last level.
fn recovered(recovery: &Recovery) -> String {
    let rows = (recovery.level, &recovery.before, &recovery.again);
    let (Some(level), Some(before), Some(again)) = rows else {
        return format!("Whether service came back is not known: {}.", recovery.because);
    };
    let figures = format!(
        "with {} again {}/s are served, {}/s at first",
        levels(&[level]),
        number(again.served_per_s),
        number(before.served_per_s)
    );
    match recovery.came_back {
        CameBack::Yes => format!("Service came back: {figures}."),
        CameBack::Late => format!(
            "Service came back late: {figures}, and as much as at first in the second half."
        ),
        CameBack::No => format!("Service did not come back: {figures}."),
        CameBack::NotJudged => {
            format!("Whether service came back is not known: {figures}; {}.", recovery.because)
        }
    }
}

fn served(summary: &OverloadSummary) -> String {
    let capacity = number(summary.capacity_per_s);
    match summary.beyond_capacity() {
        BeyondCapacity::Flat(_) => format!("The server serves {capacity}/s whatever is offered"),
        BeyondCapacity::Falls(least) => format!(
            "The server serves about {capacity}/s at best and as little as {}/s under overload",
            number(least.served_per_s)
        ),
        BeyondCapacity::Untold => format!("The server serves about {capacity}/s at best"),
    }
}

fn simple(conclusion: &OverloadConclusion) -> Option<String> {
    let clients = conclusion.simple.iter().map(|row| row.clients).max()?;
    let rates = conclusion.simple.iter().map(|row| row.row.first_syn_per_s);
    let most = number(rates.fold(0.0, f64::max));
    Some(match clients {
        1 => format!("one simple client asked for {most}/s"),
        n => format!(
            "up to {} simple clients never asked for more than {most}/s",
            exact(f64::from(n))
        ),
    })
}

fn pressed(summary: &OverloadSummary) -> Option<String> {
    use crate::experiment::overload::analysis::LevelScheme::Scheduled;
    let most = summary.most_offered_per_s()?;
    let is_scheduled = summary.pressing().any(|p| matches!(p.scheme, Scheduled(_)));
    let who = if is_scheduled { "the schedule" } else { "S-Clients" };
    if !summary.is_overloaded() {
        return Some(format!("{who} offered up to {}/s: nothing was overloaded", number(most)));
    }
    Some(format!(
        "{who} offered up to {}/s ({} times)",
        number(most),
        times(most, summary.capacity_per_s)
    ))
}

/// How what arrives goes with the descriptors.
fn relation(summary: &OverloadSummary, conclusion: &OverloadConclusion) -> Option<String> {
    let r_squared = conclusion.r_squared?;
    let deviation = conclusion.deviation_percent?;
    let taken = summary.taken();
    let rate = if summary.is_of_datagrams { "request" } else { "SYN" };
    if deviation > FOLLOWS_PERCENT || r_squared < FOLLOWS_R_SQUARED {
        return Some(format!("The {rate} rate is up to {} off {taken} + D/T.", percent(deviation)));
    }
    let rate = if summary.is_of_datagrams { "Request" } else { "SYN" };
    Some(format!(
        "{rate} rate = {taken} + D/T to within {}, R² {}.",
        percent(deviation.max(0.01)),
        r_squared_text(r_squared)
    ))
}

/// With all of its nines: `0.99998`.
fn r_squared_text(r_squared: f64) -> String {
    // Never rounded up to a perfection that it lacks.
    let shown = (r_squared * 1e6).floor() / 1e6;
    let text = format!("{shown:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
