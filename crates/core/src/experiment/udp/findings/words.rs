//! Each finding about datagrams as a sentence, and what to do about it.

use super::{DatagramTrouble, UdpDiagnosis};
use crate::experiment::udp::measure::DropPlace;
use crate::words::{drop_place, exact, list, number, share as percent, time};

impl UdpDiagnosis {
    /// A sentence for a person.
    pub(crate) fn text(&self) -> String {
        let kind = self.at.as_ref();
        kind.map_or(String::new(), |label| format!("with {label}: ")) + &self.trouble.text()
    }

    /// What to do next, with the very flags to use.
    pub(crate) fn next_step(&self) -> String {
        match (&self.trouble, self.is_explained) {
            (DatagramTrouble::ReceiveBufferOverflow { bytes, .. }, true) => larger_buffer(*bytes),
            (DatagramTrouble::ServicePaused { .. }, true) => OTHERS_AWAY.to_owned(),
            _ => self.trouble.next_step(),
        }
    }
}

impl DatagramTrouble {
    fn text(&self) -> String {
        match self {
            DatagramTrouble::ReceiveBufferOverflow { .. }
            | DatagramTrouble::ServiceVanished { .. }
            | DatagramTrouble::ServiceSaturated { .. }
            | DatagramTrouble::Discarded { .. }
            | DatagramTrouble::ServicePaused { .. } => self.service_text(),
            DatagramTrouble::LostAt { .. } => self.lost_text(),
            DatagramTrouble::SendErrors { .. } | DatagramTrouble::SenderLimited { .. } => {
                self.sender_text()
            }
            DatagramTrouble::Unexplained { count, .. } if *count < 0 => format!(
                "{} more {} received than can have been sent: a count is wrong",
                datagrams(count.unsigned_abs()),
                was(count.unsigned_abs())
            ),
            DatagramTrouble::Unexplained { count, percent: p } => format!(
                "{} ({}) went missing and no counter tells where",
                datagrams(count.unsigned_abs()),
                percent(*p)
            ),
            DatagramTrouble::Reordering { count, percent: p } => format!(
                "{} ({}) came after ones that were sent later",
                datagrams(*count),
                percent(*p)
            ),
            DatagramTrouble::Duplicates { count, percent: p } => format!(
                "{} ({}) came more than once",
                datagrams(*count),
                percent(*p)
            ),
            DatagramTrouble::HostWideEvidence { count, places } => format!(
                "that {} were lost {} is told by counters of the whole host, which other \
                 programs move too",
                exact(*count as f64),
                list(places)
            ),
        }
    }

    /// What befell the senders.
    fn sender_text(&self) -> String {
        match self {
            DatagramTrouble::SendErrors {
                count,
                percent: p,
                by_name,
                ..
            } => {
                let names: Vec<String> = by_name
                    .iter()
                    .map(|(name, n)| format!("{name} {}", exact(*n as f64)))
                    .collect();
                format!(
                    "the kernel refused to send {} ({}): {}",
                    datagrams(*count),
                    percent(*p),
                    list(&names)
                )
            }
            DatagramTrouble::SenderLimited {
                percent: p,
                sent_per_s,
                behind_ns,
                trials,
                blocked,
                ..
            } => {
                let worst = if *trials > 1 {
                    " in the worst trial"
                } else {
                    ""
                };
                let blocked = match blocked {
                    0 => String::new(),
                    n => format!("; their send buffers were full {} times", exact(*n as f64)),
                };
                format!(
                    "the senders did not keep their schedule: they sent {}/s, half of it more \
                     than {} late{worst}, and never came to {} of the datagrams{blocked}",
                    number(*sent_per_s),
                    time(*behind_ns),
                    percent(*p)
                )
            }
            _ => String::new(),
        }
    }

