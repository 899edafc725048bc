//! Streams of language models, over HTTP/1.1 and HTTP/2: a server sends what each API sends.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{TempPath, measured, run};
use serde_json::{Value, json};

/// A server in JavaScript that streams by the path of the request.
const SERVER: &str = r#"
const event = data => `data: ${typeof data == 'string' ? data : JSON.stringify(data)}\n\n`;
const named = data => `event: ${data.type}\n` + event(data);
const chat = (delta, rest) => event({object: 'chat.completion.chunk',
  choices: [{index: 0, delta, finish_reason: null, ...rest}]});
const delta = text => named({type: 'content_block_delta', index: 0, delta: {type: 'text_delta', text}});
const said = delta => named({type: 'response.output_text.delta', delta});
const part = (text, n, rest) => JSON.stringify({candidates: [{content: {parts: [{text}]}, ...rest}],
  usageMetadata: {candidatesTokenCount: n}});
const line = data => JSON.stringify({model: 'm', done: false, ...data}) + '\n';
const start = named({type: 'message_start', message: {content: [], usage: {output_tokens: 1}}});
const SSE = 'text/event-stream', JSON_TYPE = 'application/json; charset=UTF-8';
const NDJSON = 'application/x-ndjson';
const streams = {
  // The role at once, the text after a while, the usage long after it.
  '/openai': [SSE, chat({role: 'assistant', content: ''}), 150, chat({content: 'Hel'}), 10,
    chat({content: 'lo'}), 10, chat({content: '!'}), chat({}, {finish_reason: 'stop'}), 200,
    event({choices: [], usage: {completion_tokens: 6}}), event('[DONE]')],
  '/completions': [SSE, event({choices: [{text: 'a'}]}), 5, event({choices: [{text: 'b'}]}),
    event('[DONE]')],
  '/anthropic': [SSE, start, named({type: 'ping'}), 150, delta('a'), 10, delta('bc'), 10, delta('d'),
    named({type: 'message_delta', delta: {stop_reason: 'end_turn'}, usage: {output_tokens: 6}}),
    named({type: 'message_stop'})],
  '/responses': [SSE, named({type: 'response.created', response: {error: null}}), 150, said('a'), 10,
    said('b'), 10, said('c'), named({type: 'response.completed', response: {usage: {output_tokens: 6}}})],
  '/gemini': [SSE, 150, event(part('a', 2)), 10, event(part('b', 4)), 10,
    event(part('c', 6, {finishReason: 'STOP'}))],
  '/gemini-array': [JSON_TYPE, '[', 150, part('a', 2), 10, ',\n' + part('b', 4), 10,
    ',\n' + part('c', 6, {finishReason: 'STOP'}), ']'],
  '/ollama': [NDJSON, 150, line({message: {content: 'a'}}), 10, line({message: {content: 'b'}}), 10,
    line({message: {content: 'c'}, done: true, eval_count: 6})],
  '/other': [SSE, event({n: 1}), 5, event({n: 2, error: 'none'}), 5, event('error')],
  '/openai-error': [SSE, event({error: {message: 'out of memory', code: 500}}), event('[DONE]')],
  '/openai-late-error': [SSE, chat({content: 'a'}), 5, event({error: {message: 'gone'}})],
  '/anthropic-error': [SSE, start, delta('a'),
    named({type: 'error', error: {type: 'overloaded_error', message: 'Overloaded'}})],
  '/responses-error': [SSE, named({type: 'response.created', response: {}}),
    named({type: 'response.failed', response: {error: {message: 'failed'}}})],
  '/gemini-error': [JSON_TYPE, '[' + part('a', 1), ',' + JSON.stringify({error: {message: 'quota'}}), ']'],
  '/ollama-error': [NDJSON, line({response: 'a'}), JSON.stringify({error: 'runner stopped'}) + '\n'],
};
const pause = ms => new Promise(over => setTimeout(over, ms));
async function answer(request, response) {
  const url = new URL(request.url, 'http://a');
  if (url.pathname == '/said') {
    response.writeHead(url.searchParams.get('text') == 'Hello!' ? 200 : 400);
    return response.end();
  }
  const [type, ...parts] = streams[url.pathname];
  response.writeHead(200, {'Content-Type': type});
  for (const part of parts) await (typeof part == 'number' ? pause(part) : response.write(part));
  response.end();
}
"#;

const HTTP1: &str = "--http1.1";
const HTTP2: &str = "--http2-prior-knowledge";

/// Starts the server for a version of HTTP.
fn serve(version: &str) -> Option<HttpServer> {
    let module = if version == HTTP2 { "http2" } else { "http" };
    launch("node", |site, port| {
        let listen =
            format!("require('{module}').createServer(answer).listen({port}, '127.0.0.1');\n");
        vec![site.write("server.js", &[SERVER, &listen].concat())]
    })
}

/// The only trial of a run of four streams.
fn trial(server: &HttpServer, path: &str, options: &[&str]) -> Value {
    let load = ["--vusers", "2", "-n", "4", "--slo", "stream<60s"];
    let report = measured(&[&["run", &server.url(path)][..], &load, options].concat());
    report["trials"][0].clone()
}

