//! Expectations of a response, and the variables extracted from it.

use super::draft::variable_of;
use super::fault::{Position, Read, bail, fault};
use super::fields::{Fields, list, named, one_or_more, parsed, text, whole, word};
use super::names::{Names, TemplateScope, is_name};
use super::tree::{Entry, Node, Value};
use super::{condition, schema, template};
use knee_load::quantity::{error, parse_duration, quoted};
use knee_load::session::{
    CssSelector, Expectation, Extraction, Match, Pattern, Relation, Source, Template,
    TemplatePiece, parse_pointer,
};
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
            let name = name_of(&entry.key).or_else(|wrong| fault(entry.at, wrong.0))?;
            let source = Source::Header(name.to_lowercase());
            let all = match &entry.value.value {
                Value::Map(_) => {
                    let fields = Fields::read(&entry.value, schema::MATCH)?;
                    needed(&fields, matches(&fields, scope)?)?
                }
                _ => vec![Match::Equals(value(&entry.value, scope)?)],
            };
            let of = |is| Expectation::Value { source: source.clone(), is };
            expect.extend(all.into_iter().map(of));
        }
    }
    if let Some(node) = fields.get("body") {
        for node in one_or_more(node) {
            body(node, scope, &mut expect)?;
        }
    }
    Ok(expect)
}

const STATUS: &str = "a status such as 200, 2xx or 200-204";
const TIME: &str = "a response time such as <300ms";