    /// What befell the service.
    fn service_text(&self) -> String {
        match self {
            DatagramTrouble::ReceiveBufferOverflow {
                lost,
                percent: p,
                bytes,
                holds,
                covers_ns,
            } => {
                let holds = holds.map_or(String::new(), |n| format!(", {}", datagrams(n)));
                let covers = covers_ns.map_or(String::new(), |ns| {
                    format!(", filled in {} at the mean rate", time(ns))
                });
                format!(
                    "{} ({}) {} lost as the service's receive buffer ({} bytes{holds}{covers}) \
                     was full: that is the place, not the cause",
                    datagrams(*lost),
                    percent(*p),
                    was(*lost),
                    exact(*bytes as f64)
                )
            }
            DatagramTrouble::ServiceVanished { why, lost } => format!(
                "the service was gone before it could tell what it received ({why}): of {} \
                 nobody knows where they ended",
                datagrams(*lost)
            ),
            DatagramTrouble::ServiceSaturated {
                offered_per_s,
                capacity_per_s,
            } => format!(
                "more is sent than the service can work off: {}/s against at most {}/s, so no \
                 buffer is large enough",
                number(*offered_per_s),
                number(*capacity_per_s)
            ),
            DatagramTrouble::ServicePaused {
                pause_ns,
                covers_ns,
                preempted,
            } => format!(
                "the service stood still for up to {} where its buffer covers {}; it was \
                 preempted {} times",
                time(*pause_ns),
                time(*covers_ns),
                exact(*preempted as f64)
            ),
            DatagramTrouble::Discarded {
                count,
                percent: p,
                by_reason,
            } => {
                let reasons: Vec<String> = by_reason
                    .iter()
                    .map(|(why, n)| format!("{} {}", why.replace('_', " "), exact(*n as f64)))
                    .collect();
                format!(
                    "{} ({}) reached the service changed or cut, so that it discarded them; all \
                     that it discarded: {}",
                    datagrams(*count),
                    percent(*p),
                    list(&reasons)
                )
            }
            _ => String::new(),
        }
    }

    /// What is known of a place of loss, and what is inferred.
    fn lost_text(&self) -> String {
        let DatagramTrouble::LostAt {
            place,
            lost,
            percent: p,
            told,
            is_inferred,
            not_read,
        } = self
        else {
            return String::new();
        };
        let head = format!(
            "{} ({}) {} lost {}",
            datagrams(*lost),
            percent(*p),
            was(*lost),
            drop_place(place.name())
        );
        let told: Vec<String> = told
            .iter()
            .map(|(source, n)| match is_inferred {
                true => source.clone(),
                false => format!("{source} counted {}", exact(*n as f64)),
            })
            .collect();
        let not_read = match not_read.as_slice() {
            what if !what.is_empty() && *is_inferred => {
                format!("; not read on the service's host: {}", list(what))
            }
            _ => String::new(),
        };
        match is_inferred {
            true => format!("{head}: this is inferred, as {}{not_read}", list(&told)),
            false => format!("{head}: {}", list(&told)),
        }
    }

    fn next_step(&self) -> String {
        match self {
            DatagramTrouble::LostAt { place, .. } => lost_at_step(*place).to_owned(),
            DatagramTrouble::Discarded { .. } => {
                "see what changes datagrams on the way: compare captures of both hosts (tcpdump \
                 -ni any -w FILE udp)"
                    .to_owned()
            }
            DatagramTrouble::ReceiveBufferOverflow { bytes, .. } => {
                let larger = larger_buffer(*bytes);
                format!("see what fills it: knee udp ADDR --explain; {larger}")
            }
            DatagramTrouble::SendErrors { name, .. } => send_error_step(name).to_owned(),
            DatagramTrouble::Unexplained { count, .. } if *count < 0 => {
                "repeat it alone on a quiet host; if it persists, please report it".to_owned()
            }
            DatagramTrouble::Unexplained { .. } => {
                "look at the counters of both hosts and of what is between them: nstat -az, \
                 ethtool -S DEVICE, tc -s qdisc"
                    .to_owned()
            }
            DatagramTrouble::ServiceVanished { .. } => {
                "see why it ended, start it again (knee serve udp) and repeat".to_owned()
            }
            DatagramTrouble::ServiceSaturated { capacity_per_s, .. } => format!(
                "offer less: --rate {}, or give it less work: knee serve udp --service",
                (0.8 * capacity_per_s).max(1.0).floor()
            ),
            DatagramTrouble::SenderLimited { sent_per_s, .. } => format!(
                "offer less: --rate {}, or give the senders more cores: --threads",
                (0.9 * sent_per_s).max(1.0).floor()
            ),
            DatagramTrouble::Reordering { .. } => {
                "look for parallel paths or queues on the way (ECMP, bonding, several receive \
                 queues)"
                    .to_owned()
            }
            DatagramTrouble::Duplicates { .. } => {
                "look for loops and mirrored ports on the way; tc -s qdisc shows a netem that \
                 duplicates"
                    .to_owned()
            }
            DatagramTrouble::ServicePaused { .. } => {
                format!("{OTHERS_AWAY}, and see what interrupts it: knee udp ADDR --explain")
            }
            DatagramTrouble::HostWideEvidence { .. } => {
                "repeat on a quiet host or in a network namespace of its own".to_owned()
            }
        }
    }
}

