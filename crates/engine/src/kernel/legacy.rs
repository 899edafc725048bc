//! Drops by rules of iptables-legacy and ip6tables-legacy, whose tables are not those of nftables.
//! Only tables in use are read, as reading would create others.

use super::firewall::{Dropped, text};
use crate::sys::field;
use crate::sys::xtables::{self, Family};
use std::{fs, io};

/// Longest table. A longer one would delay the trial.
const ENTRIES_MAX: usize = 1 << 20;

/// Hooks by number (linux/netfilter.h).
const HOOKS: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
/// First hook of outgoing packets. The sender of a packet dropped by it gets an error.
const OUT: usize = 3;

/// Offsets in struct ipt_getinfo.
const VALID_HOOKS: usize = 32;
const HOOK_ENTRY: usize = 36;
const UNDERFLOW: usize = 56;

/// Offsets in struct xt_entry_target, and its length.
const TARGET_NAME: usize = 2;
const TARGET: usize = 32;
const TARGET_NAME_LENGTH: usize = 29;
/// The verdict of a standard target that drops: −NF_DROP − 1.
const DROP: i32 = -1;

/// Offsets in struct ipt_entry and struct ip6t_entry.
#[derive(Clone, Copy, Debug)]
struct Layout {
    target_offset: usize,
    next_offset: usize,
    packets: usize,
}

impl Layout {
    fn of(family: Family) -> Layout {
        let (target_offset, packets) = match family {
            Family::V4 => (88, 96),
            Family::V6 => (140, 152),
        };
        Layout { target_offset, next_offset: target_offset + 2, packets }
    }
}

/// Tables in use in this thread's network namespace.
fn in_use() -> Vec<(Family, String)> {
    let files = [
        (Family::V4, "/proc/thread-self/net/ip_tables_names"),
        (Family::V6, "/proc/thread-self/net/ip6_tables_names"),
    ];
    let names = |(family, file)| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        names.into_iter().map(move |name| (family, name))
    };
    files.into_iter().flat_map(names).collect()
}

/// Rules and policies of this network namespace that drop incoming or forwarded packets; none
/// without such a table.
///
/// # Errors
/// Not permitted (CAP_NET_RAW and CAP_NET_ADMIN), or more rules than can be read between two
/// datagrams.
pub(crate) fn now() -> io::Result<Vec<Dropped>> {
    let mut all = Vec::new();
    for (family, name) in in_use() {
        let (info, entries) = xtables::table(family, &name, ENTRIES_MAX)?;
        all.extend(parse(family, &name, &info, &entries));
    }
    Ok(all)
}

/// Reads struct ipt_getinfo and the entries that follow each other.
pub(crate) fn parse(family: Family, table: &str, info: &[u8], entries: &[u8]) -> Vec<Dropped> {
    let layout = Layout::of(family);
    let program = match family {
        Family::V4 => "iptables-legacy",
        Family::V6 => "ip6tables-legacy",
    };
    let valid = field(info, VALID_HOOKS).map_or(0, u32::from_ne_bytes);
    let hook_at = |base: usize, at: usize| {
        let is_there = |&hook: &usize| valid & 1 << hook != 0;
        let mut hooks = (0..HOOKS.len()).filter(is_there);
        hooks.find(|hook| field(info, base + 4 * hook) == Some((at as u32).to_ne_bytes()))
    };
    let mut all = Vec::new();
    let (mut chain, mut is_out, mut number) = (String::new(), false, 0);
    let mut at = 0;
    while let Some(entry) = entries.get(at..).and_then(|rest| Entry::read(rest, layout)) {
        if let Some(hook) = hook_at(HOOK_ENTRY, at) {
            (chain, is_out, number) = (HOOKS[hook].to_owned(), hook >= OUT, 0);
        }
        match entry.target {
            Target::Chain(name) => (chain, is_out, number) = (name, false, 0),
            Target::Drops if !is_out => {
                let rule = match hook_at(UNDERFLOW, at) {
                    Some(_) => "policy".to_owned(),
                    None => format!("rule {}", number + 1),
                };
                all.push(Dropped {
                    source: format!("{program} {table} {chain}, {rule}"),
                    packets: entry.packets,
                });
                number += 1;
            }
            Target::Drops | Target::Other => number += 1,
        }
        at += entry.length;
    }
    all
}

