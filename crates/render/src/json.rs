//! The JSON document: the public interface of a report, written and read again.

use crate::Renderer;
use knee_core::report::{FIRST_SCHEMA, Report, SCHEMA, check_schema, from_first_schema};
use serde::{Deserialize, Serialize};
use std::io;

/// The report as one JSON document, indented, with a newline at its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize> Renderer<T> for Json {
    fn render(&self, document: &T, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, document)?;
        out.write_all(b"\n")
    }
}

/// Reads a document that [`Json`] wrote, also in the first versions of knee. Keys that this version
/// does not know are skipped.
///
/// # Errors
///
/// One line: the document is not JSON, it is of another schema, or a key is missing or wrong.
pub fn parse_report(text: &str) -> Result<Report, String> {
    let header: SchemaHeader = serde_json::from_str(text)
        .map_err(|e| format!("not a knee report ({e}); expected JSON with schema {SCHEMA}"))?;
    let Some(schema) = header.schema else {
        return Err(format!("not a knee report: no schema; expected {SCHEMA}"));
    };
    check_schema(&schema)?;
    let read = match schema.as_str() {
        FIRST_SCHEMA => serde_json::from_str(text)
            .map(from_first_schema)
            // As text, since reading it from a value would be all of that code once more.
            .and_then(|document| serde_json::from_str(&document.to_string())),
        _ => serde_json::from_str(text),
    };
    read.map_err(|e| format!("a damaged {schema} document: {e}"))
}

/// The part read first, which decides whether the rest can be understood.
#[derive(Deserialize)]
struct SchemaHeader {
    schema: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use serde_json::Value;

    fn written(report: &Report) -> String {
        let mut bytes = Vec::new();
        Json.render(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_kind_of_report_reads_back_equal() {
        for (name, report) in fixtures::all() {
            assert_eq!(parse_report(&written(&report)).as_ref(), Ok(&report), "{name}");
        }
    }

    #[test]
    fn unknown_keys_are_skipped_at_every_depth() {
        for (name, report) in fixtures::all() {
            let mut document: Value = serde_json::from_str(&written(&report)).unwrap();
            add_key_everywhere(&mut document, "");
            let text = document.to_string();
            assert_eq!(parse_report(&text).as_ref(), Ok(&report), "{name}");
        }
    }

    /// Adds a key to each object, except to those whose keys are data.
    fn add_key_everywhere(value: &mut Value, key: &str) {
        match value {
            Value::Object(map) => {
                for (k, v) in map.iter_mut() {
                    add_key_everywhere(v, k);
                }
                let data = [
                    "spec",
                    "kernel",
                    "facts",
                    "evidence",
                    "parameters",
                    "outcomes",
                    "status_codes",
                    "level",
                    "lost",
                    "send_errors",
                    "discarded",
                    "knee_alternatives",
                    "stages_ns",
                    "mean_ns",
                    "stage_percent",
                    "owner_percent",
                    "change_ns",
                    "ranges",
                ];
                if !data.contains(&key) {
                    map.insert("added_later".into(), Value::from(1));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|v| add_key_everywhere(v, key)),
            _ => {}
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_in_one_line() {
        let table = [
            ("", "not a knee report (EOF"),
            ("[1]", "not a knee report ("),
            ("{}", "not a knee report: no schema; expected knee.report/2"),
            (
                r#"{"schema": "knee.report/3", "trials": 7}"#,
                "schema knee.report/3 is not understood; this version of knee reads knee.report/2 \
                 and knee.report/1",
            ),
            (r#"{"schema": "knee.report/2"}"#, "a damaged knee.report/2 document: missing field"),
            (r#"{"schema": "knee.report/1"}"#, "a damaged knee.report/1 document: missing field"),
            (
                r#"{"schema": "knee.report/1", "command": "run", "trials": 7}"#,
                "a damaged knee.report/1 document: invalid type: integer `7`",
            ),
        ];
        for (text, expected) in table {
            let error = parse_report(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
            assert!(!error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn a_conclusion_is_read_by_command() {
        let text = written(&fixtures::run_open());
        let other = text.replace(r#""command": "run""#, r#""command": "juggle""#);
        let error = parse_report(&other).unwrap_err();
        assert!(error.contains("unknown command `juggle`"), "{error}");
    }

    /// A key renamed or lost fails here; one more is accepted by `cargo insta review`.
    #[test]
    fn the_keys_are_stable() {
        for (name, report) in [
            ("keys_sweep", fixtures::sweep_good()),
            ("keys_run", fixtures::run_open()),
            ("keys_throttle_waits", fixtures::throttle_op()),
            ("keys_throttle_rates", fixtures::throttle_rates()),
            ("keys_udp", fixtures::udp_explain()),
            ("keys_latency", fixtures::latency_killed()),
        ] {
            let document: Value = serde_json::from_str(&written(&report)).unwrap();
            let mut keys = std::collections::BTreeSet::new();
            collect_keys(&document, "", &mut keys);
            let list: Vec<String> = keys.into_iter().collect();
            insta::assert_snapshot!(name, list.join("\n"));
        }
    }

    fn collect_keys(value: &Value, path: &str, keys: &mut std::collections::BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (k, v) in map {
                    let path = format!("{path}.{k}");
                    collect_keys(v, &path, keys);
                    keys.insert(path);
                }
            }
            Value::Array(items) => {
                for item in items {
                    collect_keys(item, &format!("{path}[]"), keys);
                }
            }
            _ => {}
        }
    }
}
