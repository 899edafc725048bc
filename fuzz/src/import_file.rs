//! Whatever another program's file says, what is imported is a scenario, and an error is one line.

use super::scenario_file;
use knee_load::spec::ParseError;
use knee_scenario::import::{ImportedText, curl_line, har, jmeter, openapi};
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
        Ok((targets, yaml)) => check_imported(&targets, &yaml),
        Err(ParseError(line)) => assert!(!line.contains(char::is_control), "one line: {line:?}"),
    }
}

/// The targets and the file; `None` where there is no such format.
fn import(format: &[u8], file: &[u8]) -> Option<Result<(Vec<ImportedText>, String), ParseError>> {
    let imported = match format {
        b"curl" => curl_line(&String::from_utf8_lossy(file), &mut a_file),
        b"har" => har(file, &[]),
        b"openapi" => openapi(file, None, &mut a_file),
        b"jmeter" => jmeter(file),
        _ => return None,
    };
    Some(imported.map(|imported| (imported.targets.clone(), imported.to_yaml("a file"))))
}

/// The files beside it.
fn a_file(name: &str) -> Result<Vec<u8>, String> {
    if name.ends_with(".json") {
        Ok(b"{\"a\": [1,\n2]}".to_vec())
    } else {
        Err("is missing".to_owned())
    }
}

fn check_imported(targets: &[ImportedText], yaml: &str) {
    // Records have columns that nobody knows here, and an environment may name any server.
    if yaml.contains("\ndata:\n") || targets.iter().any(|target| target.literal().is_none()) {
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
