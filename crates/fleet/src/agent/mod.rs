//! An agent: the engine behind NATS subjects.
//!
//! It holds a lease, prepares a `job` on a thread of its own, and begins it when the coordinator
//! says (`StartBarrier`). It stores the result in JetStream, or keeps it where that is not
//! possible. It never reads JetStream.

mod job;
mod question;

use super::leases::AgentLeases;
use crate::bus::{Bus, NatsLink, chain, json, now_ns, parse};
use crate::clocks::{PauseWatch, TimeSpan, chrony_error_ns_max};
use crate::parcel::{ParcelPieces, parse_piece, unpack};
use crate::permit::Spacing;
use crate::protocol::{
    AgentAnswer, AgentFacts, BEAT, ClockReading, FAREWELL, GoRequest, Heartbeat, JobState, PIECE,
    PROTOCOL, PrepareRequest, RENEW, TrialKey, TrialOrder, VERSION, Verb, beat_subject,
};
use crate::{NatsAccess, Patience, host_name};
use async_nats::{Client, Message, jetstream};
use bytes::Bytes;
use futures_util::StreamExt;
use job::Job;
pub(crate) use job::files_of;
use knee_engine::StartBarrier;
use knee_engine::error::RunError;
use knee_engine::permit::{Cidr, Permit};
use knee_engine::sys::clock;
use knee_load::measure::Trial;
use knee_load::spec::{Margins, TrialSpec, WorkerRange};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Options of an agent.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Address and credentials of NATS.
    pub access: NatsAccess,
    /// Name; `None`: the host's name, with a number if it is in use.
    pub name: Option<String>,
    /// Time to wait for NATS and the streams that agents with logins of their own may not make.
    pub patience: Patience,
    /// Labels by which it is selected.
    pub labels: Vec<(String, String)>,
    /// Targets and rates that its operator permits.
    pub permit: Permit,
    /// Margins of sleeps on this machine.
    pub margins: Margins,
    /// Shift of the clock that it reports, in nanoseconds: for tests.
    pub clock_shift_ns: i64,
}

/// An agent that holds its lease.
#[derive(Debug)]
pub struct Agent {
    bus: Bus,
    service: AgentService,
}

/// Runs an agent's part of a trial. Also returns the times in which this process did not run.
pub(crate) type MakePart = fn(
    &TrialSpec,
    WorkerRange,
    &dyn StartBarrier,
    &AtomicBool,
) -> Result<(Trial, Vec<TimeSpan>), RunError>;

fn run_part_in_engine(
    spec: &TrialSpec,
    crew: WorkerRange,
    barrier: &dyn StartBarrier,
    stop: &AtomicBool,
) -> Result<(Trial, Vec<TimeSpan>), RunError> {
    let watch = PauseWatch::start();
    let ran = knee_engine::run_part(spec, crew, barrier, stop);
    let stops = watch.end();
    Ok((ran?, stops))
}

impl Agent {
    /// Connects, and takes a lease under the agent's name.
    ///
    /// # Errors
    /// NATS is unreachable or refuses; another agent has the name; the name is invalid.
    pub fn join(options: AgentOptions) -> Result<Agent, RunError> {
        let given_name = options.name.as_deref();
        if let Some(name) = given_name.filter(|name| !is_name(name)) {
            return Err(RunError::NotPermitted(format!(
                "invalid agent name '{name}': expected up to 64 letters, digits, - and _, \
                 beginning with a letter or digit"
            )));
        }
        let host_name = host_name();
        let name = given_name.map_or_else(|| name_of_host(&host_name), str::to_owned);
        let host = knee_engine::host();
        let mut facts = AgentFacts {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
            host: host_name,
            pid: std::process::id(),
            cores: host.cpus,
            kernel: host.kernel,
            connections_max: knee_engine::connections_permitted(),
            labels: options.labels.clone(),
            targets: options.permit.targets.iter().map(Cidr::to_string).collect(),
            rate_max: options.permit.rate_max,
            ..AgentFacts::default()
        };
        let (bus, leases) = options.patience.retry(|| {
            let bus = Bus::connect(&options.access, "knee agent", &name)?;
            let leases = AgentLeases::new(&bus);
            bus.run(take_name(&leases, &mut facts, &name, given_name.is_some()))?;
            Ok((bus, leases))
        })?;
        let service = AgentService {
            client: bus.client.clone(),
            link: bus.link.clone(),
            leases,
            stream: bus.stream.clone(),
            facts,
            spacing: Spacing::new(options.permit.rate_max),
            make_part: run_part_in_engine,
            options,
            state: Mutex::default(),
            chrony_error_ns: Mutex::default(),
        };
        Ok(Agent { bus, service })
    }

