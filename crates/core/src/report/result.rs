//! The result of an experiment: passed or failed, by its thresholds. Whether its numbers can be
//! trusted is another question, which the verdict answers.

use super::Report;
use crate::experiment::ending::{FLEET_LOST, STOPPED_EARLY, UNREACHABLE};
use crate::threshold::{Threshold, ThresholdJudgement};
use crate::trial::detail::Detail;
use crate::trial::findings::{SCRIPT_ABORTED, SCRIPT_MARKED};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::measure::Outcome;
use serde::{Deserialize, Serialize};

/// Most kinds of failure that a line names.
const KINDS_MAX: usize = 3;

/// Whether the target did what was asked of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportResult {
    /// Operations succeeded, within all thresholds.
    #[default]
    Passed,
    /// A threshold was crossed or could not be judged, nothing was measured, or not one operation
    /// succeeded.
    Failed,
}

/// Operations of a whole experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OperationTally {
    /// Operations begun whose end is known.
    attempted: u64,
    /// Operations that succeeded.
    succeeded: u64,
}

impl Report {
    /// Sets `result` and `failed_because` by all else that is in the report.
    pub fn judge(&mut self) {
        self.failed_because = self.reasons();
        self.result = if self.failed_because.is_empty() {
            ReportResult::Passed
        } else {
            ReportResult::Failed
        };
    }

    /// Whether something was asked of the target (`--fail-if`, `--bound`, `--slo`), and a valid
    /// measurement shows that the target met it.
    pub fn has_passed(&self) -> bool {
        let is_asked =
            !self.thresholds.is_empty() || self.conclusion.answer().meets_bounds(&self.trials);
        is_asked && self.verdict == Verdict::Valid && self.result == ReportResult::Passed
    }

    /// Whether anything was measured.
    pub fn has_measured(&self) -> bool {
        self.tally().attempted > 0
    }

    fn reasons(&self) -> Vec<String> {
        let ends = [UNREACHABLE, FLEET_LOST, STOPPED_EARLY, SCRIPT_ABORTED, SCRIPT_MARKED];
        let mut reasons: Vec<String> = self
            .findings
            .iter()
            .filter(|f| ends.iter().any(|&c| f.is(c)))
            .map(|f| f.text.clone())
            .collect();
        let tally = self.tally();
        if tally.succeeded == 0 && (reasons.is_empty() || tally.attempted > 0) {
            reasons.push(self.without_success(tally.attempted));
        }
        for threshold in &self.thresholds {
            reasons.extend(threshold.failures().cloned());
        }
        reasons
    }

    /// Why not one operation succeeded, in words.
    fn without_success(&self, attempted: u64) -> String {
        let trials = self.trials.iter();
        if attempted == 0 {
            return self.without_measurement();
        }
        let mut ends: Vec<(u64, String)> = Outcome::ALL
            .iter()
            .map(|o| (trials.clone().map(|t| t.outcomes.count(*o)).sum(), o.label()))
            .filter(|(count, _)| *count > 0)
            .collect();
        ends.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let kinds: Vec<String> =
            ends.iter().take(KINDS_MAX).map(|(count, name)| format!("{count} {name}")).collect();
        let noun = self.conclusion.answer().operation();
        let result = match attempted {
            1 => format!("the only {noun} did not succeed"),
            n => format!("none of {n} {noun}s succeeded"),
        };
        if kinds.is_empty() {
            return result;
        }
        let malformed = |t: &TrialReport| {
            let http = t.http()?;
            http.malformed_because.clone().or_else(|| http.undecodable_because.clone())
        };
        let remark = match self.trials.iter().find_map(malformed) {
            Some(because) => format!("; the first: {because}"),
            None => self.hint_of_tls().to_owned(),
        };
        format!("{result}: {}{remark}", kinds.join(", "))
    }

