//! Numbers for people: at most four significant digits, thousands separated, always a unit.
//!
//! Number and unit are tied by a no-break space, so that no line is broken between them; the page
//! writes it as a plain one. The digits of a figure are decided where the sentences of findings and
//! answers are made (`knee_core::words`), so that all show the same ones. Columns of tables keep
//! idle zeros.

use knee_core::trial::figure::Figure;
use knee_core::words as shared;

/// The sign of a missing value.
pub(crate) const MISSING: &str = "–";

/// The no-break space between a number and its unit.
pub(crate) const TIE: char = '\u{a0}';

/// An exact count: `1,234,567`.
pub(crate) fn count(n: u64) -> String {
    shared::grouped(&n.to_string())
}

/// A value as text, a dash if it is not finite.
fn finite(value: f64, show: impl Fn(f64) -> String) -> String {
    known(Some(value).filter(|value| value.is_finite()), show)
}

/// Any number, rounded to four significant digits, idle zeros dropped: `8,571`, `0.25`, `88,320`.
pub(crate) fn number(value: f64) -> String {
    finite(value, shared::number)
}

/// Operations per second: `8,571/s`.
pub(crate) fn rate(per_s: f64) -> String {
    finite(per_s, |per_s| format!("{}/s", shared::number(per_s)))
}

/// A rate as it was asked for, or any other figure, without its unit; a whole one is exact:
/// `12,345`.
pub(crate) fn whole_or_rounded(per_s: f64) -> String {
    if per_s.fract() == 0.0 && per_s.abs() < 1e15 {
        return signed_count(per_s as i64);
    }
    number(per_s)
}

/// A share: `0.03 %`, `12.3 %`, `100 %`.
pub(crate) fn percent(value: f64) -> String {
    finite(value, |value| format!("{}{TIE}%", percent_cell(value)))
}

/// A share in a sentence or on an axis, idle zeros dropped: `0.5 %`, `20 %`.
pub(crate) fn percent_short(value: f64) -> String {
    finite(value, |value| tied(&shared::percent(value)))
}

/// A share in a column whose title has the unit: the digits of [`percent`].
pub(crate) fn percent_cell(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { fixed(value, shared::percent_decimals(value)) }
}

/// A number and its unit, held together.
fn tied(text: &str) -> String {
    text.replace(' ', &TIE.to_string())
}

/// A length of time with three digits, in a column with others: `1.50 ms`, `12.3 µs`, `730 ns`.
pub(crate) fn time(ns: u64) -> String {
    let (scale, unit) = time_unit(ns);
    format!("{}{TIE}{unit}", time_in(ns, scale))
}

/// A length of time with five digits, for precise means: `1.0007 ms`.
pub(crate) fn time_to_5_digits(ns: u64) -> String {
    time_with(ns, 5)
}

/// Half a confidence interval of a length of time, two digits: `1.4 µs`, `640 ns`.
pub(crate) fn time_uncertainty(ns: u64) -> String {
    time_with(ns, 2)
}

fn time_with(ns: u64, digits: usize) -> String {
    let (scale, unit) = time_unit(ns);
    let text = match scale {
        1.0 => ns.to_string(),
        _ => shared::grouped(&shared::digits_of(ns as f64 / scale, digits)),
    };
    format!("{text}{TIE}{unit}")
}

/// A length of time in a sentence or on an axis, idle zeros dropped: `1.5 ms`, `10 s`.
pub(crate) fn time_short(ns: u64) -> String {
    tied(&shared::time(ns as f64))
}

/// The figure, or its range; `write` formats one value.
pub(crate) fn stated<T: Copy + Default + PartialEq>(
    figure: Figure<T>,
    write: impl Fn(T) -> String,
) -> String {
    match figure {
        Figure::Exactly(value) => write(value),
        Figure::Within(least, Some(most)) if least == T::default() => {
            format!("at most {}", write(most))
        }
        Figure::Within(least, Some(most)) => format!("{}–{}", write(least), write(most)),
        Figure::Within(least, None) => format!("≥ {}", write(least)),
        Figure::Absent => known(None, write),
    }
}

/// A figure, or a dash if it is unknown.
pub(crate) fn known<T>(figure: Option<T>, show: impl Fn(T) -> String) -> String {
    figure.map_or_else(|| MISSING.to_string(), show)
}

