//! Values as texts and conditions of a scenario.

use super::super::{
    ImportedCondition, ImportedJson, ImportedMatch, ImportedRelation, ImportedText,
};
use super::checks::{EMPTY, length_matches};
use super::interpreter::{K6Interpreter, K6Step};
use super::operators::number_template;
use super::value::{JsValue, K6Test, PartPlace, ResponsePart, number_text};
use std::rc::Rc;

/// The deepest JSON.
const JSON_DEPTH_MAX: usize = 24;

impl<'a> K6Interpreter<'a, '_> {
    /// A value as the text that JavaScript makes of it.
    ///
    /// # Errors
    /// What the value is, if its text is not known.
    pub(super) fn text_of(&mut self, value: &JsValue<'a>) -> Result<ImportedText, String> {
        Ok(match value {
            JsValue::Undefined => "undefined".into(),
            JsValue::Null => "null".into(),
            JsValue::Bool(is) => is.to_string().into(),
            JsValue::Number(number) => number_text(*number).into(),
            JsValue::Text(text) | JsValue::Named(text, _) => (**text).clone(),
            JsValue::SessionNumber(of, plus) => number_template(of, *plus)?,
            JsValue::Session(of) => ImportedText::value(&**of),
            JsValue::Part(part) => ImportedText::value(self.variable_of(part)?),
            JsValue::Maybe(_) => {
                let value = self.without_doubt(value.clone());
                return self.text_of(&value);
            }
            JsValue::Test(_) => self.flag_of(value)?,
            JsValue::Uniform { .. } => return Err("a random number with a fraction".to_owned()),
            JsValue::Heap(_) => match self.heap.items(value).map(<[_]>::to_vec) {
                Some(items) => self.joined_items(&items, ",")?,
                None => "[object Object]".into(),
            },
            JsValue::File(file) => match self.file_text(&Rc::clone(file)) {
                Some(text) => text.into(),
                None => return Err(format!("the content of the file {file}")),
            },
            JsValue::Records(set) => return Err(format!("all records of '{set}'")),
            JsValue::Record(set) => {
                self.remark(format!(
                    "Records of '{set}' are texts: write each as {{\"value\": …}}."
                ));
                ImportedText::value(format!("{set}.value"))
            }
            JsValue::Builtin(path) => return Err(format!("'{path}', which is not known")),
            JsValue::Unknown(what) => return Err(what.to_string()),
            _ => return Err("a value that is no text".to_owned()),
        })
    }

    /// `a,b` of the items of a list.
    pub(super) fn joined_items(
        &mut self,
        items: &[JsValue<'a>],
        sign: &str,
    ) -> Result<ImportedText, String> {
        self.burn(items.len());
        let mut text = ImportedText::default();
        for (at, item) in items.iter().enumerate() {
            text.push(if at > 0 { sign } else { "" });
            if !matches!(item, JsValue::Undefined | JsValue::Null) {
                let or = Err("a list in many lists".to_owned());
                text.append(&self.deeper(or, |own| own.text_of(item))?);
            }
        }
        Ok(text)
    }

    /// `true` or `false` for a truth value: a variable has it where it depends on what happens.
    pub(super) fn flag_of(&mut self, value: &JsValue<'a>) -> Result<ImportedText, String> {
        let test = self.truthy(value.clone());
        if let K6Test::Known(is) = test {
            return Ok(is.to_string().into());
        }
        // A variable that is compared with `true` is that variable.
        if let K6Test::Compare(variable @ JsValue::Session(_), ImportedRelation::Equal, yes) = &test
            && yes.literal() == Some("true")
        {
            return self.text_of(variable);
        }
        if let K6Test::Chance(_) = test {
            return Err("a random truth value".to_owned());
        }
        let condition = self.condition(&test)?;
        let name = self.fresh("holds");
        let set = |is: &str| vec![K6Step::Set(vec![(name.clone(), is.into())])];
        let (steps, otherwise) = (set("true"), set("false"));
        self.steps.push(K6Step::When { condition, steps, otherwise });
        Ok(ImportedText::value(name))
    }

    /// A test as a condition of a scenario.
    ///
    /// # Errors
    /// What it asks, if a scenario cannot ask that.
    pub(super) fn condition(&mut self, test: &K6Test<'a>) -> Result<ImportedCondition, String> {
        let or = Err("something nested too deeply".to_owned());
        self.deeper(or, |own| own.one_condition(test))
    }

    fn one_condition(&mut self, test: &K6Test<'a>) -> Result<ImportedCondition, String> {
        let condition = match test {
            K6Test::Compare(left, relation, right) => self.comparison(left, *relation, right)?,
            K6Test::Truthy(value) => {
                let text = self.lacking_text(value)?;
                let compare = |relation, other: &str| {
                    ImportedCondition::Compare(text.clone(), relation, other.into())
                };
                match value {
                    // JSON has values that are false and no empty text.
                    JsValue::Session(_) | JsValue::Part(_) if !is_of_text(value) => {
                        compare(ImportedRelation::Matches, "^(|false|null|0)$").opposite()
                    }
                    _ => compare(ImportedRelation::NotEqual, ""),
                }
            }
            K6Test::All(all) => {
                let all = all.iter().map(|one| self.condition(one));
                ImportedCondition::All(all.collect::<Result<_, _>>()?)
            }
            K6Test::Any(any) => {
                let any = any.iter().map(|one| self.condition(one));
                ImportedCondition::Any(any.collect::<Result<_, _>>()?)
            }
            K6Test::Not(other) => self.condition(other)?.opposite(),
            K6Test::Known(is) => {
                let text = is.to_string();
                let yes = "true".into();
                ImportedCondition::Compare(text.into(), ImportedRelation::Equal, yes)
            }
            K6Test::Chance(_) => return Err("a random truth value in another".to_owned()),
            K6Test::Unknown(what) => return Err(what.to_string()),
        };
        match condition.mistake(0) {
            None => Ok(condition),
            Some(wrong) => Err(wrong),
        }
    }

    fn comparison(
        &mut self,
        left: &JsValue<'a>,
        relation: ImportedRelation,
        right: &JsValue<'a>,
    ) -> Result<ImportedCondition, String> {
        if let (JsValue::Uniform { low, high, draw }, JsValue::Number(end)) = (left, right) {
            let share = ((end - low) / (high - low) * 1e6).round();
            let variable = self.drawn_variable(*draw);
            let value = ImportedText::value(variable);
            let share = number_text(share).into();
            return Ok(ImportedCondition::Compare(value, relation, share));
        }
        if let (JsValue::Part(part), JsValue::Number(length)) = (left, right)
            && let PartPlace::Length(of) = &part.place
        {
            return self.length_condition(part.request, of, relation, *length);
        }
        // A number plus another is compared with what is less by that.
        if let (JsValue::SessionNumber(of, plus), JsValue::Number(end)) = (left, right) {
            let value = number_template(of, 0.0)?;
            let end = number_text(end - plus).into();
            return Ok(ImportedCondition::Compare(value, relation, end));
        }
        let (a, b) = (self.lacking_text(left)?, self.lacking_text(right)?);
        Ok(ImportedCondition::Compare(a, relation, b))
    }

    fn length_condition(
        &mut self,
        request: usize,
        of: &PartPlace,
        relation: ImportedRelation,
        length: f64,
    ) -> Result<ImportedCondition, String> {
        let least = if relation == ImportedRelation::Greater { length + 1.0 } else { length };
        if let (PartPlace::Json(pointer), ImportedRelation::Greater | ImportedRelation::AtLeast) =
            (of, relation)
            && !pointer.is_empty()
            && (2.0..=1e6).contains(&least)
        {
            return self.longer_than(request, pointer, least as u64 - 1);
        }
        let mut all = Vec::new();
        for (place, is) in length_matches(of, relation, length)? {
            let text = self.lacking_text(&self.part(request, place))?;
            let compare = |relation, other: &str| {
                ImportedCondition::Compare(text.clone(), relation, other.into())
            };
            all.push(match is {
                ImportedMatch::Exists(true) => compare(ImportedRelation::NotEqual, ""),
                ImportedMatch::Exists(false) => compare(ImportedRelation::Equal, ""),
                ImportedMatch::Matches(pattern) => compare(ImportedRelation::Matches, &pattern),
                ImportedMatch::Not(_) => compare(ImportedRelation::Matches, EMPTY).opposite(),
                _ => return Err("a length".to_owned()),
            });
        }
        Ok(if all.len() == 1 { all.remove(0) } else { ImportedCondition::All(all) })
    }

    /// A list has an element behind this many others, and a text a character.
    fn longer_than(
        &mut self,
        request: usize,
        pointer: &str,
        before: u64,
    ) -> Result<ImportedCondition, String> {
        let element = PartPlace::Json(format!("{pointer}/{before}"));
        let element = self.lacking_text(&self.part(request, element))?;
        let text = PartPlace::Json(pointer.to_owned());
        let text = self.lacking_text(&self.part(request, text))?;
        let pattern = format!("(?s)^[^\\[].{{{before}}}").into();
        Ok(ImportedCondition::Any(vec![
            ImportedCondition::Compare(element, ImportedRelation::NotEqual, "".into()),
            ImportedCondition::Compare(text, ImportedRelation::Matches, pattern),
        ]))
    }

    /// The text of a side of a comparison: a part that is not there is an empty text.
    fn lacking_text(&mut self, value: &JsValue<'a>) -> Result<ImportedText, String> {
        if let JsValue::Undefined = value {
            return Ok(ImportedText::default());
        }
        let text = self.text_of(value)?;
        if let JsValue::Part(part) = value {
            self.may_lack(&part.clone());
        }
        Ok(text)
    }

    /// The variable that has a random number of a million.
    fn drawn_variable(&mut self, draw: usize) -> String {
        if let Some(Some(name)) = self.draws.get(draw)
            && !name.is_empty()
        {
            return name.clone();
        }
        let name = self.set_variable("draw", ImportedText::value("random(0,999999)")).to_string();
        if let Some(own) = self.draws.get_mut(draw) {
            *own = Some(name.clone());
        }
        name
    }

    /// A value as JSON.
    ///
    /// # Errors
    /// What is in it that is not known.
    pub(super) fn json_of(
        &mut self,
        value: &JsValue<'a>,
        depth: usize,
    ) -> Result<ImportedJson, String> {
        if depth > JSON_DEPTH_MAX || !self.burn(1) {
            return Err("JSON that is nested too deeply".to_owned());
        }
        Ok(match value {
            JsValue::Undefined | JsValue::Null => ImportedJson::Plain("null".to_owned()),
            JsValue::Bool(is) => ImportedJson::Plain(is.to_string()),
            JsValue::Number(number) if number.is_finite() => {
                ImportedJson::Plain(number_text(*number))
            }
            JsValue::Number(_) => ImportedJson::Plain("null".to_owned()),
            JsValue::Maybe(_) => {
                let value = self.without_doubt(value.clone());
                return self.json_of(&value, depth);
            }
            JsValue::SessionNumber(..)
            | JsValue::Session(_)
            | JsValue::Test(_)
            | JsValue::Part(ResponsePart { place: PartPlace::Status, .. }) => {
                ImportedJson::Value(self.text_of(value)?)
            }
            JsValue::Part(ResponsePart { place: PartPlace::Json(_), .. }) => {
                self.remark(
                    "Values of responses in JSON are numbers, true, false, null or texts: write \
                     ${raw(name)} for a list or an object.",
                );
                ImportedJson::Value(self.text_of(value)?)
            }
            JsValue::Record(set) => {
                return Err(format!("a whole record of '{set}', whose columns are not known"));
            }
            JsValue::Heap(_) => {
                if let Some(items) = self.heap.items(value).map(<[_]>::to_vec) {
                    let items = items.iter().map(|item| self.json_of(item, depth + 1));
                    return Ok(ImportedJson::List(items.collect::<Result<_, _>>()?));
                }
                let entries = self.heap.entries(value).unwrap_or_default().to_vec();
                let sent = entries.into_iter().filter(|(_, value)| {
                    !matches!(value, JsValue::Undefined | JsValue::Function(_) | JsValue::Class(..))
                });
                let pairs = sent
                    .map(|(name, value)| Ok((name.to_string(), self.json_of(&value, depth + 1)?)));
                ImportedJson::Object(pairs.collect::<Result<_, String>>()?)
            }
            other => ImportedJson::Text(self.text_of(other)?),
        })
    }

    /// What `JSON.stringify` gives: a body that is this text is written as JSON.
    pub(super) fn stringified(&mut self, value: &JsValue<'a>, indent: usize) -> JsValue<'a> {
        match self.json_of(value, 0) {
            Ok(json) => {
                let mut text = ImportedText::default();
                put_json(&json, indent, 0, &mut text);
                let text = self.bounded(text);
                if let JsValue::Text(text) = &text
                    && json.has_text()
                {
                    let key = text.template();
                    self.json_texts.insert(key, Rc::new(json));
                }
                text
            }
            Err(what) => JsValue::unknown(what),
        }
    }
}

/// Whether a part of a response is a text whenever it is there.
fn is_of_text(value: &JsValue) -> bool {
    matches!(value, JsValue::Part(part) if !matches!(part.place, PartPlace::Json(_)))
}

/// JSON as text, without blanks or on several lines.
fn put_json(json: &ImportedJson, indent: usize, depth: usize, into: &mut ImportedText) {
    let string = |text: &str| serde_json::to_string(text).unwrap_or_default();
    match json {
        ImportedJson::Plain(text) => into.push(text),
        ImportedJson::Text(text) => {
            into.push("\"");
            let escaped = text.map(|literal| {
                let quoted = string(literal);
                quoted[1..quoted.len() - 1].to_owned()
            });
            into.append(&escaped);
            into.push("\"");
        }
        ImportedJson::Value(value) => into.append(value),
        ImportedJson::List(list) => {
            let items: Vec<_> = list.iter().map(|item| (String::new(), item)).collect();
            put_items(["[", "]"], &items, indent, depth, into);
        }
        ImportedJson::Object(pairs) => {
            let colon = if indent > 0 { ": " } else { ":" };
            let items = pairs.iter().map(|(name, value)| (string(name) + colon, value));
            let items: Vec<_> = items.collect();
            put_items(["{", "}"], &items, indent, depth, into);
        }
    }
}

/// A list or an object, with what stands before each item.
fn put_items(
    [begin, end]: [&str; 2],
    items: &[(String, &ImportedJson)],
    indent: usize,
    depth: usize,
    into: &mut ImportedText,
) {
    let line = |depth: usize| match indent {
        0 => String::new(),
        indent => format!("\n{}", " ".repeat(indent * depth)),
    };
    into.push(begin);
    for (at, (before, item)) in items.iter().enumerate() {
        into.push(if at > 0 { "," } else { "" });
        into.push(&(line(depth + 1) + before));
        put_json(item, indent, depth + 1, into);
    }
    into.push(&if items.is_empty() { String::new() } else { line(depth) });
    into.push(end);
}
