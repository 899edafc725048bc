//! Credentials, which the environment gives.

use super::ApiDescription;
use crate::import::ImportedText;
use crate::import::collect::{Collector, SourceRequest};
use serde_json::Value;
use std::collections::HashSet;

impl<'a> ApiDescription<'a> {
    /// The kinds of credentials by their names.
    pub(super) fn schemes(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let schemes = self.root.pointer("/components/securitySchemes");
        let schemes = schemes.or_else(|| self.root.get("securityDefinitions"));
        schemes.and_then(Value::as_object).into_iter().flatten()
    }

    /// Adds the credentials that an operation asks for: of several ways the first.
    pub(super) fn authorize(
        &self,
        operation: &'a Value,
        draft: &mut SourceRequest,
        used: &mut HashSet<String>,
        all: &mut Collector,
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

fn add(name: &str, scheme: &Value, draft: &mut SourceRequest, all: &mut Collector) {
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
