//! Why two laws differ: what each change does, and the explanations that stand or fall with it.

use super::Estimate;
use super::clients::interval;
use crate::axis::span;
use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::document::{Document, Layout, Medium};
use crate::number::{MISSING, estimate, fixed, words};
use crate::plot::{Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::experiment::udp::report::{EffectRow, UdpConclusion};

/// Adds it, where there is something explained.
pub(super) fn show(doc: &mut Document, c: &UdpConclusion) {
    let lists = [
        ("Supported by the data", Ink::Good, "✓", &c.supported),
        ("Ruled out", Ink::Plain, "✗", &c.ruled_out),
        ("Undecided", Ink::Warn, "?", &c.undecided),
    ];
    if lists.iter().any(|(.., lines)| !lines.is_empty()) {
        doc.section("Explanations", "why these clients differ");
    }
    for (title, ink, mark, lines) in lists {
        if !lines.is_empty() {
            doc.subheading(title);
            doc.list(lines.iter().map(|l| explanation(ink, mark, l)).collect());
        }
    }
    show_effects(doc, &c.effects);
}

/// Adds the explanations, a line each.
pub(super) fn show_key_figures(doc: &mut Document, c: &UdpConclusion) {
    let lines = |ink, mark, lines: &[String]| -> Vec<Line> {
        lines.iter().map(|l| explanation(ink, mark, l)).collect()
    };
    let supported = lines(Ink::Good, "✓", &c.supported);
    let others = lines(Ink::Plain, "✗", &c.ruled_out);
    let undecided = lines(Ink::Warn, "?", &c.undecided);
    let all = supported.into_iter().chain(others).chain(undecided);
    doc.list(all.collect());
}

fn show_effects(doc: &mut Document, effects: &[EffectRow]) {
    let Some(first) = effects.first() else {
        return;
    };
    let remark = format!(
        "to {}, pairs of trials with their 95 % confidence",
        first.base
    );
    doc.section("What each change does", remark);
    doc.only(Medium::Page, |doc| {
        doc.plots([losses(effects), rates(effects)], Layout::Pairs);
    });
    doc.table("Effects", table(effects));
    doc.note(NOTE);
}

fn losses(effects: &[EffectRow]) -> Plot {
    let of = |e: &EffectRow| (e.loss_change_points, e.loss_change_ci95_points);
    let [lo, hi] = around(effects.iter().flat_map(|e| ends(of(e))), 0.0);
    let x = Scale::linear(lo, hi, Unit::Number, "percentage points of loss");
    plot("Change of the loss", x, effects, &of, (0.0, "no change"))
}

fn rates(effects: &[EffectRow]) -> Plot {
    let of = |e: &EffectRow| (e.sent_ratio, e.sent_ratio_ci95);
    let [lo, hi] = around(effects.iter().flat_map(|e| ends(of(e))), 1.0);
    let x = Scale::linear(lo, hi, Unit::Number, "sent, changed over unchanged");
    plot(
        "Ratio of datagrams sent",
        x,
        effects,
        &of,
        (1.0, "no change"),
    )
}

/// `name: claim: because` behind a mark, the name in other words.
fn explanation(ink: Ink, mark: &str, text: &str) -> Line {
    let line = Line::of(ink, format!("{mark} "));
    match text.split_once(": ") {
        Some((name, rest)) => line
            .with(Ink::Strong, words(name))
            .with(Ink::Plain, format!(": {rest}")),
        None => line.with(Ink::Plain, text),
    }
}

/// What the columns are.
const NOTE: &str = "sent: ratio of the rates, changed over unchanged; loss: changed less \
                        unchanged, in percentage points; in colour and with an interval without 0 \
                        where it is no chance";

/// A row for each change.
fn table(effects: &[EffectRow]) -> Table {
    let mut table = Table::default();
    let changes = effects.iter().map(|e| Line::plain(e.change.clone()));
    table.column("", Align::Left, changes.collect());
    let mut column = |title: &str, cell: &dyn Fn(&EffectRow) -> Line| {
        table.column(title, Align::Right, effects.iter().map(cell).collect());
    };
    column("sent", &|e| {
        Line::plain(format!("×{}", fixed(e.sent_ratio, 2)))
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

fn ends((value, ci95): Estimate) -> [f64; 3] {
    let [lo, hi] = ci95.unwrap_or([value; 2]);
    [value, lo, hi]
}

/// From the least to the most of these and of nothing having changed, with a margin.
fn around(ends: impl Iterator<Item = f64>, nothing: f64) -> [f64; 2] {
    let [lo, hi] = span(ends.chain([nothing])).unwrap_or([nothing; 2]);
    let margin = ((hi - lo) * 0.06).max(0.01);
    [lo - margin, hi + margin]
}

fn plot(
    title: &str,
    x: Scale,
    effects: &[EffectRow],
    of: &dyn Fn(&EffectRow) -> Estimate,
    (nothing, label): (f64, &str),
) -> Plot {
    let names = effects.iter().map(|e| e.change.clone()).collect();
    let mut plot = Plot::new(title, x, Scale::categories(names, ""));
    plot.height = 44 * effects.len() as u32;
    // What may be chance is drawn apart from what is none.
    let is_clear = |e: &EffectRow| of(e).1.is_some_and(|[lo, hi]| lo > nothing || hi < nothing);
    let those = |clear: bool| -> Vec<Point> {
        let effects = effects.iter().enumerate();
        let there = effects.filter(|(_, e)| is_clear(e) == clear);
        there
            .map(|(i, e)| Point::with(of(e).0, i as f64, of(e).1))
            .collect()
    };
    for (name, clear, tone) in [
        ("effect", true, Tone::First),
        ("may be chance", false, Tone::Muted),
    ] {
        let points = those(clear);
        if !points.is_empty() {
            plot = plot.with(Series::points(name, points).toned(tone));
        }
    }
    plot.against(Reference::Vertical {
        x: nothing,
        label: label.to_owned(),
        tone: Tone::Muted,
        range: None,
    })
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
