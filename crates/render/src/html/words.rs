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

/// As it can be copied and pasted: without spaces that are none.
pub(super) fn untied(text: &str) -> String {
    text.replace(TIE, " ")
}

/// Units that stay on the line of their number.
const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "users", "times", "Hz", "KiB/s"];

/// As it is read: no line ends between a number and its unit.
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

/// More letters than this in the names of rows are broken into lines where there is little room.
const LONG_NAME: usize = 14;

/// Writes a table in a box of its own, in which it scrolls where it is too wide.
pub(super) fn write_table(m: &mut Markup, caption: &str, table: &Table) {
    let columns = table.columns();
    let rows = table.rows();
    if rows == 0 {
        return;
    }
    let names = columns.first().map_or(&[][..], |(_, _, cells)| cells);
    let is_long = names.iter().any(|name| name.width() > LONG_NAME);
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

/// A box for what may be too wide: it scrolls, by keys too, and is seen to.
pub(super) fn scrolling<'a>(m: &'a mut Markup, name: &str) -> Element<'a> {
    let wide = m.el("div").attr("class", "wide").attr("tabindex", "0");
    wide.attr("role", "region").attr("aria-label", name)
}

fn write_head(m: &mut Markup, table: &Table) {
    if table.columns().iter().all(|(head, ..)| head.is_empty()) {
        return;
    }
    m.raw("<thead><tr>");
    for (head, align, _) in table.columns() {
        let cell = m.el("th").attr("scope", "col");
        cell.maybe("class", side(*align)).text(head);
    }
    m.raw("</tr></thead>");
}

fn write_row(m: &mut Markup, table: &Table, row: usize) {
    for (i, (_, align, cells)) in table.columns().iter().enumerate() {
        let cell = match i {
            0 => m.el("th").attr("scope", "row"),
            _ => m.el("td"),
        };
        let cell = cell.maybe("class", side(*align));
        cell.with(|m| {
            cells
                .get(row)
                .into_iter()
                .for_each(|line| write_line(m, line))
        });
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
