//! Scenario files before any load: what is in them, what is wrong with them, their schema.

use crate::support::{TempPath, run};

#[test]
fn the_example_is_checked_before_any_load() {
    let example = run(&["scenario", "new"]);
    assert_eq!(example.status, Some(0), "{}", example.stderr);
    let file = TempPath::with("checked.yaml", &example.stdout);
    let checked = run(&["scenario", "check", file.str()]);
    assert_eq!(checked.status, Some(0), "{}", checked.stderr);
    assert_eq!(
        checked.stdout,
        "buyer: 30 % of the sessions, 4 requests\nvisitor: 70 % of the sessions, 2 requests\n"
    );
    let ended = run(&["run", file.str(), "--fail-if", "chart p99>1s"]);
    let told = "error: --fail-if: unknown step 'chart': did you mean 'cart'?\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(2), told));
}

#[test]
fn a_mistake_is_one_line_with_its_place() {
    let text = "target: http://h\nsessions:\n  s:\n    steps:\n      - get: /\n        expct: {}\n";
    let file = TempPath::with("mistake.yaml", text);
    for arguments in [&["scenario", "check"][..], &["run"], &["sweep"]] {
        let ended = run(&[arguments, &[file.str()]].concat());
        assert_eq!(ended.status, Some(2), "{arguments:?}: {}", ended.stderr);
        let place = format!("error: {}:6:9: ", file.str());
        assert_eq!(ended.stderr, format!("{place}unknown key 'expct': did you mean 'expect'?\n"));
    }
}

#[test]
fn the_schema_is_json() {
    let schema = run(&["scenario", "schema"]).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["$defs"]["step"]["properties"]["extract"].is_object());
}
