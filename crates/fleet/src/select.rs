//! Which agents are to make an experiment.

use crate::words::AgentFacts;

/// A choice of agents. A name takes that agent. Of labels, those of one key are alternatives, and
/// one of each key has to fit: `zone=a,zone=b,disk=fast`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    names: Vec<String>,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// Reads `zone=a,zone=b` or `loader1,loader2`.
    ///
    /// # Errors
    /// A part is empty.
    pub fn parse(text: &str) -> Result<Selector, String> {
        let mut selector = Selector::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                None if !part.is_empty() => selector.names.push(part.to_owned()),
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    selector.labels.push((key.to_owned(), value.to_owned()));
                }
                _ => {
                    return Err(format!(
                        "'{text}' has a part that is neither a name nor a label: expected NAME or \
                         KEY=VALUE, with commas between them, such as zone=a,zone=b"
                    ));
                }
            }
        }
        Ok(selector)
    }

    /// Whether it takes this agent.
    pub fn takes(&self, agent: &AgentFacts) -> bool {
        if self.names.contains(&agent.name) {
            return true;
        }
        let has_alternative = |key: &str| {
            let mut wanted = self.labels.iter().filter(|(k, _)| k == key);
            wanted.any(|label| agent.labels.contains(label))
        };
        let by_labels = self.labels.iter().all(|(key, _)| has_alternative(key));
        by_labels && (self.names.is_empty() || !self.labels.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::facts_of_test;

    #[test]
    fn labels_of_one_key_are_alternatives() {
        let agent = |name: &str, labels: &[(&str, &str)]| {
            let mut facts = facts_of_test(name);
            let owned = labels
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            facts.labels = owned.collect();
            facts
        };
        let (a, b) = (
            agent("a", &[("zone", "a")]),
            agent("b", &[("zone", "b"), ("disk", "x")]),
        );
        let takes = |text: &str| {
            let selector = Selector::parse(text).unwrap();
            (selector.takes(&a), selector.takes(&b))
        };
        assert_eq!(takes("zone=a,zone=b"), (true, true));
        assert_eq!(takes("zone=b"), (false, true));
        assert_eq!(takes("zone=a,zone=b,disk=x"), (false, true));
        assert_eq!(takes("a"), (true, false));
        assert_eq!(takes("a,disk=x"), (true, true));
        assert!(Selector::default().takes(&a));
        for wrong in ["", "=a", "zone=", "a,,b"] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }
}