fn send_error_step(name: &str) -> &'static str {
    match name {
        "ECONNREFUSED" => {
            "nobody listens at that port: check the address, or start the service there: knee \
             serve udp"
        }
        "EMSGSIZE" => {
            "the datagram is larger than the path carries in one piece: a smaller --size (1,472 \
             over Ethernet with IPv4)"
        }
        "ENETUNREACH" | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETDOWN" => {
            "there is no way to that host: check the address and the routes: ip route get ADDRESS"
        }
        "EPERM" | "EACCES" => "this host forbids it: look at its firewall: nft list ruleset",
        "ENOBUFS" | "EAGAIN" | "ENOMEM" => {
            "this host's queues are full: offer less with a lower --rate, or look at them: tc -s \
             qdisc"
        }
        _ => "look up that error in udp(7) and send(2)",
    }
}

fn lost_at_step(place: DropPlace) -> &'static str {
    match place {
        DropPlace::SendBuffer | DropPlace::Qdisc => {
            "offer less with a lower --rate, or look at the queues of this host's devices: tc -s \
             qdisc"
        }
        DropPlace::NeighbourQueue => {
            "see why the next hop's address is not resolved: ip neigh; is the host there?"
        }
        DropPlace::Device => "look at the device's counters: ip -s link, ethtool -S DEVICE",
        DropPlace::Path => {
            "see how far they come: capture on both hosts (tcpdump -ni any udp), then on what is \
             between them; a router or filter in another network namespace of this machine has \
             counters of its own: ip netns exec NAME nstat -az, tc -s qdisc, nft list ruleset"
        }
        DropPlace::Backlog => "raise net.core.netdev_max_backlog, or offer less: --rate",
        DropPlace::IpLayer => {
            "look for a rule that drops without counting (nft list ruleset; add 'counter' to it), \
             for a reverse-path filter (net.ipv4.conf.all.rp_filter) and for routes: nstat -az \
             'Ip*'"
        }
        DropPlace::Firewall => {
            "let them pass, where that is wanted: nft -a list ruleset shows the rule by its handle"
        }
        DropPlace::NoSocket => {
            "see who listens at that port: ss -lun; did the service end, or restart?"
        }
        DropPlace::Checksum => {
            "look for what changes datagrams on the way, and at offloads: ethtool -k DEVICE"
        }
        DropPlace::UdpMemory => "raise net.ipv4.udp_mem, or close other sockets: ss -uam",
        DropPlace::ReceiveBuffer | DropPlace::Service => "see what fills it: --explain",
    }
}

/// What keeps a service from pausing.
const OTHERS_AWAY: &str =
    "keep others off the service's processor (knee serve udp --cpu N, clients elsewhere)";

/// What a larger buffer does, where this one is full.
fn larger_buffer(bytes: u64) -> String {
    // The kernel doubles what it is asked for.
    let asked = (2 * bytes).max(4_096);
    format!(
        "a larger one bridges pauses but not a service that is too slow: knee serve udp --rcvbuf \
         {asked} (above net.core.rmem_max it needs CAP_NET_ADMIN)"
    )
}

fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// `1 datagram`, `12,345 datagrams`.
fn datagrams(n: u64) -> String {
    let noun = if n == 1 { "datagram" } else { "datagrams" };
    format!("{} {noun}", exact(n as f64))
}
