//! What the text looks like: each report as a person sees it.

use crate::{Json, Renderer, Text, TextExtent, fixtures, parse_report};
use knee_core::experiment::latency::analysis::PATH_FIGURES;
use knee_core::experiment::latency::report::LatencyConclusion;
use knee_core::experiment::latency::{conclude_classic, parse_classic};
use knee_core::experiment::sweep::conclude_table;
use knee_core::experiment::sweep::table::parse_csv;
use knee_core::report::{Conclusion, Report};

fn shown(report: &Report, text: Text) -> String {
    let mut bytes = Vec::new();
    text.render(report, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_report_as_it_is_by_default() {
    for (name, report) in fixtures::all() {
        insta::assert_snapshot!(name, shown(&report, Text::default()));
    }
}

/// Lines by lines, and none too wide: at 80 columns at most 23 of a run, 40 of any experiment.
#[test]
fn first_screen_fits_and_ends_with_the_answer() {
    for (name, report) in fixtures::all() {
        let extent = TextExtent::FirstScreen { run: Some(67) };
        let screen = Text { width: 80, extent, ..Text::default() };
        let text = shown(&report, screen);
        let most = match &report.conclusion {
            Conclusion::Run(_) => 23,
            _ => 40,
        };
        assert!(text.lines().count() <= most, "{name}:\n{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{name}:\n{text}");
        let spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let answer = spaces(&crate::headline(&report, true));
        assert!(spaces(&text).ends_with(&answer), "{name}:\n{text}");
        if !report.findings.is_empty() {
            assert!(text.contains("--full"), "{name}:\n{text}");
        }
        insta::assert_snapshot!(format!("screen_{name}"), text);
    }
}

#[test]
fn narrow_and_in_ascii() {
    for (name, report) in [
        ("sweep", fixtures::sweep_good()),
        ("run", fixtures::run_errors()),
        ("throttle_waits", fixtures::throttle_waits()),
        ("throttle_rates", fixtures::throttle_rates()),
        ("overload", fixtures::overload()),
        ("udp_lossy", fixtures::udp_lossy()),
        ("udp_explain", fixtures::udp_explain()),
        ("latency_bloated", fixtures::latency_bloated()),
    ] {
        let narrow = Text { width: 60, ..Text::default() };
        insta::assert_snapshot!(format!("narrow_{name}"), shown(&report, narrow));
        let ascii = Text { unicode: false, ..Text::default() };
        insta::assert_snapshot!(format!("ascii_{name}"), shown(&report, ascii));
    }
}

#[test]
fn nothing_is_wider_than_the_page_and_no_line_ends_in_a_space() {
    for (name, report) in fixtures::all() {
        for width in [0, 60, 61, 72, 80, 90, 100, 132, 200] {
            for unicode in [true, false] {
                let text = shown(&report, Text { width, unicode, ..Text::default() });
                for line in text.lines() {
                    let columns = line.chars().count();
                    // What other programs read is never wrapped.
                    let is_read = line.starts_with("Scenario ");
                    let fits = columns <= width.max(60) || is_read;
                    assert!(fits, "{name} at {width}: {line:?}");
                    assert_eq!(line, line.trim_end(), "{name} at {width}");
                    assert!(unicode || line.is_ascii(), "{name}: {line:?}");
                }
                assert!(text.ends_with('\n') && !text.contains("\n\n\n"), "{name} at {width}");
            }
        }
    }
}

/// Colour only adds: without its sequences the text is the same.
#[test]
fn colour_changes_no_character() {
    for (name, report) in fixtures::all() {
        let plain = shown(&report, Text::default());
        let colored = shown(&report, Text { color: true, ..Text::default() });
        assert!(!plain.contains('\x1b'), "{name}");
        assert!(colored.contains("\x1b["), "{name}");
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            stripped.push_str(before);
            rest = after.split_once('m').map_or("", |(_, text)| text);
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain, "{name}");
    }
}

/// All of an overload survives the way through JSON, under the keys that others rely on.
#[test]
fn an_overload_is_read_again_as_it_was_written() {
    for report in [
        fixtures::overload(),
        fixtures::overload_falling(),
        fixtures::overload_scheduled(),
        fixtures::overload_nothing(),
        fixtures::overload_sessions(),
    ] {
        let mut bytes = Vec::new();
        Json.render(&report, &mut bytes).unwrap();
        let document = String::from_utf8(bytes).unwrap();
        assert_eq!(parse_report(&document), Ok(report));
    }
    let report = serde_json::to_value(fixtures::overload()).unwrap();
    let conclusion = &report["conclusion"];
    let has = |value: &serde_json::Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key} in {value}");
        }
    };
    let of_all = [
        "capacity_per_s",
        "simple",
        "sclients",
        "slope_per_descriptor",
        "r_squared",
        "syn_source",
        "max_syn_per_s",
    ];
    has(conclusion, &of_all);
    assert_eq!(conclusion["syn_source"], "capture");
    let rates = ["syn_per_s", "first_syn_per_s", "served_per_s"];
    has(&conclusion["simple"][0], &rates);
    has(&conclusion["simple"][0], &["clients"]);
    has(&conclusion["sclients"][0], &rates);
    has(&conclusion["sclients"][0], &["descriptors", "outcomes"]);
    assert_eq!(conclusion["sclients"][0]["outcomes"]["connect_timeout"], 340);
}

