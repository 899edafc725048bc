//! Rows before the test of all rows together decides which differences count.

use super::difference::{Difference, FailureCount, ShareSample, discoveries, share_difference};
use crate::compare::report::{ComparisonRow, ComparisonVerdict};
use crate::trial::statistics::Better;
use crate::words::percent;

/// What a row is of, and which way is better.
#[derive(Clone, Debug)]
pub(super) struct RowSubject {
    pub better: Better,
    /// The row with its name, unit and scope. The results are still empty.
    pub row: ComparisonRow,
}

impl RowSubject {
    /// A figure of the whole. It decides on the verdict if more or less of it is better.
    pub(super) fn new(metric: &str, unit: &str, better: Better) -> RowSubject {
        RowSubject {
            better,
            row: ComparisonRow {
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                matters: better != Better::Neither,
                ..ComparisonRow::default()
            },
        }
    }
}

/// A row before the test of all rows together.
#[derive(Clone, Debug)]
pub(super) struct RowDraft {
    pub subject: RowSubject,
    /// Values of A and B.
    pub values: [Option<f64>; 2],
    /// Difference as a ratio, where there is one.
    pub ratio: Option<Difference>,
    pub test: RowTest,
}

/// Result of the test of one row.
#[derive(Clone, Debug)]
pub(super) enum RowTest {
    /// Probability of a difference at least as large between equal systems.
    PValue(f64),
    /// Both sides are equal, as stated.
    Alike(&'static str),
    /// It could not be tested, for this reason.
    Unknown(String),
}

impl RowTest {
    fn p_value(&self) -> Option<f64> {
        match self {
            RowTest::PValue(p) => Some(*p),
            RowTest::Alike(_) | RowTest::Unknown(_) => None,
        }
    }
}

impl RowDraft {
    /// A row of two figures and their difference. `otherwise` is the reason if there is none.
    pub(super) fn of(
        subject: RowSubject,
        values: [Option<f64>; 2],
        ratio: Option<Difference>,
        otherwise: &str,
    ) -> RowDraft {
        let test = match ratio {
            Some(difference) => RowTest::PValue(difference.p_value),
            None => RowTest::Unknown(otherwise.to_owned()),
        };
        RowDraft { subject, values, ratio, test }
    }

    fn smallest_seen(&self, rows: usize) -> Option<f64> {
        let least = self.ratio?.smallest_seen(ALPHA, rows);
        Some(100.0 * (least.exp() - 1.0))
    }

    /// The worst change of B within the confidence interval, in percent.
    fn regression_excluded(&self) -> Option<f64> {
        let Difference { log_ratio, half, .. } = self.ratio?;
        let worst = match self.subject.better {
            Better::Less => (log_ratio + half).exp() - 1.0,
            Better::More => 1.0 - (log_ratio - half).exp(),
            Better::Neither => return None,
        };
        Some(100.0 * worst.max(0.0))
    }

    fn finish(self, is_significant: bool, rows: usize) -> ComparisonRow {
        let [a, b] = self.values;
        let grew = a.zip(b).is_some_and(|(a, b)| b > a);
        let verdict = match self.test {
            RowTest::Unknown(_) => ComparisonVerdict::Unknown,
            _ if !is_significant => ComparisonVerdict::Same,
            _ => ComparisonVerdict::of_change(self.subject.better, grew),
        };
        let because = self.because(is_significant, rows);
        let smallest_seen_percent = self.smallest_seen(rows);
        let regression_excluded_percent = self.regression_excluded();
        ComparisonRow {
            a,
            b,
            ratio: a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a),
            ratio_ci95: self
                .ratio
                .map(|d| [(d.log_ratio - d.half).exp(), (d.log_ratio + d.half).exp()]),
            smallest_seen_percent,
            regression_excluded_percent,
            p_value: self.test.p_value(),
            significant: is_significant,
            verdict,
            because,
            ..self.subject.row
        }
    }

    fn because(&self, is_significant: bool, rows: usize) -> String {
        let p_value = match &self.test {
            RowTest::Unknown(reason) => return reason.clone(),
            RowTest::Alike(how) => return (*how).to_owned(),
            RowTest::PValue(p) => *p,
        };
        let p = chance(p_value);
        if is_significant {
            return format!("equal systems differ as much in {p} of comparisons");
        }
        match self.smallest_seen(rows) {
            Some(least) if p_value >= ALPHA => format!(
                "equal systems differ as much in {p} of comparisons; the smallest detectable \
                 difference is {}",
                percent(least)
            ),
            _ => format!(
                "equal systems differ as much in {p} of comparisons, too often for the number of \
                 rows"
            ),
        }
    }
}

/// A row of two shares; `None` if neither side has operations. `otherwise`: why they could not be
/// tested.
pub(super) fn share_draft(
    subject: RowSubject,
    a: &ShareSample,
    b: &ShareSample,
    otherwise: String,
) -> Option<RowDraft> {
    let sum = |side: &ShareSample| FailureCount::sum(side.runs.iter().copied());
    if sum(a).all + sum(b).all == 0 {
        return None;
    }
    let percent = |side: &ShareSample| (sum(side).all > 0).then(|| 100.0 * sum(side).share());
    let values = [percent(a), percent(b)];
    let (ratio, test) = match share_difference(a, b) {
        Some((ratio, p)) => (ratio, RowTest::PValue(p)),
        None if values == [Some(0.0); 2] => (None, RowTest::Alike("none on either side")),
        None => (None, RowTest::Unknown(otherwise)),
    };
    Some(RowDraft { subject, values, ratio, test })
}

/// Share of comparisons of equal systems in which any row is called different.
pub(super) const ALPHA: f64 = 0.05;

fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "under 0.1 %".to_owned(),
        p => percent(100.0 * p),
    }
}

/// The finished rows, tested all together.
pub(super) fn finish(drafts: Vec<RowDraft>) -> Vec<ComparisonRow> {
    let tested: Vec<f64> = drafts.iter().filter_map(|d| d.test.p_value()).collect();
    let rows = tested.len();
    let mut significant = discoveries(&tested, ALPHA).into_iter();
    drafts
        .into_iter()
        .map(|draft| {
            let is_tested = draft.test.p_value().is_some();
            draft.finish(is_tested && significant.next().unwrap_or(false), rows)
        })
        .collect()
}
