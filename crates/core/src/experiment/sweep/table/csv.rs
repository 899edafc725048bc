//! Reader of tables measured elsewhere, as people write them and as web pages show them.

use crate::experiment::sweep::axis::level_vusers;
use crate::experiment::sweep::report::SweepSlice;
use crate::experiment::sweep::silences::OUTAGE;
use knee_load::quantity::ParseError;
use knee_load::spec::Level;

/// Most rows with rounds; larger tables count as one without.
const FITTED_MAX: usize = 10_000;

const COLUMNS: &str = "vusers,throughput_per_s[,mean_ms,p90_ms,round,begin_s]";

/// Reads a table of users and throughput and, optionally, mean, p90, round and begin: in this
/// order, or as a header names them.
///
/// ```text
/// table   = {title} [header] [units] {row} | {name row}
/// line    = cell {separator cell}     separated by |, ; or tabs, else by commas or blanks
/// header  = cells that name a column, each with its unit: Mean (ms), p90 [s], latency_us
/// units   = cells that are units alone, or empty
/// row     = numbers, each with its unit: 88,318/s, 3.2 ms
/// ```
///
/// A title is any line before the header. It names the column of throughput where the header does
/// not. A table may also have a line for each column, which begins with its name. Empty lines,
/// rules of dashes and what follows a `#` are skipped. Thousands may be apart (`88,318`), in quotes
/// where commas separate values.
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
    let is_rule = |line: &str| line.contains("--") && line.chars().all(|c| "-+|:= \t".contains(c));
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, without_comment(line).trim()))
        .filter(|(_, line)| !line.is_empty() && !is_rule(line))
        .collect();
    if lines.is_empty() {
        return Err(ParseError(format!("line 1: no table; give {COLUMNS}")));
    }
    let separator = Separator::of(&lines);
    let cells = |&(number, line): &(usize, &str)| Ok((number, separator.split(number, line)?));
    let table: Vec<(usize, Vec<TableField>)> = lines.iter().map(cells).collect::<Result<_, _>>()?;
    let table = upright(table);
    let is_row = |cells: &[TableField]| cells.iter().any(|cell| cell.number().is_some());
    let first = table.iter().position(|(_, cells)| is_row(cells)).unwrap_or(table.len());
    let (before, rows) = table.split_at(first);
    let columns = parse_header(before, rows.first().map(|(_, cells)| cells.len()))?;
    if rows.is_empty() {
        let line = table.last().map_or(1, |(number, _)| number + 1);
        return Err(ParseError(format!(
            "line {line}: no level follows the header; give one line per number of users"
        )));
    }
    let row = |(number, cells): &(usize, Vec<TableField>)| parse_row(*number, cells, &columns);
    Ok(with_rounds(rows.iter().map(row).collect::<Result<Vec<SweepSlice>, ParseError>>()?))
}

/// A line up to a comment. A unit such as `[#/sec]` begins none.
fn without_comment(line: &str) -> &str {
    let is_comment = |&(i, _): &(usize, &str)| !line[i..].starts_with("#/s");
    line.match_indices('#').find(is_comment).map_or(line, |(i, _)| &line[..i])
}

/// A table with a line for each column becomes one with a line for each level.
fn upright(table: Vec<(usize, Vec<TableField>)>) -> Vec<(usize, Vec<TableField>)> {
    let named = |(_, cells): &&(usize, Vec<TableField>)| {
        let is_name = cells.first().and_then(|c| ColumnName::of(&c.text)).is_some();
        is_name && cells.len() > 2 && cells[1..].iter().all(|cell| cell.number().is_some())
    };
    let lines: Vec<&(usize, Vec<TableField>)> = table.iter().filter(named).collect();
    let Some((number, first)) = lines.first().filter(|_| lines.len() >= 2) else { return table };
    if lines.iter().any(|(_, cells)| cells.len() != first.len()) {
        return table;
    }
    let column = |i: usize| lines.iter().map(|(_, cells)| cells[i].clone()).collect();
    (0..first.len()).map(|i| (*number, column(i))).collect()
}

/// Separator of the values of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Pipe,
    Comma,
    Semicolon,
    Tab,
    Blank,
}

