//! Variables that are set from responses.

use super::JmeterReader;
use super::element::{JmeterElement, JmeterScope};
use super::is_word;
use crate::import::collect::Collector;
use crate::import::grammar::pointer_part;
use crate::import::{ImportedExtract, ImportedSource};

/// What sets variables from responses.
pub(super) const EXTRACTORS: [&str; 7] = [
    "RegexExtractor",
    "JSONPostProcessor",
    "JSONPathExtractor",
    "BoundaryExtractor",
    "HtmlExtractor",
    "XPathExtractor",
    "XPath2Extractor",
];

impl<'a> JmeterReader<'a> {
    /// The variables that the response of a request sets.
    pub(super) fn extractors(&mut self, scope: &JmeterScope<'a>) -> Vec<ImportedExtract> {
        let mut all: Vec<ImportedExtract> = Vec::new();
        for element in scope.all(&EXTRACTORS) {
            if element.text("Sample.scope") == "variable" {
                self.leave_out(element, "it reads a variable: its own is not set");
                continue;
            }
            let own = match element.kind() {
                "RegexExtractor" => self.regex(element),
                "JSONPostProcessor" | "JSONPathExtractor" => self.json_paths(element),
                "BoundaryExtractor" => self.boundaries(element),
                "HtmlExtractor" => self.selector(element),
                _ => self.xpath(element),
            };
            for extract in own {
                if !all.iter().any(|other| other.name == extract.name) {
                    all.push(extract);
                }
            }
        }
        all
    }

    /// An extraction that gives the default where nothing is found, as JMeter goes on then.
    fn extract(&mut self, name: &str, source: ImportedSource, default: &str) -> ImportedExtract {
        let (default, unknown) = self.resolved(default);
        let default = default.literal().filter(|_| unknown.is_empty()).unwrap_or_default();
        if default.is_empty() {
            self.all.remark(
                "A value that a response does not have is empty here; JMeter keeps its variable.",
            );
        }
        ImportedExtract {
            name: Collector::variable(name),
            source,
            default: Some(default.to_owned()),
        }
    }

    /// Whether the first of the matches is asked for, and if not, what that changes.
    fn match_number(&mut self, element: JmeterElement<'a>, text: &str) -> bool {
        match self.constant(text).unwrap_or_default().as_str() {
            "1" => true,
            "" | "0" => {
                self.leave_out(element, "it takes one of the matches by chance: here the first");
                true
            }
            number if number.starts_with('-') => {
                self.leave_out(element, "it takes all matches: its variables are not set");
                false
            }
            number => {
                self.leave_out(element, &format!("it takes match {number}: here the first"));
                true
            }
        }
    }

    fn regex(&mut self, element: JmeterElement<'a>) -> Vec<ImportedExtract> {
        let text = |name: &str| element.text(&format!("RegexExtractor.{name}"));
        let (name, template) = (text("refname").trim(), text("template").trim());
        let digits = template.strip_prefix('$').and_then(|rest| rest.strip_suffix('$'));
        let group = match template {
            "" => Some(0),
            template => digits.unwrap_or(template).parse::<u32>().ok(),
        };
        let pattern = self.filled(text("regex"), element);
        let Some((group, pattern)) = group.zip(pattern.literal()).filter(|_| !name.is_empty())
        else {
            if !name.is_empty() {
                let what =
                    format!("its template '{template}' or its variables: '{name}' is not set");
                self.leave_out(element, &what);
            }
            return Vec::new();
        };
        let source = match text("useHeaders").trim() {
            "true" => of_header(pattern),
            "code" => Some(ImportedSource::Status),
            "unescaped" => Some(regex_source(pattern, group, true)),
            "" | "false" => Some(regex_source(pattern, group, false)),
            _ => None,
        };
        let Some(source) = source else {
            let part = text("useHeaders").trim();
            self.leave_out(element, &format!("it reads '{part}': '{name}' is not set"));
            return Vec::new();
        };
        if !self.match_number(element, text("match_number")) {
            return Vec::new();
        }
        let mut all = vec![self.extract(name, source.clone(), text("default"))];
        // `name_g1` and so on are the groups.
        if let ImportedSource::Regex { pattern, unescape, .. } = &source {
            for group in 0..10 {
                let name = format!("{name}_g{group}");
                if self.used.contains(name.as_str()) {
                    let source = regex_source(pattern, group, *unescape);
                    all.push(self.extract(&name, source, ""));
                }
            }
        }
        all
    }