/// An interval of times in one unit: `0.98–1.02 ms`.
pub(crate) fn time_interval([lo, hi]: [u64; 2]) -> String {
    let (scale, unit) = time_unit(hi);
    format!("{}–{}{TIE}{unit}", time_in(lo, scale), time_in(hi, scale))
}

/// An amount of data in decimal units: `1.2 MB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if n < 1_000 {
        return format!("{n}{TIE}B");
    }
    let mut value = n as f64 / 1e3;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{}{TIE}{}", shared::trimmed(&shared::digits_of(value, 3)), UNITS[unit])
}

/// A named figure (evidence, parameters) whose unit is in its name. `_ns`, `_per_s`, `_percent` or
/// `_bytes`, at its end or before another word, becomes the unit.
pub(crate) fn named(name: &str, value: f64) -> String {
    type Show = fn(f64) -> String;
    let units: [(&str, Show); 4] = [
        ("_ns", |ns| time_short(ns.max(0.0) as u64)),
        ("_per_s", rate),
        ("_percent", percent_short),
        ("_bytes", |n| bytes(n.max(0.0) as u64)),
    ];
    let mut units = units.into_iter();
    let known = units.find_map(|(unit, show)| Some((without_unit(name, unit)?, show)));
    let (stem, show) = known.unwrap_or((name.to_owned(), whole_or_rounded as Show));
    format!("{}{TIE}={TIE}{}", words(&stem), show(value))
}

/// A name without its unit; `None` if it has another or none.
fn without_unit(name: &str, unit: &str) -> Option<String> {
    if let Some(stem) = name.strip_suffix(unit) {
        return Some(stem.to_string());
    }
    let (before, after) = name.split_once(&format!("{unit}_"))?;
    Some(format!("{before}_{after}"))
}

/// A figure that is itself an estimate, such as a knee: three significant digits.
pub(crate) fn estimate(value: f64) -> String {
    finite(value, shared::estimate)
}

/// A number with this many decimals, without unit, for columns of figures of one magnitude.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    finite(value, |value| shared::grouped(&format!("{value:.decimals$}")))
}

/// As many decimals as give a figure of this size six digits.
pub(crate) fn decimals_of_6_digits(value: f64) -> usize {
    (5.0 - value.max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize
}

/// An exact count that may be negative.
pub(crate) fn signed_count(n: i64) -> String {
    shared::grouped(&n.to_string())
}

/// A coefficient of determination with six decimals, never rounded up to a perfection that it
/// lacks: `0.999871`.
pub(crate) fn r_squared(value: f64) -> String {
    fixed((value * 1e6).floor() / 1e6, 6)
}

/// A name as the words that it is made of: `machine_repair` becomes `machine repair`.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// `n` of something that adds an s in the plural.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    format!("{}{TIE}{noun}{}", count(n), if n == 1 { "" } else { "s" })
}

