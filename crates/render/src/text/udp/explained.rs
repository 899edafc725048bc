//! Why two laws differ: what each change does, and the explanations that stand or fall with it.

use super::clients::interval;
use crate::number::{MISSING, estimate, fixed, words};
use crate::text::line::{Ink, Line};
use crate::text::page::{INDENT, Page};
use crate::text::table::{Align, Table};
use knee_core::experiment::udp::report::{EffectRow, UdpConclusion};

/// Writes it, where there is something explained.
pub fn show(page: &mut Page, conclusion: &UdpConclusion) {
    let lists = [
        ("Supported", Ink::Good, ['✓', '+'], &conclusion.supported),
        ("Ruled out", Ink::Plain, ['✗', 'x'], &conclusion.ruled_out),
        ("Undecided", Ink::Warn, ['?', '?'], &conclusion.undecided),
    ];
    for (title, ink, marks, lines) in lists {
        if lines.is_empty() {
            continue;
        }
        page.heading(title, "");
        let mark = if page.unicode { marks[0] } else { marks[1] };
        for line in lines {
            let text = Line::of(ink, format!("{mark} ")).append_explanation(line);
            page.paragraph(INDENT, INDENT + 2, text);
        }
    }
    show_effects(page, &conclusion.effects);
}

impl Line {
    /// `name: claim: because`, the name in other words.
    pub fn append_explanation(mut self, text: &str) -> Line {
        match text.split_once(": ") {
            Some((name, rest)) => {
                self.push(Ink::Strong, words(name));
                self.push(Ink::Plain, format!(": {rest}"));
            }
            None => self.push(Ink::Plain, text),
        }
        self
    }
}

fn show_effects(page: &mut Page, effects: &[EffectRow]) {
    let Some(first) = effects.first() else {
        return;
    };
    let pairs = effects.iter().map(|e| e.pairs);
    let (least, most) = (pairs.clone().min(), pairs.max());
    let pairs = match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or(0).to_string(),
    };
    page.heading(
        "What each change does",
        &format!("to {}, {pairs} pairs of trials each", first.base),
    );
    let table = table(effects, page.unicode);
    if table.width(page.unicode) <= page.inner_width() {
        page.table(&table);
    } else {
        show_below_each_other(page, effects);
    }
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, NOTE));
}

/// What the columns are.
pub const NOTE: &str = "sent: ratio of the rates, changed over unchanged; loss: changed less \
                        unchanged, in percentage points; in colour and with an interval without 0 \
                        where it is no chance";

/// A row for each change.
pub fn table(effects: &[EffectRow], unicode: bool) -> Table {
    let mut table = Table::default();
    let changes = effects.iter().map(|e| Line::plain(e.change.clone()));
    table.column("", Align::Left, changes.collect());
    let mut column = |title: &str, cell: &dyn Fn(&EffectRow) -> Line| {
        table.column(title, Align::Right, effects.iter().map(cell).collect());
    };
    let times = if unicode { "×" } else { "x" };
    column("sent", &|e| {
        Line::plain(format!("{times}{}", fixed(e.sent_ratio, 2)))
    });
    column("95 %", &|e| interval(e.sent_ratio_ci95, |v| fixed(v, 2)));
    column("loss", &|e| Line::of(ink(e), signed(e.loss_change_points)));
    column("95 %", &|e| Line::of(Ink::Dim, loss_interval(e)));
    table
}

fn loss_interval(effect: &EffectRow) -> String {
    let ci = effect.loss_change_ci95_points;
    ci.map_or(MISSING.to_owned(), |[lo, hi]| {
        format!("{} to {}", signed(lo), signed(hi))
    })
}

/// Each change with what it does below it, where the page is too narrow for a table.
fn show_below_each_other(page: &mut Page, effects: &[EffectRow]) {
    let times = if page.unicode { "×" } else { "x" };
    for effect in effects {
        page.paragraph(INDENT, INDENT + 2, Line::plain(effect.change.clone()));
        let mut line = Line::plain(format!("sent {times}{}", fixed(effect.sent_ratio, 2)));
        line.push(Ink::Dim, " (");
        line.append(interval(effect.sent_ratio_ci95, |v| fixed(v, 2)));
        line.push(Ink::Dim, ")");
        line.push(Ink::Plain, ", loss ");
        line.push(ink(effect), signed(effect.loss_change_points));
        line.push(Ink::Dim, format!(" ({})", loss_interval(effect)));
        page.paragraph(INDENT + 2, INDENT + 2, line);
    }
}

/// Less loss is good, more is bad, and what may be chance is neither.
fn ink(effect: &EffectRow) -> Ink {
    match effect.loss_change_ci95_points {
        Some([lo, _]) if lo > 0.0 => Ink::Bad,
        Some([_, hi]) if hi < 0.0 => Ink::Good,
        _ => Ink::Plain,
    }
}

fn signed(points: f64) -> String {
    let text = match points.abs() {
        v if v < 9.995 => fixed(points, 2),
        _ => estimate(points),
    };
    match text.trim_start_matches('-').trim_matches(['0', '.']) {
        "" => "0".to_owned(),
        _ if points > 0.0 => format!("+{text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn points_have_a_sign_unless_they_are_nothing() {
        for (points, text) in [
            (0.0, "0"),
            (-0.001, "0"),
            (0.25, "+0.25"),
            (-17.23, "-17.2"),
            (10.0, "+10"),
        ] {
            assert_eq!(signed(points), text);
        }
    }
}
