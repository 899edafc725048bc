//! `when`: two texts and what is asked of them.

use super::fault::{Read, bail};
use super::fields::text;
use super::names::TemplateScope;
use super::template;
use super::tree::{Node, Scalar};
use knee_load::session::{Condition, Relation, Template};
use std::sync::Arc;

const OPERATORS: [(&str, Relation); 4] = [
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

const SHAPE: &str = "write \"${name} != ''\", with ==, !=, < or >";

/// Reads `LEFT OPERATOR RIGHT`.
pub(super) fn read(node: &Node, scope: &mut TemplateScope<'_>) -> Read<Condition> {
    let scalar = text(node, "a condition such as \"${name} != ''\"")?;
    let whole = &*scalar.text;
    let Some(at) = operator(whole) else {
        bail!(node.at, "a condition compares two texts: {SHAPE}");
    };
    let rest = &whole[at..];
    let known = OPERATORS.iter().find(|(written, _)| rest.starts_with(written));
    let Some(&(written, relation)) =
        known.filter(|(written, _)| !rest[written.len()..].starts_with('='))
    else {
        bail!(node.at, "'=', '<=' and '>=' are no comparisons: {SHAPE}");
    };
    let after = at + written.len();
    if operator(&whole[after..]).is_some() {
        bail!(node.at, "two comparisons in one condition: {SHAPE}");
    }
    Ok(Condition {
        left: side(node, scalar, [0, at], scope)?,
        relation,
        right: side(node, scalar, [after, whole.len()], scope)?,
    })
}

/// Where an operator stands, outside of quotes and templates.
fn operator(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0usize);
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '{') if before == '$' => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            // A '!' alone is text.
            (None, '=' | '<' | '>') if depth == 0 => return Some(at),
            (None, '!') if depth == 0 && text[at..].starts_with("!=") => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

/// One side, without the blanks and quotes around it.
fn side(
    node: &Node,
    scalar: &Scalar,
    [from, to]: [usize; 2],
    scope: &mut TemplateScope<'_>,
) -> Read<Template> {
    let text = &scalar.text[from..to];
    let mut begin = from + (text.len() - text.trim_start().len());
    let mut text = text.trim();
    let is_empty = text.is_empty();
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
        if let Some(inner) = inner {
            (text, begin) = (inner, begin + 1);
            break;
        }
    }
    if is_empty {
        bail!(node.at, "a side of the condition is missing: {SHAPE}");
    }
    let before = scalar.text[..begin].chars().count();
    let part = Scalar {
        text: Arc::from(text),
        is_quoted: true,
        begins: scalar.begins.map(|at| at.right(before)),
    };
    template::read(node, &part, scope)
}