    /// Replaces the engine by `make_part`.
    #[cfg(test)]
    pub(crate) fn with_make_part(mut self, make_part: MakePart) -> Agent {
        self.service.make_part = make_part;
        self
    }

    /// Properties of the agent.
    pub fn facts(&self) -> &AgentFacts {
        &self.service.facts
    }

    /// Serves coordinators until `stop` is set. `tell` receives status lines.
    ///
    /// # Errors
    /// NATS refuses the subscription.
    pub fn serve(self, stop: &AtomicBool, tell: &dyn Fn(&str)) -> Result<(), RunError> {
        self.bus.run(Arc::new(self.service).serve(stop, tell))
    }
}

/// Whether this can be an agent's name, which is a part of subjects and keys.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && name.len() <= 64 && name.chars().all(fits)
}

/// The name of an agent after its host.
fn name_of_host(host: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name: String = host.chars().map(|c| if fits(c) { c } else { '-' }).take(56).collect();
    if is_name(&name) { name } else { "agent".to_owned() }
}

/// Takes a lease under this name. A default name gets a number if it is in use.
async fn take_name(
    leases: &AgentLeases,
    facts: &mut AgentFacts,
    name: &str,
    is_asked_for: bool,
) -> Result<(), RunError> {
    let last = if is_asked_for { 1 } else { 999 };
    for number in 1..=last {
        facts.name = match number {
            1 => name.to_owned(),
            n => format!("{name}-{n}"),
        };
        if leases.take(facts).await? {
            return Ok(());
        }
    }
    Err(RunError::NotPermitted(format!(
        "agent name '{}' is in use: choose another --name (the name of a dead agent is free after \
         12 s)",
        facts.name
    )))
}

/// Longest time for which an agent that ends waits for its result to be fetched.
const LEAVE_PATIENCE: Duration = Duration::from_secs(10);

/// Interval of asking chrony.
const CHRONY_INTERVAL: Duration = Duration::from_secs(15);

/// State of an agent, which it shares with its tasks and the threads of its jobs.
#[derive(Debug)]
struct AgentService {
    client: Client,
    link: Arc<NatsLink>,
    leases: AgentLeases,
    stream: jetstream::Context,
    facts: AgentFacts,
    options: AgentOptions,
    make_part: MakePart,
    state: Mutex<AgentState>,
    /// Error of the time of day, as chrony reported it last.
    chrony_error_ns: Mutex<Option<u64>>,
    /// Limit of operations, which connects beside trials count in, too.
    spacing: Spacing,
}

