//! How this machine waits, and what holds a rate on it: `knee throttle`, side by side.

use super::contender::BenchProgram;
use super::lab::Lab;
use super::reader::{json, number};
use super::round::{self, MarkdownTable, command_lines, spread};
use serde_json::Value;

/// Rates, each with the time that an operation takes.
const HOLDS: [(u32, &str); 4] = [(1_000, "0"), (1_000, "0.1ms"), (1_000, "0.9ms"), (10_000, "0")];

const DELAYS: &str = "100us,1ms,10ms";

/// A table per rate and operation, and one of waits.
///
/// # Errors
/// knee fails, or says nothing that can be understood.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut text = "## Holding a rate\n\n\
        Operations that keep the processor busy for a time, at a rate; \"late\" is the begin of an \
        operation after its moment, drift is by how much that grows.\n\n"
        .to_string();
    let mut lines = Vec::new();
    for (rate, op_time) in HOLDS {
        let line = hold_line(lab, rate, op_time);
        text += &format!("### {rate}/s of {op_time}\n\n");
        text += &hold_table(&rounds(lab, &line, "/conclusion/rates")?)?;
        lines.push(Ok(format!("knee {line}")));
    }
    let line = wait_line(lab);
    let delays = DELAYS.replace(',', ", ");
    text += &format!("## Waiting\n\nEach way of waiting, asked for {delays} over and over.\n\n");
    text += &wait_table(&rounds(lab, &line, "/conclusion/table")?)?;
    lines.push(Ok(format!("knee {line}")));
    Ok(text + &command_lines(lines)?)
}

fn hold_line(lab: &Lab, rate: u32, op_time: &str) -> String {
    let ms = lab.seconds(2.0) * 1e3 / if lab.small { 10.0 } else { 1.0 };
    format!("throttle --rate {rate} --op-time {op_time} -d {ms}ms --seed 1 --json - --quiet")
}

fn wait_line(lab: &Lab) -> String {
    let ms = if lab.small { 10 } else { 300 };
    format!("throttle --delays {DELAYS} -d {ms}ms --seed 1 --json - --quiet")
}

/// The rows of the same table, round by round.
type Rounds = Vec<Vec<Value>>;

fn rounds(lab: &Lab, line: &str, table: &str) -> Result<Rounds, String> {
    // That a method does not hold its rate is a result; INVALID says so of the throttle itself.
    let measure = || lab.run(BenchProgram::Knee, line)?.ended.read(|out| rows(out, table));
    let undisturbed = |_| round::undisturbed(lab, measure).map(|(rows, _)| rows);
    (0..lab.rounds).map(undisturbed).collect()
}

fn rows(out: &str, table: &str) -> Result<Vec<Value>, String> {
    let rows = json(out)?.pointer(table).and_then(Value::as_array).cloned();
    rows.ok_or(format!("no {table}"))
}

/// A number of a row in each round.
fn each(rounds: &Rounds, row: usize, key: &str, unit: f64) -> Result<Vec<f64>, String> {
    let of = |rows: &Vec<Value>| {
        let row = rows.get(row).ok_or("a round has fewer rows")?;
        number(row, &format!("/{key}")).map(|n| n / unit)
    };
    rounds.iter().map(of).collect()
}

fn name(row: &Value) -> String {
    row.get("method").and_then(Value::as_str).unwrap_or("?").to_string()
}

fn hold_table(rounds: &Rounds) -> Result<String, String> {
    let mut table = MarkdownTable::new(&[
        "method",
        "achieved/s",
        "drift ppm",
        "late p50 µs",
        "late p99 µs",
        "CV of gaps",
        "% of a core",
        "of it operations",
    ]);
    for (i, row) in rounds.first().into_iter().flatten().enumerate() {
        let cell = |key: &str, unit: f64, digits: usize| {
            each(rounds, i, key, unit).map(|values| spread(&values, digits))
        };
        table.row(&[
            name(row),
            cell("achieved_per_s", 1.0, 1)?,
            cell("drift_ppm", 1.0, 1)?,
            cell("error_p50_ns", 1e3, 1)?,
            cell("error_p99_ns", 1e3, 1)?,
            cell("gap_cv", 1.0, 3)?,
            cell("cpu_percent", 1.0, 1)?,
            cell("op_percent", 1.0, 1)?,
        ]);
    }
    Ok(table.finish())
}

fn wait_table(rounds: &Rounds) -> Result<String, String> {
    let mut table = MarkdownTable::new(&[
        "delay and method",
        "mean µs",
        "standard deviation µs",
        "late p50 µs",
        "late p99 µs",
        "% of a core",
    ]);
    for (i, row) in rounds.first().into_iter().flatten().enumerate() {
        let cell = |key: &str, digits: usize| {
            each(rounds, i, key, 1e3).map(|values| spread(&values, digits))
        };
        let percent = each(rounds, i, "cpu_percent", 1.0)?;
        let delay_us = number(row, "/delay_ns")? / 1e3;
        table.row(&[
            format!("{delay_us} µs, {}", name(row)),
            cell("mean_ns", 1)?,
            cell("std_dev_ns", 2)?,
            cell("overshoot_p50_ns", 2)?,
            cell("overshoot_p99_ns", 2)?,
            spread(&percent, 1),
        ]);
    }
    Ok(table.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cell_is_the_median_over_the_rounds() {
        let row = |achieved: f64| {
            json!({"method": "throttle", "achieved_per_s": achieved, "drift_ppm": 0.0,
                   "error_p50_ns": 1_500, "error_p99_ns": 2_000, "gap_cv": 0.5,
                   "cpu_percent": 3.0, "op_percent": 1.0})
        };
        let rounds = vec![vec![row(999.0)], vec![row(1_000.0)], vec![row(1_001.0)]];
        let table = hold_table(&rounds).unwrap();
        let line = table.lines().nth(2).unwrap();
        assert!(
            line.starts_with(
                "| throttle | 1000.0 (999.0–1001.0) | 0.0 (0.0–0.0) | 1.5 (1.5–1.5) |"
            ),
            "{line}"
        );
        let uneven = vec![vec![row(1.0), row(2.0)], vec![row(1.0)]];
        assert!(hold_table(&uneven).is_err());
    }
}
