//! JUnit XML, as continuous integration shows it: whether the measurement is to be trusted, and
//! whether each threshold was kept.
//!
//! The format is that of Ant's JUnit task as CI servers read it (testsuites, testsuite, testcase,
//! failure, error, system-out); there is no standard.

use crate::Renderer;
use crate::document::head::is_of_others;
use knee_core::report::{Report, ThresholdReport};
use knee_core::trial::report::Verdict;
use knee_load::shown::{is_hidden, push_shown};
use std::io;

/// The report as JUnit XML: a test for the verdict, and one for each threshold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Junit;

impl Renderer for Junit {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let seconds: f64 =
            report.trials.iter().map(|t| t.duration_ns as f64 / 1e9).fold(0.0, |sum, s| sum + s);
        let cases = cases(report);
        let count = |kind: &str| {
            let bad = cases.iter().filter_map(|case| case.bad.as_ref());
            bad.filter(|(element, _)| *element == kind).count()
        };
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\"",
            cases.len(),
            count("failure"),
            count("error"),
            count("skipped"),
        );
        let suite = format!("knee {}", report.command);
        let name = attribute(&suite);
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites name=\"knee\" {counts}>")?;
        let at = attribute(&report.started_at);
        writeln!(out, "  <testsuite name=\"{name}\" {counts} timestamp=\"{at}\">")?;
        properties(report, out)?;
        for (i, case) in cases.iter().enumerate() {
            show_case(out, &name, case, if i == 0 { seconds } else { 0.0 })?;
        }
        writeln!(out, "    <system-out>{}</system-out>", text(&report_words(report)))?;
        writeln!(out, "  </testsuite>\n</testsuites>")
    }
}

/// Writes the options, which distinguish runs.
fn properties(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "    <properties>")?;
    let version = ("knee_version".to_string(), report.knee_version.clone());
    let spec = report.spec.iter().map(|(name, value)| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        (name.clone(), shown)
    });
    for (name, value) in [version].into_iter().chain(spec) {
        let (name, value) = (attribute(&name), attribute(&value));
        writeln!(out, "      <property name=\"{name}\" value=\"{value}\"/>")?;
    }
    writeln!(out, "    </properties>")
}