/// Parses a status or a range of them: `200`, `2xx` or `200-204`.
///
/// # Errors
/// Anything else.
pub fn status(text: &str) -> Result<(u16, u16), ParseError> {
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

fn body(node: &Node, scope: &mut TemplateScope<'_>, expect: &mut Vec<Expectation>) -> Read<()> {
    if !matches!(node.value, Value::Map(_)) {
        let is = Match::Contains(value(node, scope)?);
        expect.push(Expectation::Value { source: Source::Body, is });
        return Ok(());
    }
    let fields = Fields::read(node, schema::BODY)?;
    let source = fields.read_key("json", pointer)?.map_or(Source::Body, Source::Json);
    let all = match (&source, matches(&fields, scope)?) {
        (Source::Json(_), all) if all.is_empty() => vec![Match::Exists],
        (_, all) => needed(&fields, all)?,
    };
    expect.extend(all.into_iter().map(|is| Expectation::Value { source: source.clone(), is }));
    Ok(())
}

/// What a value has to be by these keys, all of them together.
fn matches(fields: &Fields<'_>, scope: &mut TemplateScope<'_>) -> Read<Vec<Match>> {
    const NUMBERS: [(&str, Relation); 4] = [
        ("above", Relation::Greater),
        ("below", Relation::Less),
        ("at_least", Relation::AtLeast),
        ("at_most", Relation::AtMost),
    ];
    let mut all = Vec::new();
    all.extend(fields.read_key("equals", |node| value(node, scope))?.map(Match::Equals));
    all.extend(fields.read_key("contains", |node| value(node, scope))?.map(Match::Contains));
    all.extend(fields.read_key("matches", pattern)?.map(Match::Matches));
    for (key, relation) in NUMBERS {
        let number = fields.read_key(key, |node| number(node, scope))?;
        all.extend(number.map(|to| Match::Number(relation, to)));
    }
    match fields.read_key("exists", |node| word(node, &TRUTHS))? {
        Some(true) => all.push(Match::Exists),
        Some(false) => all.push(Match::Not(Box::new(Match::Exists))),
        None => {}
    }
    if let Some(node) = fields.get("not") {
        let fields = Fields::read(node, schema::MATCH)?;
        if let Some(again) = fields.get("not") {
            bail!(again.at, "'not' within 'not': leave both out");
        }
        let inner = needed(&fields, matches(&fields, scope)?)?;
        all.extend(inner.into_iter().map(|is| Match::Not(Box::new(is))));
    }
    Ok(all)
}

const TRUTHS: [(&str, bool); 2] = [("true", true), ("false", false)];

/// Refuses a map that says nothing of a value.
fn needed(fields: &Fields<'_>, all: Vec<Match>) -> Read<Vec<Match>> {
    if all.is_empty() {
        bail!(fields.at, "what a value has to be needs a key such as 'equals' or 'contains'");
    }
    Ok(all)
}

fn pattern(node: &Node) -> Read<Pattern> {
    parsed(node, "a regular expression", condition::pattern)
}

/// A number, or a template that gives one.
fn number(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Template> {
    let template = template::read_text(node, "a number", scope)?;
    let settled = template::constant(&template);
    match settled.filter(|text| !text.trim().parse().is_ok_and(f64::is_finite)) {
        Some(text) => bail!(node.at, "{} is no number: expected one such as 10", quoted(&text)),
        None => Ok(template),
    }
}

/// A JSON Pointer.
fn pointer(node: &Node) -> Read<String> {
    let scalar = text(node, POINTER)?;
    if scalar.text.contains("${") {
        bail!(node.at, "a JSON Pointer has no templates: expected {POINTER}");
    }
    parsed(node, POINTER, parse_pointer)
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

/// Refuses what cannot name a variable.
pub(super) fn check_variable(name: &str, at: Position) -> Read<()> {
    if is_name(name) {
        return Ok(());
    }
    let name = quoted(name);
    bail!(at, "{name} cannot name a variable: expected letters, digits, '_' and '-'")
}

/// Reads `extract`. The variables have values from here on.
pub(super) fn extractions(node: &Node, names: &mut Names) -> Read<Vec<Extraction>> {
    let entries = named(node, "extract: {name: {json: /place}}")?;
    entries.iter().map(|entry| extraction(entry, names)).collect()
}

fn extraction(entry: &Entry, names: &mut Names) -> Read<Extraction> {
    check_variable(&entry.key, entry.at)?;
    let fields = Fields::read(&entry.value, schema::EXTRACT)?;
    let one = fields.one()?;
    refuse_other_keys(&fields, &one.key)?;
    let node = &one.value;
    let source = match &*one.key {
        "json" => Source::Json(pointer(node)?),
        "regex" => {
            let pattern = pattern(node)?;
            let groups = pattern.groups();
            let group = fields.read_key("group", |node| whole(node, [0, groups as u64]))?;
            let group = group.unwrap_or(u64::from(groups > 0)) as u16;
            Source::Regex { pattern, group, unescape: unescapes(&fields)? }
        }
        "css" => {
            let selector = parsed(node, "a CSS selector", CssSelector::parse)?;
            let name = |node| text(node, "the name of an attribute");
            let attribute = fields.read_key("attribute", name)?;
            let attribute = attribute.map(|name| name.text.to_ascii_lowercase());
            Source::Css { selector, attribute }
        }
        "header" => Source::Header(parsed(node, "the name of a header", name_of)?.to_lowercase()),
        "cookie" => Source::Cookie(parsed(node, "the name of a cookie", name_of)?),
        "between" => between(node, unescapes(&fields)?)?,
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
    let variable = variable_of(&entry.key, entry.at, names, true)?;
    Ok(Extraction { name: entry.key.to_string(), variable, source, otherwise })
}

/// Keys that belong to some sources only.
const OF_SOURCES: [(&str, &[&str]); 3] =
    [("group", &["regex"]), ("attribute", &["css"]), ("unescape", &["regex", "between"])];

fn refuse_other_keys(fields: &Fields<'_>, source: &str) -> Read<()> {
    for (key, sources) in OF_SOURCES {
        if let Some(entry) = fields.entry(key).filter(|_| !sources.contains(&source)) {
            bail!(entry.at, "'{key}' belongs to {}: leave it out", list(sources));
        }
    }
    Ok(())
}

fn unescapes(fields: &Fields<'_>) -> Read<bool> {
    Ok(fields.read_key("unescape", |node| word(node, &TRUTHS))?.unwrap_or(false))
}

fn between(node: &Node, unescape: bool) -> Read<Source> {
    let [before, after] = one_or_more(node) else {
        bail!(node.at, "'between' takes two texts: write between: ['id=\"', '\"']");
    };
    let of = |node| {
        let text = text(node, "a text of 'between'")?.text.to_string();
        if text.is_empty() {
            bail!(node.at, "an empty text of 'between' is everywhere: write what stands there")
        } else {
            Ok(text)
        }
    };
    Ok(Source::Between { before: of(before)?, after: of(after)?, unescape })
}

const POINTER: &str = "a JSON Pointer such as /items/0/id";

/// The name of a header, or of a cookie, which has the same characters (RFC 6265 §4.1.1).
fn name_of(name: &str) -> Result<String, ParseError> {
    if name.contains(':') {
        Err(error(format!("{} is no name: leave ':' out", quoted(name))))
    } else {
        parse_header(&format!("{name}:")).map(|(name, _)| name)
    }
}