impl Separator {
    /// The separator of these lines: the rarest of the possible characters that most of them have.
    /// A comma may also set thousands apart, and blanks may also surround values.
    fn of(lines: &[(usize, &str)]) -> Separator {
        let most_have = |c: char| {
            let number = lines.iter().filter(|(_, line)| line.contains(c)).count();
            2 * number > lines.len() && lines.last().is_some_and(|(_, line)| line.contains(c))
        };
        let is_blank = |line: &str| {
            let mut words = line.split_whitespace();
            !line.contains('"')
                && line.split_whitespace().count() >= 2
                && words.all(|word| !word.starts_with(',') && !word.ends_with(','))
        };
        let rows = lines.iter().filter(|line| line.1.starts_with(|c: char| c.is_ascii_digit()));
        let by_blanks = rows.clone().next().is_some() && rows.clone().all(|l| is_blank(l.1));
        if most_have('|') {
            Separator::Pipe
        } else if most_have(';') {
            Separator::Semicolon
        } else if most_have('\t') {
            Separator::Tab
        } else if by_blanks || lines.iter().all(|(_, line)| is_blank(line)) {
            Separator::Blank
        } else {
            Separator::Comma
        }
    }

    /// The values of a line.
    fn split(self, line: usize, text: &str) -> Result<Vec<TableField>, ParseError> {
        let apart = |text: &str, c: char| -> Vec<TableField> {
            text.split(c).map(|part| unquoted(part.trim(), true)).collect()
        };
        Ok(match self {
            Separator::Comma => fields(line, text)?,
            Separator::Semicolon => apart(text, ';'),
            Separator::Tab => apart(text, '\t'),
            Separator::Pipe => {
                let inner = text.strip_prefix('|').unwrap_or(text);
                apart(inner.strip_suffix('|').unwrap_or(inner), '|')
            }
            Separator::Blank => words(text),
        })
    }
}

/// The values of a line of words. A unit apart from its number (`3.2 ms`) belongs to it, and words
/// that name a column together (`requests per second`, `Mean (ms)`) are one.
fn words(text: &str) -> Vec<TableField> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut values: Vec<TableField> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let word = words[at];
        let is_unit = unit(word).is_some();
        if let Some(last) = values.last_mut()
            && (is_unit && last.number().is_some() || word.starts_with(['(', '[']))
        {
            last.text = format!("{} {word}", last.text);
            at += 1;
            continue;
        }
        let longest = (2..=NAME_WORDS).rev().find(|&n| {
            let name = words.get(at..at + n).map(|words| words.join(" "));
            name.is_some_and(|name| ColumnName::of(&name).is_some() && !name.contains(['(', '[']))
        });
        let n = longest.unwrap_or(1);
        values.push(unquoted(&words[at..at + n].join(" "), true));
        at += n;
    }
    values
}

/// Most words of a column's name.
const NAME_WORDS: usize = 4;

