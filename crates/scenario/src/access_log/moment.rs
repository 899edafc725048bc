//! Times and durations as servers write them.

use knee_load::session::{cookie_date_ns, month_of};
use time::{Date, Month, Time, UtcOffset};

/// A time of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedTime {
    /// Nanoseconds since 1970.
    pub(super) ns: i64,
    /// It is known to the second only.
    pub(super) is_of_second: bool,
    /// It was written with a zone, or as a number.
    pub(super) has_zone: bool,
}

/// The latest time of a log, in nanoseconds since 1970: in the year 2128.
const TIME_MAX_NS: i64 = 5_000_000_000_000_000_000;

/// From here on a number is no seconds since 1970 but a smaller unit.
const SECONDS_MAX: f64 = 1e11;

/// A time in words: a number, any form of ISO 8601 with a date and a time, `10/Oct/2000:13:55:36
/// -0700`, or a date as HTTP has it. Without a zone it is in UTC.
pub(super) fn time_of(text: &str) -> Result<LoggedTime, String> {
    if let Ok(number) = text.parse::<f64>() {
        return time_of_number(number, text.contains('.'));
    }
    let time = date_and_time(text).or_else(|| {
        let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let is_weekday = weekdays.iter().any(|day| text.starts_with(day));
        let ns = cookie_date_ns(text.as_bytes()).filter(|_| is_weekday)?;
        Some(LoggedTime { ns: i64::try_from(ns).ok()?, is_of_second: true, has_zone: true })
    });
    time.filter(|time| (0..TIME_MAX_NS).contains(&time.ns))
        .ok_or_else(|| format!("'{text}' is no time"))
}

/// Seconds since 1970, or milliseconds, microseconds or nanoseconds where that is too many.
/// `has_fraction`: it was written with one, be it 0.
pub(super) fn time_of_number(number: f64, has_fraction: bool) -> Result<LoggedTime, String> {
    let mut seconds = number;
    let mut units = 0;
    while seconds >= SECONDS_MAX && units < 3 {
        seconds /= 1_000.0;
        units += 1;
    }
    if !(0.0..SECONDS_MAX / 20.0).contains(&seconds) {
        return Err(format!("{number} is no time"));
    }
    let is_of_second = units == 0 && !has_fraction;
    Ok(LoggedTime { ns: (seconds * 1e9).round() as i64, is_of_second, has_zone: true })
}

