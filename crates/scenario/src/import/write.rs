//! A scenario file in YAML.

use super::json_text::without_values;
use super::model::*;
use super::yaml::{in_quotes, quoted};
use super::{Imported, ImportedText};
use knee_load::session::Deal;
use knee_load::time::Nanos;
use std::collections::HashSet;

/// The methods that are keys of a step.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// The whole file.
pub(super) fn yaml(imported: &Imported, source: &str) -> String {
    let mut lines = vec![format!("# Imported from {}.", comment(source))];
    lines.extend(imported.remarks.iter().map(|r| format!("# {}", comment(r))));
    let left_out = imported.left_out.iter();
    lines.extend(left_out.map(|what| format!("# left out: {}", comment(what))));
    let mut file = YamlLines { lines, indent: 0 };
    let targets = imported.targets.iter().map(|target| quoted(&target.template()));
    match &targets.collect::<Vec<_>>()[..] {
        [target] => file.put(format!("target: {target}")),
        targets => {
            file.put("target:");
            targets.iter().for_each(|target| file.put(format!("  - {target}")));
        }
    }
    file.defaults(imported);
    file.data(&imported.data);
    file.below("setup:", &imported.setup);
    file.put("sessions:");
    for session in &imported.sessions {
        file.session(session);
    }
    file.below("teardown:", &imported.teardown);
    file.load(&imported.load);
    if !imported.fail_if.is_empty() {
        file.put("fail_if:");
        imported.fail_if.iter().for_each(|text| file.put(format!("  - {}", in_quotes(text))));
    }
    file.put("");
    file.lines.join("\n")
}

/// Lines of the file, and how far the next ones stand to the right.
struct YamlLines {
    lines: Vec<String>,
    indent: usize,
}

impl YamlLines {
    fn put(&mut self, line: impl AsRef<str>) {
        self.lines.push(format!("{}{}", " ".repeat(self.indent), line.as_ref()));
    }

    fn deeper(&mut self, by: usize, put: impl FnOnce(&mut YamlLines)) {
        self.indent += by;
        put(self);
        self.indent -= by;
    }

    fn defaults(&mut self, imported: &Imported) {
        let Imported { headers, redirects, timeout, .. } = imported;
        if headers.is_empty() && *redirects == 0 && timeout.is_none() {
            return;
        }
        self.put("defaults:");
        self.deeper(2, |file| file.limits(headers, *redirects, *timeout));
    }

    fn limits(
        &mut self,
        headers: &[(String, ImportedText)],
        redirects: u32,
        timeout: Option<Nanos>,
    ) {
        if redirects > 0 {
            self.put(format!("redirects: {redirects}"));
        }
        if let Some(timeout) = timeout {
            self.put(format!("timeout: {}", timeout.exactly()));
        }
        if !headers.is_empty() {
            self.put("headers:");
            for (name, value) in headers {
                self.put(format!("  {}: {}", quoted(name), template(value)));
            }
        }
    }

    fn data(&mut self, data: &[ImportedData]) {
        if !data.is_empty() {
            self.put("data:");
        }
        for ImportedData { name, file, order } in data {
            let order = match order {
                Deal::InOrder => "",
                Deal::Unique => ", order: unique",
                Deal::Random => ", order: random",
            };
            self.put(format!("  {}: {{file: {}{order}}}", quoted(name), in_quotes(file)));
        }
    }

    fn session(&mut self, session: &ImportedSession) {
        self.put(format!("  {}:", quoted(&session.name)));
        self.deeper(4, |file| {
            if session.weight != 1 {
                file.put(format!("weight: {}", session.weight));
            }
            if !session.data.is_empty() {
                let names: Vec<String> = session.data.iter().map(|name| quoted(name)).collect();
                file.put(format!("data: [{}]", names.join(", ")));
            }
            file.below("steps:", &session.steps);
        });
    }

    /// A key whose value is a list of steps.
    fn below(&mut self, key: &str, steps: &[ImportedStep]) {
        if !steps.is_empty() {
            self.put(key);
            self.deeper(2, |file| steps.iter().for_each(|step| file.step(step)));
        }
    }

