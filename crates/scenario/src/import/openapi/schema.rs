//! Values that schemas permit, and a text that a regular expression matches: short, and always the
//! same.

use super::{ApiDescription, DEPTH_MAX};
use crate::import::builder::ScenarioBuilder;
use knee_load::session::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

/// How many values one that is made of a schema may have.
const VALUES_MAX: usize = 1_000;
/// How many schemas may hold for one value together.
const SCHEMAS_MAX: usize = 100;
/// The longest list or text that a bound asks for.
const LENGTH_MAX: u64 = 10_000;

/// Makes values of schemas.
pub(super) struct ValueMaker<'a, 'c> {
    description: &'a ApiDescription<'a>,
    all: &'c mut ScenarioBuilder,
    left: usize,
    /// The references that the value lies in.
    within: Vec<&'a str>,
}

/// All schemas that hold for one value.
struct ApiSchemas<'a>(Vec<&'a Value>);

impl<'a> ApiSchemas<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.iter().find_map(|schema| schema.get(key))
    }

    fn count(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Value::as_u64)
    }

    /// The schema of a property of the object.
    fn property(&self, name: &str) -> Option<&'a Value> {
        self.0.iter().find_map(|schema| schema.get("properties")?.get(name))
    }

    /// The type; of several the first that is not `null`. Without one, what the other keys say.
    fn kind(&self) -> &'a str {
        let own = self.get("type").map(|kind| match kind {
            Value::Array(kinds) => {
                let mut kinds = kinds.iter().filter_map(Value::as_str);
                kinds.find(|kind| *kind != "null").unwrap_or("null")
            }
            kind => kind.as_str().unwrap_or_default(),
        });
        let has = |key: &str| self.get(key).is_some();
        own.unwrap_or(match () {
            () if has("properties") || has("additionalProperties") => "object",
            () if has("items") || has("prefixItems") => "array",
            () if has("minimum") || has("maximum") || has("multipleOf") => "number",
            () => "string",
        })
    }
}

impl<'a, 'c> ValueMaker<'a, 'c> {
    pub(super) fn new(description: &'a ApiDescription<'a>, all: &'c mut ScenarioBuilder) -> Self {
        ValueMaker { description, all, left: VALUES_MAX, within: Vec::new() }
    }

    /// A value that a schema permits.
    pub(super) fn made(&mut self, schema: &'a Value) -> Value {
        self.left = self.left.saturating_sub(1);
        if self.within.len() > DEPTH_MAX || self.left == 0 {
            self.all.leave_out("values of schemas that are nested deeply: null in their place");
            return Value::Null;
        }
        let reference = schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        if !reference.is_empty() && !reference.starts_with('#') {
            self.all.leave_out(format!("schema {reference}: it is in another file: a text here"));
        }
        if self.description.referred(schema) == Some(&Value::Null) {
            self.all.leave_out(format!("schema {reference}: there is none: a text here"));
        }
        if !reference.is_empty() && self.within.contains(&reference) {
            self.all.leave_out(format!("schema {reference}: it has itself in it: null there"));
            return Value::Null;
        }
        self.within.push(reference);
        let mut schemas = ApiSchemas(Vec::new());
        let discriminator = self.gather(schema, &mut schemas, 0);
        let value = self.of_schemas(&schemas, discriminator);
        self.within.pop();
        value
    }

