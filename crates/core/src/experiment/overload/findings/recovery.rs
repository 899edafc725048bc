//! Whether service came back after the last level.

use super::{WORTH_PERCENT, one, within};
use crate::experiment::overload::analysis::{OverloadSetting, OverloadSummary, end, heaviest};
use crate::experiment::overload::report::{CameBack, LevelRow};
use crate::finding::{Finding, Severity, codes};
use crate::words::{exact, number, percent};
use knee_load::measure::Outcome;
use knee_load::spec::Level;
use knee_load::time::Nanos;

codes! {
    SERVICE_NOT_BACK = "service_not_back":
        cause "After the last level knee offered the base load once more. The server served less \
               of it than at first, so the overload outlasts its cause.",
        remedy "Check the server's log and its open connections. A longer --warmup shows whether \
                the server comes back later.";
    SERVICE_NOT_AS_BEFORE = "service_not_as_before":
        cause "After the last level knee offered the base load once more. Service came back \
               late, or with failures that were not there at first.",
        remedy "Check the server's log. A longer --warmup shows whether the failures end.";
    RECOVERY_UNKNOWN = "recovery_unknown":
        cause "After the last level knee offered the base load once more. What was served could \
               not be judged: the generator was the limit, or too few responses came.",
        remedy "Measure each level longer, -d, or use a quieter machine.";
}

/// The next run waits at least this long before it measures the base load again, …
const WARMUP_MIN: Nanos = Nanos::from_secs(10);
/// … and this many times as long as this one did.
const WARMUP_FACTOR: u64 = 5;

pub(super) fn service(summary: &OverloadSummary, setting: &OverloadSetting) -> Option<Finding> {
    let recovery = &summary.recovery;
    let (before, again) = recovery.before.as_ref().zip(recovery.again.as_ref())?;
    let at = one(recovery.level?);
    let served = format!(
        "with {at} again {}/s are served{}, {}/s{} at first",
        number(again.served_per_s),
        within(again.served_ci95_per_s),
        number(before.served_per_s),
        within(before.served_ci95_per_s)
    );
    let share = 100.0 * again.served_per_s / before.served_per_s;
    let failures = failures(again);
    let fails_more = failed_percent(again) > failed_percent(before) + WORTH_PERCENT;
    let (code, severity, text) = match recovery.came_back {
        CameBack::No => (
            SERVICE_NOT_BACK,
            Severity::Error,
            format!("service did not come back: {served} ({}){failures}", percent(share)),
        ),
        CameBack::Late => (
            SERVICE_NOT_AS_BEFORE,
            Severity::Warning,
            format!("service came back late: {served}, and as much in its second half{failures}"),
        ),
        CameBack::Yes if fails_more => (
            SERVICE_NOT_AS_BEFORE,
            Severity::Warning,
            format!("service came back with failures: {served}{failures}"),
        ),
        CameBack::Yes => return None,
        CameBack::NotJudged => (
            RECOVERY_UNKNOWN,
            if fails_more { Severity::Warning } else { Severity::Info },
            format!(
                "whether service came back is not known: {served}; {}{failures}",
                recovery.because
            ),
        ),
    };
    let next_step = match recovery.came_back {
        CameBack::NotJudged => "measure longer, -d, on a quieter machine".to_owned(),
        _ => later(summary, setting),
    };
    Some(code.finding(
        severity,
        text,
        [
            ("served_per_s", again.served_per_s),
            ("served_before_per_s", before.served_per_s),
            ("share_percent", share),
            ("attempts", again.outcomes.total() as f64),
            ("not_served", again.outcomes.errors() as f64),
        ],
        next_step,
    ))
}

fn failed_percent(row: &LevelRow) -> f64 {
    100.0 * row.outcomes.errors() as f64 / row.outcomes.total().max(1) as f64
}

/// How most of the attempts ended that were not served, as what follows a sentence.
fn failures(row: &LevelRow) -> String {
    if row.outcomes.total() == 0 {
        return "; attempts from before its window received no response within it".to_owned();
    }
    let fine = [Outcome::Ok, Outcome::Served, Outcome::InFlight];
    let failed = row.outcomes.iter().filter(|(how, n)| *n > 0 && !fine.contains(how));
    failed.max_by_key(|&(_, n)| n).map_or(String::new(), |(how, n)| {
        let (n, of) = (exact(n as f64), exact(row.outcomes.total() as f64));
        format!("; {n} of {of} attempts {}", end(how))
    })
}

/// The next step: the base load and the heaviest level alone, with more time between them.
fn later(summary: &OverloadSummary, setting: &OverloadSetting) -> String {
    let warmup = Nanos(setting.warmup.0.saturating_mul(WARMUP_FACTOR)).max(WARMUP_MIN);
    let heaviest = heaviest(&summary.points).map(|p| p.level);
    let load = match (summary.recovery.level, heaviest) {
        (Some(Level::Clients(base)), Some(Level::Clients(most))) => {
            format!(": --simple {base},{most}")
        }
        (Some(Level::Clients(base)), Some(Level::Descriptors(most))) => {
            format!(": --simple {base} --descriptors {most}")
        }
        (Some(Level::Descriptors(base)), Some(Level::Descriptors(most))) => {
            format!(": --descriptors {base},{most}")
        }
        _ => String::new(),
    };
    let warmup = warmup.exactly();
    format!(
        "see whether it comes back later, with the base load and the heaviest level alone{load} \
         --warmup {warmup}; and check the server's log and its open connections (`ss -tn`)"
    )
}
