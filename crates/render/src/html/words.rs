//! Lines and tables of the text report as markup.

use super::markup::Markup;
use crate::number::TIE;
use crate::text::line::{Ink, Line};
use crate::text::table::{Align, Table};

/// Writes a line, each piece in its ink.
pub fn write_line(m: &mut Markup, line: &Line) {
    for (ink, text) in line.pieces() {
        match class_of(*ink) {
            None => m.text(text),
            Some(class) => m.el("span").attr("class", class).text(text),
        }
    }
}

/// The text of a line alone.
pub fn plain(line: &Line) -> String {
    line.pieces()
        .iter()
        .map(|(_, text)| text.as_str())
        .collect()
}

/// As it can be copied and pasted: without spaces that are none.
pub fn untied(text: &str) -> String {
    text.replace(TIE, " ")
}

/// Writes a table in a box of its own, in which it scrolls where it is too wide.
pub fn write_table(m: &mut Markup, caption: &str, table: &Table) {
    let columns = table.columns();
    let rows = columns.first().map_or(0, |(_, _, cells)| cells.len());
    if rows == 0 {
        return;
    }
    let wide = m.el("div").attr("class", "wide").attr("tabindex", "0");
    wide.attr("role", "region")
        .attr("aria-label", caption)
        .with(|m| {
            m.el("table").with(|m| {
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
