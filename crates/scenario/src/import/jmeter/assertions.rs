//! What responses have to be.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use super::extractors::pointer;
use super::{is_plain, is_word};
use crate::import::grammar::status_ranges;
use crate::import::{ImportedExpect, ImportedMatch, ImportedText};
use knee_load::session::Pattern;
use knee_load::time::Nanos;

/// What is asked of responses.
pub(super) const ASSERTIONS: [&str; 3] =
    ["ResponseAssertion", "DurationAssertion", "JSONPathAssertion"];

/// The statuses that are success without any assertion.
const SUCCESS: std::ops::Range<u16> = 200..400;

/// Bits of the kind of a Response Assertion.
const WHOLE: u32 = 1;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const ANY: u32 = 32;

impl<'a> JmeterReader<'a> {
    /// What the assertions in whose scope a request is ask for.
    pub(super) fn assertions(&mut self, scope: &JmeterScope<'a>) -> ImportedExpect {
        let mut expect = ImportedExpect::default();
        // The statuses that are success, where something asks for any.
        let mut statuses: Vec<u16> = Vec::new();
        for element in scope.all(&ASSERTIONS) {
            match element.kind() {
                "DurationAssertion" => {
                    match self.number::<u64>(element.text("DurationAssertion.duration")) {
                        Some(ms) if (1..=86_400_000).contains(&ms) => {
                            let time = Nanos::from_millis(ms);
                            expect.time = Some(expect.time.map_or(time, |other| other.min(time)));
                        }
                        Some(0) => {}
                        _ => self.leave_out(element, "its time is not known"),
                    }
                }
                "JSONPathAssertion" => self.json_assertion(element, &mut expect),
                _ => self.response_assertion(element, &mut expect, &mut statuses),
            }
        }
        if !statuses.is_empty() {
            expect.status = ranges(&statuses);
        }
        expect
    }

    fn response_assertion(
        &mut self,
        element: JmeterElement<'a>,
        expect: &mut ImportedExpect,
        statuses: &mut Vec<u16>,
    ) {
        let kind = self.number::<u32>(element.text("Assertion.test_type")).unwrap_or(2);
        // Older plans have another name here, which is no mistake of this file.
        let mut texts = Vec::new();
        for text in element.texts("Asserion.test_strings") {
            texts.push(self.filled(text, element));
        }
        if element.flag("Assertion.assume_success") && statuses.is_empty() {
            *statuses = (100..600).collect();
        }
        texts.retain(|text| !text.is_empty());
        if texts.is_empty() {
            return;
        }
        let field = element.text("Assertion.test_field").trim();
        match field.strip_prefix("Assertion.").unwrap_or(field) {
            "response_code" => self.asked_statuses(element, kind, &texts, statuses),
            "" | "response_data" | "response_data_as_document" => {
                let matches = self.matches(element, kind, &texts);
                expect.body.extend(matches.into_iter().map(|is| (None, is)));
            }
            "response_headers" => self.asked_headers(element, kind, &texts, expect, statuses),
            other => {
                let what = format!("it asks for '{other}', which is not asked here");
                self.leave_out(element, &what);
            }
        }
    }

    /// Narrows the statuses to those that an assertion permits.
    fn asked_statuses(
        &mut self,
        element: JmeterElement<'a>,
        kind: u32,
        texts: &[ImportedText],
        statuses: &mut Vec<u16>,
    ) {
        let mut patterns = Vec::new();
        for text in texts {
            let pattern = text.literal().and_then(|text| {
                Pattern::parse(&match kind & !(NOT | ANY) {
                    EQUALS => format!("^{}$", regex_syntax::escape(text)),
                    SUBSTRING => regex_syntax::escape(text),
                    WHOLE => format!("^(?:{text})$"),
                    _ => text.to_owned(),
                })
                .ok()
            });
            let Some(pattern) = pattern else {
                self.leave_out(element, "its statuses are not known: below 400 is success");
                return;
            };
            patterns.push(pattern);
        }
        if statuses.is_empty() {
            *statuses = SUCCESS.collect();
        }
        let is_fine = |status: &u16| {
            let status = status.to_string();
            let holds = |pattern: &Pattern| pattern.is_in(&status) != (kind & NOT != 0);
            let mut all = patterns.iter().map(holds);
            if kind & ANY != 0 { all.any(|is| is) } else { all.all(|is| is) }
        };
        let left: Vec<u16> = statuses.iter().copied().filter(is_fine).collect();
        if left.is_empty() {
            self.leave_out(element, "no status is success to it and to JMeter: it is not asked");
        } else {
            *statuses = left;
        }
    }

