//! Numbers for people: significant digits, commas between thousands.

/// A figure measured or computed: `88,420`, `130`, `48.24`, `0.0333`: four significant digits, as
/// in the tables, idle zeros dropped.
pub fn number(value: f64) -> String {
    significant(value, 4)
}

/// An estimate, such as a knee: `48.2`, `1,230`: three significant digits, as in the tables.
pub fn estimate(value: f64) -> String {
    significant(value, 3)
}

/// What was asked for or counted, so that no digit of its whole part is idle: `123,456`; any
/// other figure as [`number`] writes it.
pub fn exact(value: f64) -> String {
    if value.is_finite() && (value == value.round() || value.abs() >= 1_000.0) {
        return grouped(&format!("{value:.0}"));
    }
    number(value)
}

/// Rounded to `digits` significant digits, in plain decimals, idle zeros dropped.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.1e}");
    }
    grouped(trimmed(&digits_of(value, digits)))
}

/// Rounded to `digits` significant digits, in plain decimals; idle zeros stay.
pub fn digits_of(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    // Through the exponent form, since rounding may carry into another magnitude (9.9996 -> 10).
    let scientific = format!("{value:.*e}", digits - 1);
    let (_, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let magnitude: i32 = exponent.parse().unwrap_or(0);
    let rounded: f64 = scientific.parse().unwrap_or(value);
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    format!("{rounded:.decimals$}")
}

/// With commas between thousands of the whole part.
pub fn grouped(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Without zeros (and a point) at the end of a fraction.
pub fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
