//! Recorded arrivals: `trace(FILE)`.

use crate::failure::Failure;
use crate::input;
use knee_load::arrival::length_of_trace;
use knee_load::spec::parse_duration;
use knee_load::time::Nanos;
use std::sync::Arc;

/// Recorded times of arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedArrivals {
    /// Ascending, from the beginning of the run, at least one.
    pub times: Arc<[Nanos]>,
}

impl RecordedArrivals {
    /// From the beginning of the run to one mean gap after the last arrival.
    pub fn length(&self) -> Nanos {
        length_of_trace(&self.times)
    }
}

/// Reads a file with one time per line, in seconds or with a unit; empty lines and those that begin
/// with `#` are skipped.
pub fn read(path: &str) -> Result<RecordedArrivals, Failure> {
    let whole = input::read_text(path).map_err(|e| Failure::argument("--arrival", e.line))?;
    parse(&whole).map_err(|wrong| Failure::argument("--arrival", format!("{path}: {wrong}")))
}

fn parse(text: &str) -> Result<RecordedArrivals, String> {
    let mut times: Vec<Nanos> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let time = parse_duration(line).map_err(|e| format!("line {number}: {e}"))?;
        if times.last().is_some_and(|&before| time < before) {
            return Err(format!(
                "line {number}: '{line}' is earlier than the line above it; times must ascend"
            ));
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err("contains no time: expected one per line, such as 0.125 or 125ms".to_string());
    }
    Ok(RecordedArrivals { times: times.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::spec::{ArrivalLaw, Rate};

    fn rate(trace: &RecordedArrivals) -> Option<Rate> {
        ArrivalLaw::Trace(Arc::clone(&trace.times)).own_rate()
    }

    #[test]
    fn moments_in_seconds_or_with_a_unit() {
        let trace = parse("# begin\n0\n0.5\n\n1500ms\r\n3s").unwrap();
        let expected = [0, 500, 1_500, 3_000].map(Nanos::from_millis);
        assert_eq!(&trace.times[..], &expected);
        assert_eq!(trace.length(), Nanos::from_secs(4));
        assert_eq!(rate(&trace).unwrap().per_s(), 1.0);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, expected) in [
            ("0\nsoon\n", "line 2: "),
            ("1\n\n0.5", "line 3: '0.5' is earlier than the line above it"),
            ("# nothing\n", "contains no time"),
            ("", "contains no time"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.starts_with(expected), "{text:?}: {wrong}");
        }
    }

    #[test]
    fn a_single_moment_has_a_rate() {
        assert!(rate(&parse("0").unwrap()).is_some());
        assert_eq!(parse("2").unwrap().length(), Nanos::from_secs(4));
    }
}
