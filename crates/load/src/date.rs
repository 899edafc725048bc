//! Dates in UTC as text.

use std::num::NonZero;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use time::format_description::well_known::iso8601::{
    Config, EncodedConfig, Iso8601, TimePrecision,
};

const TO_THE_SECOND: EncodedConfig = with_decimals(None);
const TO_THE_MS: EncodedConfig = with_decimals(NonZero::new(3));

const fn with_decimals(decimal_digits: Option<NonZero<u8>>) -> EncodedConfig {
    let precision = TimePrecision::Second { decimal_digits };
    Config::DEFAULT.set_time_precision(precision).encode()
}

/// A time in nanoseconds since 1970 as RFC 3339, to the second: `2026-11-22T12:00:00Z`.
pub fn rfc3339(realtime_ns: u64) -> String {
    let mut text = Vec::new();
    put::<TO_THE_SECOND>(realtime_ns, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Appends a time in nanoseconds since 1970 as RFC 3339, to the millisecond:
/// `2026-11-22T12:00:00.123Z`.
pub(crate) fn put_rfc3339_ms(realtime_ns: u64, out: &mut Vec<u8>) {
    put::<TO_THE_MS>(realtime_ns, out);
}

fn put<const FORM: EncodedConfig>(realtime_ns: u64, out: &mut Vec<u8>) {
    let time = OffsetDateTime::from_unix_timestamp_nanos(realtime_ns.into());
    // 64 bits of nanoseconds end in 2554, and a list of bytes takes all that is written to it.
    if let Ok(time) = time {
        let _ = time.format_into(out, &Iso8601::<FORM>);
    }
}

/// A date as HTTP and mail have it (RFC 2822), in nanoseconds since 1970; 0 where it lies before.
pub(crate) fn rfc2822_ns(date: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(date, &Rfc2822).ok()?;
    Some(u64::try_from(time.unix_timestamp_nanos()).unwrap_or(0))
}

/// A time as ISO 8601 has it, with its zone, in milliseconds since 1970.
pub fn iso8601_ms(text: &str) -> Option<f64> {
    let time = OffsetDateTime::parse(text, &Iso8601::PARSING).ok()?;
    Some(time.unix_timestamp_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), text);
        }
        assert!(rfc3339(u64::MAX).starts_with("2554-07-21T"));
    }
}
