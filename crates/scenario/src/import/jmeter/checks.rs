//! Extractors and assertions.

use super::scope::PlanScope;
use super::{PlanWalk, property};
use crate::import::collect::{Collector, SourceRequest};
use crate::import::{ImportedExtract, ImportedMatch, ImportedSource};
use knee_load::time::Nanos;
use roxmltree::Node;

impl PlanWalk {
    /// Adds what an element extracts or asserts to a request.
    pub(super) fn check(&mut self, element: Node, scope: &PlanScope, draft: &mut SourceRequest) {
        let text = |name: &str| scope.constant(&property(element, name).unwrap_or_default());
        match element.tag_name().name() {
            "ResponseAssertion" => self.assertion(element, scope, draft),
            "DurationAssertion" => {
                let ms = text("DurationAssertion.duration").trim().parse().ok();
                draft.expect.time = ms.filter(|ms| *ms > 0).map(Nanos::from_millis);
            }
            "JSONPathAssertion" => self.json_assertion(element, scope, draft),
            "RegexExtractor" => {
                let source = match text("RegexExtractor.useHeaders").as_str() {
                    "" | "false" => ImportedSource::Regex {
                        pattern: text("RegexExtractor.regex"),
                        group: text("RegexExtractor.template").trim_matches('$').parse().ok(),
                        unescape: false,
                    },
                    "unescaped" => ImportedSource::Regex {
                        pattern: text("RegexExtractor.regex"),
                        group: text("RegexExtractor.template").trim_matches('$').parse().ok(),
                        unescape: true,
                    },
                    of => {
                        let effect = format!("a pattern in '{of}' in place of the body");
                        return self.leave_out(element, &effect);
                    }
                };
                let names = (text("RegexExtractor.refname"), text("RegexExtractor.default"));
                self.extracted(element, names, &text("RegexExtractor.match_number"), source, draft);
            }
            "BoundaryExtractor" => {
                let ends =
                    [text("BoundaryExtractor.lboundary"), text("BoundaryExtractor.rboundary")];
                let [before, after] = ends;
                let source = ImportedSource::Between(before, after);
                let names = (text("BoundaryExtractor.refname"), text("BoundaryExtractor.default"));
                let number = text("BoundaryExtractor.match_number");
                self.extracted(element, names, &number, source, draft);
            }
            "HtmlExtractor" => {
                let attribute =
                    Some(text("HtmlExtractor.attribute")).filter(|name| !name.is_empty());
                let source =
                    ImportedSource::Css { selector: text("HtmlExtractor.expr"), attribute };
                let names = (text("HtmlExtractor.refname"), text("HtmlExtractor.default"));
                let number = text("HtmlExtractor.match_number");
                self.extracted(element, names, &number, source, draft);
            }
            "JSONPostProcessor" => self.json_values(element, scope, draft),
            _ => self.leave_out(element, "its variable has no value"),
        }
    }

    fn extracted(
        &mut self,
        element: Node,
        (name, default): (String, String),
        number: &str,
        source: ImportedSource,
        draft: &mut SourceRequest,
    ) {
        if !matches!(number.trim(), "" | "0" | "1") {
            self.leave_out(element, &format!("match {number}: its variable has the first"));
        }
        if Collector::variable(&name) != name {
            return self.leave_out(element, &format!("its variable cannot be called '{name}'"));
        }
        // Without a match JMeter goes on.
        draft.extract.push(ImportedExtract { name, source, default: Some(default) });
    }

    fn json_values(&mut self, element: Node, scope: &PlanScope, draft: &mut SourceRequest) {
        let text = |name: &str| scope.constant(&property(element, name).unwrap_or_default());
        let (names, paths) =
            (text("JSONPostProcessor.referenceNames"), text("JSONPostProcessor.jsonPathExprs"));
        let (defaults, numbers) =
            (text("JSONPostProcessor.defaultValues"), text("JSONPostProcessor.match_numbers"));
        let mut defaults = defaults.split(';');
        let mut numbers = numbers.split(';');
        for (name, path) in names.split(';').zip(paths.split(';')) {
            let default = defaults.next().unwrap_or_default().to_owned();
            let number = numbers.next().unwrap_or_default();
            match pointer(path.trim()) {
                Some(pointer) => {
                    let source = ImportedSource::Json(pointer);
                    let names = (name.trim().to_owned(), default);
                    self.extracted(element, names, number, source, draft);
                }
                None => self.leave_out(element, &format!("'{path}' names no single place")),
            }
        }
    }

