//! The cells of the design: what is varied, the trials that this takes, and how they keep within
//! their time.

use super::{ExplainSpec, PILOT, REPEATS_MIN};
use crate::experiment::udp::AssessedUdpTrial;
use crate::finding::{Finding, codes};
use crate::words::list;
use knee_load::experiment::udp::{ClientWait, ClientsAs, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::rng;
use knee_load::spec::{ArrivalLaw, Level, Rate, WaitPolicy};
use knee_load::time::Nanos;

/// The receive buffer of the cell with a large one.
const BUFFER: u32 = 4 << 20;
/// The service's work in the cell with some, where it has none.
const WORK: Nanos = Nanos::from_micros(20);
/// The slack of the cell with little, or with that which the kernel gives every program.
const SLACKS: [Nanos; 2] = [Nanos(1), Nanos::from_micros(50)];

/// The changes on which no explanation rests, in the order in which they are left out where the
/// time does not suffice.
const DISPENSABLE: [CellChange; 4] =
    [CellChange::Work, CellChange::SameCore, CellChange::Number, CellChange::Wait];

/// What a cell changes of the clients that the explanation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellChange {
    /// The number of clients, to that of the others.
    Number,
    /// How they wait, to the way of the others.
    Wait,
    /// Synchronised wake-ups: the same waits, but each client begins at a time of its own and has
    /// a clock of its own.
    Unsynchronised,
    /// The timer slack.
    Slack,
    /// The receive buffer, to 4 MiB.
    Buffer,
    /// The service's work: none where there was some, some where there was none.
    Work,
    /// Clients and service on one processor.
    SameCore,
    /// The service alone on a processor.
    OtherCore,
    /// One spinning sender at the same mean rate, evenly.
    Constant,
    /// One spinning sender at the same mean rate, Poisson.
    Poisson,
    /// One spinning sender that sends at the recorded times.
    Replay,
    /// As `Replay`, with the service alone on a processor: at the same rate, unlike `OtherCore`.
    ReplayApart,
    /// The service before all others on its processor.
    RealTime,
}

impl CellChange {
    /// Whether it needs a trial of the unchanged clients before it.
    fn is_derived(self) -> bool {
        matches!(
            self,
            CellChange::Constant
                | CellChange::Poisson
                | CellChange::Replay
                | CellChange::ReplayApart
        )
    }

    /// The change in words: `clients: 64 → 128`.
    pub(super) fn words(self, base: &UdpTrialSpec, other: &UdpTrialSpec) -> String {
        match self {
            CellChange::Number => format!("clients: {} → {}", base.clients, other.clients),
            CellChange::Wait => format!("wait: {} → {}", base.wait.name(), other.wait.name()),
            CellChange::Unsynchronised => {
                "wake-ups: as they are → unsynchronised, by the same waits".to_owned()
            }
            CellChange::Slack => {
                let to = other_slack(base.timer_slack);
                format!("timer slack: {} → {to}", base.timer_slack)
            }
            CellChange::Buffer => "receive buffer: as it is → 4 MiB".to_owned(),
            CellChange::Work if has_work(base) => "work per datagram: as it is → none".to_owned(),
            CellChange::Work => format!("work per datagram: as it is → {WORK}"),
            CellChange::SameCore => {
                format!("processors: {} → clients and service on one", processors_in_words(base))
            }
            CellChange::OtherCore => {
                format!("processors: {} → one for the service alone", processors_in_words(base))
            }
            CellChange::Constant => "senders: all → one, evenly at the same rate".to_owned(),
            CellChange::Poisson => "senders: all → one, Poisson at the same rate".to_owned(),
            CellChange::Replay => {
                "senders: all → one that replays their times of sending".to_owned()
            }
            CellChange::ReplayApart => {
                "senders: all → one that replays their times of sending on another processor"
                    .to_owned()
            }
            CellChange::RealTime => "service's priority: as it is → real-time".to_owned(),
        }
    }
}

/// A cell: the first or second clients as they are, or the subject changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DesignCell {
    /// The clients named first, unchanged.
    First,
    /// The clients named second, unchanged.
    Second,
    /// The clients that the explanation is about, with one change.
    Changed(CellChange),
}