    fn step(&mut self, step: &ImportedStep) {
        match step {
            ImportedStep::Think(law) => self.put(format!("- think: {law}")),
            ImportedStep::Request(request) => self.request(request),
            ImportedStep::Repeat { times, variable, steps } => {
                self.put(format!("- repeat: {}", repeat(times, variable.as_deref())));
                self.deeper(2, |file| file.below("steps:", steps));
            }
            ImportedStep::When { condition, steps, otherwise } => {
                self.put(format!("- when: {}", in_quotes(&whole(condition, false))));
                self.deeper(2, |file| {
                    file.below("steps:", steps);
                    file.below("else:", otherwise);
                });
            }
            ImportedStep::Choose(choices) => {
                self.put("- choose:");
                for (weight, steps) in choices {
                    self.put(format!("    - weight: {weight}"));
                    self.deeper(6, |file| file.below("steps:", steps));
                }
            }
            ImportedStep::Parallel(steps) => {
                self.put("- parallel:");
                self.deeper(4, |file| steps.iter().for_each(|step| file.step(step)));
            }
            ImportedStep::Set(variables) => {
                self.put("- set:");
                for (name, value) in variables {
                    self.put(format!("    {}: {}", quoted(name), template(value)));
                }
            }
            ImportedStep::Group { name, steps } => {
                self.put(format!("- group: {}", quoted(name)));
                self.deeper(2, |file| file.below("steps:", steps));
            }
        }
    }

    fn request(&mut self, request: &ImportedRequest) {
        let (method, path) = (request.method.as_str(), quoted(&request.path.template()));
        self.put(if METHODS.contains(&method) {
            format!("- {}: {path}", method.to_ascii_lowercase())
        } else {
            format!("- request: {{method: {}, url: {}}}", quoted(method), template(&request.path))
        });
        self.deeper(2, |file| {
            if let Some(name) = &request.name {
                file.put(format!("name: {}", quoted(name)));
            }
            file.body(&request.content);
            file.expect(&request.expect);
            if !request.extract.is_empty() {
                file.put("extract:");
                request.extract.iter().for_each(|e| file.put(format!("  {}", extract(e))));
            }
            file.limits(&request.headers, request.redirects, request.timeout);
            if request.goes_on {
                file.put("on_failure: continue");
            }
        });
    }

    fn body(&mut self, content: &ImportedBody) {
        match content {
            ImportedBody::None => {}
            ImportedBody::Json(json) => self.put(format!("json: {}", without_values(json))),
            ImportedBody::JsonValue(json) => self.json("json:", json),
            ImportedBody::Text(text) => self.put(format!("body: {}", template(text))),
            ImportedBody::File(file) => self.put(format!("body_file: {}", in_quotes(file))),
            ImportedBody::Form(pairs) => {
                let pair = |(name, value): &(String, ImportedText)| {
                    format!("{}: {}", in_quotes(name), template(value))
                };
                let pairs: Vec<String> = pairs.iter().map(pair).collect();
                self.put(format!("form: {{{}}}", pairs.join(", ")));
            }
            ImportedBody::Multipart(parts) => {
                self.put("multipart:");
                let mut names: HashSet<&str> = HashSet::new();
                for (name, _) in parts.iter().filter(|(name, _)| names.insert(name)) {
                    let own = parts.iter().filter(|(other, _)| other == name);
                    let own: Vec<String> = own.map(|(_, p)| part(p)).collect();
                    let value = match &own[..] {
                        [one] => one.clone(),
                        all => format!("[{}]", all.join(", ")),
                    };
                    self.put(format!("  {}: {value}", in_quotes(name)));
                }
            }
        }
    }

    /// A value of JSON behind its key, or behind the dash of a list. On one line it cannot have a
    /// value without quotes, as braces end a line's map.
    fn json(&mut self, before: &str, json: &ImportedJson) {
        match json {
            ImportedJson::Value(value) => self.put(format!("{before} {}", value.template())),
            ImportedJson::List(list) if has_value(json) => {
                self.put(before);
                self.deeper(2, |file| list.iter().for_each(|value| file.json("-", value)));
            }
            ImportedJson::Object(pairs) if has_value(json) => {
                self.put(before);
                self.deeper(2, |file| {
                    for (name, value) in pairs {
                        file.json(&format!("{}:", in_quotes(name)), value);
                    }
                });
            }
            flat => self.put(format!("{before} {}", on_one_line(flat))),
        }
    }

