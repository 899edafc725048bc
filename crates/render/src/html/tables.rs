//! Lines and tables as markup.

use super::markup::{Element, Markup};
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::number::TIE;

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

/// Writes a table in a box of its own, in which it scrolls where it is too wide.
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
    use super::tied;

    #[test]
    fn a_number_and_its_unit_are_not_parted() {
        let read =
            tied("load adds 892 ms to 20 ms (17 %), with 5 servers and 6.4 users: s 5 seconds");
        let expected =
            "load adds 892~ms to 20~ms (17~%), with 5 servers and 6.4~users: s 5 seconds";
        assert_eq!(read.replace('\u{a0}', "~"), expected);
    }
}
