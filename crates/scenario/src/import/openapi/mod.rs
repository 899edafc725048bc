//! The description of an API: OpenAPI 3.0 and 3.1, and Swagger 2.0. The environment gives its
//! credentials.

mod files;
mod operation;
mod schema;

use super::builder::ScenarioBuilder;
use super::data::ReadFile;
use super::{ImportedScenario, as_text, error, yaml};
use crate::import::ImportedText;
use crate::import::builder::StepRequest;
use knee_load::percent;
use knee_load::quantity::ParseError;
use knee_load::spec::Url;
use operation::ApiOperation;
use serde_json::Value;
use std::collections::HashSet;

/// The operations of a path, in the order in which they become steps.
const METHODS: [&str; 8] = ["get", "head", "options", "post", "put", "patch", "delete", "trace"];
/// How deep references are followed.
const DEPTH_MAX: usize = 12;

/// Imports each operation as a step. `target` takes the place of the servers that it names. Where
/// it has no path, it gets the description's base path. `read` gives the files below its folder that
/// it refers to.
///
/// # Errors
/// One line: neither JSON nor YAML, no paths, no server.
pub fn openapi(
    bytes: &[u8],
    target: Option<&str>,
    read: ReadFile,
) -> Result<ImportedScenario, ParseError> {
    let mut root = parse(as_text(bytes, "the file")?)?;
    if root.get("paths").is_none_or(|paths| !paths.is_object()) {
        return error("the file is no OpenAPI description: it has no paths");
    }
    let mut all = ScenarioBuilder::default();
    files::take_in(&mut root, read, &mut all);
    let paths = root.get("paths").and_then(Value::as_object).into_iter().flatten();
    let description = ApiDescription { root: &root };
    let server = match target {
        Some(target) => description.target(target.trim_end_matches('/'), &mut all)?,
        None => description.server(&mut all)?,
    };
    let server = Url::parse(&server)?;
    let base = server.path().trim_end_matches('/').to_owned();
    all.set_target(server);
    all.remark(
        "Values are the examples and defaults of the description, or made up by their types.",
    );
    let mut schemes = HashSet::new();
    for (path, own) in paths.filter(|(path, _)| path.starts_with('/')) {
        let item = description.resolved(own);
        if let Some(reference) = item.get("$ref").and_then(Value::as_str) {
            all.leave_out(format!("path {path}: it is in another place: {reference}"));
        }
        for method in METHODS {
            let operation = own.get(method).or_else(|| item.get(method));
            if let Some(operation) = operation.filter(|_| all.has_room()) {
                let step =
                    ApiOperation { description: &description, path, method, item, operation };
                let draft = step.draft(&base, &mut all, &mut schemes);
                all.request(draft);
            }
        }
    }
    description.leftovers(&schemes, &mut all);
    all.finish("the description has no operation that a scenario can have")
}

fn parse(text: &str) -> Result<Value, ParseError> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|e| super::wrong(format!("the file is no JSON: {e}")))
    } else if text.trim().is_empty() {
        error("the file is empty")
    } else {
        yaml::parse(text)
    }
}

struct ApiDescription<'a> {
    root: &'a Value,
}

impl<'a> ApiDescription<'a> {
    /// The given target with its own path, or else with the description's base path.
    fn target(&self, target: &str, all: &mut ScenarioBuilder) -> Result<String, ParseError> {
        let base = self.base_path();
        if base.is_empty() || Url::parse(target)?.path() != "/" {
            return Ok(target.to_owned());
        }
        all.remark(format!("Paths begin with the description's {base}."));
        Ok(format!("{target}{base}"))
    }

