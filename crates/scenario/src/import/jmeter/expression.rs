//! Texts of a test plan, with variables and calls of functions between `${` and `}`.

use super::element::JmeterElement;
use super::{JmeterReader, variable};
use crate::import::ImportedText;
use crate::names::is_name;

/// How deep variables and calls may lie in one another.
const DEPTH_MAX: usize = 16;
/// The longest text with variables in their places, in bytes.
const TEXT_MAX: usize = 1 << 20;

/// A text, and what in it is not known.
type Resolved = (ImportedText, Vec<String>);

impl<'a> JmeterReader<'a> {
    /// A property as a text of the scenario. What is not known stays as it is, and is named.
    pub(super) fn filled(&mut self, text: &str, of: JmeterElement<'a>) -> ImportedText {
        let (filled, unknown) = self.resolved(text);
        for what in unknown {
            self.leave_out(of, &format!("nothing here sets {what}: it is sent as this text"));
        }
        filled
    }

    /// A text that is the same in each session.
    pub(super) fn constant(&mut self, text: &str) -> Option<String> {
        let (text, unknown) = self.resolved(text.trim());
        text.literal().filter(|_| unknown.is_empty()).map(|text| text.trim().to_owned())
    }

    /// A number that is the same in each session.
    pub(super) fn number<T: std::str::FromStr>(&mut self, text: &str) -> Option<T> {
        self.constant(text)?.parse().ok()
    }

    /// A text with what its variables and calls are in a scenario. As in JMeter, backslashes escape
    /// only where there is a variable or a call.
    pub(super) fn resolved(&mut self, text: &str) -> Resolved {
        let (mut resolved, mut unknown) = (ImportedText::default(), Vec::new());
        let (mut rest, mut bytes) = (text, 0);
        while let Some((before, inside)) = rest.split_once("${").filter(|_| bytes < TEXT_MAX)
            && let Some((reference, after)) = self.closed(inside)
        {
            resolved.push(&unescaped(before));
            let value = self.reference(reference).unwrap_or_else(|| {
                unknown.push(format!("${{{reference}}}"));
                format!("${{{reference}}}").into()
            });
            bytes += value.template().len();
            resolved.append(&value);
            rest = after;
        }
        let has_reference = rest.len() < text.len();
        resolved.push(&if has_reference { unescaped(rest) } else { rest.to_owned() });
        (resolved, unknown)
    }

