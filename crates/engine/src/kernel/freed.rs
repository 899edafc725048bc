//! Reasons of the kernel for freeing undelivered packets, from its tracepoint `skb:kfree_skb`. It
//! covers all network namespaces: also routers and filters between two of them, whose counters are
//! not readable, and rules that do not count. It has no ports, and repeats other counters.

use crate::sys::tracepoint::{self, Count};
use knee_load::experiment::udp::DropPlace;
use std::ffi::CString;
use std::path::Path;
use std::{fs, io};

/// Reasons (enum skb_drop_reason) for drops between two network namespaces that may have no
/// readable counter.
const REASONS: &[(&str, DropPlace)] = &[
    ("QDISC_DROP", DropPlace::Qdisc),
    ("QDISC_OVERLIMIT", DropPlace::Qdisc),
    ("NETFILTER_DROP", DropPlace::Firewall),
    ("TC_INGRESS", DropPlace::Firewall),
    ("XDP", DropPlace::Firewall),
    ("IP_INHDR", DropPlace::IpLayer),
    ("IP_INADDRERRORS", DropPlace::IpLayer),
    ("IP_INNOROUTES", DropPlace::IpLayer),
    ("IP_OUTNOROUTES", DropPlace::IpLayer),
    ("IP_RPFILTER", DropPlace::IpLayer),
];

/// Mount points of tracefs; the second one before Linux 4.1.
const TRACEFS: &[&str] = &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Counts freed packets by reason while it lives. Each costs the kernel some time.
#[derive(Debug)]
pub(crate) struct FreedPackets {
    reasons: Vec<(DropPlace, &'static str, Vec<Count>)>,
}

impl FreedPackets {
    /// Starts to count.
    ///
    /// # Errors
    /// Not permitted, or nothing of the kind here; see [`in_words`].
    pub(crate) fn watch() -> io::Result<FreedPackets> {
        let (id, format) = tracepoint()?;
        let known = REASONS.iter().filter_map(|&(reason, place)| {
            let filter = filter(number(&format, reason)?);
            Some((place, reason, filter))
        });
        let mut reasons = Vec::new();
        for (place, reason, filter) in known {
            let filter = CString::new(filter)?;
            let each = (0..tracepoint::processors()).map(|cpu| Count::open(id, &filter, cpu));
            let counts = each.filter_map(io::Result::transpose);
            reasons.push((place, reason, counts.collect::<io::Result<_>>()?));
        }
        if reasons.is_empty() {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(FreedPackets { reasons })
        }
    }

    /// Counts so far, by place and reason.
    pub(crate) fn now(&self) -> impl Iterator<Item = (DropPlace, &'static str, u64)> {
        self.reasons.iter().map(|(place, reason, counts)| {
            let sum = counts.iter().filter_map(|count| count.now().ok()).sum();
            (*place, *reason, sum)
        })
    }
}

/// Unknown drops without it, and why, in words.
pub(crate) fn in_words(error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => "root".to_owned(),
        io::ErrorKind::NotFound => "no tracefs, or a kernel before 5.17".to_owned(),
        _ => error.to_string(),
    };
    format!("the kernel's reasons for drops ({why})")
}

/// Number and format of the tracepoint.
fn tracepoint() -> io::Result<(u64, String)> {
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for tracefs in TRACEFS {
        let event = Path::new(tracefs).join("events/skb/kfree_skb");
        match fs::read_to_string(event.join("id")) {
            Ok(id) => {
                let id = id.trim().parse().map_err(io::Error::other)?;
                return Ok((id, fs::read_to_string(event.join("format"))?));
            }
            // One that is there but forbidden tells more than one that is not there.
            Err(e) if e.kind() != io::ErrorKind::NotFound => error = e,
            Err(_) => {}
        }
    }
    Err(error)
}

/// The number of a reason, which differs between kernels: `{ 12, "NETFILTER_DROP" }`.
fn number(format: &str, reason: &str) -> Option<u32> {
    let (before, _) = format.split_once(&format!(", \"{reason}\""))?;
    let (_, number) = before.rsplit_once('{')?;
    number.trim().parse().ok()
}

/// Filter for packets of IP.
fn filter(number: u32) -> String {
    let protocols = [libc::ETH_P_IP, libc::ETH_P_IPV6].map(|p| format!("protocol == {p}"));
    format!("reason == {number} && ({})", protocols.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = r#"print fmt: "reason: %s", __print_symbolic(REC->reason,
        { 2, "NOT_SPECIFIED" }, { 13, "IP_RPFILTER" }, { 12, "NETFILTER_DROP" })"#;

    #[test]
    fn numbers_of_reasons_are_read() {
        assert_eq!(number(FORMAT, "NETFILTER_DROP"), Some(12));
        assert_eq!(number(FORMAT, "IP_RPFILTER"), Some(13));
        assert_eq!(number(FORMAT, "RPFILTER"), None, "a part of a name");
        assert_eq!(number(FORMAT, "XDP"), None, "a kernel without it");
        assert_eq!(number(", \"XDP\"", "XDP"), None);
        assert_eq!(filter(12), "reason == 12 && (protocol == 2048 || protocol == 34525)");
    }

    #[test]
    fn why_it_is_missing_is_said() {
        let told = |kind: io::ErrorKind| in_words(&kind.into());
        assert_eq!(told(io::ErrorKind::PermissionDenied), "the kernel's reasons for drops (root)");
        assert_eq!(
            told(io::ErrorKind::NotFound),
            "the kernel's reasons for drops (no tracefs, or a kernel before 5.17)"
        );
    }
}
