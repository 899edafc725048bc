//! Everything that a report says by a code, for `knee explain` and the reference.

use super::{Command, Kind};
use crate::experiment::ending;
use crate::finding::Code;
use crate::trial::{findings, validity};

/// Codes that belong together.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Where they appear.
    pub title: String,
    /// What each means and what to do about it.
    pub codes: Vec<Code>,
}

/// What is known of one code.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it means and what to do about it.
    pub code: Code,
    /// The reasons that a report names beside it, where it has several.
    pub reasons: Vec<Code>,
}

/// All codes, each in one chapter.
pub fn chapters() -> Vec<Chapter> {
    let chapter = |title: &str, codes| Chapter {
        title: title.to_owned(),
        codes,
    };
    let of_any = chapter(
        "Findings of any load on a target",
        findings::codes().collect(),
    );
    let of_one = Kind::all().filter(|kind| !kind.codes().is_empty());
    let of_one = of_one.map(|kind| {
        let title = format!("Findings of knee {}", Command::of(kind));
        chapter(&title, kind.codes())
    });
    let of_the_end = [
        chapter(
            "Findings of an experiment that ended early",
            ending::CODES.to_vec(),
        ),
        chapter("The verdict INVALID", vec![validity::INVALID]),
        chapter("Reasons for INVALID", validity::reasons().collect()),
    ];
    [of_any]
        .into_iter()
        .chain(of_one)
        .chain(of_the_end)
        .collect()
}

/// All codes in the order of the chapters.
pub fn codes() -> impl Iterator<Item = Code> {
    chapters().into_iter().flat_map(|chapter| chapter.codes)
}

/// The code of this name, whatever its case, with `-` or `_` between its words.
pub fn entry(name: &str) -> Option<Entry> {
    let wanted = name.replace('-', "_");
    let code = codes().find(|code| code.name.eq_ignore_ascii_case(&wanted))?;
    let reasons = match code == validity::INVALID {
        true => validity::reasons().collect(),
        false => Vec::new(),
    };
    Some(Entry { code, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_unique_and_has_a_cause_and_a_remedy() {
        let mut names = BTreeSet::new();
        for code in codes() {
            assert!(names.insert(code.name), "{} is there twice", code.name);
            for text in [code.cause, code.remedy] {
                assert!(text.ends_with('.'), "{}: {text:?}", code.name);
            }
        }
    }

    #[test]
    fn a_code_is_found_however_it_is_spelt_and_invalid_names_its_reasons() {
        let found = entry("Past-Knee").expect("a finding of a sweep");
        assert_eq!(found.code.name, "past_knee");
        assert!(found.reasons.is_empty());
        let invalid = entry("invalid").expect("the verdict");
        assert!(invalid.reasons.iter().any(|r| r.name == "fell_behind"));
        assert!(entry("past").is_none());
    }
}
