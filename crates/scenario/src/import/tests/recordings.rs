//! Recordings of browsers.

use super::read;
use crate::import::har;

/// The steps and what is left out of a recording with these entries.
fn recorded(entries: &[&str]) -> String {
    let text = format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(","));
    let imported = har(text.as_bytes()).unwrap_or_else(|wrong| panic!("{}: {text}", wrong.0));
    read(&imported);
    let yaml = imported.to_yaml("a recording");
    let lines = yaml.lines().filter(|line| !line.ends_with("a recording."));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn recordings_become_steps() {
    let head = "target: http://h\nsessions:\n  imported:\n    steps:\n";
    for (entries, steps) in [
        // The status that was recorded is expected, an error too.
        (
            &[
                r#"{"request": {"method": "GET", "url": "http://h/a"}, "response": {"status": 404}}"#,
                r#"{"request": {"method": "GET", "url": "http://h/b"}, "response": {"status": 304}}"#,
                r#"{"request": {"method": "GET", "url": "http://h/c"}}"#,
            ][..],
            format!(
                "{head}      - get: /a\n        expect:\n          status: 404\n      - get: /b\n        \
                 expect:\n          status: [200, 304]\n      - get: /c\n"
            ),
        ),
        // What the browser did not ask a server for, or what has no answer.
        (
            &[
                r#"{"request": {"method": "GET", "url": "http://h/a"}}"#,
                r#"{"request": {"method": "GET", "url": "http://h/b"}, "_fromCache": "disk"}"#,
                r#"{"request": {"method": "GET", "url": "http://h/c"}, "response": {"status": 0}}"#,
                r#"{"request": {"method": "GET", "url": "wss://h/d"}}"#,
                r#"{"request": {"method": "GET", "url": "data:text/plain,x"}}"#,
                r#"{"request": {"method": "GET", "url": "https://cdn/1"}}"#,
                r#"{"request": {"method": "GET", "url": "https://cdn/2"}}"#,
            ],
            format!(
                "# left out: what the browser had in its cache (disk)\n\
                 # left out: GET http://h/c: it was blocked, or failed\n\
                 # left out: WebSockets: they are not imported\n\
                 # left out: what the browser had itself\n\
                 # left out: requests to https://cdn: a scenario has one target, h (2 times)\n\
                 {head}      - get: /a\n"
            ),
        ),
        // A form in parts, with a file and one whose content was recorded.
        (
            &[r#"{"request": {"method": "POST", "url": "http://h/", "headers": [{"name":
                "content-type", "value": "multipart/form-data; boundary=x"}], "postData": {"mimeType":
                "multipart/form-data; boundary=x", "text": null, "params": [{"name": "a", "value": "b c"},
                {"name": "f", "fileName": "c.png", "contentType": "image/png"}, {"name": "g", "value":
                "text", "fileName": "g.txt"}]}}}"#],
            format!(
                "# Put the file c.png beside the scenario: a form sends it.\n{head}      - post: /\n        \
                 multipart:\n          \"a\": \"b c\"\n          \"f\": {{file: \"c.png\", type: \
                 \"image/png\", filename: \"c.png\"}}\n          \"g\": {{text: \"text\", filename: \
                 \"g.txt\"}}\n"
            ),
        ),
        // Bodies in base64, and parameters of another type.
        (
            &[
                r#"{"request": {"method": "PUT", "url": "http://h/", "postData": {"mimeType":
                   "text/plain", "text": "aGk=", "encoding": "base64"}}}"#,
                r#"{"request": {"method": "PUT", "url": "http://h/", "postData": {"mimeType":
                   "text/plain", "params": [{"name": "a", "value": "b"}]}}}"#,
            ],
            "# left out: parameters of a body of type 'text/plain': they are sent as a form\n\
                 target: http://h\ndefaults:\n  headers:\n    Content-Type: \"text/plain\"\nsessions:\n  \
                 imported:\n    steps:\n      - put: /\n        body: \"hi\"\n      - put: /\n        body: \
                 \"a=b\"\n"
                .to_owned(),
        ),
        // Headers of the connection and of HTTP/2, and one that is none.
        (
            &[r#"{"request": {"method": "GET", "url": "http://h/", "headers": [{"name": ":path", "value":
                "/"}, {"name": "Connection", "value": "close"}, {"name": "a b", "value": "c"}, {"name":
                "Cookie", "value": "a=1"}, {"name": "X", "value": null}]}}"#],
            format!(
                "# left out: header 'a b': that is no name of a header\n\
                 # left out: header Cookie: sessions keep the cookies that the server sets\n\
                 {head}      - get: /\n        headers:\n          X: \"\"\n"
            ),
        ),
        // A redirection is not followed: what it led to was recorded too.
        (
            &[
                r#"{"request": {"method": "GET", "url": "http://h/a"}, "response": {"status": 302}}"#,
                r#"{"request": {"method": "GET", "url": "http://h/b"}, "response": {"status": 200}}"#,
            ],
            format!(
                "{head}      - get: /a\n        expect:\n          status: 302\n      - get: /b\n        \
                 expect:\n          status: 200\n"
            ),
        ),
    ] {
        assert_eq!(recorded(entries), steps, "{entries:?}");
    }
}
