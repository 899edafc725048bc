//! Measurements of each target, where there are several.

use super::{Completion, Histogram, Outcomes, StepMeasured};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most targets that are measured each on its own: each has a histogram in each worker. Where
/// there are more, the last of these is the sum of all further ones.
pub const TARGETS_MAX: usize = 100;

/// How many responses had which status, ascending: nearly always one status or two, so that looking
/// through them is quicker than a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCodes(Vec<(u16, u64)>);

impl StatusCodes {
    /// Counts one; 0 is none.
    #[inline]
    pub fn add(&mut self, status: u16) {
        match self.0.first_mut() {
            // The one that there is, as a rule.
            Some((first, count)) if *first == status => *count += 1,
            _ if status == 0 => {}
            _ => self.add_many(status, 1),
        }
    }

    fn add_many(&mut self, status: u16, more: u64) {
        match self.0.binary_search_by_key(&status, |entry| entry.0) {
            Ok(at) => self.0[at].1 += more,
            Err(at) => self.0.insert(at, (status, more)),
        }
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &StatusCodes) {
        for &(status, count) in &other.0 {
            self.add_many(status, count);
        }
    }

    /// Whether there was no response.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each status with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// A map from status to count.
impl Serialize for StatusCodes {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter().map(|(status, n)| (status.to_string(), n)))
    }
}

impl<'de> Deserialize<'de> for StatusCodes {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<StatusCodes, D::Error> {
        let mut codes = StatusCodes::default();
        for (status, count) in BTreeMap::<String, u64>::deserialize(d)? {
            let status = status.parse().map_err(serde::de::Error::custom)?;
            codes.add_many(status, count);
        }
        Ok(codes)
    }
}

/// Measurements of one target, for the operations intended within the window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TargetMeasured {
    /// Outcomes of its operations.
    pub outcomes: Outcomes,
    /// Statuses of their responses.
    pub status_codes: StatusCodes,
    /// Response times.
    pub response: Histogram,
    /// Further measurements if it is a step of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepMeasured>,
}

impl TargetMeasured {
    /// One for each target. A single target has none, as all is of it; a single step of sessions
    /// has one, as there are sessions beside it.
    pub fn each(targets: usize, are_steps: bool) -> Vec<TargetMeasured> {
        match targets {
            0 | 1 if !are_steps => Vec::new(),
            n => vec![TargetMeasured::default(); n.clamp(1, TARGETS_MAX)],
        }
    }

    /// Which of `count` a target's number falls to.
    #[inline]
    pub fn index(target: u32, count: usize) -> usize {
        (target as usize).min(count - 1)
    }

    /// Notes an operation that ended.
    #[inline]
    pub fn count(&mut self, completion: &Completion) {
        self.outcomes.add(completion.outcome);
        self.status_codes.add(completion.status);
        if completion.outcome != super::Outcome::Shed {
            self.response.record(completion.response_time());
        }
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &TargetMeasured) {
        self.outcomes.merge(&other.outcomes);
        self.status_codes.merge(&other.status_codes);
        self.response.merge(&other.response);
        match (&mut self.step, &other.step) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => *mine = theirs.clone(),
            (Some(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_are_a_map_in_json() {
        let mut codes = StatusCodes::default();
        [200, 503, 200, 0].iter().for_each(|&s| codes.add(s));
        let json = serde_json::to_string(&codes).unwrap();
        assert_eq!(json, r#"{"200":2,"503":1}"#);
        assert_eq!(serde_json::from_str::<StatusCodes>(&json).unwrap(), codes);
        assert!(serde_json::from_str::<StatusCodes>(r#"{"ok":2}"#).is_err());
    }

    #[test]
    fn of_many_targets_the_last_are_summed() {
        assert!(TargetMeasured::each(1, false).is_empty());
        assert_eq!(TargetMeasured::each(1, true).len(), 1);
        assert_eq!(TargetMeasured::each(2, false).len(), 2);
        let many = TargetMeasured::each(5_000, false).len();
        assert_eq!(many, TARGETS_MAX);
        assert_eq!(TargetMeasured::index(98, many), 98);
        assert_eq!(TargetMeasured::index(99, many), 99);
        assert_eq!(TargetMeasured::index(4_999, many), 99);
    }
}
