//! The small languages of the command line: durations, rates, laws.

use super::Rate;
use crate::law::Law;
use crate::time::Nanos;
use std::fmt;

/// What is wrong with a value and what would be right, in one line without the option's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// `30s`, `2m`, `1h`, `500ms`, `20us` (or `µs`), `100ns`, `1.5s`, `1/130s`; a bare number is
/// seconds. Rounded to the nearest nanosecond, 0 to one year (8760h).
///
/// # Errors
/// Not a number, an unknown unit, negative, over a year, or above zero but below half a nanosecond.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseError> {
    let wrong = |what: &str| {
        error(format!(
            "{} {what}: give a number and a unit (ns, us, ms, s, m, h), such as 500ms or 1.5s",
            quoted(text)
        ))
    };
    let trimmed = text.trim();
    let at = trimmed.find(|c: char| c.is_alphabetic());
    let (number, unit) = trimmed.split_at(at.unwrap_or(trimmed.len()));
    let unit_ns: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => HOUR_NS,
        _ => return Err(wrong("is not a duration")),
    };
    let (above, below) = number.split_once('/').unwrap_or((number, "1"));
    let (Some(above), Some(below)) = (Decimal::parse(above), Decimal::parse(below)) else {
        return Err(wrong("is not a duration"));
    };
    if below.digits == 0 {
        return Err(wrong("divides by zero"));
    }
    // (a / 10^p) / (b / 10^q) = a·10^q / (b·10^p); every factor is below 10^18.
    let dividend = above.digits.checked_mul(below.scale);
    let dividend = dividend.and_then(|d| d.checked_mul(unit_ns));
    let divisor = below.digits * above.scale;
    let ns = dividend.map_or(u128::MAX, |d| d.saturating_add(divisor / 2) / divisor);
    match u64::try_from(ns) {
        Ok(0) if above.digits > 0 => Err(wrong("is shorter than a nanosecond")),
        Ok(ns) if u128::from(ns) <= 8760 * HOUR_NS => Ok(Nanos(ns)),
        _ => Err(wrong("is longer than a year")),
    }
}

/// `1000`, `1000/s`, `90/m`, `12/h`, `0.5`, `2.5k`, `1M`: never zero, at most one per nanosecond.
/// The ratio is exact.
///
/// # Errors
/// Not a number, an unknown unit, zero, negative, too large, or with too many digits.
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    let wrong = |what: &str| {
        let shown = quoted(text);
        error(format!(
            "{shown} {what}: give operations per second above 0, such as 1000, 2.5k, 90/m or 0.5"
        ))
    };
    let (number, unit) = text.trim().split_once('/').unwrap_or((text.trim(), "s"));
    let period_ns = match unit.trim() {
        "s" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => HOUR_NS,
        _ => return Err(wrong("is not a rate")),
    };
    let number = number.trim();
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => match number.strip_suffix('M') {
            Some(millions) => (millions, 1_000_000),
            None => (number, 1),
        },
    };
    let decimal = Decimal::parse(number).ok_or_else(|| wrong("is not a rate"))?;
    if decimal.digits == 0 {
        return Err(wrong("would offer nothing"));
    }
    let operations = decimal.digits * factor;
    let common = gcd(operations, decimal.scale);
    let (operations, period) = (operations / common, decimal.scale / common * period_ns);
    if operations > period {
        return Err(wrong("is more than one per nanosecond"));
    }
    let (Ok(operations), Ok(period)) = (u64::try_from(operations), u64::try_from(period)) else {
        return Err(wrong("has too many digits"));
    };
    Rate::new(operations, Nanos(period)).ok_or_else(|| wrong("would offer nothing"))
}

/// The most levels of a list.
pub(crate) const LEVELS_MAX: usize = 1_000;

/// The parts of a list of levels, which commas separate.
///
/// # Errors
/// There are more than `LEVELS_MAX`.
pub fn parse_list(text: &str) -> Result<impl Iterator<Item = &str>, ParseError> {
    match text.split(',').count() {
        0..=LEVELS_MAX => Ok(text.split(',')),
        n => Err(ParseError(format!("{n} levels are too many: give at most {LEVELS_MAX}"))),
    }
}

