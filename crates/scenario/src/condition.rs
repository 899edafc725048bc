//! Conditions: comparisons of two texts, joined by `and`, `or` and `not`.

use super::fault::{Position, Read, bail, fault};
use super::fields::text;
use super::names::TemplateScope;
use super::template;
use super::tree::{Node, Scalar};
use knee_load::session::{Condition, Pattern, Relation, Template};
use knee_load::spec::ParseError;
use std::sync::Arc;

/// The operators, longer ones first. `None` takes a pattern.
const OPERATORS: [(&str, Option<Relation>); 8] = [
    ("==", Some(Relation::Equal)),
    ("!=", Some(Relation::NotEqual)),
    ("<=", Some(Relation::AtMost)),
    (">=", Some(Relation::AtLeast)),
    ("<", Some(Relation::Less)),
    (">", Some(Relation::Greater)),
    ("contains", Some(Relation::Contains)),
    ("matches", None),
];

/// Words that no side without quotes has.
const WORDS: [&str; 5] = ["and", "or", "not", "contains", "matches"];

const SHAPE: &str = "write \"${name} != ''\", with ==, !=, <, >, <=, >=, contains or matches";

/// The deepest nesting of brackets and `not`.
const DEPTH_MAX: usize = 32;

/// Reads a condition.
pub(super) fn read(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Condition> {
    let scalar = text(node, "a condition such as \"${name} != ''\"")?;
    let mut parser = ConditionParser { node, scalar, at: 0, depth: 0, scope };
    let condition = parser.any()?;
    match parser.rest() {
        "" => Ok(condition),
        rest if rest.starts_with(')') => bail!(parser.here(), "')' without '(': leave it out"),
        _ => bail!(
            parser.here(),
            "two comparisons in one condition: join them with 'and' or 'or', or quote a text"
        ),
    }
}

struct ConditionParser<'a, 's> {
    node: &'a Node,
    scalar: &'a Scalar,
    /// The byte that is read next.
    at: usize,
    depth: usize,
    scope: &'a mut TemplateScope<'s>,
}

impl<'a> ConditionParser<'a, '_> {
    /// What is still to be read, without blanks before it.
    fn rest(&mut self) -> &'a str {
        let rest = &self.scalar.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn here(&self) -> Position {
        self.place(self.at)
    }

    /// The place of this byte in the file.
    fn place(&self, byte: usize) -> Position {
        let before = self.scalar.text[..byte].chars().count();
        self.scalar.begins.map_or(self.node.at, |begins| begins.right(before))
    }

    /// Takes a word that stands here.
    fn word(&mut self, word: &str) -> bool {
        let is_there = starts_with_word(self.rest(), word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn any(&mut self) -> Read<Condition> {
        self.joined("or", Self::all, Condition::Any)
    }

    fn all(&mut self) -> Read<Condition> {
        self.joined("and", Self::one, Condition::All)
    }

    /// One part, or several that a word joins.
    fn joined(
        &mut self,
        word: &str,
        part: impl Fn(&mut Self) -> Read<Condition>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Read<Condition> {
        let mut parts = vec![part(self)?];
        while self.word(word) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn one(&mut self) -> Read<Condition> {
        let from = self.at;
        let is_not = self.word("not");
        if !is_not && !self.rest().starts_with('(') {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            bail!(self.here(), "too deep: expected at most {DEPTH_MAX} levels in a condition");
        }
        let condition = if is_not {
            Condition::Not(Box::new(self.one()?))
        } else {
            self.at += 1;
            let condition = self.any()?;
            if !self.rest().starts_with(')') {
                bail!(self.place(from), "'(' without ')': close it");
            }
            self.at += 1;
            condition
        };
        self.depth -= 1;
        Ok(condition)
    }

    /// `LEFT OPERATOR RIGHT`.
    fn comparison(&mut self) -> Read<Condition> {
        let left = self.side();
        let rest = self.rest();
        let is_here = |operator: &str| match operator.as_bytes().first() {
            Some(b'a'..=b'z') => starts_with_word(rest, operator),
            _ => rest.starts_with(operator),
        };
        let Some((written, relation)) = OPERATORS.iter().find(|(written, _)| is_here(written))
        else {
            if rest.starts_with('=') {
                bail!(self.here(), "'=' is no comparison: {SHAPE}");
            }
            bail!(self.node.at, "a condition compares two texts: {SHAPE}");
        };
        self.at += written.len();
        if self.rest().starts_with('=') {
            bail!(self.here(), "'{written}=' is no comparison: {SHAPE}");
        }
        let right = self.side();
        let left = self.template(left)?;
        match relation {
            Some(relation) => {
                Ok(Condition::Compared { left, relation: *relation, right: self.template(right)? })
            }
            None => {
                let (from, to) = self.unquoted(right)?;
                let pattern = pattern(&self.scalar.text[from..to]);
                let pattern = pattern.or_else(|wrong| fault(self.place(from), wrong.0))?;
                Ok(Condition::Matches { text: left, pattern })
            }
        }
    }

    /// The bytes of a side: up to an operator, a bracket or a word that joins, outside of quotes
    /// and templates.
    fn side(&mut self) -> (usize, usize) {
        let text = self.rest();
        let from = self.at;
        let (mut quote, mut depth, mut before) = (None, 0usize, ' ');
        let mut end = text.len();
        for (at, c) in text.char_indices() {
            match (quote, c) {
                (None, '{') if before == '$' => depth += 1,
                (None, '}') => depth = depth.saturating_sub(1),
                (Some(open), c) if open == c => quote = None,
                (None, '\'' | '"') => quote = Some(c),
                (None, _) if depth == 0 && ends_side(&text[at..], before) => {
                    end = at;
                    break;
                }
                _ => {}
            }
            before = c;
        }
        self.at = from + end;
        (from, from + text[..end].trim_end().len())
    }

    /// The bytes of a side without the quotes around it.
    fn unquoted(&self, (from, to): (usize, usize)) -> Read<(usize, usize)> {
        let text = &self.scalar.text[from..to];
        if text.is_empty() {
            bail!(self.place(from), "a side of the condition is missing: {SHAPE}");
        }
        let is_quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
        let is_quoted = is_quoted('\'') || is_quoted('"');
        Ok(if is_quoted { (from + 1, to - 1) } else { (from, to) })
    }

    fn template(&mut self, side: (usize, usize)) -> Read<Template> {
        let (from, to) = self.unquoted(side)?;
        let part = Scalar {
            text: Arc::from(&self.scalar.text[from..to]),
            is_quoted: true,
            begins: self.scalar.begins.map(|_| self.place(from)),
        };
        template::read(self.node, &part, self.scope)
    }
}

/// Reads a regular expression, which is settled before the run.
pub(super) fn pattern(text: &str) -> Result<Pattern, ParseError> {
    if text.contains("${") {
        let wrong = "a pattern has no templates: write it out, or compare with 'contains'";
        return Err(ParseError(wrong.to_owned()));
    }
    Pattern::parse(text)
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c)))
}

/// Whether a side ends before this text, where `before` stands before it.
fn ends_side(text: &str, before: char) -> bool {
    text.starts_with(['=', '<', '>', '(', ')'])
        // A '!' alone is text.
        || text.starts_with("!=")
        || before.is_whitespace() && WORDS.iter().any(|word| starts_with_word(text, word))
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::super::tests::Folder;
    use super::super::tree;
    use super::*;

    /// A condition as it was understood, its variables by their numbers.
    fn told(condition: &Condition) -> String {
        let side = |template: &Template| {
            template.0.iter().map(|piece| format!("{piece:?}")).collect::<Vec<_>>().join("+")
        };
        let all = |of: &[Condition], word: &str| {
            format!("({})", of.iter().map(told).collect::<Vec<_>>().join(word))
        };
        match condition {
            Condition::Compared { left, relation, right } => {
                let text = format!("{} {relation:?} {}", side(left), side(right));
                text.replace("Text(\"", "'").replace("\")", "'").replace("Variable", "v")
            }
            Condition::Matches { text, pattern } => {
                format!("{} ~ {pattern}", side(text).replace("Variable", "v"))
            }
            Condition::All(of) => all(of, " and "),
            Condition::Any(of) => all(of, " or "),
            Condition::Not(of) => format!("not {}", told(of)),
        }
    }

    fn read_text(text: &str) -> Result<String, String> {
        let names = Names {
            variables: vec![("a".to_owned(), true), ("b".to_owned(), true)],
            ..Names::default()
        };
        let node = tree::parse(serde_json::to_string(text).unwrap().as_bytes()).unwrap();
        let mut inputs = Folder;
        let scope = &mut TemplateScope { names: &names, inputs: &mut inputs };
        let read = read(&node, scope).map_err(|fault| fault.in_file("f").0)?;
        Ok(told(&read))
    }

    #[test]
    fn conditions_are_read() {
        for (text, want) in [
            ("${a} == 1", "v(0) Equal '1'"),
            ("${a}!=''", "v(0) NotEqual "),
            ("a b <= ${b}", "'a b' AtMost v(1)"),
            ("${a} contains 'x and y'", "v(0) Contains 'x and y'"),
            ("${a} matches '^o(r)d$'", "v(0) ~ ^o(r)d$"),
            ("${a} == 1 and ${b} > 2", "(v(0) Equal '1' and v(1) Greater '2')"),
            (
                "${a} == 1 or ${b} > 2 and not ${b} < 9",
                "(v(0) Equal '1' or (v(1) Greater '2' and not v(1) Less '9'))",
            ),
            (
                "(${a} == 1 or ${a} == 2) and ${b} >= 3",
                "((v(0) Equal '1' or v(0) Equal '2') and v(1) AtLeast '3')",
            ),
            ("not (${a} == 1)", "not v(0) Equal '1'"),
            ("order == android", "'order' Equal 'android'"),
            ("${a} == \"it's\"", "v(0) Equal 'it's'"),
            ("${a} == '!'", "v(0) Equal '!'"),
        ] {
            assert_eq!(read_text(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let deep = "(".repeat(40);
        for (text, want) in [
            ("${a}", "f:1:1: a condition compares two texts"),
            ("", "f:1:1: a condition compares two texts"),
            ("${a} = 1", "f:1:7: '=' is no comparison"),
            ("${a} === 1", "f:1:9: '=='= is no comparison"),
            ("${a} =< 1", "f:1:7: '=' is no comparison"),
            ("${a} ==", "f:1:9: a side of the condition is missing"),
            ("== 1", "f:1:2: a side of the condition is missing"),
            ("${a} == 1 == 2", "f:1:12: two comparisons in one condition"),
            ("${a} == 1 and", "f:1:1: a condition compares two texts"),
            ("${a} == 1 or or ${b} == 2", "f:1:1: a condition compares two texts"),
            ("(${a} == 1", "f:1:2: '(' without ')'"),
            ("${a} == 1)", "f:1:11: ')' without '('"),
            ("${c} == 1", "f:1:4: unknown variable 'c'"),
            ("${a} == 1 and ${c} == 1", "f:1:18: unknown variable 'c'"),
            ("${a} matches '('", "f:1:16: '(' is no regular expression"),
            ("${a} matches '${b}'", "f:1:16: a pattern has no templates"),
            ("not", "f:1:1: a condition compares two texts"),
            (&deep, "f:1:"),
        ] {
            let wrong = read_text(text).unwrap_err();
            assert!(wrong.starts_with(&want.replace("'=='=", "'==='")), "{text}: {wrong}");
        }
        assert!(read_text(&deep).unwrap_err().contains("too deep"));
    }
}
