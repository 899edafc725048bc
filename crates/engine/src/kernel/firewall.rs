//! Drops by rules of nftables, read over nfnetlink: rules of nft, and of iptables where it is built
//! on nftables. Reading changes nothing.

use crate::sys::netlink::{self, Message, attribute};
use rustix::net::netlink::NETFILTER;
use std::collections::BTreeMap;
use std::io;

/// Messages of the subsystem of nftables (linux/netfilter/nfnetlink.h, nf_tables.h).
const SUBSYSTEM: u16 = 10 << 8;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const GET_RULE: u16 = SUBSYSTEM | 7;
/// Length of struct nfgenmsg, which begins with the family.
const NFGENMSG: usize = 4;

/// Attributes of a chain.
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_COUNTERS: u16 = 8;
const HOOK_NUMBER: u16 = 1;
/// Attributes of a rule and of its expressions.
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const COUNTER_PACKETS: u16 = 2;
const TARGET_NAME: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
/// The policy and the verdict of dropping.
const DROP: u32 = 0;

/// Longest dump of rules. A longer one would delay the trial.
const DUMP_MAX: usize = 1 << 20;

/// Families of packet filters, by number.
const FAMILIES: &[(u8, &str)] =
    &[(1, "inet"), (2, "ip"), (5, "netdev"), (7, "bridge"), (10, "ip6")];

/// Drops by one rule, or by the policy of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Name of the rule: `nft ip filter INPUT, rule 4`.
    pub source: String,
    /// Packets so far.
    pub packets: u64,
}

/// Rules and policies of this network namespace that drop and count incoming or forwarded packets.
///
/// # Errors
/// Not permitted (CAP_NET_ADMIN), no nftables in this kernel, or more rules than can be read
/// between two datagrams.
pub(crate) fn now() -> io::Result<Vec<Dropped>> {
    let ask = |kind| netlink::dump_of(Some(NETFILTER), kind, &[0; NFGENMSG], DUMP_MAX);
    Ok(parse(&ask(GET_CHAIN)?, &ask(GET_RULE)?))
}

/// Family, table and name of a chain.
type ChainId = (u8, String, String);

/// Whether a chain is for outgoing packets. The sender of a packet that it drops gets EPERM.
type IsOut = bool;

/// Reads the dumps of chains and rules.
pub(crate) fn parse(chains: &[u8], rules: &[u8]) -> Vec<Dropped> {
    let mut out = BTreeMap::new();
    let mut all = Vec::new();
    for message in netlink::messages(chains).filter(|m| m.kind == NEW_CHAIN) {
        if let Some((id, is_out, by_policy)) = chain(message) {
            all.extend(by_policy);
            out.insert(id, is_out);
        }
    }
    let rules = netlink::messages(rules).filter(|m| m.kind == NEW_RULE);
    all.extend(rules.filter_map(|message| rule(message, &out)));
    all
}

fn chain(message: Message) -> Option<(ChainId, IsOut, Option<Dropped>)> {
    let family = *message.body.first()?;
    let find = |kind| attribute(message.body.get(NFGENMSG..)?, kind);
    let id = (family, text(find(CHAIN_TABLE)?), text(find(CHAIN_NAME)?));
    let number =
        find(CHAIN_HOOK).and_then(|nested| attribute(nested, HOOK_NUMBER)).and_then(big_endian);
    let is_out = is_out(family, number);
    let policy = find(CHAIN_POLICY).and_then(big_endian);
    let packets = find(CHAIN_COUNTERS).and_then(packets);
    let by_policy = match (policy, packets) {
        (Some(DROP), Some(packets)) if !is_out => {
            Some(Dropped { source: format!("{}, policy", name(&id)?), packets })
        }
        _ => None,
    };
    Some((id, is_out, by_policy))
}

/// Hooks of IP: prerouting, input, forward, output, postrouting; of a device: ingress, egress. A
/// chain that others jump to has none.
fn is_out(family: u8, hook: Option<u32>) -> IsOut {
    match family {
        5 => hook == Some(1),
        _ => matches!(hook, Some(3 | 4)),
    }
}

fn rule(message: Message, out: &BTreeMap<ChainId, IsOut>) -> Option<Dropped> {
    let family = *message.body.first()?;
    let find = |kind| attribute(message.body.get(NFGENMSG..)?, kind);
    let id = (family, text(find(RULE_TABLE)?), text(find(RULE_CHAIN)?));
    if out.get(&id).copied().unwrap_or(false) {
        return None;
    }
    let handle = find(RULE_HANDLE)?.try_into().ok().map(u64::from_be_bytes)?;
    let packets = dropped(find(RULE_EXPRESSIONS)?)?;
    Some(Dropped { source: format!("{}, rule {handle}", name(&id)?), packets })
}

