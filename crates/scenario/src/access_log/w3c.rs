//! Logs in the extended format of the W3C, as IIS and CloudFront write them: a line `#Fields:` names
//! the columns of those that follow.

use super::line::LineFields;
use super::moment::{duration_of, time_of};

/// The names of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct LogColumns(Vec<String>);

/// The directives of the format, without their colons.
const DIRECTIVES: &str = "Version Fields Software Start-Date End-Date Date Remark";

impl LogColumns {
    /// Whether a line is a directive.
    pub(super) fn is_directive(line: &str) -> bool {
        let name = line.strip_prefix('#').and_then(|rest| rest.split_once(':'));
        name.is_some_and(|(name, _)| DIRECTIVES.split(' ').any(|known| known == name))
    }

    /// The columns that a line names.
    pub(super) fn of_directive(line: &str) -> Option<LogColumns> {
        let names = line.strip_prefix("#Fields:")?.split_whitespace();
        Some(LogColumns(names.map(str::to_owned).collect()))
    }

    /// Reads a line. Its times are in UTC.
    pub(super) fn read<'a>(&self, line: &'a str) -> Result<LineFields<'a>, String> {
        let blanks = if line.contains('\t') { &['\t'][..] } else { &[' '] };
        let values: Vec<&str> = line.split(blanks).collect();
        if values.len() != self.0.len() {
            return Err(format!("{} columns, not {}", values.len(), self.0.len()));
        }
        let value_of = |name: &str| {
            let value = values[self.0.iter().position(|column| column == name)?];
            Some(value).filter(|value| *value != "-")
        };
        let time = match (value_of("date"), value_of("time")) {
            (Some(date), Some(time)) => Some(time_of(&format!("{date}T{time}Z"))?),
            _ => None,
        };
        // IIS has milliseconds, the standard seconds with a fraction.
        let took = value_of("time-taken");
        let took_s =
            took.and_then(|took| duration_of(took, if took.contains('.') { 1.0 } else { 1e-3 }));
        // CloudFront encodes what it logs once more (its "Standard logging reference").
        let is_of_cloudfront = self.0.iter().any(|column| column.starts_with("x-edge-"));
        Ok(LineFields {
            escape: is_of_cloudfront.then_some('%'),
            time,
            took_s,
            method: value_of("cs-method"),
            path: value_of("cs-uri-stem").or_else(|| value_of("cs-uri")),
            query: value_of("cs-uri-query"),
            name: value_of("cs-username").map(str::to_owned),
            client: value_of("c-ip"),
            ..LineFields::default()
        })
    }
}