    /// The schema of a property of an object.
    pub(super) fn property(&self, schema: &'a Value, name: &str) -> Option<&'a Value> {
        let mut schemas = ApiSchemas(Vec::new());
        self.gather(schema, &mut schemas, 0);
        schemas.property(name).map(|property| self.description.resolved(property))
    }

    /// Whether a schema is a reference that the value lies in.
    fn is_around(&self, schema: &Value) -> bool {
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.is_some_and(|reference| self.within.contains(&reference))
    }

    /// Puts all schemas that hold for a value: itself, the parts of `allOf`, and one of several.
    /// What a discriminator says of that one comes back.
    fn gather(
        &self,
        schema: &'a Value,
        into: &mut ApiSchemas<'a>,
        depth: usize,
    ) -> Option<(String, Value)> {
        if depth > DEPTH_MAX || into.0.len() >= SCHEMAS_MAX {
            return None;
        }
        let referred = self.description.referred(schema);
        // What stands beside a reference holds too, and says more than what it refers to.
        let holds = referred.is_none() || self.description.has_keywords(schema);
        into.0.extend(holds.then_some(schema));
        let mut discriminator =
            referred.and_then(|referred| self.gather(referred, into, depth + 1));
        if !holds {
            return discriminator;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            discriminator = self.gather(part, into, depth + 1).or(discriminator);
        }
        for key in ["oneOf", "anyOf"] {
            let list = schema.get(key).and_then(Value::as_array);
            let is_null =
                |one: &&Value| self.description.resolved(one).get("type") == Some(&json!("null"));
            let Some(one) = list.and_then(|list| list.iter().find(|one| !is_null(one))) else {
                continue;
            };
            let declared = schema.get("discriminator");
            discriminator = self.gather(one, into, depth + 1).or(discriminator);
            let reference = one.get("$ref").and_then(Value::as_str);
            let name = declared.and_then(|d| d.get("propertyName")).and_then(Value::as_str);
            if let Some((reference, name)) = reference.zip(name) {
                let mapping = declared.and_then(|d| d.get("mapping")).and_then(Value::as_object);
                let mut mapping = mapping.into_iter().flatten();
                let mapped = mapping.find(|(_, to)| to.as_str() == Some(reference));
                let last = reference.rsplit('/').next().unwrap_or(reference);
                let value = mapped.map_or_else(|| last.to_owned(), |(value, _)| value.clone());
                discriminator = Some((name.to_owned(), Value::String(value)));
            }
        }
        discriminator
    }

    fn of_schemas(
        &mut self,
        schemas: &ApiSchemas<'a>,
        discriminator: Option<(String, Value)>,
    ) -> Value {
        let first = |key: &str| schemas.get(key).and_then(|list| list.get(0));
        let given = ["example", "default", "const"].into_iter().find_map(|key| schemas.get(key));
        // A value says more than that there may be none.
        let choices = || schemas.get("enum").and_then(Value::as_array);
        let choice = || choices().and_then(|all| all.iter().find(|one| !one.is_null()));
        let given = given.or_else(|| first("examples")).or_else(choice).or_else(|| first("enum"));
        let is_one_kind = schemas.0.len() < 2 || !matches!(given, Some(Value::Object(_)));
        if let Some(value) = given.filter(|_| is_one_kind) {
            return value.clone();
        }
        match schemas.kind() {
            "integer" => self.number(schemas, true),
            "number" => self.number(schemas, false),
            "boolean" => json!(true),
            "null" => Value::Null,
            "array" => Value::Array(self.list(schemas)),
            "object" => {
                let mut object = self.object(schemas);
                // Examples of the parts, as far as they have no such value.
                for example in schemas.0.iter().filter_map(|schema| schema.get("example")) {
                    if let Value::Object(example) = example {
                        object.extend(example.clone());
                    }
                }
                object.extend(discriminator);
                Value::Object(object)
            }
            _ => Value::String(self.text(schemas)),
        }
    }

    fn number(&mut self, schemas: &ApiSchemas<'a>, is_whole: bool) -> Value {
        // `exclusiveMinimum` is a number since 3.1, and before that it says what `minimum` is.
        let number = |key: &str| schemas.get(key).filter(|bound| bound.is_number());
        let bound = |key: &str, exclusive: &str| {
            let is_exclusive = schemas.get(exclusive) == Some(&Value::Bool(true));
            let own = number(key).map(|bound| (bound, is_exclusive));
            number(exclusive).map(|bound| (bound, true)).or(own)
        };
        let (least, most) =
            (bound("minimum", "exclusiveMinimum"), bound("maximum", "exclusiveMaximum"));
        let step = number("multipleOf").filter(|step| step.as_f64() > Some(0.0));
        if let Some(whole) = whole_number((least, most), step, is_whole) {
            return whole;
        }
        let near =
            |bound: Option<(&Value, bool)>| bound.and_then(|(b, open)| Some((b.as_f64()?, open)));
        let (least, most, step) = (near(least), near(most), step.and_then(Value::as_f64));
        let is_fine = |value: f64| {
            let above = least.is_none_or(|(b, open)| value > b || (!open && value == b));
            let below = most.is_none_or(|(b, open)| value < b || (!open && value == b));
            let multiple =
                step.is_none_or(|step| ((value / step) - (value / step).round()).abs() < 1e-9);
            above && below && multiple && (!is_whole || value.fract() == 0.0)
        };
        let (low, high) = (least.map(|(bound, _)| bound), most.map(|(bound, _)| bound));
        let unit = step.unwrap_or(1.0);
        let mut tries = vec![1.0];
        if let Some(low) = low {
            let next = (low / unit).floor() * unit;
            tries.extend([low, (low / unit).ceil() * unit, next + unit, low + 0.5]);
        }
        if let Some(high) = high {
            let next = (high / unit).ceil() * unit;
            tries.extend([high, (high / unit).floor() * unit, next - unit]);
        }
        tries.extend(low.zip(high).map(|(low, high)| (low + high) / 2.0));
        // The least multiple.
        tries.push(unit);
        let found = tries.into_iter().find(|value| is_fine(*value));
        let value = found.unwrap_or_else(|| {
            self.all.leave_out("a number whose bounds no value meets: 1 here");
            1.0
        });
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return json!(value as i64);
        }
        Number::from_f64(value).map_or(json!(1), Value::Number)
    }

