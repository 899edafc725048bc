//! Any bytes are a date of a cookie or none; delimiters around them change nothing.

use knee_load::session::cookie_date_ns;

/// The bytes are the value of `Expires`.
pub fn check(data: &[u8]) {
    let date = cookie_date_ns(data);
    let padded = [b" ,;", data, b"\t~-"].concat();
    assert_eq!(cookie_date_ns(&padded), date, "{data:?}");
    // Of a date nothing but the first of each part counts.
    if date.is_some() {
        let more = [data, b" 01:02:03 04 Dec 2005"].concat();
        assert_eq!(cookie_date_ns(&more), date, "{data:?}");
    }
}
