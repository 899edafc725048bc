//! The schemas of reports: the one that is written, and the earlier one that is read as well.

use super::Kind;
use crate::report::Command;
use serde_json::{Map, Value};

/// The schema that this version writes.
pub const SCHEMA: &str = "knee.report/2";

/// The schema of the first versions. A trial had the keys of all kinds, null or 0 where they did
/// not apply, and no key for its kind.
pub const FIRST_SCHEMA: &str = "knee.report/1";

/// Whether this version reads reports of a schema.
///
/// # Errors
/// It does not: one line that says which it reads.
pub fn check_schema(schema: &str) -> Result<(), String> {
    match schema {
        SCHEMA | FIRST_SCHEMA => Ok(()),
        other => Err(format!(
            "schema {} is not understood; this version of knee reads {SCHEMA} and {FIRST_SCHEMA}",
            other.escape_debug()
        )),
    }
}

/// A document of [`FIRST_SCHEMA`] as one of [`SCHEMA`]. Keys that a trial's kind does not have are
/// left, as readers skip them. What is damaged stays as it is: reading it tells what is wrong.
pub fn from_first_schema(mut document: Value) -> Value {
    let command = document["command"].as_str().map(Command::parse);
    let command = command.and_then(|command| Some(command.ok()?.kind));
    if let Some(trials) = document.get_mut("trials").and_then(Value::as_array_mut) {
        for trial in trials.iter_mut().filter_map(Value::as_object_mut) {
            convert(trial, command);
        }
    }
    if let Some(schema) = document.get_mut("schema") {
        *schema = SCHEMA.into();
    }
    document
}

fn convert(trial: &mut Map<String, Value>, command: Option<Kind>) {
    let kind = kind_of(trial, command);
    trial.insert("kind".to_owned(), kind.into());
    let offered = trial.get_mut("offered").and_then(Value::as_object_mut);
    if let Some(offered) = offered.filter(|_| kind != "http") {
        offered.remove("connection_wait_ns");
    }
}

/// The kind by name. Of a trial that did not end nothing tells how its operations ended.
fn kind_of(trial: &Map<String, Value>, command: Option<Kind>) -> &'static str {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let attempted = trial.get("attempted").map_or(0, number);
    let outcomes = trial.get("outcomes").and_then(Value::as_object);
    let ended: u64 = outcomes.map_or(0, |all| all.values().map(number).sum());
    match command {
        _ if trial.contains_key("flows") => "latency",
        _ if trial.contains_key("ledger") => "udp",
        _ if attempted > 0 && ended == 0 => "cut_short",
        Some(Kind::Udp | Kind::Latency | Kind::Throttle) => "cut_short",
        _ => "http",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The kind that a trial of this command and these keys becomes.
    fn kind(command: &str, trial: Value) -> Value {
        let document = json!({"schema": FIRST_SCHEMA, "command": command, "trials": [trial]});
        let converted = from_first_schema(document);
        assert_eq!(converted["schema"], SCHEMA);
        converted["trials"][0]["kind"].clone()
    }

    #[test]
    fn the_kind_follows_from_the_command_and_the_keys() {
        let whole = || json!({"attempted": 5, "outcomes": {"ok": 4, "lost": 1}});
        let rest = || json!({"attempted": 5, "outcomes": {}});
        let with = |key: &str, mut trial: Value| {
            trial[key] = json!({});
            trial
        };
        for command in ["run", "sweep", "overload"] {
            assert_eq!(kind(command, whole()), "http");
            assert_eq!(kind(command, rest()), "cut_short");
            assert_eq!(kind(command, json!({"attempted": 0})), "http");
        }
        assert_eq!(kind("udp", with("ledger", whole())), "udp");
        assert_eq!(kind("udp", rest()), "cut_short");
        assert_eq!(kind("latency", with("flows", whole())), "latency");
        assert_eq!(kind("latency", rest()), "cut_short");
        // Nothing received in any way: the ledger tells how each datagram ended.
        assert_eq!(kind("udp", with("ledger", rest())), "udp");
    }

    #[test]
    fn only_http_waits_for_connections() {
        let trial = || {
            json!({"attempted": 1, "outcomes": {"ok": 1}, "ledger": {},
                              "offered": {"connection_wait_ns": {"p50": null}}})
        };
        let document = json!({"command": "udp", "trials": [trial()]});
        assert_eq!(from_first_schema(document)["trials"][0]["offered"], json!({}));
    }

    #[test]
    fn what_is_damaged_is_left_to_the_reader() {
        for damaged in [
            json!(null),
            json!([1]),
            json!({"trials": 7}),
            json!({"command": 1, "trials": [3, null]}),
        ] {
            assert_eq!(from_first_schema(damaged.clone()), damaged);
        }
    }

    #[test]
    fn other_schemas_are_refused() {
        assert_eq!(check_schema(SCHEMA), Ok(()));
        assert_eq!(check_schema(FIRST_SCHEMA), Ok(()));
        for other in ["knee.report/3", "knee.report/", "", "knee.comparison/1"] {
            let refused = check_schema(other).unwrap_err();
            assert!(refused.starts_with(&format!("schema {other} is not understood")));
        }
    }
}