/// One test.
struct TestCase {
    name: String,
    /// The failure, or why it is not judged, if any: its element and text.
    bad: Option<(&'static str, String)>,
}

/// The tests of a report.
fn cases(report: &Report) -> Vec<TestCase> {
    let because = |lines: &[String]| lines.join("\n");
    let invalid = match (report.has_measured(), report.verdict) {
        (false, _) => Some(("error", because(&report.failed_because))),
        (_, Verdict::Invalid) => Some(("error", why_invalid(report))),
        (_, Verdict::Valid) => None,
    };
    let mut cases = vec![TestCase { name: "the measurement is valid".to_owned(), bad: invalid }];
    if !is_of_others(report) {
        let is_of_threshold = |line: &&String| {
            let fails = |t: &ThresholdReport| t.failures().any(|failure| failure == *line);
            report.thresholds.iter().any(fails)
        };
        let lines = report.failed_because.iter().filter(|line| !is_of_threshold(line));
        let lines: Vec<String> = lines.cloned().collect();
        let failed = (!lines.is_empty()).then(|| ("failure", because(&lines)));
        cases.push(TestCase { name: "operations succeeded".to_owned(), bad: failed });
    }
    cases.extend(report.thresholds.iter().map(|threshold| {
        let lines: Vec<String> = threshold.failures().cloned().collect();
        let is_judged = report.verdict == Verdict::Valid || threshold.expression == "invalid";
        let bad = match (threshold.is_kept(), is_judged) {
            (false, _) => Some(("failure", because(&lines))),
            (true, false) => Some(("skipped", "the measurement is not valid".to_owned())),
            (true, true) => None,
        };
        TestCase { name: format!("not {}", threshold.expression), bad }
    }));
    cases
}

fn show_case(
    out: &mut dyn io::Write,
    suite: &str,
    case: &TestCase,
    seconds: f64,
) -> io::Result<()> {
    let TestCase { name, bad } = case;
    let name = attribute(name);
    write!(out, "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\"")?;
    let Some((element, words)) = bad else {
        return writeln!(out, "/>");
    };
    let first = attribute(words.lines().next().unwrap_or_default());
    writeln!(out, ">")?;
    writeln!(out, "      <{element} message=\"{first}\">{}</{element}>", text(words))?;
    writeln!(out, "    </testcase>")
}

fn why_invalid(report: &Report) -> String {
    let clauses = report.trials.iter().flat_map(|trial| {
        let named = move |clause: &String| format!("{}: {clause}", trial.label);
        trial.invalid_because.iter().map(named)
    });
    let clauses: Vec<String> = clauses.collect();
    if clauses.is_empty() {
        "the generator, not the target, limited or distorted the result".to_string()
    } else {
        clauses.join("\n")
    }
}

/// The findings, the gravest first.
fn report_words(report: &Report) -> String {
    let line = |finding: &knee_core::finding::Finding| {
        let severity = finding.severity.name();
        let next = if finding.next_step.is_empty() {
            String::new()
        } else {
            format!(" Next: {}", finding.next_step)
        };
        format!("{severity}: {}: {}{next}\n", finding.code, finding.text)
    };
    report.findings.iter().map(line).collect()
}

/// Escaped for an element's text. XML 1.0 (§2.2) has no place for most control characters: they
/// are spelt, as all invisible ones.
fn text(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\u{FFFE}' | '\u{FFFF}' => {}
            c if is_hidden(c) => push_shown(&mut escaped, c),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escaped for an attribute, where a parser would turn line ends into spaces.
fn attribute(words: &str) -> String {
    text(words).replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use knee_core::report::ThresholdReport;

    fn written(report: &Report) -> String {
        let mut bytes = Vec::new();
        Junit.render(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_report_is_well_formed_and_counts_right() {
        for (name, report) in fixtures::all() {
            let xml = written(&report);
            let document =
                roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{name}: {e}"));
            let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
            let count = |tag: &str| suite.descendants().filter(|n| n.has_tag_name(tag)).count();
            let said =
                |attribute: &str| suite.attribute(attribute).unwrap().parse::<usize>().unwrap();
            assert_eq!(count("testcase"), said("tests"), "{name}");
            assert_eq!(count("error"), said("errors"), "{name}");
            assert_eq!(count("skipped"), said("skipped"), "{name}");
            assert_eq!(
                count("error") == 1,
                report.verdict == Verdict::Invalid || !report.has_measured(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_threshold_of_an_invalid_run_does_not_pass() {
        let (_, mut report) = fixtures::all().remove(0);
        let kept = ThresholdReport { expression: "p99>2s".into(), ..ThresholdReport::default() };
        report.thresholds = vec![kept];
        for (verdict, expected) in [(Verdict::Valid, 0), (Verdict::Invalid, 1)] {
            report.verdict = verdict;
            assert_eq!(written(&report).matches("<skipped ").count(), expected);
        }
    }

    #[test]
    fn a_threshold_that_was_crossed_is_a_failure() {
        let (_, mut report) = fixtures::all().remove(0);
        let line = "rate=1/s: p99 <3 s> & \"more\" crosses p99>2s\u{1}";
        report.thresholds = vec![
            ThresholdReport {
                expression: "p99>2s".to_string(),
                crossed: vec![line.to_string(), "another".to_string()],
                ..ThresholdReport::default()
            },
            ThresholdReport { expression: "errors>0.1%".to_string(), ..ThresholdReport::default() },
        ];
        report.judge();
        let xml = written(&report);
        let document = roxmltree::Document::parse(&xml).unwrap();
        let failed: Vec<_> = document.descendants().filter(|n| n.has_tag_name("failure")).collect();
        assert_eq!(failed.len(), 1);
        let spelt = line.replace('\u{1}', "\\u{1}");
        assert_eq!(failed[0].attribute("message"), Some(spelt.as_str()));
        assert_eq!(failed[0].text(), Some(format!("{spelt}\nanother").as_str()));
        let case = failed[0].parent().unwrap();
        assert_eq!(case.attribute("name"), Some("not p99>2s"));
    }
}
