//! What becomes of throughput beyond the capacity.

use crate::experiment::overload::analysis::{Beyond, PRESSED_FACTOR, Point, Summary, times};
use crate::finding::{Code, Finding, Severity};
use crate::words::{exact, number, percent};

pub(super) const SIMPLE_CLIENTS_FLATTEN: Code = Code {
    name: "simple_clients_flatten",
    cause: "Clients that wait for each answer slow down with the server, so they never offer more \
            than it serves. Only clients that do not wait can overload it.",
    remedy: "Nothing: measure overload with S-Clients, as knee does.",
};
pub(super) const THROUGHPUT_FALLS: Code = Code {
    name: "throughput_falls_under_overload",
    cause: "The server serves less when more is offered than it can serve. It spends time on \
            connections that it does not serve in the end.",
    remedy: "Let the server reject what it cannot serve in time, or shorten its backlog.",
};
pub(super) const THROUGHPUT_FLAT: Code = Code {
    name: "throughput_flat_under_overload",
    cause: "The server serves at its capacity, however much more is offered.",
    remedy: "Nothing: this is how a server should behave.",
};

pub(super) const NOT_OVERLOADED: Code = Code {
    name: "not_overloaded",
    cause: "No level offered clearly more than the server serves, so nothing is known of it under \
            overload. The descriptors were too few, or the generator could not start more.",
    remedy: "Offer more: a higher --descriptors, or a shorter --connect-timeout.",
};

/// No level offered more than is served.
pub(super) fn not_overloaded(summary: &Summary) -> Option<Finding> {
    let offered_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    (capacity_per_s > 0.0 && !summary.is_overloaded()).then(|| {
        NOT_OVERLOADED.finding(
            Severity::Warning,
            format!(
                "nothing was overloaded: at most {}/s were offered, and {}/s are served",
                number(offered_per_s),
                number(capacity_per_s)
            ),
            [
                ("offered_per_s", offered_per_s),
                ("capacity_per_s", capacity_per_s),
            ],
            "offer more: a higher --descriptors, or a shorter --connect-timeout",
        )
    })
}

/// Simple clients are flat where none of them offers more than this many times the capacity.
const FLAT_FACTOR: f64 = 1.1;

pub(super) fn simple_clients_flatten(summary: &Summary) -> Option<Finding> {
    let most = |a: &&Point, b: &&Point| a.first_syn_per_s.total_cmp(&b.first_syn_per_s);
    let most_per_s = summary.simple().max_by(most)?.first_syn_per_s;
    let clients = f64::from(summary.simple().filter_map(Point::clients).max()?);
    let pressed_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    let is_flat = most_per_s <= FLAT_FACTOR * capacity_per_s;
    let is_pressed = pressed_per_s >= PRESSED_FACTOR * capacity_per_s.max(most_per_s);
    (capacity_per_s > 0.0 && is_flat && is_pressed && clients > 1.0).then(|| {
        SIMPLE_CLIENTS_FLATTEN.finding(
            Severity::Info,
            format!(
                "clients that wait for each answer cannot overload a server: up to {} of them \
                 never asked for more than {}/s, and {}/s are served; without waiting, {}/s were \
                 offered, {} times the capacity",
                exact(clients),
                number(most_per_s),
                number(capacity_per_s),
                number(pressed_per_s),
                times(pressed_per_s, capacity_per_s)
            ),
            [
                ("clients", clients),
                ("first_syn_per_s", most_per_s),
                ("capacity_per_s", capacity_per_s),
                ("offered_per_s", pressed_per_s),
                ("times_capacity", pressed_per_s / capacity_per_s),
            ],
            "",
        )
    })
}

pub(super) fn beyond_capacity(summary: &Summary) -> Option<Finding> {
    let capacity_per_s = summary.capacity_per_s;
    match summary.beyond_capacity() {
        Beyond::Falls(least) => Some(THROUGHPUT_FALLS.finding(
            Severity::Warning,
            format!(
                "throughput falls under overload: of {}/s offered {}/s are served{}, {} less than \
                 the capacity of {}/s",
                number(least.first_syn_per_s),
                number(least.served_per_s),
                within(least.served_ci95_per_s),
                percent(100.0 * (1.0 - least.served_per_s / capacity_per_s)),
                number(capacity_per_s)
            ),
            evidence(least, capacity_per_s),
            "let the server reject what it cannot serve in time, or accept no more than it can \
             serve: a shorter backlog costs no throughput",
        )),
        Beyond::Flat(last) => Some(THROUGHPUT_FLAT.finding(
            Severity::Info,
            format!(
                "throughput does not suffer from overload: with {}/s offered, {} times the \
                 capacity, {}/s are served{}",
                number(last.first_syn_per_s),
                times(last.first_syn_per_s, capacity_per_s),
                number(last.served_per_s),
                within(last.served_ci95_per_s)
            ),
            evidence(last, capacity_per_s),
            "",
        )),
        Beyond::Untold => None,
    }
}

fn evidence(p: &Point, capacity_per_s: f64) -> [(&'static str, f64); 6] {
    let [low, high] = p.served_ci95_per_s.unwrap_or([f64::NAN; 2]);
    [
        ("capacity_per_s", capacity_per_s),
        ("served_per_s", p.served_per_s),
        ("served_low_per_s", low),
        ("served_high_per_s", high),
        ("offered_per_s", p.first_syn_per_s),
        ("times_capacity", p.first_syn_per_s / capacity_per_s),
    ]
}

fn within(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or(String::new(), |[low, high]| {
        format!(" (95 %: {} to {})", number(low), number(high))
    })
}
