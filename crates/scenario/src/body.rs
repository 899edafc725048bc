//! The body of a request.

use super::ScenarioInputs;
use super::fault::{Read, bail, fault};
use super::fields::{Fields, list, named, one_or_more, text};
use super::holed::TextWithHoles;
use super::names::TemplateScope;
use super::tree::{Node, Scalar, Value};
use super::{schema, template};
use knee_load::percent;
use knee_load::quantity::quoted;
use knee_load::session::{Escape, Fill, Template, TemplatePiece};
use knee_load::spec::{Body, parse_header};

/// What is sent after the head.
#[derive(Default)]
pub(super) struct RequestBody {
    pub(super) bytes: Body,
    /// The holes before some of its bytes.
    pub(super) holes: Vec<(usize, Fill)>,
    /// The content type that follows from how it is written.
    pub(super) content_type: Option<String>,
}

/// The body that a step has.
pub(super) fn read(fields: &Fields<'_>, scope: &mut TemplateScope<'_>) -> Read<RequestBody> {
    let mut found = BODIES.iter().filter_map(|key| fields.entry(key));
    let first = found.next();
    if let (Some(first), Some(other)) = (first, found.next()) {
        let (first, at, other) = (&first.key, other.at, &other.key);
        bail!(at, "'{other}' and '{first}' in one: a request has one of {}", list(&BODIES));
    }
    let Some(entry) = first else {
        return Ok(RequestBody::default());
    };
    let node = &entry.value;
    let mut holed = TextWithHoles::default();
    let content_type = match &*entry.key {
        "json" => {
            json(node, scope, &mut holed)?;
            Some("application/json".to_owned())
        }
        "form" => {
            form(node, scope, &mut holed)?;
            Some("application/x-www-form-urlencoded".to_owned())
        }
        "multipart" => return multipart(node, scope),
        "body_file" => {
            let name = &text(node, "the name of a file")?.text;
            let bytes = read_file(name, scope.inputs).or_else(|why| fault(node.at, why))?;
            return Ok(RequestBody { bytes: Body::from(bytes), ..RequestBody::default() });
        }
        _ => {
            let expected = "the text of a body (a map or a list goes to 'json')";
            holed.put(&template::read_text(node, expected, scope)?, Escape::None);
            None
        }
    };
    let bytes = Body::from(holed.text.into_bytes());
    Ok(RequestBody { bytes, holes: holed.holes, content_type })
}

const BODIES: [&str; 5] = ["json", "form", "multipart", "body", "body_file"];

/// The bytes of a file below the folder of the scenario, or what is wrong with it.
pub(super) fn read_file(name: &str, inputs: &mut dyn ScenarioInputs) -> Result<Vec<u8>, String> {
    below(name)?;
    inputs.file(name).map_err(|why| format!("{} {why}", quoted(name)))
}

/// Whether a name is of something below the folder of the scenario, links apart.
pub(super) fn below(name: &str) -> Result<(), String> {
    let climbs = name.split('/').any(|part| part == "..");
    if name.is_empty() || name.starts_with('/') || climbs || name.contains('\0') {
        Err(format!(
            "{} is not below the folder of the scenario: write a relative path without '..'",
            quoted(name)
        ))
    } else {
        Ok(())
    }
}

/// A value as JSON. Each level of the file is one of this.
fn json(node: &Node, scope: &mut TemplateScope<'_>, into: &mut TextWithHoles) -> Read<()> {
    match &node.value {
        Value::Scalar(scalar) => json_scalar(node, scalar, scope, into)?,
        Value::List(nodes) => {
            into.push("[");
            for (at, node) in nodes.iter().enumerate() {
                into.push(if at > 0 { "," } else { "" });
                json(node, scope, into)?;
            }
            into.push("]");
        }
        Value::Map(entries) => {
            into.push("{");
            for (at, entry) in entries.iter().enumerate() {
                into.push(if at > 0 { "," } else { "" });
                into.push(&serde_json::to_string(&*entry.key).unwrap_or_default());
                into.push(":");
                json(&entry.value, scope, into)?;
            }
            into.push("}");
        }
    }
    Ok(())
}

