//! Files that a description refers to become parts of it.

use super::parse;
use crate::import::as_text;
use crate::import::builder::ScenarioBuilder;
use crate::import::data::ReadFile;
use knee_load::percent;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most files.
const FILES_MAX: usize = 200;

/// The key under which the files lie in the description.
const KEY: &str = "x-knee-files";

/// Takes in all files below the folder of the description that it refers to, and those that these
/// refer to. The references become those within the description.
pub(super) fn take_in(root: &mut Value, read: ReadFile, all: &mut ScenarioBuilder) {
    let mut files = ApiFiles { read, all, is_read: BTreeMap::new(), waiting: Vec::new() };
    references(root, &mut |reference| *reference = files.within("", reference));
    let mut taken = Map::new();
    while let Some((file, mut value)) = files.waiting.pop() {
        references(&mut value, &mut |reference| *reference = files.within(&file, reference));
        taken.insert(file, value);
    }
    if let (false, Value::Object(root)) = (taken.is_empty(), root) {
        root.insert(KEY.to_owned(), Value::Object(taken));
    }
}

/// The files that are referred to, and whether each could be read.
struct ApiFiles<'r, 'a> {
    read: ReadFile<'r>,
    all: &'a mut ScenarioBuilder,
    is_read: BTreeMap<String, bool>,
    /// Those whose own references were not followed.
    waiting: Vec<(String, Value)>,
}

impl ApiFiles<'_, '_> {
    /// A reference of a file, `""` the description itself, as one within the description. What lies
    /// elsewhere or cannot be read stays as it is.
    fn within(&mut self, file: &str, reference: &str) -> String {
        let (other, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let referred = if other.is_empty() { Some(file.to_owned()) } else { beside(file, other) };
        match referred {
            Some(referred) if !referred.is_empty() && self.takes(&referred) => {
                let key = referred.replace('~', "~0").replace('/', "~1");
                format!("#/{KEY}/{}{pointer}", percent::component(key.as_bytes()))
            }
            _ => reference.to_owned(),
        }
    }

    /// Whether a file can be read, which is done the first time.
    fn takes(&mut self, file: &str) -> bool {
        if let Some(is_read) = self.is_read.get(file) {
            return *is_read;
        }
        let bytes = if self.is_read.len() < FILES_MAX {
            (self.read)(file)
        } else {
            Err(format!("more than {FILES_MAX} files"))
        };
        let value = bytes.and_then(|bytes| {
            let text = as_text(&bytes, "it").map_err(|e| e.0)?;
            parse(text).map_err(|e| e.0)
        });
        self.is_read.insert(file.to_owned(), value.is_ok());
        match value {
            Ok(value) => self.waiting.push((file.to_owned(), value)),
            Err(why) => self.all.leave_out(format!("file {file}: {why}")),
        }
        self.is_read[file]
    }
}

/// Calls `change` for each reference.
fn references(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(reference) if key == "$ref" => change(reference),
                    value => references(value, change),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| references(value, change)),
        _ => {}
    }
}

/// The file that a reference in `file` names, where that lies below the folder of the description.
fn beside(file: &str, reference: &str) -> Option<String> {
    if reference.starts_with('/') || reference.contains([':', '\\']) {
        return None;
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    let reference = percent::decoded(reference.split('?').next().unwrap_or_default());
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|name| !name.is_empty())
}