/// A rule, a policy or the head of a chain.
#[derive(Debug)]
struct Entry {
    length: usize,
    packets: u64,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Drops,
    /// The entry that names the following chain.
    Chain(String),
    Other,
}

impl Entry {
    fn read(bytes: &[u8], layout: Layout) -> Option<Entry> {
        let length = usize::from(u16::from_ne_bytes(field(bytes, layout.next_offset)?));
        // One that leads nowhere would be read for ever.
        let entry = bytes.get(..length).filter(|_| length > layout.packets)?;
        let packets = u64::from_ne_bytes(field(entry, layout.packets)?);
        let target =
            entry.get(usize::from(u16::from_ne_bytes(field(entry, layout.target_offset)?))..)?;
        let name = target.get(TARGET_NAME..TARGET_NAME + TARGET_NAME_LENGTH)?;
        let target = match text(name).as_str() {
            "" if i32::from_ne_bytes(field(target, TARGET)?) == DROP => Target::Drops,
            "REJECT" => Target::Drops,
            "ERROR" => Target::Chain(text(target.get(TARGET..)?)),
            _ => Target::Other,
        };
        Some(Entry { length, packets, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(family: Family, packets: u64, name: &str, data: &[u8]) -> Vec<u8> {
        let layout = Layout::of(family);
        // A match of 16 bytes stands before the target.
        let target = layout.packets + 16 + 16;
        let mut bytes = vec![0; target + TARGET];
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let length = bytes.len() as u16;
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(layout.target_offset, &(target as u16).to_ne_bytes());
        put(layout.next_offset, &length.to_ne_bytes());
        put(layout.packets, &packets.to_ne_bytes());
        put(target + TARGET_NAME, name.as_bytes());
        bytes
    }

    fn verdict(family: Family, packets: u64, code: i32) -> Vec<u8> {
        entry(family, packets, "", &code.to_ne_bytes())
    }

    /// INPUT with two rules and a policy, OUTPUT with one rule, and a chain of the user's.
    fn table(family: Family) -> (Vec<u8>, Vec<u8>) {
        let accept = -2;
        let all = [
            verdict(family, 1, accept),
            verdict(family, 2, DROP),
            verdict(family, 3, DROP),
            verdict(family, 4, DROP),
            verdict(family, 5, accept),
            entry(family, 0, "ERROR", b"mine\0"),
            entry(family, 6, "REJECT", &[0; 4]),
            verdict(family, 7, -5),
            entry(family, 0, "ERROR", b"ERROR\0"),
        ];
        let starts: Vec<u32> = all
            .iter()
            .scan(0, |sum, entry| {
                let at = *sum;
                *sum += entry.len() as u32;
                Some(at)
            })
            .collect();
        let mut info = vec![0; xtables::INFO];
        let mut put = |at: usize, value: u32| {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        };
        put(VALID_HOOKS, 1 << 1 | 1 << 3);
        put(HOOK_ENTRY + 4, starts[0]);
        put(UNDERFLOW + 4, starts[2]);
        put(HOOK_ENTRY + 12, starts[3]);
        put(UNDERFLOW + 12, starts[4]);
        (info, all.concat())
    }

    #[test]
    fn rules_of_the_old_kind_that_drop_are_told() {
        for (family, program) in [(Family::V4, "iptables-legacy"), (Family::V6, "ip6tables-legacy")]
        {
            let (info, entries) = table(family);
            let told: Vec<(String, u64)> = parse(family, "filter", &info, &entries)
                .into_iter()
                .map(|d| (d.source, d.packets))
                .collect();
            let expected = [
                ("filter INPUT, rule 2", 2),
                ("filter INPUT, policy", 3),
                ("filter mine, rule 1", 6),
            ];
            let expected = expected.map(|(at, n)| (format!("{program} {at}"), n));
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn a_table_that_is_none_ends() {
        let (info, entries) = table(Family::V4);
        for cut in 0..entries.len() {
            assert!(parse(Family::V4, "filter", &info, &entries[..cut]).len() <= 3);
            for byte in [0, 1, 0xff] {
                let mut wrong = entries.clone();
                wrong[cut] = byte;
                assert!(parse(Family::V4, "filter", &info, &wrong).len() <= 9);
            }
        }
        assert_eq!(parse(Family::V4, "filter", &[], &entries).len(), 4);
    }
}
