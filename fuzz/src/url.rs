//! No text becomes a URL that could break a request, and a URL reads back as itself.

use knee_load::spec::{Endpoint, Url};

/// Any bytes; those that are no text are no URL.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Url::parse(text) {
        Ok(url) => {
            assert!(url.path().starts_with('/'));
            assert!(url.path().bytes().all(|b| b.is_ascii_graphic() && b != b'#'));
            assert!(!url.host().is_empty() && url.host().bytes().all(|b| b.is_ascii_graphic()));
            let scheme = if url.is_secure() { "https" } else { "http" };
            let again = format!("{scheme}://{}{}", url.host(), url.path());
            let again = Url::parse(&again).expect("a URL once more");
            // A zone is of this host alone, and in no request (RFC 6874 §1).
            let is_zone = |host: &str| host.contains('%');
            if !matches!(url.endpoint(), Endpoint::Tcp { host, .. } if is_zone(host)) {
                assert_eq!(again, url);
            }
        }
        Err(error) => assert!(!error.0.chars().any(char::is_control), "one line: {error:?}"),
    }
}
