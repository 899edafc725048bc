//! Stored reports compared: the text, where it goes, how it ends. The reports are of 4 s each with
//! 8 users. Two are of a server with 4 workers of 1 ms, one is of 4 workers of 1.15 ms.

use crate::support::{TempPath, run, run_with_input};

const BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/fixtures/before.json");
const AGAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/fixtures/again.json");
const SLOWER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/fixtures/slower.json");

#[test]
fn a_slower_server_is_worse_and_fails_where_asked_to() {
    let shown = run(&["compare", BEFORE, SLOWER]);
    assert_eq!((shown.status, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    assert!(shown.stdout.starts_with("WORSE  B is 1"), "{}", shown.stdout);
    assert!(shown.stdout.contains(" % slower ("), "{}", shown.stdout);
    let failed = run(&["compare", BEFORE, SLOWER, "--fail-on-regression"]);
    assert_eq!(failed.status, Some(1), "{failed:?}");
    assert_eq!(failed.stdout, shown.stdout);
    assert!(failed.stderr.starts_with("--fail-on-regression: B is worse in "), "{failed:?}");
    let quiet = run(&["compare", BEFORE, SLOWER, "--fail-on-regression", "--quiet"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(1), ""));
    let improved = run(&["compare", SLOWER, BEFORE, "--fail-on-regression"]);
    assert_eq!(improved.status, Some(0), "{improved:?}");
    assert!(improved.stdout.starts_with("BETTER  "), "{}", improved.stdout);
}

#[test]
fn the_same_server_again_is_alike() {
    let shown = run(&["compare", BEFORE, AGAIN, "--fail-on-regression"]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("ALIKE  No difference beyond chance;"), "{}", shown.stdout);
}

#[test]
fn several_runs_of_each_side_and_all_forms() {
    let json = TempPath::new("compared.json");
    let html = TempPath::new("compared.html");
    let md = TempPath::new("compared.md");
    let shown = run(&[
        "compare",
        BEFORE,
        AGAIN,
        "--json",
        json.str(),
        "--html",
        html.str(),
        "--md",
        md.str(),
        "--",
        SLOWER,
        SLOWER,
    ]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    let text = std::fs::read_to_string(&json.0).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "knee.comparison/1");
    assert_eq!(document["verdict"], "worse");
    assert_eq!(document["a"]["runs"].as_array().map(Vec::len), Some(2));
    let rows = document["rows"].as_array().unwrap();
    let throughput = rows.iter().find(|r| r["metric"] == "throughput_per_s").unwrap();
    let ratio = throughput["ratio"].as_f64().unwrap();
    assert!((0.85..0.89).contains(&ratio), "{ratio}");
    assert!(shown.stdout.contains(document["answer"].as_str().unwrap().split(':').next().unwrap()));
    let page = std::fs::read_to_string(&html.0).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("WORSE"));
    let markdown = std::fs::read_to_string(&md.0).unwrap();
    assert!(markdown.starts_with("## WORSE: "), "{markdown}");
    assert!(markdown.contains("| B is |"), "{markdown}");
    let on_stdout = run(&["compare", BEFORE, AGAIN, "--json", "-", "--", SLOWER, SLOWER]);
    assert_eq!(on_stdout.stdout, text);
}

#[test]
fn a_report_may_come_from_standard_input() {
    let slower = std::fs::read_to_string(SLOWER).unwrap();
    let shown = run_with_input(&["compare", BEFORE, "-"], &slower);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("WORSE  "), "{}", shown.stdout);
}

#[test]
fn what_is_invalid_or_other_is_said_and_not_judged() {
    let slower = std::fs::read_to_string(SLOWER).unwrap();
    let invalid = slower
        .replace(r#""verdict": "valid""#, r#""verdict": "invalid""#)
        .replace(r#""duration": "4s""#, r#""duration": "2s""#);
    let invalid = TempPath::with("invalid.json", &invalid);
    let shown = run(&["compare", BEFORE, invalid.str()]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("UNKNOWN  "), "{}", shown.stdout);
    let words: Vec<&str> = shown.stdout.split_whitespace().collect();
    let said = words.join(" ");
    assert!(said.contains("duration (4s and 2s)"), "{said}");
    assert!(shown.stdout.contains("B is INVALID"), "{}", shown.stdout);
    let failed = run(&["compare", BEFORE, invalid.str(), "--fail-on-regression"]);
    assert_eq!(failed.status, Some(3), "{failed:?}");
}

#[test]
fn what_cannot_be_compared_is_one_line_and_exit_2() {
    let table = TempPath::with("table.csv", "vusers,throughput_per_s\n1,10\n2,20\n3,25\n4,25\n");
    let stored = TempPath::new("table.json");
    let analyzed = run(&["analyze", "sweep", table.str(), "--json", stored.str()]);
    assert_eq!(analyzed.status, Some(0), "{analyzed:?}");
    for (arguments, expected) in [
        (&["compare", BEFORE][..], "error: REPORT: B is missing"),
        (&["compare", BEFORE, AGAIN, SLOWER], "error: REPORT: which are A's?"),
        (&["compare", "--", SLOWER], "error: REPORT: A is missing"),
        (&["compare", "-", "-"], "error: -: standard input can be read only once"),
        (&["compare", "--baseline", "main"], "error: --baseline: what is to be compared"),
        (&["compare", "--baseline", "main", "--", SLOWER], "error: --: with --baseline"),
        (&["compare", "--baseline", "main", BEFORE, "--", SLOWER], "error: --baseline: it is A"),
        (&["compare", BEFORE, "/nonexistent.json"], "error: /nonexistent.json: cannot be read"),
        (&["compare", BEFORE, table.str()], "error: "),
        (
            &["compare", BEFORE, stored.str()],
            "error: nothing in common to compare: A is of knee run",
        ),
        (&["compare", BEFORE, "no_such_baseline_there"], "error: no_such_baseline_there: "),
        (&["compare", BEFORE, SLOWER, "--json", "-", "--html", "-"], "error: --html: standard"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {ended:?}");
        assert!(ended.stderr.starts_with(expected), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn options_may_stand_behind_the_dashes() {
    let ended = run(&["compare", BEFORE, "--", SLOWER, "--fail-on-regression", "--quiet"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.starts_with("WORSE"), "{}", ended.stdout);
}

#[test]
fn what_no_difference_excludes_is_told() {
    let ended = run(&["compare", BEFORE, AGAIN]);
    let answer = "With 95 % confidence a regression is excluded over ";
    let first: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(first.join(" ").contains(answer), "{}", ended.stdout);
    assert!(ended.stdout.contains("could see"), "{}", ended.stdout);
    let json = run(&["compare", BEFORE, AGAIN, "--json", "-"]).json();
    for row in json["rows"].as_array().unwrap() {
        if row["p_value"].is_null() || row["ratio_ci95"].is_null() {
            continue;
        }
        let [low, high] = [0, 1].map(|i| row["ratio_ci95"][i].as_f64().unwrap());
        // It takes more to be seen among many rows than the interval of one row is wide.
        let half = 100.0 * ((high / low).sqrt() - 1.0);
        assert!(row["smallest_seen_percent"].as_f64().unwrap() >= 0.99 * half, "{row:#}");
        if let Some(excluded) = row["regression_excluded_percent"].as_f64() {
            let worst = [high - 1.0, 1.0 - low].map(|v| 100.0 * v.max(0.0));
            assert!(worst.iter().any(|w| (w - excluded).abs() < 1e-6), "{row:#}");
        }
    }
}
