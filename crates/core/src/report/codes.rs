//! Everything that a report says by a code, for `knee explain` and the reference.

use super::{Command, Kind};
use crate::experiment::ending;
use crate::finding::Code;
use crate::trial::{findings, validity};

/// Codes of one subject.
#[derive(Clone, Debug)]
pub struct CodeChapter {
    /// The subject.
    pub title: String,
    /// The codes with their causes and remedies.
    pub codes: Vec<Code>,
}

/// A code with the reasons that belong to it.
#[derive(Clone, Debug)]
pub struct CodeEntry {
    /// The code with its cause and remedy.
    pub code: Code,
    /// The reasons that a report names beside it, where it has several.
    pub reasons: Vec<Code>,
}

/// All codes, each in one chapter.
pub fn chapters() -> Vec<CodeChapter> {
    let chapter = |title: &str, codes| CodeChapter { title: title.to_owned(), codes };
    let any_load = chapter("Findings of any load on a target", findings::codes().collect());
    let by_kind = Kind::all().filter(|kind| !kind.codes().is_empty()).map(|kind| {
        let title = format!("Findings of knee {}", Command::of(kind));
        chapter(&title, kind.codes())
    });
    let other = [
        chapter("Findings of an experiment that ended early", ending::CODES.to_vec()),
        chapter("The verdict INVALID", vec![validity::INVALID]),
        chapter("Reasons for INVALID", validity::reasons().collect()),
    ];
    [any_load].into_iter().chain(by_kind).chain(other).collect()
}

/// All codes in the order of the chapters.
pub fn codes() -> impl Iterator<Item = Code> {
    chapters().into_iter().flat_map(|chapter| chapter.codes)
}

/// The code of this name, whatever its case, with `-` or `_` between its words.
pub fn entry(name: &str) -> Option<CodeEntry> {
    let wanted = name.replace('-', "_");
    let code = codes().find(|code| code.name.eq_ignore_ascii_case(&wanted))?;
    let reasons =
        if code == validity::INVALID { validity::reasons().collect() } else { Vec::new() };
    Some(CodeEntry { code, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_unique_and_has_cause_and_remedy() {
        let mut names = BTreeSet::new();
        for code in codes() {
            assert!(names.insert(code.name), "{} is there twice", code.name);
            for text in [code.cause, code.remedy] {
                assert!(text.ends_with('.'), "{}: {text:?}", code.name);
            }
        }
    }

    #[test]
    fn codes_are_found_in_any_spelling_and_invalid_has_reasons() {
        let past_knee = entry("Past-Knee").expect("a finding of a sweep");
        assert_eq!(past_knee.code.name, "past_knee");
        assert!(past_knee.reasons.is_empty());
        let invalid = entry("invalid").expect("the verdict");
        assert!(invalid.reasons.iter().any(|r| r.name == "fell_behind"));
        assert!(entry("past").is_none());
    }
}