    fn list(&mut self, schemas: &ApiSchemas<'a>) -> Vec<Value> {
        let mut list = Vec::new();
        for item in schemas.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
            list.push(self.made(item));
        }
        let Some(items) = schemas.get("items") else {
            return list;
        };
        // What has itself in it ends where it may.
        if self.is_around(items) && schemas.count("minItems").unwrap_or(0) == 0 {
            return list;
        }
        let most = schemas.count("maxItems").unwrap_or(LENGTH_MAX);
        let wanted = schemas.count("minItems").unwrap_or(1).max(1).min(most).min(LENGTH_MAX);
        let is_unique = schemas.get("uniqueItems") == Some(&Value::Bool(true));
        let choices = self.description.resolved(items).get("enum").and_then(Value::as_array);
        while (list.len() as u64) < wanted && self.left > 0 {
            let value = match choices.and_then(|choices| choices.get(list.len())) {
                Some(choice) if is_unique => choice.clone(),
                _ => self.made(items),
            };
            // A part that would have itself in it is left out.
            if value.is_null() {
                break;
            }
            let value = if is_unique { another(value, list.len()) } else { value };
            list.push(value);
        }
        list
    }

    fn object(&mut self, schemas: &ApiSchemas<'a>) -> Map<String, Value> {
        let mut object = Map::new();
        let lists = schemas.0.iter().filter_map(|schema| schema.get("required")?.as_array());
        let required: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
        for schema in &schemas.0 {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let referred = self.description.resolved(property);
                let is_read_only =
                    [property, referred].map(|of| of.get("readOnly")).contains(&Some(&json!(true)));
                if is_read_only || object.contains_key(name) {
                    continue;
                }
                // What has itself in it ends where it may.
                if self.is_around(property) && !required.contains(&name.as_str()) {
                    continue;
                }
                let value = self.made(property);
                object.insert(name.clone(), value);
            }
        }
        let more = schemas.get("additionalProperties").filter(|more| more.is_object());
        for name in required.into_iter().filter(|name| schemas.property(name).is_none()) {
            let value = more.map_or(json!("text"), |more| self.made(more));
            object.insert(name.to_owned(), value);
        }
        let least = schemas.count("minProperties").unwrap_or(u64::from(more.is_some())).min(100);
        while let Some(more) = more.filter(|_| (object.len() as u64) < least && self.left > 0) {
            let value = self.made(more);
            object.insert(format!("key{}", object.len() + 1), value);
        }
        object
    }

    fn text(&mut self, schemas: &ApiSchemas<'a>) -> String {
        let least = schemas.count("minLength").unwrap_or(0).min(LENGTH_MAX) as usize;
        let most = schemas.count("maxLength").unwrap_or(LENGTH_MAX) as usize;
        let format = schemas.get("format").and_then(Value::as_str).unwrap_or_default();
        if let Some(pattern) = schemas.get("pattern").and_then(Value::as_str) {
            match text_of(pattern, least) {
                Some(text) if text.chars().count() <= most => return text,
                _ => {
                    let what = format!("pattern {pattern}: no text for it was found: 'text' here");
                    self.all.leave_out(what);
                }
            }
        }
        let text = of_format(format);
        let length = text.chars().count();
        let is_fit = (least..=most).contains(&length);
        if !is_fit && text != "text" {
            let what = format!("the length of a text of the format {format}: '{text}' here");
            self.all.leave_out(what);
        }
        if is_fit || text != "text" {
            return text.to_owned();
        }
        text.chars().cycle().take(length.clamp(least, most.max(least))).collect()
    }
}

