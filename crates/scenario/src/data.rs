//! Records of data: CSV with a header, or an object in each line.

use super::ScenarioInputs;
use super::body::read_file;
use super::fault::{Read, bail, fault};
use super::fields::{Fields, named, text, word};
use super::names::is_name;
use super::schema;
use super::tree::{Entry, Node, Value};
use knee_load::quantity::quoted;
use knee_load::session::{DataSet, Deal};
use std::collections::HashSet;

/// The most columns of a set, and the most sets.
const COLUMNS_MAX: usize = 1_000;

/// All sets of records, in the order of the file.
pub(super) fn read(node: &Node, inputs: &mut dyn ScenarioInputs) -> Read<Vec<DataSet>> {
    let entries = named(node, "data: {users: {file: users.csv}}")?;
    if entries.len() > COLUMNS_MAX {
        bail!(node.at, "too many sets of records: expected at most {COLUMNS_MAX}");
    }
    entries.iter().map(|entry| set(entry, inputs)).collect()
}

const DEALS: [(&str, Deal); 3] =
    [("unique", Deal::Unique), ("in-order", Deal::InOrder), ("random", Deal::Random)];

fn set(entry: &Entry, inputs: &mut dyn ScenarioInputs) -> Read<DataSet> {
    let Entry { key, at, value } = entry;
    if !is_name(key) {
        let what = "cannot name a set of records: expected letters, digits, '_' and '-'";
        bail!(*at, "{} {what}", quoted(key));
    }
    let (file, deal) = match &value.value {
        Value::Map(_) => {
            let fields = Fields::read(value, schema::DATA)?;
            let deal = fields.read_key("order", |node| word(node, &DEALS))?;
            (fields.need("file")?, deal.unwrap_or(Deal::InOrder))
        }
        _ => (value, Deal::InOrder),
    };
    let name = &text(file, "the name of a file")?.text;
    let table = table(name, inputs).or_else(|wrong| fault(file.at, wrong))?;
    Ok(DataSet { name: key.to_string(), columns: table.columns, rows: table.rows, deal })
}

/// Something, and the number of the line that it is about.
type Numbered<T> = (usize, T);

/// What a file of records holds.
#[derive(Debug, PartialEq)]
struct Records {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn table(name: &str, inputs: &mut dyn ScenarioInputs) -> Result<Records, String> {
    let extension = name.rsplit_once('.').map_or("", |(_, after)| after);
    let parse: fn(&str) -> Result<Records, Numbered<String>> = match &*extension.to_lowercase() {
        "csv" => csv,
        "jsonl" | "ndjson" => json_lines,
        _ => {
            let shown = quoted(name);
            return Err(format!("{shown} has no known ending: expected .csv, .jsonl or .ndjson"));
        }
    };
    let bytes = read_file(name, inputs)?;
    let shown = quoted(name);
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Err(format!("{shown} is not UTF-8 text: save it as UTF-8"));
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let records = parse(text).map_err(|(line, what)| format!("{shown}, line {line}: {what}"))?;
    if records.rows.is_empty() {
        Err(format!("{shown} has no record: expected at least one"))
    } else {
        Ok(records)
    }
}

/// RFC 4180, the first record being the header. Empty lines are left out.
fn csv(text: &str) -> Result<Records, Numbered<String>> {
    let mut reader = Csv { rest: text, line: 1 };
    let mut columns: Option<Vec<String>> = None;
    let mut rows = Vec::new();
    loop {
        let is_quoted = reader.rest.starts_with('"');
        let Some((line, fields)) = reader.record()? else {
            break;
        };
        if fields == [""] && !is_quoted {
            continue;
        }
        let Some(columns) = &columns else {
            columns = Some(header(fields).map_err(|what| (line, what))?);
            continue;
        };
        if fields.len() != columns.len() {
            let (has, wants) = (fields.len(), columns.len());
            return Err((
                line,
                format!(
                    "{has} values where the header has {wants}: expected a value for each column"
                ),
            ));
        }
        rows.push(fields);
    }
    match columns {
        Some(columns) => Ok(Records { columns, rows }),
        None => Err((1, "the file is empty: expected a header, such as name,password".to_owned())),
    }
}

fn header(fields: Vec<String>) -> Result<Vec<String>, String> {
    let columns: Vec<String> = fields.iter().map(|field| field.trim().to_owned()).collect();
    if columns.len() > COLUMNS_MAX {
        return Err(format!("too many columns: expected at most {COLUMNS_MAX}"));
    }
    let mut seen = HashSet::new();
    for column in &columns {
        if column.is_empty() {
            return Err(
                "a column without a name: expected a header, such as name,password".to_owned()
            );
        }
        if !seen.insert(column) {
            return Err(format!(
                "two columns are named {}: give each its own name",
                quoted(column)
            ));
        }
    }
    Ok(columns)
}

struct Csv<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Csv<'a> {
    /// The next record and the line in which it begins.
    fn record(&mut self) -> Result<Option<Numbered<Vec<String>>>, Numbered<String>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let begin = self.line;
        let mut fields = Vec::new();
        loop {
            let (field, ends_record) = self.field()?;
            fields.push(field);
            if ends_record {
                return Ok(Some((begin, fields)));
            }
        }
    }

    /// The next value, and whether it is the last of its record.
    fn field(&mut self) -> Result<(String, bool), Numbered<String>> {
        let value = match self.rest.strip_prefix('"') {
            Some(quoted) => self.quoted(quoted)?,
            None => {
                let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                let (value, rest) = self.rest.split_at(end);
                self.rest = rest;
                let bare = value.strip_suffix('\r').filter(|_| !rest.starts_with(','));
                bare.unwrap_or(value).to_owned()
            }
        };
        let line_end = self.rest.strip_prefix('\r').unwrap_or(self.rest);
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            Ok((value, false))
        } else if line_end.is_empty() {
            self.rest = "";
            Ok((value, true))
        } else if let Some(rest) = line_end.strip_prefix('\n') {
            self.rest = rest;
            self.line += 1;
            Ok((value, true))
        } else {
            let what = "text after a quoted value: expected ',' or the end of the line";
            Err((self.line, what.to_owned()))
        }
    }

    /// What stands in quotes, a doubled one being one of its text; `rest` begins behind the first.
    fn quoted(&mut self, mut rest: &'a str) -> Result<String, Numbered<String>> {
        let begin = self.line;
        let mut value = String::new();
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                return Err((begin, "a quoted value has no end: close it with '\"'".to_owned()));
            };
            value.push_str(part);
            self.line += part.matches('\n').count();
            match after.strip_prefix('"') {
                Some(after) => {
                    value.push('"');
                    rest = after;
                }
                None => {
                    self.rest = after;
                    return Ok(value);
                }
            }
        }
    }
}

