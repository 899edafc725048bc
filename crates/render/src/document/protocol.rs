//! What was spoken over the connections of a trial, and how they were secured.

use super::line::{Ink, Line};
use super::{Fact, fact};
use crate::number::{count, time};
use knee_core::trial::protocol::{ProtocolReport, TlsReport};

/// The facts, where it was not HTTP/1.1 in cleartext.
pub(super) fn facts(protocol: Option<&ProtocolReport>) -> Vec<Fact> {
    let Some(protocol) = protocol else {
        return Vec::new();
    };
    let mut facts = vec![fact("protocol", Line::plain(protocol.words()))];
    if let Some(tls) = &protocol.tls {
        facts.extend(handshakes(tls));
    }
    facts
}

fn handshakes(tls: &TlsReport) -> Vec<Fact> {
    let mut words = format!(
        "{} full, {} resumed",
        count(tls.handshakes_full),
        count(tls.handshakes_resumed)
    );
    if let Some(early) = &tls.early_data {
        words.push_str(&format!(" ({} with early data", count(early.taken)));
        if early.refused > 0 {
            words.push_str(&format!(", {} with it refused", count(early.refused)));
        }
        words.push(')');
    }
    let mut line = Line::plain(words);
    if tls.handshakes_failed > 0 {
        line.push(
            Ink::Bad,
            format!(", {} failed", count(tls.handshakes_failed)),
        );
    }
    let mut facts = vec![fact("handshakes", line)];
    let of = &tls.handshake_ns;
    if let (Some(p50), Some(p99)) = (of.p50, of.p99) {
        let mut took = format!("p50 {}, p99 {}", time(p50), time(p99));
        if let Some(connect) = tls.connect_ns.p50 {
            took.push_str(&format!(", after connecting in p50 {}", time(connect)));
        }
        took.push_str(&format!(
            "; {} of the generator's own",
            time(tls.generator_ns)
        ));
        facts.push(fact("handshake", Line::plain(took)));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::measure::EarlyData;

    fn told(early_data: Option<EarlyData>) -> String {
        let tls = TlsReport {
            handshakes_full: 4,
            handshakes_resumed: 1_096,
            early_data,
            ..TlsReport::default()
        };
        let [line] = &handshakes(&tls)[..] else {
            panic!("none took any time");
        };
        line.1.text()
    }

    #[test]
    fn early_data_is_told_where_it_was_asked_for() {
        assert_eq!(told(None), "4 full, 1,096 resumed");
        let none = EarlyData::default();
        assert_eq!(
            told(Some(none)),
            "4 full, 1,096 resumed (0 with early data)"
        );
        let some = EarlyData {
            taken: 1_090,
            refused: 3,
        };
        assert_eq!(
            told(Some(some)),
            "4 full, 1,096 resumed (1,090 with early data, 3 with it refused)"
        );
    }
}