    fn asked_headers(
        &mut self,
        element: JmeterElement<'a>,
        kind: u32,
        texts: &[ImportedText],
        expect: &mut ImportedExpect,
        statuses: &mut Vec<u16>,
    ) {
        for text in texts {
            // The first line has the status.
            let status = text.literal().and_then(|text| text.strip_prefix("HTTP/1."));
            if let Some((_, status)) = status.and_then(|rest| rest.split_once(' ')) {
                let code: String = status.chars().take(3).collect();
                self.asked_statuses(element, (kind & NOT) | EQUALS, &[code.into()], statuses);
                continue;
            }
            let line = text.literal().and_then(|text| text.split_once(':'));
            let line = line.filter(|(name, _)| is_word(name, b"-") && kind & ANY == 0);
            let Some((name, value)) = line else {
                self.leave_out(element, "it asks for header lines, which are not asked here");
                continue;
            };
            let value = value.trim();
            if value.is_empty() {
                let is = ImportedMatch::Exists(kind & NOT == 0);
                expect.headers.push((name.to_owned(), is));
                continue;
            }
            for is in self.matches(element, kind, &[value.into()]) {
                let is = match is {
                    ImportedMatch::Equals(text) => ImportedMatch::Contains(text),
                    other => other,
                };
                expect.headers.push((name.to_owned(), is));
            }
        }
    }

    /// What texts ask of a body or of a value.
    fn matches(
        &mut self,
        element: JmeterElement<'a>,
        kind: u32,
        texts: &[ImportedText],
    ) -> Vec<ImportedMatch> {
        let is_regex = kind & (EQUALS | SUBSTRING) == 0;
        let is_any = kind & ANY != 0 && texts.len() > 1;
        if texts.iter().any(|text| text.literal().is_none()) && (is_regex || is_any) {
            self.leave_out(element, "it has an expression with a variable: it is not asked");
            return Vec::new();
        }
        if is_any && kind & NOT != 0 {
            self.leave_out(element, "it asks that one of its texts is missing: it is not asked");
            return Vec::new();
        }
        let pattern = |text: &str| match kind & !(NOT | ANY) {
            EQUALS => format!("^{}$", regex_syntax::escape(text)),
            SUBSTRING => regex_syntax::escape(text),
            WHOLE => format!("^(?:{text})$"),
            _ => format!("(?:{text})"),
        };
        let matches: Vec<ImportedMatch> = if is_any {
            let all: Vec<String> = texts.iter().filter_map(|t| t.literal()).map(pattern).collect();
            vec![ImportedMatch::Matches(all.join("|"))]
        } else {
            let one = |text: &ImportedText| match (kind & !(NOT | ANY), text.literal()) {
                (EQUALS, _) => ImportedMatch::Equals(text.clone()),
                (SUBSTRING, _) => ImportedMatch::Contains(text.clone()),
                (WHOLE, Some(text)) => ImportedMatch::Matches(pattern(text)),
                (_, Some(plain)) if is_plain(plain) => ImportedMatch::Contains(plain.into()),
                (_, plain) => ImportedMatch::Matches(plain.unwrap_or_default().to_owned()),
            };
            texts.iter().map(one).collect()
        };
        let not = |is: ImportedMatch| ImportedMatch::Not(Box::new(is));
        matches.into_iter().map(|is| if kind & NOT != 0 { not(is) } else { is }).collect()
    }

    fn json_assertion(&mut self, element: JmeterElement<'a>, expect: &mut ImportedExpect) {
        let path = element.text("JSON_PATH").trim();
        let Some((pointer, false)) = pointer(path) else {
            self.leave_out(element, &format!("its path '{path}' is no plain one: it is not asked"));
            return;
        };
        let value = self.filled(element.text("EXPECTED_VALUE"), element);
        let is_asked = element.flag("JSONVALIDATION");
        let is_regex = element.given("ISREGEX") != Some("false");
        let is = match (is_asked, element.flag("EXPECT_NULL"), value.literal()) {
            (false, _, _) => ImportedMatch::Exists(true),
            (true, true, _) => ImportedMatch::Equals("null".into()),
            (true, false, Some(text)) if is_regex && !is_plain(text) => {
                ImportedMatch::Matches(format!("^(?:{text})$"))
            }
            _ => ImportedMatch::Equals(value),
        };
        let is = match (element.flag("INVERT"), is) {
            (false, is) => is,
            (true, ImportedMatch::Exists(is)) => ImportedMatch::Exists(!is),
            (true, is) => ImportedMatch::Not(Box::new(is)),
        };
        expect.body.push((Some(pointer), is));
    }
}

/// Statuses as ranges; none where they are success anyhow.
fn ranges(statuses: &[u16]) -> Vec<String> {
    if statuses.iter().copied().eq(SUCCESS) {
        return Vec::new();
    }
    let ranges = status_ranges(statuses.iter().copied()).into_iter();
    let written = ranges.map(
        |(low, high)| {
            if low == high { low.to_string() } else { format!("{low}-{high}") }
        },
    );
    written.collect()
}
