//! Why two laws differ: the explanations that stand or fall, and what each change does.

use super::Estimate;
use crate::html::page::Page;
use crate::html::plot::{Plot, Point, Reference, Scale, Series, Tone, Unit};
use crate::html::words::write_line;
use crate::text::line::{Ink, Line};
use crate::text::udp::explained as words;
use knee_core::experiment::udp::report::{EffectRow, UdpConclusion};

/// Writes it, where there is something explained.
pub fn show(page: &mut Page, conclusion: &UdpConclusion) {
    let explanations = [
        (
            "Supported by the data",
            Ink::Good,
            "✓ ",
            &conclusion.supported,
        ),
        ("Ruled out", Ink::Plain, "✗ ", &conclusion.ruled_out),
        ("Undecided", Ink::Warn, "? ", &conclusion.undecided),
    ];
    if explanations.iter().any(|(.., lines)| !lines.is_empty()) {
        page.section("Explanations", "why these clients differ", |page| {
            let there = explanations.iter().filter(|(.., lines)| !lines.is_empty());
            there.for_each(|(title, ink, mark, lines)| list(page, title, *ink, mark, lines));
        });
    }
    show_effects(page, &conclusion.effects);
}

fn list(page: &mut Page, title: &str, ink: Ink, mark: &str, lines: &[String]) {
    page.subheading(title);
    page.m.el("ul").attr("class", "marked").with(|m| {
        for line in lines {
            let line = Line::of(ink, mark).append_explanation(line);
            m.el("li").with(|m| write_line(m, &line));
        }
    });
}

fn show_effects(page: &mut Page, effects: &[EffectRow]) {
    let Some(first) = effects.first() else {
        return;
    };
    let remark = format!(
        "to {}, pairs of trials with their 95 % confidence",
        first.base
    );
    page.section("What each change does", &remark, |page| {
        let loss = |e: &EffectRow| (e.loss_change_points, e.loss_change_ci95_points);
        let ends: Vec<f64> = effects.iter().flat_map(|e| ends(loss(e))).collect();
        let (lo, hi) = around(&ends, 0.0);
        let x = Scale::linear(lo, hi, Unit::Number, "percentage points of loss");
        let losses = plot("Change of the loss", x, effects, &loss, (0.0, "no change"));
        let sent = |e: &EffectRow| (e.sent_ratio, e.sent_ratio_ci95);
        let ends: Vec<f64> = effects.iter().flat_map(|e| self::ends(sent(e))).collect();
        let (lo, hi) = around(&ends, 1.0);
        let x = Scale::linear(lo, hi, Unit::Number, "sent, changed over unchanged");
        let rates = plot(
            "Ratio of datagrams sent",
            x,
            effects,
            &sent,
            (1.0, "no change"),
        );
        page.plots(&[losses, rates]);
        page.table("Effects", &words::table(effects, true));
        page.note(words::NOTE);
    });
}

fn ends((value, ci95): Estimate) -> [f64; 3] {
    let [lo, hi] = ci95.unwrap_or([value; 2]);
    [value, lo, hi]
}

/// From the least to the most of these and of nothing having changed, with a margin.
fn around(ends: &[f64], nothing: f64) -> (f64, f64) {
    let lo = ends.iter().copied().fold(nothing, f64::min);
    let hi = ends.iter().copied().fold(nothing, f64::max);
    let margin = ((hi - lo) * 0.06).max(0.01);
    (lo - margin, hi + margin)
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
