//! Texts with values in them: `/items/${id}`.

/// A text that becomes a template of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedText(pub(super) Vec<TextPart>);

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

    /// The text up to a byte of its first part, and the rest.
    pub(super) fn divided(&self, at: usize) -> (ImportedText, ImportedText) {
        let Some(TextPart::Literal(text)) = self.0.first() else {
            return (ImportedText::default(), self.clone());
        };
        let (before, after) = text.split_at(at.min(text.len()));
        let mut behind = ImportedText::from(after);
        behind.append(&ImportedText(self.0[1..].to_vec()));
        (before.into(), behind)
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
}

impl<T: Into<String>> From<T> for ImportedText {
    fn from(text: T) -> ImportedText {
        let text = text.into();
        ImportedText(if text.is_empty() { Vec::new() } else { vec![TextPart::Literal(text)] })
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
}
