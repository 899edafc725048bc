//! The description of an API: OpenAPI 3, and Swagger 2 as far as it is alike.

use super::collect::{Collector, SourceRequest};
use super::{Imported, as_text, error, yaml};
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::spec::Url;
use serde_json::{Map, Value, json};

/// The operations of a path, in the order in which they become steps.
const METHODS: [&str; 7] = ["get", "head", "options", "post", "put", "patch", "delete"];
/// How deep a schema is followed.
const DEPTH_MAX: usize = 12;
/// How many values an example that is made of a schema may have.
const VALUES_MAX: usize = 1_000;

/// Imports each operation as a step. `target` takes the place of the servers that it names.
///
/// # Errors
/// One line: neither JSON nor YAML, no paths, no server.
pub fn openapi(bytes: &[u8], target: Option<&str>) -> Result<Imported, ParseError> {
    let text = as_text(bytes, "the file")?;
    let root: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|e| super::wrong(format!("the file is no JSON: {e}")))?
    } else {
        yaml::parse(text)?
    };
    let Some(paths) = root.get("paths").and_then(Value::as_object) else {
        return error("the file is no OpenAPI description: it has no paths");
    };
    let description = ApiDescription { root: &root };
    let server = match target {
        Some(target) => target.trim_end_matches('/').to_owned(),
        None => description.server()?,
    };
    let mut all = Collector::default();
    all.set_target(Url::parse(&server)?);
    all.remark(
        "Values are the examples and defaults of the description, or made up by their types.",
    );
    for (path, item) in paths {
        let item = description.resolved(item);
        for method in METHODS {
            if let Some(operation) = item.get(method).filter(|_| all.has_room()) {
                let step = ApiOperation {
                    description: &description,
                    path,
                    method,
                    shared: item.get("parameters"),
                    operation,
                };
                let draft = step.draft(&server, &mut all);
                all.request(draft);
            }
        }
    }
    description.security(&mut all);
    all.finish("the description has no operation that a scenario can have")
}

struct ApiDescription<'a> {
    root: &'a Value,
}

