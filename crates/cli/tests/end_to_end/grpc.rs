//! Loads over gRPC: against `knee serve grpc` and the servers of others.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{KneeServer, TempPath, backends, measured, program, run};
use serde_json::{Value, json};
use std::process::Command;

/// The types of `knee serve grpc`.
const ECHO: &str = "syntax = \"proto3\"; package knee;\n\
    message Note { string text = 1; uint32 count = 2; uint32 status = 3; }\n\
    service Echo {\n\
      rpc Say(Note) returns (Note);\n\
      rpc Tell(Note) returns (stream Note);\n\
      rpc Gather(stream Note) returns (Note);\n\
      rpc Talk(stream Note) returns (stream Note);\n\
    }\n";

fn serve(options: &[&str]) -> KneeServer {
    let always = &["grpc", "--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

/// The only trial of a run with these options.
fn trial(url: &str, options: &[&str]) -> Value {
    measured(&[&["run", url], options].concat())["trials"][0].clone()
}

/// Makes calls of each kind; the messages in each response of a stream are counted.
fn call_all_kinds(at: &str) {
    for (method, body, messages) in [
        ("Say", r#"{"text":"hi"}"#, None),
        ("Tell", r#"{"text":"hi","count":5}"#, Some(5)),
        ("Gather", r#"[{"text":"a"},{"text":"b"},{}]"#, None),
        ("Talk", r#"[{"text":"a"},{"text":"b"}]"#, Some(2)),
    ] {
        let url = format!("{at}/knee.Echo/{method}");
        let trial = trial(&url, &["-b", body, "--vusers", "3", "-n", "60", "-k"]);
        assert_eq!(trial["outcomes"], json!({"ok": 60}), "{method}: {trial:#}");
        let count = trial["messages"]["count"].as_u64();
        assert_eq!(count, messages.map(|each| 60 * each), "{method}");
        assert_eq!(trial["protocol"]["application"], "gRPC");
    }
}

#[test]
fn calls_of_all_kinds_are_counted() {
    let server = serve(&[]);
    call_all_kinds(&format!("grpc://{}", server.address));
    // Each run asks one question to reflection.
    assert_eq!(server.served()["requests"], 4 * 60 + 4);
}

#[test]
fn messages_of_a_call_leave_at_times_of_their_own() {
    let server = serve(&[]);
    let at = format!("grpc://{}", server.address);
    let body = r#"[{"text":"a"},{"text":"b"}]"#;
    let timed = |method: &str, options: &[&str]| {
        let url = format!("{at}/knee.Echo/{method}");
        let options = [&["-b", body, "--vusers", "4", "-n", "20"], options].concat();
        let trial = trial(&url, &options);
        assert_eq!(trial["outcomes"], json!({"ok": 20}), "{trial:#}");
        trial
    };
    for backend in backends(&format!("{at}/knee.Echo/Say")) {
        let options = ["--messages", "5", "--message-rate", "200", "--backend", backend];
        let trial = timed("Talk", &options);
        let messages = &trial["messages"];
        assert_eq!((&messages["count"], &messages["sent"]["count"]), (&json!(100), &json!(100)));
        assert_eq!(messages["answer_ns"]["count"], 100, "{messages:#}");
        // The last message leaves 20 ms after the first. On a busy host the least is not known.
        let least = trial["response_time_ns"]["min"].as_u64();
        assert!(least.is_none_or(|least| least >= 20_000_000), "{least:?}");
        let trial = timed("Gather", &options);
        assert_eq!(trial["messages"]["sent"]["count"], 100);
        assert_eq!(trial["messages"]["count"], 0, "each response is one message");
    }
    let trial = timed("Talk", &["--message-rate", "500"]);
    assert_eq!(trial["messages"]["sent"]["count"], 40, "the body has two");
    let trial = timed("Talk", &["--messages", "3"]);
    assert_eq!(trial["messages"]["answer_ns"]["count"], 60, "all at once");
}

#[test]
fn calls_go_over_tls() {
    let server = serve(&["--tls"]);
    call_all_kinds(&format!("grpcs://{}", server.address));
}

#[test]
fn both_backends_call_at_a_rate() {
    let server = serve(&["--workers", "4", "--service", "exp(1ms)"]);
    let url = format!("grpc://{}/knee.Echo/Say", server.address);
    for backend in backends(&url) {
        let options = ["-R", "200", "-n", "100", "-c", "2", "--backend", backend];
        let trial = trial(&url, &[&options[..], &["-b", r#"{"text":"x"}"#]].concat());
        assert_eq!(trial["outcomes"], json!({"ok": 100}), "{trial:#}");
    }
}

#[test]
fn statuses_of_calls_are_outcomes() {
    let server = serve(&[]);
    let url = format!("grpc://{}/knee.Echo/Say", server.address);
    let out = run(&["run", &url, "-b", r#"{"status":14}"#, "-n", "20", "--full"]);
    assert_eq!(out.status, Some(1));
    let text = out.stdout;
    assert!(text.contains("status codes  14 UNAVAILABLE: 20"), "{text}");
    assert!(text.contains("20 grpc failed"), "{text}");
}

#[test]
fn types_come_from_files() {
    let server = serve(&[]);
    let file = TempPath::with("echo.proto", ECHO);
    let url = format!("grpc://{}/knee.Echo/Say", server.address);
    let trial = trial(&url, &["--proto", file.str(), "-b", r#"{"text":"x"}"#, "-n", "10"]);
    assert_eq!(trial["outcomes"], json!({"ok": 10}));
    assert_eq!(server.served()["requests"], 10, "reflection is not asked");
}

#[test]
fn steps_of_a_scenario_are_calls() {
    let server = serve(&[]);
    let text = format!(
        "target: grpc://{}\nsessions:\n  user:\n    steps:\n      - post: /knee.Echo/Say\n        \
         body: '{{\"text\":\"x\"}}'\n      - post: /knee.Echo/Tell\n        \
         body: '{{\"count\":2}}'\n",
        server.address
    );
    let file = TempPath::with("calls.yaml", &text);
    let trial = trial(file.str(), &["--vusers", "2", "-n", "20"]);
    assert_eq!(trial["outcomes"]["ok"], 40, "{trial:#}");
}

#[test]
fn steps_whose_calls_fail_are_no_success() {
    let server = serve(&[]);
    let text = format!(
        "target: grpc://{}\nsessions:\n  user:\n    steps:\n      - post: /knee.Echo/Say\n        \
         body: '{{\"status\":14}}'\n",
        server.address
    );
    let file = TempPath::with("failing-calls.yaml", &text);
    let trial = trial(file.str(), &["-n", "10"]);
    assert_eq!(trial["outcomes"], json!({"grpc_failed": 10, "ok": 0}), "{trial:#}");
}

#[test]
fn what_is_no_call_is_told_in_one_line() {
    let server = serve(&[]);
    let http = KneeServer::start(&[]);
    let (grpc, http) = (&server.address, &http.address);
    let broken = TempPath::with("broken.proto", "syntax = \"proto3\"; message A { oops }");
    for (url, options, code, want) in [
        (format!("grpc://{grpc}/knee.Echo/Sya"), vec![], 2, "did you mean 'Say'?"),
        (format!("grpc://{grpc}/knee.Eco/Say"), vec![], 4, "did you mean 'knee.Echo'?"),
        (format!("grpc://{grpc}/knee.Echo"), vec![], 2, "expected /package.Service/Method"),
        (format!("grpc://{grpc}/knee.Echo/Say"), vec!["-b", r#"{"count":"x"}"#], 2, "'count'"),
        (format!("grpc://{grpc}/knee.Echo/Say"), vec!["-b", "{"], 2, "no JSON"),
        (format!("grpc://{grpc}/knee.Echo/Say"), vec!["--http2"], 2, "over HTTP/2"),
        (format!("grpc://{grpc}/knee.Echo/Say"), vec!["-X", "GET"], 2, "is a POST"),
        (format!("grpc://{grpc}/knee.Echo/Say"), vec!["--messages", "5"], 2, "one message"),
        (format!("grpc://{grpc}/knee.Echo/Talk"), vec!["--messages", "0"], 2, "from 1 to"),
        (format!("grpc://{grpc}/knee.Echo/Talk"), vec!["--messages", "ndjsn"], 2, "ndjson"),
        (
            format!("grpc://{grpc}/knee.Echo/Talk"),
            vec!["--messages", "20", "--message-rate", "1"],
            2,
            "--timeout: 10 s is over before the last message of a call leaves, after 19 s",
        ),
        (format!("http://{http}/"), vec!["--message-rate", "5"], 2, "give grpc://"),
        (format!("grpc://{grpc}/a.B/C"), vec!["--proto", broken.str()], 2, "broken.proto:1:"),
        (format!("grpc://{grpc}/a.B/C"), vec!["--proto", "/none.proto"], 2, "/none.proto"),
        (format!("grpc://{http}/a.B/C"), vec![], 4, "is not application/grpc"),
        (format!("http://{http}/"), vec!["--proto", "x"], 2, "give grpc://"),
    ] {
        let out = run(&[&["run", url.as_str(), "-n", "1"][..], &options].concat());
        let line = out.stderr;
        assert_eq!(out.status, Some(code), "{url} {options:?}: {line}");
        assert!(line.contains(want) && line.trim().lines().count() == 1, "{url}: {line}");
    }
}

#[test]
fn types_of_editions_come_from_files() {
    let server = serve(&[]);
    let edition = "edition = \"2023\"; package knee;\n\
        message Note { string text = 1; uint32 count = 2 [default = 3]; reserved gone; }\n\
        service Echo { rpc Say(Note) returns (Note); }\n";
    let url = format!("grpc://{}/knee.Echo/Say", server.address);
    let with = |name: &str, text: &str| {
        let file = TempPath::with(name, text);
        run(&["run", &url, "--proto", file.str(), "-b", r#"{"text":"x"}"#, "-n", "10", "--quiet"])
    };
    let out = with("edition.proto", edition);
    assert_eq!(out.status, Some(0), "{out:?}");
    for (name, text) in [
        ("unknown.proto", edition.replace("2023", "2099")),
        ("cut.proto", edition.replace("rpc Say", "rpc")),
    ] {
        let out = with(name, &text);
        assert_eq!(out.status, Some(2), "{out:?}");
        assert!(out.stderr.contains("edition"), "{}", out.stderr);
        assert_eq!(out.stderr.trim().lines().count(), 1, "{}", out.stderr);
    }
}

#[test]
fn a_server_of_an_edition_tells_its_types() {
    let edition = ECHO
        .replace(
            "syntax = \"proto3\";",
            "edition = \"2023\"; import \"google/protobuf/any.proto\";",
        )
        .replace("uint32 status = 3;", "uint32 status = 3; google.protobuf.Any any = 4;");
    let Some(server) = other_with("grpcio", &edition) else {
        return;
    };
    let at = format!("grpc://127.0.0.1:{}", server.port);
    call_all_kinds(&at);
    for kind in ["knee.Note", "google.protobuf.Duration"] {
        let value = if kind == "knee.Note" { r#""text":"x""# } else { r#""value":"2s""# };
        let body = format!(r#"{{"any":{{"@type":"type.googleapis.com/{kind}",{value}}}}}"#);
        let trial = trial(&format!("{at}/knee.Echo/Say"), &["-b", &body, "-n", "10"]);
        assert_eq!(trial["outcomes"], json!({"ok": 10}), "{trial:#}");
    }
    let body = r#"{"any":{"@type":"t/knee.Nte"}}"#;
    let out = run(&["run", &format!("{at}/knee.Echo/Say"), "-b", body, "-n", "1"]);
    assert_eq!(out.status, Some(4), "{out:?}");
    assert!(out.stderr.contains("lacks the type knee.Nte of an Any"), "{}", out.stderr);
}

/// Python's grpcio or Node's grpc-js with reflection; `None`, and a line that says so, where it is
/// missing.
fn other(name: &str) -> Option<HttpServer> {
    other_with(name, ECHO)
}

/// The same with these types.
fn other_with(name: &str, types: &str) -> Option<HttpServer> {
    let (command, check) = match name {
        "grpcio" => ("python3", ["-c", "import grpc_tools, grpc_reflection"]),
        _ => ("node", ["-e", "require('@grpc/grpc-js'); require('@grpc/reflection')"]),
    };
    let found = Command::new(program(command)?).args(check).output().unwrap();
    if !found.status.success() {
        println!("skipped: {name} is not installed");
        return None;
    }
    launch(command, |site, port| {
        site.write("echo.proto", types);
        vec![match name {
            "grpcio" => site.write("server.py", &python(site.directory(), port)),
            _ => site.write("server.js", &node(site.directory(), port)),
        }]
    })
}

fn python(folder: &str, port: u16) -> String {
    format!(
        "import sys, grpc\n\
         from concurrent import futures\n\
         from grpc_tools import protoc\n\
         from grpc_reflection.v1alpha import reflection\n\
         folder = {folder:?}\n\
         protoc.main(['', '-I' + folder, '--python_out=' + folder, \
                      '--grpc_python_out=' + folder, 'echo.proto'])\n\
         sys.path.insert(0, folder)\n\
         import echo_pb2, echo_pb2_grpc\n\
         class Echo(echo_pb2_grpc.EchoServicer):\n    \
             def Say(self, note, context):\n        \
                 if note.status:\n            \
                     context.abort(grpc.StatusCode.UNAVAILABLE, 'asked for')\n        \
                 return note\n    \
             def Tell(self, note, context):\n        \
                 for _ in range(note.count):\n            \
                     yield note\n    \
             def Gather(self, notes, context):\n        \
                 return list(notes)[-1]\n    \
             def Talk(self, notes, context):\n        \
                 for note in notes:\n            \
                     yield note\n\
         server = grpc.server(futures.ThreadPoolExecutor(4))\n\
         echo_pb2_grpc.add_EchoServicer_to_server(Echo(), server)\n\
         reflection.enable_server_reflection(('knee.Echo', reflection.SERVICE_NAME), server)\n\
         server.add_insecure_port('127.0.0.1:{port}')\n\
         server.start()\n\
         server.wait_for_termination()\n"
    )
}

fn node(folder: &str, port: u16) -> String {
    format!(
        "const grpc = require('@grpc/grpc-js');\n\
         const {{ ReflectionService }} = require('@grpc/reflection');\n\
         const types = require('@grpc/proto-loader').loadSync({folder:?} + '/echo.proto');\n\
         const server = new grpc.Server();\n\
         server.addService(grpc.loadPackageDefinition(types).knee.Echo.service, {{\n  \
             say: (call, end) => call.request.status\n    \
                 ? end({{ code: call.request.status, details: 'asked for' }})\n    \
                 : end(null, call.request),\n  \
             tell: call => {{\n    \
                 for (let n = 0; n < call.request.count; n++) call.write(call.request);\n    \
                 call.end();\n  \
             }},\n  \
             gather: (call, end) => {{\n    \
                 let last;\n    \
                 call.on('data', note => last = note);\n    \
                 call.on('end', () => end(null, last));\n  \
             }},\n  \
             talk: call => {{\n    \
                 call.on('data', note => call.write(note));\n    \
                 call.on('end', () => call.end());\n  \
             }},\n\
         }});\n\
         new ReflectionService(types).addToServer(server);\n\
         const open = grpc.ServerCredentials.createInsecure();\n\
         server.bindAsync('127.0.0.1:{port}', open, () => {{}});\n"
    )
}

#[test]
fn servers_of_others_answer_each_call() {
    for name in ["grpcio", "grpc-js"] {
        let Some(server) = other(name) else {
            continue;
        };
        let at = format!("grpc://127.0.0.1:{}", server.port);
        call_all_kinds(&at);
        let url = format!("{at}/knee.Echo/Say");
        let out = run(&["run", &url, "-b", r#"{"status":14}"#, "-n", "20", "--full"]);
        let text = out.stdout;
        assert!(text.contains("14 UNAVAILABLE: 20"), "{name}: {text}");
    }
}
