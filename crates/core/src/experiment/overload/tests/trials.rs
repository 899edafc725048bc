//! Trials of an overload for tests, made up.

use crate::experiment::overload::analysis::OverloadSetting;
use crate::trial::detail::HttpDetail;
use crate::trial::figure::TimesReport;
use crate::trial::offered::OfferedReport;
use crate::trial::report::{GeneratorReport, TrialReport, Verdict};
use knee_load::measure::{Interval, Observed, Outcome, Outcomes, SynSource};
use knee_load::spec::{CloseKind, Level};
use knee_load::time::Nanos;

/// T = 500 ms, orderly closes, levels given.
pub(crate) const SETTING: OverloadSetting = OverloadSetting {
    patience: Nanos::from_millis(500),
    scheduled_descriptors: 0,
    close: Some(CloseKind::Fin),
    warmup: Nanos::from_secs(1),
    wanted_factor: None,
};

/// 10 s of a sound trial that ended in these outcomes, with all that was started captured.
pub(crate) fn report(level: Level, ends: &[(Outcome, u64)]) -> TrialReport {
    let seconds = 10.0;
    let mut outcomes = Outcomes::default();
    for &(outcome, n) in ends {
        (0..n).for_each(|_| outcomes.add(outcome));
    }
    let attempted = outcomes.total();
    let completed = outcomes.responses();
    let served = completed as f64 / seconds;
    let started_per_s = attempted as f64 / seconds;
    TrialReport {
        label: String::new(),
        level,
        duration_ns: 10_000_000_000,
        attempted,
        completed,
        throughput_per_s: Some(served),
        throughput_ci95_per_s: Some([0.99 * served, 1.01 * served]),
        throughput_is: Default::default(),
        throughput_range_per_s: None,
        goodput_per_s: Some(served),
        response_time_ns: TimesReport::default(),
        service_time_ns: TimesReport::default(),
        offered: OfferedReport { achieved_per_s: started_per_s, ..OfferedReport::default() },
        generator: GeneratorReport {
            workers: 1,
            busiest_worker_percent: 20.0,
            ..GeneratorReport::default()
        },
        stationary: true,
        verdict: Verdict::Valid,
        invalid_because: Vec::new(),
        invalid_clauses: Vec::new(),
        bytes_received: 0,
        detail: HttpDetail {
            connections_opened: attempted,
            observed: Some(Observed {
                source: SynSource::Capture,
                first_syns: attempted - outcomes.no_resources(),
                elapsed_ns: 10_000_000_000,
                ..Observed::default()
            }),
            ..HttpDetail::default()
        }
        .into(),
        intervals: Vec::new(),
        kernel: Default::default(),
        outcomes,
    }
}

/// S-Clients with D descriptors past saturation and this number of responses in 10 s. The server's
/// kernel dropped the SYNs of the others.
pub(crate) fn sclients(descriptors: u32, served: u64) -> TrialReport {
    let unanswered = 20 * u64::from(descriptors);
    let ends = [(Outcome::Served, served), (Outcome::ConnectTimeout, unanswered)];
    let mut trial = report(Level::Descriptors(descriptors), &ends);
    if let Some(observed) = &mut trial.as_http_mut().observed {
        let drops = ("TcpExtListenDrops".to_owned(), unanswered as i64);
        observed.kernel.extend([drops]);
    }
    trial
}

/// Of requests in datagrams.
pub(crate) const DATAGRAMS: OverloadSetting = OverloadSetting { close: None, ..SETTING };

/// S-Clients with D descriptors, whose requests in datagrams were `served` in 10 s or not answered
/// within T. The server's kernel made `drops`, and `late` answers came after T.
pub(crate) fn datagrams(descriptors: u32, served: u64, [drops, late]: [i64; 2]) -> TrialReport {
    let unanswered = 20 * u64::from(descriptors);
    let ends = [(Outcome::Served, served), (Outcome::ResponseTimeout, unanswered)];
    let mut trial = report(Level::Descriptors(descriptors), &ends);
    trial.kernel.extend([("UdpNoPorts".to_owned(), late)]);
    if let Some(observed) = &mut trial.as_http_mut().observed {
        *observed = std::mem::take(observed).without_tcp();
        observed.kernel.extend([("UdpRcvbufErrors".to_owned(), drops)]);
    }
    trial
}

/// Simple clients whose attempts were all served.
pub(crate) fn clients(clients: u32, served: u64) -> TrialReport {
    report(Level::Clients(clients), &[(Outcome::Served, served)])
}

/// The same trial with these responses in each tenth of a second, of a window as long as that.
pub(crate) fn heard(mut trial: TrialReport, completed: &[u64]) -> TrialReport {
    let tenth = 100_000_000;
    let interval = |(k, &completed): (usize, &u64)| Interval {
        start_ns: k as u64 * tenth,
        end_ns: (k as u64 + 1) * tenth,
        attempted: 10,
        completed,
        ..Interval::default()
    };
    trial.intervals = completed.iter().enumerate().map(interval).collect();
    trial.duration_ns = completed.len() as u64 * tenth;
    trial
}
