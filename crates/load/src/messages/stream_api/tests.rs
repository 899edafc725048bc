use super::*;

/// What a message says to an API, in short: o for output, f for a finish, e for the end, ! for an
/// error, and the number of tokens.
fn said(api: StreamApi, event: &str, text: &str) -> String {
    let mut found = api;
    let meaning = found.meaning(event.as_bytes(), text.as_bytes());
    let marks = [
        (meaning.is_output, "o"),
        (meaning.is_finish || meaning.choices_finished != 0, "f"),
        (meaning.is_end, "e"),
        (meaning.error.is_some(), "!"),
    ];
    let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
    format!("{marks}{}", meaning.tokens.map(|n| n.to_string()).unwrap_or_default())
}

fn check(api: StreamApi, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(said(api, "", text), *expected, "{text}");
        let mut found = StreamApi::Auto;
        found.meaning(b"", text.as_bytes());
        let is_its = found == api || found == StreamApi::Auto || found == StreamApi::None;
        assert!(is_its, "{text} is of {found:?}");
    }
}

#[test]
fn messages_of_openai() {
    let delta = |inside: &str| format!("{{\"choices\":[{{\"index\":0,\"delta\":{inside}}}]}}");
    for (inside, expected) in [
        (r#"{"role":"assistant","content":""}"#, ""),
        (r#"{"role":"assistant","content":null}"#, ""),
        (r#"{"content":"Hi"}"#, "o"),
        (r#"{"content":" "}"#, "o"),
        (r#"{"content":"error: {\"error\":1}"}"#, "o"),
        (r#"{"content":[{"type":"text","text":"a"}]}"#, "o"),
        (r#"{"content":[{"type":"text","text":""}]}"#, ""),
        (r#"{"content":[{"type":"thinking","thinking":[{"text":"Hm"}]}]}"#, "o"),
        (r#"{"content":[]}"#, ""),
        (r#"{"content":"","images":[{"type":"image_url","image_url":{"url":"data:"}}]}"#, "o"),
        (r#"{"reasoning_content":"Hm","content":null}"#, "o"),
        (r#"{"reasoning":"Hm"}"#, "o"),
        (r#"{"reasoning":"","content":""}"#, ""),
        (r#"{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#, "o"),
        (r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"}]}"#, "o"),
        (r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"Em"}]}"#, "o"),
        (r#"{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"Em"}]}"#, ""),
        (r#"{"reasoning_details":[]}"#, ""),
        (r#"{"reasoning_text":"hm"}"#, "o"),
        (r#"{"thinking":"hm"}"#, "o"),
        (r#"{"audio":{"id":"a","transcript":"hi"}}"#, "o"),
        (r#"{"audio":{"id":"a","expires_at":1}}"#, ""),
        (r#"{"refusal":"I"}"#, "o"),
        (r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}"#, "o"),
        (r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}"#, "o"),
        (r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#, ""),
        (r#"{"tool_calls":[]}"#, ""),
        (r#"{"function_call":{"arguments":"1"}}"#, "o"),
        (r#"{}"#, ""),
    ] {
        check(StreamApi::Openai, &[(&delta(inside), expected)]);
    }
    check(
        StreamApi::Openai,
        &[
            (r#"{"choices":[]}"#, ""),
            (r#"{"choices":[],"usage":{"completion_tokens":12,"total_tokens":30}}"#, "12"),
            (r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#, "o"),
            (r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":2}}"#, "o2"),
            (r#"{"choices":[{"delta":{"content":""}},{"delta":{"content":"b"}}]}"#, "o"),
            (r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "f"),
            (r#"{"choices":[{"delta":{"content":"!"},"finish_reason":"length"}]}"#, "of"),
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#, "o"),
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"null"}]}"#, "o"),
            (r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#, "f!"),
            (r#"{"choices":[{"delta":{},"finish_reason":"cancelled"}]}"#, "f!"),
            (r#"{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}"#, "f!"),
            (r#"{"choices":[{"delta":{"content":""},"finish_reason":"network_error"}]}"#, "f!"),
            (r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#, "f"),
            (r#"{"choices":[{"delta":{},"finish_reason":"sensitive"}]}"#, "f"),
            (r#"{"type":"error","message":"a"}"#, "!"),
            (r#"{"detail":"Internal Server Error"}"#, "!"),
            (r#"{"code":500,"msg":"a"}"#, "!"),
            (r#"{"errors":[{"message":"a","code":3010}]}"#, "!"),
            (r#"{"message":"a","request_id":"r"}"#, "!"),
            (r#"{"type":"ping"}"#, ""),
            (r#"{"type":"keepalive","message":"a"}"#, ""),
            (r#"{"code":0,"msg":""}"#, ""),
            (r#"{"citations":["u"],"message":"a"}"#, ""),
            (r#"{"id":"c","object":"","choices":[],"message":"a"}"#, ""),
            (r#"{"choices":[],"x_groq":{"usage":{"completion_tokens":12}}}"#, "12"),
            (r#"{"choices":[{"delta":{},"usage":{"completion_tokens":4}}]}"#, "4"),
            (r#"{"object":"text_completion","choices":[{"text":"a","finish_reason":null}]}"#, "o"),
            (r#"{"choices":[{"text":""}]}"#, ""),
            (r#"{"error":{"message":"a"}}"#, "!"),
            (r#"{"error":"a"}"#, "!"),
            (r#"{"error":500}"#, "!"),
            (r#"{"error":0,"choices":[{"text":"a"}]}"#, "o"),
            (r#"{"error":null,"choices":[{"text":"a"}]}"#, "o"),
            (r#"{"error":"","choices":[{"text":"a"}]}"#, "o"),
            (r#"{"error":{},"choices":[{"text":"a"}]}"#, "o"),
            (r#"{"object":"error","message":"a"}"#, "!"),
            (
                r#"{"choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502}}"#,
                "f!",
            ),
            (r#"{"choices":[{"text":"a"}"#, "o"),
            ("not json", ""),
            ("", ""),
        ],
    );
}

#[test]
fn messages_of_anthropic() {
    check(
        StreamApi::Anthropic,
        &[
            (
                r#"{"type":"message_start","message":{"content":[],"usage":{"output_tokens":1}}}"#,
                "1",
            ),
            (
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                "",
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":{}}}"#,
                "o",
            ),
            (
                r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"Em"}}"#,
                "o",
            ),
            (r#"{"type":"ping"}"#, ""),
            (r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#, "o"),
            (r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}"#, ""),
            (
                r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}"#,
                "o",
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"a"}}"#,
                "",
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}"#,
                "",
            ),
            (
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}"#,
                "o",
            ),
            (r#"{"type":"content_block_stop","index":0}"#, ""),
            (
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#,
                "f15",
            ),
            (r#"{"type":"message_stop"}"#, "e"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "!"),
            (
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"event: error"}}"#,
                "o",
            ),
        ],
    );
    // Where the data does not say what it is, the name of the event does.
    assert_eq!(said(StreamApi::Anthropic, "message_stop", "{}"), "e");
    assert_eq!(said(StreamApi::Anthropic, "content_block_delta", r#"{"delta":{"text":"a"}}"#), "o");
    assert_eq!(said(StreamApi::Anthropic, "error", "overloaded"), "!");
}

#[test]
fn messages_of_responses() {
    check(
        StreamApi::Responses,
        &[
            (r#"{"type":"response.created","response":{"status":"in_progress","error":null}}"#, ""),
            (r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#, ""),
            (
                r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"f"}}"#,
                "o",
            ),
            (
                r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f"}}"#,
                "",
            ),
            (r#"{"type":"response.cancelled","response":{"status":"cancelled"}}"#, "e!"),
            (
                r#"{"type":"response.completed","response":{"status":"failed","error":{"message":"a"}}}"#,
                "e!",
            ),
            (r#"{"type":"response.completed","response":{"status":"completed"}}"#, "e"),
            (r#"{"type":"response.incomplete","response":{"status":"incomplete"}}"#, "e"),
            (r#"{"type":"response.queued","response":{"status":"queued"}}"#, ""),
            (r#"{"type":"response.output_text.delta","delta":"Hi"}"#, "o"),
            (r#"{"type":"response.output_text.delta","delta":""}"#, ""),
            (r#"{"type":"response.reasoning_summary_text.delta","delta":"a"}"#, "o"),
            (r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#, "o"),
            (r#"{"type":"response.reasoning.delta","delta":{"content":"We"}}"#, "o"),
            (r#"{"type":"response.output_text.done","text":"Hi"}"#, ""),
            (r#"{"type":"response.completed","response":{"usage":{"output_tokens":7}}}"#, "e7"),
            (r#"{"type":"response.incomplete","response":{"usage":{"output_tokens":7}}}"#, "e7"),
            (r#"{"type":"response.failed","response":{"error":{"message":"a"}}}"#, "e!"),
            (r#"{"type":"error","code":"x","message":"a","param":null,"sequence_number":1}"#, "!"),
        ],
    );
}

#[test]
fn messages_of_gemini() {
    let part = |part: &str| format!("{{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}}}}]}}");
    for (inside, expected) in [
        (r#"{"text":"a"}"#, "o"),
        (r#"{"text":"a","thought":true}"#, "o"),
        (r#"{"text":"","thoughtSignature":"Em"}"#, ""),
        (r#"{"text":""},{"text":"b"}"#, "o"),
        (r#"{"functionCall":{"name":"f","args":{}}}"#, "o"),
        (r#"{"inlineData":{"mimeType":"image/png","data":"a"}}"#, "o"),
        (r#"{"fileData":{"mimeType":"image/png","fileUri":"gs://a"}}"#, "o"),
        (r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#, "o"),
        (r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#, "o"),
        ("", ""),
    ] {
        check(StreamApi::Gemini, &[(&part(inside), expected)]);
    }
    check(
        StreamApi::Gemini,
        &[
            (
                r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":6,"thoughtsTokenCount":4}}"#,
                "f10",
            ),
            (r#"{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}"#, ""),
            (r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, "f"),
            (r#"{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"}}"#, ""),
            (r#"{"usageMetadata":{"promptTokenCount":6}}"#, ""),
            (r#"{"error":{"code":429,"message":"a","status":"RESOURCE_EXHAUSTED"}}"#, "!"),
        ],
    );
}

#[test]
fn messages_of_ollama() {
    check(
        StreamApi::Ollama,
        &[
            (r#"{"model":"m","created_at":"t","response":"a","done":false}"#, "o"),
            (r#"{"model":"m","response":"","done":false}"#, ""),
            (r#"{"model":"m","response":"","thinking":"a","done":false}"#, "o"),
            (r#"{"model":"m","message":{"role":"assistant","content":"a"},"done":false}"#, "o"),
            (r#"{"model":"m","message":{"content":"","thinking":"a"},"done":false}"#, "o"),
            (
                r#"{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"f"}}]},"done":false}"#,
                "o",
            ),
            (r#"{"model":"m","message":{"content":"","tool_calls":[]},"done":false}"#, ""),
            (r#"{"model":"m","response":"!","done":true,"eval_count":9}"#, "oe9"),
            (r#"{"model":"m","response":"","done":true,"done_reason":"stop"}"#, "e"),
            (r#"{"error":"an error was encountered while running the model"}"#, "!"),
        ],
    );
}

#[test]
fn messages_of_no_api() {
    for (event, text, expected, is_decided) in [
        ("", r#"{"n":1}"#, "o", true),
        ("", "tick", "o", true),
        ("", r#"{"done":false,"progress":3}"#, "o", true),
        ("", r#"{"type":"tick","message":"a"}"#, "o", true),
        ("", r#"{"code":200,"message":"a"}"#, "o", true),
        ("", r#"{"code":429,"message":"a"}"#, "!", false),
        ("", r#"{"code":429,"message":"a","job":3}"#, "o", true),
        ("", r#"{"status":500}"#, "o", true),
        ("", r#"{"status":500,"detail":"a"}"#, "!", false),
        ("", r#"{"success":false,"message":"a"}"#, "!", false),
        ("", r#"{"success":true,"message":"a"}"#, "o", true),
        ("", r#"{"detail":"a"}"#, "o", true),
        ("", r#"{"errors":[]}"#, "o", true),
        ("", r#"{"errors":[{"message":"a"}]}"#, "!", false),
        ("", r#"{"errors":[{"message":"a"}],"data":null}"#, "o", true),
        ("", r#"{"event":"error","status":400,"message":"a","task_id":"t"}"#, "!", false),
        ("", r#"{"event":"error","job":3}"#, "o", true),
        ("", r#"[{"error":1}]"#, "o", true),
        ("", r#"{"error":0.02,"epoch":3}"#, "o", true),
        ("", r#"{"error":false}"#, "o", true),
        ("", r#"{"error":null}"#, "o", true),
        ("", r#"{"error":""}"#, "o", true),
        ("", r#"{"error":"a","job":3}"#, "o", true),
        ("", r#"{"error":{"step":3},"job":3}"#, "o", true),
        ("", r#"{"error":{"message":"a"},"job":3}"#, "!", false),
        ("", r#"{"error":{"code":429},"job":3}"#, "!", false),
        ("", r#"{"success":false,"error":"a"}"#, "!", false),
        ("", r#"{"level":"error","error":"a","time":1}"#, "o", true),
        ("", r#"{"error":"a","error_type":"overloaded"}"#, "!", false),
        ("", r#"{"type":"error","message":"a"}"#, "!", false),
        ("error", "a", "!", false),
        ("error", r#"{"job":3}"#, "!", false),
        ("", r#"{"type":"ping"}"#, "", false),
        ("ping", "{}", "", false),
        ("", "PING", "", false),
        ("", " ", "", false),
        ("", r#""""#, "", false),
        ("", "pinged", "o", true),
        ("", "0", "o", true),
        ("", r#"{"type":"keepalive"}"#, "", false),
        ("", r#"{"statusCode":500,"message":"ISE","error":"Internal Server Error"}"#, "!", false),
        ("", r#"{"statusCode":200,"message":"a"}"#, "o", true),
        ("errors", "a", "o", true),
    ] {
        let mut api = StreamApi::Auto;
        let meaning = api.meaning(event.as_bytes(), text.as_bytes());
        let said = if meaning.is_output {
            "o"
        } else if meaning.error.is_some() {
            "!"
        } else {
            ""
        };
        assert_eq!((said, api == StreamApi::None), (expected, is_decided), "{event} {text}");
    }
}

#[test]
fn what_is_shown_of_an_error_is_short_and_harmless() {
    let mut api = StreamApi::Openai;
    let mut text = |text: &str| api.meaning(b"", text.as_bytes()).error.unwrap();
    assert_eq!(text(r#"{"error":{"message":"a\u001b[31m"}}"#), "a\\u{1b}[31m");
    assert_eq!(text(r#"{"error":{"code":500}}"#), r#"{"error":{"code":500}}"#);
    assert_eq!(text(r#"{"error":"a"}"#), "a");
    let long = format!("{{\"error\":\"{}\"}}", "ä".repeat(10_000));
    assert_eq!(text(&long).chars().count(), ERROR_SHOWN);
}