    fn json_paths(&mut self, element: JmeterElement<'a>) -> Vec<ImportedExtract> {
        let is_plugin = element.kind() == "JSONPathExtractor";
        let text = |name: &str, of_plugin: &str| {
            let own = format!("JSONPostProcessor.{name}");
            element.text(if is_plugin { of_plugin } else { &own }).split(';').map(str::trim)
        };
        let names: Vec<&str> = text("referenceNames", "VAR").collect();
        let paths: Vec<&str> = text("jsonPathExprs", "JSONPATH").collect();
        let defaults: Vec<&str> = text("defaultValues", "DEFAULT").collect();
        let numbers: Vec<&str> = text("match_numbers", "").collect();
        let mut all = Vec::new();
        for (at, (name, path)) in names.iter().zip(&paths).enumerate() {
            let default = defaults.get(at).copied().unwrap_or_default();
            let number = numbers.get(at).copied().unwrap_or_default();
            if name.is_empty() {
                continue;
            }
            if let Some(field) = anywhere(path) {
                self.leave_out(
                    element,
                    &format!("the first '{field}' of the body is taken as text"),
                );
                let pattern = format!("\"{field}\"\\s*:\\s*\"?([^\",}}\\]]*)");
                all.push(self.extract(name, regex_source(&pattern, 1, false), default));
                continue;
            }
            let Some((pointer, is_first)) = pointer(path) else {
                let what = format!("its path '{path}' is no plain one: '{name}' is not set");
                self.leave_out(element, &what);
                continue;
            };
            // The list itself, for a ForEach controller.
            let list = path.strip_suffix("[*]").and_then(self::pointer);
            if let Some((list, false)) = list.filter(|_| number.starts_with('-')) {
                let list = ImportedSource::Json(list);
                all.push(self.extract(&format!("{name}_ALL"), list, "[]"));
                continue;
            }
            if is_first && !self.match_number(element, number) {
                continue;
            }
            all.push(self.extract(name, ImportedSource::Json(pointer), default));
        }
        all
    }

    fn boundaries(&mut self, element: JmeterElement<'a>) -> Vec<ImportedExtract> {
        let text = |name: &str| element.text(&format!("BoundaryExtractor.{name}"));
        let name = text("refname").trim();
        let left = self.filled(text("lboundary"), element);
        let right = self.filled(text("rboundary"), element);
        let both =
            left.literal().zip(right.literal()).filter(|(l, r)| !l.is_empty() && !r.is_empty());
        let (Some((left, right)), false) = (both, name.is_empty()) else {
            self.leave_out(element, &format!("its boundaries: '{name}' is not set"));
            return Vec::new();
        };
        let source = match text("useHeaders").trim() {
            "" | "false" => ImportedSource::Between(left.to_owned(), right.to_owned()),
            "unescaped" => {
                let (left, right) = (regex_syntax::escape(left), regex_syntax::escape(right));
                regex_source(&format!("(?s){left}(.*?){right}"), 1, true)
            }
            part => {
                self.leave_out(element, &format!("it reads '{part}': '{name}' is not set"));
                return Vec::new();
            }
        };
        if !self.match_number(element, text("match_number")) {
            return Vec::new();
        }
        vec![self.extract(name, source, text("default"))]
    }

    fn selector(&mut self, element: JmeterElement<'a>) -> Vec<ImportedExtract> {
        let text = |name: &str| element.text(&format!("HtmlExtractor.{name}")).trim();
        let (name, attribute) = (text("refname"), text("attribute"));
        let selector = self.filled(text("expr"), element);
        let Some(selector) = selector.literal().filter(|s| !s.is_empty() && !name.is_empty())
        else {
            return Vec::new();
        };
        let selector = selector.to_owned();
        if !self.match_number(element, text("match_number")) {
            return Vec::new();
        }
        let attribute = Some(attribute.to_owned()).filter(|attribute| !attribute.is_empty());
        let source = ImportedSource::Css { selector, attribute };
        vec![self.extract(name, source, text("default"))]
    }

