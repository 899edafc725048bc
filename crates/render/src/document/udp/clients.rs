//! The clients of each law, and each of their trials.

use crate::document::line::{Ink, Line};
use crate::document::table::{Table, TableOf};
use crate::number::{MISSING, estimate, fixed, known, number, percent, time};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::detail::DatagramReport;
use knee_core::trial::report::{TrialReport, Verdict};

/// The legend of the table of clients.
pub(super) const NOTE: &str = "loss: of the datagrams sent; 1 ms, 10 ms: index of dispersion, the \
                               variance over the mean of the arrivals in bins of that length: 1 \
                               for Poisson, 0 for a metronome; burst: the most arrivals in any \
                               millisecond";

/// The legend of the table of trials.
pub(super) const TRIALS_NOTE: &str = "gap CV: coefficient of variation of the gaps between sends; \
                                      delay: arrival − send; preempted: how often others took the \
                                      service's processor";

/// A row for each law.
pub(super) fn table(laws: &[LawRow]) -> Table {
    let dispersion_1_ms = |law: &LawRow| {
        let mut scales = law.dispersion_by_scale.iter();
        scales.find(|at| at.scale_ns == 1_000_000).map(|at| at.index)
    };
    let mut table = TableOf::new(laws);
    table.left("", |law| law.label.as_str());
    table.right("sent", |law| number(law.sent_per_s));
    if laws.iter().any(|law| law.sent_ci95_per_s.is_some()) {
        table.right("95 %", |law| interval(law.sent_ci95_per_s, estimate));
    }
    table.right("received", |law| number(law.received_per_s));
    table.right("dropped", |law| Line::of(loss_ink(law), number(law.dropped_per_s)));
    table.right("loss", |law| Line::of(loss_ink(law), percent(law.loss_percent)));
    if laws.iter().any(|law| law.loss_ci95_percent.is_some()) {
        table.right("95 %", |law| interval(law.loss_ci95_percent, estimate));
    }
    table.right("1 ms", |law| known(dispersion_1_ms(law), estimate));
    table.right("10 ms", |law| known(law.dispersion, estimate));
    table.right("burst", |law| number(law.burst_max as f64));
    table.done()
}

fn loss_ink(law: &LawRow) -> Ink {
    if law.dropped_per_s > 0.0 { Ink::Warn } else { Ink::Plain }
}

/// A confidence interval.
pub(super) fn interval(ci: Option<[f64; 2]>, shown: fn(f64) -> String) -> Line {
    let text = known(ci, |[lo, hi]| format!("{}–{}", shown(lo), shown(hi)));
    Line::of(Ink::Dim, text)
}

/// A row for each trial.
pub(super) fn trials_table(trials: &[TrialReport]) -> Table {
    let nothing = DatagramReport::default();
    let rows = trials.iter().map(|t| (t, t.datagrams().unwrap_or(&nothing)));
    let rows: Vec<(&TrialReport, &DatagramReport)> = rows.collect();
    let mut table = TableOf::new(&rows);
    table.left("", |(t, _)| t.label.as_str());
    table.right("sent/s", |(_, d)| number(d.sent_per_s));
    table.right("loss", |(_, d)| percent(d.loss_percent));
    table.right_if_any("in theory", MISSING, |(_, d)| d.theory_loss_percent.map(percent));
    table.right("gap CV", |(t, _)| known(t.offered.gap_cv, |cv| fixed(cv, 2)));
    if trials.iter().any(|t| t.offered.pacing_error_ns.max > Some(0)) {
        table.right("late p99", |(t, _)| known(t.offered.pacing_error_ns.p99, time));
    }
    table.right("delay p50", |(_, d)| known(d.one_way_delay_ns.p50, time));
    table.right("p99", |(_, d)| known(d.one_way_delay_ns.p99, time));
    table.right("preempted", |(_, d)| number(d.service_preempted as f64));
    table.left_if_any("", |(t, _)| match t.verdict {
        Verdict::Valid => Line::default(),
        Verdict::Invalid => Line::of(Ink::Bad, "invalid"),
    });
    table.done()
}