    fn expect(&mut self, expect: &ImportedExpect) {
        if *expect == ImportedExpect::default() {
            return;
        }
        self.put("expect:");
        self.deeper(2, |file| {
            match &expect.status[..] {
                [] => {}
                [one] => file.put(format!("status: {one}")),
                all => file.put(format!("status: [{}]", all.join(", "))),
            }
            if let Some(time) = expect.time {
                file.put(format!("time: <{}", time.exactly()));
            }
            if !expect.headers.is_empty() {
                file.put("header:");
                for (name, is) in &expect.headers {
                    file.put(format!("  {}: {{{}}}", quoted(name), matched(is)));
                }
            }
            if !expect.body.is_empty() {
                file.put("body:");
                for (pointer, is) in &expect.body {
                    let json = pointer.iter().map(|p| format!("json: {}, ", in_quotes(p)));
                    file.put(format!("  - {{{}{}}}", json.collect::<String>(), matched(is)));
                }
            }
        });
    }

    fn load(&mut self, load: &ImportedLoad) {
        let mut all = Vec::new();
        if load.stages.is_empty() {
            all.extend(load.rate_per_s.map(|rate| format!("rate: {rate}/s")));
            all.extend(load.vusers.map(|vusers| format!("vusers: {vusers}")));
            let duration = load.duration.filter(|time| *time > Nanos::ZERO);
            all.extend(duration.map(|time| format!("duration: {}", time.exactly())));
        } else {
            all.push("stages:".to_owned());
            let (from_unit, unit) =
                if load.stages_of_users { ("", " users") } else { ("/s", "/s") };
            for ImportedStage { from, to, length } in &load.stages {
                let length = length.exactly();
                all.push(if from == to {
                    format!("  - {{hold: {to}{unit}, for: {length}}}")
                } else {
                    format!("  - {{ramp: {from}{from_unit} -> {to}{unit}, for: {length}}}")
                });
            }
        }
        if !all.is_empty() {
            self.put("load:");
            all.iter().for_each(|line| self.put(format!("  {line}")));
        }
    }
}

/// One line of a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn template(text: &ImportedText) -> String {
    in_quotes(&text.template())
}

fn repeat(times: &ImportedRepeat, variable: Option<&str>) -> String {
    let whole = |condition| in_quotes(&whole(condition, false));
    let times = match times {
        ImportedRepeat::Times(times) => {
            let number = times.literal().map_or_else(|| template(times), str::to_owned);
            match variable {
                None => return number,
                Some(_) => format!("times: {number}"),
            }
        }
        ImportedRepeat::Each(list) => {
            let list: Vec<String> = list.iter().map(template).collect();
            format!("over: [{}]", list.join(", "))
        }
        ImportedRepeat::Elements(value) => format!("over: {}", template(value)),
        ImportedRepeat::While(is, most) => format!("while: {}, at_most: {most}", whole(is)),
        ImportedRepeat::Until(is, most) => format!("until: {}, at_most: {most}", whole(is)),
    };
    let variable = variable.map(|name| format!(", as: {}", quoted(name)));
    format!("{{{times}{}}}", variable.unwrap_or_default())
}

/// A condition, in parentheses where it is a part of another.
fn whole(condition: &ImportedCondition, is_part: bool) -> String {
    let joined = |all: &[ImportedCondition], word: &str| {
        let all: Vec<String> = all.iter().map(|one| whole(one, true)).collect();
        if is_part && all.len() > 1 { format!("({})", all.join(word)) } else { all.join(word) }
    };
    match condition {
        ImportedCondition::All(all) => joined(all, " and "),
        ImportedCondition::Any(all) => joined(all, " or "),
        ImportedCondition::Not(not) => match &**not {
            ImportedCondition::Compare(..) => format!("not ({})", whole(not, false)),
            _ => format!("not {}", whole(not, true)),
        },
        ImportedCondition::Compare(left, relation, right) => {
            let relation = match relation {
                ImportedRelation::Equal => "==",
                ImportedRelation::NotEqual => "!=",
                ImportedRelation::Less => "<",
                ImportedRelation::Greater => ">",
                ImportedRelation::AtMost => "<=",
                ImportedRelation::AtLeast => ">=",
                ImportedRelation::Contains => "contains",
                ImportedRelation::Matches => "matches",
            };
            format!("{} {relation} {}", side(left), side(right))
        }
    }
}

