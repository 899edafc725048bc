//! What the clients of each law did and got, and each of their trials.

use crate::document::line::{Ink, Line};
use crate::document::table::{Align, Table};
use crate::number::{MISSING, estimate, fixed, known, number, percent, time};
use knee_core::experiment::udp::report::LawRow;
use knee_core::trial::datagrams::DatagramReport;
use knee_core::trial::report::{TrialReport, Verdict};

/// What the columns are.
pub(super) const NOTE: &str = "loss: of the datagrams sent; 1 ms, 10 ms: index of dispersion, the \
                        variance over the mean of the arrivals in bins of that length: 1 for \
                        Poisson, 0 for a metronome; burst: the most arrivals in any millisecond";

/// What the columns of the trials are.
pub(super) const TRIALS_NOTE: &str = "gap CV: coefficient of variation of the gaps between sends; \
    delay: \
                               arrival − send; preempted: how often others took the service's \
                               processor";

/// A row for each law.
pub(super) fn table(laws: &[LawRow]) -> Table {
    let mut table = Table::default();
    let labels = laws.iter().map(|law| Line::plain(law.label.clone()));
    table.column("", Align::Left, labels.collect());
    let mut column = |title: &str, cell: &dyn Fn(&LawRow) -> Line| {
        table.column(title, Align::Right, laws.iter().map(cell).collect());
    };
    let sent_ci = laws.iter().any(|law| law.sent_ci95_per_s.is_some());
    let loss_ci = laws.iter().any(|law| law.loss_ci95_percent.is_some());
    column("sent", &|law| Line::plain(number(law.sent_per_s)));
    if sent_ci {
        column("95 %", &|law| interval(law.sent_ci95_per_s, estimate));
    }
    column("received", &|law| Line::plain(number(law.received_per_s)));
    column("dropped", &|law| {
        Line::of(loss_ink(law), number(law.dropped_per_s))
    });
    column("loss", &|law| {
        Line::of(loss_ink(law), percent(law.loss_percent))
    });
    if loss_ci {
        column("95 %", &|law| interval(law.loss_ci95_percent, estimate));
    }
    column("1 ms", &|law| index(dispersion_at(law, 1_000_000)));
    column("10 ms", &|law| index(law.dispersion));
    column("burst", &|law| Line::plain(number(law.burst_max as f64)));
    table
}

fn dispersion_at(law: &LawRow, scale_ns: u64) -> Option<f64> {
    let mut scales = law.dispersion_by_scale.iter();
    scales.find(|at| at.scale_ns == scale_ns).map(|at| at.index)
}

fn index(of: Option<f64>) -> Line {
    Line::plain(of.map_or(MISSING.to_owned(), estimate))
}

fn loss_ink(law: &LawRow) -> Ink {
    if law.dropped_per_s > 0.0 {
        Ink::Warn
    } else {
        Ink::Plain
    }
}

/// A confidence interval.
pub(super) fn interval(ci: Option<[f64; 2]>, shown: fn(f64) -> String) -> Line {
    let text = ci.map_or(MISSING.to_owned(), |[lo, hi]| {
        format!("{}–{}", shown(lo), shown(hi))
    });
    Line::of(Ink::Dim, text)
}

/// A row for each trial.
pub(super) fn trials_table(trials: &[TrialReport]) -> Table {
    let mut table = Table::default();
    let labels = trials.iter().map(|t| Line::plain(t.label.clone()));
    table.column("", Align::Left, labels.collect());
    let nothing = DatagramReport::default();
    let of = |t: &TrialReport| t.datagrams().unwrap_or(&nothing).clone();
    let mut column = |title: &str, cell: &dyn Fn(&TrialReport) -> String| {
        let cells = trials.iter().map(|t| Line::plain(cell(t)));
        table.column(title, Align::Right, cells.collect());
    };
    column("sent/s", &|t| number(of(t).sent_per_s));
    column("loss", &|t| percent(of(t).loss_percent));
    if trials.iter().any(|t| of(t).theory_loss_percent.is_some()) {
        column("in theory", &|t| {
            of(t)
                .theory_loss_percent
                .map_or(MISSING.to_owned(), percent)
        });
    }
    column("gap CV", &|t| {
        t.offered
            .gap_cv
            .map_or(MISSING.to_owned(), |cv| fixed(cv, 2))
    });
    if trials
        .iter()
        .any(|t| t.offered.pacing_error_ns.max > Some(0))
    {
        column("late p99", &|t| known(t.offered.pacing_error_ns.p99, time));
    }
    column("delay p50", &|t| known(of(t).one_way_delay_ns.p50, time));
    column("p99", &|t| known(of(t).one_way_delay_ns.p99, time));
    column("preempted", &|t| number(of(t).service_preempted as f64));
    if trials.iter().any(|t| t.verdict == Verdict::Invalid) {
        let mark = |t: &TrialReport| match t.verdict {
            Verdict::Valid => Line::new(),
            Verdict::Invalid => Line::of(Ink::Bad, "invalid"),
        };
        table.column("", Align::Left, trials.iter().map(mark).collect());
    }
    table
}