/// Units that may follow a number, what they are of, and the factors that they stand for: times in
/// milliseconds.
const UNITS: &[(&str, UnitKind, f64)] = &[
    ("/s", UnitKind::Rate, 1.0),
    ("/sec", UnitKind::Rate, 1.0),
    ("#/sec", UnitKind::Rate, 1.0),
    ("1/s", UnitKind::Rate, 1.0),
    ("req/s", UnitKind::Rate, 1.0),
    ("req/sec", UnitKind::Rate, 1.0),
    ("reqs/s", UnitKind::Rate, 1.0),
    ("reqs/sec", UnitKind::Rate, 1.0),
    ("requests/s", UnitKind::Rate, 1.0),
    ("requests/sec", UnitKind::Rate, 1.0),
    ("requests/second", UnitKind::Rate, 1.0),
    ("responses/s", UnitKind::Rate, 1.0),
    ("ops/s", UnitKind::Rate, 1.0),
    ("ops/sec", UnitKind::Rate, 1.0),
    ("rps", UnitKind::Rate, 1.0),
    ("qps", UnitKind::Rate, 1.0),
    ("tps", UnitKind::Rate, 1.0),
    ("k", UnitKind::Rate, 1e3),
    ("k/s", UnitKind::Rate, 1e3),
    ("krps", UnitKind::Rate, 1e3),
    ("kreq/s", UnitKind::Rate, 1e3),
    ("users", UnitKind::Users, 1.0),
    ("vusers", UnitKind::Users, 1.0),
    ("vus", UnitKind::Users, 1.0),
    ("clients", UnitKind::Users, 1.0),
    ("connections", UnitKind::Users, 1.0),
    ("ms", UnitKind::Time, 1.0),
    ("msec", UnitKind::Time, 1.0),
    ("milliseconds", UnitKind::Time, 1.0),
    ("s", UnitKind::Time, 1e3),
    ("sec", UnitKind::Time, 1e3),
    ("secs", UnitKind::Time, 1e3),
    ("seconds", UnitKind::Time, 1e3),
    ("µs", UnitKind::Time, 1e-3),
    ("μs", UnitKind::Time, 1e-3),
    ("us", UnitKind::Time, 1e-3),
    ("usec", UnitKind::Time, 1e-3),
    ("microseconds", UnitKind::Time, 1e-3),
    ("ns", UnitKind::Time, 1e-6),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitKind {
    Rate,
    Users,
    Time,
}

fn unit(text: &str) -> Option<(UnitKind, f64)> {
    let known = UNITS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(text));
    known.map(|&(_, kind, factor)| (kind, factor))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableColumn {
    Vusers,
    Throughput,
    Mean,
    P90,
    Round,
    Begin,
    /// A figure that the analysis does not need.
    Other,
}

/// Most columns without a header, the first of all.
const UNNAMED_MAX: usize = 4;

impl TableColumn {
    const ALL: [TableColumn; 7] = [
        TableColumn::Vusers,
        TableColumn::Throughput,
        TableColumn::Mean,
        TableColumn::P90,
        TableColumn::Round,
        TableColumn::Begin,
        TableColumn::Other,
    ];

    /// Names in a header, without units; the first is the own one.
    fn names(self) -> &'static [&'static str] {
        match self {
            TableColumn::Vusers => &[
                "vusers",
                "users",
                "user",
                "vus",
                "vu",
                "virtual users",
                "concurrent users",
                "number of users",
                "connections",
                "conns",
                "concurrency",
                "concurrency level",
                "clients",
                "threads",
                "sessions",
            ],
            TableColumn::Throughput => &[
                "throughput_per_s",
                "throughput",
                "throughput/s",
                "req/s",
                "reqs/s",
                "requests/s",
                "req/sec",
                "reqs/sec",
                "requests/sec",
                "requests/second",
                "requests per second",
                "req per sec",
                "responses/s",
                "responses/sec",
                "rps",
                "qps",
                "tps",
                "krps",
                "ops/s",
                "ops/sec",
                "operations/s",
                "transactions/s",
                "hits/s",
                "rate",
            ],
            TableColumn::Mean => &[
                "mean_ms",
                "mean",
                "avg",
                "average",
                "latency",
                "mean latency",
                "avg latency",
                "average latency",
                "latency avg",
                "latency mean",
                "response time",
                "mean response time",
                "avg response time",
                "average response time",
                "time per request",
            ],
            TableColumn::P90 => &[
                "p90_ms",
                "p90",
                "p(90)",
                "90%",
                "90 %",
                "90th",
                "90th percentile",
                "p90 latency",
                "latency p90",
                "90%ile",
                "pct90",
            ],
            TableColumn::Round => &["round", "repeat", "repetition", "iteration", "run"],
            TableColumn::Begin => &["begin_s", "begin", "start_s", "start", "time_s"],
            TableColumn::Other => &[
                "p50",
                "p75",
                "p95",
                "p99",
                "p99.9",
                "p999",
                "median",
                "min",
                "max",
                "stdev",
                "stddev",
                "errors",
                "failures",
                "failed",
                "non-2xx",
                "50%",
                "75%",
                "95%",
                "99%",
                "transfer/sec",
                "bytes/s",
                "cpu",
            ],
        }
    }

    fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Whether a value of the column may have a unit of this kind.
    fn takes(self, unit: UnitKind) -> bool {
        match self {
            TableColumn::Vusers => unit == UnitKind::Users,
            TableColumn::Throughput => unit == UnitKind::Rate,
            TableColumn::Mean | TableColumn::P90 | TableColumn::Begin => unit == UnitKind::Time,
            TableColumn::Round => false,
            TableColumn::Other => true,
        }
    }

    /// Factor of a value without a unit, in milliseconds for times.
    fn factor(self) -> f64 {
        if self == TableColumn::Begin { 1e3 } else { 1.0 }
    }

    fn advice(self) -> &'static str {
        match self {
            TableColumn::Vusers => "give a whole number of users from 1 to 4294967295, such as 100",
            TableColumn::Throughput => {
                "give responses per second, such as 1833 or \"88,318\" in quotes"
            }
            TableColumn::Mean | TableColumn::P90 => "give milliseconds, above 0, such as 3.2",
            TableColumn::Round => "give the number of the round, such as 3",
            TableColumn::Begin => "give seconds from the begin, such as 3.2",
            TableColumn::Other => "give a number",
        }
    }

    fn accepts(self, value: f64) -> bool {
        let [least, most] = match self {
            TableColumn::Vusers => [1.0, f64::from(u32::MAX)],
            TableColumn::Mean | TableColumn::P90 => [f64::MIN_POSITIVE, 1e9],
            TableColumn::Throughput => [0.0, 1e15],
            TableColumn::Round => [0.0, 1e6],
            TableColumn::Begin => [0.0, 1e12],
            TableColumn::Other => return true,
        };
        let is_whole = matches!(self, TableColumn::Vusers | TableColumn::Round);
        (least..=most).contains(&value) && (!is_whole || value == value.round())
    }
}

