//! Scenario files and what becomes of them.

mod accepted;
mod flow;
mod mutated;
mod places;
mod programs;
mod refused;

use super::{Scenario, ScenarioInputs, parse_scenario};

/// A folder with a few files, and an environment with a few variables.
pub(super) struct Folder;

impl ScenarioInputs for Folder {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let text = match name {
            "users.csv" => "name,password\nann,a1\n\"bob, jr\",\"b\"\"2\"\n",
            "users.jsonl" => "{\"name\":\"ann\",\"age\":7}\n",
            "ragged.csv" => "a,b\n1\n",
            "empty.csv" => "",
            "header.csv" => "a,b\n",
            "bad.jsonl" => "{}\n[",
            "order.xml" => "<order/>",
            "latin1.csv" => return Ok(vec![b'a', b'\n', 0xe9]),
            _ => return Err("cannot be read: No such file or directory".to_owned()),
        };
        Ok(text.as_bytes().to_vec())
    }

    fn program(&mut self, name: &str) -> Result<(String, String), String> {
        match name.trim_start_matches("./") {
            name @ ("sign.py" | "nonce.sh") => Ok((format!("/shop/{name}"), "/shop".to_owned())),
            _ => Err("cannot be started: no such file or directory".to_owned()),
        }
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        match name {
            "HOST" => Some("shop.test".to_owned()),
            "SECRET" => Some("s3\"cret".to_owned()),
            _ => None,
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Scenario, String> {
    parse_scenario(text.as_bytes(), "shop.yaml", &mut Folder).map_err(|e| e.0)
}

/// A scenario with one session that has these steps, each a line of YAML in flow style.
pub(super) fn with_steps(steps: &str) -> String {
    format!(
        "target: http://h\nsessions:\n  s:\n    data: users\n    steps:\n{steps}\ndata: {{users: \
            users.csv}}\n"
    )
}

/// That of the specification, its threshold being of a step that there is.
pub(super) const SHOP: &str = include_str!("shop.yaml");
