//! Numbers and lists as a person reads them, for the sentences of findings and conclusions.

use knee_load::digits::significant;
pub use knee_load::digits::{digits_of, estimate, exact, grouped, number, trimmed};
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// The text with a capital letter first.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A ratio: `1.7`, `7`, `180`: two significant digits.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "unknown".into();
    }
    significant(value, 2)
}

/// A share: `0.03 %`, `2.8 %`, `17.1 %`, `120 %`. It has three significant digits, at most two of
/// them behind the point, and no idle zeros. A smaller share has its first digit. What is not all
/// is never rounded to `100 %`.
pub fn percent(value: f64) -> String {
    if (99.95..100.0).contains(&value) {
        return format!("{:.2} %", value.min(99.99));
    }
    let digits = percent_decimals(value);
    if value.is_finite() {
        format!("{} %", grouped(trimmed(&format!("{value:.digits$}"))))
    } else {
        "unknown".into()
    }
}

/// How many digits of a share stand behind the point, in sentences and in tables.
pub fn percent_decimals(value: f64) -> usize {
    // The bounds are where the digits round up into one more before the point.
    match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.01 || v == 0.0 => 2,
        v => (-v.log10().floor()).clamp(2.0, 9.0) as usize,
    }
}

/// A share of something that there was, in percent: one that is not nothing is not shown as `0.00
/// %`, and one that is not all not as `100 %`.
pub fn share(value: f64) -> String {
    match value {
        v if v > 0.0 && v < 0.005 => "less than 0.01 %".to_owned(),
        v if (99.5..100.0).contains(&v) => format!("{:.2} %", v.min(99.99)),
        0.0 => "0 %".to_owned(),
        v => percent(v),
    }
}

/// A length of time given in nanoseconds, as it is written where it is asked for, but with commas
/// between thousands.
pub fn time(ns: f64) -> String {
    let text = Nanos(ns.max(0.0).round() as u64).to_string();
    match text.split_once(' ') {
        Some((digits, unit)) => format!("{} {unit}", grouped(digits)),
        None => text,
    }
}

/// `1 user`, `12,345 users`, `6.4 users`: whole users are exact, anything else is an estimate.
pub fn users(n: f64) -> String {
    let n = if n == n.round() { exact(n) } else { estimate(n) };
    let noun = if n == "1" { "user" } else { "users" };
    format!("{n} {noun}")
}

/// `between 4.2 and 6 users`, or `about 6 users` where both ends are written alike.
pub fn between_users(lo: f64, hi: f64) -> String {
    if estimate(lo) == estimate(hi) {
        format!("about {}", users(hi))
    } else {
        format!("between {} and {}", estimate(lo), users(hi))
    }
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
    let name = |level: &Level| match level {
        Level::Flows { up, down } => format!("{up}/{down}"),
        level => exact(value(*level)),
    };
    let names: Vec<String> = levels.iter().map(name).collect();
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
        [Level::Descriptors(1)] => text + " descriptor",
        [Level::Descriptors(_), ..] => text + " descriptors",
        [Level::Clients(1)] => text + " client",
        [Level::Clients(_), ..] => text + " clients",
        [Level::Flows { .. }, ..] => text + " flows up/down",
    }
}

/// Where datagrams were lost, from the place's name in reports: `in the receive buffer`.
pub fn drop_place(name: &str) -> String {
    match name {
        "send_buffer" => "in the send buffer".into(),
        "qdisc" => "in a queueing discipline".into(),
        "neighbour_queue" => "in a neighbour's queue".into(),
        "device" => "in a network device".into(),
        "path" => "between the hosts".into(),
        "backlog" => "in the receiving host's backlog".into(),
        "ip_layer" => "in the IP layer".into(),
        "firewall" => "in a firewall".into(),
        "no_socket" => "where no socket listens".into(),
        "checksum" => "to a wrong checksum".into(),
        "receive_buffer" => "in the receive buffer".into(),
        "udp_memory" => "for want of UDP memory".into(),
        "service" => "with the service".into(),
        "time_to_live" => "on the way, with their time to live used up".into(),
        "reassembly" => "as fragments that were not put together".into(),
        other => format!("at {}", other.replace('_', " ")),
    }
}

/// The number that a level stands for: users, clients, flows, or operations per second.
pub fn value(level: Level) -> f64 {
    match level {
        Level::Vusers(n) | Level::Clients(n) | Level::Descriptors(n) => f64::from(n),
        Level::RatePerS(rate) => rate,
        Level::Flows { up, down } => f64::from(up) + f64::from(down),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: fn(f64) -> String, table: &[(f64, &str)]) {
        for &(value, text) in table {
            assert_eq!(words(value), text, "{value}");
        }
    }

    #[test]
    fn ends_that_are_written_alike_are_one() {
        assert_eq!(between_users(4.21, 6.0), "between 4.21 and 6 users");
        assert_eq!(between_users(6.0, 6.0), "about 6 users");
        let [lo, hi] = [6.000_1, 6.000_2];
        assert!(between_users(lo, hi).starts_with("about 6"));
    }

    #[test]
    fn numbers_have_four_digits() {
        check(
            number,
            &[
                (88_415.3, "88,420"),
                (1_000_000.0, "1,000,000"),
                (9_999.96, "10,000"),
                (9.999_96, "10"),
                (130.0, "130"),
                (48.236, "48.24"),
                (1.5, "1.5"),
                (0.033_33, "0.03333"),
                (0.001, "0.001"),
                (0.0, "0"),
                (-1_234.0, "-1,234"),
                (f64::NAN, "unknown"),
            ],
        );
        check(estimate, &[(48.235, "48.2"), (12_345.0, "12,300")]);
    }

    #[test]
    fn what_was_asked_or_counted_is_exact() {
        check(
            exact,
            &[
                (123_456.0, "123,456"),
                (88_415.3, "88,415"),
                (12.345_67, "12.35"),
                (-7.0, "-7"),
                (f64::INFINITY, "unknown"),
            ],
        );
        check(users, &[(1.0, "1 user"), (12_345.0, "12,345 users"), (48.235, "48.2 users")]);
    }

    #[test]
    fn shares_have_three_digits() {
        check(
            percent,
            &[
                (0.0, "0 %"),
                (0.004, "0.004 %"),
                (0.034, "0.03 %"),
                (2.8, "2.8 %"),
                (9.996, "10 %"),
                (17.14, "17.1 %"),
                (99.96, "99.96 %"),
                (99.999, "99.99 %"),
                (100.0, "100 %"),
                (1_234.0, "1,234 %"),
                (-2.5, "-2.5 %"),
                (f64::NAN, "unknown"),
            ],
        );
    }

    #[test]
    fn ratios_have_two_digits() {
        check(
            ratio,
            &[(116.7, "120"), (7.0, "7"), (1.742, "1.7"), (35_111.0, "35,000"), (0.0, "unknown")],
        );
    }

    #[test]
    fn every_place_has_words() {
        for place in knee_load::experiment::udp::DropPlace::ALL {
            assert!(!drop_place(place.name()).starts_with("at "), "{place:?}");
        }
        assert_eq!(drop_place("far_away"), "at far away");
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
