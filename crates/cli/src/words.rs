//! Resolved options in the words of the command line, for the report: what is told can be typed.

use knee_core::law::Law;
use knee_core::spec::{Pause, PauseKind};
use knee_core::time::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;

/// Options by their long names without dashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words(pub BTreeMap<String, Value>);

impl Words {
    /// Tells an option.
    pub fn put(&mut self, option: &str, value: impl Into<Value>) {
        self.0.insert(option.to_string(), value.into());
    }

    /// Tells an option that has a value; one without is left out.
    pub fn put_some(&mut self, option: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(option, value);
        }
    }

    /// Takes an option back.
    pub fn leave_out(&mut self, option: &str) {
        self.0.remove(option);
    }

    /// Tells an option that may be repeated; none at all is left out.
    pub fn put_list(&mut self, option: &str, values: impl IntoIterator<Item = String>) {
        let list: Vec<Value> = values.into_iter().map(Value::from).collect();
        if !list.is_empty() {
            self.put(option, list);
        }
    }
}

/// A length of time as people say it: `0.2 s`, `65 s`, `3.5 min`.
pub fn about(time: Nanos) -> String {
    match time.as_secs_f64() {
        s if s < 10.0 => format!("{} s", (s * 10.0).ceil() / 10.0),
        s if s < 100.0 => format!("{s:.0} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// A law: `0`, `fixed(10ms)`, `exp(10ms)`, `uniform(5ms,15ms)`, `lognormal(10ms,0.5)`.
pub fn law(law: Law) -> String {
    match law {
        Law::Fixed(Nanos::ZERO) => "0".to_string(),
        Law::Fixed(t) => format!("fixed({})", t.exactly()),
        Law::Exp(mean) => format!("exp({})", mean.exactly()),
        Law::Uniform(lo, hi) => format!("uniform({},{})", lo.exactly(), hi.exactly()),
        Law::LogNormal(median, sigma) => format!("lognormal({},{sigma})", median.exactly()),
    }
}

/// A pause under the name of its option.
pub fn pause(pause: &Pause, words: &mut Words) {
    let option = match pause.kind {
        PauseKind::Think => "think",
        PauseKind::Cycle => "cycle",
    };
    words.put(option, law(pause.law));
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::spec::{parse_duration, parse_law, parse_rate};

    #[test]
    fn durations_are_exact_and_can_be_typed_again() {
        for (ns, text) in [
            (0, "0s"),
            (10_000_000_000, "10s"),
            (1_500_000_000, "1500ms"),
            (20_000, "20us"),
            (1_234_567, "1234567ns"),
        ] {
            assert_eq!(Nanos(ns).exactly(), text);
            assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn rates_can_be_typed_again() {
        for (typed, told) in [
            ("1000", "1000/s"),
            ("0.5", "0.5/s"),
            ("2.5k", "2500/s"),
            ("90/m", "90/m"),
            ("12/h", "12/h"),
        ] {
            let parsed = parse_rate(typed).unwrap();
            assert_eq!(parsed.exactly(), told, "{typed}");
            assert_eq!(parse_rate(told).unwrap().per_s(), parsed.per_s(), "{typed}");
        }
    }

    #[test]
    fn laws_can_be_typed_again() {
        for text in [
            "0",
            "fixed(10ms)",
            "exp(100us)",
            "uniform(5ms,15ms)",
            "lognormal(10ms,0.5)",
        ] {
            assert_eq!(law(parse_law(text).unwrap()), text);
        }
    }
}