    fn xpath(&mut self, element: JmeterElement<'a>) -> Vec<ImportedExtract> {
        let kind =
            if element.kind() == "XPathExtractor" { "XPathExtractor" } else { "XPathExtractor2" };
        let text = |name: &str| element.text(&format!("{kind}.{name}")).trim();
        let name = text("refname");
        let Some(source) = css_of(text("xpathQuery")).filter(|_| !name.is_empty()) else {
            self.leave_out(element, &format!("XPath: '{name}' is not set"));
            return Vec::new();
        };
        // Without a number it takes the first.
        let number = text("matchNumber");
        if !matches!(number, "" | "0") && !self.match_number(element, number) {
            return Vec::new();
        }
        vec![self.extract(name, source, text("default"))]
    }
}

fn regex_source(pattern: &str, group: u32, unescape: bool) -> ImportedSource {
    ImportedSource::Regex { pattern: pattern.to_owned(), group: Some(group), unescape }
}

/// `Name: (.*)` and `Set-Cookie: name=([^;]*)` of the header lines.
fn of_header(pattern: &str) -> Option<ImportedSource> {
    let (name, value) = pattern.trim_start_matches('^').split_once(':')?;
    let value = value.trim_start().trim_start_matches("\\s*").trim_end_matches('$');
    let is_name = |text: &str| is_word(text, b"-_.");
    if name.eq_ignore_ascii_case("set-cookie") {
        let (cookie, value) = value.split_once('=')?;
        let is_all =
            value.starts_with("([^;]") || value.starts_with("(.+?)") || value.starts_with("(.*?)");
        return (is_name(cookie) && is_all).then(|| ImportedSource::Cookie(cookie.to_owned()));
    }
    let is_all = matches!(value, "(.*)" | "(.+)" | "(.*?)" | "(.+?)" | "([^\\r\\n]+)" | "(\\S+)");
    (is_name(name) && is_all).then(|| ImportedSource::Header(name.to_owned()))
}

/// The JSON Pointer of a path of names and numbers; `[*]` is the first element, which is then said.
pub(super) fn pointer(path: &str) -> Option<(String, bool)> {
    let mut rest = path.trim().strip_prefix('$').unwrap_or(path.trim());
    let (mut pointer, mut is_first) = (String::new(), false);
    let mut add = |name: &str| {
        pointer.push('/');
        pointer.push_str(&pointer_part(name));
    };
    if !rest.is_empty() && !rest.starts_with(['.', '[']) {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            let inside = inside.trim();
            let quoted = ['\'', '"'].iter().find_map(|quote| {
                inside.strip_prefix(*quote).and_then(|inside| inside.strip_suffix(*quote))
            });
            match quoted {
                Some(name) => add(name),
                None if inside == "*" => {
                    is_first = true;
                    add("0");
                }
                None if !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_digit()) => {
                    add(inside);
                }
                None => return None,
            }
            rest = after;
            continue;
        }
        let after = rest.strip_prefix('.')?;
        let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
        let is_plain = !name.is_empty() && !name.contains(['*', '(', '?', '@', ' ']);
        if !is_plain {
            return None;
        }
        add(name);
        rest = after;
    }
    Some((pointer, is_first))
}

/// The field of a path such as `$..token`, which may lie anywhere.
fn anywhere(path: &str) -> Option<&str> {
    path.strip_prefix("$..").filter(|field| is_word(field, b"-_"))
}

/// `//input[@name='x']/@value` as a selector.
fn css_of(path: &str) -> Option<ImportedSource> {
    let path = path.strip_prefix("//")?;
    let (path, attribute) = match path.rsplit_once("/@") {
        Some((path, attribute)) => (path, Some(attribute.to_owned())),
        None => (path.strip_suffix("/text()")?, None),
    };
    let is_name = |text: &str| is_word(text, b"-_");
    let (tag, condition) = match path.split_once('[') {
        None => (path, None),
        Some((tag, rest)) => (tag, Some(rest.strip_suffix(']')?)),
    };
    let mut selector = tag.to_owned();
    if let Some(condition) = condition {
        let (name, value) = condition.strip_prefix('@')?.split_once('=')?;
        let value = value.trim().trim_matches(['\'', '"']);
        if !is_name(name.trim()) || value.contains(['\'', '"', ']', '[', '\\']) {
            return None;
        }
        selector.push_str(&format!("[{}=\"{value}\"]", name.trim()));
    }
    let is_fit = is_name(tag) && attribute.iter().all(|name| is_name(name));
    is_fit.then_some(ImportedSource::Css { selector, attribute })
}
