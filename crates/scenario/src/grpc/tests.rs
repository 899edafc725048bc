use super::edition_source::edition_source;
use super::reflection::Question;
use super::*;
use knee_load::quantity::ParseError;
use proptest::prelude::*;
use prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
};
use std::cell::Cell;
use std::collections::BTreeSet;

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
const USER: &str = "syntax = \"proto3\"; package chat.v1; message User { string name = 1; \
                    int32 user_age = 2; repeated User friends = 3; map<string, User> by_name = 4; }";

fn read(path: &str) -> Result<String, String> {
    match path {
        "api/chat.proto" => Ok(CHAT.to_owned()),
        "api/common/user.proto" => Ok(USER.to_owned()),
        "api/edition.proto" => Ok(include_str!("tests/edition.proto").to_owned()),
        "api/edition2024.proto" => Ok(include_str!("tests/edition2024.proto").to_owned()),
        "api/old.proto" => Ok(OLD.to_owned()),
        "api/floats.proto" => Ok(FLOATS.to_owned()),
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
    let ages = r#"{"from":{"user_age":1,"byName":{"userAge":{"userAge":2},"user_age":{}}}}"#;
    assert!(say.encode(ages).is_ok());
    let gather = types.method("/chat.v1.Chat/Gather").unwrap();
    assert!(gather.streams_requests);
    assert_eq!(
        gather.encode(r#"[{"id":1},{}]"#).unwrap().concat(),
        b"\0\0\0\0\x02\x10\x01\0\0\0\0\0"
    );
    assert!(types.method("/chat.v1.Chat/Follow").unwrap().streams_responses);
}

const FLOATS: &str = r#"
syntax = "proto3";
package f;
message F {
  double d = 1; float f = 2; optional float o = 3; repeated double r = 4; F inner = 5;
  oneof one { float a = 6; int32 b = 7; } map<string, double> m = 8; int32 i = 9;
}
service S { rpc Call(F) returns (F); }
"#;

/// A number without presence is the default where all of its bits are 0 (protobuf.dev, "Implicit
/// Presence"): -0.0 is none. A 0 that is given is sent too, which means the same.
#[test]
fn negative_zeros_are_sent() {
    let types = types("api/floats.proto").unwrap();
    let again = GrpcTypes::from_set(&types.to_set()).unwrap();
    for types in [types, again] {
        let method = types.method("/f.S/Call").unwrap();
        for (json, want) in [
            (r#"{"d":-0.0}"#, &b"\x09\0\0\0\0\0\0\0\x80"[..]),
            (r#"{"f":-0.0}"#, b"\x15\0\0\0\x80"),
            (r#"{"f":"-0"}"#, b"\x15\0\0\0\x80"),
            (r#"{"o":-0.0}"#, b"\x1d\0\0\0\x80"),
            (r#"{"a":-0.0}"#, b"\x35\0\0\0\x80"),
            (r#"{"r":[-0.0]}"#, b"\x22\x08\0\0\0\0\0\0\0\x80"),
            (r#"{"inner":{"f":-0.0}}"#, b"\x2a\x05\x15\0\0\0\x80"),
            (r#"{"f":1.5}"#, b"\x15\0\0\xc0\x3f"),
            (r#"{"f":0}"#, b"\x15\0\0\0\0"),
            (r#"{"f":null,"d":null}"#, b""),
            (r#"{"i":0,"r":[]}"#, b""),
            (r#"{"m":{"k":1.5}}"#, b"\x42\x0c\x0a\x01k\x11\0\0\0\0\0\0\xf8\x3f"),
        ] {
            assert_eq!(&method.encode(json).unwrap().concat()[5..], want, "{json}");
        }
    }
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
        (r#"{"from":{"userAge":1,"user_age":2}}"#, "the field 'user_age' is given by both"),
        (r#"{"from":{"friends":[{},{"user_age":1,"userAge":1}]}}"#, "given by both"),
        (r#"{"from":{"byName":{"a":{"user_age":1,"userAge":1}}}}"#, "given by both"),
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
    let learnt = reflection::learn("/chat.v1.Chat/Say", &none(), ask).unwrap();
    let json = r#"{"from":{"name":"x"}}"#;
    let encode = |types: &GrpcTypes| types.method("/chat.v1.Chat/Say").unwrap().encode(json);
    assert_eq!(encode(&learnt), encode(&GrpcTypes::from_set(&set).unwrap()));
    let text = wrong(reflection::learn("/chat.v1.Chot/Say", &none(), ask));
    assert!(text.contains("did you mean 'chat.v1.Chat'?"), "{text}");
    let nothing = reflection::learn("/chat.v1.Chat/Say", &none(), |_| Ok(b"\xff".to_vec()));
    assert!(wrong(nothing).contains("no answer"));
}

fn none() -> BTreeSet<String> {
    BTreeSet::new()
}

#[test]
fn the_types_of_any_are_asked_for_and_those_of_google_known() {
    let set = set();
    let asked = Cell::new(0);
    let ask = |question: Vec<u8>| {
        asked.set(asked.get() + 1);
        reflection::answer(&set, &question)
    };
    let json = r#"[{"a":{"@type":"t/chat.v1.User","name":"x"},
        "b":[{"@type":"t/google.protobuf.Duration","value":"2s"}]}, {"@type": 7}]"#;
    let names = any_types(json);
    assert_eq!(names.iter().collect::<Vec<_>>(), ["chat.v1.User", "google.protobuf.Duration"]);
    let learnt = reflection::learn("/chat.v1.Chat/Say", &names, ask).unwrap();
    assert_eq!(asked.get(), 2, "the service and the user, whose file need not be asked for again");
    assert!(learnt.method("/chat.v1.Chat/Say").is_ok());
    let unknown = BTreeSet::from(["chat.v1.Usr".to_owned()]);
    let text = wrong(reflection::learn("/chat.v1.Chat/Say", &unknown, ask));
    assert!(text.contains("lacks the type chat.v1.Usr of an Any"), "{text}");
    // A server that gives the same file to every question.
    let same = |_: Vec<u8>| {
        let user = Question { symbol: Some("chat.v1.Chat".to_owned()), ..Question::default() };
        reflection::answer(&set, &user.encode_to_vec())
    };
    let text = wrong(reflection::learn("/chat.v1.Chat/Say", &none(), same));
    assert!(text.contains("common/user.proto"), "{text}");
}

/// A call, its message, and its encoding by protobuf 7.36 of Python.
const OF_EDITIONS: &[(&str, &str, &str)] = &[
    (BUY, r#"{"id":0}"#, "0800"),
    (BUY, r#"{"count":0}"#, ""),
    (BUY, r#"{"count":7}"#, "1007"),
    (BUY, r#"{"plain":[1,2]}"#, "18011802"),
    (BUY, r#"{"packed":[1,2]}"#, "22020102"),
    (BUY, r#"{"first":{"name":"a"}}"#, "2b0a01612c"),
    (BUY, r#"{"items":[{"name":"a"},{}]}"#, "330a0161343334"),
    (BUY, r#"{"byName":{"k":{"name":"a"}}}"#, "3a080a016b12030a0161"),
    (BUY, r#"{"kind":"ALSO"}"#, "4001"),
    (BUY, r#"{"needed":0}"#, "4800"),
    (BUY, r#"{"number":0}"#, "5800"),
    (BUY, r#"{"word":""}"#, "5200"),
    (BUY, r#"{"at":"1970-01-01T00:00:01Z"}"#, "62020801"),
    (BUY, r#"{"default":5}"#, "6805"),
    (
        BUY,
        r#"{"extra":{"@type":"t/google.protobuf.Duration","value":"2s"}}"#,
        "72200a1a742f676f6f676c652e70726f746f6275662e4475726174696f6e12020802",
    ),
    (BUY, r#"{"words":["a","b"]}"#, "7a01617a0162"),
    (
        BUY,
        r#"{"deep":{"item":{"name":"a"},"items":{"5":{"name":"b"}},"zero":0,"chosen":0}}"#,
        "8201100b0a01610c1207080512030a01622000",
    ),
    (BUY, r#"{"[knee.edition.marks]":[1,2]}"#, "c00c01c00c02"),
    (SAY, r#"{"id":0}"#, "0800"),
    (SAY, r#"{"all":[-1,1]}"#, "12020102"),
    (SAY, r#"{"kind":"KIND_ONE"}"#, "1801"),
    (SAY, r#"{"hidden":{"id":0,"data":"AAE="}}"#, "231202000124"),
    (SAY, r#"{"local":"x"}"#, "2a0178"),
    (SAY, r#"{"hiddens":{"1":{"id":2}}}"#, "3206080112020802"),
    // Files of no edition are what they were.
    ("/chat.v1.Chat/Say", r#"{"id":0}"#, ""),
    ("/old.Old/Call", r#"{"id":0,"all":[1,2],"kind":"TWO"}"#, "0800100110021802"),
];
const BUY: &str = "/knee.edition.Shop/Buy";
const SAY: &str = "/knee.newer.Newer/Say";

const OLD: &str = r#"
syntax = "proto2";
package old;
message Line {
  optional int32 id = 1;
  repeated int32 all = 2;
  optional Kind kind = 3;
  optional int32 marked = 7 [default = 5];
}
enum Kind { TWO = 2; ONE = 1; }
service Old { rpc Call(Line) returns (Line); }
"#;

#[test]
fn editions_are_encoded_as_protobuf_encodes_them() {
    let files = ["api/edition.proto", "api/edition2024.proto", "api/chat.proto", "api/old.proto"];
    let compiled = GrpcTypes::from_protos(&files.map(str::to_owned), &[], read).unwrap();
    // As protoc 35.1 writes them, without the files of Google.
    let parts: [&[u8]; 3] = [
        include_bytes!("tests/edition.binpb"),
        include_bytes!("tests/edition2024.binpb"),
        &old_set(),
    ];
    let set = GrpcTypes::from_set(&parts.concat()).unwrap();
    let again = GrpcTypes::from_set(&set.to_set()).unwrap();
    for (path, json, want) in OF_EDITIONS {
        for (source, types) in [("source", &compiled), ("set", &set), ("again", &again)] {
            let method = types.method(path).unwrap();
            let bytes = method.encode(json).unwrap_or_else(|e| panic!("{source} {json}: {e}"));
            let hex: String = bytes[0][5..].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, *want, "{source} {path} {json}");
        }
    }
    assert!(set.method(BUY).unwrap().streams_responses);
}

fn old_set() -> Vec<u8> {
    let files = ["api/chat.proto", "api/old.proto"].map(str::to_owned);
    GrpcTypes::from_protos(&files, &[], read).unwrap().to_set()
}

#[test]
fn what_is_of_no_known_edition_is_one_line_that_names_editions() {
    let compile = |text: &'static str| {
        let read = move |_: &str| Ok(text.to_owned());
        GrpcTypes::from_protos(&["a.proto".to_owned()], &[], read)
    };
    for (text, want) in [
        ("edition = '2099';", "a.proto: unknown edition '2099': the editions 2023 and 2024"),
        ("edition = '2025'; message A {}", "unknown edition '2025'"),
        ("edition = '2023'; message A { oops }", "editions are read in part"),
        ("edition = '2023'; message A { int32 a = 1 }", "editions are read in part"),
    ] {
        let text = wrong(compile(text));
        assert!(text.contains(want), "{text}");
    }
    assert!(compile("edition = '2023'; message A { int32 edition = 1; }").is_ok());
    assert!(compile("syntax = 'proto3'; message edition { int32 a = 1; }").is_ok());
    let file = |syntax: &str, edition: u8| {
        let name = FileDescriptorProto {
            name: Some("b.proto".to_owned()),
            syntax: Some(syntax.to_owned()),
            ..FileDescriptorProto::default()
        };
        let file = [name.encode_to_vec(), vec![14 << 3, 0x80 | edition, 7]].concat();
        GrpcTypes::from_set(&[vec![0x0A, file.len() as u8], file].concat())
    };
    assert!(file("editions", 1000_u16.to_le_bytes()[0] & 0x7F).is_ok());
    for (syntax, edition) in [("editions", 0x7F), ("proto4", 0x7F), ("proto3", 0x7F)] {
        let text = wrong(file(syntax, edition));
        assert!(text.contains("the editions 2023 and 2024 are read"), "{text}");
    }
}

#[test]
fn sources_of_editions_become_words_of_proto3_line_by_line() {
    let line = |text: &str| {
        let source = format!("edition = '2023';\n{text}");
        let read = edition_source(&source).unwrap().unwrap();
        assert_eq!(read.text.lines().count(), source.lines().count());
        read.text.strip_prefix("syntax = \"proto3\";\n").unwrap().to_owned()
    };
    for (text, want) in [
        ("message A { reserved a, b; }", "message A {                }"),
        ("message A { reserved \"a\"; }", "message A { reserved \"a\"; }"),
        ("message A { reserved 1 to 5; }", "message A { reserved 1 to 5; }"),
        ("export message A {}", "       message A {}"),
        ("message A { local enum B { X = 0; } }", "message A {       enum B { X = 0; } }"),
        ("message A { local enum = 1; }", "message A { local enum = 1; }"),
        ("message A { int32 export = 1; }", "message A { int32 export = 1; }"),
        ("import option \"a.proto\";", "                        "),
        ("import \"a.proto\";", "import \"a.proto\";"),
        ("// import option \"a\";", "// import option \"a\";"),
        ("/* export message A */ ;", "/* export message A */ ;"),
        ("option x = \"; export message \\\" A\";", "option x = \"; export message \\\" A\";"),
        ("message A { int32 a = 1 [default = 5]; }", "message A { int32 a = 1 [feature = 5]; }"),
        ("message A { int32 default = 1; }", "message A { int32 default = 1; }"),
        ("message A {\n reserved\n a; }", "message A {\n         \n    }"),
    ] {
        assert_eq!(line(text), want, "{text}");
    }
    for other in ["", "message A {}", "syntax = \"proto3\";", "edition", "// edition = \"2023\";"] {
        assert_eq!(edition_source(other), Ok(None), "{other}");
    }
    let after = "// about\n/* it */ edition = \"2024\"; # all";
    assert_eq!(edition_source(after).unwrap().unwrap().edition, 1001);
}

#[test]
fn files_of_google_under_other_names_and_public_imports_are_known() {
    let file = |name: &str, package: &str, imports: &[&str], public: &[i32]| FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        syntax: Some("proto3".to_owned()),
        dependency: imports.iter().map(|name| (*name).to_owned()).collect(),
        public_dependency: public.to_vec(),
        ..FileDescriptorProto::default()
    };
    let message = |name: &str, of: &[&str]| DescriptorProto {
        name: Some(name.to_owned()),
        field: of
            .iter()
            .zip(1..)
            .map(|(kind, number)| FieldDescriptorProto {
                name: Some(format!("f{number}")),
                number: Some(number),
                type_name: Some((*kind).to_owned()),
                ..FieldDescriptorProto::default()
            })
            .collect(),
        ..DescriptorProto::default()
    };
    let mut time = file("vendored/time.proto", "google.protobuf", &[], &[]);
    time.message_type.push(message("Timestamp", &[]));
    // Each of them imports the one before publicly, and the first the last: a circle.
    let mut files = vec![time];
    for (name, import) in [("a", "d"), ("b", "a"), ("c", "b"), ("d", "c")] {
        let imports = ["vendored/time.proto", import];
        let mut one = file(name, name, &imports, &[1, 7, -1]);
        one.message_type.push(message("M", &[".google.protobuf.Timestamp", ".b.M"]));
        files.push(one);
    }
    assert!(GrpcTypes::from_files(files.clone()).is_ok());
    files[2].message_type.clear();
    assert!(wrong(GrpcTypes::from_files(files)).contains("b.M"));
}

#[test]
fn a_map_whose_entries_are_none_is_refused() {
    let types = GrpcTypes::from_protos(&["a.proto".to_owned()], &[], |_| {
        Ok("message A { map<int32, A> a = 1; }".to_owned())
    });
    let set = FileDescriptorSet::decode(types.unwrap().to_set().as_slice()).unwrap();
    let changed = |change: &dyn Fn(&mut DescriptorProto)| {
        let mut set = set.clone();
        let file = set.file.iter_mut().find(|file| file.name() == "a.proto").unwrap();
        change(&mut file.message_type[0].nested_type[0]);
        GrpcTypes::from_set(&set.encode_to_vec())
    };
    assert!(changed(&|_| {}).is_ok());
    let changes: [&dyn Fn(&mut DescriptorProto); 6] = [
        &|entry| entry.field.clear(),
        &|entry| entry.field[0].number = Some(3),
        &|entry| entry.field[0].set_type(Type::Double),
        &|entry| entry.field[0].type_name = Some(".A".to_owned()),
        &|entry| entry.field[1].set_label(Label::Repeated),
        &|entry| {
            entry.field.push(FieldDescriptorProto { number: Some(3), ..entry.field[1].clone() })
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let text = wrong(changed(change));
        assert!(text.contains("AEntry is no entry of a map"), "{at}: {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Values of a good set that are changed anywhere: nothing panics, and errors are one line.
    #[test]
    fn a_damaged_set_never_panics(
        which in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = match which {
            0 => include_bytes!("tests/edition.binpb").to_vec(),
            1 => include_bytes!("tests/edition2024.binpb").to_vec(),
            _ => set(),
        };
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Err(error) = used(&bytes) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

/// Encodes messages by the types in a set.
fn used(set: &[u8]) -> Result<(), ParseError> {
    let types = GrpcTypes::from_set(set)?;
    for (path, json, _) in OF_EDITIONS {
        if let Ok(method) = types.method(path) {
            let _ = method.encode(json);
        }
    }
    Ok(())
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
    let text =
        wrong(reflection::learn("/chat.v1.Chat/Say", &none(), |q| reflection::answer(&set, &q)));
    assert!(text.contains("over 1000 files"), "{text}");

    // Files that import one more each, and large ones.
    for (bytes, want) in [(0, "over 1000 files"), (1 << 20, "over 32 MiB")] {
        let mut number = 0;
        let text = wrong(reflection::learn("/chat.v1.Chat/Say", &none(), |_| {
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