/// A text that is read from its begin on.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    /// A number of this many digits.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(digits.iter().fold(0, |all, digit| all * 10 + u32::from(digit - b'0')))
    }

    /// Skips one of these characters.
    fn skip(&mut self, one_of: &[u8]) -> bool {
        match self.0 {
            [first, rest @ ..] if one_of.contains(first) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn month(&mut self) -> Option<Month> {
        let month = month_of(self.0)?;
        self.0 = &self.0[3..];
        Some(month)
    }

    /// The zone that ends the text: `Z`, `UTC`, `GMT`, `+02`, `+0200`, `+02:00`, or none.
    fn zone(&mut self) -> Option<Option<UtcOffset>> {
        self.skip(b" ");
        if self.0.is_empty() {
            return Some(None);
        }
        if [&b"Z"[..], b"UTC", b"GMT"].iter().any(|name| name.eq_ignore_ascii_case(self.0)) {
            return Some(Some(UtcOffset::UTC));
        }
        let sign = if self.0.first() == Some(&b'-') { -1 } else { 1 };
        if !self.skip(b"+-") {
            return None;
        }
        let hours = self.digits(2)? as i8;
        self.skip(b":");
        let minutes = if self.0.is_empty() { 0 } else { self.digits(2)? as i8 };
        let offset = UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()?;
        self.0.is_empty().then_some(Some(offset))
    }
}

/// `2000-10-10T13:55:36.123-07:00`, also with `/` or no sign in the date and a blank before the time;
/// `10/Oct/2000:13:55:36.123 -0700`.
fn date_and_time(text: &str) -> Option<LoggedTime> {
    let mut scan = Scan(text.as_bytes());
    let is_year_first = text.get(..4)?.bytes().all(|byte| byte.is_ascii_digit());
    let date = if is_year_first {
        let year = scan.digits(4)?;
        scan.skip(b"-/");
        let month = Month::try_from(scan.digits(2)? as u8).ok()?;
        scan.skip(b"-/");
        let day = scan.digits(2)?;
        if !scan.skip(b"Tt _") {
            return None;
        }
        Date::from_calendar_date(year as i32, month, day as u8)
    } else {
        let day = scan.digits(2)?;
        scan.skip(b"/-");
        let month = scan.month()?;
        scan.skip(b"/-");
        let year = scan.digits(4)?;
        if !scan.skip(b": ") {
            return None;
        }
        Date::from_calendar_date(year as i32, month, day as u8)
    };
    let hour = scan.digits(2)?;
    scan.skip(b":");
    let minute = scan.digits(2)?;
    scan.skip(b":");
    // A leap second is the end of the second before.
    let second = scan.digits(2)?.min(59);
    let has_fraction = scan.skip(b".,");
    let mut nanosecond = 0;
    if has_fraction {
        let length = scan.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = scan.0.split_at(length);
        let nine = digits.iter().chain(&[b'0'; 9]).take(9);
        nanosecond = nine.fold(0, |all, digit| all * 10 + u32::from(digit - b'0'));
        scan.0 = rest;
    }
    let zone = scan.zone()?;
    let time = Time::from_hms_nano(hour as u8, minute as u8, second as u8, nanosecond).ok()?;
    let at = date.ok()?.with_time(time).assume_offset(zone.unwrap_or(UtcOffset::UTC));
    let ns = i64::try_from(at.unix_timestamp_nanos()).ok()?;
    Some(LoggedTime { ns, is_of_second: !has_fraction, has_zone: zone.is_some() })
}

/// A unit of durations, in seconds, by a word that names it.
pub(super) fn unit_of(word: &str) -> Option<f64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "msecs" | "milli" | "millis" | "millisecond" | "milliseconds" => 1e-3,
        "us" | "µs" | "μs" | "usec" | "usecs" | "micro" | "micros" | "microsecond"
        | "microseconds" => 1e-6,
        "ns" | "nsec" | "nsecs" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => 1e-9,
        _ => return None,
    })
}

/// The unit that the name of a key ends with: `duration_ms`, `elapsedNanos`, `latency.us`.
pub(super) fn unit_of_key(key: &str) -> Option<f64> {
    // Of pino-http, in milliseconds.
    if key == "responseTime" {
        return Some(1e-3);
    }
    let begins_word = |(at, c): (usize, char)| {
        let before = key[..at].chars().next_back();
        let is_sign = |c: char| !c.is_alphanumeric();
        let is_capital = c.is_uppercase() && before.is_some_and(char::is_lowercase);
        is_capital || before.is_some_and(is_sign)
    };
    let at = key.char_indices().rev().find(|at| begins_word(*at)).map(|(at, _)| at)?;
    unit_of(&key[at..])
}

/// Seconds of a duration: a number of units, or a text such as `1.5ms`, `1m2.5s` or `0.012s`.
/// `None` where it is none, such as `-`.
pub(super) fn duration_of(text: &str, unit: f64) -> Option<f64> {
    let seconds = match text.trim().parse::<f64>() {
        Ok(number) => number * unit,
        Err(_) => {
            let (mut rest, mut all) = (Some(text).filter(|text| !text.is_empty())?, 0.0);
            while !rest.is_empty() {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
                let (number, unit) = rest.split_at(end);
                let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
                let (unit, further) = unit.split_at(end);
                let unit = match unit.trim() {
                    "h" => 3600.0,
                    "m" => 60.0,
                    unit => unit_of(unit)?,
                };
                all += number.parse::<f64>().ok()? * unit;
                rest = further;
            }
            all
        }
    };
    (0.0..1e6).contains(&seconds).then_some(seconds)
}

/// Keys of durations. Those whose names end in a unit are in that.
pub(super) const TOOK: &str = "request_time duration request_time_ms duration_ms duration_us duration_ns \
                    latency_ms latency elapsed_ms took_ms httpRequest.latency responseTime";

