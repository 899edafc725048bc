//! Reader of tables measured elsewhere, as people write them and as web pages show them.

use crate::experiment::sweep::progress::users_of;
use crate::experiment::sweep::report::SweepSlice;
use crate::experiment::sweep::rows;
use knee_load::quantity::ParseError;
use knee_load::spec::Level;

/// Most rows with rounds; larger tables count as one without.
const FITTED_MAX: usize = 10_000;

const COLUMNS: &str = "vusers,throughput_per_s[,mean_ms,p90_ms,round,begin_s]";

/// Reads `vusers,throughput_per_s` and, optionally, `mean_ms,p90_ms`, in this order where there is
/// no header. Values are separated by commas, semicolons, tabs or blanks. Empty lines and what
/// follows a `#` are skipped. Thousands may be apart (`88,318`), in quotes where commas separate
/// values. A unit may follow (`88,318/s`, `3.2 ms`).
///
/// Each row is a slice, in the order of its round and of the table. Without a column for it, rounds
/// are parts of the table with each level once; where these are none, all rows have round 0. A
/// throughput of 0 in a round is an outage.
pub fn parse_csv(bytes: &[u8]) -> Result<Vec<SweepSlice>, ParseError> {
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
        TableColumn::ALL[..names.len().clamp(2, UNNAMED_MAX)].to_vec()
    };
    let of_levels = &lines[usize::from(is_header)..];
    let row = |(number, line): &(usize, &str)| {
        parse_row(*number, &separator.split(*number, line)?, &columns)
    };
    let rows = of_levels.iter().map(row).collect::<Result<Vec<SweepSlice>, ParseError>>()?;
    if rows.is_empty() {
        let line = number + 1;
        return Err(ParseError(format!(
            "line {line}: no level follows the header; give one line per number of users"
        )));
    }
    Ok(in_rounds(rows))
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
    Round,
    Begin,
}

/// Most columns without a header, the first of all.
const UNNAMED_MAX: usize = 4;

impl TableColumn {
    const ALL: [TableColumn; 6] = [
        TableColumn::Vusers,
        TableColumn::Throughput,
        TableColumn::Mean,
        TableColumn::P90,
        TableColumn::Round,
        TableColumn::Begin,
    ];

    /// Names in a header; the first is the own one.
    fn names(self) -> &'static [&'static str] {
        match self {
            TableColumn::Vusers => &["vusers", "users", "connections", "concurrency", "clients"],
            TableColumn::Throughput => {
                &["throughput_per_s", "throughput", "throughput/s", "req/s", "requests/s", "rps"]
            }
            TableColumn::Mean => &["mean_ms", "mean"],
            TableColumn::P90 => &["p90_ms", "p90"],
            TableColumn::Round => &["round", "repeat", "repetition", "iteration", "run"],
            TableColumn::Begin => &["begin_s", "start_s", "time_s"],
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
            TableColumn::Round | TableColumn::Begin => unit.is_empty(),
        }
    }

    fn right(self) -> &'static str {
        match self {
            TableColumn::Vusers => "give a whole number of users from 1 to 4294967295, such as 100",
            TableColumn::Throughput => {
                "give responses per second, such as 1833 or \"88,318\" in quotes"
            }
            TableColumn::Mean | TableColumn::P90 => "give milliseconds, above 0, such as 3.2",
            TableColumn::Round => "give the number of the round, such as 3",
            TableColumn::Begin => "give seconds from the begin, such as 3.2",
        }
    }

    fn accepts(self, value: f64) -> bool {
        let [least, most] = match self {
            TableColumn::Vusers => [1.0, f64::from(u32::MAX)],
            TableColumn::Mean | TableColumn::P90 => [f64::MIN_POSITIVE, 1e9],
            TableColumn::Throughput => [0.0, 1e15],
            TableColumn::Round => [0.0, 1e6],
            TableColumn::Begin => [0.0, 1e9],
        };
        let is_whole = matches!(self, TableColumn::Vusers | TableColumn::Round);
        (least..=most).contains(&value) && (!is_whole || value == value.round())
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
) -> Result<SweepSlice, ParseError> {
    if fields.len() != columns.len() {
        let (has, wants) = (fields.len(), columns.len());
        let column = has.min(wants) + 1;
        return Err(ParseError(format!(
            "line {line}, column {column}: {has} values where there are {wants} columns; \
             put numbers with thousands separators in quotes"
        )));
    }
    let mut slice = SweepSlice::blank(Level::Vusers(1));
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
            TableColumn::Vusers => slice.level = Level::Vusers(value as u32),
            TableColumn::Throughput => slice.throughput_per_s = value,
            TableColumn::Mean => slice.mean_ns = Some((value * 1e6).round() as u64),
            TableColumn::P90 => slice.p90_ns = Some((value * 1e6).round() as u64),
            // From 0 or 1 on; 0 of a slice is no round.
            TableColumn::Round => slice.round = value as u32 + 1,
            TableColumn::Begin => slice.begin_ns = Some((value * 1e9).round() as u64),
        }
    }
    Ok(slice)
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

/// The rows in the order of their rounds. Those of a table with fewer than two rounds have none.
fn in_rounds(mut slices: Vec<SweepSlice>) -> Vec<SweepSlice> {
    if slices.iter().all(|s| s.round == 0)
        && let Some(size) = round_size(&slices)
    {
        for (i, slice) in slices.iter_mut().enumerate() {
            slice.round = (i / size) as u32 + 1;
        }
    }
    slices.sort_by_key(|s| s.round);
    let mut numbers: Vec<u32> = slices.iter().map(|s| s.round).collect();
    numbers.dedup();
    let has_rounds = numbers.len() > 1 && slices.len() <= FITTED_MAX;
    let is_timed = slices.iter().all(|s| s.begin_ns.is_some());
    let begins: Vec<Option<u64>> = slices.iter().map(|s| s.begin_ns).collect();
    for (i, slice) in slices.iter_mut().enumerate() {
        let number = numbers.binary_search(&slice.round).unwrap_or(0) as u32 + 1;
        slice.round = if has_rounds { number } else { 0 };
        slice.begin_ns = slice.begin_ns.filter(|_| is_timed);
        if has_rounds && slice.throughput_per_s <= 0.0 {
            slice.marks.push(rows::OUTAGE.to_owned());
            let next = begins.get(i + 1).copied().flatten();
            let ends = slice.begin_ns.zip(next).filter(|(begin, end)| begin < end);
            slice.outage_ns = ends.map(|(begin, end)| [begin, end]);
        }
    }
    slices
}

/// Rows of a round, if the table consists of at least two parts with each level once.
fn round_size(slices: &[SweepSlice]) -> Option<usize> {
    let levels = |part: &[SweepSlice]| {
        let mut of_part: Vec<u32> = part.iter().map(|s| users_of(s.level)).collect();
        of_part.sort_unstable();
        of_part.dedup();
        of_part.len()
    };
    let size = levels(slices);
    let is_even = size >= 2 && slices.len() >= 2 * size && slices.len().is_multiple_of(size);
    (is_even && slices.chunks(size).all(|part| levels(part) == size)).then_some(size)
}

#[cfg(test)]
mod tests;
