//! A row in the making: what is compared and what the test of it says, before all rows together
//! tell which of them count.

use super::difference::{Difference, discoveries};
use crate::compare::report::{ComparisonRow, ComparisonVerdict};
use crate::spec::Level;
use crate::trial::statistics::Better;
use crate::words::percent;

/// Whose figures a row compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// All operations.
    All,
    /// Those of a step of sessions.
    Step(String),
    /// Sessions of a kind.
    Session(String),
    /// Those of an agent.
    Agent(String),
}

/// What a row is of.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// Its name in reports.
    pub metric: &'static str,
    /// Its unit there.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// Whether it decides on the whole.
    pub matters: bool,
    /// The level, law or method; empty of the whole.
    pub label: String,
    /// That level.
    pub level: Option<Level>,
    /// Whose figures they are.
    pub of: Of,
}

/// A row in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// What it is of.
    pub subject: Subject,
    /// The values of A and B.
    pub values: [Option<f64>; 2],
    /// The difference as a ratio, where there is one.
    pub ratio: Option<Difference>,
    /// What the test of it says.
    pub test: Test,
}

/// What the test of a row says.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// The probability of as much between equals.
    PValue(f64),
    /// There is nothing to test, as both are alike, in this way.
    Alike(&'static str),
    /// It could not be tested, for this reason.
    Unknown(String),
}

impl Test {
    fn p_value(&self) -> Option<f64> {
        match self {
            Test::PValue(p) => Some(*p),
            Test::Alike(_) | Test::Unknown(_) => None,
        }
    }
}

impl Draft {
    /// A row of two figures and their difference; `otherwise` says why there is none.
    pub(super) fn of(
        subject: Subject,
        values: [Option<f64>; 2],
        ratio: Option<Difference>,
        otherwise: &str,
    ) -> Draft {
        let test = match ratio {
            Some(difference) => Test::PValue(difference.p_value),
            None => Test::Unknown(otherwise.to_owned()),
        };
        Draft {
            subject,
            values,
            ratio,
            test,
        }
    }

    fn smallest_seen(&self, rows: usize) -> Option<f64> {
        let least = self.ratio?.smallest_seen(ALPHA, rows);
        Some(100.0 * (least.exp() - 1.0))
    }

    /// By how much more than this B is not worse, in percent.
    fn regression_excluded(&self) -> Option<f64> {
        let Difference {
            log_ratio, half, ..
        } = self.ratio?;
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
        let verdict = match (&self.test, self.subject.better) {
            (Test::Unknown(_), _) => ComparisonVerdict::Unknown,
            (_, _) if !is_significant => ComparisonVerdict::Same,
            (_, Better::Neither) => ComparisonVerdict::Different,
            (_, Better::More) if grew => ComparisonVerdict::Better,
            (_, Better::Less) if !grew => ComparisonVerdict::Better,
            (_, _) => ComparisonVerdict::Worse,
        };
        let because = self.because(is_significant, rows);
        let smallest_seen_percent = self.smallest_seen(rows);
        let regression_excluded_percent = self.regression_excluded();
        let [mut step, mut session, mut agent] = [const { None }; 3];
        match self.subject.of {
            Of::All => {}
            Of::Step(name) => step = Some(name),
            Of::Session(name) => session = Some(name),
            Of::Agent(name) => agent = Some(name),
        }
        ComparisonRow {
            metric: self.subject.metric.to_owned(),
            unit: self.subject.unit.to_owned(),
            label: self.subject.label,
            level: self.subject.level,
            step,
            session,
            agent,
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
            matters: self.subject.matters,
            verdict,
            because,
        }
    }

    fn because(&self, is_significant: bool, rows: usize) -> String {
        let p_value = match &self.test {
            Test::Unknown(reason) => return reason.clone(),
            Test::Alike(how) => return (*how).to_owned(),
            Test::PValue(p) => *p,
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

/// The share of comparisons of equals in which anything is called different.
pub(super) const ALPHA: f64 = 0.05;

fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "under 0.1 %".to_owned(),
        p => percent(100.0 * p),
    }
}

/// The rows, told apart from chance all together.
pub(super) fn finish(drafts: Vec<Draft>) -> Vec<ComparisonRow> {
    let tested: Vec<f64> = drafts.iter().filter_map(|d| d.test.p_value()).collect();
    let rows = tested.len();
    let mut found = discoveries(&tested, ALPHA).into_iter();
    drafts
        .into_iter()
        .map(|draft| {
            let is_tested = draft.test.p_value().is_some();
            draft.finish(is_tested && found.next().unwrap_or(false), rows)
        })
        .collect()
}