/// The count of a rule that drops. A counter followed by further conditions does not apply: it
/// counts packets that pass as well.
fn dropped(expressions: &[u8]) -> Option<u64> {
    let mut counted = None;
    for (_, expression) in netlink::attributes(expressions) {
        let name = attribute(expression, EXPRESSION_NAME).map(text)?;
        let data = attribute(expression, EXPRESSION_DATA).unwrap_or_default();
        match name.as_str() {
            "counter" => counted = packets(data),
            "log" => {}
            "immediate" => {
                let verdict = attribute(data, IMMEDIATE_DATA)
                    .and_then(|data| attribute(data, DATA_VERDICT))
                    .and_then(|verdict| attribute(verdict, VERDICT_CODE))
                    .and_then(big_endian);
                return counted.filter(|_| verdict == Some(DROP));
            }
            "reject" => return counted,
            "target" => {
                let target = attribute(data, TARGET_NAME).map(text).unwrap_or_default();
                return counted.filter(|_| target == "DROP" || target == "REJECT");
            }
            _ => counted = None,
        }
    }
    None
}

fn name((family, table, chain): &ChainId) -> Option<String> {
    let family = FAMILIES.iter().find(|(number, _)| number == family)?.1;
    Some(format!("nft {family} {table} {chain}"))
}

fn packets(counter: &[u8]) -> Option<u64> {
    attribute(counter, COUNTER_PACKETS)?.try_into().ok().map(u64::from_be_bytes)
}

fn big_endian(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_be_bytes)
}

/// The text before the first zero byte.
pub(super) fn text(value: &[u8]) -> String {
    let text = value.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, family: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![family, 0, 0, 0];
        body.extend(attributes.concat());
        let mut bytes = ((netlink::HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    fn expression(name: &str, data: &[u8]) -> Vec<u8> {
        let name = attribute_of(EXPRESSION_NAME, format!("{name}\0").as_bytes());
        attribute_of(1, &[name, attribute_of(EXPRESSION_DATA, data)].concat())
    }

    fn counter(packets: u64) -> Vec<u8> {
        attribute_of(COUNTER_PACKETS, &packets.to_be_bytes())
    }

    fn verdict(code: u32) -> Vec<u8> {
        let code = attribute_of(VERDICT_CODE, &code.to_be_bytes());
        let data = attribute_of(DATA_VERDICT, &code);
        expression("immediate", &attribute_of(IMMEDIATE_DATA, &data))
    }

    fn rule_of(family: u8, chain: &str, handle: u64, expressions: &[Vec<u8>]) -> Vec<u8> {
        let attributes = [
            attribute_of(RULE_TABLE, b"filter\0"),
            attribute_of(RULE_CHAIN, format!("{chain}\0").as_bytes()),
            attribute_of(RULE_HANDLE, &handle.to_be_bytes()),
            attribute_of(RULE_EXPRESSIONS, &expressions.concat()),
        ];
        message(NEW_RULE, family, &attributes)
    }

    fn chain_of(family: u8, name: &str, hook: u32, policy: u32, packets: u64) -> Vec<u8> {
        let attributes = [
            attribute_of(CHAIN_TABLE, b"filter\0"),
            attribute_of(CHAIN_NAME, format!("{name}\0").as_bytes()),
            attribute_of(CHAIN_HOOK, &attribute_of(HOOK_NUMBER, &hook.to_be_bytes())),
            attribute_of(CHAIN_POLICY, &policy.to_be_bytes()),
            attribute_of(CHAIN_COUNTERS, &counter(packets)),
        ];
        message(NEW_CHAIN, family, &attributes)
    }

    #[test]
    fn rules_that_drop_and_count_are_told() {
        let chains = [
            chain_of(2, "INPUT", 1, 0, 3),
            chain_of(2, "OUTPUT", 3, 0, 4),
            chain_of(5, "in", 0, 1, 5),
        ]
        .concat();
        let [matches, counts] = [expression("cmp", &[]), expression("counter", &counter(7))];
        let drops = verdict(DROP);
        let reject = expression("reject", &[]);
        let rules = [
            rule_of(2, "INPUT", 4, &[matches.clone(), counts.clone(), drops.clone()]),
            // An iptables chain that others jump to.
            rule_of(2, "mine", 5, &[counts.clone(), reject]),
            rule_of(5, "in", 6, &[counts.clone(), drops.clone()]),
            // Accepts; counts before its condition; does not count; drops what is sent.
            rule_of(2, "INPUT", 7, &[counts.clone(), verdict(1)]),
            rule_of(2, "INPUT", 8, &[counts.clone(), matches, drops.clone()]),
            rule_of(2, "INPUT", 9, std::slice::from_ref(&drops)),
            rule_of(2, "OUTPUT", 10, &[counts, drops]),
        ]
        .concat();
        let told: Vec<(String, u64)> =
            parse(&chains, &rules).into_iter().map(|d| (d.source, d.packets)).collect();
        let expected = [
            ("nft ip filter INPUT, policy", 3),
            ("nft ip filter INPUT, rule 4", 7),
            ("nft ip filter mine, rule 5", 7),
            ("nft netdev filter in, rule 6", 7),
        ];
        let expected = expected.map(|(source, n)| (source.to_owned(), n));
        assert_eq!(told, expected);
        for cut in 0..rules.len() {
            assert!(parse(&chains, &rules[..cut]).len() <= 4, "{cut} bytes");
        }
        for at in 0..rules.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut wrong = rules.clone();
                wrong[at] = byte;
                assert!(parse(&chains, &wrong).len() <= 8);
            }
        }
    }
}