/// A lower or upper bound, and whether it is no value itself.
type Bound<'a> = Option<(&'a Value, bool)>;

/// A whole number within bounds, exactly; `None` where there is none. Bounds of numbers that need not
/// be whole have to be whole themselves.
fn whole_number(
    (least, most): (Bound, Bound),
    step: Option<&Value>,
    is_whole: bool,
) -> Option<Value> {
    let within = |value: f64| (value.abs() < 1e30).then_some(value as i128);
    let exact = |value: &Value| match (value.as_i64(), value.as_u64(), value.as_f64()) {
        (Some(value), ..) => Some(value.into()),
        (_, Some(value), _) => Some(value.into()),
        (.., value) => value.filter(|value| value.fract() == 0.0).and_then(within),
    };
    let limit = |bound: Bound, inwards: i128, round: fn(f64) -> f64| match bound {
        None => Some(None),
        Some((bound, is_open)) => match exact(bound) {
            Some(bound) => Some(Some(bound + if is_open { inwards } else { 0 })),
            None if is_whole => within(round(bound.as_f64()?)).map(Some),
            None => None,
        },
    };
    let (low, high) = (limit(least, 1, f64::ceil)?, limit(most, -1, f64::floor)?);
    let step = step.map_or(Some(1), exact)?;
    let is_fine = |value: i128| {
        let is_within = low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high);
        is_within && value % step == 0
    };
    let next = low.map(|low| -(-low).div_euclid(step) * step);
    let last = high.map(|high| high.div_euclid(step) * step);
    let tries = [Some(1), next, last, Some(step)];
    let value = tries.into_iter().flatten().find(|value| is_fine(*value))?;
    let whole = i64::try_from(value).map(Number::from).or(u64::try_from(value).map(Number::from));
    Some(Value::Number(whole.ok().or_else(|| Number::from_f64(value as f64))?))
}

/// Another value of the same kind, for a list without two that are the same.
fn another(value: Value, number: usize) -> Value {
    match value {
        value if number == 0 => value,
        Value::Number(from) => match from.as_i64() {
            Some(from) => json!(from.saturating_add(number as i64)),
            None => json!(from.as_f64().unwrap_or(0.0) + number as f64),
        },
        Value::String(text) if text.starts_with("text") => json!(format!("text{number}")),
        other => other,
    }
}

/// A text of a format.
fn of_format(format: &str) -> &'static str {
    match format {
        "date" => "2026-01-01",
        "date-time" | "datetime" => "2026-01-01T00:00:00Z",
        "time" => "00:00:00Z",
        "duration" => "PT1S",
        "uuid" | "guid" => "00000000-0000-4000-8000-000000000001",
        "email" | "idn-email" => "user@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" | "ip" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" | "iri" => "https://example.com/",
        "uri-reference" | "iri-reference" | "json-pointer" => "/text",
        "byte" | "base64" => "dGV4dA==",
        "int32" | "int64" | "number" => "1",
        _ => "text",
    }
}

