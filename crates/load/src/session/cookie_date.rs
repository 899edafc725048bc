//! Dates of cookies (RFC 6265 §5.1.1): whatever servers write, read by one algorithm that looks for
//! a time, a day, a month and a year in any order and ignores all else, the zone and the weekday
//! included.

use time::{Date, Month};

/// A date of a cookie in nanoseconds since 1970: 0 where it lies before, `u64::MAX` where it lies
/// after what 64 bits can hold (2554). `None` where it is no date.
pub fn cookie_date_ns(text: &[u8]) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|byte| is_delimiter(*byte)).filter(|token| !token.is_empty()) {
        // Each is the first token of its form that was not another one before.
        if time.is_none() && read_time(token).is_some() {
            time = read_time(token);
        } else if day.is_none() && number(token, 1..=2).is_some() {
            day = number(token, 1..=2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = number(token, 2..=4);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    if year < 1601 {
        return None;
    }
    let [hour, minute, second] = time?.map(|part| u8::try_from(part).unwrap_or(u8::MAX));
    let date = Date::from_calendar_date(year as i32, month?, u8::try_from(day?).ok()?).ok()?;
    let at = date.with_hms(hour, minute, second).ok()?.assume_utc().unix_timestamp_nanos();
    Some(u64::try_from(at.max(0)).unwrap_or(u64::MAX))
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e)
}

/// The number that a token begins with, if it has as many digits.
fn number(token: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let length = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = || token[..length].iter().fold(0, |all, byte| all * 10 + u32::from(byte - b'0'));
    digits.contains(&length).then(value)
}

/// `8:49:37`, with one or two digits each; anything but a digit may follow.
fn read_time(token: &[u8]) -> Option<[u32; 3]> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    if !is_whole(hour) || !is_whole(minute) {
        return None;
    }
    Some([number(hour, 1..=2)?, number(minute, 1..=2)?, number(second, 1..=2)?])
}

/// The month whose English name a text begins with, by three letters.
pub fn month_of(token: &[u8]) -> Option<Month> {
    let names = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let begin = token.get(..3)?;
    let at = names.chunks(3).position(|name| name.eq_ignore_ascii_case(begin))?;
    Month::try_from(at as u8 + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    const DAY_2026: u64 = 1_795_348_800; // 2026-11-22 12:00:00

    /// The dates of RFC 6265, of servers, and the nearest that are none.
    #[test]
    fn dates_are_read_by_the_algorithm_of_the_standard() {
        for (text, want_s) in [
            ("Sun, 22 Nov 2026 12:00:00 GMT", Some(DAY_2026)),
            ("Sunday, 22-Nov-26 12:00:00 GMT", Some(DAY_2026)),
            ("Sun Nov 22 12:00:00 2026", Some(DAY_2026)),
            ("Sun, 22-Nov-2026 12:00:00 UTC", Some(DAY_2026)),
            ("22 Nov 2026 12:00:00", Some(DAY_2026)),
            ("2026 Nov 22 12:00:00", Some(DAY_2026)),
            ("12:00:00 november 22th 2026", Some(DAY_2026)),
            ("Sun, 22 NOV 2026 12:0:0 GMT", Some(DAY_2026)),
            ("Sun, 22 Nov 2026 9:8:7 GMT", Some(DAY_2026 - 3 * 3600 + 8 * 60 + 7)),
            ("Sun, 22 Nov 2026 12:00:00 +0200", Some(DAY_2026)),
            ("Sun, 22 Nov 2026 12:00:00.123Z", Some(DAY_2026)),
            ("Sun,  2 Nov 2026 12:00:00", Some(DAY_2026 - 20 * 86_400)),
            ("\"Sun, 22 Nov 2026 12:00:00 GMT\"", Some(DAY_2026)),
            ("22/Nov/2026 12:00:00", Some(DAY_2026)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Thu, 01-Jan-1970 00:00:01 GMT", Some(1)),
            ("Mon, 01 Jan 1601 00:00:00 GMT", Some(0)),
            ("Sat, 31 Dec 1600 23:59:59 GMT", None),
            ("Tue, 19 Jan 2038 03:14:08 GMT", Some(1 << 31)),
            ("01 Jan 68 00:00:00", Some(3_092_601_600)),
            ("01 Jan 69 00:00:00", Some(3_124_224_000)),
            ("01 Jan 70 00:00:00", Some(0)),
            ("31 Dec 99 23:59:59", Some(946_684_799)),
            ("01 Jan 00 00:00:00", Some(946_684_800)),
            ("29 Feb 2028 00:00:00", Some(1_835_395_200)),
            ("29 Feb 2026 00:00:00", None),
            ("31 Apr 2026 00:00:00", None),
            ("0 Nov 2026 12:00:00", None),
            ("22 Nov 2026 24:00:00", None),
            ("22 Nov 2026 12:60:00", None),
            ("22 Nov 2026 12:00:60", None),
            ("22 Nov 2026 12:00", None),
            ("22 Nov 2026 123:00:00", None),
            ("22 Nov 12:00:00", None),
            ("22 Nov 20266 12:00:00", None),
            ("22 No 2026 12:00:00", None),
            ("2026-11-22T12:00:00Z", None),
            ("1795348800", None),
            ("", None),
        ] {
            let want = want_s.map(|seconds| seconds * 1_000_000_000);
            assert_eq!(cookie_date_ns(text.as_bytes()), want, "{text}");
        }
        let far = cookie_date_ns(b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(far, Some(u64::MAX), "further than 64 bits of nanoseconds");
    }

    /// Whatever is written around a date in delimiters changes nothing, and nothing panics.
    #[test]
    fn any_bytes_are_a_date_or_none() {
        let mut rng = rng::stream(3, 1);
        let mut one_of = |set: &[u8]| set[(rng::unit(&mut rng) * set.len() as f64) as usize];
        let letters = b"0123456789:: ,-/JanFebDec\xff\x00GMT";
        for _ in 0..20_000 {
            let length = one_of(b"\x00\x08\x10\x20\x30");
            let text: Vec<u8> = (0..length).map(|_| one_of(letters)).collect();
            let padded = [b" ,;", &text[..], b"\t~"].concat();
            assert_eq!(cookie_date_ns(&text), cookie_date_ns(&padded), "{text:?}");
        }
    }
}
