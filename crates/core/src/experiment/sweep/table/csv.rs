//! Reader of tables measured elsewhere, as people write them and as web pages show them.

use super::LevelPoint;
use knee_load::quantity::ParseError;
use knee_load::stats::rounds::{BlockCell, fit};
use knee_load::stats::sample::{self, t_beyond, variance};

/// Least rows of one level for an interval.
const REPEATS_MIN: usize = 3;

/// Most rows that are fitted; in larger tables levels have the mean.
const FITTED_MAX: usize = 10_000;

const COLUMNS: &str = "vusers,throughput_per_s[,mean_ms,p90_ms]";

/// Reads `vusers,throughput_per_s` and, optionally, `mean_ms,p90_ms`, in this order where there is
/// no header. Values are separated by commas, semicolons, tabs or blanks. Empty lines and what
/// follows a `#` are skipped. Thousands may be apart (`88,318`), in quotes where commas separate
/// values. A unit may follow (`88,318/s`, `3.2 ms`).
///
/// Rows come back in ascending order of users. Rows of the same number of users become one, with
/// the mean of each column and, from three rows on, a confidence interval.
pub fn parse_csv(bytes: &[u8]) -> Result<Vec<LevelPoint>, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        ParseError(format!("line {line} is not UTF-8 text; give {COLUMNS}"))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let &(number, first) =
        lines.first().ok_or_else(|| ParseError(format!("line 1: no table; give {COLUMNS}")))?;
    let separator = Separator::of(&lines);
    let names = separator.split(number, first)?;
    let is_header = names.iter().all(|name| name.number().is_none());
    let columns = if is_header {
        parse_header(number, &names)?
    } else {
        TableColumn::ALL[..names.len().clamp(2, TableColumn::ALL.len())].to_vec()
    };
    let of_levels = &lines[usize::from(is_header)..];
    let row = |(number, line): &(usize, &str)| {
        parse_row(*number, &separator.split(*number, line)?, &columns)
    };
    let rows = of_levels.iter().map(row).collect::<Result<Vec<LevelPoint>, ParseError>>()?;
    if rows.is_empty() {
        let line = number + 1;
        return Err(ParseError(format!(
            "line {line}: no level follows the header; give one line per number of users"
        )));
    }
    Ok(merged(&rows))
}

/// Separator of the values of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Comma,
    Semicolon,
    Tab,
    Blank,
}

impl Separator {
    /// The separator of these lines: the rarest of the possible characters. A comma may also set
    /// thousands apart, and blanks may also surround values.
    fn of(lines: &[(usize, &str)]) -> Separator {
        let all_have = |c: char| lines.iter().all(|(_, line)| line.contains(c));
        let is_blank = |line: &str| {
            let mut words = line.split_whitespace();
            !line.contains('"')
                && line.split_whitespace().count() >= 2
                && words.all(|word| !word.starts_with(',') && !word.ends_with(','))
        };
        if all_have(';') {
            Separator::Semicolon
        } else if all_have('\t') {
            Separator::Tab
        } else if lines.iter().all(|(_, line)| is_blank(line)) {
            Separator::Blank
        } else {
            Separator::Comma
        }
    }

    /// The values of a line. A unit apart from its number (`3.2 ms`) belongs to it.
    fn split(self, line: usize, text: &str) -> Result<Vec<TableField>, ParseError> {
        let apart = |c| text.split(c).map(|part| unquoted(part.trim(), true)).collect();
        Ok(match self {
            Separator::Comma => fields(line, text)?,
            Separator::Semicolon => apart(';'),
            Separator::Tab => apart('\t'),
            Separator::Blank => {
                let mut values: Vec<TableField> = Vec::new();
                for word in text.split_whitespace() {
                    let is_unit = UNITS.iter().any(|(unit, _)| *unit == word);
                    match values.last_mut() {
                        Some(last) if is_unit && last.number().is_some() => {
                            last.text = format!("{} {word}", last.text);
                        }
                        _ => values.push(unquoted(word, true)),
                    }
                }
                values
            }
        })
    }
}

