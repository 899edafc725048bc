//! Texts with values in them: `/items/${id}`.

/// A text that becomes a template of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedText(Vec<TextPart>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum TextPart {
    /// Text as it is, whatever it holds.
    Literal(String),
    /// What stands between `${` and `}`: a name or a call.
    Value(String),
}

impl ImportedText {
    /// A text of one value, such as `token`, `users.name` or `random(1,5)`.
    pub fn value(expression: impl Into<String>) -> ImportedText {
        ImportedText(vec![TextPart::Value(expression.into())])
    }

    /// A call with texts, such as `base64('${user}:${password}')`. `None` if one of them has both
    /// kinds of quotes, as a template cannot have it then.
    pub fn call(function: &str, arguments: &[&ImportedText]) -> Option<ImportedText> {
        let quoted = |argument: &&ImportedText| {
            let template = argument.template();
            let quote = ['\'', '"'].into_iter().find(|quote| !template.contains(*quote))?;
            Some(format!("{quote}{template}{quote}"))
        };
        let arguments: Option<Vec<String>> = arguments.iter().map(quoted).collect();
        Some(ImportedText::value(format!("{function}({})", arguments?.join(", "))))
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(TextPart::Literal(last)) => last.push_str(text),
            _ => self.0.push(TextPart::Literal(text.to_owned())),
        }
    }

    /// Appends another text.
    pub fn append(&mut self, other: &ImportedText) {
        for part in &other.0 {
            match part {
                TextPart::Literal(text) => self.push(text),
                value => self.0.push(value.clone()),
            }
        }
    }

    /// The parts; no two literals stand side by side, and none is empty.
    pub fn parts(&self) -> &[TextPart] {
        &self.0
    }

    /// The text, if there is no value in it.
    pub fn literal(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [TextPart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with each literal changed.
    pub(super) fn map(&self, change: impl Fn(&str) -> String) -> ImportedText {
        let mut mapped = ImportedText::default();
        for part in &self.0 {
            match part {
                TextPart::Literal(text) => mapped.push(&change(text)),
                value => mapped.0.push(value.clone()),
            }
        }
        mapped
    }

    /// The same with each value changed.
    pub(super) fn map_values(&self, change: impl Fn(&str) -> String) -> ImportedText {
        let part = |part: &TextPart| match part {
            TextPart::Value(expression) => TextPart::Value(change(expression)),
            literal => literal.clone(),
        };
        ImportedText(self.0.iter().map(part).collect())
    }

    /// The text with letters for its values, for checks of what is around them.
    pub(super) fn with_letters(&self) -> String {
        let part = |part: &TextPart| match part {
            TextPart::Literal(text) => text.clone(),
            TextPart::Value(_) => "x".to_owned(),
        };
        self.0.iter().map(part).collect()
    }

    /// The template: `$${` stands for a plain `${`.
    pub fn template(&self) -> String {
        let mut template = String::new();
        for (at, part) in self.0.iter().enumerate() {
            match part {
                TextPart::Value(expression) => template.push_str(&format!("${{{expression}}}")),
                TextPart::Literal(text) => {
                    let text = text.replace("${", "$${");
                    // With the value's own `$` that would be a plain `${`.
                    let is_before_value = at + 1 < self.0.len();
                    match text.strip_suffix('$').filter(|_| is_before_value) {
                        Some(before) => template.push_str(&format!("{before}${{raw('$')}}")),
                        None => template.push_str(&text),
                    }
                }
            }
        }
        template
    }

    /// Names that its values are made of: variables and columns of records.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in &self.0 {
            if let TextPart::Value(expression) = part {
                names_of(expression, &mut names);
            }
        }
        names
    }
}

impl<T: Into<String>> From<T> for ImportedText {
    fn from(text: T) -> ImportedText {
        let text = text.into();
        ImportedText(if text.is_empty() { Vec::new() } else { vec![TextPart::Literal(text)] })
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
    fn templates_have_their_text() {
        let mut text = ImportedText::from("a ${b} costs $");
        text.append(&ImportedText::value("price"));
        text.push("$");
        text.push("{");
        assert_eq!(text.template(), "a $${b} costs ${raw('$')}${price}$${");
        assert_eq!(text.literal(), None);
        let user = ImportedText::call("base64", &[&text.map(|_| ":".to_owned())]);
        assert_eq!(user.unwrap().template(), "${base64(':${price}:')}");
    }

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