#[test]
fn each_api_is_read_over_any_version() {
    for version in [HTTP1, HTTP2] {
        let Some(server) = serve(version) else {
            return;
        };
        for (path, options, api, others, units) in [
            ("openai", &[][..], Some("openai"), 3, 6),
            ("openai", &["--stream-api", "openai"], Some("openai"), 3, 6),
            ("anthropic", &[], Some("anthropic"), 4, 6),
            ("responses", &["--stream-api", "auto"], Some("responses"), 2, 6),
            ("gemini", &[], Some("gemini"), 0, 6),
            ("gemini-array", &["--stream-api", "gemini"], Some("gemini"), 0, 6),
            ("ollama", &["--stream-api", "ollama"], Some("ollama"), 0, 6),
            ("ollama", &["--messages", "ndjson"], Some("ollama"), 0, 6),
            ("other", &[], None, 0, 3),
            ("other", &["--stream-api", "none"], None, 0, 3),
        ] {
            let trial = trial(&server, path, &[&[version][..], options].concat());
            let what = format!("{path} {options:?} {version}: {trial}");
            let told = &trial["messages"];
            assert_eq!(trial["outcomes"]["ok"], 4, "{what}");
            assert_eq!((&told["count"], &told["good"]), (&json!(12), &json!(4)), "{what}");
            assert_eq!(told["units"], 4 * units, "{what}");
            assert_eq!(told["others"].as_u64().unwrap_or(0), 4 * others, "{what}");
            assert_eq!(told["gap_ns"]["count"], 8, "only between messages with output: {what}");
            let Some(api) = api else {
                assert_eq!(told["apis"], Value::Null, "{what}");
                continue;
            };
            assert_eq!(told["apis"], json!({ api: 4 }), "{what}");
            assert_eq!(told["per_token_ns"]["count"], 4, "{what}");
            let first = told["first_message_ns"]["min"].as_u64().unwrap();
            assert!(first > 140_000_000, "the first message with output: {what}");
        }
        // No usage: times are stated per message.
        let trial = trial(&server, "completions", &[version]);
        assert_eq!(trial["messages"]["per_token_ns"], Value::Null, "{trial}");
        assert_eq!(trial["messages"]["per_message_ns"]["count"], 4, "{trial}");
    }
}

#[test]
fn what_follows_the_last_output_is_no_part_of_its_stream() {
    let Some(server) = serve(HTTP1) else {
        return;
    };
    let told = &trial(&server, "openai", &[])["messages"];
    // The usage comes 200 ms after the last text, which only a busy host brings close to it.
    let (stream, first) =
        (told["stream_ns"]["min"].as_u64(), told["first_message_ns"]["min"].as_u64());
    assert!(stream.unwrap() - first.unwrap() < 200_000_000, "{told}");
    let none = &trial(&server, "openai", &["--stream-api", "none"])["messages"];
    assert!(none["stream_ns"]["min"].as_u64().unwrap() > 350_000_000, "{none}");
    assert_eq!((&none["count"], &none["others"]), (&json!(24), &Value::Null), "{none}");
}

#[test]
fn an_error_within_a_stream_is_a_failure() {
    for version in [HTTP1, HTTP2] {
        let Some(server) = serve(version) else {
            return;
        };
        for (path, options, text) in [
            ("openai-error", &[][..], "out of memory"),
            ("openai-error", &["--end-message", ""], "out of memory"),
            ("openai-late-error", &[], "gone"),
            ("openai-late-error", &["--stream-api", "openai"], "gone"),
            ("anthropic-error", &[], "Overloaded"),
            ("responses-error", &[], "failed"),
            ("gemini-error", &["--stream-api", "gemini"], "quota"),
            ("ollama-error", &["--stream-api", "ollama"], "runner stopped"),
        ] {
            let trial = trial(&server, path, &[&[version][..], options].concat());
            let what = format!("{path} {options:?} {version}: {trial}");
            assert_eq!(trial["outcomes"]["stream_error"], 4, "{what}");
            assert_eq!(trial["messages"]["first_error"], text, "{what}");
            assert_eq!((&trial["messages"]["good"]), &json!(0), "{what}");
        }
        let trial = trial(&server, "openai-error", &[version, "--stream-api", "none"]);
        assert_eq!(trial["outcomes"]["ok"], 4, "without an API nothing is an error: {trial}");
    }
}

#[test]
fn a_sweep_finds_no_capacity_in_errors() {
    let Some(server) = serve(HTTP1) else {
        return;
    };
    let url = server.url("openai-error");
    let bounds = ["--slo", "first_message<10s", "--axis", "rate", "--rates", "20,40"];
    let time = ["--duration", "1s", "--warmup", "0", "--json", "-"];
    let ended = run(&[&["sweep", &url][..], &bounds, &time].concat());
    let report = ended.json();
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial["messages"]["good"] == 0), "{report}");
    assert!(trials.iter().all(|trial| trial["outcomes"]["ok"] == 0), "{report}");
    assert_ne!(report["result"], "passed", "{report}");
}

#[test]
fn a_conversation_takes_its_text_from_the_messages() {
    for version in [HTTP1, HTTP2] {
        let Some(server) = serve(version) else {
            return;
        };
        let file = TempPath::new("conversation.yaml");
        let text = format!(
            "target: {}\nsessions:\n  chat:\n    steps:\n      - get: /openai\n        \
             stream_api: openai\n        extract:\n          \
             text: {{ json: /choices/0/delta/content }}\n      - get: /said?text=${{text}}\n",
            server.url("")
        );
        std::fs::write(&file.0, text).unwrap();
        let report = measured(&["run", file.str(), "--vusers", "1", "-n", "6", version]);
        assert_eq!(report["trials"][0]["outcomes"]["ok"], 12, "{version}: {report}");
        assert_eq!(report["trials"][0]["messages"]["count"], 18, "{version}: {report}");
    }
}

#[test]
fn wrong_words_for_streams_are_said() {
    let ended = run(&["run", "http://127.0.0.1:9/", "--stream-api", "chatgpt"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ollama"), "{ended:?}");
    let ended = run(&["run", "http://127.0.0.1:9/", "--end-message", "/a~b=true"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("JSON Pointer"), "{ended:?}");
}
