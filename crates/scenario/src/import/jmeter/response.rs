//! Variables that are set from responses, and what responses have to be.

use super::{JmeterElement, JmeterReader, variable};
use crate::import::ImportedText;
use crate::import::builder::{StepRequest, present};
use crate::import::grammar::{pointer_part, status_ranges};
use crate::import::yaml::{YamlMap, YamlValue};
use knee_load::session::{CssSelector, Pattern, parse_pointer};
use knee_load::time::Nanos;

/// What sets variables from responses.
pub(super) const EXTRACTORS: [&str; 4] =
    ["RegexExtractor", "JSONPostProcessor", "BoundaryExtractor", "HtmlExtractor"];
/// What is asked of responses.
pub(super) const ASSERTIONS: [&str; 3] =
    ["ResponseAssertion", "DurationAssertion", "JSONPathAssertion"];

/// The most variables of a session.
const VARIABLES_MAX: usize = 900;
/// The statuses that are success without any assertion.
const SUCCESS: std::ops::Range<u16> = 200..400;

/// Bits of the kind of a Response Assertion.
const WHOLE: u32 = 1;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const ANY: u32 = 32;

fn quoted(text: impl Into<String>) -> YamlValue {
    YamlValue::Quoted(text.into())
}

fn line<const N: usize>(parts: [(&str, YamlValue); N]) -> YamlMap {
    present(parts.map(|(key, value)| (key, Some(value))))
}

impl<'a> JmeterReader<'a> {
    /// The variables that the response of a request sets, those of the inner extractors first.
    pub(super) fn extractors(&mut self) -> YamlMap {
        let mut all = YamlMap::new();
        for element in self.settings(&EXTRACTORS) {
            let is_json = element.kind() == "JSONPostProcessor";
            let keys = if is_json {
                ["referenceNames", "match_numbers", "defaultValues"]
            } else {
                ["refname", "match_number", "default"]
            };
            let texts = |key: &str| -> Vec<&'a str> {
                let text = element.text(&format!("{}.{key}", element.kind()));
                if is_json { text.split(';').map(str::trim).collect() } else { vec![text] }
            };
            let [names, numbers, defaults] = keys.map(texts);
            for (at, name) in names.iter().map(|name| name.trim()).enumerate() {
                let own = |list: &[&'a str]| list.get(at).copied().unwrap_or_default();
                match self.source(element, at, own(&numbers)) {
                    Err(why) => self.leave_out(element, &format!("'{name}' is not set: {why}")),
                    Ok(mut source) => {
                        // Where nothing is found JMeter goes on.
                        let default = self.constant(own(&defaults)).unwrap_or_default();
                        source.extend(line([("default", quoted(default))]));
                        let name = variable(name);
                        let has_room = self.known.len() + all.len() < VARIABLES_MAX;
                        if has_room && !all.iter().any(|(other, _)| *other == name) {
                            all.push((name, YamlValue::Line(source)));
                        }
                    }
                }
            }
        }
        all
    }

    /// Where an extractor finds the value of its variable of this number.
    fn source(
        &mut self,
        element: JmeterElement<'a>,
        at: usize,
        number: &str,
    ) -> Result<YamlMap, String> {
        let kind = element.kind();
        let mut text = |name: &str| {
            let text = self.filled(element.text(&format!("{kind}.{name}")), element);
            text.literal().map(str::to_owned).ok_or("it is made of variables")
        };
        let part = text("useHeaders")?;
        if element.text("Sample.scope") == "variable" || !matches!(part.trim(), "" | "false") {
            return Err("it does not read the body".to_owned());
        }
        let source = match kind {
            "RegexExtractor" => {
                let (pattern, template) = (text("regex")?, text("template")?);
                let group = template.trim_matches('$');
                let group = if group.is_empty() { Ok(0) } else { group.parse::<u32>() };
                let group = group.map_err(|_| format!("its template is '{template}'"))?;
                let of = Pattern::parse(&pattern).map_err(|wrong| wrong.0)?;
                if group as usize > of.groups() {
                    return Err("its expression has no such group".to_owned());
                }
                line([("regex", quoted(pattern)), ("group", YamlValue::plain(group))])
            }
            "BoundaryExtractor" => {
                let (left, right) = (text("lboundary")?, text("rboundary")?);
                if left.is_empty() || right.is_empty() {
                    return Err("it has one boundary".to_owned());
                }
                line([("between", YamlValue::Row(vec![quoted(left), quoted(right)]))])
            }
            "HtmlExtractor" => {
                let (selector, attribute) = (text("expr")?, text("attribute")?);
                CssSelector::parse(&selector).map_err(|wrong| wrong.0)?;
                let attribute = Some(attribute.trim()).filter(|attribute| !attribute.is_empty());
                let attribute = attribute.map(YamlValue::word);
                present([("css", Some(quoted(selector))), ("attribute", attribute)])
            }
            _ => {
                let paths = text("jsonPathExprs")?;
                let path = paths.split(';').nth(at).unwrap_or_default().trim();
                let pointer = pointer(path).ok_or_else(|| not_plain(path))?;
                let source = line([("json", quoted(pointer))]);
                if !path.contains("[*]") {
                    return Ok(source);
                }
                source
            }
        };
        match self.constant(number).unwrap_or_default().as_str() {
            "1" => {}
            number if number.starts_with('-') => return Err("it takes all matches".to_owned()),
            "" | "0" => self.leave_out(element, "it takes a match by chance: here the first"),
            number => self.leave_out(element, &format!("it takes match {number}: here the first")),
        }
        Ok(source)
    }

