//! Descriptions of APIs.

use super::{cases, header, no_file, read, requests};
use crate::import::data::ReadFile;
use crate::import::openapi;

pub(super) const YAML: &str = r##"
openapi: 3.0.3
servers:
  - url: https://{host}/v1/
    variables: {host: {default: api.test}}
paths:
  /items/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: getItem
      parameters:
        - {name: lang, in: query, required: true, example: de en}
        - {name: optional, in: query, schema: {type: string}}
        - {name: X-Key, in: header, required: true, schema: {type: string, default: k}}
    delete: {responses: {204: {description: gone}}}
  /items:
    post:
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Item"}
  /login:
    post:
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {properties: {name: {type: string, example: ann}, n: {type: integer}}}
  /raw:
    put:
      requestBody: {content: {application/xml: {schema: {type: object}}}}
components:
  securitySchemes:
    token: {type: http, scheme: bearer}
  schemas:
    Item:
      type: object
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: cup}
        tags: {type: array, items: {type: string, enum: [a, b]}}
        parent: {$ref: "#/components/schemas/Item"}
"##;

pub(super) const JSON: &str = r##"{"swagger": "2.0", "host": "h:8080", "basePath": "/b",
  "schemes": ["http"], "paths": {"/a": {"get": {"operationId": "a"}, "post": {"parameters": [
    {"name": "b", "in": "body", "schema": {"$ref": "#/definitions/B"}}]}}},
  "definitions": {"B": {"type": "object", "properties": {"n": {"type": "number"}}}}}"##;