    fn json_assertion(&mut self, element: Node, scope: &PlanScope, draft: &mut SourceRequest) {
        let text = |name: &str| scope.constant(&property(element, name).unwrap_or_default());
        let path = text("JSON_PATH");
        let Some(pointer) = pointer(&path) else {
            return self.leave_out(element, &format!("'{path}' names no single place"));
        };
        let expected = scope.text(&text("EXPECTED_VALUE"), &mut Vec::new());
        let is = match (text("JSONVALIDATION").as_str(), text("ISREGEX").as_str()) {
            ("true", "true") => ImportedMatch::Matches(text("EXPECTED_VALUE")),
            ("true", _) => ImportedMatch::Equals(expected),
            _ => ImportedMatch::Exists(true),
        };
        let is = if text("INVERT") == "true" { ImportedMatch::Not(Box::new(is)) } else { is };
        draft.expect.body.push((Some(pointer), is));
    }

    /// What a response has to be; several texts are expected together.
    fn assertion(&mut self, element: Node, scope: &PlanScope, draft: &mut SourceRequest) {
        const CONTAINS: u32 = 2;
        const NOT: u32 = 4;
        const EQUALS: u32 = 8;
        const SUBSTRING: u32 = 16;
        const OR: u32 = 32;
        let text = |name: &str| property(element, name).unwrap_or_default();
        let kind: u32 = text("Assertion.test_type").trim().parse().unwrap_or(CONTAINS);
        let is_list = |n: &Node| {
            let name = n.attribute("name").unwrap_or_default();
            // JMeter's own spelling.
            name == "Asserion.test_strings" || name == "Assertion.test_strings"
        };
        let list = element.children().find(is_list);
        let strings = list.iter().flat_map(|list| list.children()).filter(Node::is_element);
        let strings: Vec<String> =
            strings.map(|n| n.text().unwrap_or_default().to_owned()).collect();
        if strings.is_empty() {
            return;
        }
        let field = text("Assertion.test_field");
        let is_code = field == "Assertion.response_code" && kind & NOT == 0;
        let is_body = matches!(
            field.as_str(),
            "Assertion.response_data" | "Assertion.response_data_as_document"
        );
        let joins = strings.len() < 2 || kind & OR == 0;
        if is_code && strings.iter().all(|code| crate::parse_status(code.trim()).is_ok()) {
            let codes = strings.iter().map(|code| code.trim().to_owned());
            draft.expect.status.extend(codes);
        } else if is_body && joins {
            for string in strings {
                let value = scope.text(&string, &mut Vec::new());
                let is = match kind & !(NOT | OR) {
                    EQUALS => ImportedMatch::Equals(value),
                    SUBSTRING => ImportedMatch::Contains(value),
                    CONTAINS => ImportedMatch::Matches(string),
                    _ => ImportedMatch::Matches(format!("^(?:{string})$")),
                };
                let is = if kind & NOT > 0 { ImportedMatch::Not(Box::new(is)) } else { is };
                draft.expect.body.push((None, is));
            }
        } else {
            self.leave_out(element, &format!("what {field} has to be is not asked for"));
        }
    }
}

/// A JSON Pointer for a path such as `$.items[0].id`; `None` for one that may have several places.
fn pointer(path: &str) -> Option<String> {
    let mut rest = path.strip_prefix('$')?;
    let mut pointer = String::new();
    while !rest.is_empty() {
        let (part, after) = if let Some(inner) = rest.strip_prefix('[') {
            let (inner, after) = inner.split_once(']')?;
            let quoted = ['\'', '"']
                .into_iter()
                .find_map(|quote| inner.strip_prefix(quote)?.strip_suffix(quote));
            let is_number = !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_digit());
            (quoted.or(is_number.then_some(inner))?, after)
        } else {
            let inner = rest.strip_prefix('.')?;
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            inner.split_at(end)
        };
        let is_plain = !part.is_empty() && !part.contains(['*', '?', '(', ',', ':', '@']);
        if !is_plain {
            return None;
        }
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
        rest = after;
    }
    Some(pointer)
}

#[cfg(test)]
mod tests {
    use super::pointer;

    #[test]
    fn paths_with_one_place_are_pointers() {
        for (path, want) in [
            ("$", Some("")),
            ("$.token", Some("/token")),
            ("$.items[0].id", Some("/items/0/id")),
            ("$['a/b']['c']", Some("/a~1b/c")),
            ("$..id", None),
            ("$.items[*].id", None),
            ("$.items[?(@.a==1)]", None),
            ("$.items.length()", None),
            ("$.", None),
            ("$[", None),
            ("items", None),
            ("", None),
        ] {
            assert_eq!(pointer(path).as_deref(), want, "{path}");
        }
    }
}