    /// Takes over what the assertions in whose scope a request is ask for.
    pub(super) fn assertions(&mut self, draft: &mut StepRequest) {
        // The statuses that are success, where something asks for any.
        let mut statuses: Vec<u16> = SUCCESS.collect();
        let (mut time, mut body) = (None::<Nanos>, Vec::new());
        for element in self.settings(&ASSERTIONS) {
            let asked = match element.kind() {
                "DurationAssertion" => {
                    let ms = self.number::<u64>(element.text("DurationAssertion.duration"));
                    let own = ms.filter(|ms| (1..=86_400_000).contains(ms)).map(Nanos::from_millis);
                    time = [time, own].into_iter().flatten().min();
                    own.map(drop).ok_or_else(|| "its time is not known".to_owned())
                }
                "JSONPathAssertion" => self.json_assertion(element).map(|asked| body.push(asked)),
                _ => self.response_assertion(element, &mut statuses, &mut body),
            };
            if let Err(why) = asked {
                self.leave_out(element, &format!("it is not asked: {why}"));
            }
        }
        if !statuses.iter().copied().eq(SUCCESS) {
            let range =
                |(low, high)| if low == high { format!("{low}") } else { format!("{low}-{high}") };
            let ranges = status_ranges(statuses.into_iter()).into_iter();
            draft.expect_status(ranges.map(range).collect());
        }
        let time = time.map(|time| YamlValue::Plain(format!("<{}", time.exactly())));
        let body = (!body.is_empty()).then_some(YamlValue::List(body));
        draft.expect.extend(present([("time", time), ("body", body)]));
    }

    fn response_assertion(
        &mut self,
        element: JmeterElement<'a>,
        statuses: &mut Vec<u16>,
        body: &mut Vec<YamlValue>,
    ) -> Result<(), String> {
        let kind = self.number::<u32>(element.text("Assertion.test_type")).unwrap_or(2);
        // The name in the file has lost a letter; that is no mistake here.
        let texts = element.texts("Asserion.test_strings").into_iter();
        let mut texts: Vec<ImportedText> = texts.map(|text| self.filled(text, element)).collect();
        texts.retain(|text| !text.is_empty());
        if element.flag("Assertion.assume_success") {
            *statuses = (100..600).collect();
        }
        let field = element.text("Assertion.test_field").trim();
        match field.strip_prefix("Assertion.").unwrap_or(field) {
            _ if texts.is_empty() => Ok(()),
            "response_code" => narrow(statuses, kind, &texts),
            "" | "response_data" | "response_data_as_document" => {
                if kind & ANY != 0 && texts.len() > 1 {
                    return Err("one of several texts is enough".to_owned());
                }
                let conditions: Result<Vec<_>, _> =
                    texts.iter().map(|text| condition_of(kind, text)).collect();
                body.extend(conditions?);
                Ok(())
            }
            other => Err(format!("it is about '{other}'")),
        }
    }

