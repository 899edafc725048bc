//! Numbers and lists as a person reads them, for the sentences of findings and conclusions.

use crate::spec::Level;
use crate::time::Nanos;

/// `88,415`, `130`, `12.5`, `0.033`: thousands apart, at least three significant digits.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    let digits = match value.abs() {
        v if v >= 100.0 || v == v.round() => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{:.digits$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// A ratio: `1.7`, `7`, `180`: two significant digits.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "unknown".into();
    }
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    number((value / unit).round() * unit)
}

/// `2.8 %`, `0.03 %`: two significant digits below ten, whole above.
pub fn percent(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 10.0 => 0,
        v if v >= 1.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} %")
}

/// A length of time given in nanoseconds.
pub fn time(ns: f64) -> String {
    Nanos(ns.max(0.0).round() as u64).to_string()
}

/// `1 user`, `300 users`, `6.4 users`.
pub fn users(n: f64) -> String {
    let n = number(n);
    let noun = if n == "1" { "user" } else { "users" };
    format!("{n} {noun}")
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// The levels in words: `1, 2 and 16 users`, `5,000/s`; of many only the first and the last.
pub fn levels(levels: &[Level]) -> String {
    let names: Vec<String> = levels.iter().map(|l| number(value(*l))).collect();
    let text = match names.as_slice() {
        [first, .., last] if names.len() > 6 => {
            format!("{} levels from {first} to {last}", names.len())
        }
        names => list(names),
    };
    match levels {
        [] => text,
        [Level::Vusers(1)] => text + " user",
        [Level::Vusers(_), ..] => text + " users",
        [Level::RatePerS(_), ..] => text + "/s",
    }
}

/// The number that a level stands for: users, or operations per second.
pub fn value(level: Level) -> f64 {
    match level {
        Level::Vusers(n) => f64::from(n),
        Level::RatePerS(rate) => rate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded() {
        for (value, text) in [
            (88_415.3, "88,415"),
            (1_000_000.0, "1,000,000"),
            (130.0, "130"),
            (48.235, "48.2"),
            (6.0, "6"),
            (1.5, "1.5"),
            (0.0333, "0.033"),
            (-1_234.0, "-1,234"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn ratios_have_two_digits() {
        for (value, text) in [
            (116.7, "120"),
            (7.0, "7"),
            (1.742, "1.7"),
            (35_111.0, "35,000"),
        ] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn lists_end_in_and() {
        let level = |n| Level::Vusers(n);
        assert_eq!(levels(&[level(1)]), "1 user");
        assert_eq!(users(1.003), "1 user");
        assert_eq!(levels(&[level(200), level(300)]), "200 and 300 users");
        assert_eq!(levels(&[Level::RatePerS(5_000.0)]), "5,000/s");
        let many: Vec<Level> = (1..=9).map(level).collect();
        assert_eq!(levels(&many), "9 levels from 1 to 9 users");
    }
}
