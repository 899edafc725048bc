//! Writes markup. All text of a report passes through [`Markup::text`] or [`Element::attr`], which
//! escape it. So no text can become a tag, an attribute or a script. Lines and tables are written
//! here.
//!
//! A template library would be larger than this: pages have no logic, and SVG repeats a few
//! elements many times with few bytes each.

use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::number::TIE;
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
                // HTML allows no control characters, and others could mislead.
                c if is_hidden(c) => push_shown(self.0, c),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Writes a line, each piece in its ink.
pub(super) fn write_line(m: &mut Markup, line: &Line) {
    for (ink, text) in line.pieces() {
        match class_of(*ink) {
            None => m.text(text),
            Some(class) => m.el("span").attr("class", class).text(text),
        }
    }
}

/// The text with ordinary spaces in place of no-break spaces, for copying.
pub(super) fn untied(text: &str) -> String {
    text.replace(TIE, " ")
}

/// Units that stay on the line of their number.
const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "users", "times", "Hz", "KiB/s"];

/// The text with no-break spaces between numbers and units.
pub(super) fn tied(text: &str) -> String {
    let mut tied = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(' ') {
        tied.push_str(before);
        let unit = after.split([' ', ',', ';', ':', '.', ')']).next();
        let is_unit = unit.is_some_and(|unit| UNITS.contains(&unit));
        let is_number = before.ends_with(|c: char| c.is_ascii_digit());
        tied.push(if is_number && is_unit { TIE } else { ' ' });
        rest = after;
    }
    tied + rest
}

/// The longest name of a row that narrow windows show unbroken, in characters.
const LONG_NAME: usize = 14;

/// Writes a table in its own box, in which it scrolls if it is too wide. The caption is for
/// screen readers only.
pub(super) fn write_table(m: &mut Markup, caption: &str, table: &Table) {
    let rows = table.rows();
    let Some(names) = table.columns.first().filter(|_| rows > 0) else {
        return;
    };
    let is_long = names.cells.iter().any(|name| name.width() > LONG_NAME);
    scrolling(m, caption).with(|m| {
        let element = m.el("table").maybe("class", is_long.then_some("named"));
        element.with(|m| {
            m.el("caption").text(caption);
            write_head(m, table);
            m.el("tbody").with(|m| {
                for row in 0..rows {
                    m.el("tr").with(|m| write_row(m, table, row));
                }
            });
        });
    });
}

/// A box that scrolls if its content is too wide, also by keys.
pub(super) fn scrolling<'a>(m: &'a mut Markup, name: &str) -> Element<'a> {
    let wide = m.el("div").attr("class", "wide").attr("tabindex", "0");
    wide.attr("role", "region").attr("aria-label", name)
}

fn write_head(m: &mut Markup, table: &Table) {
    if table.columns.iter().all(|column| column.title.is_empty()) {
        return;
    }
    m.raw("<thead><tr>");
    for column in &table.columns {
        let cell = m.el("th").attr("scope", "col");
        cell.maybe("class", side(column.align)).text(&column.title);
    }
    m.raw("</tr></thead>");
}

fn write_row(m: &mut Markup, table: &Table, row: usize) {
    for (i, column) in table.columns.iter().enumerate() {
        let cell = match i {
            0 => m.el("th").attr("scope", "row"),
            _ => m.el("td"),
        };
        cell.maybe("class", side(column.align)).with(|m| write_line(m, &column.cells[row]));
    }
}

fn side(align: Align) -> Option<&'static str> {
    (align == Align::Left).then_some("w")
}

fn class_of(ink: Ink) -> Option<&'static str> {
    match ink {
        Ink::Plain | Ink::Data | Ink::Guide => None,
        Ink::Strong => Some("strong"),
        Ink::Dim => Some("soft"),
        Ink::Good => Some("good"),
        Ink::Warn => Some("warn"),
        Ink::Bad => Some("bad"),
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

    #[test]
    fn a_number_and_its_unit_are_not_parted() {
        let read =
            tied("load adds 892 ms to 20 ms (17 %), with 5 servers and 6.4 users: s 5 seconds");
        let expected =
            "load adds 892~ms to 20~ms (17~%), with 5 servers and 6.4~users: s 5 seconds";
        assert_eq!(read.replace('\u{a0}', "~"), expected);
    }
}
