//! Options of scripts.

use crate::resolved_options::typed;
use clap::Args;
use knee_load::spec::{ParseError, parse_duration};
use knee_load::time::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// Memory of a user, and bytes of a response that it reads, by default.
const BYTES_DEFAULT: u64 = 16 << 20;

/// Options of users that a script describes.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Scripts")]
pub struct ScriptArgs {
    /// A variable of a script's __ENV, repeatable: NAME=VALUE; those of the environment are in it
    #[arg(long, value_name = "VARIABLE", value_parser = parse_variable)]
    #[arg(hide_short_help = true)]
    #[serde(skip)]
    env: Vec<(String, String)>,

    /// The scenario of a script's options that runs [default: all]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub script_scenario: Option<String>,

    /// A server that a script sends requests to and does not name as text, repeatable
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub script_host: Vec<String>,

    /// Most memory of a script's user, such as 64MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    script_memory: Option<u64>,

    /// Most processor time of a script's user between two requests [default: 1s]
    #[arg(long, value_name = "T", value_parser = parse_duration, hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    script_time: Option<Nanos>,

    /// Most bytes of a response that a script reads, such as 1MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    script_body: Option<u64>,
}

impl ScriptArgs {
    /// `__ENV`: the variables of this process, and those that were given.
    pub fn environment(
        &self,
        of_process: impl Iterator<Item = (String, String)>,
    ) -> BTreeMap<String, String> {
        of_process.chain(self.env.iter().cloned()).collect()
    }

    /// Most memory of a user, in bytes.
    pub fn memory_max(&self) -> u64 {
        self.script_memory.unwrap_or(BYTES_DEFAULT)
    }

    /// Most processor time between two requests.
    pub fn time_max(&self) -> Nanos {
        self.script_time.unwrap_or(Nanos::from_secs(1))
    }

    /// Most bytes of a response.
    pub fn body_max(&self) -> u64 {
        self.script_body.unwrap_or(BYTES_DEFAULT)
    }
}

fn parse_variable(text: &str) -> Result<(String, String), ParseError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(ParseError("expected NAME=VALUE".to_owned())),
    }
}

/// A size in bytes, KiB, MiB or GiB.
fn parse_size(text: &str) -> Result<u64, ParseError> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    let found = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
    let size = found.and_then(|(digits, bits)| {
        let count: u64 = digits.trim().parse().ok()?;
        count.checked_mul(1 << bits)
    });
    size.filter(|size| (1 << 10..=1 << 34).contains(size))
        .ok_or_else(|| ParseError("expected a size from 1KiB to 16GiB, such as 64MiB".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("2048"), Ok(2048));
        for bad in ["", "1", "x", "1TiB", "-1MiB", "17GiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
