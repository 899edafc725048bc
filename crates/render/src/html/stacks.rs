//! Bars made of parts, as inline SVG that is stretched to the room there is.

use super::markup::Markup;
use super::svg::tone_class;
use crate::document::stacks::{Stack, Stacks};
use crate::number::time_short;

/// The width of a bar, in units of its view.
const WIDTH: f64 = 1_000.0;

/// Writes them.
pub(super) fn draw(m: &mut Markup, stacks: &Stacks) {
    m.el("div").attr("class", "stacks").with(|m| {
        m.el("div").attr("class", "caption").with(|m| {
            m.el("b").text(&stacks.title);
            m.el("span").attr("class", "legend").with(|m| {
                for (name, tone) in &stacks.parts {
                    m.el("span").attr("class", "key").with(|m| {
                        let swatch = m.el("svg").attr("viewBox", "0 0 20 10");
                        let swatch = swatch
                            .attr("class", tone_class(*tone))
                            .attr("aria-hidden", "true");
                        swatch.with(|m| rectangle(m, 0.0, 20.0));
                        m.text(name);
                    });
                }
            });
        });
        stacks.rows.iter().for_each(|row| draw_row(m, row));
        m.el("p").attr("class", "note").text(&stacks.note);
    });
}

fn draw_row(m: &mut Markup, row: &Stack) {
    let parts = row.parts.iter();
    let words: Vec<String> = parts
        .map(|(name, _, ns)| format!("{name} {}", time_short(*ns)))
        .collect();
    let words = words.join(", ");
    let stack = m.el("div").attr("class", "stack").attr("title", &words);
    stack.with(|m| {
        m.el("span").text(&row.name);
        let view = m.el("svg").attr("viewBox", format_args!("0 0 {WIDTH} 10"));
        let view = view.attr("preserveAspectRatio", "none").attr("role", "img");
        view.attr("aria-label", format_args!("{}: {words}", row.name))
            .with(|m| {
                let mut left = 0.0;
                for (_, tone, ns) in &row.parts {
                    let width = WIDTH * *ns as f64 / row.whole_ns.max(1) as f64;
                    let group = m.el("g").attr("class", tone_class(*tone));
                    group.with(|m| rectangle(m, left, width));
                    left += width;
                }
            });
        m.el("span").attr("class", "value").text(&row.value);
    });
}

fn rectangle(m: &mut Markup, x: f64, width: f64) {
    let rect = m.el("rect").attr("x", format_args!("{x:.1}"));
    let rect = rect.attr("width", format_args!("{width:.1}"));
    rect.attr("height", 10).void();
}