/// A side of a comparison: one value or a number as it is, all else in quotes.
fn side(text: &ImportedText) -> String {
    let template = text.template();
    let is_value = text.parts().len() == 1 && text.literal().is_none();
    if (is_value && !template.contains(['\'', '"'])) || is_number(&template) {
        return template;
    }
    let quote = if template.contains('\'') { '"' } else { '\'' };
    format!("{quote}{template}{quote}")
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_plain && digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

fn part(part: &ImportedPart) -> String {
    let content = match &part.content {
        Ok(text) if part.media.is_none() && part.filename.is_none() => return template(text),
        Ok(text) => format!("text: {}", template(text)),
        Err(file) => format!("file: {}", in_quotes(file)),
    };
    let media = part.media.iter().map(|media| format!(", type: {}", in_quotes(media)));
    let filename = part.filename.iter().map(|name| format!(", filename: {}", in_quotes(name)));
    format!("{{{content}{}}}", media.chain(filename).collect::<String>())
}

/// Whether a value without quotes is in it.
fn has_value(json: &ImportedJson) -> bool {
    match json {
        ImportedJson::Plain(_) | ImportedJson::Text(_) => false,
        ImportedJson::Value(_) => true,
        ImportedJson::List(list) => list.iter().any(has_value),
        ImportedJson::Object(pairs) => pairs.iter().any(|(_, value)| has_value(value)),
    }
}

fn on_one_line(json: &ImportedJson) -> String {
    match json {
        ImportedJson::Plain(text) => text.clone(),
        ImportedJson::Text(text) | ImportedJson::Value(text) => template(text),
        ImportedJson::List(list) => {
            let list: Vec<String> = list.iter().map(on_one_line).collect();
            format!("[{}]", list.join(", "))
        }
        ImportedJson::Object(pairs) => {
            let pair = |(name, value): &(String, ImportedJson)| {
                format!("{}: {}", in_quotes(name), on_one_line(value))
            };
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn matched(is: &ImportedMatch) -> String {
    let number = |text: &ImportedText| match text.literal() {
        Some(number) if is_number(number) => number.to_owned(),
        _ => template(text),
    };
    match is {
        ImportedMatch::Equals(text) => format!("equals: {}", template(text)),
        ImportedMatch::Contains(text) => format!("contains: {}", template(text)),
        ImportedMatch::Matches(pattern) => format!("matches: {}", in_quotes(pattern)),
        ImportedMatch::Above(value) => format!("above: {}", number(value)),
        ImportedMatch::Below(value) => format!("below: {}", number(value)),
        ImportedMatch::AtLeast(value) => format!("at_least: {}", number(value)),
        ImportedMatch::AtMost(value) => format!("at_most: {}", number(value)),
        ImportedMatch::Exists(is_there) => format!("exists: {is_there}"),
        ImportedMatch::Not(other) => format!("not: {{{}}}", matched(other)),
    }
}

fn extract(extract: &ImportedExtract) -> String {
    let source = match &extract.source {
        ImportedSource::Json(pointer) => format!("json: {}", in_quotes(pointer)),
        ImportedSource::Header(name) => format!("header: {}", quoted(name)),
        ImportedSource::Cookie(name) => format!("cookie: {}", quoted(name)),
        ImportedSource::Between(left, right) => {
            format!("between: [{}, {}]", in_quotes(left), in_quotes(right))
        }
        ImportedSource::Body => "body: true".to_owned(),
        ImportedSource::Status => "status: true".to_owned(),
        ImportedSource::Regex { pattern, group, unescape } => {
            let group = group.map(|group| format!(", group: {group}")).unwrap_or_default();
            let unescape = if *unescape { ", unescape: true" } else { "" };
            format!("regex: {}{group}{unescape}", in_quotes(pattern))
        }
        ImportedSource::Css { selector, attribute } => {
            let attribute = attribute.as_ref().map(|name| format!(", attribute: {}", quoted(name)));
            format!("css: {}{}", in_quotes(selector), attribute.unwrap_or_default())
        }
    };
    let default = extract.default.as_ref().map(|text| format!(", default: {}", in_quotes(text)));
    format!("{}: {{{source}{}}}", quoted(&extract.name), default.unwrap_or_default())
}
