//! Options after their defaults are settled, as they can be typed again. They go to the report,
//! which makes the line of them that repeats a run.
//!
//! A group of options declares each once: the field that clap fills is the one that is serialized
//! under its option's name.

use knee_core::experiment::sweep::Bound;
use knee_core::threshold::Threshold;
use knee_load::law::Law;
use knee_load::spec::Rate;
use knee_load::time::Nanos;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Values of options by their long names without dashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOptions(pub BTreeMap<String, Value>);

impl ResolvedOptions {
    /// The options of a group that have a value.
    pub fn of(group: &impl Serialize) -> ResolvedOptions {
        let Ok(Value::Object(fields)) = serde_json::to_value(group) else {
            return ResolvedOptions::default();
        };
        let has_value = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        let given = fields.into_iter().filter(|(_, value)| has_value(value));
        ResolvedOptions(given.collect())
    }

    /// Adds an option.
    pub fn put(&mut self, option: &str, value: impl Into<Value>) {
        self.0.insert(option.to_string(), value.into());
    }

    /// Removes an option.
    pub fn leave_out(&mut self, option: &str) {
        self.0.remove(option);
    }
}

/// A value of an option.
pub trait Typed {
    /// The value as it can be typed again; null for one that is left out.
    fn typed(&self) -> Value;
}

/// Serializes a field as its option is typed.
pub fn typed<T: Typed, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.typed().serialize(serializer)
}

/// Serializes a field that is typed as it is displayed.
pub fn displayed<T: ToString, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(T::to_string).serialize(serializer)
}

/// Serializes a list as one value with commas.
pub fn joined<T: ToString, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let words: Vec<String> = list.iter().map(T::to_string).collect();
    (!words.is_empty()).then(|| words.join(",")).serialize(serializer)
}

impl<T: Typed> Typed for Option<T> {
    fn typed(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::typed)
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn typed(&self) -> Value {
        self.iter().map(T::typed).collect()
    }
}

impl Typed for Nanos {
    fn typed(&self) -> Value {
        self.exactly().into()
    }
}

impl Typed for Rate {
    fn typed(&self) -> Value {
        self.exactly().into()
    }
}

impl Typed for Threshold {
    fn typed(&self) -> Value {
        self.to_string().into()
    }
}

impl Typed for Bound {
    fn typed(&self) -> Value {
        Bound::typed(self).into()
    }
}

impl Typed for Law {
    /// `0`, `fixed(10ms)`, `exp(10ms)`, `uniform(5ms,15ms)`, `lognormal(10ms,0.5)`.
    fn typed(&self) -> Value {
        match self {
            Law::Fixed(Nanos::ZERO) => "0".into(),
            Law::Fixed(t) => format!("fixed({})", t.exactly()).into(),
            Law::Exp(mean) => format!("exp({})", mean.exactly()).into(),
            Law::Uniform(lo, hi) => format!("uniform({},{})", lo.exactly(), hi.exactly()).into(),
            Law::LogNormal(median, sigma) => {
                format!("lognormal({},{sigma})", median.exactly()).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::spec::{parse_duration, parse_law, parse_rate};

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
        for text in ["0", "fixed(10ms)", "exp(100us)", "uniform(5ms,15ms)", "lognormal(10ms,0.5)"] {
            assert_eq!(parse_law(text).unwrap().typed(), text);
        }
    }
}