impl DesignCell {
    /// Whether it needs a trial of the unchanged clients before it.
    pub(super) fn is_derived(self) -> bool {
        matches!(self, DesignCell::Changed(change) if change.is_derived())
    }
}

/// The changes that make sense for `base`, where the other clients are `other`, and that fit into
/// the time.
pub(super) fn changes(
    base: &UdpTrialSpec,
    other: &UdpTrialSpec,
    spec: &ExplainSpec,
) -> Vec<CellChange> {
    let two = spec.cpus.len() >= 2;
    let left_out = &DISPENSABLE[..spec.left_out.min(DISPENSABLE.len())];
    let service: Vec<u32> = base.setup.cpu.into_iter().collect();
    let on_one = service.len() == 1 && base.client_cpus == service;
    [
        (CellChange::Number, base.clients != other.clients),
        (CellChange::Wait, base.wait != other.wait),
        (CellChange::Unsynchronised, base.wait.cycle().is_some() && !base.wait.is_random()),
        (CellChange::Slack, base.wait.sleeps()),
        (CellChange::Buffer, base.setup.rcvbuf != Some(BUFFER)),
        (CellChange::Work, true),
        (CellChange::SameCore, two && !on_one),
        (CellChange::OtherCore, two),
        (CellChange::Constant, true),
        (CellChange::Poisson, true),
        (CellChange::Replay, true),
        (CellChange::ReplayApart, two),
        (CellChange::RealTime, spec.realtime && !base.setup.realtime),
    ]
    .into_iter()
    .filter(|(change, makes_sense)| *makes_sense && !left_out.contains(change))
    .map(|(change, _)| change)
    .collect()
}

/// One block of the design in random order: each cell once. The unchanged trial of the subject goes
/// before those that need its rate and its times.
pub(super) fn block(
    subject: DesignCell,
    changes: &[CellChange],
    seed: u64,
    number: usize,
) -> Vec<DesignCell> {
    let mut cells = vec![DesignCell::First, DesignCell::Second];
    cells.extend(changes.iter().map(|&change| DesignCell::Changed(change)));
    rng::shuffle(&mut cells, &mut rng::stream(seed, rng::ORDER + number as u64));
    let base = cells.iter().position(|cell| *cell == subject);
    let derived = cells.iter().position(|cell| cell.is_derived());
    if let (Some(base), Some(derived)) = (base, derived)
        && derived < base
    {
        cells.swap(base, derived);
    }
    cells
}

/// The trial of `base` with this change. `unchanged` is a trial of `base` as it is, of the same
/// block. `None` if that sent nothing: then neither its rate nor its times are known.
pub(super) fn changed(
    change: CellChange,
    base: &UdpTrialSpec,
    other: &UdpTrialSpec,
    cpus: &[u32],
    unchanged: &AssessedUdpTrial,
) -> Option<UdpTrialSpec> {
    let mut spec = outline(change, base, other, cpus);
    if change.is_derived() {
        unchanged.starts.last()?;
    }
    let arrival = match change {
        CellChange::Constant => ArrivalLaw::Constant,
        CellChange::Poisson => ArrivalLaw::Poisson,
        CellChange::Replay | CellChange::ReplayApart => {
            spec.duration = spec.duration.min(unchanged.starts_until);
            ArrivalLaw::Trace(unchanged.starts.clone())
        }
        _ => return Some(spec),
    };
    let rate = Rate::from_f64(unchanged.report.datagrams()?.attempted_per_s())?;
    spec.wait = ClientWait::Schedule { rate, arrival };
    Some(spec)
}

