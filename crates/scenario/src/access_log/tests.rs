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

/// The time in milliseconds after the begin of the minute, the method, the path and the user of a
/// line of text.
fn read_line(format: &LogFormat, line: &str) -> Result<(i64, String, Option<String>), String> {
    let request = format.read(line)?;
    let ms = (request.at_ns + 500_000) / 1_000_000 % 60_000;
    Ok((ms, format!("{} {}", request.method, request.path), request.user))
}

/// Lines that nginx 1.22, Apache 2.4, HAProxy 2.6 and load balancers of AWS wrote.
#[test]
fn text_is_read_by_its_parts() {
    let a = "GET /a?b=c";
    for (line, ms, request, user) in [
        (
            r#"::1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "Mozilla \x22x\x22 [GET / HTTP/1.1]""#,
            41_000,
            a,
            "::1",
        ),
        // Behind a proxy, in the format "main" of nginx.
        (
            r#"10.0.0.5 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "x" "192.0.2.7, 10.0.0.4""#,
            41_000,
            a,
            "192.0.2.7",
        ),
        (
            r#"10.0.0.5 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "x" "-""#,
            41_000,
            a,
            "10.0.0.5",
        ),
        (
            r#"10.0.0.5 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "10.0.0.6:80""#,
            41_000,
            a,
            "10.0.0.5",
        ),
        (
            r#"10.0.0.5 - ann [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "x" "::7""#,
            41_000,
            a,
            "ann",
        ),
        (
            r#"192.0.2.1 - ann smith [29/Nov/2026:08:38:41 +0000] "GET /\xC3\xA9?x=\x22y\x22 HTTP/1.1" 200 2 "-" "x""#,
            41_000,
            r#"GET /%C3%A9?x="y""#,
            "ann smith",
        ),
        (
            r#"localhost:80 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /q?x=\"y\" HTTP/1.1" 404 416 "-" "-""#,
            41_000,
            r#"GET /q?x="y""#,
            "192.0.2.1",
        ),
        (
            r#"10.0.0.5:443 192.0.2.1 - ann [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 404 416"#,
            41_000,
            a,
            "ann",
        ),
        (
            r#"shop.test client.test - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 404 416"#,
            41_000,
            a,
            "client.test",
        ),
        (
            r#"Nov 29 08:38:44 web1 nginx: 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2 "-" "x""#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"<190>Nov 29 08:38:44 web1 nginx[7]: 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"<165>1 2026-11-29T08:38:44.003Z web1 nginx 7 ID1 [x@1 iut="3"] 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"2026-11-29T08:38:44.003Z stdout F 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"192.0.2.1 10.0.0.5:443,a>b - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"192.0.2.1 10.0.0.5:443 [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"192.0.2.1 https://shop.test/b [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"192.0.2.1 ann [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200"#,
            41_000,
            a,
            "ann",
        ),
        (
            r#"192.0.2.7, 10.0.0.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200 2"#,
            41_000,
            a,
            "192.0.2.7",
        ),
        (
            r#"192.0.2.1 [29/Nov/2026:08:38:41.250 +0000] rt=0.050 "Mozilla [GET / HTTP/1.1]" "GET /a?b=c HTTP/1.1" 200"#,
            41_200,
            a,
            "192.0.2.1",
        ),
        (
            r#"[web1] [pid 77] 192.0.2.1 - - [2026-11-29T09:38:41,25+01] "GET /a?b=c HTTP/1.1" 200"#,
            41_250,
            a,
            "192.0.2.1",
        ),
        (
            r#"[Sun Nov 29 08:38:40.998328 2026] [15812] 192.0.2.1 "Mozilla \"x\" [GET / HTTP/1.1]" "GET /a?b=c HTTP/1.1""#,
            40_000,
            a,
            "192.0.2.1",
        ),
        (r#"[1795941521.250] 192.0.2.1 "GET /a?b=c HTTP/1.1" 200"#, 41_250, a, "192.0.2.1"),
        (
            r#""192.0.2.1" "2026-11-29 08:38:41" "GET /a?b=c HTTP/1.1" "200""#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (r#"2026-11-29 08:38:41.250 +0000 192.0.2.1 GET /a?b=c 200 17"#, 41_250, a, "192.0.2.1"),
        (
            r#"time=2026-11-29T08:38:41Z ip=192.0.2.1 method=GET path="/a?b=c" status=200"#,
            41_000,
            a,
            "192.0.2.1",
        ),
        (
            r#"192.0.2.1:41642 [29/Nov/2026:08:38:41.687] f b/s 0/0/0/0/0 200 124 - - ---- 1/1/0/0/0 0/0 {Mozilla #22x#22 [GET / HTTP/1.1]} {} "GET /q?x=#22y#22 HTTP/1.1""#,
            41_687,
            r#"GET /q?x="y""#,
            "192.0.2.1",
        ),
        (
            r#"Nov 29 08:38:44 lb haproxy[99]: ::1:46126 [29/Nov/2026:08:38:41.687] f~ b/s 0/0/-1/-1/30 503 217 - - SC-- 1/1/0/0/3 0/0 "GET /a?b=c HTTP/1.1""#,
            41_687,
            a,
            "::1",
        ),
        (
            r#"h2 2026-11-29T08:38:41.186641Z app/lb/50dc 192.0.2.1:2817 10.0.0.1:80 0.000 0.101 0.000 200 200 34 366 "GET https://shop.test:443/a?b=c HTTP/2.0" "curl/7.46.0" ECDHE TLSv1.2 arn:aws "Root=1-5" "shop.test" "-" 100 2026-11-29T08:38:41.085000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
            41_085,
            a,
            "192.0.2.1",
        ),
        (
            r#"2026-11-29T08:38:41.945958Z lb 192.0.2.1:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://shop.test:80/a?b=c HTTP/1.1" "curl/7.38.0" - -"#,
            41_946,
            a,
            "192.0.2.1",
        ),
        (
            r#"79a5 bucket [29/Nov/2026:08:38:41 +0000] 192.0.2.3 79a5 3E57 REST.GET - "GET /a?b=c HTTP/1.1" 200 - 113"#,
            41_000,
            a,
            "192.0.2.3",
        ),
        (
            r#"host.test frank [29/Nov/2026:08:38:41 +0000] "GET /a?b=c HTTP/1.1" 200"#,
            41_000,
            a,
            "host.test",
        ),
    ] {
        let want = Ok((ms, request.to_owned(), Some(user.to_owned())));
        assert_eq!(read_line(&LogFormat::Text, line), want, "{line}");
    }
    // What browsers say is no request, and no time.
    for (line, why) in [
        (
            r#"h - - [29/Nov/2026:08:38:41 +0000] "\x16\x03" 400 0 "-" "GET / HTTP/1.1""#,
            "is no request",
        ),
        (r#"h - - [29/Nov/2026:08:38:41 +0000] "-" 408 0 "-" "-""#, "'-' is no request"),
        (
            r#"192.0.2.1:1 [29/Nov/2026:08:38:41.688] f f/<NOSRV> -1/-1 400 0 "<BADREQ>""#,
            "'<BADREQ>' is no request",
        ),
        (
            r#"h - - [pid 12] "GET / HTTP/1.1" 200 1795941521 "[29/Nov/2026:08:38:41 +0000]""#,
            "no time",
        ),
        (r#"h - - [29/Nov/2026:08:38:41 +0000] GET"#, "no request in quotes"),
    ] {
        let wrong = read_line(&LogFormat::Text, line).unwrap_err();
        assert!(wrong.contains(why), "{line}: {wrong}");
    }
}

#[test]
fn lines_are_read_as_the_configuration_says() {
    let nginx = r#"$remote_addr - $remote_user [$time_local] "$request" $status "$http_user_agent" $request_time"#;
    let parts = "$time_iso8601|$request_method|$uri$is_args$args|$remote_addr|$request_time";
    let main = "log_format main escape=json '{\"t\":\"$msec\",\"r\":\"$request\",'\n '\"x\":\"$http_x_forwarded_for\",\"a\":\"$remote_addr\"}';";
    let apache = r#"LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O %D" vhost"#;
    let mine = "%{%Y-%m-%dT%H:%M:%S}t.%{usec_frac}t %a %m %U%q %D";
    let zone = "%{%Y-%m-%d %H:%M:%S %z}t %h %r";
    let url = "$msec\\t$scheme://$host$request_uri\\t$request_method";
    for (format, line, ms, request, user) in [
        (
            nginx,
            r#"192.0.2.1 - ann smith [29/Nov/2026:08:38:41 +0000] "GET /a\x22?b HTTP/1.1" 200 "Mozilla" 2.000"#,
            39_000,
            r#"GET /a"?b"#,
            Some("ann smith"),
        ),
        (
            nginx,
            r#"Nov 29 08:38:44 web1 nginx: 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /a HTTP/1.1" 200 "-" 0.000"#,
            41_000,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (
            parts,
            "2026-11-29T08:38:41+00:00|GET|/a?b=c|192.0.2.1|0.000",
            41_000,
            "GET /a?b=c",
            Some("192.0.2.1"),
        ),
        (
            "$msec $http_x_forwarded_for $request_method $request_uri $upstream_response_time $request_time",
            "1795941521.500 192.0.2.9, 10.0.0.1 GET /a, 0.1, 0.2 : 0.3 0.500",
            41_000,
            "GET /a,",
            Some("192.0.2.9"),
        ),
        (
            parts,
            "2026-11-29T08:38:41+00:00|PUT|/\\xC3\\xA9-|192.0.2.1|0.000",
            41_000,
            "PUT /%C3%A9",
            Some("192.0.2.1"),
        ),
        (
            main,
            r#"{"t":"1795941521.250","r":"GET /q?x=\"y\" HTTP/1.1","x":"192.0.2.9, 10.0.0.1","a":"10.0.0.1"}"#,
            41_250,
            r#"GET /q?x="y""#,
            Some("192.0.2.9"),
        ),
        (
            main,
            r#"{"t":"1795941521.250","r":"GET /\u0020 HTTP/1.1","x":"-","a":"10.0.0.1"}"#,
            41_250,
            "GET /%20",
            Some("10.0.0.1"),
        ),
        (
            apache,
            r#"localhost:80 192.0.2.1 - - [29/Nov/2026:08:38:41 +0000] "GET /q?x=\"y\" HTTP/1.1" 404 416 250000"#,
            41_000,
            r#"GET /q?x="y""#,
            Some("192.0.2.1"),
        ),
        (
            mine,
            "2026-11-29T08:38:41.682172 192.0.2.1 GET /a?b=c 257",
            41_682,
            "GET /a?b=c",
            Some("192.0.2.1"),
        ),
        (
            zone,
            "2026-11-29 10:38:41 +0200 192.0.2.1 GET /a?b=c HTTP/1.1",
            41_000,
            "GET /a?b=c",
            Some("192.0.2.1"),
        ),
        (
            "%h [%{%Y-%m-%d %H:%M:%S}t.%{msec_frac}t %{%z}t] \"%r\" %>s",
            r#"192.0.2.1 [2026-11-29 10:38:41.786 +0200] "GET /a HTTP/1.1" 200"#,
            41_786,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (
            "%h %{%Y-%m-%dT%H:%M:%S}t.%{msec_frac}t%{%z}t \"%r\"",
            r#"192.0.2.1 2026-11-29T10:38:41.786+0200 "GET /a HTTP/1.1""#,
            41_786,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (
            "%h %{%Y-%m-%dT%H:%M:%S}t%{%z}t \"%r\"",
            r#"192.0.2.1 2026-11-29T10:38:41+0200 "GET /a HTTP/1.1""#,
            41_000,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (
            "%h [%{begin:%d/%b/%Y}t:%{begin:%T}t.%{begin:msec_frac}t %{%z}t] \"%r\"",
            r#"192.0.2.1 [29/Nov/2026:10:38:41.786 +0200] "GET /a HTTP/1.1""#,
            41_786,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (
            "%{sec}t %{usec_frac}t %h \"%r\"",
            r#"1795941521 041486 192.0.2.1 "GET /a HTTP/1.1""#,
            41_041,
            "GET /a",
            Some("192.0.2.1"),
        ),
        (url, "1795941521.250\thttps://shop.test/a?b=c\tHEAD", 41_250, "HEAD /a?b=c", None),
        (
            "%{end:%Y-%m-%d %H:%M:%S}t %{ms}T \"%!200,304r\"",
            "2026-11-29 08:38:41 2000 \"GET /a HTTP/1.1\"",
            39_000,
            "GET /a",
            None,
        ),
    ] {
        let parsed =
            LogFormat::of_configuration(format).unwrap_or_else(|e| panic!("{format}: {e}"));
        let want = Ok((ms, request.to_owned(), user.map(str::to_owned)));
        assert_eq!(read_line(&parsed, line), want, "{format}: {line}");
    }
    for (format, line, why) in [
        (nginx, "192.0.2.1 - ann [29/Nov/2026:08:38:41 +0000] GET", "ends too early"),
        (nginx, "192.0.2.1", "ends too early"),
        (mine, "2026-11-29T08:38:41.685016 192.0.2.1 GET /s p 63", "'p 63' is no duration"),
        (parts, "2026-11-29T08:38:41+00:00|-|--|127.0.0.1|0.000", "is no method"),
    ] {
        let parsed = LogFormat::of_configuration(format).unwrap();
        let wrong = read_line(&parsed, line).unwrap_err();
        assert!(wrong.contains(why), "{line}: {wrong}");
    }
    for (format, why) in [
        ("$request", "no time"),
        ("%t %h", "no request"),
        ("%t %r %", "ends with '%'"),
        ("%t %r %-x", "no directive"),
    ] {
        let wrong = LogFormat::of_configuration(format).unwrap_err();
        assert!(wrong.contains(why), "{format}: {wrong}");
    }
}

#[test]
fn squid_has_the_end_and_milliseconds() {
    for (line, ms) in [
        (
            "1795941521.250     50 10.0.0.1 TCP_MISS/200 12 GET http://h/a - HIER_DIRECT/10.0.0.2 text/html",
            41_200,
        ),
        (
            "1795941521.250   9000 10.0.0.1 TCP_MEM_HIT/304 12 GET http://h/a - HIER_NONE/- -",
            32_250,
        ),
        // Another log that begins with a time.
        ("1795941521.250 50 10.0.0.1 \"GET /a HTTP/1.1\" 200", 41_250),
    ] {
        let read = read_line(&LogFormat::Text, line).map(|(ms, ..)| ms);
        assert_eq!(read, Ok(ms), "{line}");
    }
}

#[test]
fn durations_are_in_the_unit_of_their_key() {
    let at = |line: &str, took: Option<&str>| {
        let keys = LogKeys { took: took.map(str::to_owned), ..LogKeys::default() };
        read_line(&LogFormat::Json(keys), line).map(|(ms, ..)| ms)
    };
    let line = |rest: &str| format!(r#"{{"ts":1795941521.250,"uri":"/a",{rest}}}"#);
    for (rest, took, ms) in [
        (r#""request_time":"0.050""#, None, 41_200),
        (r#""request_time":0.050"#, None, 41_200),
        (r#""duration":0.05"#, None, 41_200),
        (r#""duration":"50ms""#, None, 41_200),
        (r#""duration":"1m0.05s""#, None, 41_200),
        (r#""duration_ms":50"#, None, 41_200),
        (r#""duration_us":50000"#, None, 41_200),
        (r#""duration_ns":50000000"#, None, 41_200),
        (r#""duration":50"#, Some("duration:ms"), 41_200),
        (r#""e":{"usec":50000}"#, Some("e.usec"), 41_200),
        (r#""x:ms":50"#, Some("x:ms"), 41_200),
        (r#""duration":0.05"#, Some("none"), 41_250),
        (r#""start_time":"2026-11-29T08:38:41.100Z","duration":50"#, None, 41_100),
        (r#""request_time":"-""#, None, 41_250),
        (r#""size_ms":50"#, None, 41_250),
        (r#""duration":50.0,"controller":"orders","action":"index""#, None, 41_200),
        (r#""duration":0.05,"controller":"orders""#, None, 41_200),
    ] {
        assert_eq!(at(&line(rest), took), Ok(ms), "{rest}");
    }
}

#[test]
fn what_cannot_be_is_counted() {
    let line = |end: f64, took: f64, user: &str| {
        format!(r#"{{"ts":{end:?},"duration":{took:?},"uri":"/","client_ip":"{user}"}}"#)
    };
    for (lines, want) in [
        (vec![line(10.0, 0.1, "a"), line(11.0, 0.2, "b")], (None, 0, 0)),
        (vec![line(10.0, 0.1, "a"), line(11.0, 0.2, "a")], (Some("a"), 0, 0)),
        (vec![line(10.0, 0.1, "a")], (None, 0, 0)),
        (vec![line(10.0, 0.1, "a"), line(9.0, 0.2, "b")], (None, 0, 0)),
        (vec![line(10.0, 0.1, "a"), line(8.0, 0.2, "b"), line(9.0, 0.1, "a")], (None, 1, 1)),
        (vec![line(1000.0, 250.0, "a"), line(1001.0, 90.0, "b")], (None, 0, 2)),
        // None took longer than the log is long.
        (vec![line(10.0, 1.8, "a"), line(11.0, 0.1, "b"), line(12.0, 0.1, "c")], (None, 0, 0)),
        (vec![line(10.0, 2.1, "a"), line(11.0, 0.1, "b"), line(12.0, 0.1, "c")], (None, 0, 1)),
    ] {
        let (read, _) = record(&lines.join("\n"));
        let got = (read.only_user.as_deref(), read.unlike_ends, read.too_long);
        assert_eq!(got, want, "{lines:?}");
    }
    let apache = |vhost: &str, client: &str| {
        format!("{vhost}:80 {client} - - [29/Nov/2026:08:38:41 +0000] \"GET / HTTP/1.1\" 200 2\n")
    };
    let (_, lines) = record(&(apache("shop", "192.0.2.1") + &apache("shop", "192.0.2.2")));
    assert!(lines[0].contains("192.0.2.1") && lines[1].contains("192.0.2.2"), "{lines:?}");
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
            r#"{"ts":1600000000.5,"request":{"remote_ip":"10.0.0.5","client_ip":"::9","uri":"/c"}}"#,
            r#"{"at":0.0,"path":"/c","user":"::9"}"#,
        ),
        (
            "\u{feff}{\"msec\":1.5,\"uri\":\"/s\",\"remote_addr\":\"::1\"}",
            r#"{"at":0.0,"path":"/s","user":"::1"}"#,
        ),
        (
            r#"{"time":"2026-11-27T06:00:00.123Z","method":"GET","path":"/g","client_ip":"a"}"#,
            r#"{"at":0.0,"path":"/g","user":"a"}"#,
        ),
        (
            r#"{"time":"2026-11-30T10:00:00.5Z","method":"GET","uri":"/s","args":"q=1"}"#,
            r#"{"at":0.0,"path":"/s?q=1"}"#,
        ),
        (
            r#"{"msec":1.5,"request_uri":"/s?q=1","uri":"/s","args":"q=1"}"#,
            r#"{"at":0.0,"path":"/s?q=1"}"#,
        ),
        (r#"{"msec":1.5,"uri":"/s","query_string":"","args":"-"}"#, r#"{"at":0.0,"path":"/s"}"#),
        (
            r#"{"@timestamp":"2026-11-30T10:00:00.5Z","url.path":"/e","url.query":"a=b"}"#,
            r#"{"at":0.0,"path":"/e?a=b"}"#,
        ),
        (
            r#"{"@timestamp":"2026-11-30T10:00:00.5Z","url":{"path":"/n","query":"a=b"},"http":{"request":{"method":"PUT"}},"source":{"ip":"::1"}}"#,
            r#"{"at":0.0,"method":"PUT","path":"/n?a=b","user":"::1"}"#,
        ),
        (
            r#"{"@timestamp":1600000000123,"verb":"GET","url":"https://h:8/u?x=1"}"#,
            r#"{"at":0.0,"path":"/u?x=1"}"#,
        ),
        (
            r#"{"time":"2026-11-29T08:38:41+00:00","StartUTC":"2026-11-29T08:38:40.5Z","Duration":500000000,"RequestMethod":"GET","RequestPath":"/t","ClientHost":"10.0.0.9"}"#,
            r#"{"at":0.0,"path":"/t","user":"10.0.0.9"}"#,
        ),
        (
            r#"{"start_time":"2026-11-29T08:38:40.5Z","method":"GET","path":"/e","duration":250,"downstream_remote_address":"10.0.0.9:4711"}"#,
            r#"{"at":0.0,"path":"/e","user":"10.0.0.9"}"#,
        ),
        (
            r#"Nov 29 08:38:44 web1 nginx: {"msec":"1795941521.668","request":"GET /s%20p HTTP/1.1","uri":"/s p","remote_user":"ann smith","remote_addr":"::1"}"#,
            r#"{"at":0.0,"path":"/s%20p","user":"ann smith"}"#,
        ),
        (
            r#"{"level":"info","ts":1795941520.92,"request":{"remote_ip":"::1","remote_port":"37512","client_ip":"::1","method":"GET","uri":"/r"},"user_id":"","duration":0.000018745,"status":200}"#,
            r#"{"at":0.0,"path":"/r","user":"::1"}"#,
        ),
        // Caddy with a checked name, and on a console.
        (
            r#"{"ts":1795941520.92,"request":{"remote_ip":"::1","uri":"/r"},"user_id":"ann"}"#,
            r#"{"at":0.0,"path":"/r","user":"ann"}"#,
        ),
        (
            "2026/11/29 08:38:41.351\t\u{1b}[34mINFO\u{1b}[0m\thttp.log.access\thandled request\t{\"request\": {\"remote_ip\": \"::1\", \"method\": \"POST\", \"uri\": \"/x?y=1\"}, \"duration\": 0.25}",
            r#"{"at":0.0,"method":"POST","path":"/x?y=1","user":"::1"}"#,
        ),
        // The client that a proxy names, but no proxy did.
        (
            r#"{"msec":1.5,"uri":"/s","remote_addr":"10.0.0.5","http_x_forwarded_for":"::9, 10.0.0.4"}"#,
            r#"{"at":0.0,"path":"/s","user":"::9"}"#,
        ),
        (
            r#"{"msec":1.5,"uri":"/s","remote_addr":"10.0.0.5","http_x_forwarded_for":"-"}"#,
            r#"{"at":0.0,"path":"/s","user":"10.0.0.5"}"#,
        ),
        (
            r#"{"start_time":"2026-11-29T08:38:40.5Z","path":"/e","downstream_remote_address":"10.0.0.9:4711","x_forwarded_for":"::9"}"#,
            r#"{"at":0.0,"path":"/e","user":"::9"}"#,
        ),
        // Pino, Kong, the API gateway of AWS, Cloudflare.
        (
            r#"{"level":30,"time":1795941521668,"req":{"method":"PUT","url":"/p?x=1","remoteAddress":"::1"},"responseTime":5,"msg":"request completed"}"#,
            r#"{"at":0.0,"method":"PUT","path":"/p?x=1","user":"::1"}"#,
        ),
        (
            r#"{"started_at":1795941521668,"request":{"method":"GET","uri":"/k","url":"http://h:8000/k"},"client_ip":"::1"}"#,
            r#"{"at":0.0,"path":"/k","user":"::1"}"#,
        ),
        (
            r#"{"requestTime":"29/Nov/2026:08:38:41.5 +0000","httpMethod":"POST","path":"/w","ip":"::1"}"#,
            r#"{"at":0.0,"method":"POST","path":"/w","user":"::1"}"#,
        ),
        (
            r#"{"EdgeStartTimestamp":1795941521668000000,"ClientRequestMethod":"GET","ClientRequestURI":"/f","ClientIP":"::1"}"#,
            r#"{"at":0.0,"path":"/f","user":"::1"}"#,
        ),
        // Lines that Docker and Google Cloud keep.
        (
            r#"{"log":"10.0.0.9 - - [29/Nov/2026:08:38:41.5 +0000] \"GET /d HTTP/1.1\" 200 5\n","stream":"stdout","time":"2026-11-29T08:38:41.9Z"}"#,
            r#"{"at":0.0,"path":"/d","user":"10.0.0.9"}"#,
        ),
        (
            r#"{"textPayload":"{\"msec\":1.5,\"uri\":\"/g\"}","timestamp":"2026-11-29T08:38:41.9Z"}"#,
            r#"{"at":0.0,"path":"/g"}"#,
        ),
        (r#"{"ts":1.5,"uri":"/m","message":"GET /n"}"#, r#"{"at":0.0,"path":"/m"}"#),
    ] {
        let (read, lines) = record(line);
        assert_eq!(lines, [want], "{line}: {read:?}");
        assert_eq!(read.spread, 0);
    }
}

#[test]
fn a_line_of_a_log_of_the_w3c_names_its_columns() {
    let iis = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n\
        #Date: 2026-11-30 10:00:00\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query \
        s-port cs-username c-ip sc-status time-taken\n\
        2026-11-30 10:00:00 10.0.0.5 GET /a x=1 80 - 10.0.0.1 200 15\n\
        2026-11-30 10:00:02 10.0.0.5 POST /b - 80 ann 10.0.0.2 200 2100\n\
        2026-11-30 10:00:02 10.0.0.5 GET /c\n";
    let (read, lines) = record(iis);
    assert_eq!(
        lines,
        [
            r#"{"at":0.0,"path":"/a?x=1","user":"10.0.0.1"}"#,
            r#"{"at":0.5,"method":"POST","path":"/b","user":"ann"}"#,
        ]
    );
    assert_eq!(read.left_out, ["line 7: 5 columns, not 11"]);
    let front = "#Version: 1.0\n#Fields: date time x-edge-location c-ip cs-method cs(Host) \
        cs-uri-stem cs-uri-query time-taken\n2026-11-30\t10:00:00\tLHR50-C1\t10.0.0.1\tGET\t\
        d.cloudfront.net\t/view/my%20file.html\t-\t0.001\n";
    assert_eq!(record(front).1, [r#"{"at":0.0,"path":"/view/my%20file.html","user":"10.0.0.1"}"#]);
}

/// What the viewer has encoded, CloudFront encodes once more.
#[test]
fn cloudfront_encodes_what_it_logs() {
    let fields = "#Fields: date time x-edge-location c-ip cs-method cs-uri-stem cs-uri-query\n";
    let line = |stem: &str, query: &str| {
        let line = format!("2026-11-30\t10:00:00\tLHR50-C1\t10.0.0.1\tGET\t{stem}\t{query}\n");
        record(&format!("{fields}{line}")).1
    };
    let path = |path: &str| vec![format!(r#"{{"at":0.0,"path":"{path}","user":"10.0.0.1"}}"#)];
    assert_eq!(line("/a%2520b.html", "q=%257B"), path("/a%20b.html?q=%7B"));
    assert_eq!(line("/a%2Fb", "-"), path("/a/b"));
    assert_eq!(line("/a%zz", "-"), path("/a%zz"));
    // IIS does not.
    let iis =
        "#Fields: date time c-ip cs-method cs-uri-stem\n2026-11-30 10:00:00 10.0.0.1 GET /a%20b\n";
    assert_eq!(record(iis).1, path("/a%20b"));
}

#[test]
fn durations_of_pino_and_users_of_envoy() {
    let pino = r#"{"level":30,"time":1764496800400,"req":{"method":"GET","url":"/a","remoteAddress":"10.0.0.1"},"responseTime":400}
{"level":30,"time":1764496801400,"req":{"method":"GET","url":"/b","remoteAddress":"10.0.0.1"},"responseTime":100}
"#;
    let lines = record(pino).1;
    assert_eq!(lines[1], r#"{"at":1.3,"path":"/b","user":"10.0.0.1"}"#, "{lines:?}");
    let envoy = "[2016-04-15T20:17:00.310Z] \"GET /a HTTP/1.1\" 200 - 154 0 226 100 \"10.0.35.28\" \
        \"nsq2http\" \"cc21d9b0\" \"locations\" \"tcp://10.0.2.1:80\"\n";
    assert_eq!(record(envoy).1, [r#"{"at":0.0,"path":"/a","user":"10.0.35.28"}"#]);
    let istio = "[2020-11-25T21:26:18.409Z] \"GET /a HTTP/1.1\" 200 - via_upstream - \"-\" 0 135 3 1 \
        \"10.0.0.9\" \"curl/7.73.0\" \"84961386\" \"httpbin:8000\" \"127.0.0.1:80\" inbound\n";
    assert_eq!(record(istio).1, [r#"{"at":0.0,"path":"/a","user":"10.0.0.9"}"#]);
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
        ("h - - \"GET / HTTP/1.1\"", "no time"),
        ("h - - [10/Oct/2000:13:55:36 +0000] -", "no request in quotes"),
        ("h - - [10/Okt/2000:13:55:36 +0000] \"GET / HTTP/1.1\"", "no time"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"-\"", "'-' is no request"),
        (
            "h - - [10/Oct/2000:13:55:36 +0000] \"-\" 400 0 \"-\" \"DELETE /evil HTTP/1.1\"",
            "'-' is no request",
        ),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"CONNECT a:1 HTTP/1.1\"", "'CONNECT' is no method"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET * HTTP/1.1\"", "'*' is no path"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET /a#b HTTP/1.1\"", "'/a#b' is no path"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET /\u{fffd} HTTP/1.1\"", "is not UTF-8"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"GET / \\\"", "no request in quotes"),
        ("h - - [10/Oct/2000:13:55:36 +0000] \"\\x16\\x03\"", "'\\x16\\x03' is no request"),
        ("{}", "no time"),
    ];
    let log = bad.iter().fold(good.to_owned(), |log, (line, _)| log + line + "\n");
    let (read, lines) = record(&log);
    assert_eq!((lines.len(), read.left_out_count), (1, bad.len() as u64));
    for ((number, (_, why)), told) in (2..).zip(bad).zip(&read.left_out) {
        assert!(told.starts_with(&format!("line {number}: ")) && told.contains(why), "{told}");
    }
    let long = good.replace("\" 200", &format!("{}\" 200", "x".repeat(1 << 20)));
    let (read, lines) = record(&format!("{good}{long}{good}"));
    assert_eq!((lines.len(), &*read.left_out), (2, &["line 2: more than 1 MiB".to_owned()][..]));
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
