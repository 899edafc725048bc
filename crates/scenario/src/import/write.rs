//! A scenario file in YAML.

use super::{Imported, ImportedBody, ImportedLoad, ImportedRequest, ImportedStep};
use knee_load::time::Nanos;

/// The methods that are keys of a step.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// The whole file.
pub(super) fn yaml(imported: &Imported, source: &str) -> String {
    let mut lines = vec![format!("# Imported from {}.", comment(source))];
    lines.extend(imported.remarks.iter().map(|r| format!("# {}", comment(r))));
    let left_out = imported.left_out.iter();
    lines.extend(left_out.map(|what| format!("# left out: {}", comment(what))));
    lines.push(format!("target: {}", quoted(&imported.target)));
    if !imported.headers.is_empty() {
        lines.push("defaults:".to_owned());
        headers(&imported.headers, "  ", &mut lines);
    }
    lines.extend(["sessions:", "  imported:", "    steps:"].map(str::to_owned));
    for step in &imported.steps {
        match step {
            ImportedStep::Think(time) => lines.push(format!("      - think: {}", time.exactly())),
            ImportedStep::Request(request) => put_request(request, &mut lines),
        }
    }
    put_load(&imported.load, &mut lines);
    lines.push(String::new());
    lines.join("\n")
}

fn put_request(request: &ImportedRequest, lines: &mut Vec<String>) {
    let (method, path) = (request.method.as_str(), quoted(&request.path));
    lines.push(if METHODS.contains(&method) {
        format!("      - {}: {path}", method.to_ascii_lowercase())
    } else {
        format!("      - request: {{method: {}, url: {path}}}", quoted(method))
    });
    let mut put = |line: String| lines.push(format!("        {line}"));
    if let Some(name) = &request.name {
        // A name holds no templates.
        put(format!("name: {}", quoted(name).replace("$${", "${")));
    }
    match &request.content {
        ImportedBody::None => {}
        ImportedBody::Json(json) => put(format!("json: {}", without_templates(json))),
        ImportedBody::Text(text) => put(format!("body: {}", in_quotes(text))),
        ImportedBody::Form(pairs) => {
            let pair = |(name, value): &(String, String)| {
                format!("{}: {}", in_quotes(name).replace("$${", "${"), in_quotes(value))
            };
            let pairs: Vec<String> = pairs.iter().map(pair).collect();
            put(format!("form: {{{}}}", pairs.join(", ")));
        }
    }
    if request.redirects > 0 {
        put(format!("redirects: {}", request.redirects));
    }
    if request.goes_on {
        put("on_failure: continue".to_owned());
    }
    if !request.headers.is_empty() {
        headers(&request.headers, "        ", lines);
    }
}

fn headers(headers: &[(String, String)], indent: &str, lines: &mut Vec<String>) {
    lines.push(format!("{indent}headers:"));
    for (name, value) in headers {
        let (name, value) = (key(name), in_quotes(value));
        lines.push(format!("{indent}  {name}: {value}"));
    }
}

fn put_load(load: &ImportedLoad, lines: &mut Vec<String>) {
    let rate = load.rate_per_s.map(|rate| format!("rate: {rate}/s"));
    let vusers = load.vusers.map(|vusers| format!("vusers: {vusers}"));
    let duration = load.duration.filter(|time| *time > Nanos::ZERO);
    let duration = duration.map(|time| format!("duration: {}", time.exactly()));
    let all: Vec<String> = [rate, vusers, duration].into_iter().flatten().collect();
    if !all.is_empty() {
        lines.push("load:".to_owned());
        lines.extend(all.into_iter().map(|line| format!("  {line}")));
    }
}

/// One line of a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The name of a header: a token, which may look like something else.
fn key(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { in_quotes(name).replace("$${", "${") }
}

/// A text that YAML reads as this text: plain where it can be, in quotes else.
fn quoted(text: &str) -> String {
    let is_url = ["http://", "https://"].iter().find_map(|s| text.strip_prefix(s));
    let is_path = text.starts_with('/') && text.bytes().all(is_path_byte);
    if is_plain(text) || is_path || is_url.is_some_and(is_authority) {
        text.to_owned()
    } else {
        in_quotes(text)
    }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let is_word_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(is_word_byte)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-_.~?=&%+;@".contains(&byte)
}

fn is_authority(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"-.:".contains(&b);
    !text.is_empty() && !text.ends_with(':') && text.bytes().all(is_fine)
}

/// `${` begins a template: it is doubled.
fn without_templates(text: &str) -> String {
    text.replace("${", "$${")
}

/// A text in double quotes.
fn in_quotes(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in without_templates(text).chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
