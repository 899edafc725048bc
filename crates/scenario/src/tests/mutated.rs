//! Files of chance: never a panic, and always one line with a place.

use super::super::{EXAMPLE, parse_scenario};
use super::{Folder, SHOP};
use knee_load::rng::{self, Rng};
use proptest::prelude::*;

fn check(bytes: &[u8]) -> Result<(), String> {
    match parse_scenario(bytes, "f", &mut Folder) {
        Ok(scenario) => {
            let requests = scenario.requests.len();
            if requests == 0 || requests != scenario.plan.requests.len() {
                return Err(format!("{requests} requests"));
            }
            Ok(())
        }
        Err(wrong) => {
            let line = wrong.0;
            let mut parts = line.splitn(4, ':');
            let mut number = || parts.next()?.parse::<usize>().ok().filter(|&n| n > 0);
            let is_placed = line.starts_with("f:")
                && {
                    number();
                    true
                }
                && number().is_some()
                && number().is_some();
            if is_placed && !line.chars().any(char::is_control) {
                Ok(())
            } else {
                Err(format!("{line:?}"))
            }
        }
    }
}

/// Tokens that mean something to YAML, to templates or to the reader.
const TOKENS: [&str; 40] = [
    "{", "}", "[", "]", ":", ", ", "- ", "\"", "'", "\n", "  ", "\t", "#", "&a ", "*a", "!!str ",
    "|\n", ">\n", "? ", "---\n", "...", "${", "}", "$${", "(", ")", "~", "null", "-1", "1e9", "0x",
    "<<", "\u{feff}", "\0", "é", "\u{2028}", "get: /", "steps:", "%", "\\u0000",
];

/// A file with one to six changes.
fn mutated(text: &str, rng: &mut Rng) -> Vec<u8> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let below = |n: usize, rng: &mut Rng| (rng::unit(rng) * n as f64) as usize;
    let mut bytes_changed = 0;
    for _ in 0..=below(6, rng) {
        let (at, other) = (below(lines.len(), rng), below(lines.len(), rng));
        match below(7, rng) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.swap(at, other),
            2 => lines.insert(at, lines[other].clone()),
            3 => lines[at].insert_str(0, &" ".repeat(below(5, rng))),
            4 | 5 => {
                let line = &mut lines[at];
                let mut place = below(line.len() + 1, rng);
                while !line.is_char_boundary(place) {
                    place -= 1;
                }
                line.insert_str(place, TOKENS[below(TOKENS.len(), rng)]);
            }
            _ => bytes_changed += 1,
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    for _ in 0..bytes_changed {
        let at = below(bytes.len(), rng);
        bytes[at] ^= 1 << below(8, rng);
    }
    if below(8, rng) == 0 {
        bytes.truncate(below(bytes.len() + 1, rng));
    }
    bytes
}

#[test]
fn mutations_of_good_files() {
    let mut rng = rng::stream(0x5CE4, 0);
    for text in [SHOP, EXAMPLE] {
        for _ in 0..2_000 {
            let bytes = mutated(text, &mut rng);
            if let Err(wrong) = check(&bytes) {
                panic!("{wrong} of b\"{}\"", bytes.escape_ascii());
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(check(&bytes), Ok(()));
    }

    #[test]
    fn any_tokens(tokens in proptest::collection::vec(0..TOKENS.len(), 0..40)) {
        let text: String = tokens.into_iter().map(|t| TOKENS[t]).collect();
        prop_assert_eq!(check(text.as_bytes()), Ok(()));
    }

    /// Whatever stands in a template, a step with it is read or refused at its place.
    #[test]
    fn any_template(text in "[a-z${}()'\", .0-9]{0,40}") {
        let quoted = text.replace('\'', "''");
        let text = format!("target: http://h\nsessions: {{s: {{steps: [{{get: \
            '/${{{quoted}'}}]}}}}");
        prop_assert_eq!(check(text.as_bytes()), Ok(()));
    }
}
