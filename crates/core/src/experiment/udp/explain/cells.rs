//! The cells of the design: what is varied, and the trials that this takes.

use super::ExplainSpec;
use crate::experiment::udp::AssessedUdpTrial;
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
pub(super) const DISPENSABLE: [CellChange; 5] = [
    CellChange::Work,
    CellChange::SameCore,
    CellChange::Slack,
    CellChange::Number,
    CellChange::Wait,
];

/// What a cell changes of the clients that the explanation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellChange {
    /// The number of clients, to that of the others.
    Number,
    /// How they wait, to the way of the others.
    Wait,
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
    pub(super) fn is_derived(self) -> bool {
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
            CellChange::Slack => {
                let to = other_slack(base.timer_slack);
                format!("timer slack: {} → {to}", base.timer_slack)
            }
            CellChange::Buffer => "receive buffer: as it is → 4 MiB".to_owned(),
            CellChange::Work if has_work(base) => "work per datagram: as it is → none".to_owned(),
            CellChange::Work => format!("work per datagram: as it is → {WORK}"),
            CellChange::SameCore => {
                format!("processors: {} → clients and service on one", placed(base))
            }
            CellChange::OtherCore => {
                format!("processors: {} → one for the service alone", placed(base))
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
    /// Those of the two that the explanation is about, with one change.
    Changed(CellChange),
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
    let is_derived =
        |cell: &DesignCell| matches!(cell, DesignCell::Changed(change) if change.is_derived());
    let base = cells.iter().position(|cell| *cell == subject);
    let derived = cells.iter().position(is_derived);
    if let (Some(base), Some(derived)) = (base, derived)
        && derived < base
    {
        cells.swap(base, derived);
    }
    cells
}

/// The trial of `base` with this change. `tried` is a trial of `base` as it is, of the same block.
/// `None` where that sent nothing, so that there is neither a rate nor a time to go by.
pub(super) fn changed(
    change: CellChange,
    base: &UdpTrialSpec,
    other: &UdpTrialSpec,
    cpus: &[u32],
    tried: &AssessedUdpTrial,
) -> Option<UdpTrialSpec> {
    let mut spec = outline(change, base, other, cpus);
    let arrival = match change {
        CellChange::Constant => ArrivalLaw::Constant,
        CellChange::Poisson => ArrivalLaw::Poisson,
        CellChange::Replay | CellChange::ReplayApart => {
            spec.duration = spec.duration.min(tried.starts_until);
            tried.starts.last()?;
            ArrivalLaw::Trace(tried.starts.clone())
        }
        _ => return Some(spec),
    };
    let rate = Rate::from_f64(tried.report.datagrams()?.sent_per_s)?;
    spec.wait = ClientWait::Schedule { rate, arrival };
    Some(spec)
}

/// As [`changed`], but without the rate and the times of sending, which need a trial of `base`.
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
        CellChange::Wait => spec.wait = other.wait.clone(),
        CellChange::Slack => spec.timer_slack = other_slack(base.timer_slack),
        CellChange::Buffer => spec.setup.rcvbuf = Some(BUFFER),
        CellChange::Work if has_work(base) => spec.setup.work = Some(Law::ZERO),
        CellChange::Work => spec.setup.work = Some(Law::Fixed(WORK)),
        CellChange::SameCore => {
            spec.client_cpus = service_cpu.into_iter().collect();
            spec.setup.cpu = service_cpu;
        }
        CellChange::OtherCore => apart(&mut spec, cpus),
        CellChange::RealTime => spec.setup.realtime = true,
        CellChange::Constant | CellChange::Poisson | CellChange::Replay => alone(&mut spec),
        CellChange::ReplayApart => {
            alone(&mut spec);
            apart(&mut spec, cpus);
        }
    }
    spec
}

/// The service alone on the first processor.
fn apart(spec: &mut UdpTrialSpec, cpus: &[u32]) {
    spec.client_cpus = cpus.iter().skip(1).copied().collect();
    spec.setup.cpu = cpus.first().copied();
}

/// One spinning sender in the place of all clients.
fn alone(spec: &mut UdpTrialSpec) {
    spec.clients = 1;
    spec.level = Level::Clients(1);
    spec.carried_as = ClientsAs::Multiplexed;
    // It is to keep the times, whatever a send takes the clients.
    spec.send_cost = Nanos::ZERO;
    spec.engine.workers = 1;
    spec.engine.wait = WaitPolicy::Spin;
}

/// Where clients and service run.
fn placed(spec: &UdpTrialSpec) -> &'static str {
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