    /// The first server with its base path.
    fn server(&self, all: &mut ScenarioBuilder) -> Result<String, ParseError> {
        for server in self.servers() {
            let (url, remarks) = url_of(server);
            if url.contains("://") {
                remarks.into_iter().for_each(|remark| all.remark(remark));
                if self.servers().len() > 1 {
                    let count = self.servers().len();
                    all.remark(format!("The target is the first of {count} servers."));
                }
                return Ok(url.trim_end_matches('/').to_owned());
            }
        }
        let base = self.base_path();
        match self.text("/host") {
            Some(host) => {
                let scheme = self.text("/schemes/0").unwrap_or("https");
                Ok(format!("{scheme}://{host}{base}"))
            }
            None if base.is_empty() => error("the description names no server: give --target URL"),
            None => error(format!(
                "the description's server is only the path {base}: give --target URL"
            )),
        }
    }

    /// The path of the first server, or that of Swagger 2, without a slash at its end.
    fn base_path(&self) -> String {
        let first = self.servers().first().map(|server| url_of(server).0);
        let url = first.or_else(|| self.text("/basePath").map(str::to_owned)).unwrap_or_default();
        let after_host = url.split_once("://").map(|(_, rest)| rest);
        let path = match after_host.or_else(|| url.strip_prefix("//")) {
            Some(rest) => rest.find('/').map_or("", |slash| &rest[slash..]),
            None => &url,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        // Where the description itself lies is unknown: a relative path counts from the root.
        let path = if path.starts_with('/') { path } else { path.trim_start_matches(['.', '/']) };
        let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
        percent::url(&format!("{slash}{path}"))
    }

    fn servers(&self) -> &'a [Value] {
        let servers = self.root.get("servers").and_then(Value::as_array);
        servers.map(Vec::as_slice).unwrap_or_default()
    }

    /// The text at a place of the description.
    fn text(&self, pointer: &str) -> Option<&'a str> {
        self.root.pointer(pointer).and_then(Value::as_str)
    }

    /// What a reference within the description refers to, through all that follow.
    fn resolved(&self, mut value: &'a Value) -> &'a Value {
        for _ in 0..DEPTH_MAX {
            match self.referred(value) {
                Some(referred) => value = referred,
                None => return value,
            }
        }
        &Value::Null
    }

    /// What a reference within the description refers to; `None` where it is none.
    fn referred(&self, value: &Value) -> Option<&'a Value> {
        let pointer = value.get("$ref")?.as_str()?.strip_prefix('#')?;
        Some(self.root.pointer(&percent::decoded(pointer)).unwrap_or(&Value::Null))
    }

    /// Whether keywords that say something about values stand beside a reference: they hold from
    /// version 3.1 on.
    fn has_keywords(&self, schema: &Value) -> bool {
        let version = self.text("/openapi").unwrap_or_default();
        let names = schema.as_object().into_iter().flat_map(|object| object.keys());
        let mut others = names.filter(|name| {
            !matches!(name.as_str(), "$ref" | "description" | "summary" | "title" | "$comment")
        });
        version.starts_with("3.") && !version.starts_with("3.0") && others.next().is_some()
    }

    /// Names what no step has.
    fn leftovers(&self, schemes: &HashSet<String>, all: &mut ScenarioBuilder) {
        for (name, scheme) in self.schemes() {
            if !schemes.contains(name) {
                let kind = scheme.get("type").and_then(Value::as_str).unwrap_or("?");
                all.leave_out(format!("security '{name}' ({kind}): no operation asks for it"));
            }
        }
        let webhooks = self.root.get("webhooks").or_else(|| self.root.get("x-webhooks"));
        let webhooks = webhooks.and_then(Value::as_object).map_or(0, |webhooks| webhooks.len());
        if webhooks > 0 {
            all.leave_out(format!("webhooks: {webhooks}, which are sent by the server"));
        }
    }

    /// The example of a parameter or of a kind of content.
    fn example(&self, of: &'a Value) -> Option<Value> {
        let first = of.get("examples").and_then(Value::as_object);
        let first = first.and_then(|examples| examples.values().next());
        let first = first.and_then(|example| self.resolved(example).get("value"));
        of.get("example").or(first).cloned()
    }

    /// The kinds of credentials by their names.
    fn schemes(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let schemes = self.root.pointer("/components/securitySchemes");
        let schemes = schemes.or_else(|| self.root.get("securityDefinitions"));
        schemes.and_then(Value::as_object).into_iter().flatten()
    }

    /// Adds the credentials that an operation asks for: of several ways the first.
    pub(super) fn authorize(
        &self,
        operation: &'a Value,
        draft: &mut StepRequest,
        used: &mut HashSet<String>,
        all: &mut ScenarioBuilder,
    ) {
        let ways = operation.get("security").or_else(|| self.root.get("security"));
        let ways = ways.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names = |way: &'a Value| way.as_object().into_iter().flatten().map(|(name, _)| name);
        used.extend(ways.iter().flat_map(names).cloned());
        let Some(way) = ways.first() else {
            return;
        };
        if ways.len() > 1 {
            all.remark("Of several ways to authorize, steps have the first.");
        }
        for name in names(way) {
            let scheme = self.schemes().find(|(own, _)| *own == name).map(|(_, scheme)| scheme);
            match scheme.map(|scheme| self.resolved(scheme)) {
                Some(scheme) => add(name, scheme, draft, all),
                None => all.leave_out(format!("security '{name}': it is not described")),
            }
        }
    }
}

