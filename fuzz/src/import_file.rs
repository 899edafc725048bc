//! Whatever another program's file says, what is imported is a scenario, and an error is one line.

use super::scenario_file;
use knee_load::spec::ParseError;
use knee_scenario::import::{Imported, curl_line, har, jmeter, openapi, vegeta};
use knee_scenario::{ScenarioInputs, parse_scenario};

/// The first line names the format, the rest is the file.
pub fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (format, file) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let Some(imported) = import(format, file) else {
        return;
    };
    match imported {
        Ok(imported) => check_imported(&imported),
        Err(ParseError(line)) => assert!(!line.contains(char::is_control), "one line: {line:?}"),
    }
}

fn import(format: &[u8], file: &[u8]) -> Option<Result<Imported, ParseError>> {
    Some(match format {
        b"curl" => curl_line(&String::from_utf8_lossy(file), &mut a_file),
        b"har" => har(file, &[]),
        b"openapi" => openapi(file, None, &mut a_file),
        b"vegeta" => vegeta(file, &mut a_file),
        b"jmeter" => jmeter(file),
        _ => return None,
    })
}

/// The files beside it.
fn a_file(name: &str) -> Result<Vec<u8>, String> {
    if name.ends_with(".json") {
        Ok(b"{\"a\": [1,\n2]}".to_vec())
    } else {
        Err("is missing".to_owned())
    }
}

fn check_imported(imported: &Imported) {
    let yaml = imported.to_yaml("a file");
    // Records have columns that nobody knows here, and an environment may name any server.
    if !imported.data.is_empty() || imported.targets.iter().any(|target| target.literal().is_none())
    {
        return;
    }
    if let Err(error) = parse_scenario(yaml.as_bytes(), "f", &mut Alone) {
        panic!("{}: {yaml:?}", error.0);
    }
    scenario_file::check(yaml.as_bytes());
}

/// The files and the environment that a script may need.
struct Alone;

impl ScenarioInputs for Alone {
    fn file(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"bytes".to_vec())
    }

    fn program(&mut self, _: &str) -> Result<(String, String), String> {
        Err("cannot be started: there is none".to_owned())
    }

    fn variable(&mut self, _: &str) -> Option<String> {
        Some("1".to_owned())
    }
}
