use super::*;
use knee_load::quantity::ParseError;

const CHAT: &str = r#"
syntax = "proto3";
package chat.v1;
import "common/user.proto";
import "google/protobuf/timestamp.proto";
message Line { string text = 1; int32 id = 2; User from = 3; google.protobuf.Timestamp at = 4; }
service Chat {
  rpc Say(Line) returns (Line);
  rpc Follow(Line) returns (stream Line);
  rpc Gather(stream Line) returns (Line);
}
"#;
const USER: &str = "syntax = \"proto3\"; package chat.v1; message User { string name = 1; }";

fn read(path: &str) -> Result<String, String> {
    match path {
        "api/chat.proto" => Ok(CHAT.to_owned()),
        "api/common/user.proto" => Ok(USER.to_owned()),
        "api/broken.proto" => Ok("syntax = \"proto3\"; message A { oops }".to_owned()),
        _ => Err(format!("cannot read {path}")),
    }
}

fn types(file: &str) -> Result<GrpcTypes, ParseError> {
    GrpcTypes::from_protos(&[file.to_owned()], &[], read)
}

fn wrong<T>(result: Result<T, ParseError>) -> String {
    let text = result.err().expect("an error").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn json_becomes_length_prefixed_messages() {
    let types = types("api/chat.proto").unwrap();
    let say = types.method("/chat.v1.Chat/Say").unwrap();
    assert!(!say.streams_requests && !say.streams_responses);
    assert_eq!(
        say.encode(r#"{"text":"hi","id":5}"#).unwrap().concat(),
        b"\0\0\0\0\x06\x0a\x02hi\x10\x05"
    );
    assert_eq!(say.encode("").unwrap().concat(), b"\0\0\0\0\0");
    let user = say.encode(r#"{"from":{"name":"x"},"at":"1970-01-01T00:00:01Z"}"#).unwrap().concat();
    assert_eq!(user, b"\0\0\0\0\x09\x1a\x03\x0a\x01x\x22\x02\x08\x01");
    let gather = types.method("/chat.v1.Chat/Gather").unwrap();
    assert!(gather.streams_requests);
    assert_eq!(
        gather.encode(r#"[{"id":1},{}]"#).unwrap().concat(),
        b"\0\0\0\0\x02\x10\x01\0\0\0\0\0"
    );
    assert!(types.method("/chat.v1.Chat/Follow").unwrap().streams_responses);
}

#[test]
fn bad_input_is_one_line_that_names_it() {
    let types_of = types("api/chat.proto").unwrap();
    let say = types_of.method("/chat.v1.Chat/Say").unwrap();
    for (json, want) in [
        ("{", "no JSON"),
        (r#"{"id":"x"}"#, "'id'"),
        (r#"{"from":{"name":7}}"#, "'from.name'"),
        (r#"{"txt":"x"}"#, "txt"),
        ("[{}]", "does not fit chat.v1.Line"),
    ] {
        let text = wrong(say.encode(json));
        assert!(text.contains(want), "{json}: {text}");
    }
    for (path, want) in [
        ("/chat.v1.Chat/Sai", "unknown method 'Sai': did you mean 'Say'?"),
        ("/chat.v1.Chet/Say", "unknown service 'chat.v1.Chet': did you mean 'chat.v1.Chat'?"),
        ("/", "names no method: expected /package.Service/Method"),
        ("/a/b/c", "names no method"),
    ] {
        let text = wrong(types_of.method(path));
        assert!(text.contains(want), "{path}: {text}");
    }
    for (file, want) in
        [("api/none.proto", "cannot read api/none.proto"), ("api/broken.proto", "broken.proto")]
    {
        let text = wrong(types(file));
        assert!(text.contains(want), "{file}: {text}");
    }
    assert!(wrong(GrpcTypes::from_set(b"\xff\xff")).contains("no descriptor set"));
}

/// The encoded descriptor set of the files above.
fn set() -> Vec<u8> {
    types("api/chat.proto").unwrap().to_set()
}

#[test]
fn reflection_gives_the_same_types_file_by_file() {
    let set = set();
    let ask = |question: Vec<u8>| reflection::answer(&set, &question);
    let learnt = reflection::learn("/chat.v1.Chat/Say", ask).unwrap();
    let json = r#"{"from":{"name":"x"}}"#;
    let encode = |types: &GrpcTypes| types.method("/chat.v1.Chat/Say").unwrap().encode(json);
    assert_eq!(encode(&learnt), encode(&GrpcTypes::from_set(&set).unwrap()));
    let text = wrong(reflection::learn("/chat.v1.Chot/Say", ask));
    assert!(text.contains("did you mean 'chat.v1.Chat'?"), "{text}");
    let text = wrong(reflection::learn("/chat.v1.Chat/Say", |_| Ok(b"\xff".to_vec())));
    assert!(text.contains("no answer"), "{text}");
}

#[test]
fn endless_reflection_ends() {
    use prost::Message as _;
    use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
    let mut set = FileDescriptorSet::decode(set().as_slice()).unwrap();
    // A file that imports more names than there may be files.
    let names = (0..50_000).map(|number| format!("{number}.proto"));
    set.file.iter_mut().for_each(|file| file.dependency.extend(names.clone()));
    let set = set.encode_to_vec();
    let text = wrong(reflection::learn("/chat.v1.Chat/Say", |q| reflection::answer(&set, &q)));
    assert!(text.contains("over 1000 files"), "{text}");

    // Files that import one more each, and large ones.
    for (bytes, want) in [(0, "over 1000 files"), (1 << 20, "over 32 MiB")] {
        let mut number = 0;
        let text = wrong(reflection::learn("/chat.v1.Chat/Say", |_| {
            number += 1;
            let file = FileDescriptorProto {
                name: Some(format!("{number}")),
                dependency: vec![format!("{}", number + 1)],
                package: Some("x".repeat(bytes)),
                ..FileDescriptorProto::default()
            };
            // An answer with the field of files (4), which has the file (1).
            let field = |tag: u8, content: &[u8]| {
                let mut length = Vec::new();
                prost::encoding::encode_varint(content.len() as u64, &mut length);
                [&[tag << 3 | 2][..], &length, content].concat()
            };
            Ok(field(4, &field(1, &file.encode_to_vec())))
        }));
        assert!(text.contains(want), "{text}");
    }
}