fn json_scalar(
    node: &Node,
    scalar: &Scalar,
    scope: &mut TemplateScope<'_>,
    into: &mut TextWithHoles,
) -> Read<()> {
    if node.is_null() {
        into.push("null");
        return Ok(());
    }
    if !scalar.is_quoted {
        let plain = match &*scalar.text {
            "true" | "True" | "TRUE" => Some("true".to_owned()),
            "false" | "False" | "FALSE" => Some("false".to_owned()),
            ".nan" | ".inf" | "+.inf" | "-.inf" => {
                bail!(node.at, "JSON has no such number: quote it to send a text");
            }
            text => number(text),
        };
        if let Some(plain) = plain {
            into.push(&plain);
            return Ok(());
        }
    }
    let template = template::read(node, scalar, scope)?;
    // Without quotes YAML takes a value for what it looks like, and so is one of a template.
    let is_bare = !scalar.is_quoted && scalar.text.starts_with("${");
    match &template.0[..] {
        [TemplatePiece::Call(function)] if function.is_number() => {
            into.put(&template, Escape::JsonValue)
        }
        [_] if is_bare => into.put(&template, Escape::JsonValue),
        _ => {
            into.push("\"");
            into.put(&template, Escape::Json);
            into.push("\"");
        }
    }
    Ok(())
}

/// A number of the YAML core schema as JSON writes it, all its digits kept.
fn number(text: &str) -> Option<String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|d| !d.starts_with('+')) {
            return u64::from_str_radix(digits, radix).ok().map(|n| n.to_string());
        }
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let power = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    let has_power = power.is_none_or(|power| !power.is_empty() && is_digits(power));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    if !(has_digits && is_digits(whole) && is_digits(fraction) && has_power) {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = if !mantissa.contains('.') {
        String::new()
    } else if fraction.is_empty() {
        ".0".to_owned()
    } else {
        format!(".{fraction}")
    };
    let exponent = exponent.map_or(String::new(), |e| format!("e{e}"));
    Some(format!("{sign}{whole}{fraction}{exponent}"))
}

fn form(node: &Node, scope: &mut TemplateScope<'_>, into: &mut TextWithHoles) -> Read<()> {
    let mut is_first = true;
    for entry in named(node, "form: {name: value}")? {
        for value in one_or_more(&entry.value) {
            if !is_first {
                into.push("&");
            }
            is_first = false;
            into.push(&percent::form(&entry.key));
            into.push("=");
            let expected = "a value of a form ('' for an empty one)";
            into.put(&template::read_text(value, expected, scope)?, Escape::Form);
        }
    }
    Ok(())
}

/// A part as the file says it.
struct PartDraft<'a> {
    name: &'a str,
    content: PartContent,
    content_type: Option<String>,
    filename: Option<String>,
}

enum PartContent {
    Text(Template),
    File(Vec<u8>),
}