/// What the policy concludes from a table is shown whole, and survives the way through JSON.
#[test]
fn a_conclusion_of_the_policy_is_shown() {
    let tables = [
        "vusers,throughput_per_s\n5000,88318\n10000,88407\n20000,88309\n35000,88440\n",
        "vusers,throughput_per_s\n1,1833\n10,18226\n50,74684\n100,86069\n200,88455\n300,88375\n",
        "vusers,throughput_per_s,mean_ms,p90_ms\n1,100,10,12\n2,200,10,12\n4,399,10,12\n",
    ];
    for table in tables {
        let points = parse_csv(table.as_bytes()).unwrap();
        let (findings, conclusion) = conclude_table(&points);
        let answer = conclusion.answer.clone();
        let mut report = fixtures::sweep_saturated();
        report.findings = findings;
        report.conclusion = Conclusion::Sweep(conclusion);
        let text = shown(&report, Text { width: 2_000, ..Text::default() });
        assert_eq!(text.lines().next(), Some(answer.as_str()));
        for finding in &report.findings {
            assert!(text.contains(&finding.code), "{text}");
        }
        let mut bytes = Vec::new();
        Json.render(&report, &mut bytes).unwrap();
        let document = String::from_utf8(bytes).unwrap();
        assert_eq!(parse_report(&document), Ok(report), "{table}");
    }
}

/// The text tells the figures that it was made of: `knee analyze latency` reads it again.
#[test]
fn a_text_of_latency_is_read_again() {
    for (name, report) in fixtures::all() {
        let Conclusion::Latency(written) = &report.conclusion else {
            continue;
        };
        let classic = parse_classic(&shown(&report, Text::default()))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let (findings, read) = conclude_classic(&classic);
        assert_eq!(findings, [], "{name}");
        assert_eq!(read.min_rtt_ns, written.min_rtt_ns, "{name}");
        let figures = |c: &LatencyConclusion| PATH_FIGURES.map(|figure| (figure.of_path)(&c.path));
        assert_eq!(figures(&read), figures(written), "{name}");
        let control = &written.scenarios[0].congestion_control;
        let own = written.scenarios.iter();
        let own: Vec<_> = own.filter(|r| r.congestion_control == *control).collect();
        assert_eq!(read.scenarios.len(), own.len(), "{name}");
        for (read, own) in read.scenarios.iter().zip(own) {
            assert_eq!((read.up, read.down), (own.up, own.down), "{name}");
            let whole = |kib: Option<f64>| kib.map(f64::floor);
            assert_eq!(read.up_kib_per_s, whole(own.up_kib_per_s), "{name}");
            assert_eq!(read.down_kib_per_s, whole(own.down_kib_per_s), "{name}");
        }
    }
}
