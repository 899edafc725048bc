//! Lists of the command line: names and delays, separated by commas.

use crate::failure::Failure;
use knee_load::spec::ParseError;

/// The word for all there are.
pub const ALL: &str = "all";

/// The values of a list, none of them twice; `all` for that word, and where no list was given.
pub fn parse<T: PartialEq + Clone>(
    option: &str,
    text: Option<&str>,
    all: &[T],
    parse_one: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<Vec<T>, Failure> {
    let Some(text) = text.filter(|text| *text != ALL) else {
        return Ok(all.to_vec());
    };
    let mut values: Vec<T> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let value = parse_one(part).map_err(|e| Failure::argument(option, e))?;
        if values.contains(&value) {
            let wrong = format!("'{part}' is there twice: once is enough");
            return Err(Failure::argument(option, wrong));
        }
        values.push(value);
    }
    Ok(values)
}

/// A list as it can be typed again.
pub fn typed<T: PartialEq>(values: &[T], all: &[T], name: impl Fn(&T) -> String) -> String {
    if values == all {
        return ALL.to_string();
    }
    values.iter().map(name).collect::<Vec<_>>().join(",")
}
