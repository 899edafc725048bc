//! No descriptor set and no source makes the pool of types panic, nor a message of its types. Errors
//! are one line.

use knee_scenario::grpc::GrpcTypes;

/// Calls of the seeds, and messages for them.
const PATHS: [&str; 3] = ["/knee.edition.Shop/Buy", "/knee.newer.Newer/Say", "/a.S/M"];
const MESSAGES: [&str; 6] = [
    "{}",
    r#"{"id":0,"plain":[1],"packed":[1],"first":{"name":"a"},"items":[{}],"kind":"ALSO"}"#,
    r#"{"byName":{"k":{"name":"a"}},"deep":{"items":{"5":{}}},"hiddens":{"1":{"id":2}}}"#,
    r#"{"at":"1970-01-01T00:00:01Z","extra":{"@type":"t/google.protobuf.Duration","value":"2s"}}"#,
    r#"{"a":{"b":1,"1":"x","true":null},"m":{"1":{}},"[knee.edition.marks]":[1],"word":"x"}"#,
    r#"[{"id":1},{"id":"x"}]"#,
];

/// The first byte says whether the rest is a descriptor set or a source.
pub fn check(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else {
        return;
    };
    let types = if choice % 2 == 0 {
        GrpcTypes::from_set(rest)
    } else {
        let text = String::from_utf8_lossy(rest).into_owned();
        let read = move |path: &str| match path {
            "./a.proto" => Ok(text.clone()),
            other => Err(format!("no file {other}")),
        };
        GrpcTypes::from_protos(&["a.proto".to_owned()], &[], read)
    };
    let types = match types {
        Ok(types) => types,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    for path in PATHS {
        if let Ok(method) = types.method(path) {
            MESSAGES.iter().for_each(|message| drop(method.encode(message)));
        }
    }
    assert!(GrpcTypes::from_set(&types.to_set()).is_ok(), "its own set is one");
}