#[test]
fn each_operation_is_a_step() {
    let imported = openapi(YAML.as_bytes(), None, &mut no_file).unwrap();
    assert_eq!(imported.targets[0].literal(), Some("https://api.test"));
    let all = requests(&imported);
    let told: Vec<String> = all.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(
        told,
        [
            "POST /v1/items",
            "GET /v1/items/1?lang=de%20en",
            "DELETE /v1/items/1",
            "POST /v1/login",
            "PUT /v1/raw",
        ]
    );
    let body = String::from_utf8_lossy(&all[0].body);
    assert_eq!(body, r#"{"name":"cup","tags":["a"]}"#);
    assert_eq!(header(&all[1], "x-key"), Some("k"));
    assert_eq!(&*all[3].body, b"n=1&name=ann");
    assert_eq!(
        imported.left_out,
        [
            "optional parameters of an operation",
            "the body of PUT /raw, of type application/xml",
            "security 'token' (http): no operation asks for it",
        ]
    );
    let plan = read(&imported).plan;
    assert!(plan.requests.iter().all(|step| step.goes_on));
    assert_eq!(plan.requests[1].name, "getItem");
}

#[test]
fn json_and_another_target() {
    let imported = openapi(JSON.as_bytes(), None, &mut no_file).unwrap();
    assert_eq!(imported.targets[0].literal(), Some("http://h:8080"));
    let all = requests(&imported);
    assert_eq!((&*all[0].path, &*all[1].body), ("/b/a", &br#"{"n":1}"#[..]));
    let there = openapi(JSON.as_bytes(), Some("http://127.0.0.1:1/x/"), &mut no_file).unwrap();
    assert_eq!(requests(&there)[0].path, "/x/a");
}

#[test]
fn a_target_without_a_path_gets_the_base_path() {
    let paths = r#""paths": {"/a": {"get": {}}}"#;
    let variables = r#""variables": {"v": {"default": "v3"}}"#;
    for (base, target, path) in [
        (r#""servers": [{"url": "/api/v3"}]"#, "http://127.0.0.1:1", "/api/v3/a"),
        (r#""servers": [{"url": "/api/v3/"}]"#, "http://127.0.0.1:1/", "/api/v3/a"),
        (r#""servers": [{"url": "https://api.test/v1"}, {"url": "/v2"}]"#, "h:1", "/v1/a"),
        (r#""servers": [{"url": "//api.test/v1?x"}]"#, "h:1", "/v1/a"),
        (&format!(r#""servers": [{{"url": "/api/{{v}}", {variables}}}]"#), "h:1", "/api/v3/a"),
        (r#""servers": [{"url": "../v1"}]"#, "h:1", "/v1/a"),
        (r#""servers": [{"url": "/ü b"}]"#, "h:1", "/%C3%BC%20b/a"),
        (r#""swagger": "2.0", "host": "other", "basePath": "/v2""#, "http://h", "/v2/a"),
        (r#""swagger": "2.0", "basePath": "/v2/""#, "http://h", "/v2/a"),
        // It has its own, or there is none.
        (r#""servers": [{"url": "/api/v3"}]"#, "http://h/base", "/base/a"),
        (r#""swagger": "2.0", "basePath": "/v2""#, "http://h/base/", "/base/a"),
        (r#""swagger": "2.0", "basePath": "/""#, "http://h", "/a"),
        (r#""servers": [{"url": "https://api.test"}]"#, "http://h", "/a"),
        (r#""servers": [{"url": "./"}]"#, "http://h", "/a"),
        (r#""x-no": 1"#, "http://h", "/a"),
    ] {
        let imported =
            openapi(format!("{{{base}, {paths}}}").as_bytes(), Some(target), &mut no_file).unwrap();
        assert_eq!(requests(&imported)[0].path, path, "{base} {target}");
        let remark = format!("# Paths begin with the description's {}.", &path[..path.len() - 2]);
        let has_remark = imported.to_yaml("a test").contains(&remark);
        assert_eq!(has_remark, path.len() > 2 && !path.starts_with("/base"), "{base} {target}");
    }
}

#[test]
fn what_is_no_description_is_refused() {
    for (text, wrong) in [
        ("", "the file is empty"),
        ("{", "the file is no JSON"),
        ("a: [", "line 2: not YAML"),
        ("a: 1", "the file is no OpenAPI description"),
        ("paths: {}", "the description names no server: give --target URL"),
        (
            "paths: {}\nservers: [{url: /api/v3}]",
            "the description's server is only the path /api/v3: give --target URL",
        ),
        (
            "paths: {}\nbasePath: /v2",
            "the description's server is only the path /v2: give --target URL",
        ),
        ("paths: {}\nhost: h", "the description has no operation"),
        ("a: &x [1]\nb: *x", "the file is no OpenAPI description"),
        ("a: &x [*x]", "line 1: an alias of what it is a part of"),
    ] {
        let refused = openapi(text.as_bytes(), None, &mut no_file).unwrap_err().0;
        assert!(refused.starts_with(wrong) && !refused.contains('\n'), "{text}: {refused}");
    }
    let deep = format!("paths: {}", "[".repeat(300));
    assert!(openapi(deep.as_bytes(), None, &mut no_file).is_err());
}

/// The path and query of the only operation with this parameter.
fn asked(parameter: &str, place: &str) -> String {
    let text = format!(
        "{{\"servers\": [{{\"url\": \"http://h\"}}], \"paths\": {{\"/a{}\": {{\"get\": {{\
         \"parameters\": [{{\"name\": \"p\", \"in\": \"{place}\", \"required\": true, \
         {parameter}}}]}}}}}}}}",
        if place == "path" { "/{p}" } else { "" }
    );
    let imported = openapi(text.as_bytes(), None, &mut no_file)
        .unwrap_or_else(|wrong| panic!("{}: {text}", wrong.0));
    requests(&imported)[0].path.clone()
}

#[test]
fn lists_in_parameters_are_joined_by_their_style() {
    let list = r#""schema": {"type": "array", "example": ["x y", "z"]}"#;
    for (more, place, want) in [
        ("", "query", "/a?p=x%20y&p=z"),
        (r#", "explode": false"#, "query", "/a?p=x%20y,z"),
        (r#", "style": "spaceDelimited", "explode": false"#, "query", "/a?p=x%20y%20z"),
        (r#", "style": "pipeDelimited", "explode": false"#, "query", "/a?p=x%20y%7Cz"),
        ("", "path", "/a/x%20y,z"),
        (r##", "style": "label""##, "path", "/a/.x%20y,z"),
        (r#", "style": "matrix", "explode": true"#, "path", "/a/;p=x%20y;p=z"),
    ] {
        assert_eq!(asked(&format!("{list}{more}"), place), want, "{more}");
    }
    let object = r#""schema": {"type": "object", "example": {"a": 1, "b": "c d"}}"#;
    assert_eq!(asked(object, "query"), "/a?a=1&b=c%20d");
    assert_eq!(
        asked(&format!("{object}, \"style\": \"deepObject\""), "query"),
        "/a?p%5Ba%5D=1&p%5Bb%5D=c%20d"
    );
    let reserved = r#""allowReserved": true, "example": "/x?#1""#;
    assert_eq!(asked(reserved, "query"), "/a?p=/x?%231");
    // Swagger 2 has the type beside the name.
    let old = r#""type": "array", "items": {"type": "string", "enum": ["a", "b"]}"#;
    assert_eq!(asked(old, "query"), "/a?p=a");
    let two = r#""type": "array", "minItems": 2, "items": {"type": "integer"}"#;
    assert_eq!(asked(two, "query"), "/a?p=1,1");
    assert_eq!(asked(&format!("{two}, \"collectionFormat\": \"multi\""), "query"), "/a?p=1&p=1");
}

#[test]
fn forms_in_parts_have_files_for_bytes() {
    let text = r#"{"servers": [{"url": "http://h"}], "paths": {"/up": {"post": {"requestBody":
        {"content":
        {"multipart/form-data": {"schema": {"type": "object", "properties": {"title": {"type":
        "string"}, "photo": {"type": "string", "format": "binary"}}}}}}}}}}"#;
    let imported = openapi(text.as_bytes(), None, &mut no_file).unwrap();
    let yaml = imported.to_yaml("a description");
    assert!(yaml.contains("title: \"text\""), "{yaml}");
    let photo =
        "photo: {text: \"text\", type: \"application/octet-stream\", filename: \"photo.bin\"}";
    assert!(yaml.contains(photo), "{yaml}");
    assert_eq!(imported.left_out, ["the file 'photo' of POST /up: a text in its place"]);
}

/// Schemas that others name.
const SCHEMAS: &str = r##"{"Cat": {"type": "object", "properties": {"meow": {"type": "boolean"}}},
    "Must": {"type": "object", "required": ["self"], "properties": {"self": {"$ref":
    "#/components/schemas/Must"}}}, "May": {"type": "object", "properties": {"n": {"type":
    "integer"}, "self": {"$ref": "#/components/schemas/May"}, "all": {"type": "array", "items":
    {"$ref": "#/components/schemas/May"}}}}, "Name": {"type": "string"}}"##;

/// The JSON of a body that a schema makes, and what is left out.
fn made(schema: &str) -> (String, Vec<String>) {
    made_in("3.0.3", schema, &mut no_file)
}

/// The same in a description of this version, beside files.
fn made_in(version: &str, schema: &str, read: ReadFile) -> (String, Vec<String>) {
    let text = format!(
        "{{\"openapi\": \"{version}\", \"servers\": [{{\"url\": \"http://h\"}}], \"paths\": {{\"/a\": {{\"post\": \
         {{\"requestBody\": {{\"content\": {{\"application/json\": {{\"schema\": {schema}}}}}}}}}\
         }}}}, \"components\": {{\"schemas\": {SCHEMAS}}}}}"
    );
    let imported =
        openapi(text.as_bytes(), None, read).unwrap_or_else(|wrong| panic!("{}", wrong.0));
    let body = requests(&imported)[0].body.to_vec();
    (String::from_utf8(body).unwrap(), imported.left_out)
}

#[test]
fn keywords_beside_references_hold_from_3_1_on() {
    let of = r##""$ref": "#/components/schemas/Name""##;
    for (beside, since_3_1, before) in [
        (r#""default": "ann""#, "\"ann\"", "\"text\""),
        (r#""example": "bob""#, "\"bob\"", "\"text\""),
        (r#""examples": ["cy"]"#, "\"cy\"", "\"text\""),
        (r#""enum": ["d"]"#, "\"d\"", "\"text\""),
        (r#""const": "e""#, "\"e\"", "\"text\""),
        (r#""minLength": 6"#, "\"textte\"", "\"text\""),
        (r#""pattern": "^[A-Z]{2}$""#, "\"AA\"", "\"text\""),
        (r#""description": "x", "title": "y""#, "\"text\"", "\"text\""),
        (r#""type": ["integer", "null"]"#, "1", "\"text\""),
    ] {
        let schema = format!("{{{of}, {beside}}}");
        for (version, want) in [("3.1.0", since_3_1), ("3.2.0", since_3_1), ("3.0.3", before)] {
            let (made, left_out) = made_in(version, &schema, &mut no_file);
            assert_eq!((made.as_str(), left_out.len()), (want, 0), "{beside} in {version}");
        }
    }
    let none = made(r##"{"$ref": "#/components/schemas/None"}"##);
    let told = "schema #/components/schemas/None: there is none: a text here";
    assert_eq!(none, ("\"text\"".to_owned(), vec![told.to_owned()]));
    let object = r##"{"properties": {"a": {"$ref": "#/components/schemas/Name", "readOnly": true},
        "b": {"$ref": "#/components/schemas/Name", "default": "x"}}}"##;
    assert_eq!(made_in("3.1.0", object, &mut no_file).0, r#"{"b":"x"}"#);
}

#[test]
fn files_below_the_description_are_taken_in() {
    let mut read = |file: &str| {
        match file {
        "pet.yaml" => Ok(b"type: object\nproperties: {name: {$ref: 'parts/name.json#/Name'}}\n".to_vec()),
        "parts/name.json" => {
            Ok(br##"{"Name": {"$ref": "#/Other"}, "Other": {"default": "ann"}, "Up": {"$ref": "../pet.yaml"},
                "Back": {"$ref": "name.json#/Other"}}"##.to_vec())
        }
        "a b/c~d.yaml" => Ok(b"x/y: {const: 7}\n".to_vec()),
        "loop.yaml" => Ok(b"properties: {again: {$ref: loop.yaml}}\n".to_vec()),
        "broken.yaml" => Ok(b"{".to_vec()),
        _ => Err("cannot be read".to_owned()),
    }
    };
    for (reference, body, wrong) in [
        ("pet.yaml", r#"{"name":"ann"}"#, None),
        ("./pet.yaml#", r#"{"name":"ann"}"#, None),
        ("parts/../pet.yaml", r#"{"name":"ann"}"#, None),
        ("parts/name.json#/Up", r#"{"name":"ann"}"#, None),
        ("parts/name.json#/Back", "\"ann\"", None),
        ("a%20b/c~d.yaml#/x~1y", "7", None),
        ("loop.yaml", "{}", None),
        ("gone.yaml", "\"text\"", Some("file gone.yaml: cannot be read")),
        ("broken.yaml#/A", "\"text\"", Some("file broken.yaml: ")),
        ("../pet.yaml", "\"text\"", Some("schema ../pet.yaml: it is in another file")),
        ("/etc/pet.yaml", "\"text\"", Some("schema /etc/pet.yaml: it is in another file")),
        ("http://h/pet.yaml", "\"text\"", Some("schema http://h/pet.yaml: it is in another file")),
    ] {
        let (made, left_out) =
            made_in("3.0.3", &format!("{{\"$ref\": \"{reference}\"}}"), &mut read);
        assert_eq!(made, body, "{reference}: {left_out:?}");
        let first = left_out.first().map(String::as_str);
        match wrong {
            Some(wrong) => {
                assert!(first.is_some_and(|first| first.starts_with(wrong)), "{left_out:?}")
            }
            None => assert_eq!(first, None, "{reference}"),
        }
    }
}

#[test]
fn values_are_within_their_bounds() {
    for (schema, body) in [
        (r#"{"type": "integer", "minimum": 3}"#, "3"),
        (r#"{"type": "integer", "minimum": 3, "exclusiveMinimum": true}"#, "4"),
        (r#"{"type": "integer", "exclusiveMinimum": 3}"#, "4"),
        (r#"{"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}"#, "0.5"),
        (r#"{"type": "number", "minimum": 0, "exclusiveMaximum": 1}"#, "0"),
        (r#"{"type": "integer", "maximum": -2, "multipleOf": 5}"#, "-5"),
        (r#"{"type": "integer", "minimum": 3, "multipleOf": 5}"#, "5"),
        (r#"{"type": ["null", "integer"]}"#, "1"),
        (r#"{"type": "string", "minLength": 6}"#, "\"textte\""),
        (r#"{"type": "string", "maxLength": 2}"#, "\"te\""),
        (r#"{"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}"#, "\"AA-111\""),
        (r#"{"type": "string", "pattern": "^[a-f]+$", "minLength": 3}"#, "\"aaa\""),
        (r#"{"type": "string", "format": "ipv4"}"#, "\"192.0.2.1\""),
        (r#"{"type": "string", "format": "date-time"}"#, "\"2026-01-01T00:00:00Z\""),
        (r#"{"enum": ["a", "b"]}"#, "\"a\""),
        (r#"{"type": "string", "nullable": true, "enum": [null, "x"]}"#, "\"x\""),
        (r#"{"enum": [null]}"#, "null"),
        (
            r#"{"type": "string", "format": "ipv4", "minLength": 7, "maxLength": 15}"#,
            "\"192.0.2.1\"",
        ),
        (r#"{"type": "integer", "exclusiveMinimum": 9007199254740992}"#, "9007199254740993"),
        (r#"{"type": "number", "minimum": 9007199254740993}"#, "9007199254740993"),
        (r#"{"type": "number", "minimum": 1.5}"#, "1.5"),
        (r#"{"type": "integer", "default": 9223372036854775807}"#, "9223372036854775807"),
        (r#"{"const": 7}"#, "7"),
        (r#"{"examples": [8], "type": "integer"}"#, "8"),
        (
            r#"{"type": "array", "minItems": 3, "uniqueItems": true,
                "items": {"type": "integer"}}"#,
            "[1,2,3]",
        ),
        (
            r#"{"type": "array", "minItems": 2, "uniqueItems": true,
                "items": {"enum": ["a", "b"]}}"#,
            r#"["a","b"]"#,
        ),
        (r#"{"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]}"#, "[1,2]"),
        (
            r##"{"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Cat"}],
                "discriminator": {"propertyName": "kind", "mapping": {"cat":
                "#/components/schemas/Cat"}}}"##,
            r#"{"kind":"cat","meow":true}"#,
        ),
        (
            r##"{"allOf": [{"$ref": "#/components/schemas/Cat"}, {"required": ["x"]}],
                "properties": {"y": {"type": "integer"}}}"##,
            r#"{"meow":true,"x":"text","y":1}"#,
        ),
        (r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#, r#"{"key1":1}"#),
        (r##"{"$ref": "#/components/schemas/May"}"##, r#"{"all":[],"n":1}"#),
    ] {
        let (made, left_out) = made(schema);
        assert_eq!((made.as_str(), left_out.as_slice()), (body, &[][..]), "{schema}");
    }
}

#[test]
fn values_that_no_schema_permits_are_named() {
    for (schema, body, wrong) in [
        (
            r##"{"$ref": "#/components/schemas/Must"}"##,
            r#"{"self":null}"#,
            "schema #/components/schemas/Must: it has itself in it: null there",
        ),
        (
            r#"{"type": "string", "pattern": "(?=a)b"}"#,
            "\"text\"",
            "pattern (?=a)b: no text for it was found: 'text' here",
        ),
        (
            r#"{"type": "string", "format": "hostname", "maxLength": 4}"#,
            "\"example.com\"",
            "the length of a text of the format hostname: 'example.com' here",
        ),
        (
            r#"{"type": "integer", "minimum": 3, "maximum": 2}"#,
            "1",
            "a number whose bounds no value meets: 1 here",
        ),
    ] {
        let (made, left_out) = made(schema);
        assert_eq!((made.as_str(), left_out), (body, vec![wrong.to_owned()]), "{schema}");
    }
}

const SCHEMES: &str = r#", "components": {"securitySchemes": {
    "token": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"},
    "my key": {"type": "apiKey", "in": "query", "name": "k"}, "tls": {"type": "mutualTLS"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"}}}"#;

#[test]
fn operations_ask_for_what_they_need() {
    for (name, operation, expected) in cases(include_str!("operation_cases.txt")) {
        let schemes = if operation.contains("security") { SCHEMES } else { "" };
        let text = format!(
            "{{\"servers\": [{{\"url\": \"http://h\"}}], \"paths\": {{\"/a\": {{\"post\": \
             {operation}}}}}{schemes}}}"
        );
        let imported = openapi(text.as_bytes(), None, &mut no_file)
            .unwrap_or_else(|wrong| panic!("{}", wrong.0));
        read(&imported);
        let yaml = imported.to_yaml("a description");
        let lines = yaml.lines().skip(2).filter(|line| line.starts_with("# "));
        let told: String = lines.map(|line| format!("{line}\n")).collect();
        let (_, steps) = yaml.split_once("    steps:\n").unwrap();
        assert_eq!((told + steps).trim_end(), expected, "{name}");
    }
}

#[test]
fn headers_of_bodies_and_credentials_stay_alone() {
    let header = |name: &str| {
        let default = r#""default": "application/json""#;
        format!(r#"{{"name": "{name}", "in": "header", "required": true, {default}}}"#)
    };
    let headers = ["Authorization", "Content-Type", "X-Key"].map(header).join(", ");
    let schemes = SCHEMES.replace("cookie", "header").replace("sid", "x-key");
    let body = r#""requestBody": {"content": {"application/json": {}}}"#;
    for (kind, body, more, scheme, sent) in [
        ("openapi", body, "", "token", "Bearer"),
        ("swagger", r#""x-no": 1"#, r#", {"name": "b", "in": "body"}"#, "basic", "Basic"),
    ] {
        let text = format!(
            "{{\"{kind}\": \"\", \"servers\": [{{\"url\": \"http://h\"}}], \"paths\": {{\"/a\": \
             {{\"post\": {{\"security\": [{{\"{scheme}\": [], \"session\": []}}], {body}, \
             \"parameters\": [{headers}{more}]}}}}}}{schemes}}}"
        );
        let imported = openapi(text.as_bytes(), None, &mut no_file).unwrap();
        let request = &requests(&imported)[0];
        let values = |name: &str| {
            let headers = request.headers.iter().filter(|h| h.0.eq_ignore_ascii_case(name));
            headers.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(values("authorization"), [format!("{sent} http://h")]);
        assert_eq!(values("content-type"), ["application/json"]);
        assert_eq!(values("x-key"), ["http://h"]);
    }
}

#[test]
fn forms_of_swagger_2() {
    let of = |parameters: &str, consumes: &str| {
        let text = format!(
            "{{\"swagger\": \"2.0\", \"host\": \"h\", \"schemes\": [\"http\"], \"paths\": {{\
             \"/a\": \
             {{\"post\": {{\"consumes\": [\"{consumes}\"], \"parameters\": [{parameters}]}}}}}}}}"
        );
        let imported = openapi(text.as_bytes(), None, &mut no_file).unwrap();
        read(&imported);
        imported.to_yaml("a description")
    };
    let list = r#"{"in": "formData", "name": "l", "type": "array", "collectionFormat": "multi",
        "items": {"type": "string"}, "minItems": 2}"#;
    let yaml = of(list, "application/x-www-form-urlencoded");
    assert!(yaml.contains("body: \"l=text&l=text\""), "{yaml}");
    let file = r#"{"in": "formData", "name": "f", "type": "file"}"#;
    let yaml = of(file, "multipart/form-data");
    assert!(yaml.contains("f: {text: \"text\", type:"), "{yaml}");
    let of_headers = |name: &str, more: &str| {
        let header = |name: &str| format!(r#"{{"in": "header", "name": "{name}", {VALUE}}}"#);
        of(&format!("{}{more}", header(name)), "multipart/form-data")
    };
    let yaml = of_headers("Authorization", "");
    assert!(yaml.contains("Authorization: \"${env(AUTHORIZATION)}\"\n"), "{yaml}");
    for name in ["Accept", "Content-Type"] {
        let yaml = of_headers(name, "");
        assert!(yaml.contains(&format!("{name}: \"a/b\"\n")), "{yaml}");
    }
    let yaml = of_headers("Content-Type", &format!(", {file}"));
    assert!(!yaml.contains("a/b"), "{yaml}");
}

/// The value of a parameter that an operation needs.
const VALUE: &str = r#""required": true, "type": "string", "default": "a/b""#;

#[test]
fn aliases_and_merges_are_what_they_name() {
    let text = "servers: [{url: 'http://h'}]\nx-a: &a {get: {operationId: one}}\n\
                paths:\n  /a: *a\n  /b: {<<: *a, post: {operationId: two}}\n";
    let imported = openapi(text.as_bytes(), None, &mut no_file).unwrap();
    let all = requests(&imported);
    let told: Vec<String> = all.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(told, ["GET /a", "GET /b", "POST /b"]);
    // Each is ten of the one before.
    let doubled =
        |n: usize| format!("x-{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "));
    let bomb: String = (1..12).map(doubled).collect();
    let refused =
        openapi(format!("x-0: &a0 [1]\n{bomb}").as_bytes(), None, &mut no_file).unwrap_err().0;
    assert!(refused.ends_with("expected at most 1000000"), "{refused}");
}
