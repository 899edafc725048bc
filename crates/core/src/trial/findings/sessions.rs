//! Findings about sessions.

use super::TrialGroup;
use crate::finding::{Finding, codes};
use crate::trial::report::TrialReport;
use crate::trial::sessions::UnexpectedReport;
use crate::words::{percent, time};
use knee_load::digits;
use knee_load::measure::Outcome;

codes! {
    DATA_EXHAUSTED = "data_exhausted":
        cause "A data set is dealt so that no two users have the same record, and there was none \
               left for the next user. The load ended there. The warm-up uses up no record.",
        remedy "Give it more records, or deal them more than once: 'order: in-order' or 'order: \
                random'.";

    UNEXPECTED_RESPONSES = "unexpected_responses":
        cause "Responses were whole, but failed a check: they were not what a step of a session \
               expects, or what it extracts was not in them. The sessions ended there.",
        remedy "Compare the scenario with what the server sends: the first three are in the \
                report. Where the server is right, mend the scenario; where it is not, its log \
                says why.";

    PROGRAM_FAILED = "program_failed":
        cause "A program that the scenario starts with 'exec' gave no value, so that steps were \
               not sent. It ended, wrote a line that is no answer, left a value out, or did not \
               answer within the time limit of the step.",
        remedy "Run the program by hand with a line of JSON on its standard input. See what it \
                writes to its standard output and to its standard error.";

    PROGRAM_LATE = "program_late":
        cause "Steps waited for a program that the scenario starts with 'exec', beyond their \
               intended time. This is the generator's delay, and response times contain it.",
        remedy "Put a pause before the step, in which the program can answer, or make the program \
                faster. The program is asked when the pause begins. More workers (--threads) help \
                too: each has a process.";

    SCRIPT_FAILED = "script_failed":
        cause "The script threw an exception that it did not catch, or went over a limit of \
               memory or processor time. The iteration ended there.",
        remedy "Run 'knee scenario check' with the script, and see its first failures in the \
                report. Responses that are no success have no JSON as a rule: check the status \
                before json().";

    SCRIPT_ABORTED = "script_aborted":
        cause "The script called exec.test.abort(). The load ended there.",
        remedy "See the reason that the script gave.";

    SCRIPT_MARKED = "script_marked_failed":
        cause "The script called exec.test.fail(), or the script's teardown failed. The figures \
               stand, and the command fails.",
        remedy "See the reason that the script gave.";

    SCRIPT_LIMITED = "script_limited":
        cause "The script's own processor time was half of what the workers have or more, and a \
               worker had none left. The script paced the load, not the target. Times of requests \
               contain what their users waited for others' turns.",
        remedy "Give --threads more cores, or have the script compute less. It computes less where \
                it parses what is needed alone, with json(path).";

    UNFIT_VALUE = "unfit_value":
        cause "A place in a request cannot have the value that a template gave for it. A header \
               has no line end and no other control character, a cookie has no ';', and a URL is \
               one of the target. These steps were not sent.",
        remedy "Mend the value where it comes from, or encode it: urlencode(NAME) or \
                base64(NAME).";
}

/// A step that waits this long for its program is not a matter of some system calls.
const PROGRAM_LATE_NS: u64 = 1_000_000;

pub(super) fn data_exhausted(trials: &TrialGroup) -> Option<Finding> {
    let ran_out = |t: &TrialReport| {
        let sessions = t.sessions()?;
        let after_ns = sessions.ran_out_after_ns.unwrap_or(t.duration_ns);
        Some((sessions.ran_out.clone()?, sessions.ran_out_records, after_ns))
    };
    let (place, (set, records, after_ns)) =
        trials.worst(ran_out, |(.., after_ns)| -(*after_ns as f64))?;
    let records = records.unwrap_or_default() as f64;
    Some(DATA_EXHAUSTED.warning(
        format!(
            "{place}the load ended {} after the measured time began: the data set '{set}' had no \
             record left for the next user. 'order: unique' deals each of its {} once",
            time(after_ns as f64),
            digits::number(records)
        ),
        [("after_ns", after_ns as f64), ("records", records)],
        DATA_EXHAUSTED.step(),
    ))
}

