//! Documents without secrets, such as reports and the history.

use super::Secrets;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// The secrets of a document and the names that replace those of its targets.
struct SecretCover<'a> {
    secrets: &'a Secrets,
    /// Names of targets by what they were; no two become one.
    targets: BTreeMap<String, String>,
}

impl Secrets {
    /// The same value with its texts hidden; `None` where it does not survive JSON.
    pub fn hide_all<T>(&self, value: &T) -> Option<T>
    where
        T: Clone + Serialize + DeserializeOwned,
    {
        let mut document = serde_json::to_value(value).ok();
        let hidden = match document.as_mut().map(|document| self.hide_values(document)) {
            Some(false) => return Some(value.clone()),
            _ => document.and_then(|document| serde_json::from_value(document).ok()),
        };
        debug_assert!(hidden.is_some(), "a document is read back as it was written");
        hidden
    }

    /// Hides the secrets in all texts of a document, and says whether there are any.
    pub fn hide_values(&self, document: &mut Value) -> bool {
        if !self.hides() {
            return false;
        }
        let mut cover = SecretCover { secrets: self, targets: BTreeMap::new() };
        cover.name_targets(document);
        cover.hide(document)
    }

    /// Names in the place of these, apart from each other where these are.
    pub fn hide_names(&self, names: &[String]) -> Vec<String> {
        let mut cover = SecretCover { secrets: self, targets: BTreeMap::new() };
        names.iter().for_each(|name| cover.name_target(name));
        let hidden = |name: &String| cover.targets.get(name).unwrap_or(name).clone();
        names.iter().map(hidden).collect()
    }
}

impl SecretCover<'_> {
    /// Finds the names of targets in the order in which they come.
    fn name_targets(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.name_targets(item)),
            Value::Object(fields) => {
                if let Some(Value::String(name)) = fields.get("target") {
                    self.name_target(name);
                }
                fields.values().for_each(|value| self.name_targets(value));
            }
            _ => {}
        }
    }

    fn name_target(&mut self, name: &str) {
        let hidden = self.secrets.hide(name);
        if hidden == name || self.targets.contains_key(name) {
            return;
        }
        let is_taken = |name: &String| self.targets.values().any(|other| other == name);
        let numbered = (2..).map(|number| format!("{hidden} ({number})"));
        let mut free = std::iter::once(hidden.to_string()).chain(numbered);
        let free = free.find(|name| !is_taken(name)).unwrap_or_default();
        self.targets.insert(name.to_owned(), free);
    }

    /// Hides all texts of this value, and says whether any was changed.
    fn hide(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let hidden = match self.targets.get(text) {
                    Some(name) => name.clone().into(),
                    None => self.secrets.hide(text),
                };
                let is_changed = hidden != text.as_str();
                if is_changed {
                    *text = hidden.into_owned();
                }
                is_changed
            }
            Value::Array(items) => {
                let hide = |is_changed, item| self.hide(item) | is_changed;
                items.iter_mut().fold(false, hide)
            }
            Value::Object(fields) => {
                let hide = |is_changed, value| self.hide(value) | is_changed;
                fields.values_mut().fold(false, hide)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_differ_in_a_secret_stay_apart() {
        let names = ["GET /?token=a", "GET /?token=b", "GET /?token=a", "GET /?page=1"];
        let hidden = Secrets::default().hide_names(&names.map(str::to_owned));
        let first = "GET /?token=***";
        assert_eq!(hidden, [first, "GET /?token=*** (2)", first, "GET /?page=1"]);
    }

    #[test]
    fn every_text_of_a_document_is_hidden() {
        let mut document = json!({
            "targets": [{"target": "GET /?sig=one"}, {"target": "GET /?sig=two"}],
            "code": "generator_woken", "count": 7, "none": null,
            "findings": [{"text": "GET /?sig=two has canary-value-1"}],
        });
        let mut secrets = Secrets::default();
        secrets.learn("canary-value-1");
        assert!(secrets.hide_values(&mut document));
        let expected = json!({
            "targets": [{"target": "GET /?sig=***"}, {"target": "GET /?sig=*** (2)"}],
            "code": "generator_woken", "count": 7, "none": null,
            "findings": [{"text": "GET /?sig=*** has ***"}],
        });
        assert_eq!(document, expected);
        assert!(!secrets.hide_values(&mut document), "twice is as once");
        assert!(!Secrets::default().shown().hide_values(&mut json!("GET /?sig=one")));
    }
}
