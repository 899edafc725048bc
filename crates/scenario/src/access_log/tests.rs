use super::*;
use std::io::Cursor;

fn record(log: &str) -> (ReadLog, Vec<String>) {
    let mut out = Vec::new();
    let read = record_log(Cursor::new(log), None, "http://h", &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let mut lines = lines.lines().map(str::to_owned);
    assert_eq!(lines.next().unwrap(), r#"{"recording":1,"target":"http://h"}"#);
    (read, lines.collect())
}

#[test]
fn the_combined_format_is_read_and_spread_over_its_seconds() {
    let (read, lines) = record(
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.1\" 200 12 \"-\" \"x\"\n\
         192.0.2.1 - ann [10/Oct/2000:13:55:36 -0700] \"POST http://h/b HTTP/1.1\" 200 12\n\
         192.0.2.2 - - [10/Oct/2000:13:55:38 -0700] \"HEAD / HTTP/1.0\" 200 0\n",
    );
    assert_eq!(
        lines,
        [
            r#"{"at":0.0,"path":"/a?b=c","user":"192.0.2.1"}"#,
            r#"{"at":0.5,"method":"POST","path":"/b","user":"ann"}"#,
            r#"{"at":2.0,"method":"HEAD","path":"/","user":"192.0.2.2"}"#,
        ]
    );
    assert_eq!((read.requests, read.spread, read.seconds), (3, 3, 2.0));
}

#[test]
fn requests_keep_the_path_that_was_asked_for() {
    for (request, want) in [
        ("GET /login?next=https://shop.test/cart HTTP/1.1", "/login?next=https://shop.test/cart"),
        ("GET /proxy/http://x.test/a/b HTTP/1.1", "/proxy/http://x.test/a/b"),
        ("GET //x/y HTTP/1.1", "//x/y"),
        ("GET http://h?x=1 HTTP/1.1", "/?x=1"),
        ("GET http://h?x=/1 HTTP/1.1", "/?x=/1"),
        ("GET http://h HTTP/1.1", "/"),
        ("GET https://h:8/u?x=http://y/ HTTP/1.1", "/u?x=http://y/"),
        (r#"GET /a?q=\"x\" HTTP/1.1"#, r#"/a?q="x""#),
        (r"GET /a\\b\ HTTP/1.1", r"/a\b\"),
        (r"GET /c\\ HTTP/1.1", r"/c\"),
        (r"GET /d+\d\xg HTTP/1.1", r"/d+\d\xg"),
        (r"GET /q?x=\x22y\x22&z=\xC3\xA9\t\x20 HTTP/1.1", r#"/q?x="y"&z=%C3%A9%09%20"#),
        ("GET /q?z=é HTTP/1.1", "/q?z=%C3%A9"),
        ("GET /s?q=a b HTTP/1.1", "/s?q=a%20b"),
        ("GET  /s  HTTP/1.1", "/s"),
        ("GET /old", "/old"),
    ] {
        let line = format!("h - - [10/Oct/2000:13:55:36 +0000] \"{request}\" 200 1 \"-\" \"x\"");
        let (read, lines) = record(&line);
        let path = serde_json::to_string(want).unwrap();
        let want = format!("{{\"at\":0.0,\"path\":{path},\"user\":\"h\"}}");
        assert_eq!(lines, [want], "{request}: {read:?}");
    }
}

#[test]
fn json_of_several_servers_is_read() {
    for (line, want) in [
        (
            r#"{"msec":1.5,"request":"GET /cb?next=https://app.test/done&state=1 HTTP/1.1"}"#,
            r#"{"at":0.0,"path":"/cb?next=https://app.test/done&state=1"}"#,
        ),
        (
            r#"{"msec":1.5,"request":"GET /a?q=\"x\\y\" b HTTP/1.1"}"#,
            r#"{"at":0.0,"path":"/a?q=\"x\\y\"%20b"}"#,
        ),
        (r#"{"ts":1.5,"uri":"/a?u=http://h/"}"#, r#"{"at":0.0,"path":"/a?u=http://h/"}"#),
        (
            r#"{"msec":1600000000.250,"request":"GET /n HTTP/1.1","request_time":"0.250"}"#,
            r#"{"at":0.0,"path":"/n"}"#,
        ),
        (
            r#"{"ts":1600000000.5,"request":{"method":"PUT","uri":"/c","remote_ip":"::1"},"duration":0.5}"#,
            r#"{"at":0.0,"method":"PUT","path":"/c","user":"::1"}"#,
        ),
        (
            r#"{"time":"2026-11-27T06:00:00.123Z","method":"GET","path":"/g","client_ip":"a"}"#,
            r#"{"at":0.0,"path":"/g","user":"a"}"#,
        ),
        (
            r#"{"@timestamp":1600000000123,"verb":"GET","url":"https://h:8/u?x=1"}"#,
            r#"{"at":0.0,"path":"/u?x=1"}"#,
        ),
    ] {
        let (read, lines) = record(line);
        assert_eq!(lines, [want], "{line}: {read:?}");
        assert_eq!(read.spread, 0);
    }
}

#[test]
fn keys_may_be_named() {
    let keys = LogKeys {
        time: Some("when".to_owned()),
        path: Some("http.target".to_owned()),
        user: Some("session".to_owned()),
        ..LogKeys::default()
    };
    let line = r#"{"when":1.5,"http":{"target":"/t"},"session":7}"#;
    let mut out = Vec::new();
    record_log(Cursor::new(line), Some(&LogFormat::Json(keys)), "http://h", &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().nth(1), Some(r#"{"at":0.0,"path":"/t","user":"7"}"#));
}

#[test]
fn requests_are_put_in_order_by_their_begin() {
    let line = |end: f64, took: f64, path: &str| {
        format!(r#"{{"msec":{end:?},"request_time":{took},"uri":"{path}"}}"#)
    };
    let log = [line(10.0, 1.0, "/b"), line(10.5, 5.0, "/a"), line(11.0, 0.5, "/c")].join("\n");
    let (read, lines) = record(&log);
    let paths: Vec<_> = lines.iter().map(|l| l.split('"').nth(5).unwrap_or("")).collect();
    assert_eq!(paths, ["/a", "/b", "/c"], "{lines:?}");
    assert_eq!((read.moved, read.seconds), (0, 5.0));
}

#[test]
fn durations_leave_whole_seconds_spread() {
    for (key, second) in [
        ("time_iso8601", "2026-11-27T06:00:0{}+00:00"),
        ("time_local", "27/Nov/2026:06:00:0{} +0000"),
    ] {
        let line = |k: usize| {
            let (end, took) = (second.replace("{}", &(k / 5).to_string()), k * 7 % 10);
            format!("{{\"{key}\":\"{end}\",\"uri\":\"/{k}\",\"request_time\":\"0.00{took}\"}}\n")
        };
        let (read, lines) = record(&(0..15).map(line).collect::<String>());
        assert_eq!((read.spread, read.moved, lines.len()), (15, 0, 15));
        for (k, line) in lines.iter().enumerate() {
            let want = format!("{{\"at\":{:?},\"path\":\"/{k}\"}}", k as f64 / 5.0);
            assert_eq!(*line, want);
        }
    }
    // A long one began seconds before.
    let (read, lines) = record(
        "{\"ts\":100,\"uri\":\"/a\",\"duration\":0.4}\n\
         {\"ts\":103,\"uri\":\"/b\",\"duration\":4.8}\n",
    );
    assert_eq!(lines, [r#"{"at":0.0,"path":"/b"}"#, r#"{"at":2.0,"path":"/a"}"#]);
    assert_eq!((read.spread, read.moved), (2, 0));
}

#[test]
fn whole_seconds_far_from_their_place_are_moved() {
    let end = |end: u32, took: u32| format!("{{\"ts\":{end},\"uri\":\"/\",\"duration\":{took}}}\n");
    let (read, lines) = record(&(end(100, 0).repeat(100_000) + &end(200, 150) + &end(200, 100)));
    assert_eq!((read.requests, read.spread, read.moved), (100_002, 100_002, 1));
    assert_eq!(lines[100_000].split(',').next(), Some("{\"at\":0.99999"));
}

#[test]
fn a_whole_second_may_be_exact() {
    let log = "{\"msec\":5.000,\"uri\":\"/a\"}\n{\"msec\":5.000,\"uri\":\"/b\"}\n\
               {\"msec\":\"5.000\",\"uri\":\"/c\"}\n{\"msec\":5.001,\"uri\":\"/d\"}\n";
    let (read, lines) = record(log);
    assert_eq!((read.spread, read.moved), (0, 0));
    assert!(lines[2].starts_with("{\"at\":0.0,") && lines[3].contains("0.001"), "{lines:?}");
}

#[test]
fn lines_that_are_no_request_are_named() {
    let good = "h - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1\n";
    let bad = [
        ("h - - \"GET / HTTP/1.1\"", "no time in brackets"),
        ("h - - [10/Oct/2000:13:55:36 +0000] -", "no request in quotes"),
        ("h - - [10/Okt/2000:13:55:36 +0000] \"GET / HTTP/1.1\"", "is no time"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"-\"", "'-' is no request"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"CONNECT a:1 HTTP/1.1\"", "'CONNECT' is no method"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET * HTTP/1.1\"", "'*' is no path"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET /a#b HTTP/1.1\"", "'/a#b' is no path"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET /\u{fffd} HTTP/1.1\"", "is not UTF-8"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET / \\\"", "no request in quotes"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"\\x16\\x03\"", "'\\x16\\x03' is no request"),
        ("{}", "no time in brackets"),
    ];
    let log = bad.iter().fold(good.to_owned(), |log, (line, _)| log + line + "\n");
    let (read, lines) = record(&log);
    assert_eq!((lines.len(), read.left_out_count), (1, bad.len() as u64));
    for ((number, (_, why)), told) in (2..).zip(bad).zip(&read.left_out) {
        assert!(told.starts_with(&format!("line {number}: ")) && told.contains(why), "{told}");
    }
    let (read, _) = record(&"nothing\n".repeat(50));
    assert_eq!((read.left_out.len(), read.left_out_count), (20, 50));
}

#[test]
fn a_long_log_is_put_in_order_in_bounded_memory() {
    let line = |k: u64| format!("{{\"msec\":{}.5,\"uri\":\"/{k}\"}}\n", k + 1);
    let log: String = (0..250_000).map(|k| line(k ^ 7)).collect();
    let (read, lines) = record(&log);
    assert_eq!((read.requests, read.moved, lines.len()), (250_000, 0, 250_000));
    assert!(lines[0].contains("/0\"") && lines[249_999].contains("/249999\""));
}
