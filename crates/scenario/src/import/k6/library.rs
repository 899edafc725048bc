//! `JSON`, `Object` and their kin, files, and sets of records.

use super::super::{ImportedRelation, ImportedText};
use super::builtins::stem;
use super::calls::argument;
use super::interpreter::{K6Interpreter, TEXT_MAX};
use super::value::{JsValue, PartPlace};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
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
                    let entries = self.spread_entries(other);
                    if let JsValue::Heap(at) = &first {
                        self.burn(8 * entries.len() + self.heap.length(*at));
                        self.heap.set_entries(*at, entries);
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
                    let place = match &part.place {
                        PartPlace::Json(pointer) if pointer.is_empty() => PartPlace::Body,
                        other => other.clone(),
                    };
                    let value = self.part(part.request, place);
                    JsValue::compared(value, ImportedRelation::Matches, pattern)
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
            match self.known_text(&name) {
                Some(name) => entries.push((name, value)),
                None => return JsValue::unknown("an object whose names are not known"),
            }
        }
        self.heap.object(entries)
    }

    /// `Array.from({length: 3}, (_, i) => …)`, and of lists.
    fn array_from(&mut self, of: &JsValue<'a>, map: &JsValue<'a>) -> JsValue<'a> {
        let length = self.heap.entry(of, "length").and_then(JsValue::number);
        let items = match (self.heap.items(of), length) {
            (Some(items), _) => items.to_vec(),
            (None, Some(length)) => self.empty_items(length),
            (None, None) => return JsValue::unknown("a list that is not known"),
        };
        if matches!(map, JsValue::Function(_)) {
            self.mapped(items, map)
        } else {
            self.heap.list(items)
        }
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
            other => match other.literal().map(serde_json::from_str::<OrderedJson>) {
                Some(Ok(json)) => self.json_value(&json, 0),
                _ => JsValue::unknown("parsed JSON"),
            },
        }
    }

    /// A file of settings: one that is read and has no list of objects.
    fn small_file(&mut self, file: &str) -> Option<OrderedJson> {
        let bytes = self.bytes_of(file, CONFIG_MAX)?;
        let json: OrderedJson = serde_json::from_slice(&bytes).ok()?;
        let is_record = |item: &OrderedJson| matches!(item, OrderedJson::Object(_));
        match &json {
            OrderedJson::List(items) if items.iter().all(is_record) => None,
            _ => Some(json),
        }
    }

    fn json_value(&mut self, json: &OrderedJson, depth: usize) -> JsValue<'a> {
        if depth > DEPTH_MAX || !self.burn(1) {
            return JsValue::unknown("JSON that is nested too deeply");
        }
        match json {
            OrderedJson::Null => JsValue::Null,
            OrderedJson::Bool(is) => JsValue::Bool(*is),
            OrderedJson::Number(number) => JsValue::Number(*number),
            OrderedJson::Text(text) => JsValue::text(text.as_str()),
            OrderedJson::List(items) => {
                let items = items.iter().map(|item| self.json_value(item, depth + 1)).collect();
                self.heap.list(items)
            }
            OrderedJson::Object(entries) => {
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
        JsValue::text(ImportedText::value(format!("{set}.{name}")))
    }

    /// The text of a file that is known, if it is small.
    pub(super) fn file_text(&mut self, file: &str) -> Option<String> {
        String::from_utf8(self.bytes_of(file, TEXT_MAX)?).ok()
    }

    fn bytes_of(&mut self, file: &str, most: usize) -> Option<Vec<u8>> {
        let path = self.path_of(file)?;
        (self.read)(&path).ok().filter(|bytes| bytes.len() <= most)
    }
}

/// JSON whose objects keep the order of their entries.
enum OrderedJson {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<OrderedJson>),
    Object(Vec<(String, OrderedJson)>),
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OrderedJsonVisitor)
    }
}

struct OrderedJsonVisitor;

impl<'de> Visitor<'de> for OrderedJsonVisitor {
    type Value = OrderedJson;

    fn expecting(&self, into: &mut fmt::Formatter) -> fmt::Result {
        into.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_bool<E>(self, is: bool) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<OrderedJson, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(OrderedJson::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<OrderedJson, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = from.next_entry()? {
            entries.push(entry);
        }
        Ok(OrderedJson::Object(entries))
    }
}