/// Units that may follow a number, and the factors that they stand for.
const UNITS: &[(&str, f64)] = &[
    ("/s", 1.0),
    ("req/s", 1.0),
    ("reqs/s", 1.0),
    ("requests/s", 1.0),
    ("responses/s", 1.0),
    ("ops/s", 1.0),
    ("rps", 1.0),
    ("tps", 1.0),
    ("k", 1e3),
    ("k/s", 1e3),
    ("users", 1.0),
    ("vusers", 1.0),
    ("connections", 1.0),
    ("ms", 1.0),
    ("s", 1e3),
    ("µs", 1e-3),
    ("us", 1e-3),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableColumn {
    Vusers,
    Throughput,
    Mean,
    P90,
}

impl TableColumn {
    const ALL: [TableColumn; 4] =
        [TableColumn::Vusers, TableColumn::Throughput, TableColumn::Mean, TableColumn::P90];

    /// Names in a header; the first is the own one.
    fn names(self) -> &'static [&'static str] {
        match self {
            TableColumn::Vusers => &["vusers", "users", "connections", "concurrency", "clients"],
            TableColumn::Throughput => {
                &["throughput_per_s", "throughput", "throughput/s", "req/s", "requests/s", "rps"]
            }
            TableColumn::Mean => &["mean_ms", "mean"],
            TableColumn::P90 => &["p90_ms", "p90"],
        }
    }

    fn name(self) -> &'static str {
        self.names()[0]
    }

    fn is_called(self, name: &str) -> bool {
        self.names().iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    /// Whether a value of the column may have this unit.
    fn takes(self, unit: &str) -> bool {
        let of_time = ["ms", "s", "µs", "us"].contains(&unit);
        let of_users = ["users", "vusers", "connections"].contains(&unit);
        match self {
            TableColumn::Vusers => of_users || unit.is_empty(),
            TableColumn::Throughput => !of_time && !of_users,
            TableColumn::Mean | TableColumn::P90 => of_time || unit.is_empty(),
        }
    }

    fn right(self) -> &'static str {
        match self {
            TableColumn::Vusers => "give a whole number of users from 1 to 4294967295, such as 100",
            TableColumn::Throughput => {
                "give responses per second, above 0, such as 1833 or \"88,318\" in quotes"
            }
            TableColumn::Mean | TableColumn::P90 => "give milliseconds, above 0, such as 3.2",
        }
    }

    fn accepts(self, value: f64) -> bool {
        let top = match self {
            TableColumn::Vusers => f64::from(u32::MAX),
            _ => 1e15,
        };
        let whole = self != TableColumn::Vusers || value == value.round();
        value > 0.0 && value <= top && whole
    }
}

fn parse_header(line: usize, names: &[TableField]) -> Result<Vec<TableColumn>, ParseError> {
    let mut columns = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let place = format!("line {line}, column {}", i + 1);
        let known = |c: &TableColumn| c.is_called(&name.text);
        let column = TableColumn::ALL.into_iter().find(known).ok_or_else(|| {
            ParseError(format!(
                "{place}: `{}` is not a column; the header is {COLUMNS}",
                excerpt(&name.text)
            ))
        })?;
        if columns.contains(&column) {
            let name = column.name();
            return Err(ParseError(format!(
                "{place}: `{name}` comes twice; give each column once"
            )));
        }
        columns.push(column);
    }
    for needed in [TableColumn::Vusers, TableColumn::Throughput] {
        if !columns.contains(&needed) {
            return Err(ParseError(format!(
                "line {line}, column {}: `{}` is missing; the header is {COLUMNS}",
                columns.len() + 1,
                needed.name()
            )));
        }
    }
    Ok(columns)
}

fn parse_row(
    line: usize,
    fields: &[TableField],
    columns: &[TableColumn],
) -> Result<LevelPoint, ParseError> {
    if fields.len() != columns.len() {
        let (has, wants) = (fields.len(), columns.len());
        let column = has.min(wants) + 1;
        return Err(ParseError(format!(
            "line {line}, column {column}: {has} values where there are {wants} columns; \
             put numbers with thousands separators in quotes"
        )));
    }
    let mut point = LevelPoint { valid: true, trials: 1, ..LevelPoint::default() };
    for (i, (field, &column)) in fields.iter().zip(columns).enumerate() {
        let optional = matches!(column, TableColumn::Mean | TableColumn::P90);
        if optional && field.text.is_empty() {
            continue;
        }
        let value = field
            .number()
            .filter(|(v, unit)| column.takes(unit) && column.accepts(*v))
            .map(|(v, _)| v)
            .ok_or_else(|| {
                ParseError(format!(
                    "line {line}, column {} ({}): `{}` will not do; {}",
                    i + 1,
                    column.name(),
                    excerpt(&field.text),
                    column.right()
                ))
            })?;
        match column {
            TableColumn::Vusers => point.level = value,
            TableColumn::Throughput => point.throughput_per_s = value,
            TableColumn::Mean => point.mean_ns = Some(value * 1e6),
            TableColumn::P90 => point.p90_ns = Some(value * 1e6),
        }
    }
    Ok(point)
}

struct TableField {
    text: String,
    /// Whether commas in it only separate thousands.
    is_apart: bool,
}

impl TableField {
    /// Its number, multiplied by the factor of the unit, and the unit, which may be empty.
    fn number(&self) -> Option<(f64, &str)> {
        if let Some(value) = number(&self.text, self.is_apart) {
            return Some((value, ""));
        }
        let is_of_number = |c: char| c.is_ascii_digit() || ".,".contains(c);
        let end = self.text.find(|c: char| !is_of_number(c))?;
        let (digits, unit) = self.text.split_at(end);
        let unit = unit.trim();
        let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
        Some((number(digits, self.is_apart)? * factor, unit))
    }
}