pub(super) fn unfit_value(trials: &TrialGroup) -> Option<Finding> {
    let unfit = |t: &TrialReport| {
        let first = t.sessions()?.unfit_value.clone()?;
        Some((first, t.outcomes.count(Outcome::UnfitValue)))
    };
    let (place, (first, count)) = trials.worst(unfit, |(_, count)| *count as f64)?;
    let steps = if count == 1 { "step was" } else { "steps were" };
    Some(UNFIT_VALUE.warning(
        format!(
            "{place}{} {steps} not sent; the first: {}",
            digits::number(count as f64),
            first.sentence()
        ),
        [("not_sent", count as f64)],
        UNFIT_VALUE.step(),
    ))
}

pub(super) fn unexpected_responses(trials: &TrialGroup) -> Option<Finding> {
    let unexpected = |t: &TrialReport| {
        let first: UnexpectedReport = t.sessions()?.unexpected.first()?.clone();
        let count = t.outcomes.count(Outcome::Unexpected);
        let share = count as f64 * 100.0 / t.attempted.max(1) as f64;
        (count > 0).then_some((first, count, share))
    };
    let (place, (first, count, share)) = trials.worst(unexpected, |(.., share)| *share)?;
    Some(UNEXPECTED_RESPONSES.warning(
        format!(
            "{place}{} of the responses ({}) failed a check; the first: {} was to give {}, and \
             gave {}",
            digits::number(count as f64),
            percent(share),
            first.step,
            first.expected,
            first.came
        ),
        [("unexpected", count as f64), ("unexpected_percent", share)],
        UNEXPECTED_RESPONSES.step(),
    ))
}

pub(super) fn script_failed(trials: &TrialGroup) -> Option<Finding> {
    let failed = |t: &TrialReport| {
        let sessions = t.sessions()?;
        let script = sessions.script.as_ref()?;
        let completed: u64 = sessions.kinds.iter().map(|kind| kind.completed).sum();
        Some((script.failed, script.failures.first()?.clone(), completed))
    };
    let (place, (count, first, completed)) = trials.worst(failed, |(count, ..)| *count as f64)?;
    let iterations = if count == 1 { "iteration" } else { "iterations" };
    let share = if completed == 0 { ", which were all" } else { "" };
    Some(SCRIPT_FAILED.warning(
        format!(
            "{place}the script failed in {} {iterations}{share}; the first: {first}",
            digits::number(count as f64)
        ),
        [("failed", count as f64)],
        SCRIPT_FAILED.step(),
    ))
}

/// A worker that is busy for this share of the time has none left, in percent.
const BUSY_PERCENT: f64 = 95.0;

pub(super) fn script_limited(trials: &TrialGroup) -> Option<Finding> {
    let limited = |t: &TrialReport| {
        let each_ns = t.sessions()?.script.as_ref()?.computed_per_request_ns? as f64;
        let used = &t.generator;
        let workers_ns = t.duration_ns as f64 * f64::from(used.workers.max(1));
        let share = each_ns * t.outcomes.total() as f64 * 100.0 / workers_ns;
        (share >= 50.0 && used.busiest_worker_percent >= BUSY_PERCENT).then_some((share, each_ns))
    };
    let (place, (share, each_ns)) = trials.worst(limited, |(share, _)| *share)?;
    Some(SCRIPT_LIMITED.warning(
        format!(
            "{place}the script paced the load: it computed for {} of the workers' time, {} a request",
            percent(share),
            time(each_ns)
        ),
        [("script_percent", share)],
        SCRIPT_LIMITED.step(),
    ))
}

pub(super) fn script_aborted(trials: &TrialGroup) -> Option<Finding> {
    let aborted = |t: &TrialReport| t.sessions()?.script.as_ref()?.aborted_because.clone();
    let (place, reason) = trials.worst(aborted, |_| 0.0)?;
    Some(SCRIPT_ABORTED.warning(
        format!("{place}the script ended the test: {reason}"),
        [],
        SCRIPT_ABORTED.step(),
    ))
}

pub(super) fn script_marked(trials: &TrialGroup) -> Option<Finding> {
    let marked = |t: &TrialReport| t.sessions()?.script.as_ref()?.marked_because.clone();
    let (place, reason) = trials.worst(marked, |_| 0.0)?;
    Some(marked_failed(&format!("{place}the script marked the test as failed: {reason}")))
}