/// A column with the factor of its values that have no unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ColumnName {
    column: TableColumn,
    factor: f64,
}

impl ColumnName {
    /// The column that a name means, with a unit in brackets, after a comma or an underscore, or
    /// none.
    fn of(text: &str) -> Option<ColumnName> {
        let text = text.trim().trim_end_matches(':').trim();
        let (name, unit_text) = match text.find(['(', '[']) {
            Some(at) if !text[..at].trim().eq_ignore_ascii_case("p") => {
                let inner = text[at + 1..].split([')', ']']).next().unwrap_or_default();
                (text[..at].trim(), Some(inner.trim()))
            }
            _ => (text, None),
        };
        let plain = |name: &str| {
            let has_name = |c: &TableColumn| c.names().iter().any(|n| n.eq_ignore_ascii_case(name));
            TableColumn::ALL.into_iter().find(has_name)
        };
        if unit_text.is_none()
            && let Some(column) = plain(name)
        {
            let factor = if name.eq_ignore_ascii_case("krps") { 1e3 } else { column.factor() };
            return Some(ColumnName { column, factor });
        }
        let by_unit = |name: &str, unit_text: &str| {
            let column = plain(name.trim_end_matches([',', '_', ' ']))?;
            let (kind, factor) = unit(unit_text)?;
            column.takes(kind).then_some(ColumnName { column, factor })
        };
        match unit_text {
            // Another remark in brackets, such as the name of a statistic, is no unit.
            Some(remark) if unit(remark).is_none() => ColumnName::of(name),
            Some(remark) => by_unit(name, remark),
            None => {
                let (name, unit_text) = name.rsplit_once(['_', ' ', ','])?;
                by_unit(name, unit_text)
            }
        }
    }
}