/// The same trial as [`changed`] returns, without the rate and the times of sending, which need a
/// trial of `base`.
pub(super) fn outline(
    change: CellChange,
    base: &UdpTrialSpec,
    other: &UdpTrialSpec,
    cpus: &[u32],
) -> UdpTrialSpec {
    let mut spec = base.clone();
    spec.label = format!("{}, {}", base.label, change.words(base, other));
    let service_cpu = cpus.first().copied();
    match change {
        CellChange::Number => {
            spec.clients = other.clients;
            spec.level = Level::Clients(other.clients);
        }
        CellChange::Wait => {
            spec.wait = other.wait.clone();
            spec.unsynchronised = other.unsynchronised;
        }
        CellChange::Unsynchronised => spec.unsynchronised = true,
        CellChange::Slack => spec.timer_slack = other_slack(base.timer_slack),
        CellChange::Buffer => spec.setup.rcvbuf = Some(BUFFER),
        CellChange::Work if has_work(base) => spec.setup.work = Some(Law::ZERO),
        CellChange::Work => spec.setup.work = Some(Law::Fixed(WORK)),
        CellChange::SameCore => {
            spec.client_cpus = service_cpu.into_iter().collect();
            spec.setup.cpu = service_cpu;
        }
        CellChange::OtherCore => give_service_a_processor(&mut spec, cpus),
        CellChange::RealTime => spec.setup.realtime = true,
        CellChange::Constant | CellChange::Poisson | CellChange::Replay => {
            use_single_sender(&mut spec)
        }
        CellChange::ReplayApart => {
            use_single_sender(&mut spec);
            give_service_a_processor(&mut spec, cpus);
        }
    }
    spec
}

/// The service alone on the first processor.
fn give_service_a_processor(spec: &mut UdpTrialSpec, cpus: &[u32]) {
    spec.client_cpus = cpus.iter().skip(1).copied().collect();
    spec.setup.cpu = cpus.first().copied();
}

/// One spinning sender in the place of all clients.
fn use_single_sender(spec: &mut UdpTrialSpec) {
    spec.clients = 1;
    spec.level = Level::Clients(1);
    spec.carried_as = ClientsAs::Multiplexed;
    // It is to keep the times, whatever a send takes the clients.
    spec.send_cost = Nanos::ZERO;
    spec.engine.workers = 1;
    spec.engine.wait = WaitPolicy::Spin;
}

/// Where clients and service run.
fn processors_in_words(spec: &UdpTrialSpec) -> &'static str {
    match (spec.client_cpus.as_slice(), spec.setup.cpu) {
        ([], None) => "any",
        _ => "as they are",
    }
}

fn other_slack(slack: Nanos) -> Nanos {
    if slack > SLACKS[0] { SLACKS[0] } else { SLACKS[1] }
}

fn has_work(spec: &UdpTrialSpec) -> bool {
    spec.setup.work.is_some_and(|work| !work.is_zero())
}

/// The longest time that a whole explanation takes.
pub const EXPLAIN_LIMIT: Nanos = Nanos::from_secs(60);

/// Blocks, unless asked for: with three, losses that come in bouts leave the intervals wide.
const REPEATS: u32 = 6;
/// No more fit: a block has two trials, of 300 ms at the least.
const REPEATS_MAX: u32 = 100;
/// Time of a cell, unless asked for, …
const CELL: Nanos = Nanos::from_millis(500);
/// … which may be this short for the sake of more blocks, …
const CELL_SHORT: Nanos = Nanos::from_millis(250);
/// … and this short where it would not fit otherwise.
const CELL_MIN: Nanos = Nanos::from_millis(100);
/// Times of cells are multiples of this.
const STEP: Nanos = Nanos::from_millis(10);

codes! {
    SHORTENED = "explanation_shortened":
        cause "More was asked of an explanation than fits into the 60 s that it takes at most.",
        remedy "Ask for less of one thing: shorter trials for more repeats, or fewer clients, \
                which start sooner.";
}