impl PartDraft<'_> {
    fn read<'a>(name: &'a str, node: &Node, scope: &mut TemplateScope<'_>) -> Read<PartDraft<'a>> {
        let expected = "a value of a part ('' for an empty one)";
        if !matches!(node.value, Value::Map(_)) {
            let content = PartContent::Text(template::read_text(node, expected, scope)?);
            return Ok(PartDraft { name, content, content_type: None, filename: None });
        }
        let fields = Fields::read(node, schema::PART)?;
        let one = fields.one()?;
        let settled = |key, expected| {
            fields.read_key(key, |node| Ok((text(node, expected)?.text.to_string(), node.at)))
        };
        let content_type = settled("type", "a type such as image/png")?;
        let filename = settled("filename", "the name of a file")?;
        for (value, at) in content_type.iter().chain(&filename) {
            let is_fit = parse_header(&format!("a:{value}")).is_ok() && !value.contains("${");
            if value.is_empty() || !is_fit {
                bail!(*at, "{} cannot stand here: expected one line of text", quoted(value));
            }
        }
        let [mut content_type, mut filename] =
            [content_type, filename].map(|found| found.map(|(value, _)| value));
        let content = if &*one.key == "text" {
            PartContent::Text(template::read_text(&one.value, expected, scope)?)
        } else {
            let name = &text(&one.value, "the name of a file")?.text;
            let bytes = read_file(name, scope.inputs).or_else(|why| fault(one.value.at, why))?;
            let base = name.rsplit('/').next().unwrap_or_default();
            filename.get_or_insert_with(|| base.to_owned());
            content_type.get_or_insert_with(|| "application/octet-stream".to_owned());
            PartContent::File(bytes)
        };
        Ok(PartDraft { name, content, content_type, filename })
    }

    /// Whether the part has this text in it.
    fn has(&self, text: &str) -> bool {
        match &self.content {
            PartContent::File(bytes) => memchr::memmem::find(bytes, text.as_bytes()).is_some(),
            PartContent::Text(template) => TemplatePiece::any(&template.0, &|piece| match piece {
                TemplatePiece::Text(own) => own.contains(text),
                _ => false,
            }),
        }
    }
}

/// The body of a form in parts (RFC 7578). Values of templates are not searched for the boundary
/// between them.
fn multipart(node: &Node, scope: &mut TemplateScope<'_>) -> Read<RequestBody> {
    let mut parts = Vec::new();
    for entry in named(node, "multipart: {name: value}")? {
        for value in one_or_more(&entry.value) {
            parts.push(PartDraft::read(&entry.key, value, scope)?);
        }
    }
    if parts.is_empty() {
        bail!(node.at, "'multipart' has no part: write multipart: {{name: value}}");
    }
    let boundaries = (0u32..).map(|number| format!("----knee{number:016}"));
    let mut boundaries = boundaries.filter(|text| !parts.iter().any(|part| part.has(text)));
    let boundary = boundaries.next().unwrap_or_default();
    let (mut bytes, mut holes) = (Vec::new(), Vec::new());
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            form_name(part.name)
        );
        if let Some(filename) = &part.filename {
            head += &format!("; filename=\"{}\"", form_name(filename));
        }
        if let Some(content_type) = &part.content_type {
            head += &format!("\r\nContent-Type: {content_type}");
        }
        bytes.extend_from_slice(format!("{head}\r\n\r\n").as_bytes());
        match part.content {
            PartContent::File(own) => bytes.extend_from_slice(&own),
            PartContent::Text(template) => {
                let own = TextWithHoles::of(&template, Escape::None);
                let from = bytes.len();
                holes.extend(own.holes.into_iter().map(|(at, fill)| (from + at, fill)));
                bytes.extend_from_slice(own.text.as_bytes());
            }
        }
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let content_type = Some(format!("multipart/form-data; boundary={boundary}"));
    Ok(RequestBody { bytes: Body::from(bytes), holes, content_type })
}

/// A name as browsers write it between quotes (HTML §4.10.21.8).
pub(super) fn form_name(name: &str) -> String {
    name.replace('\n', "%0A").replace('\r', "%0D").replace('"', "%22")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_json_has_them() {
        for (text, want) in [
            ("0", Some("0")),
            ("-12", Some("-12")),
            ("+12", Some("12")),
            ("007", Some("7")),
            ("1.50", Some("1.50")),
            (".5", Some("0.5")),
            ("5.", Some("5.0")),
            ("1e3", Some("1e3")),
            ("1.5E-3", Some("1.5e-3")),
            ("0x1F", Some("31")),
            ("0o17", Some("15")),
            ("123456789012345678901234567890", Some("123456789012345678901234567890")),
            ("1_000", None),
            ("1e", None),
            (".", None),
            ("-", None),
            ("1.2.3", None),
            ("0x", None),
            ("abc", None),
        ] {
            let number = number(text);
            assert_eq!(number.as_deref(), want, "{text}");
            if let Some(number) = number {
                serde_json::from_str::<serde_json::Value>(&number).expect(text);
            }
        }
    }
}