/// An object in each line, all with the same keys. Empty lines are left out.
fn json_lines(text: &str) -> Result<Records, Numbered<String>> {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at_line = |what: String| (at + 1, what);
        let wrong = "no JSON object: expected one in each line, such as {\"name\":\"a\"}";
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|_| at_line(wrong.to_owned()))?;
        if rows.is_empty() {
            columns = header(object.keys().cloned().collect()).map_err(at_line)?;
        }
        if let Some(other) = object.keys().find(|key| !columns.contains(key)) {
            return Err(at_line(format!(
                "the key {} is not in the first line: expected the same keys in each",
                quoted(other)
            )));
        }
        let value = |column: &String| match object.get(column) {
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(other) => Ok(other.to_string()),
            None => Err(at_line(format!(
                "the key {} is missing: expected the same keys in each line",
                quoted(column)
            ))),
        };
        rows.push(columns.iter().map(value).collect::<Result<_, _>>()?);
    }
    Ok(Records { columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_rfc_4180_has_them() {
        let rows: [(&str, &str, &[&[&str]]); 9] = [
            ("plain", "a,b\n1,2\n3,4\n", &[&["1", "2"], &["3", "4"]]),
            ("no end of line", "a,b\r\n1,2", &[&["1", "2"]]),
            ("an empty value at the end", "a,b\n1,\n", &[&["1", ""]]),
            ("an empty value at the very end", "a,b\n1,", &[&["1", ""]]),
            ("an empty value in quotes is no empty line", "a\n\"\"\n\n\r\nx\n", &[&[""], &["x"]]),
            ("an empty value in quotes at the end", "a\nx\n\"\"", &[&["x"], &[""]]),
            ("quotes", "a,b\n\"1,2\",\"x\"\"y\"\r\n", &[&["1,2", "x\"y"]]),
            ("a line end in quotes", "a,b\n\"1\n2\",3\n\n4,5\n", &[&["1\n2", "3"], &["4", "5"]]),
            ("a lone CR belongs to its value", "a,b\n1\r,2\n", &[&["1\r", "2"]]),
        ];
        for (name, text, want) in rows {
            assert_eq!(csv(text).unwrap().rows, want, "{name}");
        }
        let refused = [
            ("", 1, "empty"),
            ("a,b\n1\n", 2, "1 values where the header has 2"),
            ("a,b\n\"1\n\",2,3", 2, "3 values"),
            ("a,a\n", 1, "two columns are named 'a'"),
            ("a,\n", 1, "without a name"),
            ("\"\"\na\n", 1, "without a name"),
            ("a\n\"x", 2, "no end"),
            ("a\n\"x\"y\n", 2, "after a quoted value"),
        ];
        for (text, line, want) in refused {
            let (at, what) = csv(text).expect_err(text);
            assert!(what.contains(want) && at == line, "{text}: {at} {what}");
        }
    }

    #[test]
    fn objects_in_lines_are_records() {
        let text = "{\"b\":\"x\",\"a\":1}\n\n{\"a\":true,\"b\":{\"c\":[1]}}\n";
        let records = json_lines(text).unwrap();
        assert_eq!(records.columns, ["a", "b"]);
        assert_eq!(records.rows, [["1", "x"], ["true", "{\"c\":[1]}"]]);
        for (text, want) in [
            ("[1]", "no JSON object"),
            ("{\"a\":1}\n{\"b\":1}", "not in the first line"),
            ("{\"a\":1,\"b\":2}\n{\"b\":1}", "is missing"),
        ] {
            let (_, what) = json_lines(text).expect_err(text);
            assert!(what.contains(want), "{text}: {what}");
        }
    }
}