/// Splits at commas outside of quotes.
fn fields(line: usize, text: &str) -> Result<Vec<TableField>, ParseError> {
    let mut parts = vec![String::new()];
    let mut in_quotes = false;
    for c in text.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is always a part").push(c);
    }
    if in_quotes {
        let column = parts.len();
        return Err(ParseError(format!(
            "line {line}, column {column}: a quote is not closed; write \"88,318\""
        )));
    }
    Ok(parts.iter().map(|part| unquoted(part.trim(), false)).collect())
}

fn unquoted(part: &str, is_apart: bool) -> TableField {
    let inner = part.strip_prefix('"').and_then(|p| p.strip_suffix('"'));
    TableField {
        text: inner.unwrap_or(part).trim().to_owned(),
        is_apart: is_apart || inner.is_some(),
    }
}

/// A decimal number. With `is_apart` commas may separate its thousands.
fn number(text: &str, is_apart: bool) -> Option<f64> {
    let plain = if is_apart && text.contains(',') {
        let whole = text.split('.').next().unwrap_or(text);
        let mut groups = whole.split(',');
        let first = groups.next()?;
        let grouped = (1..=3).contains(&first.len()) && groups.all(|g| g.len() == 3);
        if !grouped {
            return None;
        }
        text.replace(',', "")
    } else {
        text.to_owned()
    };
    // `f64` also parses `inf` and `nan`, which are no measurements.
    let digits = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    plain.parse::<f64>().ok().filter(|v| digits && v.is_finite())
}

fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(24).collect();
    short.escape_default().to_string()
}

/// One row for each level, ascending, of rows in the order of the table.
fn merged(rows: &[LevelPoint]) -> Vec<LevelPoint> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| a.level.total_cmp(&b.level));
    let mut levels: Vec<LevelPoint> = sorted
        .chunk_by(|a, b| a.level == b.level)
        .map(|same| LevelPoint {
            throughput_per_s: mean(same.iter().map(|p| p.throughput_per_s)).unwrap_or(0.0),
            mean_ns: mean(same.iter().filter_map(|p| p.mean_ns)),
            p90_ns: mean(same.iter().filter_map(|p| p.p90_ns)),
            throughput_ci95: interval(same),
            trials: same.len(),
            ..same[0].clone()
        })
        .collect();
    if let Some(rounds) = rounds(rows, levels.len()) {
        in_rounds(rows, rounds, &mut levels);
    }
    levels
}

/// Number of rounds of the table, if it consists of parts with each level once.
fn rounds(rows: &[LevelPoint], levels: usize) -> Option<usize> {
    let is_whole = |part: &[LevelPoint]| {
        let mut of_part: Vec<f64> = part.iter().map(|p| p.level).collect();
        of_part.sort_by(f64::total_cmp);
        of_part.dedup();
        of_part.len() == levels
    };
    let rounds = rows.len() / levels.max(1);
    let is_even = rounds >= 2 && levels >= 2 && rounds * levels == rows.len();
    let is_even = is_even && rows.len() <= FITTED_MAX;
    (is_even && rows.chunks(levels).all(is_whole)).then_some(rounds)
}

/// Estimates the throughput of each level with rounds as a factor, so that changes between rounds
/// are no difference between levels.
fn in_rounds(rows: &[LevelPoint], rounds: usize, levels: &mut [LevelPoint]) {
    let cells: Vec<BlockCell> = rows
        .iter()
        .enumerate()
        .filter_map(|(i, p)| {
            Some(BlockCell {
                level: levels.iter().position(|l| l.level == p.level)?,
                round: i / levels.len(),
                value: p.throughput_per_s.ln(),
            })
        })
        .collect();
    let Some(fit) = fit(&cells, levels.len(), rounds) else {
        return;
    };
    for (i, level) in levels.iter_mut().enumerate() {
        if let Some(estimate) = fit.level(i) {
            level.throughput_per_s = estimate.value.exp();
            level.throughput_ci95 = Some(estimate.ci95().map(f64::exp));
            level.in_rounds = true;
        }
    }
}

/// Interval from the scatter of the rows of one level, by Student's t.
fn interval(same: &[LevelPoint]) -> Option<[f64; 2]> {
    let values: Vec<f64> = same.iter().map(|p| p.throughput_per_s).collect();
    let n = values.len();
    if n < REPEATS_MIN {
        return None;
    }
    let error = (variance(&values) / n as f64).sqrt();
    let half = t_beyond(0.05, n as u64 - 1) * error;
    let mean = sample::mean(&values);
    Some([mean - half, mean + half])
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests;