/// The script says that the test failed, in this line.
pub fn marked_failed(line: &str) -> Finding {
    SCRIPT_MARKED.warning(line.to_owned(), [], SCRIPT_MARKED.step())
}

pub(super) fn program_failed(trials: &TrialGroup) -> Option<Finding> {
    let failed = |t: &TrialReport| {
        let programs = t.sessions()?.programs.clone()?;
        let count = t.outcomes.count(Outcome::ProgramFailed);
        let because = programs.failed_because?;
        Some((count, because, programs.has_ended))
    };
    let (place, (count, because, has_ended)) = trials.worst(failed, |(count, ..)| *count as f64)?;
    let end = if has_ended { ", and the load ended" } else { "" };
    Some(PROGRAM_FAILED.warning(
        format!(
            "{place}{} steps were not sent for want of a value{end}: {because}",
            digits::number(count as f64)
        ),
        [("not_sent", count as f64)],
        PROGRAM_FAILED.step(),
    ))
}

pub(super) fn program_late(trials: &TrialGroup) -> Option<Finding> {
    let late = |t: &TrialReport| {
        let late = t.sessions()?.programs.as_ref()?.late_ns.clone();
        let (name, slow) = match late.p99 {
            Some(p99) => ("p99", p99),
            None => ("at most", late.max?),
        };
        (slow >= PROGRAM_LATE_NS).then_some((late.mean?, name, slow))
    };
    let (place, (mean, name, slow)) = trials.worst(late, |(.., slow)| *slow as f64)?;
    Some(PROGRAM_LATE.warning(
        format!(
            "{place}steps waited {} on average ({name} {}) for a program of the scenario beyond \
             their intended time: this is the generator's delay",
            time(mean as f64),
            time(slow as f64)
        ),
        [("late_mean_ns", mean as f64), ("late_slowest_ns", slow as f64)],
        PROGRAM_LATE.step(),
    ))
}

#[cfg(test)]
mod tests {
    use crate::experiment::sweep::tests::fake::{base, blank};
    use crate::finding::Finding;
    use crate::trial::findings::trial_findings;
    use crate::trial::sessions::{SessionsReport, UnfitReport};
    use knee_load::measure::Outcome;
    use knee_load::spec::Level;

    fn trial_finding(code: &str, sessions: SessionsReport, unfit: u64) -> Option<Finding> {
        let mut trial = blank(Level::Vusers(1), &base(1));
        trial.outcomes.add_many(Outcome::UnfitValue, unfit);
        trial.as_http_mut().sessions = Some(sessions);
        let mut findings = trial_findings(&trial).into_iter();
        findings.find(|finding| finding.code == code)
    }

    #[test]
    fn records_that_run_out_are_told_with_when_and_why() {
        let ran_out = SessionsReport {
            ran_out: Some("users".to_owned()),
            ran_out_records: Some(3_000),
            ran_out_after_ns: Some(2_500_000_000),
            ..SessionsReport::default()
        };
        let finding = trial_finding("data_exhausted", ran_out, 0).unwrap();
        assert_eq!(
            finding.text,
            "the load ended 2.5 s after the measured time began: the data set 'users' had no \
             record left for the next user. 'order: unique' deals each of its 3,000 once"
        );
        assert_eq!(trial_finding("data_exhausted", SessionsReport::default(), 0), None);
    }

    #[test]
    fn a_value_that_does_not_fit_is_told_with_its_place() {
        let unfit = SessionsReport {
            unfit_value: Some(UnfitReport {
                step: "login".to_owned(),
                place: "the header X-Name".to_owned(),
                misfit: r"a value with '\r' at byte 2".to_owned(),
                because: "a header is one line of text".to_owned(),
            }),
            ..SessionsReport::default()
        };
        let finding = trial_finding("unfit_value", unfit.clone(), 2).unwrap();
        assert_eq!(
            finding.text,
            "2 steps were not sent; the first: the header X-Name of login cannot have a value with \
             '\\r' at byte 2: a header is one line of text"
        );
        let finding = trial_finding("unfit_value", unfit, 1).unwrap();
        assert!(finding.text.starts_with("1 step was not sent; the first"));
        assert_eq!(trial_finding("unfit_value", SessionsReport::default(), 0), None);
    }
}