fn time_unit(ns: u64) -> (f64, &'static str) {
    // The bounds are where three digits round up into the next unit.
    match ns {
        0..1_000 => (1.0, "ns"),
        1_000..999_500 => (1e3, "µs"),
        999_500..999_500_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

fn time_in(ns: u64, scale: f64) -> String {
    if scale == 1.0 {
        return ns.to_string();
    }
    let value = ns as f64 / scale;
    match value {
        v if v >= 1_000.0 => shared::exact(v),
        v => shared::digits_of(v, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + std::fmt::Debug>(format: fn(T) -> String, table: &[(T, &str)]) {
        for &(value, expected) in table {
            assert_eq!(format(value).replace(TIE, " "), expected, "{value:?}");
        }
    }

    #[test]
    fn rates_have_the_decimals_of_what_was_asked() {
        for (asked, wanted) in [(0.5, 6), (1_000.0, 2), (1e4, 1), (1e6, 0)] {
            assert_eq!(decimals_of_6_digits(asked), wanted, "{asked}");
        }
    }

    #[test]
    fn counts_are_exact() {
        check(count, &[(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")]);
        check(signed_count, &[(-1_234, "-1,234"), (-123, "-123"), (12, "12")]);
    }

    #[test]
    fn numbers_have_four_digits() {
        check(
            number,
            &[
                (0.0, "0"),
                (8_571.4, "8,571"),
                (88_318.0, "88,320"),
                (9_999.96, "10,000"),
                (0.25, "0.25"),
                (1.0 / 3.0, "0.3333"),
                (-6.1234, "-6.123"),
                (1.2e-9, "1.2e-9"),
                (f64::NAN, "–"),
            ],
        );
        check(whole_or_rounded, &[(12_345.0, "12,345"), (1.0 / 3.0, "0.3333")]);
        check(rate, &[(8_571.4, "8,571/s"), (0.5, "0.5/s"), (f64::INFINITY, "–")]);
    }

    #[test]
    fn shares_have_a_percent_sign() {
        check(
            percent,
            &[
                (0.0, "0 %"),
                (0.004, "0.004 %"),
                (0.034, "0.03 %"),
                (9.996, "10.0 %"),
                (12.34, "12.3 %"),
                (99.96, "100 %"),
                (-2.5, "-2.50 %"),
                (1_234.0, "1,234 %"),
            ],
        );
    }

    proptest::proptest! {
        /// A figure has the same digits in a sentence, beside an axis, in a fact and in a column,
        /// but for idle zeros.
        #[test]
        fn a_figure_is_the_same_everywhere(exponent in -5.0..6.0_f64, ns in 0..u64::MAX >> 20) {
            let value = 10f64.powf(exponent);
            let bare = |text: &str| text.replace(TIE, " ");
            let without_zeros = |text: &str| {
                let text = bare(text);
                let (digits, unit) = text.split_once(' ').unwrap();
                format!("{} {unit}", shared::trimmed(digits))
            };
            proptest::prop_assert_eq!(bare(&percent_short(value)), shared::percent(value));
            proptest::prop_assert_eq!(without_zeros(&percent(value)), shared::percent(value));
            proptest::prop_assert_eq!(number(value), shared::number(value));
            proptest::prop_assert_eq!(estimate(value), shared::estimate(value));
            for ns in [ns, value as u64, (value * 1e3) as u64] {
                proptest::prop_assert_eq!(bare(&time_short(ns)), shared::time(ns as f64));
                proptest::prop_assert_eq!(without_zeros(&time(ns)), shared::time(ns as f64));
            }
        }
    }

    #[test]
    fn times_pick_their_unit() {
        check(
            time,
            &[
                (0, "0 ns"),
                (999, "999 ns"),
                (1_000, "1.00 µs"),
                (123_456, "123 µs"),
                (999_499, "999 µs"),
                (999_500, "1.00 ms"),
                (1_500_000, "1.50 ms"),
                (12_345_678, "12.3 ms"),
                (999_999_999, "1.00 s"),
                (61_250_000_000, "61.2 s"),
                (3_600_000_000_000, "3,600 s"),
            ],
        );
        check(
            time_to_5_digits,
            &[
                (1_000_652, "1.0007 ms"),
                (50_312_345, "50.312 ms"),
                (223_987, "223.99 µs"),
                (999, "999 ns"),
            ],
        );
        check(time_uncertainty, &[(1_431, "1.4 µs"), (644, "644 ns"), (21_700, "22 µs")]);
        check(time_short, &[(1_500_000, "1.5 ms"), (10_000_000_000, "10 s"), (100_000, "100 µs")]);
        check(
            time_interval,
            &[
                ([980_000, 1_020_000], "0.980–1.02 ms"),
                ([401_000, 418_000], "401–418 µs"),
                ([0, 0], "0–0 ns"),
            ],
        );
    }

    #[test]
    fn data_is_in_decimal_units() {
        check(bytes, &[(0, "0 B"), (999, "999 B"), (1_200_000, "1.2 MB"), (999_999, "1 MB")]);
    }

    #[test]
    fn a_name_tells_the_unit() {
        for (name, value, expected) in [
            ("p90_ns", 1.5e6, "p90 = 1.5 ms"),
            ("max_throughput_per_s", 8571.0, "max throughput = 8,571/s"),
            ("deviation_percent", 3.2, "deviation = 3.2 %"),
            ("smallest_vusers", 5000.0, "smallest vusers = 5,000"),
            ("slope", 0.125, "slope = 0.125"),
            ("stall_ns_max", 1.021e9, "stall max = 1.02 s"),
            ("answers", 2.0, "answers = 2"),
        ] {
            assert_eq!(named(name, value).replace(TIE, " "), expected);
        }
    }
}
