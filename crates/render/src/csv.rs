//! The time series as comma-separated values (RFC 4180), one line for each interval of each trial.
//!
//! A report without trials gives the rows of its answer. Each is an object of the JSON document. A
//! column is a key of it, with a dot between the keys of nested ones.

use crate::Renderer;
use knee_core::report::Report;
use knee_load::shown::shown;
use serde_json::Value;
use std::io;

/// The report's intervals, or its rows, as comma-separated values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl Renderer for Csv {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let rows = rows(report)?;
        let mut columns: Vec<&str> = Vec::new();
        for (column, _) in rows.iter().flatten() {
            if !columns.contains(&column.as_str()) {
                columns.push(column);
            }
        }
        line(out, columns.iter().map(|column| column.to_string()))?;
        for row in &rows {
            let cell = |column: &&str| {
                let named = row.iter().find(|(name, _)| name == column);
                named.map_or(String::new(), |(_, cell)| cell.clone())
            };
            line(out, columns.iter().map(cell))?;
        }
        Ok(())
    }
}

/// A row's cells by column.
type Row = Vec<(String, String)>;

fn rows(report: &Report) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for trial in &report.trials {
        let mut head = vec![("trial".to_string(), trial.label.clone())];
        flatten("", &serde_json::to_value(trial.level)?, &mut head);
        for interval in &trial.intervals {
            let mut cells = cells_of(&serde_json::to_value(interval)?);
            // Time first; the sort keeps the order of the others.
            cells.sort_by_key(|(name, _)| match name.as_str() {
                "start_ns" => 0,
                "end_ns" => 1,
                _ => 2,
            });
            rows.push(head.iter().cloned().chain(cells).collect());
        }
    }
    if !rows.is_empty() {
        return Ok(rows);
    }
    let rows = report.conclusion.answer().table()?;
    Ok(rows.iter().map(cells_of).collect())
}

fn cells_of(row: &Value) -> Row {
    let mut cells = Vec::new();
    flatten("", row, &mut cells);
    cells
}

/// The cells of a value; a list, which would need columns without end, has none.
fn flatten(name: &str, value: &Value, cells: &mut Row) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = match name {
                    "" => key.clone(),
                    name => format!("{name}.{key}"),
                };
                flatten(&name, value, cells);
            }
        }
        Value::Array(_) => {}
        Value::Null => cells.push((name.to_string(), String::new())),
        Value::String(text) => cells.push((name.to_string(), text.clone())),
        other => cells.push((name.to_string(), other.to_string())),
    }
}

fn line(out: &mut dyn io::Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = cells.map(quoted).collect();
    writeln!(out, "{}", cells.join(","))
}

/// Quoted if necessary (RFC 4180 §2), with invisible characters spelt.
fn quoted(cell: String) -> String {
    let cell = shown(&cell);
    if cell.contains([',', '"']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn written(report: &Report) -> String {
        let mut bytes = Vec::new();
        Csv.render(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn intervals_are_lines_and_their_keys_columns() {
        let report = fixtures::all().into_iter().find(|(name, _)| *name == "run_open");
        let (_, report) = report.unwrap();
        let text = written(&report);
        let mut lines = text.lines();
        let columns = "trial,rate_per_s,start_ns,end_ns,attempted,completed,errors,max_ns,p50_ns,";
        assert!(lines.next().unwrap().starts_with(columns), "{text}");
        assert_eq!(lines.count(), report.trials[0].intervals.len());
    }

    #[test]
    fn every_report_has_lines_of_as_many_cells_as_columns() {
        for (name, report) in fixtures::all() {
            let text = written(&report);
            let widths: Vec<usize> = text.lines().map(cells).collect();
            assert!(widths.iter().all(|n| *n == widths[0]), "{name}: {text}");
        }
    }

    /// The cells of a line.
    fn cells(line: &str) -> usize {
        let mut is_quoted = false;
        let mut commas = 0;
        for c in line.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => commas += 1,
                _ => {}
            }
        }
        commas + 1
    }

    #[test]
    fn a_cell_is_quoted_where_it_has_to_be() {
        for (cell, shown) in [
            ("plain", "plain"),
            ("1 up, 1 down", "\"1 up, 1 down\""),
            ("a \"b\"", "\"a \"\"b\"\"\""),
        ] {
            assert_eq!(quoted(cell.to_string()), shown);
        }
    }
}
