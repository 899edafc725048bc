//! Writes markup. All text of a report passes through [`Markup::text`] or [`Element::attr`], which
//! escape it. So no text can become a tag, an attribute or a script.
//!
//! A template library would be larger than this: pages have no logic, and SVG repeats a few
//! elements many times with few bytes each.

use knee_load::shown::{is_hidden, push_shown};
use std::fmt::{self, Display, Write};

/// A document under construction.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    out: String,
}

impl Markup {
    /// The markup as text.
    pub(crate) fn into_string(self) -> String {
        self.out
    }

    /// Text, which is escaped.
    pub(crate) fn text(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(Escaping(&mut self.out), "{text}");
    }

    /// Bytes that are markup already; never from a report.
    pub(crate) fn raw(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    /// Appends another document.
    pub(crate) fn append(&mut self, other: Markup) {
        self.out.push_str(&other.out);
    }

    /// Begins an element, which ends with its content.
    pub(crate) fn el(&mut self, tag: &'static str) -> Element<'_> {
        self.out.push('<');
        self.out.push_str(tag);
        Element { markup: self, tag }
    }
}

/// A begun tag.
#[derive(Debug)]
#[must_use = "an element without content is ended by void()"]
pub(crate) struct Element<'a> {
    markup: &'a mut Markup,
    tag: &'static str,
}

impl Element<'_> {
    /// An attribute; its value is escaped.
    pub(crate) fn attr(self, name: &'static str, value: impl Display) -> Self {
        let out = &mut self.markup.out;
        out.push(' ');
        out.push_str(name);
        out.push_str("=\"");
        let _ = write!(Escaping(out), "{value}");
        out.push('"');
        self
    }

    /// An attribute, if it has a value.
    pub(crate) fn maybe(self, name: &'static str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    /// Ends it without content, as `<meta/>` or `<line/>`.
    pub(crate) fn void(self) {
        self.markup.out.push_str("/>");
    }

    /// With this text in it.
    pub(crate) fn text(self, text: impl Display) {
        self.with(|m| m.text(text));
    }

    /// With whatever `content` writes in it.
    pub(crate) fn with(self, content: impl FnOnce(&mut Markup)) {
        self.markup.out.push('>');
        content(self.markup);
        self.markup.out.push_str("</");
        self.markup.out.push_str(self.tag);
        self.markup.out.push('>');
    }
}

/// Escapes what is written through it, for text and for attributes in double quotes alike.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(c),
                // HTML allows no control characters, and nobody is to be misled by others.
                c if is_hidden(c) => push_shown(self.0, c),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_written_becomes_markup() {
        let mut m = Markup::default();
        let evil = "\"><script>alert('1 & 2')</script>\u{0}";
        m.el("p").attr("title", evil).text(evil);
        let page = m.into_string();
        assert_eq!(page.matches('<').count(), 2, "{page}");
        assert_eq!(page.matches('"').count(), 2, "{page}");
        assert!(!page.contains('\u{0}'));
        let escaped = "&quot;&gt;&lt;script&gt;alert(&#39;1 &amp; 2&#39;)&lt;/script&gt;\\u{0}";
        assert_eq!(page, format!("<p title=\"{escaped}\">{escaped}</p>"));
    }

    #[test]
    fn elements_nest() {
        let mut m = Markup::default();
        m.el("ul").maybe("id", None::<&str>).with(|m| {
            m.el("li").attr("class", "a").text(1);
            m.el("br").void();
        });
        assert_eq!(m.into_string(), "<ul><li class=\"a\">1</li><br/></ul>");
    }
}
