//! Small values of `knee latency` and `knee serve latency`.

use crate::args::service_address;
use crate::resolved_options::Typed;
use knee_core::experiment::latency::parse_scenarios;
use knee_load::spec::ParseError;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The port of a latency service, unless another is given.
pub const PORT: u16 = 7008;

/// The host of a service and, unless it is [`PORT`], its port: always `HOST:PORT` afterwards.
pub fn parse_service(text: &str) -> Result<String, ParseError> {
    service_address(text, "knee serve latency", PORT)
}

/// Uploads and downloads of each scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenarios(pub Vec<(u32, u32)>);

impl Typed for Scenarios {
    fn typed(&self) -> Value {
        let each = self.0.iter().map(|(up, down)| format!("{up}/{down}"));
        each.collect::<Vec<_>>().join(",").into()
    }
}

/// Scenarios such as `1/1,4/4`.
pub fn parse_list(text: &str) -> Result<Scenarios, ParseError> {
    parse_scenarios(text).map(Scenarios)
}

/// A share in percent, with or without its sign, as a fraction: `5%` is 0.05.
pub fn parse_tolerance(text: &str) -> Result<f64, ParseError> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent > 0.0 && percent < 100.0 => {
            Ok(percent / 100.0)
        }
        _ => Err(ParseError(format!(
            "'{text}' is not a share above 0 % and below 100 %, such as 5%"
        ))),
    }
}

/// Serializes a share as it is typed: 0.05 is `5%`.
pub fn percent<S: Serializer>(share: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    // Twice a hundred leaves no trace of the binary fraction.
    let percent = share.map(|share| format!("{}%", (share * 1e6).round() / 1e4));
    percent.serialize(serializer)
}

/// Serializes a switch as `on` or `off`.
pub fn switch<S: Serializer>(switch: &Option<bool>, serializer: S) -> Result<S::Ok, S::Error> {
    switch.map(|on| if on { "on" } else { "off" }).serialize(serializer)
}

/// The longest name that a kernel gives a congestion control (TCP_CA_NAME_MAX, less the zero).
const CONTROL_NAME_MAX: usize = 15;

/// The name of a congestion control.
pub fn parse_control(text: &str) -> Result<String, ParseError> {
    let name = text.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > CONTROL_NAME_MAX || !name.chars().all(is_name) {
        return Err(ParseError(format!(
            "'{name}' is no congestion control: give names such as cubic or cubic,bbr"
        )));
    }
    Ok(name.to_owned())
}

/// Code points by their names (IANA, Differentiated Services Field Codepoints). CS0 to CS7 and AF11
/// to AF43 follow a rule and are not listed.
const CODE_POINTS: [(&str, u8); 5] = [("BE", 0), ("DF", 0), ("LE", 1), ("VA", 44), ("EF", 46)];

/// A differentiated services code point: a number from 0 to 63, or a name.
pub fn parse_dscp(text: &str) -> Result<u8, ParseError> {
    let name = text.trim().to_ascii_uppercase();
    let number = name.parse::<u8>().ok().filter(|n| *n < 64);
    let listed = CODE_POINTS.iter().find(|(known, _)| *known == name);
    let digits = |prefix: &str| -> Vec<u32> {
        let rest = name.strip_prefix(prefix).unwrap_or_default();
        let digits: Option<Vec<u32>> = rest.chars().map(|c| c.to_digit(10)).collect();
        digits.unwrap_or_default()
    };
    let ruled = match (digits("CS").as_slice(), digits("AF").as_slice()) {
        // RFC 2474 §4.2.2.2.
        ([class @ 0..=7], _) => Some(class * 8),
        // RFC 2597 §6.
        (_, [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => None,
    };
    let ruled = ruled.map(|n| n as u8);
    number.or(listed.map(|(_, n)| *n)).or(ruled).ok_or_else(|| {
        ParseError(format!(
            "'{text}' is no code point: give 0 to 63, or EF, CS0 to CS7, AF11 to AF43, LE, VA"
        ))
    })
}

/// `on` or `off`.
pub fn parse_switch(text: &str) -> Result<bool, ParseError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(ParseError(format!("'{text}' is neither on nor off"))),
    }
}

/// What stands behind a number of bytes, and how many each is.
const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// An amount of data, at least a byte: `500M`, `10GiB`, `1000000`.
pub fn parse_amount(text: &str) -> Result<u64, ParseError> {
    let wrong = || {
        ParseError(format!("'{text}' is no amount of data: give bytes, such as 500M, 10GB or 4GiB"))
    };
    let stem = text.trim().trim_end_matches('B');
    let found = UNITS.iter().find_map(|(unit, bytes)| Some((stem.strip_suffix(unit)?, *bytes)));
    let (number, unit) = found.unwrap_or((stem, 1));
    let number = number.trim_end().replace('_', "");
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let bytes = number.parse::<f64>().ok().filter(|_| is_plain).map(|n| n * unit as f64);
    match bytes {
        Some(bytes) if (1.0..1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_numbers_and_names() {
        for (text, n) in [
            ("0", 0),
            ("63", 63),
            ("EF", 46),
            ("ef", 46),
            ("CS0", 0),
            ("cs7", 56),
            ("AF11", 10),
            ("AF43", 38),
            ("LE", 1),
            ("VA", 44),
            ("BE", 0),
        ] {
            assert_eq!(parse_dscp(text), Ok(n), "{text}");
        }
        for text in ["", "64", "-1", "CS8", "AF51", "AF14", "AF1", "CS", "EFF", "1.5"] {
            assert!(parse_dscp(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_have_units() {
        for (text, n) in [
            ("1", 1),
            ("1_000", 1_000),
            ("500M", 500_000_000),
            ("1.5k", 1_500),
            ("10GB", 10_000_000_000),
            ("4 GiB", 4 << 30),
            ("64KiB", 65_536),
            ("7B", 7),
        ] {
            assert_eq!(parse_amount(text), Ok(n), "{text}");
        }
        for text in ["", "0", "M", "-5M", "5X", "1e3", "5MM", "0.1", "99999999T", "infM"] {
            assert!(parse_amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_controls_and_switches() {
        assert_eq!(parse_tolerance("5"), Ok(0.05));
        assert_eq!(parse_tolerance("2.5 %"), Ok(0.025));
        for text in ["0", "100%", "-1", "", "%", "inf", "nan"] {
            assert!(parse_tolerance(text).is_err(), "{text}");
        }
        assert_eq!(parse_control(" cubic").as_deref(), Ok("cubic"));
        for text in ["", "cubic bbr", "a_name_that_is_too_long", "../bbr"] {
            assert!(parse_control(text).is_err(), "{text}");
        }
        assert_eq!((parse_switch("on"), parse_switch("off")), (Ok(true), Ok(false)));
        assert!(parse_switch("yes").is_err());
    }
}