/// Seconds of a value at one of the known keys of durations, of text logs also `rt`.
pub(super) fn took_of_key(key: &str, text: &str) -> Option<f64> {
    let is_known = key == "rt" || TOOK.split(' ').any(|known| known == key);
    is_known.then(|| duration_of(text, unit_of_key(key).unwrap_or(1.0))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_servers_are_read() {
        let second = 971_186_136;
        for (text, ms, is_of_second) in [
            ("10/Oct/2000:13:55:36 +0000", 0, true),
            ("10/Oct/2000:06:55:36 -0700", 0, true),
            ("10/Oct/2000:13:55:36.120 +0000", 120, false),
            ("10/Oct/2000:13:55:36.120", 120, false),
            ("10-Oct-2000 13:55:36", 0, true),
            ("2000-10-10T13:55:36Z", 0, true),
            ("2000-10-10T13:55:36.12Z", 120, false),
            ("2000-10-10T13:55:36,120+00:00", 120, false),
            ("2000-10-10T15:55:36+0200", 0, true),
            ("2000-10-10T15:55:36+02", 0, true),
            ("2000-10-10T15:55:36.12+02:00", 120, false),
            ("2000-10-10 13:55:36", 0, true),
            ("2000-10-10 13:55:36.120 UTC", 120, false),
            ("2000-10-10 08:25:36 -0530", 0, true),
            ("2000/10/10 13:55:36", 0, true),
            ("20001010T135536Z", 0, true),
            ("20001010T135536.120Z", 120, false),
            ("Tue, 10 Oct 2000 13:55:36 GMT", 0, true),
            ("Tue Oct 10 13:55:36 2000", 0, true),
            ("971186136", 0, true),
            ("971186136.120", 120, false),
            ("971186136120", 120, false),
            ("971186136120000000", 120, false),
        ] {
            let time = time_of(text).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!(
                (time.ns / 1_000_000, time.is_of_second),
                (second * 1_000 + ms, is_of_second),
                "{text}"
            );
        }
        for text in [
            "",
            "10/Okt/2000:13:55:36 +0000",
            "32/Oct/2000:13:55:36 +0000",
            "10/Oct/2000",
            "2000-10-10",
            "2000-13-10T13:55:36Z",
            "2000-10-10T25:55:36Z",
            "2000-10-10T13:55:36+2",
            "2000-10-10T13:55:36 CEST",
            "13:55:36",
            "1.2.3.4",
            "-1",
            "1e300",
        ] {
            assert!(time_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_by_name_and_unit() {
        for (key, unit) in [
            ("duration_ms", Some(1e-3)),
            ("durationMs", Some(1e-3)),
            ("request.time.us", Some(1e-6)),
            ("elapsedNanos", Some(1e-9)),
            ("took_seconds", Some(1.0)),
            ("latency-µs", Some(1e-6)),
            ("duration", None),
            ("items", None),
            ("ms", None),
            ("request_time", None),
        ] {
            assert_eq!(unit_of_key(key), unit, "{key}");
        }
        for (text, unit, want) in [
            ("0.250", 1.0, Some(0.25)),
            ("250", 1e-3, Some(0.25)),
            ("250000", 1e-6, Some(0.25)),
            ("250ms", 1.0, Some(0.25)),
            ("250 ms", 1.0, Some(0.25)),
            ("1m2.5s", 1.0, Some(62.5)),
            ("2h0m1s", 1.0, Some(7201.0)),
            ("1.5µs", 1.0, Some(1.5e-6)),
            ("-", 1.0, None),
            ("", 1.0, None),
            ("-1", 1.0, None),
            ("0.001, 0.002", 1.0, None),
            ("5 apples", 1.0, None),
            ("1e9", 1.0, None),
        ] {
            let got = duration_of(text, unit);
            let is_near = match (got, want) {
                (Some(got), Some(want)) => (got - want).abs() < 1e-12,
                (got, want) => got == want,
            };
            assert!(is_near, "{text}: {got:?}");
        }
    }
}
