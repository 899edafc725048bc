//! Names and values in texts.

use super::super::text::{ImportedText, TextPart};

impl ImportedText {
    /// The value that it consists of, if that is all.
    pub(in crate::import) fn only_value(&self) -> Option<&str> {
        match &self.0[..] {
            [TextPart::Value(expression)] => Some(expression),
            _ => None,
        }
    }

    /// Puts an expression in the place of another; whether it was there.
    pub(in crate::import) fn replace_value(&mut self, value: &str, by: &str) -> bool {
        let mut is_there = false;
        for part in &mut self.0 {
            if let TextPart::Value(own) = part
                && own == value
            {
                *part = TextPart::Value(by.to_owned());
                is_there = true;
            }
        }
        is_there
    }

    /// Names that its values are made of: variables and columns of records.
    pub(in crate::import) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in &self.0 {
            if let TextPart::Value(expression) = part {
                names_of(expression, &mut names);
            }
        }
        names
    }
}

/// Names in an expression, also in the templates of its texts.
fn names_of<'a>(expression: &'a str, names: &mut Vec<&'a str>) {
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end.max(c.len_utf8()));
        rest = after;
        match c {
            '\'' | '"' => {
                let (text, after) = rest.split_once(c).unwrap_or((rest, ""));
                // A template's values lie between `${` and `}`.
                let values = text.split("${").skip(1).filter_map(|value| value.split('}').next());
                values.for_each(|value| names_of(value, names));
                rest = after;
            }
            c if !(c.is_alphabetic() || c == '_') => {}
            _ => match rest.strip_prefix('(') {
                // Their arguments are words.
                Some(argument) if matches!(word, "env" | "now") => {
                    rest = argument.split_once(')').map_or("", |(_, after)| after);
                }
                Some(argument) => rest = argument,
                None => names.push(word),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for (expression, names) in [
            ("token", &["token"][..]),
            ("users.name", &["users.name"]),
            ("random(1,50)", &[]),
            ("env(HOME)", &[]),
            ("raw(next)", &["next"]),
            ("hmac_sha256(env(KEY), 'a ${b} c ${raw(d)}')", &["b", "d"]),
            ("now(rfc3339)", &[]),
            ("", &[]),
        ] {
            assert_eq!(ImportedText::value(expression).names(), names, "{expression}");
        }
    }
}