/// The columns that these lines before the first row name. `width`: values of that row.
fn parse_header(
    before: &[(usize, Vec<TableField>)],
    width: Option<usize>,
) -> Result<Vec<ColumnName>, ParseError> {
    let unnamed = |n: usize| -> Vec<ColumnName> {
        let columns = TableColumn::ALL[..n.clamp(2, UNNAMED_MAX)].iter();
        columns.map(|&column| ColumnName { column, factor: column.factor() }).collect()
    };
    let name = |cell: &TableField| ColumnName::of(&cell.text);
    let is_unit = |cell: &TableField| {
        let inner = cell.text.trim_matches(|c| "()[]".contains(c));
        unit(inner).filter(|_| !inner.is_empty())
    };
    let is_users = |cell: &TableField| name(cell).is_some_and(|n| n.column == TableColumn::Vusers);
    let fits = |cells: &[TableField]| width.is_none_or(|n| cells.len() == n);
    let header =
        before.iter().rposition(|(_, cells)| cells.len() > 1 && cells.iter().any(is_users));
    let header = header.or_else(|| before.iter().rposition(|(_, cells)| fits(cells)));
    // A line that is no header of so many columns is a title.
    let Some((at, (line, cells))) = header.map(|at| (at, &before[at])) else {
        return Ok(unnamed(width.unwrap_or(2)));
    };
    let is_titled = before[..at].iter().any(|(_, title)| {
        title.iter().any(|cell| name(cell).is_some_and(|n| n.column == TableColumn::Throughput))
    });
    let has_throughput =
        cells.iter().any(|c| name(c).is_some_and(|n| n.column == TableColumn::Throughput));
    let mut columns: Vec<ColumnName> = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        let place = format!("line {line}, column {}", i + 1);
        let under = before[at + 1..].iter().filter_map(|(_, units)| units.get(i));
        let under = under.filter_map(is_unit).next_back();
        let by_title = (is_titled && !has_throughput && i == 1)
            .then_some(ColumnName { column: TableColumn::Throughput, factor: 1.0 });
        let by_unit = under
            .filter(|(kind, _)| *kind == UnitKind::Rate && !has_throughput)
            .map(|(_, factor)| ColumnName { column: TableColumn::Throughput, factor });
        let named = name(cell).or(by_title).or(by_unit).ok_or_else(|| {
            ParseError(format!(
                "{place}: `{}` is not a column; the header is {COLUMNS}",
                excerpt(&cell.text)
            ))
        })?;
        let factor = under.filter(|(kind, _)| named.column.takes(*kind)).map(|(_, f)| f);
        let named = ColumnName { factor: factor.unwrap_or(named.factor), ..named };
        let is_known = columns.iter().any(|c| c.column == named.column);
        if is_known && named.column != TableColumn::Other {
            let name = named.column.name();
            return Err(ParseError(format!(
                "{place}: `{name}` comes twice; give each column once"
            )));
        }
        columns.push(named);
    }
    for needed in [TableColumn::Vusers, TableColumn::Throughput] {
        if !columns.iter().any(|c| c.column == needed) {
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
    columns: &[ColumnName],
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
    for (i, (field, &ColumnName { column, factor })) in fields.iter().zip(columns).enumerate() {
        let optional = matches!(column, TableColumn::Mean | TableColumn::P90);
        if optional && field.text.is_empty() || column == TableColumn::Other {
            continue;
        }
        let value = field
            .number()
            .filter(|(_, unit)| unit.is_none_or(|(kind, _)| column.takes(kind)))
            .map(|(v, unit)| v * unit.map_or(factor, |(_, factor)| factor))
            .filter(|v| column.accepts(*v))
            .ok_or_else(|| {
                ParseError(format!(
                    "line {line}, column {} ({}): `{}` will not do; {}",
                    i + 1,
                    column.name(),
                    excerpt(&field.text),
                    column.advice()
                ))
            })?;
        match column {
            TableColumn::Vusers => slice.level = Level::Vusers(value as u32),
            TableColumn::Throughput => slice.throughput_per_s = value,
            TableColumn::Mean => slice.mean_ns = Some((value * 1e6).round() as u64),
            TableColumn::P90 => slice.p90_ns = Some((value * 1e6).round() as u64),
            // From 0 or 1 on; 0 of a slice is no round.
            TableColumn::Round => slice.round = value as u32 + 1,
            TableColumn::Begin => slice.begin_ns = Some((value * 1e6).round() as u64),
            TableColumn::Other => {}
        }
    }
    Ok(slice)
}

#[derive(Clone, Debug)]
struct TableField {
    text: String,
    /// Whether commas in it only separate thousands.
    is_apart: bool,
}

impl TableField {
    /// Its number, and its unit if it has one.
    fn number(&self) -> Option<(f64, Option<(UnitKind, f64)>)> {
        if let Some(value) = number(&self.text, self.is_apart) {
            return Some((value, None));
        }
        let is_of_number = |c: char| c.is_ascii_digit() || ".,".contains(c);
        let end = self.text.find(|c: char| !is_of_number(c))?;
        let (digits, unit_text) = self.text.split_at(end);
        let unit = unit(unit_text.trim())?;
        Some((number(digits, self.is_apart)?, Some(unit)))
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
fn with_rounds(mut slices: Vec<SweepSlice>) -> Vec<SweepSlice> {
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
            slice.marks.push(OUTAGE.to_owned());
            let next = begins.get(i + 1).copied().flatten();
            let ends = slice.begin_ns.zip(next).filter(|(begin, end)| begin < end);
            slice.outage_ns = ends.map(|(begin, end)| [begin, end]);
        }
    }
    slices
}

/// Rows of a round, if the table consists of at least two parts with each level once.
fn round_size(slices: &[SweepSlice]) -> Option<usize> {
    let level_count = |part: &[SweepSlice]| {
        let mut levels: Vec<u32> = part.iter().map(|s| level_vusers(s.level)).collect();
        levels.sort_unstable();
        levels.dedup();
        levels.len()
    };
    let size = level_count(slices);
    let is_even = size >= 2 && slices.len() >= 2 * size && slices.len().is_multiple_of(size);
    (is_even && slices.chunks(size).all(|part| level_count(part) == size)).then_some(size)
}

#[cfg(test)]
mod tests;
