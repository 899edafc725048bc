//! Secrets whose values are known, found wherever they are repeated.

use std::collections::BTreeSet;
use std::ops::{Bound, Range};

/// A shorter value is found by its name alone: it would be found by chance too often.
const BYTES_MIN: usize = 4;

/// From this length on a value that is no plain word is found also inside of words.
const INSIDE_MIN: usize = 8;

/// A cut value is found where at least this many bytes of its beginning are left.
const BEGINNING_MIN: usize = 8;

/// What stands in the place of what a cut text had.
const DOTS: &str = "…";

/// Values that say nothing, whatever they are called.
const COMMON: [&str; 8] =
    ["true", "false", "null", "none", "undefined", "bearer", "basic", "digest"];

/// The values in order, so that those that a text begins with lie next to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SecretValues(BTreeSet<Vec<u8>>);

impl SecretValues {
    /// Whether none is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this one is known, or is not worth knowing.
    pub(super) fn has(&self, value: &str) -> bool {
        let is_common = COMMON.iter().any(|word| value.eq_ignore_ascii_case(word));
        value.len() < BYTES_MIN || is_common || self.0.contains(value.as_bytes())
    }

    /// Adds a value.
    pub(super) fn learn(&mut self, value: &str) {
        if !self.has(value) {
            self.0.insert(value.as_bytes().to_vec());
        }
    }

    /// Where values are in a text, in ascending order.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let (bytes, mut at) = (text.as_bytes(), 0);
        let mut cuts = text.match_indices(DOTS).map(|(at, _)| at);
        let mut cut = cuts.next().unwrap_or(bytes.len());
        while !self.is_empty() && at < bytes.len() {
            if cut < at {
                cut = cuts.next().unwrap_or(bytes.len());
            }
            let length = self.whole_at(bytes, at);
            let length = length.or_else(|| self.begun_with(&bytes[at..cut.max(at)]));
            if let Some(length) = length {
                found.push(at..at + length);
            }
            at += length.unwrap_or(1);
        }
        found
    }

    /// The length of the longest value that the text has at `at`.
    fn whole_at(&self, text: &[u8], at: usize) -> Option<usize> {
        let mut rest = &text[at..];
        while rest.len() >= BYTES_MIN {
            let not_above = (Bound::Unbounded, Bound::Included(rest));
            let value = self.0.range::<[u8], _>(not_above).next_back()?;
            let same = common(rest, value);
            if same < value.len() {
                rest = &rest[..same];
            } else if stands_alone(text, at, value) {
                return Some(same);
            } else {
                rest = &rest[..same - 1];
            }
        }
        None
    }

    /// The length of this text where a value goes on after it.
    fn begun_with(&self, left: &[u8]) -> Option<usize> {
        if left.len() < BEGINNING_MIN {
            return None;
        }
        let not_below = (Bound::Included(left), Bound::Unbounded);
        let value = self.0.range::<[u8], _>(not_below).next()?;
        value.starts_with(left).then_some(left.len())
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Whether a value that the text has at `at` is no part of a longer word, where that matters.
fn stands_alone(text: &[u8], at: usize, value: &[u8]) -> bool {
    let is_word = value.len() < INSIDE_MIN || value.iter().all(u8::is_ascii_alphabetic);
    let goes_on = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    !is_word || (!goes_on(before) && !goes_on(text.get(at + value.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> Vec<String> {
        let mut values = SecretValues::default();
        values.learn(value);
        let places = values.find(text);
        places.into_iter().map(|at| text[at].to_owned()).collect()
    }

    #[test]
    fn values_are_found_wherever_they_are() {
        assert_eq!(
            found("s3cr3t-value", "no s3cr3t-value, nos3cr3t-valueno"),
            ["s3cr3t-value", "s3cr3t-value"]
        );
        assert_eq!(found("pässwört-1", "xpässwört-1x"), ["pässwört-1"]);
    }

    #[test]
    fn words_are_found_as_words() {
        assert_eq!(found("admin", "/admin/administrator admin"), ["admin", "admin"]);
        assert_eq!(found("response", "responses to a response"), ["response"]);
    }

    #[test]
    fn beginnings_are_found_where_the_text_is_cut() {
        assert_eq!(found("s3cr3t-value", "it was s3cr3t-v"), ["s3cr3t-v"]);
        assert_eq!(found("s3cr3t-value", "'s3cr3t-v…' came"), ["s3cr3t-v"]);
        assert!(found("s3cr3t-value", "s3cr3t-v came").is_empty());
        assert!(found("s3cr3t-value", "it was s3cr").is_empty());
    }

    #[test]
    fn short_and_common_values_are_not_looked_for() {
        assert!(found("abc", "abc").is_empty());
        assert!(found("true", "true").is_empty());
        assert!(found("", "").is_empty());
    }
}
