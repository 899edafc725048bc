//! `JSON`, `Object` and their kin, files, and sets of records.

use super::super::ImportedText;
use super::builtins::stem;
use super::calls::argument;
use super::interpreter::{K6Interpreter, TEXT_MAX};
use super::value::{JsValue, PartPlace};
use std::rc::Rc;

/// A file of JSON that is larger is a set of records.
const CONFIG_MAX: usize = 64 << 10;
/// The deepest JSON that is read.
const DEPTH_MAX: usize = 60;

impl<'a> K6Interpreter<'a, '_> {
    /// Functions that JavaScript has.
    pub(super) fn standard_call(&mut self, path: &str, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let first = argument(arguments, 0).certain();
        match path {
            "JSON.stringify" => {
                let indent = argument(arguments, 2).number().unwrap_or(0.0);
                self.stringified(&first, indent.clamp(0.0, 10.0) as usize)
            }
            "JSON.parse" => self.parsed_json(first),
            "Object.keys" => self.keys(&first),
            "Object.values" | "Object.entries" => self.object_items(&first, path),
            "Object.fromEntries" => self.object_of(&first),
            "Object.assign" => {
                for other in arguments.iter().skip(1) {
                    let entries = self.heap.entries(other).unwrap_or_default().to_vec();
                    if let JsValue::Heap(at) = &first {
                        for (name, value) in entries {
                            self.burn(8);
                            self.heap.set_entry(*at, &name, value);
                        }
                    }
                }
                first
            }
            "Object.freeze" | "Object.seal" | "Promise.resolve" | "String.raw" => first,
            "Promise.all" | "Promise.allSettled" | "Promise.race" => {
                self.leave_out("Promise.all: requests are sent one after another");
                first
            }
            "Array.isArray" => match &first {
                JsValue::Part(part) if matches!(part.place, PartPlace::Json(_)) => {
                    let pattern = JsValue::text("^\\s*\\[");
                    let relation = super::super::ImportedRelation::Matches;
                    let place = match &part.place {
                        PartPlace::Json(pointer) if pointer.is_empty() => PartPlace::Body,
                        other => other.clone(),
                    };
                    let value = self.part(part.request, place);
                    JsValue::test(super::value::K6Test::Compare(value, relation, pattern))
                }
                JsValue::Records(_) => JsValue::Bool(true),
                JsValue::Unknown(what) => JsValue::Unknown(Rc::clone(what)),
                value => JsValue::Bool(self.heap.items(value).is_some()),
            },
            "Array.from" => self.array_from(&first, &argument(arguments, 1)),
            "Array.of" => self.heap.list(arguments.to_vec()),
            "Number.isInteger" => match first.number() {
                Some(number) => JsValue::Bool(number.fract() == 0.0),
                None => JsValue::unknown("whether a value is a whole number"),
            },
            "Number.parseInt" | "Number.parseFloat" => {
                let name = path.trim_start_matches("Number.");
                self.call_builtin(name, arguments.to_vec())
            }
            "Date.now" => JsValue::SessionNumber(self.draw_once("now(unix_ms)", "time"), 0.0),
            other => JsValue::unknown(format!("what {other} gives")),
        }
    }

    fn object_items(&mut self, object: &JsValue<'a>, path: &str) -> JsValue<'a> {
        let Some(entries) = self.heap.entries(object).map(<[_]>::to_vec) else {
            return JsValue::unknown("the entries of an object that is not known");
        };
        let items = entries.into_iter().map(|(name, value)| match path {
            "Object.values" => value,
            _ => self.heap.list(vec![JsValue::text(&*name), value]),
        });
        let items = items.collect();
        self.heap.list(items)
    }

    fn object_of(&mut self, pairs: &JsValue<'a>) -> JsValue<'a> {
        let pairs = self.heap.items(pairs).unwrap_or_default().to_vec();
        let mut entries: Vec<(Rc<str>, JsValue<'a>)> = Vec::new();
        for pair in pairs {
            let (name, value) = (self.member(&pair, "0"), self.member(&pair, "1"));
            match self.text_of(&name).ok().and_then(|name| name.literal().map(Rc::from)) {
                Some(name) => entries.push((name, value)),
                None => return JsValue::unknown("an object whose names are not known"),
            }
        }
        self.heap.object(entries)
    }

    /// `Array.from({length: 3}, (_, i) => …)`, and of lists.
    fn array_from(&mut self, of: &JsValue<'a>, map: &JsValue<'a>) -> JsValue<'a> {
        let items = match self.heap.items(of).map(<[_]>::to_vec) {
            Some(items) => items,
            None => {
                let length = self.heap.entry(of, "length").and_then(JsValue::number);
                match length {
                    Some(length) => {
                        let length = length.clamp(0.0, 10_000.0) as usize;
                        self.burn(length);
                        vec![JsValue::Undefined; length]
                    }
                    None => return JsValue::unknown("a list that is not known"),
                }
            }
        };
        if !matches!(map, JsValue::Function(_)) {
            return self.heap.list(items);
        }
        let mapped = items.into_iter().enumerate();
        let mapped =
            mapped.map(|(at, item)| self.call(map, vec![item, JsValue::Number(at as f64)]));
        let mapped = mapped.collect();
        self.heap.list(mapped)
    }

    fn parsed_json(&mut self, value: JsValue<'a>) -> JsValue<'a> {
        match &value {
            JsValue::File(file) => {
                let file = Rc::clone(file);
                match self.small_file(&file) {
                    Some(json) => self.json_value(&json, 0),
                    None => self.records_of(&file),
                }
            }
            JsValue::Part(part) if part.place == PartPlace::Body => {
                self.part(part.request, PartPlace::Json(String::new()))
            }
            JsValue::Part(_) | JsValue::Unknown(_) => value,
            other => match other.literal().map(serde_json::from_str::<serde_json::Value>) {
                Some(Ok(json)) => self.json_value(&json, 0),
                _ => JsValue::unknown("parsed JSON"),
            },
        }
    }

    /// A file of settings: one that is read and has no list of objects.
    fn small_file(&mut self, file: &str) -> Option<serde_json::Value> {
        let path = self.path_of(file)?;
        let bytes = (self.read)(&path).ok().filter(|bytes| bytes.len() <= CONFIG_MAX)?;
        let json: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let is_record = |item: &serde_json::Value| item.is_object();
        match &json {
            serde_json::Value::Array(items) if items.iter().all(is_record) => None,
            _ => Some(json),
        }
    }

    fn json_value(&mut self, json: &serde_json::Value, depth: usize) -> JsValue<'a> {
        if depth > DEPTH_MAX || !self.burn(1) {
            return JsValue::unknown("JSON that is nested too deeply");
        }
        match json {
            serde_json::Value::Null => JsValue::Null,
            serde_json::Value::Bool(is) => JsValue::Bool(*is),
            serde_json::Value::Number(number) => {
                JsValue::Number(number.as_f64().unwrap_or(f64::NAN))
            }
            serde_json::Value::String(text) => JsValue::text(text.as_str()),
            serde_json::Value::Array(items) => {
                let items = items.iter().map(|item| self.json_value(item, depth + 1)).collect();
                self.heap.list(items)
            }
            serde_json::Value::Object(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(name, value)| {
                    (Rc::from(name.as_str()), self.json_value(value, depth + 1))
                });
                let entries = entries.collect();
                self.heap.object(entries)
            }
        }
    }

    /// A set of records that a file becomes.
    pub(super) fn records_of(&mut self, file: &str) -> JsValue<'a> {
        let name = super::super::collect::Collector::variable(&stem(file));
        let (stem, ending) = file.rsplit_once('.').unwrap_or((file, ""));
        let own = match ending.to_ascii_lowercase().as_str() {
            "csv" => file.to_owned(),
            _ => format!("{stem}.jsonl"),
        };
        let Some(own) = super::super::collect::below(&own) else {
            return JsValue::unknown("a file that has no name");
        };
        if self.records.iter().any(|(other, ..)| *other == name) {
            return JsValue::Records(Rc::from(name));
        }
        self.remark(if ending.eq_ignore_ascii_case("csv") {
            format!("Put {file} beside the scenario as {own}. Its first line names the columns.")
        } else {
            format!("Put {own} beside the scenario: each element of {file} on a line of its own.")
        });
        self.records.push((name.clone(), own, false));
        JsValue::Records(Rc::from(name))
    }

    /// `papaparse.parse(open(FILE), OPTIONS)`: its `data` are the records.
    pub(super) fn parsed_csv(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let JsValue::File(file) = argument(arguments, 0) else {
            return JsValue::unknown("parsed CSV");
        };
        let records = self.records_of(&file);
        let options = argument(arguments, 1);
        let has_header = self.heap.entry(&options, "header").and_then(JsValue::truth);
        if has_header != Some(true) {
            self.remark(format!(
                "{file} needs a first line with the names of its columns: column_0,column_1 and so \
                 on."
            ));
        }
        self.heap.object(vec![(Rc::from("data"), records)])
    }

    /// The column of a record that has no names.
    pub(super) fn column(&mut self, set: &str, name: &str) -> JsValue<'a> {
        let name = match name.parse::<usize>() {
            Ok(number) => format!("column_{number}"),
            Err(_) => name.to_owned(),
        };
        if !crate::names::is_name(&name) {
            return JsValue::unknown(format!("the column '{name}' of a record"));
        }
        JsValue::Text(Rc::new(ImportedText::value(format!("{set}.{name}"))))
    }

    /// The text of a file that is known, if it is small.
    pub(super) fn file_text(&mut self, file: &str) -> Option<String> {
        let path = self.path_of(file)?;
        let bytes = (self.read)(&path).ok().filter(|bytes| bytes.len() <= TEXT_MAX)?;
        String::from_utf8(bytes).ok()
    }
}
