//! Loads over WebSocket: against `knee serve ws` and the servers of others.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{Certificates, KneeServer, TempPath, backends, measured, program, run};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

fn serve(options: &[&str]) -> KneeServer {
    let always = &["ws", "--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

/// The only trial of a run with these options.
fn trial(url: &str, options: &[&str]) -> Value {
    measured(&[&["run", url], options].concat())["trials"][0].clone()
}

fn url(server: &KneeServer) -> String {
    format!("ws://{}/chat", server.address)
}

#[test]
fn each_message_has_its_echo_over_both_backends() {
    let server = serve(&[]);
    let mut sent = 0;
    for backend in backends(&url(&server)) {
        let options = ["--vusers", "4", "-n", "400", "-t", "1", "--backend", backend];
        let trial = trial(&url(&server), &options);
        assert_eq!(trial["outcomes"]["ok"], 400, "{:#}", trial["outcomes"]);
        assert_eq!(trial["connections_max"], 4);
        assert_eq!(trial["protocol"]["openings"]["opened"], 4, "{:#}", trial["protocol"]);
        assert!(trial["protocol"]["openings"]["opening_ns"]["p50"].as_u64() > Some(0));
        sent += 400;
    }
    let served = server.served();
    // One more message for each look at whether a backend is permitted.
    let received = served["received"].as_u64().unwrap();
    assert!(received >= sent && received <= sent + 2, "{served}");
    assert_eq!(served["sent"], served["received"]);
    assert_eq!(served["violations"], serde_json::json!({}));
}

#[test]
fn arrivals_spread_over_all_connections_from_the_start() {
    let server = serve(&["--workers", "2", "--service", "fixed(1ms)"]);
    for matching in ["seq", "order"] {
        let options = ["-R", "100", "-c", "20", "-n", "100", "-t", "1", "--match", matching];
        let trial = trial(&url(&server), &options);
        assert_eq!(trial["outcomes"]["ok"], 100, "{:#}", trial["outcomes"]);
        assert_eq!(trial["connections_max"], 20);
        // On a busy host the least is not known.
        let least = trial["response_time_ns"]["min"].as_u64();
        assert!(least.is_none_or(|least| least >= 1_000_000), "{trial:#}");
    }
    assert_eq!(server.served()["received"], 200);
}

#[test]
fn users_share_a_connection_with_many_messages_under_way() {
    let server = serve(&["--workers", "8", "--service", "exp(1ms)"]);
    let body = "{\"id\":\"{seq}\",\"text\":\"ä\"}";
    let options = ["--vusers", "8", "-c", "1", "-n", "400", "-b", body];
    let trial = trial(&url(&server), &options);
    // Echoes of eight workers come in any order.
    assert_eq!(trial["outcomes"]["ok"], 400, "{:#}", trial["outcomes"]);
    assert_eq!(trial["connections_max"], 1);
}

#[test]
fn messages_without_an_echo_end_with_the_kernel() {
    let server = serve(&["--fan-out"]);
    let options = ["-R", "200", "-c", "2", "-n", "100", "--match", "none", "--binary"];
    let trial = trial(&url(&server), &options);
    assert_eq!(trial["outcomes"]["ok"], 100, "{:#}", trial["outcomes"]);
    assert_eq!(server.served()["received"], 100);
}

/// It would wait for 20 minutes for a message that nobody owes it.
#[test]
fn a_subscription_without_messages_ends() {
    let server = serve(&[]);
    let url = url(&server);
    let limits = ["--timeout", "10m", "--connect-timeout", "10m", "--json", "-"];
    let ended =
        run(&[&["run", &*url, "--subscribe", "-c", "2", "-d", "500ms"][..], &limits].concat());
    let report = ended.json();
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 0, "{ended:?}");
    assert_eq!(ended.status, Some(4), "nothing was measured: {ended:?}");
}

#[test]
fn subscribers_measure_the_way_from_the_server() {
    let server = serve(&["--publish", "50"]);
    let options = ["--subscribe", "-c", "10", "-n", "100", "-t", "1"];
    let trial = trial(&url(&server), &options);
    assert_eq!(trial["outcomes"]["ok"], 100, "{:#}", trial["outcomes"]);
    assert_eq!(trial["connections_max"], 10);
    let p50 = trial["response_time_ns"]["p50"].as_u64().unwrap();
    // From its departure on, and not from the message before.
    assert!(p50 < 15_000_000, "{p50}");
    let refused = run(&["run", &url(&server), "--subscribe", "-R", "5"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
}

#[test]
fn a_server_that_is_to_send_too_much_still_ends() {
    let (_, status) = serve(&["--publish", "5000000"]).terminate();
    assert_eq!(status, Some(0));
}

#[test]
fn a_target_that_does_not_upgrade_is_told_in_one_line() {
    let server = KneeServer::start(&[]);
    let refused = run(&["run", &format!("ws://{}/", server.address), "-n", "1"]);
    assert_eq!(refused.status, Some(4), "{refused:?}");
    let line = "it does not upgrade: status 200, not 101 (RFC 6455 §4.1)";
    assert!(refused.stderr.contains(line), "{refused:?}");
    for (options, word) in [
        (&["--http2"][..], "--http2"),
        (&["--no-keepalive"], "--no-keepalive"),
        (&["-m", "POST"], "--method"),
    ] {
        let arguments = [&["run", "ws://127.0.0.1:1/"], options].concat();
        let refused = run(&arguments);
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
    let refused = run(&["run", "http://127.0.0.1:1/", "--match", "seq"]);
    assert!(refused.stderr.contains("--match"), "{refused:?}");
}

#[test]
fn steps_of_a_scenario_send_messages_and_read_their_echoes() {
    let server = serve(&[]);
    let target = format!("target: ws://{}\n", server.address);
    let steps = "sessions:\n  chat:\n    steps:\n      - post: /chat\n        name: hello\n        \
                 body: \"hello ${random(1,50)} {seq}\"\n        expect: {body: hello}\n";
    let text = target + steps;
    let file = TempPath::with("chat.yaml", &text);
    let trial = trial(file.str(), &["--vusers", "2", "-n", "20"]);
    assert_eq!(trial["outcomes"]["ok"], 20, "{trial:#}");
}

/// Python's `websockets` or Node's `ws`; `None`, and a line that says so, where it is missing.
fn other(name: &str, tls: Option<&Certificates>) -> Option<HttpServer> {
    let (command, check) = match name {
        "websockets" => ("python3", ["-c", "import websockets"]),
        _ => ("node", ["-e", "require('ws')"]),
    };
    let found = Command::new(program(command)?).args(check).output().unwrap();
    if !found.status.success() {
        println!("skipped: {name} is not installed");
        return None;
    }
    launch(command, |site, port| {
        let files = tls.map(|c| [c.server.str(), c.server_key.str()]);
        vec![match name {
            "websockets" => site.write("server.py", &python(port, files)),
            _ => site.write("server.js", &node(port)),
        }]
    })
}

fn python(port: u16, files: Option<[&str; 2]>) -> String {
    let context = files.map_or("None".to_owned(), |[certificate, key]| {
        format!("context({certificate:?}, {key:?})")
    });
    format!(
        "import asyncio, ssl, websockets\n\
         def context(certificate, key):\n    \
             made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n    \
             made.load_cert_chain(certificate, key)\n    \
             return made\n\
         async def echo(socket):\n    \
             async for message in socket:\n        \
                 await socket.send(message)\n    \
             print('closed', socket.close_code, flush=True)\n\
         async def main():\n    \
             async with websockets.serve(echo, '127.0.0.1', {port}, ssl={context}):\n        \
                 await asyncio.Future()\n\
         asyncio.run(main())\n"
    )
}

fn node(port: u16) -> String {
    format!(
        "const {{ WebSocketServer }} = require('ws');\n\
         const server = new WebSocketServer(\n  \
             {{ host: '127.0.0.1', port: {port}, perMessageDeflate: {{ threshold: 0 }} }});\n\
         server.on('connection', socket => socket.on('message',\n  \
             (data, isBinary) => socket.send(data, {{ binary: isBinary }})));\n"
    )
}

#[test]
fn servers_of_others_echo_each_message() {
    for name in ["websockets", "ws"] {
        let Some(server) = other(name, None) else {
            continue;
        };
        let url = format!("ws://127.0.0.1:{}/", server.port);
        for options in [
            &["--vusers", "4", "-n", "200", "--ping", "20ms"][..],
            &["-R", "200", "-c", "5", "-n", "100", "--binary"],
            &["--vusers", "8", "-c", "2", "-n", "200", "--match", "order"],
        ] {
            let trial = trial(&url, options);
            assert_eq!(trial["outcomes"]["ok"], trial["attempted"], "{name}: {trial:#}");
        }
        if name == "websockets" {
            closes_each_connection(&server);
        }
    }
}

/// The server saw a close frame with status 1000 on each connection of the three loads, and of
/// what was tried before them.
fn closes_each_connection(server: &HttpServer) {
    let closed = |code: &str| server.site.read("output").matches(code).count();
    let begun = Instant::now();
    while closed("closed") < 4 + 5 + 2 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(closed("closed 1000"), closed("closed"), "{}", server.site.read("output"));
    assert!(closed("closed") >= 4 + 5 + 2);
}

#[test]
fn servers_of_others_compress_where_that_is_offered() {
    let body = "{seq} ".to_owned() + &"as the same as before; ".repeat(200);
    for name in ["websockets", "ws"] {
        let Some(server) = other(name, None) else {
            continue;
        };
        let url = format!("ws://127.0.0.1:{}/", server.port);
        for parameters in [
            "",
            "; client_max_window_bits",
            "; client_no_context_takeover; server_no_context_takeover",
            "; server_max_window_bits=10",
            "; server_no_context_takeover",
        ] {
            let header = format!("Sec-WebSocket-Extensions: permessage-deflate{parameters}");
            for options in [&["--vusers", "2"][..], &["-R", "200", "-c", "2", "--binary"]] {
                let always = ["-H", &header, "-b", &body, "-n", "50"];
                let trial = trial(&url, &[&always[..], options].concat());
                assert_eq!(trial["outcomes"]["ok"], 50, "{name} {header}: {trial:#}");
                for bytes in ["bytes_sent", "bytes_received"] {
                    let each = trial[bytes].as_u64().unwrap() / 50;
                    assert!(each < 500, "{name} {header}: {bytes} {each} of {}", body.len());
                }
            }
        }
    }
}

#[test]
fn headers_of_a_handshake_are_those_of_a_browser() {
    let server = serve(&[]);
    let url = url(&server);
    let copied = [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        "Origin: http://a",
    ];
    let headers: Vec<&str> = copied.iter().flat_map(|header| ["-H", header]).collect();
    let left_out = "left out of the given: Upgrade, Connection, Sec-WebSocket-Key, \
                    Sec-WebSocket-Version, client_max_window_bits";
    let plain = ["run", &url, "-n", "5"];
    let line = ["run", "-n", "5", "--", "curl", &url, "-N", "--compressed"];
    for arguments in [[&plain[..], &headers].concat(), [&line[..], &headers].concat()] {
        let ended = run(&arguments);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.stderr.contains(left_out), "{}", ended.stderr);
        assert!(ended.stdout.contains("5 ok"), "{}", ended.stdout);
    }
    let ended = run(&["run", &url, "-n", "5", "-H", "Origin: http://a"]);
    assert!(!ended.stderr.contains("left out"), "{}", ended.stderr);
    for (header, want) in [
        ("Sec-WebSocket-Extensions: x-webkit-deflate-frame", "'x-webkit-deflate-frame'"),
        ("Sec-WebSocket-Extensions: permessage-deflate; level=9", "no parameter 'level=9'"),
    ] {
        let ended = run(&["run", &url, "-n", "5", "-H", header]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.starts_with("error: --header: "), "{}", ended.stderr);
        assert!(ended.stderr.contains(want), "{}", ended.stderr);
    }
}

#[test]
fn steps_that_a_websocket_does_not_do_are_refused() {
    let refused = |steps: &str| {
        let text = format!(
            "target: ws://127.0.0.1:1\nsessions:\n  chat:\n    steps:\n      - post: /chat\n        \
             body: a\n{steps}"
        );
        let file = TempPath::with("refused-chat.yaml", &text);
        run(&["run", file.str(), "-n", "1"])
    };
    for (steps, want) in [
        ("      - {post: /other, body: b}\n", "all steps send over one WebSocket"),
        ("      - {post: /chat, body: b, headers: {A: b}}\n", "headers to the first step"),
        ("      - get: /chat\n", "'get: /chat' has none"),
        ("      - {put: /chat, body: b}\n", "write 'post: /chat' with a body"),
        ("      - {post: \"/${random(1,5)}\", body: b}\n", "write no ${…} in the path"),
        ("      - {post: /chat, body: b, headers: {A: \"${uuid()}\"}}\n", "write no ${…}"),
        ("      - {post: /chat, body: b, headers: {Cookie: \"a=${uuid()}\"}}\n", "write no ${…}"),
        ("      - {post: /chat, body: b, redirects: 3}\n", "leave 'redirects' out"),
    ] {
        let ended = refused(steps);
        assert_eq!(ended.status, Some(2), "{steps}: {ended:?}");
        assert!(ended.stderr.contains(want), "{steps}: {}", ended.stderr);
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
    }
    // Nobody listens, but nothing is wrong with it.
    for step in ["{post: /chat, body: \"b ${random(1,5)}\"}", "{post: /chat, json: {a: 1}}"] {
        let ended = refused(&format!("      - {step}\n"));
        assert_eq!(ended.status, Some(4), "{ended:?}");
    }
}

#[test]
fn messages_go_over_tls() {
    let certificates = Certificates::new();
    let Some(server) = other("websockets", Some(&certificates)) else {
        return;
    };
    let url = format!("wss://localhost:{}/", server.port);
    let authority = certificates.authority.str();
    let options = ["--cacert", authority, "--vusers", "2", "-n", "100"];
    let trial = trial(&url, &options);
    assert_eq!(trial["outcomes"]["ok"], 100, "{trial:#}");
    assert_eq!(trial["protocol"]["tls"]["handshakes_failed"], 0);
}