    /// The text up to the brace that closes the one before it, and what follows.
    fn closed<'t>(&self, inside: &'t str) -> Option<(&'t str, &'t str)> {
        let mut open = 1;
        let end = inside.find(|c: char| {
            open += i32::from(c == '{') - i32::from(c == '}');
            open == 0
        })?;
        (self.text_depth < DEPTH_MAX).then_some((&inside[..end], &inside[end + 1..]))
    }

    /// The value of what stands between the braces; `None` where a scenario has none.
    fn reference(&mut self, inside: &str) -> Option<ImportedText> {
        self.text_depth += 1;
        let value = match inside.trim().strip_prefix("__") {
            Some(call) => {
                let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
                let end = arguments.rfind(')').unwrap_or(arguments.len());
                self.call(name.trim(), &divided(&arguments[..end]))
            }
            None => self.constant(inside).and_then(|name| self.value_of(&name)),
        };
        self.text_depth -= 1;
        value
    }

    /// The value of a variable: what a response has set, a column of a record, or what the plan says.
    fn value_of(&mut self, name: &str) -> Option<ImportedText> {
        let own = variable(name);
        if self.known.contains(&own) {
            return Some(ImportedText::value(own));
        }
        let column = self.columns.iter().rev().find(|(other, ..)| other == name);
        if let Some((_, set, column)) = column {
            let value = format!("{set}.{column}");
            self.used_sets.insert(set.clone());
            return Some(ImportedText::value(value));
        }
        if let Some(value) = self.variables.get(name) {
            return Some(value.clone());
        }
        let set = self.nameless_set.clone().filter(|_| is_name(name))?;
        self.all.remark(format!("Nothing else sets {name}: it is a column of {set}."));
        let value = format!("{set}.{name}");
        self.used_sets.insert(set);
        Some(ImportedText::value(value))
    }

    /// The value of a call; `None` if a scenario has no such value.
    fn call(&mut self, name: &str, arguments: &[&str]) -> Option<ImportedText> {
        let texts: Vec<Resolved> = arguments.iter().map(|text| self.resolved(text)).collect();
        if texts.iter().any(|(_, unknown)| !unknown.is_empty()) {
            return None;
        }
        let literal = |at: usize| texts.get(at)?.0.literal().map(|text| text.trim().to_owned());
        match name {
            "P" => self.property(&literal(0)?, literal(1)),
            "property" => self.property(&literal(0)?, literal(2)),
            "env" => Some(ImportedText::value(format!("env({})", literal(0)?))),
            // A variable may have the value as well.
            "Random" if literal(2).is_none_or(|name| name.is_empty()) => {
                let whole = |at| literal(at).and_then(|text| text.parse::<i64>().ok());
                let (least, most) = (whole(0)?, whole(1)?);
                (least <= most).then(|| ImportedText::value(format!("random({least},{most})")))
            }
            "UUID" => Some(ImportedText::value("uuid()")),
            "time" if literal(1).is_none_or(|name| name.is_empty()) => {
                let format = literal(0).unwrap_or_default();
                let own = match format.as_str() {
                    "" => "unix_ms",
                    "/1000" => "unix_s",
                    format if format.starts_with("yyyy-MM-dd'T'HH:mm:ss") => "rfc3339",
                    _ => return None,
                };
                Some(ImportedText::value(format!("now({own})")))
            }
            _ => None,
        }
    }

    /// A property that the command line of JMeter gives.
    fn property(&mut self, name: &str, default: Option<String>) -> Option<ImportedText> {
        let Some(default) = default else {
            return is_name(name).then(|| self.of_environment(name));
        };
        self.all.remark(format!("The property {name} has its default: '{default}'."));
        Some(default.into())
    }

    /// A value that nothing in the plan sets.
    fn of_environment(&mut self, name: &str) -> ImportedText {
        let value = format!("env({})", name.replace('-', "_"));
        self.all.remark(format!("Nothing sets {name}, which is ${{{value}}} here."));
        ImportedText::value(value)
    }

    /// A part of a server's name. A variable that nothing sets is one of the environment.
    pub(super) fn part_of_server(&mut self, text: &str, of: JmeterElement<'a>) -> ImportedText {
        let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        match name.filter(|name| is_name(name)) {
            Some(name) if self.value_of(name).is_none() => self.of_environment(name),
            _ => self.filled(text, of),
        }
    }
}

/// A text without the backslashes before signs of references.
fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.next_if(|next| c == '\\' && matches!(next, '$' | ',' | '\\'));
        unescaped.push(next.unwrap_or(c));
    }
    unescaped
}

/// The arguments of a call: what stands between commas outside of brackets.
fn divided(arguments: &str) -> Vec<&str> {
    let (mut open, mut is_escaped) = (0, false);
    let divides = |c: char| {
        let is_comma = c == ',' && open == 0 && !is_escaped;
        open += i32::from(matches!(c, '(' | '{')) - i32::from(matches!(c, ')' | '}'));
        is_escaped = c == '\\' && !is_escaped;
        is_comma
    };
    arguments.split(divides).collect()
}

/// The same text whose values are pieces of their place: JMeter encodes none of them.
pub(super) fn unencoded(text: &ImportedText) -> ImportedText {
    // Those of calls have no characters that are encoded anywhere.
    const PLAIN: [&str; 3] = ["random(", "uuid(", "now(unix"];
    text.map_values(|value| {
        let is_plain = PLAIN.iter().any(|call| value.starts_with(call));
        if is_plain { value.to_owned() } else { format!("raw({value})") }
    })
}