/// Several rates, separated by commas, ascending or not; at least one.
///
/// # Errors
/// The first of them that [`parse_rate`] refuses, or more than `LEVELS_MAX`.
pub fn parse_rates(text: &str) -> Result<Vec<Rate>, ParseError> {
    parse_list(text)?.map(parse_rate).collect()
}

/// `0`, `fixed(10ms)`, `exp(10ms)`, `uniform(5ms,15ms)`, `lognormal(10ms,0.5)` (median and σ of the
/// logarithm, 0 to 5); a bare duration is fixed.
///
/// # Errors
/// An unknown law, the wrong number of arguments, or an argument out of its range.
pub fn parse_law(text: &str) -> Result<Law, ParseError> {
    let wrong = |what: &str| {
        error(format!(
            "{} {what}: give a duration such as 10ms, or fixed(T), exp(T), uniform(FROM,TO) or \
             lognormal(MEDIAN,SIGMA)",
            quoted(text)
        ))
    };
    let Some(call) = Call::parse(text) else {
        return parse_duration(text)
            .map(Law::Fixed)
            .map_err(|e| wrong(if e.0.contains("year") { "is too long" } else { "is no law" }));
    };
    match (call.name, call.arguments.as_slice()) {
        ("fixed", [t]) => Ok(Law::Fixed(parse_duration(t)?)),
        ("exp", [mean]) => Ok(Law::Exp(parse_duration(mean)?)),
        ("uniform", [from, to]) => {
            let (from, to) = (parse_duration(from)?, parse_duration(to)?);
            if from > to {
                return Err(wrong("has its ends the wrong way round"));
            }
            Ok(Law::Uniform(from, to))
        }
        ("lognormal", [median, sigma]) => {
            let median = parse_duration(median)?;
            let sigma = parse_number(sigma).filter(|s| (0.0..=5.0).contains(s));
            let sigma = sigma.ok_or_else(|| wrong("needs a sigma from 0 to 5"))?;
            if median == Nanos::ZERO {
                return Err(wrong("needs a median above 0"));
            }
            Ok(Law::LogNormal(median, sigma))
        }
        ("fixed" | "exp" | "uniform" | "lognormal", _) => {
            Err(wrong("has the wrong number of arguments"))
        }
        _ => Err(wrong("is no law")),
    }
}

/// One second.
const SECOND_NS: u128 = 1_000_000_000;
/// One hour.
pub(crate) const HOUR_NS: u128 = 3600 * SECOND_NS;

/// A decimal number without sign: `digits / scale`, both below 10^18.
struct Decimal {
    digits: u128,
    /// A power of ten.
    scale: u128,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = match text.trim().split_once('.') {
            Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
            None => (text.trim(), ""),
        };
        let all = format!("{whole}{fraction}");
        let numeric = all.bytes().all(|b| b.is_ascii_digit());
        let some = text.bytes().any(|b| b.is_ascii_digit());
        if !(numeric && some && all.len() < 18) {
            return None;
        }
        Some(Decimal {
            digits: format!("0{all}").parse().ok()?,
            scale: 10u128.pow(fraction.len() as u32),
        })
    }
}

/// `name(argument,argument,…)`.
pub struct Call<'a> {
    /// The name.
    pub name: &'a str,
    /// What stands between the brackets, at each comma apart.
    pub arguments: Vec<&'a str>,
}

impl Call<'_> {
    /// Reads a call; `None` where the text is none.
    pub fn parse(text: &str) -> Option<Call<'_>> {
        let (name, rest) = text.trim().split_once('(')?;
        Some(Call {
            name: name.trim(),
            arguments: rest.strip_suffix(')')?.split(',').map(str::trim).collect(),
        })
    }
}

pub(crate) fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite())
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The error that this line says.
pub fn error(line: String) -> ParseError {
    ParseError(line)
}

/// The text in quotes, on one line and not long, whatever it holds.
pub fn quoted(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    match escaped.char_indices().nth(40) {
        Some((at, _)) => format!("'{}…'", &escaped[..at]),
        None => format!("'{escaped}'"),
    }
}

#[cfg(test)]
mod tests;