/// The URL of a server with the values of its variables, and a remark about each of them.
fn url_of(server: &Value) -> (String, Vec<String>) {
    let mut url = server.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let variables = server.get("variables").and_then(Value::as_object);
    let mut remarks = Vec::new();
    for (name, variable) in variables.into_iter().flatten() {
        let first = variable.get("enum").and_then(|list| list.get(0));
        let value = variable.get("default").or(first).map(plain).unwrap_or_default();
        let place = format!("{{{name}}}");
        if url.contains(&place) {
            remarks.push(format!("The variable {name} of the server is '{value}'."));
            url = url.replace(&place, &value);
        }
    }
    (url, remarks)
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

fn add(name: &str, scheme: &Value, draft: &mut StepRequest, all: &mut ScenarioBuilder) {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let value = ImportedText::value(format!("env({})", variable(name)));
    let mut authorization = |word: &str| {
        let mut text = ImportedText::from(format!("{word} "));
        text.append(&value);
        draft.header("Authorization", text);
    };
    let (kind, http) = (text("type"), text("scheme").to_ascii_lowercase());
    let what = match (kind, http.as_str()) {
        ("http", "bearer") | ("oauth2" | "openIdConnect", _) => {
            authorization("Bearer");
            "the token"
        }
        ("http", "basic") | ("basic", _) => {
            authorization("Basic");
            "name:password in base64"
        }
        ("apiKey", _) => {
            match text("in") {
                "query" => {
                    let sign = if draft.url.template().contains('?') { "&" } else { "?" };
                    draft.url.push(sign);
                    draft.url.push(&format!("{}=", text("name")));
                    draft.url.append(&value);
                }
                "cookie" => {
                    let mut cookie = ImportedText::from(format!("{}=", text("name")));
                    cookie.append(&value);
                    draft.header("Cookie", cookie);
                }
                _ => draft.header(text("name"), value.clone()),
            }
            "the key"
        }
        (kind, http) => {
            let dash = if http.is_empty() { "" } else { " " };
            return all
                .leave_out(format!("security '{name}' ({kind}{dash}{http}): write its header"));
        }
    };
    all.remark(format!("Security {}: set it to {what}.", value.template()));
}

/// The variable of the environment for a name: `apiKey` is `API_KEY`.
fn variable(name: &str) -> String {
    let mut variable = String::new();
    let mut was_small = false;
    for c in name.chars().take(60) {
        let is_part = c.is_ascii_alphanumeric();
        if (c.is_ascii_uppercase() && was_small) || !is_part {
            variable.push('_');
        }
        if is_part {
            variable.push(c.to_ascii_uppercase());
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    let variable = variable.trim_matches('_');
    let is_fit = variable.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_fit { variable.to_owned() } else { format!("KEY_{variable}") }
}
