//! Expectations of a response, and the variables extracted from it.

use super::fault::{Read, bail, fault};
use super::fields::{Fields, named, one_or_more, parsed, text};
use super::names::{TemplateScope, is_name};
use super::tree::{Entry, Node, Value};
use super::{schema, template};
use knee_load::quantity::parse::{error, quoted};
use knee_load::quantity::parse_duration;
use knee_load::session::TemplatePiece;
use knee_load::session::{Expectation, Match, Source, Template, parse_pointer};
use knee_load::spec::{ParseError, parse_header};
use knee_load::time::Nanos;

/// Reads `expect`.
pub(super) fn expectations(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Vec<Expectation>> {
    let fields = Fields::read(node, schema::EXPECT)?;
    let mut expect = Vec::new();
    if let Some(node) = fields.get("status") {
        let ranges = one_or_more(node).iter().map(|node| parsed(node, STATUS, status));
        let ranges = ranges.collect::<Read<Vec<_>>>()?;
        if ranges.is_empty() {
            bail!(node.at, "an empty list where {STATUS} belongs");
        }
        expect.push(Expectation::Status(ranges));
    }
    if let Some(node) = fields.get("time") {
        expect.push(Expectation::Time(parsed(node, TIME, within)?));
    }
    if let Some(node) = fields.get("header") {
        for entry in named(node, "header: {Name: text}")? {
            let source = Source::Header(header_name(entry)?);
            let is = match &entry.value.value {
                Value::Map(_) => {
                    let fields = Fields::read(&entry.value, schema::MATCH)?;
                    fields.one()?;
                    comparison(&fields, scope)?
                }
                _ => Match::Equals(value(&entry.value, scope)?),
            };
            expect.push(Expectation::Value { source, is });
        }
    }
    if let Some(node) = fields.get("body") {
        for node in one_or_more(node) {
            expect.push(body(node, scope)?);
        }
    }
    Ok(expect)
}

const STATUS: &str = "a status such as 200, 2xx or 200-204";
const TIME: &str = "a response time such as <300ms";

/// `200`, `2xx` or `200-204`.
pub(super) fn status(text: &str) -> Result<(u16, u16), ParseError> {
    let number = |text: &str| {
        let is_three = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_three);
        number.filter(|number| (100..=599).contains(number))
    };
    let range = match text.split_once('-') {
        Some((low, high)) => number(low.trim()).zip(number(high.trim())),
        None => match text.strip_suffix("xx").or(text.strip_suffix("XX")) {
            Some(class) => number(&format!("{class}00")).map(|low| (low, low + 99)),
            None => number(text).map(|status| (status, status)),
        },
    };
    let wrong = || error(format!("{} is no status: expected {STATUS}", quoted(text)));
    range.filter(|(low, high)| low <= high).ok_or_else(wrong)
}

/// `<300ms`, or without the `<`.
fn within(text: &str) -> Result<Nanos, ParseError> {
    let bare = text.strip_prefix('<').unwrap_or(text);
    if bare.starts_with(['=', '>', '<']) || text.starts_with('>') {
        let shown = quoted(text);
        return Err(error(format!("{shown} is no limit of a response time: expected {TIME}")));
    }
    match parse_duration(bare)? {
        Nanos::ZERO => {
            Err(error("a response time of 0 cannot be: expected one such as <300ms".to_owned()))
        }
        time => Ok(time),
    }
}