impl ExplainSpec {
    /// The plan with as many blocks and as long cells as fit into [`EXPLAIN_LIMIT`], and with what
    /// was cut of the time of a cell and the blocks that the user asked for. Blocks go first, then
    /// time, then changes on which no explanation rests; what the user asked for goes after what was
    /// not asked for.
    ///
    /// # Errors
    /// Even the least does not fit; in words.
    pub fn fit(
        mut self,
        asked_duration: Option<Nanos>,
        asked_repeats: Option<u32>,
    ) -> Result<ExplainSpec, String> {
        let most = asked_duration.unwrap_or(CELL);
        let short = match (asked_duration, asked_repeats) {
            (Some(duration), _) => duration,
            (None, Some(_)) => CELL_MIN,
            (None, None) => CELL_SHORT,
        };
        let repeats_max = asked_repeats.unwrap_or(REPEATS).clamp(REPEATS_MIN, REPEATS_MAX);
        let whole = (REPEATS_MIN..=repeats_max).rev().map(|n| (0, n, short));
        let least = (0..=DISPENSABLE.len()).map(|n| (n, REPEATS_MIN, CELL_MIN));
        for (left_out, repeats, least) in whole.chain(least) {
            (self.left_out, self.repeats) = (left_out, repeats);
            let (trials, around) = self.trials_and_around();
            let cell = Nanos((EXPLAIN_LIMIT - around).0 / trials / STEP.0 * STEP.0);
            if cell >= least.min(most) {
                let duration = cell.min(most);
                for spec in [&mut self.first, &mut self.second] {
                    spec.duration = duration;
                    spec.interval = spec.interval.min(duration);
                }
                self.cut = self.cut(asked_duration, asked_repeats);
                return Ok(self);
            }
        }
        let around = |spec: &UdpTrialSpec| spec.around().0;
        let longest = around(&self.first).max(around(&self.second));
        Err(format!(
            "an explanation takes at most {EXPLAIN_LIMIT}, and each of its trials would take {} to \
             start and end: expected fewer clients, --clients-as threads, or less work per \
             datagram",
            Nanos(longest)
        ))
    }

    /// How long it takes at most, trial by trial.
    pub fn length(&self) -> Nanos {
        let (trials, around) = self.trials_and_around();
        Nanos(trials * self.first.duration.0 + around.0)
    }

    /// The number of trials, and the time that they take beside their sending. Either kind of
    /// clients may become the subject: these are the larger figures of the two.
    fn trials_and_around(&self) -> (u64, Nanos) {
        let both = [&self.first, &self.second];
        let blocks = u64::from(self.repeats.max(REPEATS_MIN));
        let of_subject = |subject: &UdpTrialSpec, other: &UdpTrialSpec| {
            let changes = changes(subject, other, self);
            let around_changes =
                changes.iter().map(|&c| outline(c, subject, other, &self.cpus).around().0);
            let around_both: u64 = both.iter().map(|spec| spec.around().0).sum();
            let around_block = around_both + around_changes.sum::<u64>();
            let trials = PILOT as u64 + blocks * (2 + changes.len() as u64);
            (trials, Nanos(around_both + blocks * around_block))
        };
        let [first, second] = both;
        let (a, b) = (of_subject(first, second), of_subject(second, first));
        (a.0.max(b.0), a.1.max(b.1))
    }

    /// The part of the request that was cut, in words.
    fn cut(&self, duration: Option<Nanos>, repeats: Option<u32>) -> Option<String> {
        let duration = duration.filter(|&d| d > self.first.duration);
        let repeats = repeats.filter(|&n| n > self.repeats);
        let cut = [
            repeats.map(|n| format!("{} repeats instead of {n}", self.repeats)),
            duration.map(|d| format!("trials of {} instead of {d}", self.first.duration)),
            (self.left_out > 0).then(|| {
                let n = self.left_out;
                format!("{n} changes left out on which no explanation rests")
            }),
        ];
        let cut: Vec<String> = cut.into_iter().flatten().collect();
        let limit = EXPLAIN_LIMIT;
        (!cut.is_empty()).then(|| format!("an explanation takes at most {limit}: {}", list(&cut)))
    }

    /// A finding that says what was cut.
    pub(super) fn shortened(&self) -> Option<Finding> {
        let text = self.cut.clone()?;
        let evidence = [
            ("repeats", f64::from(self.repeats)),
            ("duration_ns", self.first.duration.0 as f64),
            ("changes_left_out", self.left_out as f64),
        ];
        Some(SHORTENED.info(text, evidence, ""))
    }
}