    /// A hint where a port may speak TLS to a load in cleartext: servers refuse such requests with
    /// status 400 (nginx, Go) or close the connection.
    fn hint_of_tls(&self) -> &'static str {
        let url = self.spec.get("url").and_then(|url| url.as_str()).unwrap_or_default();
        let is_refused = |trial: &TrialReport| {
            let codes = trial.http().into_iter().flat_map(|http| http.traffic.status_codes.iter());
            let refused: u64 = codes.filter(|(status, _)| *status == 400).map(|(_, n)| n).sum();
            let ends = [Outcome::Closed, Outcome::Reset].map(|end| trial.outcomes.count(end));
            refused + ends.iter().sum::<u64>() == trial.attempted
        };
        if url.starts_with("http://") && self.trials.iter().all(is_refused) {
            "; if this port is for TLS, write https://"
        } else {
            ""
        }
    }

    /// Why nothing was measured, in words.
    fn without_measurement(&self) -> String {
        let last =
            |reason: fn(&TrialReport) -> Option<String>| self.trials.iter().rev().find_map(reason);
        if let Some(why) = last(|t| t.datagrams()?.service_lost.clone()) {
            return format!("what was received is not known: {why}");
        }
        let refused = |t: &TrialReport| {
            let errors = &t.datagrams()?.send_errors;
            let (name, _) = errors.iter().max_by_key(|(_, n)| **n)?;
            Some(format!("all {} datagrams were refused: {name}", t.attempted))
        };
        let aborted = |t: &TrialReport| {
            let flows = t.flows().filter(|f| !f.reason.is_empty())?;
            Some(flows.reason.clone())
        };
        match last(refused).or_else(|| last(aborted)) {
            Some(why) => format!("nothing was measured: {why}"),
            None => "nothing was measured".to_owned(),
        }
    }

    fn tally(&self) -> OperationTally {
        if self.trials.is_empty() {
            let rows = self.conclusion.answer().rows() as u64;
            return OperationTally { attempted: rows, succeeded: rows };
        }
        let mut tally = OperationTally::default();
        for trial in self.trials.iter().map(trial_tally) {
            tally.attempted += trial.attempted;
            tally.succeeded += trial.succeeded;
        }
        tally
    }
}

fn trial_tally(trial: &TrialReport) -> OperationTally {
    let ok = trial.outcomes.count(Outcome::Ok) + trial.outcomes.count(Outcome::Served);
    let (attempted, succeeded) = match &trial.detail {
        // A response counts where it came: it may be of an attempt from before the window.
        Detail::Http(_) if trial.outcomes.responses() == 0 => {
            let came = trial.responses_per_s() * trial.duration_ns as f64 / 1e9;
            (trial.attempted, came.ceil() as u64)
        }
        Detail::Http(_) => (trial.attempted, ok),
        Detail::Udp(udp) if udp.datagrams.service_lost.is_some() => (0, ok),
        Detail::Udp(udp) => (udp.ledger.sent(), ok),
        Detail::Latency(latency) => {
            let flows = &latency.flows.flows;
            let carried = u64::from(flows.iter().any(|flow| flow.goodput_kib_per_s > 0.0));
            (trial.attempted.max(carried), ok.max(carried))
        }
        // Only responses are known.
        Detail::CutShort => (trial.attempted, trial.completed),
    };
    OperationTally { attempted, succeeded: succeeded.min(attempted.max(1)) }
}

/// A threshold that was asked for with `--fail-if`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdReport {
    /// As it was asked for: `p99>200ms`.
    pub expression: String,
    /// Where it was crossed, in words, one line for each trial; empty where it was kept.
    pub crossed: Vec<String>,
    /// Where it could not be judged, and why, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
    /// Figures that are known only as a range, as the generator may have changed them, where the
    /// range leaves both possible. One line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undetermined: Vec<String>,
    /// Where it was kept, with the figure, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

