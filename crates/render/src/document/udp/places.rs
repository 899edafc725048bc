//! The lines of a ledger of datagrams, in words.

use crate::number::{count, words};
use knee_core::experiment::udp::measure::DropPlace;
use knee_core::trial::datagrams::{LedgerReport, LossEvidence};
use std::collections::BTreeSet;

/// A line of the ledger: its name, and its count in each of several ledgers.
pub(super) struct Entry {
    /// In words.
    pub name: String,
    /// The place, of what was lost on the way.
    pub place: Option<String>,
    /// One for each ledger.
    pub counts: Vec<i64>,
    /// Whether it is something that should be 0.
    pub is_trouble: bool,
    /// Whether it is what no counter explains, which is shown even at 0.
    pub is_unexplained: bool,
}

/// The lines of these ledgers, what was received first, the places in the order in which a datagram
/// passes them.
pub(super) fn entries(ledgers: &[&LedgerReport]) -> Vec<Entry> {
    let entry = |name: &str, is_trouble, of: &dyn Fn(&LedgerReport) -> i64| Entry {
        name: name.to_owned(),
        place: None,
        counts: ledgers.iter().map(|l| of(l)).collect(),
        is_trouble,
        is_unexplained: false,
    };
    let places: BTreeSet<&String> = ledgers.iter().flat_map(|l| l.lost.keys()).collect();
    let mut places: Vec<&String> = places.into_iter().collect();
    // In the order in which a datagram passes them.
    let passed = |place: &&String| {
        DropPlace::ALL
            .iter()
            .position(|p| p.name() == place.as_str())
    };
    places.sort_by_key(|place| passed(place).unwrap_or(usize::MAX));
    let mut entries = vec![entry("received", false, &|l| l.received as i64)];
    if places.is_empty() {
        entries.push(entry("lost on the way", true, &|_| 0));
    }
    for place in places {
        let name = format!("lost: {}", place_in_words(place));
        entries.push(Entry {
            place: Some(place.clone()),
            ..entry(&name, true, &|l| {
                l.lost.get(place).copied().unwrap_or(0) as i64
            })
        });
    }
    entries.push(entry("discarded by the service", true, &|l| {
        l.discarded as i64
    }));
    entries.push(entry("refused by the kernel", true, &|l| {
        l.send_errors as i64
    }));
    entries.push(entry("not attempted", true, &|l| l.not_attempted as i64));
    entries.push(Entry {
        is_unexplained: true,
        ..entry("unexplained", true, &|l| l.unexplained)
    });
    entries
}

/// A place for a person.
fn place_in_words(place: &str) -> String {
    match place {
        "send_buffer" => "the sender's send buffer".to_owned(),
        "qdisc" => "the queue of the sending device (qdisc)".to_owned(),
        "neighbour_queue" => "waiting for a neighbour's address".to_owned(),
        "device" => "a network device".to_owned(),
        "time_to_live" => "a router (the time to live ran out)".to_owned(),
        "reassembly" => "fragments not reassembled".to_owned(),
        "path" => "between the hosts".to_owned(),
        "backlog" => "the receiving host's backlog".to_owned(),
        "ip_layer" => "the IP layer".to_owned(),
        "firewall" => "a firewall".to_owned(),
        "no_socket" => "no socket there".to_owned(),
        "checksum" => "wrong checksum".to_owned(),
        "receive_buffer" => "receive buffer full".to_owned(),
        "udp_memory" => "memory for UDP used up".to_owned(),
        "service" => "with the service, which vanished".to_owned(),
        other => words(other),
    }
}

/// What tells of the losses at a place; with its count where there is one ledger alone.
pub(super) fn told_by(place: &str, ledgers: &[&LedgerReport], with_counts: bool) -> String {
    let mut told: Vec<String> = Vec::new();
    for evidence in ledgers.iter().flat_map(|l| &l.evidence) {
        if evidence.place != place {
            continue;
        }
        let text = one_teller(evidence, with_counts);
        if !told.contains(&text) {
            told.push(text);
        }
    }
    told.join("; ")
}

fn one_teller(evidence: &LossEvidence, with_counts: bool) -> String {
    // Nobody counted these: they are what was left. (Reports of before did not say so.)
    let is_rest = [DropPlace::Service, DropPlace::Path].map(DropPlace::name);
    let is_rest = evidence.inferred || is_rest.contains(&evidence.place.as_str());
    let inferred = if is_rest { "inferred: " } else { "" };
    let counted = match with_counts && !is_rest {
        true => format!(" counted {}", count(evidence.counted)),
        false => String::new(),
    };
    let host_wide = if evidence.host_wide {
        ", host-wide"
    } else {
        ""
    };
    format!("{inferred}{}{counted}{host_wide}", evidence.source)
}
