//! The moment of a report, as RFC 3339 in UTC.

use jiff::Timestamp;

/// Now.
pub fn now() -> String {
    rfc3339(Timestamp::now())
}

/// To the second.
fn rfc3339(moment: Timestamp) -> String {
    moment.strftime("%FT%TZ").to_string()
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
            assert_eq!(rfc3339(Timestamp::from_second(seconds).unwrap()), text);
        }
    }
}