impl<'a> ApiDescription<'a> {
    /// The server with its base path.
    fn server(&self) -> Result<String, ParseError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let first = self.root.pointer("/servers/0");
        if let Some(url) = first.and_then(|server| server.get("url")).and_then(text) {
            let url = self.with_variables(url, first);
            if url.contains("://") {
                return Ok(url.trim_end_matches('/').to_owned());
            }
        }
        let Some(host) = self.root.get("host").and_then(text) else {
            return error("the description names no server: give --target URL");
        };
        let base = self.root.get("basePath").and_then(text).unwrap_or_default();
        let scheme = self.root.pointer("/schemes/0").and_then(text);
        let scheme = scheme.unwrap_or_else(|| "https".to_owned());
        Ok(format!("{scheme}://{host}{}", base.trim_end_matches('/')))
    }

    fn with_variables(&self, mut url: String, server: Option<&Value>) -> String {
        let variables = server.and_then(|s| s.get("variables")).and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            let value = variable.get("default").map(plain).unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), &value);
        }
        url
    }

    /// What a reference within the file refers to.
    fn resolved(&self, mut value: &'a Value) -> &'a Value {
        for _ in 0..DEPTH_MAX {
            let reference = value.get("$ref").and_then(Value::as_str);
            let Some(pointer) = reference.and_then(|r| r.strip_prefix('#')) else {
                return value;
            };
            match self.root.pointer(pointer) {
                Some(referred) => value = referred,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    fn security(&self, all: &mut Collector) {
        let schemes = self
            .root
            .pointer("/components/securitySchemes")
            .or_else(|| self.root.get("securityDefinitions"));
        for (name, scheme) in schemes.and_then(Value::as_object).into_iter().flatten() {
            let kind = scheme.get("type").and_then(Value::as_str).unwrap_or("?");
            all.leave_out(format!("security '{name}' ({kind}): write its header into 'defaults'"));
        }
    }

    /// The example of a parameter or of a kind of content.
    fn example(&self, of: &'a Value) -> Option<Value> {
        let first = of.get("examples").and_then(Value::as_object);
        let first = first.and_then(|examples| examples.values().next());
        let first = first.and_then(|example| self.resolved(example).get("value"));
        of.get("example").or(first).cloned()
    }

    /// A value that a schema permits.
    fn made(&self, schema: &'a Value, depth: usize, left: &mut usize) -> Value {
        let schema = self.resolved(schema);
        *left = left.saturating_sub(1);
        if depth > DEPTH_MAX || *left == 0 {
            return Value::Null;
        }
        let first = |key: &str| schema.get(key).and_then(|list| list.get(0));
        let given = [schema.get("example"), schema.get("default"), schema.get("const")];
        let given = given.into_iter().flatten().next();
        if let Some(value) = given.or(first("examples")).or(first("enum")) {
            return value.clone();
        }
        if let Some(one) = first("oneOf").or(first("anyOf")) {
            return self.made(one, depth + 1, left);
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        let mut object = Map::new();
        for part in parts.into_iter().flatten() {
            match self.made(part, depth + 1, left) {
                Value::Object(part) => object.extend(part),
                other => return other,
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if self.resolved(property).get("readOnly") != Some(&Value::Bool(true)) {
                object.insert(name.clone(), self.made(property, depth + 1, left));
            }
        }
        if !object.is_empty() {
            return Value::Object(object);
        }
        match kind(schema) {
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "boolean" => json!(true),
            "array" => match schema.get("items") {
                Some(items) => json!([self.made(items, depth + 1, left)]),
                None => json!([]),
            },
            "object" => json!({}),
            _ => json!(text_of(schema)),
        }
    }
}

/// The type of a schema; of several the first.
fn kind(schema: &Value) -> &str {
    let kind = schema.get("type").unwrap_or(&Value::Null);
    kind.get(0).unwrap_or(kind).as_str().unwrap_or_default()
}

fn text_of(schema: &Value) -> &'static str {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("uuid") => "00000000-0000-4000-8000-000000000001",
        Some("email") => "user@example.com",
        Some("uri" | "url") => "https://example.com/",
        _ => "text",
    }
}

/// A value as a part of a URL or of a header.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

struct ApiOperation<'a> {
    description: &'a ApiDescription<'a>,
    path: &'a str,
    method: &'a str,
    /// The parameters of all operations of its path.
    shared: Option<&'a Value>,
    operation: &'a Value,
}

impl<'a> ApiOperation<'a> {
    fn draft(&self, server: &str, all: &mut Collector) -> SourceRequest {
        let name = self.operation.get("operationId").and_then(Value::as_str);
        let mut draft = SourceRequest {
            method: self.method.to_ascii_uppercase(),
            name: name.map(str::to_owned),
            // One operation that fails says nothing about the next.
            goes_on: true,
            ..SourceRequest::default()
        };
        let (mut path, mut query, mut form) = (self.path.to_owned(), Vec::new(), Vec::new());
        for parameter in self.parameters() {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, place) = (text("name"), text("in"));
            let is_required = parameter.get("required") == Some(&Value::Bool(true));
            let value = self.value(parameter);
            let pair = || percent::pair(name, &plain(&value));
            match place {
                "path" => {
                    let value = percent::component(plain(&value).as_bytes());
                    path = path.replace(&format!("{{{name}}}"), &value);
                }
                "body" => self.json(value.clone(), &mut draft),
                _ if !is_required => {}
                "query" => query.push(pair()),
                "formData" => form.push(pair()),
                "header" => draft.header(name, plain(&value)),
                "cookie" => draft.header("Cookie", format!("{name}={}", plain(&value))),
                _ => {}
            }
        }
        let sign = if query.is_empty() { "" } else { "?" };
        draft.url = format!("{server}{path}{sign}{}", query.join("&")).into();
        if !form.is_empty() {
            draft.form(&form);
        }
        self.body(&mut draft, all);
        draft
    }

    /// Its own parameters, and those of its path that it does not have itself.
    fn parameters(&self) -> Vec<&'a Value> {
        let list = |value: Option<&'a Value>| {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.map(|one| self.description.resolved(one))
        };
        let mut all: Vec<&Value> = list(self.operation.get("parameters")).collect();
        let same =
            |a: &Value, b: &Value| a.get("name") == b.get("name") && a.get("in") == b.get("in");
        for shared in list(self.shared) {
            if !all.iter().any(|own| same(own, shared)) {
                all.push(shared);
            }
        }
        all
    }

    fn value(&self, parameter: &'a Value) -> Value {
        let example = self.description.example(parameter);
        let schema = parameter.get("schema").unwrap_or(parameter);
        example.unwrap_or_else(|| self.description.made(schema, 0, &mut VALUES_MAX.clone()))
    }

    fn json(&self, value: Value, draft: &mut SourceRequest) {
        draft.body = value.to_string().into_bytes();
        draft.header("Content-Type", "application/json");
    }

    /// The body of OpenAPI 3.
    fn body(&self, draft: &mut SourceRequest, all: &mut Collector) {
        let Some(body) = self.operation.get("requestBody") else {
            return;
        };
        let body = self.description.resolved(body);
        let Some(content) = body.get("content").and_then(Value::as_object) else {
            return;
        };
        let is_json = |media: &str| media.contains("json");
        let is_form = |media: &str| media == "application/x-www-form-urlencoded";
        let find = |is_it: &dyn Fn(&str) -> bool| content.iter().find(|(media, _)| is_it(media));
        if let Some((_, content)) = find(&is_json) {
            self.json(self.value(content), draft);
        } else if let Some((_, content)) = find(&is_form) {
            let value = self.value(content);
            let pairs = value.as_object().into_iter().flatten();
            let pairs = pairs.map(|(name, value)| percent::pair(name, &plain(value)));
            draft.form(&pairs.collect::<Vec<_>>());
        } else if let Some((media, content)) = content.iter().next() {
            match self.description.example(content) {
                Some(Value::String(text)) => {
                    draft.body = text.into_bytes();
                    draft.header("Content-Type", media.as_str());
                }
                _ => all.leave_out(format!(
                    "the body of {} {}, of type {media}",
                    draft.method, self.path
                )),
            }
        }
    }
}
