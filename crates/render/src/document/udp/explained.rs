//! Why two laws differ: the effect of each change, and explanations with the evidence for them.

use super::Estimate;
use super::trial::interval;
use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::document::{Document, Layout, Medium};
use crate::number::{estimate, fixed, known, words};
use crate::plot::{Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, span};
use knee_core::experiment::udp::report::{EffectRow, UdpConclusion};

/// Title, ink, mark and lines of the explanations of each kind.
fn explanations(c: &UdpConclusion) -> [(&'static str, Ink, &'static str, &[String]); 3] {
    [
        ("Supported by the data", Ink::Good, "✓", &c.supported),
        ("Ruled out", Ink::Plain, "✗", &c.ruled_out),
        ("Undecided", Ink::Warn, "?", &c.undecided),
    ]
}

/// Adds explanations and effects, if any.
pub(super) fn show(doc: &mut Document, c: &UdpConclusion) {
    let mut lists = Vec::from(explanations(c));
    lists.retain(|(.., lines)| !lines.is_empty());
    if !lists.is_empty() {
        doc.section("Explanations", "why these clients differ");
    }
    for (title, ink, mark, lines) in lists {
        doc.subheading(title);
        doc.list(lines.iter().map(|l| explanation(ink, mark, l)).collect());
    }
    show_effects(doc, &c.effects);
}

/// Adds the explanations, a line each.
pub(super) fn show_key_figures(doc: &mut Document, c: &UdpConclusion) {
    let lines = explanations(c).into_iter().flat_map(|(_, ink, mark, lines)| {
        lines.iter().map(move |line| explanation(ink, mark, line))
    });
    doc.list(lines.collect());
}

fn show_effects(doc: &mut Document, effects: &[EffectRow]) {
    let Some(first) = effects.first() else {
        return;
    };
    let remark = format!("to {}, pairs of trials with their 95 % confidence", first.base);
    doc.section("What each change does", remark);
    doc.only(Medium::Page, |doc| {
        let loss = |e: &EffectRow| (e.loss_change_points, e.loss_change_ci95_points);
        let sent = |e: &EffectRow| (e.sent_ratio, e.sent_ratio_ci95);
        let plots = [
            plot("Change of the loss", "percentage points of loss", effects, 0.0, loss),
            plot("Ratio of datagrams sent", "sent, changed over unchanged", effects, 1.0, sent),
        ];
        doc.plots(plots, Layout::Pairs);
    });
    doc.table("Effects", table(effects));
    doc.note(NOTE);
}

/// `name: claim: because` behind a mark, the name in other words.
fn explanation(ink: Ink, mark: &str, text: &str) -> Line {
    let line = Line::of(ink, format!("{mark} "));
    match text.split_once(": ") {
        Some((name, rest)) => {
            line.with(Ink::Strong, words(name)).with(Ink::Plain, format!(": {rest}"))
        }
        None => line.with(Ink::Plain, text),
    }
}

/// The legend of the table of effects.
const NOTE: &str = "sent: ratio of the rates, changed over unchanged; loss: changed less \
                    unchanged, in percentage points; in colour and with an interval without 0 \
                    where it is no chance";

/// A row for each change.
fn table(effects: &[EffectRow]) -> Table {
    let to = |[lo, hi]: [f64; 2]| format!("{} to {}", signed(lo), signed(hi));
    let mut table = TableOf::new(effects);
    table.left("", |e| e.change.as_str());
    table.right("sent", |e| format!("×{}", fixed(e.sent_ratio, 2)));
    table.right("95 %", |e| interval(e.sent_ratio_ci95, |v| fixed(v, 2)));
    table.right("loss", |e| Line::of(ink(e), signed(e.loss_change_points)));
    table.right("95 %", |e| Line::of(Ink::Dim, known(e.loss_change_ci95_points, to)));
    table.done()
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

/// A figure of each change with its interval, against the value `none` of no change.
fn plot(
    title: &str,
    axis: &str,
    effects: &[EffectRow],
    none: f64,
    figure: fn(&EffectRow) -> Estimate,
) -> Plot {
    let ends = effects.iter().flat_map(|e| {
        let (value, ci95) = figure(e);
        let [lo, hi] = ci95.unwrap_or([value; 2]);
        [value, lo, hi]
    });
    let [lo, hi] = span(ends.chain([none])).unwrap_or([none; 2]);
    let margin = ((hi - lo) * 0.06).max(0.01);
    let x = Scale::linear(lo - margin, hi + margin, Unit::Number, axis);
    // What may be chance is drawn apart.
    let is_clear = |e: &EffectRow| figure(e).1.is_some_and(|[lo, hi]| lo > none || hi < none);
    let points = |clear: bool| -> Vec<Point> {
        let shown = effects.iter().enumerate().filter(|(_, e)| is_clear(e) == clear);
        shown.map(|(i, e)| Point::with(figure(e).0, i as f64, figure(e).1)).collect()
    };
    Plot::of_rows(title, x, effects.iter().map(|e| e.change.as_str()), 44)
        .with_any(PlotSeries::marks("effect", points(true)))
        .with_any(PlotSeries::marks("may be chance", points(false)).toned(Tone::Muted))
        .against(Reference::x(none, "no change"))
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn points_have_a_sign_unless_they_are_nothing() {
        for (points, text) in
            [(0.0, "0"), (-0.001, "0"), (0.25, "+0.25"), (-17.23, "-17.2"), (10.0, "+10")]
        {
            assert_eq!(signed(points), text);
        }
    }
}
