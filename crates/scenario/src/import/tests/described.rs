//! Descriptions of APIs.

use super::{header, read, requests};
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
    let imported = openapi(YAML.as_bytes(), None).unwrap();
    assert_eq!(imported.target.literal(), Some("https://api.test"));
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
    let first = r#"{"name":"cup","parent":{"name":"cup","#;
    assert!(body.starts_with(first) && body.contains(r#""tags":["a"]"#), "{body}");
    assert_eq!(header(&all[1], "x-key"), Some("k"));
    assert_eq!(&*all[3].body, b"n=1&name=ann");
    assert_eq!(
        imported.left_out,
        [
            "the body of PUT /raw, of type application/xml",
            "security 'token' (http): write its header into 'defaults'",
        ]
    );
    let plan = read(&imported).plan;
    assert!(plan.requests.iter().all(|step| step.goes_on));
    assert_eq!(plan.requests[1].name, "getItem");
}

#[test]
fn json_and_another_target() {
    let imported = openapi(JSON.as_bytes(), None).unwrap();
    assert_eq!(imported.target.literal(), Some("http://h:8080"));
    let all = requests(&imported);
    assert_eq!((&*all[0].path, &*all[1].body), ("/b/a", &br#"{"n":1}"#[..]));
    let there = openapi(JSON.as_bytes(), Some("http://127.0.0.1:1/x/")).unwrap();
    assert_eq!(requests(&there)[0].path, "/x/a");
}

#[test]
fn what_is_no_description_is_refused() {
    for (text, wrong) in [
        ("", "the file is empty"),
        ("{", "the file is no JSON"),
        ("a: [", "the file is neither JSON nor YAML"),
        ("a: 1", "the file is no OpenAPI description"),
        ("paths: {}", "the description names no server: give --target URL"),
        ("paths: {}\nhost: h", "the description has no operation"),
        ("a: &x [1]\nb: *x", "line 2: aliases are not read"),
    ] {
        let refused = openapi(text.as_bytes(), None).unwrap_err().0;
        assert!(refused.starts_with(wrong) && !refused.contains('\n'), "{text}: {refused}");
    }
    let deep = format!("paths: {}", "[".repeat(300));
    assert!(openapi(deep.as_bytes(), None).is_err());
}

/// The path and query of the only operation with this parameter.
fn asked(parameter: &str, place: &str) -> String {
    let text = format!(
        "{{\"servers\": [{{\"url\": \"http://h\"}}], \"paths\": {{\"/a{}\": {{\"get\": {{\
         \"parameters\": [{{\"name\": \"p\", \"in\": \"{place}\", \"required\": true, \
         {parameter}}}]}}}}}}}}",
        if place == "path" { "/{p}" } else { "" }
    );
    let imported =
        openapi(text.as_bytes(), None).unwrap_or_else(|wrong| panic!("{}: {text}", wrong.0));
    requests(&imported)[0].path.clone()
}

#[test]
fn lists_in_parameters_are_joined_by_their_style() {
    let list = r#""schema": {"type": "array", "example": ["x y", "z"]}"#;
    for (more, place, want) in [
        ("", "query", "/a?p=x%20y&p=z"),
        (r#", "explode": false"#, "query", "/a?p=x%20y,z"),
        (r#", "style": "spaceDelimited", "explode": false"#, "query", "/a?p=x%20y%20z"),
        (r#", "style": "pipeDelimited", "explode": false"#, "query", "/a?p=x%20y|z"),
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
    let imported = openapi(text.as_bytes(), None).unwrap();
    let yaml = imported.to_yaml("a description");
    assert!(yaml.contains("\"title\": \"text\""), "{yaml}");
    assert!(yaml.contains("\"photo\": {file: \"photo.bin\"}"), "{yaml}");
    assert!(yaml.contains("Put a file photo.bin beside the scenario"), "{yaml}");
}
