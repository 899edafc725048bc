//! What holds of any page: it is whole, self-contained, the same again, and nothing in a report can
//! break out of it. What pages look like is for the tests in a browser.

use crate::{Html, Json, Renderer, fixtures, html_tour, parse_report};
use knee_core::experiment::sweep::report::SweepLevel;
use knee_core::report::{Conclusion, Report};
use knee_load::measure::Interval;
use knee_load::spec::Level;
use serde_json::Value;

/// A page is to stay below this.
const BYTES_MAX: usize = 1_000_000;

fn page(report: &Report) -> String {
    let mut bytes = Vec::new();
    Html.render(report, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The page without style and script.
fn body(report: &Report) -> String {
    let page = page(report);
    let (_, body) = page.split_once("<main>").unwrap();
    let (body, _) = body.split_once("</main>").unwrap();
    body.to_string()
}

/// The names of all elements, in their order, with those that may be left open.
fn tags(markup: &str) -> Vec<&str> {
    let begins = markup.match_indices('<').map(|(at, _)| &markup[at + 1..]);
    let name = |text: &'_ str| text.find([' ', '>', '/']).unwrap_or(text.len());
    begins
        .map(|text| match text.strip_prefix('/') {
            Some(rest) => &text[..=rest.find('>').unwrap_or(rest.len())],
            None => &text[..name(text)],
        })
        .collect()
}

#[test]
fn every_report_is_a_page_of_its_own() {
    for (name, report) in fixtures::all() {
        let page = page(&report);
        assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"), "{name}");
        assert!(page.ends_with("</html>\n"), "{name}");
        assert!(page.len() < BYTES_MAX, "{name}: {} bytes", page.len());
        let tags = tags(&page);
        for (tag, times) in [("main", 1), ("title", 1), ("style", 1), ("script", 1), ("h1", 1)] {
            let outside = tags.iter().filter(|t| **t == tag).count();
            let plots = page.matches("<title id=").count();
            let times = if tag == "title" { times + plots } else { times };
            assert_eq!(outside, times, "{tag} in {name}");
        }
    }
}

/// The only addresses in a page are those that the report itself is about, as text: nothing is
/// fetched or linked.
#[test]
fn nothing_is_fetched() {
    for (name, mut report) in fixtures::all() {
        report.spec.remove("target");
        let page = page(&report).to_lowercase();
        for sign in ["http:", "https:", "//www", " src=", "@import", "url(", "xmlns", "<link"] {
            assert!(!page.contains(sign), "{sign} in {name}");
        }
        assert_eq!(page.matches("href=").count(), page.matches("href=\"#").count(), "{name}");
    }
}

#[test]
fn a_stored_report_renders_to_the_same_bytes() {
    for (name, report) in fixtures::all() {
        let mut json = Vec::new();
        Json.render(&report, &mut json).unwrap();
        let again = parse_report(&String::from_utf8(json).unwrap()).unwrap();
        assert!(page(&report) == page(&again), "{name}");
    }
}

#[test]
fn every_element_is_closed() {
    // Those that HTML lets be left open, and those without content.
    let open = ["tr", "td", "th", "thead", "tbody", "line", "path", "rect", "br", "meta"];
    for (name, report) in fixtures::all() {
        let body = body(&report);
        let mut inside = Vec::new();
        for tag in tags(&body) {
            match tag.strip_prefix('/') {
                Some(end) if open.contains(&end) => {}
                Some(end) => assert_eq!(inside.pop(), Some(end), "{name}"),
                None if open.contains(&tag) => {}
                None => inside.push(tag),
            }
        }
        assert!(inside.is_empty(), "{name}: {inside:?}");
    }
}

/// A reader who does not see a figure learns what it shows and its values.
#[test]
fn every_figure_can_be_read() {
    for (name, report) in fixtures::all() {
        let body = body(&report);
        for figure in body.split("<figure").skip(1) {
            let (figure, _) = figure.split_once("</figure>").unwrap();
            let between = |from: &str, to: &str| {
                let (_, rest) = figure.split_once(from).unwrap_or_else(|| panic!("{from} {name}"));
                let (text, _) = rest.split_once(to).unwrap();
                let (_, text) = text.split_once('>').unwrap();
                text.to_string()
            };
            assert!(!between("<title", "</title>").is_empty(), "{name}");
            assert!(!between("<desc", "</desc>").is_empty(), "{name}");
            assert!(figure.contains("tabindex=\"0\""), "{name}");
            let series = figure.matches("data-y=\"").count();
            assert!(series > 1, "a figure of nothing in {name}: {figure}");
            assert!(figure.contains("<details class=\"data\">"), "{name}");
            for sign in ["NaN", "inf", "undefined"] {
                assert!(!figure.replace("NaN", "").contains(sign), "{sign} in {name}");
            }
            let shapes = figure.split(" d=\"").skip(1).map(|d| d.split('"').next().unwrap());
            for d in shapes {
                let known = |c: char| c.is_ascii_digit() || "MlhvVHLz .-aA".contains(c);
                assert!(d.chars().all(known), "{d} in {name}");
            }
        }
    }
}

/// Puts `text` in the place of every text and name that a report may bring from outside.
fn poisoned(report: &Report, text: &str) -> Report {
    fn poison(value: &mut Value, text: &str) {
        match value {
            Value::String(s) => *s = text.to_string(),
            Value::Array(items) => items.iter_mut().for_each(|v| poison(v, text)),
            Value::Object(fields) => fields.values_mut().for_each(|v| poison(v, text)),
            _ => {}
        }
    }
    let mut report = report.clone();
    let mut poisoned_spec = serde_json::to_value(&report.spec).unwrap();
    poison(&mut poisoned_spec, text);
    report.spec = serde_json::from_value(poisoned_spec).unwrap();
    report.spec.insert(text.into(), text.into());
    for one in [
        &mut report.knee_version,
        &mut report.started_at,
        &mut report.host.kernel,
        &mut report.host.cpu_model,
        &mut report.host.backend,
        &mut report.host.congestion_control,
    ] {
        *one = text.into();
    }
    report.host.facts.insert(text.into(), text.into());
    for finding in &mut report.findings {
        finding.code = text.into();
        finding.text = text.into();
        finding.next_step = format!("{text} --rate {text} `{text}`");
        finding.evidence.insert(text.into(), 1.0);
    }
    for trial in &mut report.trials {
        trial.label = text.into();
        trial.invalid_because.push(text.into());
        fixtures::http(trial).malformed_because = Some(text.into());
        fixtures::http(trial).stream_reset_because = Some(text.into());
        trial.kernel.insert(text.into(), 1);
        trial.offered.arrival = text.into();
        trial.generator.backend = text.into();
    }
    if let Conclusion::Sweep(c) = &mut report.conclusion {
        c.answer = text.into();
        c.knee_method = Some(text.into());
        c.knee_alternatives.insert(text.into(), 1.0);
        for level in &mut c.levels {
            level.excluded_because = Some(text.into());
        }
        for model in &mut c.models {
            model.name = text.into();
            model.parameters.insert(text.into(), 1.0);
        }
        for bound in &mut c.bounds {
            bound.metric = text.into();
        }
    }
    report
}

/// Whatever a report says, the elements of its page are those that it would have if it said
/// something harmless, and no attribute ends early.
#[test]
fn no_text_breaks_out_of_its_place() {
    // A small generator with a fixed seed makes texts of the characters that could do harm.
    let alphabet: Vec<char> = "<>\"'&=/ !-ax`\n;:)".chars().collect();
    let mut state = 7_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize
    };
    let mut texts: Vec<String> = [
        "<script>alert(1)</script>",
        "\"><img onerror=alert(1)>",
        "' onload='x",
        "</style></title></desc></script><b>",
        "<!--",
        "]]>",
        "&lt;b&gt; &#60;",
        "\u{202e}\u{0}\u{7}\u{1b}[31m",
    ]
    .map(String::from)
    .into();
    for _ in 0..40 {
        let length = 1 + draw() % 24;
        texts.push((0..length).map(|_| alphabet[draw() % alphabet.len()]).collect());
    }
    for report in [fixtures::sweep_good(), fixtures::run_errors(), fixtures::run_invalid()] {
        for text in &texts {
            let page = body(&poisoned(&report, text));
            let tags = tags(&page);
            for tag in ["script", "img", "b onload", "!--", "style"] {
                assert!(!tags.contains(&tag), "{tag} by {text:?}");
            }
            assert!(!page.contains(['\u{0}', '\u{1b}']), "{text:?}");
            // An attribute that ends early would leave an odd number of quotes in a tag.
            for tag in page.split('<').skip(1) {
                let (inside, _) = tag.split_once('>').unwrap();
                assert_eq!(inside.matches('"').count() % 2, 0, "{inside} by {text:?}");
            }
            let said = |letters: &str| body(&poisoned(&report, letters));
            if !text.contains(['-', '`', ')', ':', ';', '\n', ' ', '.']) {
                // How long words are decides where a figure has them, in the plot or in its legend.
                let of_legend = ["span", "/span", "svg", "/svg", "path", "text", "/text"];
                let others = |page: &str| -> Vec<String> {
                    let tags = super::tests::tags(page).into_iter();
                    let others = tags.filter(|tag| !of_legend.contains(tag));
                    others.map(str::to_owned).collect()
                };
                assert_eq!(others(&page), others(&said("x")), "{text:?}");
            }
        }
    }
}

/// Sixty trials of 240 intervals each, as a long sweep has them.
#[test]
fn names_over_their_rows_leave_the_axis_its_marks() {
    let body = body(&fixtures::udp_explain());
    let figure = |title: &str| {
        let begin = format!("<b>{title}</b>");
        let (_, rest) = body.split_once(&begin).expect("it is there");
        rest.split("</figure>").next().unwrap_or_default().to_owned()
    };
    for title in ["Change of the loss", "Ratio of datagrams sent"] {
        let figure = figure(title);
        assert!(figure.contains("frame over"), "{title}");
        let marks = figure.matches("<g class=\"x\">").count();
        assert!(marks >= 3, "{title} has {marks} where the page is narrow");
    }
}

#[test]
fn a_long_sweep_stays_small() {
    let mut report = fixtures::sweep_good();
    let interval = |i: u64| Interval {
        start_ns: i * 100_000_000,
        end_ns: (i + 1) * 100_000_000,
        attempted: 812 + i * 7_919 % 97,
        completed: 811 + i * 7_907 % 89,
        p50_ns: 1_234_567 + i * 104_729 % 99_991,
        p90_ns: 2_345_678 + i * 104_723 % 99_991,
        p99_ns: 3_456_789 + i * 104_717 % 99_991,
        max_ns: 9_876_543 + i * 104_711 % 99_991,
        ..Interval::default()
    };
    let trial = report.trials[0].clone();
    let Conclusion::Sweep(conclusion) = &mut report.conclusion else {
        unreachable!();
    };
    let level = conclusion.levels[0].clone();
    report.trials.clear();
    conclusion.levels.clear();
    for i in 1..=60 {
        let at = Level::Vusers(i * 5);
        let mut trial = trial.clone();
        trial.label = format!("vusers={}", i * 5);
        trial.level = at;
        trial.intervals = (0..240).map(interval).collect();
        report.trials.push(trial);
        conclusion.levels.push(SweepLevel { level: at, ..level.clone() });
    }
    let page = page(&report);
    assert!(page.len() < BYTES_MAX, "{}", page.len());
    // The page says what is left out.
    assert!(page.contains(" of 60 trials, "), "{}", page.len());
    let mut run = fixtures::run_errors();
    run.trials[0].intervals = (0..2_400).map(interval).collect();
    let page = self::page(&run);
    assert!(page.len() < BYTES_MAX, "{}", page.len());
}

/// An hour of datagrams by each of several laws.
#[test]
fn a_long_run_of_datagrams_stays_small() {
    let interval = |i: u64| Interval {
        start_ns: i * 100_000_000,
        end_ns: (i + 1) * 100_000_000,
        sent: Some(1_000 + i * 7_919 % 97),
        received: Some(900 + i * 7_907 % 89),
        dropped: Some(100),
        ..Interval::default()
    };
    let mut report = fixtures::udp_compare();
    let Conclusion::Udp(conclusion) = &mut report.conclusion else {
        unreachable!();
    };
    for law in &mut conclusion.laws {
        law.intervals = (0..36_000).map(interval).collect();
    }
    let page = page(&report);
    assert!(page.len() < BYTES_MAX, "{}", page.len());
    assert!(page.contains("of neighbours the least and the most are drawn"));
}

/// The order in which things are shown: the answer and the findings, plots, tables, the rest.
#[test]
fn the_answer_comes_first() {
    let all = [
        ("sweep", fixtures::sweep_good()),
        ("sweep_rates", fixtures::sweep_rates()),
        ("sweep_analyzed", fixtures::sweep_analyzed_low()),
        ("run", fixtures::run_errors()),
        ("run_nothing", fixtures::run_nothing()),
        ("run_sessions", fixtures::run_sessions()),
        ("overload_sessions", fixtures::overload_sessions()),
    ];
    for (name, report) in all {
        insta::assert_snapshot!(format!("outline_{name}"), outline(&body(&report)));
    }
}

/// Headings, figures with their lines, and tables of a page, in their order.
fn outline(body: &str) -> String {
    let mut lines = String::new();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let line = match name {
            "h1" | "h2" | "h3" | "summary" if text != "Data" && !text.is_empty() => {
                format!("{name} {text}")
            }
            "p" if rest.contains("verdict") => "verdict".to_string(),
            "b" | "small" => format!("   {name} {text}"),
            "text" if rest.contains("side") || rest.contains("on ") => format!("   - {text}"),
            "caption" => format!("table {text}"),
            "dt" => format!("   {text}"),
            _ => continue,
        };
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}

#[test]
fn a_tour_has_contents_that_lead_to_its_parts() {
    let (sweep, run) = (fixtures::sweep_good(), fixtures::run_open());
    let mut bytes = Vec::new();
    html_tour(&[("The knee", &sweep), ("<One> load", &run)], &mut bytes).unwrap();
    let page = String::from_utf8(bytes).unwrap();
    assert_eq!(tags(&page).iter().filter(|t| **t == "h1").count(), 1);
    for (i, name) in ["The knee", "&lt;One&gt; load"].iter().enumerate() {
        assert!(page.contains(&format!("<a href=\"#part{i}\">{name}</a>")), "{name}");
        assert_eq!(page.matches(&format!(" id=\"part{i}\"")).count(), 1);
    }
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).map(|s| s.split('"').next().unwrap()).collect();
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}