/// Orders and jobs of an agent.
#[derive(Debug, Default)]
struct AgentState {
    /// Pieces of the next order.
    pieces: ParcelPieces,
    job: Option<Job>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves nothing half done in these.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl AgentService {
    async fn serve(
        self: Arc<Self>,
        stop: &AtomicBool,
        tell: &dyn Fn(&str),
    ) -> Result<(), RunError> {
        let subject = format!("knee.agent.{}.*", self.facts.name);
        let subscribed = self.client.subscribe(subject).await;
        let mut requests = subscribed
            .map_err(|e| RunError::FleetLost(format!("cannot subscribe: {}", chain(&e))))?;
        let ticks = |every: Duration| {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let mut renew = ticks(RENEW);
        let mut beat = ticks(BEAT);
        let mut ask_chrony = ticks(CHRONY_INTERVAL);
        let mut shown_status = None;
        let mut leaving: Option<Instant> = None;
        loop {
            if stop.load(Ordering::Relaxed) {
                let since = *leaving.get_or_insert_with(|| {
                    self.fail_unfinished_job();
                    Instant::now()
                });
                if !self.has_unfetched_result() || since.elapsed() > LEAVE_PATIENCE {
                    break;
                }
            }
            tokio::select! {
                message = requests.next() => match message {
                    Some(message) => self.on_request(message).await,
                    None => break,
                },
                _ = renew.tick() => self.renew(),
                _ = ask_chrony.tick() => {
                    let service = self.clone();
                    tokio::task::spawn_blocking(move || {
                        *lock(&service.chrony_error_ns) = chrony_error_ns_max();
                    });
                }
                _ = beat.tick() => {
                    let status = self.status_line();
                    if status != shown_status {
                        status.iter().for_each(|line| tell(line));
                        shown_status = status;
                    }
                    self.beat().await;
                }
            }
        }
        // The state of the trial is sent once more, and the lease is given back.
        let farewell = async {
            self.beat().await;
            self.leases.give_back(&self.facts.name).await;
            let _ = self.client.flush().await;
        };
        let _ = timeout(FAREWELL, farewell).await;
        Ok(())
    }

    /// Fails the trial if it is not over, as this agent ends.
    fn fail_unfinished_job(&self) {
        if let Some(job) = lock(&self.state).job.as_ref().filter(|job| !job.is_over()) {
            job.fail("the agent was stopped on its host");
        }
    }

    /// Whether this agent keeps a result that was not fetched.
    fn has_unfetched_result(&self) -> bool {
        let state = lock(&self.state);
        let job = state.job.as_ref().filter(|job| !job.is_thanked());
        job.is_some_and(|job| matches!(job.doing(), JobState::Kept(..)))
    }

    /// What the agent is doing; `None` before its first trial.
    fn status_line(&self) -> Option<String> {
        let state = lock(&self.state);
        let job = state.job.as_ref()?;
        let TrialKey { run, trial } = &job.key;
        Some(match job.doing() {
            JobState::Busy => format!("trial {} of run {run}", trial + 1),
            JobState::Kept(_, why) if !job.is_thanked() => {
                format!("keeps the result until it is fetched: {why}")
            }
            _ => "waiting".to_owned(),
        })
    }

    /// Renews the lease in a task, as this may take seconds while NATS is away.
    fn renew(self: &Arc<Self>) {
        let service = self.clone();
        tokio::spawn(async move {
            let run = {
                let state = lock(&service.state);
                let job = state.job.as_ref().filter(|job| !job.is_over());
                job.map(|job| job.key.run.clone())
            };
            service.leases.renew(&AgentFacts { run, ..service.facts.clone() }).await;
        });
    }

    async fn beat(&self) {
        let beat = {
            let mut state = lock(&self.state);
            if state.job.as_ref().is_some_and(Job::is_forgotten) {
                state.job = None;
            }
            let job = state.job.as_ref().filter(|job| !job.is_thanked());
            job.map(|job| Heartbeat { key: job.key.clone(), doing: job.doing() })
        };
        if let Some(beat) = beat {
            let subject = beat_subject(&beat.key.run, &self.facts.name);
            let _ = self.client.publish(subject, json(&beat)).await;
        }
    }

    async fn on_request(self: &Arc<Self>, message: Message) {
        let came_ns = self.now_ns();
        let Some(verb) = Verb::of_subject(&message.subject) else {
            return;
        };
        let answer = match verb {
            Verb::Clock => json(&ClockReading {
                came_ns,
                went_ns: self.now_ns(),
                realtime_ahead_ns: clock::realtime_ahead_ns() as i64 - self.options.clock_shift_ns,
                is_synchronised: clock::is_synchronised(),
                chrony_error_ns: *lock(&self.chrony_error_ns),
            }),
            Verb::Piece => json(&self.on_piece(&message)),
            Verb::Prepare => return self.on_prepare(message),
            Verb::Greet => return self.on_question(message, question::greet),
            Verb::Aim => return self.on_question(message, question::aim),
            Verb::Go => json(&self.on_go(&message)),
            Verb::Cancel => json(&self.on_job(&message, Job::cancel)),
            Verb::Stop => json(&self.on_job(&message, Job::stop)),
            Verb::Thanks => json(&self.on_job(&message, Job::thank)),
            Verb::Result => self.on_result(&message).unwrap_or_default(),
        };
        self.reply(&message, answer).await;
    }

    async fn reply(&self, message: &Message, answer: Bytes) {
        if let Some(reply) = &message.reply {
            let _ = self.client.publish(reply.clone(), answer).await;
        }
    }

    /// Returns the reported clock.
    fn now_ns(&self) -> u64 {
        now_ns().saturating_add_signed(self.options.clock_shift_ns)
    }

    fn on_piece(&self, message: &Message) -> AgentAnswer {
        let header = message.headers.as_ref().and_then(|h| h.get(PIECE));
        let Some(place) = header.and_then(|words| parse_piece(words.as_str())) else {
            return AgentAnswer::No("a piece of the order has no number".to_owned());
        };
        lock(&self.state).pieces.put(place, message.payload.clone());
        AgentAnswer::Yes
    }

    /// Prepares a trial. The answer comes once all workers are ready, or cannot be.
    fn on_prepare(self: &Arc<Self>, message: Message) {
        let (answer, ready) = tokio::sync::oneshot::channel();
        let prepared = {
            let mut state = lock(&self.state);
            let prepare = parse::<PrepareRequest>(&message.payload).and_then(|part| {
                // A malformed request leaves the pieces of an incoming order in place.
                let pieces = std::mem::take(&mut state.pieces).take()?;
                Some((unpack::<TrialOrder>(&pieces).ok()?, part))
            });
            match (prepare, &state.job) {
                (None, _) => Err("the order is incomplete".to_owned()),
                (Some((_, part)), Some(job)) if !job.is_over() && job.key.run != part.key.run => {
                    Err(format!("it is running a trial of run {}", job.key.run))
                }
                (Some((order, part)), _) => {
                    if let Some(job) = &state.job {
                        job.stop();
                    }
                    state.job = Some(Job::begin(order, part, answer, self.clone()));
                    Ok(())
                }
            }
        };
        let service = self.clone();
        tokio::spawn(async move {
            let answer = match prepared {
                Ok(()) => ready.await.unwrap_or_else(|_| AgentAnswer::No("it crashed".to_owned())),
                Err(why) => AgentAnswer::No(why),
            };
            service.reply(&message, json(&answer)).await;
        });
    }

    fn on_go(&self, message: &Message) -> AgentAnswer {
        let Some(go) = parse::<GoRequest>(&message.payload) else {
            return AgentAnswer::No("the start request cannot be read".to_owned());
        };
        let at_ns = go.at_ns.saturating_add_signed(-self.options.clock_shift_ns);
        match &lock(&self.state).job {
            Some(job) if job.key == go.key => job.go(at_ns),
            _ => AgentAnswer::No(format!("it has no trial {}", go.key)),
        }
    }

    fn on_job(&self, message: &Message, act: fn(&Job)) -> AgentAnswer {
        let key = parse::<TrialKey>(&message.payload);
        match &lock(&self.state).job {
            Some(job) if Some(&job.key) == key.as_ref() => {
                act(job);
                AgentAnswer::Yes
            }
            _ => AgentAnswer::No("it has no such trial".to_owned()),
        }
    }

    fn on_result(&self, message: &Message) -> Option<Bytes> {
        let (key, piece) = parse::<(TrialKey, usize)>(&message.payload)?;
        let state = lock(&self.state);
        state.job.as_ref().filter(|job| job.key == key)?.piece(piece)
    }
}

impl JobState {
    fn is_over(&self) -> bool {
        !matches!(self, JobState::Busy)
    }
}
