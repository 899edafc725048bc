//! Streams of messages.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Document, Fact, fact};
use crate::number::{count, known, number, percent, rate, stated, time, time_short};
use knee_core::trial::figure::{Figure, TimesReport};
use knee_core::trial::messages::{MessagesReport, TimesOf};
use knee_core::trial::report::TrialReport;

/// The figures of the first screen.
const KEY_FIGURES: [&str; 3] = ["p50", "p90", "p99"];

/// Adds the messages of a trial, if any.
pub(super) fn show(doc: &mut Document, messages: Option<&MessagesReport>) {
    let Some(messages) = messages else {
        return;
    };
    doc.section("Messages", "first message and stream: from the intended start");
    if messages.streams > 0 {
        doc.table("Messages", table(messages, |_| true));
    }
    doc.facts(facts(messages));
}

/// Adds what the first screen has of them.
pub(super) fn show_key_figures(doc: &mut Document, messages: Option<&MessagesReport>) {
    let Some(messages) = messages else {
        return;
    };
    if messages.streams > 0 {
        doc.table("Messages", table(messages, |key| KEY_FIGURES.contains(&key)));
    }
    let others = [messages.sent.is_some(), api_fact(messages).is_some()];
    let shown = FACTS_OF_SCREEN + others.into_iter().filter(|is_shown| *is_shown).count();
    doc.facts(facts(messages).into_iter().take(shown));
}

/// The figures of streams in the answer.
pub(super) fn answer(messages: &MessagesReport) -> Vec<String> {
    let per_message = ("per message", &messages.per_message_ns);
    let per_token = messages.per_token_ns.as_ref().map(|times| ("per token", times));
    let kinds = [
        (first_message(messages), &messages.first_message_ns),
        per_token.unwrap_or(per_message),
        ("stream", &messages.stream_ns),
    ];
    let percentiles = kinds.into_iter().filter_map(|(name, times)| {
        let known = ["p50", "p99"].map(|key| (key, times.figure(key)));
        let known = known.into_iter().filter(|(_, figure)| *figure != Figure::Absent);
        let known = known.map(|(key, figure)| format!("{key} {}", stated(figure, time_short)));
        let known: Vec<String> = known.collect();
        (!known.is_empty()).then(|| format!("{name} {}", known.join(", ")))
    });
    let has_units = messages.units != messages.count;
    let units =
        has_units.then(|| format!("{} {}/s", number(messages.units_per_s), units_of(messages)));
    let good = messages.good_percent.map(|share| format!("{} good", percent(share)));
    percentiles.chain(units).chain(good).collect()
}

/// What the first message with output is called.
fn first_message(messages: &MessagesReport) -> &'static str {
    if messages.apis.is_empty() { "first message" } else { "first token" }
}

/// What the messages count as.
fn units_of(messages: &MessagesReport) -> &'static str {
    if messages.per_token_ns.is_some() { "tokens" } else { "units" }
}

/// Facts on the first screen beside the rate of what is sent and the API of the streams: the rate of
/// what comes, and the good streams.
const FACTS_OF_SCREEN: usize = 2;

/// Adds the messages of several trials, a row for each.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let rows: Vec<(&str, &MessagesReport)> =
        trials.iter().filter_map(|t| Some((t.label.as_str(), t.messages()?))).collect();
    if rows.is_empty() {
        return;
    }
    doc.section("Messages", "first message and stream: from the intended start");
    let mut table = TableOf::new(&rows);
    table.left("", |(label, _)| *label);
    table.right("messages/s", |(_, m)| rate(m.per_s));
    table.right("first p50", |(_, m)| known(m.first_message_ns.p50, time_short));
    table.right("first p99", |(_, m)| known(m.first_message_ns.p99, time_short));
    table.right("gap p50", |(_, m)| known(m.gap_ns.p50, time_short));
    table.right("gap p99", |(_, m)| known(m.gap_ns.p99, time_short));
    table.right_if_any("good", "", |(_, m)| Some(Line::plain(percent(m.good_percent?))));
    doc.table("Messages", table.done());
}

/// A row for each figure, a column for each kind of time.
fn table(messages: &MessagesReport, is_shown: impl Fn(&str) -> bool) -> Table {
    let rows = TimesReport::FIGURES.iter().filter(|figure| is_shown(figure.key));
    let rows: Vec<_> = rows.collect();
    let mut table = TableOf::new(&rows);
    table.left("", |figure| Line::of(Ink::Dim, figure.title));
    let titles = [first_message(messages), "gap", "per message", "per token", "stream", "answer"];
    for ((kind, ..), title) in TimesOf::MESSAGES.into_iter().zip(titles) {
        let none = TimesReport::default();
        let Some(times) = kind.of(&none, Some(messages)) else {
            continue;
        };
        table.right(title, |figure| stated(figure.stated(times), time));
    }
    table.done()
}

fn facts(messages: &MessagesReport) -> Vec<Fact> {
    let mut rates = format!("{}, {} in the window", rate(messages.per_s), count(messages.count));
    if messages.units != messages.count {
        let units = (units_of(messages), rate(messages.units_per_s), count(messages.units));
        rates += &format!("; {} {}, {}", units.0, units.1, units.2);
    }
    if messages.others > 0 {
        rates += &format!("; {} without output", count(messages.others));
    }
    let mut facts = Vec::new();
    if let Some(sent) = &messages.sent {
        let (p50, p99) = (sent.late_ns.p50, sent.late_ns.p99);
        let [p50, p99] = [p50, p99].map(|late| known(late, time_short));
        let rates = format!("{}, {} in the window", rate(sent.per_s), count(sent.count));
        facts.push(fact("sent", format!("{rates}; {p50} late at p50, {p99} at p99")));
    }
    if messages.streams == 0 {
        return facts;
    }
    facts.push(fact("messages", rates));
    facts.extend(api_fact(messages));
    if let (Some(good), Some(share)) = (messages.good, messages.good_percent) {
        let line =
            format!("{} of {} streams ({})", count(good), count(messages.streams), percent(share));
        facts.push(fact("good", line));
    }
    let stalls = &messages.stalls;
    let line = match stalls.longest_ns {
        None => "none".to_owned(),
        Some(longest) => format!(
            "{}, the longest {}, in {} of the streams",
            count(stalls.count),
            time_short(longest),
            percent(stalls.streams_percent)
        ),
    };
    facts.push(fact("stalls", line));
    let shared = percent(messages.shared_arrival_percent);
    facts.push(fact("arrivals", format!("{shared} of the messages came together with another")));
    let faults =
        [("not whole", &messages.incomplete_because), ("stream errors", &messages.first_error)];
    for (name, fault) in faults {
        let line = |fault: &String| Line::of(Ink::Bad, format!("the first: {fault}"));
        facts.extend(fault.as_ref().map(|fault| fact(name, line(fault))));
    }
    facts
}

/// The APIs of the streams, and whether they were asked for or detected.
fn api_fact(messages: &MessagesReport) -> Option<Fact> {
    if messages.api_is_unknown {
        return Some(fact("stream API", "not known: each message counts as output"));
    }
    let named = |(name, streams): (&String, &u64)| match messages.apis.len() {
        1 => name.clone(),
        _ => format!("{name} ({} streams)", count(*streams)),
    };
    let names: Vec<String> = messages.apis.iter().map(named).collect();
    let source = if messages.api_is_asked { "as asked" } else { "by the first messages" };
    (!names.is_empty()).then(|| fact("stream API", format!("{}, {source}", names.join(", "))))
}
