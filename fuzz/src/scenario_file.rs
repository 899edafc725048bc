//! No file becomes a scenario whose plan does not fit its requests, and errors are one line with a
//! place.

use knee_load::session::Instruction;
use knee_load::spec::Part;
use knee_scenario::{Scenario, ScenarioInputs, parse_scenario};

/// Any bytes.
pub fn check(data: &[u8]) {
    match parse_scenario(data, "f", &mut Folder) {
        Ok(scenario) => check_scenario(&scenario),
        Err(error) => {
            let line = error.0;
            assert!(!line.chars().any(char::is_control), "one line: {line:?}");
            let mut parts = line.splitn(4, ':').skip(1);
            for _ in 0..2 {
                let number: usize = parts.next().expect("a place").parse().expect("a number");
                assert!(number > 0, "{line}");
            }
        }
    }
}

/// A folder with one file of each kind, and an environment in which short names are set.
struct Folder;

impl ScenarioInputs for Folder {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        let is_inside = !name.starts_with('/') && name.split('/').all(|part| part != "..");
        assert!(is_inside, "{name:?}");
        match name.rsplit('.').next() {
            Some("csv") => Ok(b"name,password\na,b\n".to_vec()),
            Some("jsonl") => Ok(b"{\"name\":\"a\"}\n".to_vec()),
            Some("txt") => Ok(name.as_bytes().to_vec()),
            _ => Err("cannot be read: no such file".to_owned()),
        }
    }

    fn program(&mut self, name: &str) -> Result<(String, String), String> {
        let is_inside = !name.starts_with('/') && name.split('/').all(|part| part != "..");
        assert!(is_inside, "{name:?}");
        if name.ends_with(".py") {
            Ok((format!("/scenario/{name}"), "/scenario".to_owned()))
        } else {
            Err("cannot be started: no such file or directory".to_owned())
        }
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        (name.len() < 5).then(|| "value\"\r\n".to_owned())
    }
}

fn check_scenario(scenario: &Scenario) {
    let Scenario { requests, plan, .. } = scenario;
    assert_eq!(requests.len(), plan.requests.len());
    for (request, step) in requests.iter().zip(&plan.requests) {
        assert_eq!(request.holes.len(), step.fills.len(), "{}", step.name);
        let order: Vec<_> = request.holes.iter().map(|h| (h.part, h.at)).collect();
        assert!(order.is_sorted(), "{order:?}");
        for hole in &request.holes {
            let at = hole.at as usize;
            let is_within = match hole.part {
                Part::Path => request.path.is_char_boundary(at),
                Part::Header(n) => request.headers[usize::from(n)].1.is_char_boundary(at),
                Part::Body => at <= request.body.len(),
            };
            assert!(is_within, "{hole:?} of {}", step.name);
        }
        let texts = request.headers.iter().map(|(_, value)| value);
        for text in texts.chain([&request.path, &request.method]) {
            assert!(!text.contains(['\r', '\n', '\0']), "{text:?}");
        }
        let is_there = |number: u32| (number as usize) < requests.len();
        assert!(step.redirected.is_none_or(|to| is_there(to.same) && is_there(to.get)));
        assert!(usize::from(step.kind) < plan.kinds.len());
    }
    for kind in &plan.kinds {
        let end = kind.program.len() as u32;
        for step in &kind.program {
            match step {
                Instruction::Request(number) => assert!((*number as usize) < requests.len()),
                Instruction::Begin(repetition) => {
                    assert!(usize::from(*repetition) < kind.repetitions.len());
                }
                Instruction::Pass { repetition, end: to } => {
                    assert!(usize::from(*repetition) < kind.repetitions.len() && *to <= end);
                }
                Instruction::Jump(to) | Instruction::Join(to) => assert!(*to <= end),
                Instruction::Fork(begins) => assert!(begins.iter().all(|to| *to < end)),
                Instruction::Choose(arms) => {
                    assert!(arms.iter().all(|(sum, to)| *sum > 0 && *to < end));
                }
                Instruction::Set { variable, .. } => {
                    assert!(usize::from(*variable) < kind.variables.len());
                }
                Instruction::Enter(group) | Instruction::Leave(group) => {
                    assert!(usize::from(*group) < plan.groups.len());
                }
                Instruction::Unless { to, .. } => assert!(*to <= end),
                Instruction::Think(_) => {}
            }
        }
        assert!(kind.data.iter().all(|&set| usize::from(set) < plan.data.len()));
    }
}