/// The longest text, and the most parts that are looked at.
const PATTERN_LENGTH_MAX: usize = 1_000;
const PARTS_MAX: usize = 10_000;

/// A text of at least `least` characters that a pattern matches; `None` if none was found.
pub(super) fn text_of(pattern: &str, least: usize) -> Option<String> {
    let matches = Pattern::parse(pattern).ok()?;
    let parsed = regex_syntax::parse(pattern).ok()?;
    // More of what may be repeated makes it longer.
    for more in [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256] {
        let mut maker = TextMaker { text: String::new(), parts: PARTS_MAX, more };
        maker.add(&parsed)?;
        if maker.text.chars().count() >= least && matches.is_in(&maker.text) {
            return Some(maker.text);
        }
    }
    None
}

struct TextMaker {
    text: String,
    /// How many parts may still be looked at.
    parts: usize,
    /// How often a repetition without an end is done beyond its least.
    more: u32,
}

impl TextMaker {
    fn add(&mut self, part: &Hir) -> Option<()> {
        self.parts = self.parts.checked_sub(1)?;
        if self.text.len() > PATTERN_LENGTH_MAX {
            return None;
        }
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(class) => self.text.push(letter(class)?),
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part)?;
                }
            }
            HirKind::Alternation(parts) => self.add(parts.first()?)?,
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap_or(u32::MAX);
                for _ in 0..repetition.min.saturating_add(self.more).min(most) {
                    self.add(&repetition.sub)?;
                }
            }
        }
        Some(())
    }
}

/// A letter or a digit of a class, or its first character.
fn letter(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else {
        return None;
    };
    let has =
        |c: char| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c));
    let first = class.ranges().first().map(|range| range.start());
    ('a'..='z').chain('1'..='9').chain('A'..='Z').chain(['0', '-']).find(|c| has(*c)).or(first)
}

#[cfg(test)]
mod tests {
    use super::text_of;
    use serde_json::Value;

    #[test]
    fn whole_numbers_are_exact() {
        for (least, most, step, is_whole, want) in [
            (None, None, None, true, Some("1")),
            (Some(("9007199254740992", true)), None, None, true, Some("9007199254740993")),
            (Some(("9007199254740993", false)), None, None, false, Some("9007199254740993")),
            (Some(("18446744073709551615", false)), None, None, true, Some("18446744073709551615")),
            (None, Some(("-9223372036854775808", false)), None, true, Some("-9223372036854775808")),
            (
                Some(("1000000000000000", false)),
                None,
                Some("1000000007"),
                true,
                Some("1000000007000000"),
            ),
            (Some(("1e3", false)), None, None, true, Some("1000")),
            (Some(("1.5", false)), None, None, true, Some("2")),
            (Some(("1.5", false)), None, None, false, None),
            (Some(("-7", false)), Some(("0", true)), Some("5"), true, Some("-5")),
            (Some(("2", true)), Some(("3", true)), None, true, None),
            (None, None, Some("0.5"), true, None),
        ] {
            let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let bound =
                |bound: Option<(&str, bool)>| bound.map(|(text, open)| (number(text), open));
            let (low, high, by) = (bound(least), bound(most), step.map(number));
            let both = (
                low.as_ref().map(|(value, open)| (value, *open)),
                high.as_ref().map(|(value, open)| (value, *open)),
            );
            let made = super::whole_number(both, by.as_ref(), is_whole);
            assert_eq!(made.map(|made| made.to_string()).as_deref(), want, "{least:?} {most:?}");
        }
    }

    #[test]
    fn texts_match_their_patterns() {
        for (pattern, least, text) in [
            (r"^[A-Z]{3}-\d{4}$", 0, Some("AAA-1111")),
            (r"^\w+$", 5, Some("aaaaa")),
            (r"^(red|green)$", 0, Some("red")),
            (r"^$", 3, None),
            (r"^(?=a)b", 0, None),
            (r"(a{1000}){1000}", 0, None),
            (r"^\+?[1-9]\d{1,14}$", 4, Some("+111")),
        ] {
            assert_eq!(text_of(pattern, least).as_deref(), text, "{pattern}");
        }
    }
}