impl ThresholdReport {
    /// Whether it was kept wherever it was judged, and judged at all.
    pub fn is_kept(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Why it was not kept, one line for each trial.
    pub fn failures(&self) -> impl Iterator<Item = &String> {
        [&self.crossed, &self.undecided, &self.undetermined].into_iter().flatten()
    }
}

/// Each threshold, and whether it was kept.
pub fn judge_thresholds(thresholds: &[Threshold], report: &Report) -> Vec<ThresholdReport> {
    let answer = report.conclusion.answer();
    let trials = answer.judged(&report.trials);
    let judge_trial = |threshold: &Threshold, trial: &TrialReport| {
        let left_out = answer.left_out(trial.level);
        if !threshold.is_of_counts() || left_out.total() == 0 {
            return threshold.judge(trial);
        }
        let mut whole = trial.clone();
        whole.outcomes.merge(&left_out);
        threshold.judge(&whole)
    };
    let judge = |threshold: &Threshold| {
        let lines = if trials.is_empty() {
            vec![without_trials(threshold, report)]
        } else {
            trials.iter().map(|trial| judge_trial(threshold, trial)).collect()
        };
        let mut judged =
            ThresholdReport { expression: threshold.to_string(), ..ThresholdReport::default() };
        for line in lines {
            match line {
                ThresholdJudgement::Crossed(line) => judged.crossed.push(line),
                ThresholdJudgement::Undecided(line) => judged.undecided.push(line),
                ThresholdJudgement::Undetermined(line) => judged.undetermined.push(line),
                ThresholdJudgement::Kept(line) => judged.kept.push(line),
            }
        }
        if let (Some(first), Some(remark)) =
            (judged.crossed.first_mut(), threshold.remark_if_reversed())
        {
            first.push_str(&remark);
        }
        judged
    };
    thresholds.iter().map(judge).collect()
}

/// The thresholds that a stored report was to keep: those of `--fail-if` in its spec.
pub(super) fn stored_thresholds(report: &Report) -> Vec<Threshold> {
    let expressions = report.spec.get("fail-if").and_then(|v| v.as_array());
    let texts = expressions.into_iter().flatten().filter_map(|v| v.as_str());
    texts.filter_map(|text| Threshold::parse(text).ok()).collect()
}

fn without_trials(threshold: &Threshold, report: &Report) -> ThresholdJudgement {
    match report.verdict {
        Verdict::Invalid if threshold.is_of_verdict() => {
            ThresholdJudgement::Crossed("the result is invalid".to_owned())
        }
        Verdict::Valid if threshold.is_of_verdict() && report.has_measured() => {
            ThresholdJudgement::Kept("the result is valid".to_owned())
        }
        _ => {
            ThresholdJudgement::Undecided(format!("{threshold} is not decided: there is no trial"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ending::unreachable;
    use crate::experiment::sweep::report::SweepSlice;
    use crate::experiment::throttle::report::RateRow;
    use crate::report::{Command, Conclusion, Kind};
    use crate::report::{SCHEMA, ThresholdReport};
    use crate::trial::assess::tests::report as trial;
    use crate::trial::detail::{DatagramReport, LedgerReport, UdpDetail};
    use knee_load::measure::Outcomes;

    fn report(kind: Kind, trials: Vec<TrialReport>) -> Report {
        Report {
            schema: SCHEMA.into(),
            command: Command::of(kind),
            knee_version: String::new(),
            started_at: String::new(),
            seed: 1,
            verdict: Default::default(),
            result: ReportResult::Passed,
            failed_because: Vec::new(),
            interrupted: false,
            host: Default::default(),
            spec: Default::default(),
            trials,
            findings: Vec::new(),
            thresholds: Vec::new(),
            conclusion: kind.without_conclusion(),
        }
    }

    fn ending(ends: &[(Outcome, u64)]) -> TrialReport {
        let mut outcomes = Outcomes::default();
        ends.iter().for_each(|(end, n)| outcomes.add_many(*end, *n));
        TrialReport {
            attempted: outcomes.total(),
            completed: outcomes.responses(),
            outcomes,
            throughput_per_s: None,
            ..trial()
        }
    }

    /// Why it failed; nothing where it passed.
    fn judged(mut report: Report) -> String {
        report.judge();
        let failed = report.result == ReportResult::Failed;
        assert_eq!(failed, !report.failed_because.is_empty());
        report.failed_because.join("; ")
    }

    #[test]
    fn one_success_is_enough_and_none_is_failure() {
        use Outcome::{ConnectTimeout, InFlight, Ok, Served, Timeout};
        let [http_4xx, http_5xx] = [Outcome::HTTP_4XX, Outcome::HTTP_5XX];
        for (kind, ends, expected) in [
            (Kind::Run, &[(Ok, 1), (Timeout, 99)][..], ""),
            (Kind::Overload, &[(Served, 1), (ConnectTimeout, 99)], ""),
            (
                Kind::Run,
                &[(http_5xx, 5), (Timeout, 7)],
                "none of 12 operations succeeded: 7 timeout, 5 http 5xx",
            ),
            (Kind::Run, &[(http_4xx, 3)], "none of 3 operations succeeded: 3 http 4xx"),
            (Kind::Sweep, &[(InFlight, 1)], "the only operation did not succeed: 1 in flight"),
            (
                Kind::Overload,
                &[(ConnectTimeout, 99)],
                "none of 99 operations succeeded: 99 connect timeout",
            ),
            (Kind::Run, &[], "nothing was measured"),
        ] {
            assert_eq!(judged(report(kind, vec![ending(ends)])), expected);
        }
        let none = report(Kind::Run, vec![ending(&[(http_5xx, 5)])]);
        assert!(none.has_measured());
        assert!(!report(Kind::Run, vec![ending(&[])]).has_measured());
        let both = vec![ending(&[(Timeout, 3)]), ending(&[(Ok, 1)])];
        assert_eq!(judged(report(Kind::Sweep, both)), "");
    }

    #[test]
    fn refused_cleartext_gets_a_hint_of_tls() {
        let ends = |end: Outcome, url: &str| {
            let mut run = report(Kind::Run, vec![ending(&[(end, 3)])]);
            run.spec.insert("url".to_owned(), url.into());
            judged(run).contains("if this port is for TLS, write https://")
        };
        assert!(ends(Outcome::Closed, "http://h/"));
        assert!(!ends(Outcome::Closed, "https://h/"));
        assert!(!ends(Outcome::Timeout, "http://h/"));
        assert!(!ends(Outcome::HTTP_4XX, "http://h/"), "without the status 400");
    }

    #[test]
    fn responses_to_attempts_of_before_are_a_success() {
        let mut late = ending(&[(Outcome::ConnectTimeout, 99)]);
        late.throughput_per_s = Some(107.7);
        assert_eq!(judged(report(Kind::Overload, vec![late.clone()])), "");
        late.throughput_per_s = Some(0.0);
        let none = "none of 99 operations succeeded: 99 connect timeout";
        assert_eq!(judged(report(Kind::Overload, vec![late])), none);
    }

    #[test]
    fn only_what_was_asked_of_a_valid_run_has_passed() {
        let mut run = report(Kind::Run, vec![ending(&[(Outcome::Ok, 5)])]);
        run.judge();
        assert!(!run.has_passed(), "nothing was asked");
        let kept = ThresholdReport { kept: vec!["kept".into()], ..ThresholdReport::default() };
        run.thresholds = vec![kept];
        run.judge();
        assert!(run.has_passed());
        let invalid = Report { verdict: Verdict::Invalid, ..run.clone() };
        assert!(!invalid.has_passed());
        run.thresholds[0].crossed = vec!["crossed".into()];
        run.judge();
        assert!(!run.has_passed());
    }

    #[test]
    fn a_bound_passes_where_a_level_meets_it() {
        let mut sweep = report(Kind::Sweep, vec![ending(&[(Outcome::Ok, 5)])]);
        sweep.judge();
        assert!(!sweep.has_passed());
        let Conclusion::Sweep(conclusion) = &mut sweep.conclusion else { unreachable!() };
        conclusion.bounds = vec![Default::default()];
        assert!(!sweep.has_passed());
        let Conclusion::Sweep(conclusion) = &mut sweep.conclusion else { unreachable!() };
        conclusion.best_within_bound = Some(Default::default());
        assert!(sweep.has_passed());
    }

    #[test]
    fn counts_include_the_slices_that_an_outage_left_out() {
        let mut sweep = report(Kind::Sweep, vec![ending(&[(Outcome::Ok, 95)])]);
        let level = sweep.trials[0].level;
        let mut outcomes = Outcomes::default();
        outcomes.add_many(Outcome::Timeout, 5);
        let slice =
            SweepSlice { weight: 0.0, outcomes: Some(outcomes), ..SweepSlice::blank(level) };
        let marked = SweepSlice { marks: vec!["outage".to_owned()], ..slice.clone() };
        let kept = SweepSlice { weight: 1.0, ..marked.clone() };
        for (threshold, slice, is_crossed) in [
            ("errors>0", &marked, true),
            ("timeouts>4", &marked, true),
            ("timeouts>5", &marked, false),
            ("errors>=5%", &marked, true),
            ("errors>5%", &marked, false),
            // Repeated as the generator or its host was disturbed, or in its level already.
            ("errors>0", &slice, false),
            ("errors>0", &kept, false),
        ] {
            let Conclusion::Sweep(conclusion) = &mut sweep.conclusion else { unreachable!() };
            conclusion.slices = vec![slice.clone()];
            let judged = judge_thresholds(&[Threshold::parse(threshold).unwrap()], &sweep);
            assert_eq!(!judged[0].crossed.is_empty(), is_crossed, "{threshold}: {judged:?}");
        }
    }

    #[test]
    fn a_target_that_is_not_there_is_the_only_reason() {
        let mut nobody = report(Kind::Run, Vec::new());
        assert_eq!(judged(nobody.clone()), "nothing was measured");
        nobody.findings = vec![unreachable("refused")];
        assert!(!nobody.has_measured());
        let reason = "the target could not be reached: refused";
        assert_eq!(judged(nobody.clone()), reason);
        // One that goes away fails what was measured before.
        nobody.trials = vec![ending(&[(Outcome::Ok, 5)])];
        assert_eq!(judged(nobody), reason);
    }

    #[test]
    fn thresholds_fail_where_they_are_crossed_or_undecided() {
        let mut run = report(Kind::Run, vec![ending(&[(Outcome::Ok, 5)])]);
        let threshold = ThresholdReport {
            expression: "p99>1ms".into(),
            kept: vec!["kept".into()],
            ..ThresholdReport::default()
        };
        run.thresholds = vec![threshold.clone()];
        assert_eq!(judged(run.clone()), "");
        run.thresholds[0].undecided = vec!["no p99".into()];
        assert_eq!(judged(run.clone()), "no p99");
        run.thresholds[0].crossed = vec!["crossed".into()];
        assert_eq!(judged(run), "crossed; no p99");
    }

    #[test]
    fn datagrams_succeed_where_they_are_received() {
        let sent = |received: u64, service_lost: Option<&str>| {
            let mut trial = ending(&[(Outcome::Ok, received), (Outcome::Lost, 9 - received)]);
            let ledger = LedgerReport { intended: 10, send_errors: 1, ..LedgerReport::default() };
            let datagrams = DatagramReport {
                service_lost: service_lost.map(str::to_owned),
                ..DatagramReport::default()
            };
            trial.detail = UdpDetail { ledger, datagrams }.into();
            report(Kind::Udp, vec![trial])
        };
        assert_eq!(judged(sent(1, None)), "");
        let none = "none of 9 datagrams succeeded: 9 lost";
        assert_eq!(judged(sent(0, None)), none);
        let lost = sent(0, Some("it went away"));
        assert!(!lost.has_measured());
        let why = "what was received is not known: it went away";
        assert_eq!(judged(lost), why);
    }

    #[test]
    fn a_table_of_this_machine_passes_where_it_has_a_row() {
        let mut table = report(Kind::Throttle, Vec::new());
        assert_eq!(judged(table.clone()), "nothing was measured");
        let Conclusion::Throttle(throttle) = &mut table.conclusion else {
            panic!("another conclusion");
        };
        throttle.rates = vec![RateRow::default()];
        assert_eq!(judged(table), "");
    }
}