    fn json_assertion(&mut self, element: JmeterElement<'a>) -> Result<YamlValue, String> {
        let path = element.text("JSON_PATH").trim();
        let pointer = pointer(path).filter(|_| !path.contains("[*]"));
        let pointer = pointer.ok_or_else(|| not_plain(path))?;
        let value = self.filled(element.text("EXPECTED_VALUE"), element);
        let is_pattern = value.literal().is_none_or(|text| !is_plain(text))
            && element.given("ISREGEX") != Some("false");
        let asked = if !element.flag("JSONVALIDATION") {
            ("exists", YamlValue::plain(!element.flag("INVERT")))
        } else if is_pattern || element.flag("INVERT") || element.flag("EXPECT_NULL") {
            return Err("it compares by a pattern, with null or the other way round".to_owned());
        } else {
            ("equals", YamlValue::Template(value))
        };
        Ok(YamlValue::Line(line([("json", quoted(pointer)), asked])))
    }
}

fn not_plain(path: &str) -> String {
    format!("its path '{path}' is not one of names and numbers")
}

/// The pattern for a text that a Response Assertion asks for.
fn pattern_of(kind: u32, text: &str) -> String {
    match kind & !(NOT | ANY) {
        EQUALS => format!("^{}$", regex_syntax::escape(text)),
        SUBSTRING => regex_syntax::escape(text),
        WHOLE => format!("^(?:{text})$"),
        _ => text.to_owned(),
    }
}

/// Narrows the statuses to those that an assertion permits.
fn narrow(statuses: &mut Vec<u16>, kind: u32, texts: &[ImportedText]) -> Result<(), String> {
    let pattern = |text: &ImportedText| Pattern::parse(&pattern_of(kind, text.literal()?)).ok();
    let patterns: Option<Vec<Pattern>> = texts.iter().map(pattern).collect();
    let patterns = patterns.ok_or("its statuses are not known")?;
    let is_fine = |status: &u16| {
        let status = status.to_string();
        let mut all = patterns.iter().map(|of| of.is_in(&status) != (kind & NOT != 0));
        if kind & ANY != 0 { all.any(|is| is) } else { all.all(|is| is) }
    };
    let left: Vec<u16> = statuses.iter().copied().filter(is_fine).collect();
    if left.is_empty() {
        return Err("no status is success to it and to JMeter".to_owned());
    }
    *statuses = left;
    Ok(())
}

/// What a Response Assertion asks of a body.
fn condition_of(kind: u32, text: &ImportedText) -> Result<YamlValue, String> {
    let own = match (kind & !(NOT | ANY), text.literal()) {
        (EQUALS, _) => line([("equals", YamlValue::Template(text.clone()))]),
        (SUBSTRING, _) => line([("contains", YamlValue::Template(text.clone()))]),
        (_, None) => return Err("its expression has a variable".to_owned()),
        (other, Some(plain)) if other != WHOLE && is_plain(plain) => {
            line([("contains", YamlValue::Template(plain.into()))])
        }
        (_, Some(pattern)) => {
            let pattern = pattern_of(kind, pattern);
            crate::condition::pattern(&pattern).map_err(|wrong| wrong.0)?;
            line([("matches", quoted(pattern))])
        }
    };
    let is_negated = kind & NOT != 0;
    Ok(YamlValue::Line(if is_negated { line([("not", YamlValue::Line(own))]) } else { own }))
}

/// Whether a regular expression has no sign that means something.
fn is_plain(pattern: &str) -> bool {
    !pattern.contains(|c| "\\.+*?()|[]{}^$".contains(c))
}

/// The JSON Pointer of a path of names and numbers; `[*]` is the first element.
fn pointer(path: &str) -> Option<String> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut pointer = String::new();
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            let unquoted = inside.trim().trim_matches(['\'', '"']);
            let is_number = unquoted.bytes().all(|b| b.is_ascii_digit()) && !unquoted.is_empty();
            let is_known = is_number || unquoted.len() + 2 == inside.trim().len();
            let name = if inside == "*" { Some("0") } else { Some(unquoted).filter(|_| is_known) };
            (name?, after)
        } else {
            let after = rest.strip_prefix('.')?;
            let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            let is_plain = !name.is_empty() && !name.contains(['*', '(', '?', '@', ' ']);
            (Some(name).filter(|_| is_plain)?, after)
        };
        pointer.push('/');
        pointer.push_str(&pointer_part(name));
        rest = after;
    }
    parse_pointer(&pointer).is_ok().then_some(pointer)
}
