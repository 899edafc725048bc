//! Windows of one load after another, as one measurement: the slices of a level of a sweep.
//!
//! Counts and histograms add up exactly, lengths add up, and series follow one another. What lies
//! between two slices is no part of it, so no statistic of a series may run across them.
//! [`Measurement::slices`] counts them.

use super::generator_use::{mean, most};
use super::sums::{add_by_name, merge_some};
use super::{
    AgentMeasured, AttemptsMeasured, GeneratorUse, HostTimes, Measurement, Observed, Series, Trial,
    Window,
};
use crate::spec::Load;
use crate::time::Nanos;
use std::mem;

impl Trial {
    /// Adds a later trial of the same load, whose window follows this one's.
    pub fn append(&mut self, mut later: Trial) {
        if matches!(self.spec.load, Load::Closed { .. }) {
            for slice in [&mut self.measurement, &mut later.measurement] {
                if slice.slices <= 1 {
                    // What the last slots lack has the mean of the others.
                    let mut smoothed = slice.smoothed();
                    let mean = smoothed.iter().sum::<f64>() / smoothed.len().max(1) as f64;
                    smoothed.resize(slice.series.completed.len(), mean);
                    slice.series.completed = smoothed;
                }
            }
        }
        let lengths = [self, &later].map(|t| t.measurement.window.length().as_secs_f64());
        let agents = mem::take(&mut later.agents);
        self.measurement.append(later.measurement);
        self.generator.append(later.generator, lengths);
        add_by_name(&mut self.kernel, later.kernel);
        for agent in agents {
            match self.agents.iter_mut().find(|a| a.agent == agent.agent) {
                Some(known) => append_agent(known, agent),
                None => self.agents.push(agent),
            }
        }
        self.spec.duration = Nanos(self.spec.duration.0 + later.spec.duration.0);
        match (&mut self.observed, later.observed) {
            (Some(mine), Some(theirs)) => append_observed(mine, theirs),
            (mine, _) => *mine = None,
        }
        let host = self.observed.as_mut().and_then(|o| o.server_host.as_mut());
        if let Some(host) = host.filter(|_| !self.measurement.both_ends.is_empty()) {
            host.set(&self.measurement.both_ends);
        }
        self.interrupted |= later.interrupted;
    }
}

fn append_observed(known: &mut Observed, later: Observed) {
    let elapsed_ns = [known.elapsed_ns, later.elapsed_ns].map(|ns| ns as f64);
    known.cpu_busy_percent = mean([known.cpu_busy_percent, later.cpu_busy_percent], elapsed_ns);
    known.first_syns += later.first_syns;
    known.repeated_syns += later.repeated_syns;
    known.client_ends += later.client_ends;
    known.capture_lost += later.capture_lost;
    known.elapsed_ns += later.elapsed_ns;
    known.first_syns_by_interval.extend(later.first_syns_by_interval);
    add_by_name(&mut known.kernel, later.kernel);
    known.accept_queue_max = known.accept_queue_max.max(later.accept_queue_max);
    merge_some(&mut known.server_host, later.server_host, HostTimes::append);
}

fn append_agent(known: &mut AgentMeasured, later: AgentMeasured) {
    let completed = [known.completed, later.completed].map(|n| n as f64);
    *known = AgentMeasured {
        attempted: known.attempted + later.attempted,
        completed: known.completed + later.completed,
        started_per_s: (known.started_per_s + later.started_per_s) / 2.0,
        mean_ns: known.mean_ns.zip(later.mean_ns).map(|(a, b)| mean([a, b], completed)),
        // Percentiles are never averaged, and the mean's interval is of one window.
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        mean_ns_ci95: None,
        begun_late_ns: known.begun_late_ns.max(later.begun_late_ns),
        pacing_error_p99_ns: known.pacing_error_p99_ns.max(later.pacing_error_p99_ns),
        busiest_worker_percent: known.busiest_worker_percent.max(later.busiest_worker_percent),
        steal_percent: most(known.steal_percent, later.steal_percent),
        stall_ns_max: known.stall_ns_max.max(later.stall_ns_max),
        lost_because: known.lost_because.take().or(later.lost_because),
        kept_because: known.kept_because.take().or(later.kept_because),
        ..mem::take(known)
    };
}

