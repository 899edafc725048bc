//! Sessions, errors and what is no message.

use super::{Session, greeting};
use serde_json::{Value, json};

#[test]
fn older_revisions_are_agreed_on() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut session = Session::silent(&format!("version-{version}"), &[]);
        let id = session.send("initialize", greeting(version));
        let result = session.answer(id)["result"].clone();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "knee");
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        let instructions = result["instructions"].as_str().unwrap();
        assert!(
            instructions.contains("load to loopback only, for at most 600 s"),
            "{instructions}"
        );
        let id = session.send("ping", json!({}));
        assert_eq!(session.answer(id)["result"], json!({}));
    }
}

/// The client offers what is not known: the server answers with what it knows.
#[test]
fn unknown_revision_is_answered_with_a_known_one() {
    let mut session = Session::silent("version", &[]);
    let id = session.send("initialize", greeting("2031-01-01"));
    assert_eq!(session.answer(id)["result"]["protocolVersion"], "2025-11-25");
}

/// From the revision of July 2026 on each request tells its revision, and none is first.
#[test]
fn requests_without_a_session_are_answered() {
    let mut session = Session::silent("stateless", &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let id = session.send("server/discover", json!({"_meta": meta}));
    let found = session.answer(id)["result"].clone();
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&"2026-07-28".into()), "{found}");
    let call = json!({"name": "explain", "arguments": {"code": "INVALID"}, "_meta": meta});
    let id = session.send("tools/call", call);
    let text = session.answer(id)["result"]["content"][0]["text"].clone();
    assert!(text.as_str().unwrap().contains("INVALID"), "{text}");
    assert_eq!(session.close().status, Some(0));
}

#[test]
fn tools_are_described() {
    let mut session = Session::start("list", &[]);
    let id = session.send("tools/list", json!({}));
    let tools = session.answer(id)["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = [
        "run",
        "sweep",
        "compare_targets",
        "compare",
        "report",
        "history",
        "explain",
        "scenario_check",
        "scenario_example",
    ];
    assert_eq!(names, expected);
    let run = &tools[0];
    assert_eq!(run["annotations"]["readOnlyHint"], false);
    assert_eq!(run["inputSchema"]["required"], json!(["url"]));
    assert_eq!(run["inputSchema"]["additionalProperties"], false);
    assert_eq!(run["inputSchema"]["properties"]["rate"]["type"], "number");
    assert_eq!(run["inputSchema"]["properties"]["header"]["type"], "array");
    assert_eq!(run["outputSchema"]["type"], "object");
    assert_eq!(tools[6]["annotations"]["readOnlyHint"], true);
}

fn error_of(session: &mut Session, method: &str, params: Value) -> (i64, String) {
    let id = session.send(method, params);
    let error = session.answer(id)["error"].clone();
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

#[test]
fn unknown_tools_and_methods_are_protocol_errors() {
    let mut session = Session::start("errors", &[]);
    let (code, message) = error_of(&mut session, "tools/call", json!({"name": "walk"}));
    assert_eq!(code, -32602);
    assert!(message.starts_with("unknown tool 'walk': expected run, sweep"), "{message}");
    assert_eq!(error_of(&mut session, "tools/walk", json!({})).0, -32601);
    assert_eq!(error_of(&mut session, "resources/list", json!({})).0, -32601);
}

#[test]
fn bytes_that_are_no_message_end_nothing() {
    let mut session = Session::start("bytes", &[]);
    let huge = [&[b'x'; 3 << 20][..], b"\n"].concat();
    for bytes in [&b"{\"jsonrpc\": \n"[..], b"\xff\xfe\n", b"\n", &huge] {
        session.write_bytes(bytes);
        let id = session.send("ping", json!({}));
        assert_eq!(session.message(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    // There are no batches since the revision of June 2025.
    for message in [json!([{"jsonrpc": "2.0", "id": 7, "method": "ping"}]), json!(7), json!({})] {
        session.write(&message);
        assert_eq!(session.message()["error"]["code"], -32600, "{message}");
        let id = session.send("ping", json!({}));
        assert_eq!(session.message()["id"], id);
    }
    let ended = session.close();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn notification_begins_no_session() {
    let mut session = Session::silent("notification", &[]);
    session.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let ended = session.close();
    assert_eq!(ended.status, Some(2));
    let expected = "error: no session was begun: expected the request 'initialize'\n";
    assert_eq!(ended.stderr, expected);
}

#[test]
fn closed_input_ends_it_before_and_after_a_session() {
    for options in [&[][..], &["--rate-max", "5"]] {
        let ended = Session::silent("unused", options).close();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
        let ended = Session::start("unused", options).close();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
    }
}