fn body(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Expectation> {
    if !matches!(node.value, Value::Map(_)) {
        let is = Match::Contains(value(node, scope)?);
        return Ok(Expectation::Value { source: Source::Body, is });
    }
    let fields = Fields::read(node, schema::BODY)?;
    let source = match fields.get("json") {
        Some(node) => Source::Json(parsed(node, POINTER, parse_pointer)?),
        None => Source::Body,
    };
    let is = match (&source, fields.get("equals"), fields.get("contains")) {
        (_, Some(_), Some(other)) => {
            bail!(other.at, "'equals' and 'contains' in one: write them as two in a list");
        }
        (Source::Json(_), None, None) => Match::Exists,
        (_, None, None) => {
            bail!(fields.at, "what the body has to be needs one of 'json', 'equals' or 'contains'");
        }
        _ => comparison(&fields, scope)?,
    };
    Ok(Expectation::Value { source, is })
}

fn comparison(fields: &Fields<'_>, scope: &mut TemplateScope<'_>) -> Read<Match> {
    match fields.get("contains") {
        Some(node) => value(node, scope).map(Match::Contains),
        None => value(fields.need("equals")?, scope).map(Match::Equals),
    }
}

/// A text that may be a template. Nothing is what JSON calls null.
fn value(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Template> {
    if let Value::Scalar(scalar) = &node.value
        && node.is_null()
        && !scalar.text.is_empty()
    {
        return Ok(Template(vec![TemplatePiece::Text("null".to_owned())]));
    }
    template::read_text(node, "a text, a number or a truth value", scope)
}

/// A variable, the source of its value, and its default.
pub(super) struct Extract<'a> {
    pub(super) entry: &'a Entry,
    pub(super) source: Source,
    pub(super) otherwise: Option<String>,
}

/// Reads `extract`.
pub(super) fn extractions(node: &Node) -> Read<Vec<Extract<'_>>> {
    named(node, "extract: {name: {json: /place}}")?.iter().map(extraction).collect()
}

fn extraction(entry: &Entry) -> Read<Extract<'_>> {
    if !is_name(&entry.key) {
        let name = quoted(&entry.key);
        bail!(entry.at, "{name} cannot name a variable: expected letters, digits, '_' and '-'");
    }
    let fields = Fields::read(&entry.value, schema::EXTRACT)?;
    let one = fields.one()?;
    let node = &one.value;
    let source = match &*one.key {
        "json" => Source::Json(parsed(node, POINTER, parse_pointer)?),
        "header" => {
            let name = &text(node, "the name of a header")?.text;
            check_name(name).or_else(|wrong| fault(node.at, wrong.0))?;
            Source::Header(name.to_lowercase())
        }
        "cookie" => {
            let name = &text(node, "the name of a cookie")?.text;
            check_name(name).or_else(|wrong| fault(node.at, wrong.0))?;
            Source::Cookie(name.to_string())
        }
        "between" => between(node)?,
        key => {
            let is_true = node.scalar().is_some_and(|s| &*s.text == "true");
            if !is_true {
                bail!(node.at, "'{key}' is there or not: write '{key}: true'");
            }
            match key {
                "status" => Source::Status,
                _ => Source::Body,
            }
        }
    };
    let default = |node| text(node, "a text ('' for an empty one)");
    let otherwise = fields.read_key("default", default)?.map(|scalar| scalar.text.to_string());
    Ok(Extract { entry, source, otherwise })
}

fn between(node: &Node) -> Read<Source> {
    let wrong = || bail!(node.at, "'between' takes two texts: write between: ['id=\"', '\"']");
    let Value::List(nodes) = &node.value else {
        return wrong();
    };
    let [before, after] = nodes.as_slice() else {
        return wrong();
    };
    let of = |node| {
        let text = text(node, "a text of 'between'")?.text.to_string();
        if text.is_empty() {
            bail!(node.at, "an empty text of 'between' is everywhere: write what stands there")
        } else {
            Ok(text)
        }
    };
    Ok(Source::Between { before: of(before)?, after: of(after)? })
}

const POINTER: &str = "a JSON Pointer such as /items/0/id";

fn header_name(entry: &Entry) -> Read<String> {
    check_name(&entry.key).or_else(|wrong| fault(entry.at, wrong.0))?;
    Ok(entry.key.to_lowercase())
}

/// Whether it names a header, or a cookie, which has the same characters (RFC 6265 §4.1.1).
fn check_name(name: &str) -> Result<(), ParseError> {
    if name.contains(':') {
        Err(error(format!("{} is no name: leave ':' out", quoted(name))))
    } else {
        parse_header(&format!("{name}:")).map(|_| ())
    }
}