impl Measurement {
    /// Adds the measurement of a later window.
    pub fn append(&mut self, mut later: Measurement) {
        let mine = self.window;
        let length = mine.length();
        let slices = self.slices.max(1) + later.slices.max(1);
        let series = mem::take(&mut self.series);
        // Between two slices time is missing.
        (self.timeline, later.timeline) = Default::default();
        let sessions = mem::take(&mut self.completed_sessions);
        let mut attempts = self.attempts.take();
        merge_some(&mut attempts, later.attempts.take(), AttemptsMeasured::append);
        let mut intervals = mem::take(&mut self.intervals);
        intervals.extend(mem::take(&mut later.intervals).into_iter().map(|mut i| {
            i.start_ns += length.0;
            i.end_ns += length.0;
            i
        }));
        let opened_at_once = self.connections_max.max(later.connections_max);
        let series = series.followed_by(mem::take(&mut later.series));
        let sessions = sessions.followed_by(mem::take(&mut later.completed_sessions));
        let end = mine.end + later.window.length();
        // Starts are of one schedule, and a closed loop has none.
        self.starts.clear();
        later.starts.clear();
        later.window = mine;
        if let (Some(_), Some(limit)) = (&self.rate_limit, &mut later.rate_limit) {
            // It is that of the same workers.
            limit.per_s = 0.0;
        }
        self.merge(later);
        *self = Measurement {
            window: Window { end, ..mine },
            slices,
            series,
            intervals,
            completed_sessions: sessions,
            attempts,
            connections_max: opened_at_once,
            ..mem::take(self)
        };
    }
}

impl Series {
    /// Whole slots of this series, then those of a later one. Slots of different length are joined
    /// in pairs until they agree; a series for which that is not possible is left out.
    fn followed_by(mut self, mut later: Series) -> Series {
        if self.completed.is_empty() || later.completed.is_empty() {
            return if self.completed.is_empty() { later } else { self };
        }
        self.align(&mut later);
        if self.slot != later.slot {
            return self;
        }
        self.completed.append(&mut later.completed);
        self.response_sum_ns.append(&mut later.response_sum_ns);
        self.response_count.append(&mut later.response_count);
        self.heat.append(&later.heat);
        while self.completed.len() > APPENDED_SLOTS_MAX {
            self.coarsen();
        }
        self
    }
}

/// The most slots of several slices: as many columns of a heat map fit on a page.
const APPENDED_SLOTS_MAX: usize = 1_600;

impl GeneratorUse {
    /// Adds what the same generator used over a later window; `lengths` are those of both.
    fn append(&mut self, later: GeneratorUse, lengths: [f64; 2]) {
        let mean = |mine: f64, theirs: f64| mean([mine, theirs], lengths);
        merge_some(&mut self.woken_by_target, later.woken_by_target, |mine, more| *mine += more);
        if let (Some(mine), Some(theirs)) = (&mut self.wait, &later.wait) {
            mine.add(theirs, lengths);
        }
        *self = GeneratorUse {
            cpu_user_s: self.cpu_user_s + later.cpu_user_s,
            cpu_system_s: self.cpu_system_s + later.cpu_system_s,
            busiest_worker_percent: mean(self.busiest_worker_percent, later.busiest_worker_percent),
            busiest_worker_waiting_percent: mean(
                self.busiest_worker_waiting_percent,
                later.busiest_worker_waiting_percent,
            ),
            busiest_worker_spin_percent: mean(
                self.busiest_worker_spin_percent,
                later.busiest_worker_spin_percent,
            ),
            steal_percent: self
                .steal_percent
                .zip(later.steal_percent)
                .map(|(mine, theirs)| mean(mine, theirs)),
            peak_rss_bytes: self.peak_rss_bytes.max(later.peak_rss_bytes),
            ..mem::take(self)
        };
    }
}
