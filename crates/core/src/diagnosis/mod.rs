//! Findings of experiments that are not values yet.

use crate::experiment::throttle::findings::ThrottleDiagnosis;
use crate::experiment::udp::findings::UdpDiagnosis;
use crate::finding::Finding;

/// A finding before it is put into words.
#[derive(Clone, Debug, PartialEq)]
pub enum Diagnosis {
    /// Of datagrams.
    Udp(UdpDiagnosis),
    /// Of how the machine waits and holds a rate.
    Throttle(ThrottleDiagnosis),
}

impl Diagnosis {
    /// It in words, with its evidence and the next step.
    pub fn finding(&self) -> Finding {
        let (code, severity, text, evidence, next_step) = match self {
            Diagnosis::Udp(d) => (
                d.trouble.code(),
                d.trouble.severity(),
                d.text(),
                d.evidence(),
                d.next_step(),
            ),
            Diagnosis::Throttle(d) => (
                d.code(),
                d.severity(),
                d.text(),
                d.evidence(),
                d.next_step(),
            ),
        };
        let known = evidence.into_iter().filter(|(_, value)| value.is_finite());
        Finding {
            code: code.to_owned(),
            severity,
            text,
            evidence: known
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            next_step,
        }
    }
}
