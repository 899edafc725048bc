//! No text becomes a request that holds more than it should, and errors are one line.

use knee_engine::exchange::http1::serialise;
use knee_load::spec::parse_targets;

/// Any bytes; those that are no text are no targets file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut read_file = |name: &str| match name.len() % 3 {
        0 => Err("no such file".to_owned()),
        _ => Ok(name.as_bytes().to_vec()),
    };
    match parse_targets(text, &mut read_file) {
        Ok(targets) => {
            assert!(!targets.requests.is_empty());
            for request in &targets.requests {
                let bytes = serialise(request, true);
                let (head, body) = bytes.split_at(bytes.len() - request.body.len());
                assert_eq!(body, &*request.body);
                assert!(head.ends_with(b"\r\n\r\n"));
                assert_eq!(head.windows(4).filter(|w| w == b"\r\n\r\n").count(), 1);
                let lines = head.iter().filter(|&&b| b == b'\n').count();
                // Request line, empty line, at most Host, User-Agent, Accept and Content-Length.
                let own = lines - request.headers.len();
                assert!((2..=6).contains(&own), "{own} lines that no header accounts for");
            }
        }
        Err(error) => assert!(!error.0.chars().any(char::is_control), "one line: {error:?}"),
    }
}
