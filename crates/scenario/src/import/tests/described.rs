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
