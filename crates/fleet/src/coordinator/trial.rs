//! One trial, made by all agents together.

use super::collect::{JoinedTrial, fetch_kept, fetch_stored};
use super::{AgentClient, FleetOptions, Member, notify_agents};
use crate::agent::files_of;
use crate::bus::{Bus, Stores, fullness, json, not_stored, now_ns, parse};
use crate::clocks::{READINGS, chrony_error_ns_max};
use crate::interval_share::LiveMerge;
use crate::parcel::{outline, pack, piece_words};
use crate::protocol::{
    AgentAnswer, GoRequest, Heartbeat, JobState, PIECE, PlanFacts, PrepareRequest, SILENT, SPEC,
    Snapshot, TrialKey, TrialOrder, Verb, agent_subject, result_subject,
};
use async_nats::{HeaderMap, Request, RequestErrorKind, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use knee_engine::error::RunError;
use knee_engine::input;
use knee_engine::observe::Vantage;
use knee_load::measure::{IntervalWatcher, SentinelSample, Trial};
use knee_load::spec::{Load, TrialSpec, WorkerRange};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Notes shown when the connection to NATS is lost during a trial, and when it is back.
const NATS_IS_AWAY: &str =
    "NATS is away: agents continue to measure; their results are fetched once NATS is back";
const NATS_IS_BACK: &str = "NATS is back";

/// Operations per second that one worker schedules with most of its core to spare.
const RATE_PER_WORKER: f64 = 20_000.0;
/// Time from the start request to the beginning, in addition to several round trips.
const LEAD: Duration = Duration::from_millis(150);
/// Least lead for each agent.
const LEAD_EACH: Duration = Duration::from_millis(1);
/// Agents whose clocks are read at a time: more would wait for each other, and be less exact.
const READ_AT_ONCE: usize = 32;
/// Agents that get ready at a time: where many are on one host, all at once would take too long.
const PREPARED_AT_ONCE: usize = 128;
/// Attempts, each with a longer lead than the one before.
const ATTEMPTS: u32 = 3;
/// Time limit for getting ready, beyond the time limit of a connect.
const READY_PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for the results after the planned end.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(120);
/// Results that are fetched and joined at a time.
const FETCHED_AT_ONCE: usize = 64;
/// Interval of checking which agents have delivered and which are silent.
const GLANCE: Duration = Duration::from_millis(100);
/// Silence after which an agent is lost if it is not connected to NATS. An agent that connects
/// again waits at most 4 s between two attempts (`async_nats`).
const DISCONNECTED: Duration = Duration::from_secs(5);

/// A trial of the fleet.
pub(super) struct FleetTrial<'a> {
    pub(super) bus: &'a Bus,
    pub(super) stores: &'a Stores,
    pub(super) options: &'a FleetOptions,
    pub(super) key: TrialKey,
    pub(super) spec: &'a TrialSpec,
    /// Where the server is watched from.
    pub(super) vantage: Option<&'a mut Vantage>,
}

/// An agent's part of the trial.
struct AgentPart {
    name: String,
    crew: WorkerRange,
    doing: JobState,
    /// Time of its last sign of life.
    heard_ns: u64,
    /// Number of requests for its result.
    asked: u32,
    /// Whether its result is joined to the others; or why there is none.
    fate: Option<Result<(), String>>,
}

/// The sentinels of a trial, which the coordinator makes from its host. A target that it cannot
/// reach has none, and the trial ends at the earliest time.
struct FleetSentinels {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Vec<SentinelSample>>,
}

impl FleetSentinels {
    fn start(spec: &TrialSpec, begin_ns: u64) -> Result<FleetSentinels, RunError> {
        let (spec, enough) = (spec.clone(), Arc::<AtomicBool>::default());
        let flag = Arc::clone(&enough);
        let work = move || {
            let never = AtomicBool::new(false);
            let samples = knee_engine::run_sentinels(&spec, || Some(begin_ns), &never, &flag);
            samples.unwrap_or_else(|_| {
                let window_ns = begin_ns + spec.warmup.0;
                let ends = spec.sentinel.map_or(spec.duration, |sentinel| sentinel.ends_from);
                while now_ns() < window_ns + ends.0 && !flag.load(Ordering::Relaxed) {
                    std::thread::sleep(GLANCE);
                }
                flag.store(true, Ordering::Relaxed);
                Vec::new()
            })
        };
        let spawned = std::thread::Builder::new().name("sentinel".to_owned()).spawn(work);
        let thread =
            spawned.map_err(|e| RunError::NotPermitted(format!("cannot start a thread: {e}")))?;
        Ok(FleetSentinels { enough, thread })
    }

    fn finish(self) -> Vec<SentinelSample> {
        self.enough.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl FleetTrial<'_> {
    /// Runs the trial.
    pub(super) async fn run(
        mut self,
        members: &mut [Member],
        watch: &mut dyn IntervalWatcher,
        stop: &AtomicBool,
    ) -> Result<Trial, RunError> {
        let crews = self.assign_crews(members)?;
        let listen = |what: &str| {
            let subject = format!("knee.{what}.{}.*", self.key.run);
            let client = self.bus.client.clone();
            async move {
                let subscribed = client.subscribe(subject).await;
                subscribed.map_err(|e| RunError::FleetLost(format!("no subscription: {e}")))
            }
        };
        let (beats, live) = (listen("beat").await?, listen("live").await?);
        self.store_plan(members, &crews).await?;
        let mut vantage = self.vantage.take();
        if let Some(vantage) = &mut vantage {
            vantage.arm();
        }
        let begin_ns = self.begin(members, &crews).await?;
        if let Some(vantage) = &mut vantage {
            let window_ns = begin_ns + self.spec.warmup.0;
            vantage.begin(window_ns, self.spec.interval, self.spec.duration);
        }
        let now = now_ns();
        let mut parts: Vec<AgentPart> = participants(members, &crews)
            .map(|(member, crew)| AgentPart {
                name: member.facts.name.clone(),
                crew,
                doing: JobState::Busy,
                heard_ns: now,
                asked: 0,
                fate: None,
            })
            .collect();
        let sentinels = FleetSentinels::start(self.spec, begin_ns)?;
        let flags = [stop, &sentinels.enough];
        let joined = self.follow(&mut parts, beats, live, begin_ns, watch, flags).await;
        let is_enough = sentinels.enough.load(Ordering::Relaxed);
        let sentinels = sentinels.finish();
        let observed = vantage.map(Vantage::finish);
        self.release_results(&parts).await;
        let mut trial = self.finish(members, parts, joined)?;
        trial.measurement.began_ns = begin_ns;
        // Agents cannot tell an interrupt from an end by enough samples.
        trial.interrupted &= !is_enough || stop.load(Ordering::Relaxed);
        trial.measurement.sentinels = sentinels;
        Ok(Trial { observed, ..trial })
    }

    /// Assigns each agent its share of the workers.
    fn assign_crews(&self, members: &[Member]) -> Result<Vec<WorkerRange>, RunError> {
        let threads = self.options.threads;
        let offered: Vec<u32> =
            members.iter().map(|m| threads.unwrap_or(m.facts.cores).max(1)).collect();
        let connections = knee_engine::connections_of(self.spec);
        let busy = match (&self.spec.load, threads) {
            (Load::Open(open), None) => {
                let workers = (open.peak_per_s() / RATE_PER_WORKER).ceil() as u32;
                workers.max(members.len() as u32)
            }
            _ => u32::MAX,
        };
        let crews = WorkerRange::deal(&offered, connections.min(busy).max(1));
        for (member, crew) in members.iter().zip(&crews) {
            let (facts, needed) = (&member.facts, crew.part(connections.into()));
            let permitted = u64::from(facts.connections_max);
            if needed > permitted {
                return Err(RunError::NotPermitted(format!(
                    "agent {} may have {permitted} connections open, and its share is {needed}: \
                     raise its limit of descriptors (ulimit -n), or ask for fewer connections",
                    facts.name
                )));
            }
        }
        Ok(crews)
    }

    /// Stores the plan, for `knee fleet collect`.
    async fn store_plan(&self, members: &[Member], crews: &[WorkerRange]) -> Result<(), RunError> {
        let failed = |why: String| {
            RunError::FleetLost(format!("the plan cannot be stored in JetStream: {why}"))
        };
        let pieces = pack(&outline(self.spec)).map_err(|e| failed(e.to_string()))?;
        for (number, piece) in pieces.iter().enumerate() {
            let subject = result_subject(&self.key, SPEC, &number.to_string());
            let stored = match self.bus.stream.publish(subject, piece.clone()).await {
                Ok(sent) => sent.await.map(drop),
                Err(e) => Err(e),
            };
            if let Err(e) = stored {
                let full = fullness(&self.bus.stream, self.stores).await;
                return Err(failed(format!("{}.{full}", not_stored(&e))));
            }
        }
        let plan = PlanFacts {
            key: self.key.clone(),
            agents: participants(members, crews)
                .map(|(m, crew)| (m.facts.name.clone(), crew))
                .collect(),
            started_at: self.options.started_at.clone(),
            pieces: pieces.len() as u32,
        };
        let put = self.stores.plans.put(&self.key.run, json(&plan)).await;
        put.map(drop).map_err(|e| failed(not_stored(&e)))
    }

    /// Prepares all agents and starts them. Returns the beginning, on this host's clock.
    async fn begin(&self, members: &mut [Member], crews: &[WorkerRange]) -> Result<u64, RunError> {
        let mut lead = LEAD.max(LEAD_EACH * members.len() as u32);
        let mut attempt = 1;
        loop {
            if let Err(error) = self.prepare(members, crews).await {
                self.cancel(members).await;
                return Err(error);
            }
            let uncertain = members.iter().map(|m| m.clock.uncertainty_ns);
            let begin_ns = now_ns() + lead.as_nanos() as u64 + 8 * uncertain.max().unwrap_or(0);
            let Some(why) = self.send_go(members, crews, begin_ns).await else {
                return Ok(begin_ns);
            };
            // No agent has sent load: those that received the request in time still wait to begin.
            self.cancel(members).await;
            if attempt == ATTEMPTS {
                return Err(RunError::FleetLost(format!(
                    "the agents cannot begin together, tried {ATTEMPTS} times: {why}"
                )));
            }
            attempt += 1;
            lead *= 4;
        }
    }

    /// Sends the trial to all agents and reads their clocks. One that does not answer is lost.
    async fn prepare(&self, members: &mut [Member], crews: &[WorkerRange]) -> Result<(), RunError> {
        let order = TrialOrder { spec: self.spec.clone(), files: self.files()? };
        let pieces = pack(&order)
            .map_err(|e| RunError::NotPermitted(format!("the order cannot be written: {e}")))?;
        let limit = Duration::from_nanos(self.spec.connect_timeout.0) + READY_PATIENCE;
        let prepared = participants(members, crews).map(|(m, crew)| {
            let prepare = PrepareRequest { key: self.key.clone(), crew };
            let client = AgentClient::new(&self.bus.client, &m.facts.name);
            let pieces = &pieces;
            async move {
                (m.facts.name.clone(), send_order(&client, pieces, &prepare, limit).await)
            }
        });
        let answers = futures_util::stream::iter(prepared).buffered(PREPARED_AT_ONCE);
        let answers: Vec<_> = answers.collect().await;
        let refused = answers.into_iter().find_map(|(agent, answer)| match answer {
            Ok(AgentAnswer::Yes) => None,
            Ok(AgentAnswer::No(why)) => {
                Some(RunError::NotPermitted(format!("agent {agent}: {why}")))
            }
            Ok(AgentAnswer::Unreachable(why)) => {
                Some(RunError::Unreachable(format!("agent {agent}: {why}")))
            }
            Err(why) => Some(mark_lost(members, &agent, &why)),
        });
        match refused {
            Some(error) => Err(error),
            None => self.read_clocks(members).await,
        }
    }

    /// The files that the spec names: agents have none of them.
    fn files(&self) -> Result<Vec<(String, Vec<u8>)>, RunError> {
        let mut spec = self.spec.clone();
        let read = files_of(&mut spec).into_iter().map(|name| {
            let bytes = input::read(&*name, input::SECRETS_MAX)
                .map_err(|why| RunError::NotPermitted(format!("{name}: {why}")))?;
            Ok((name.clone(), bytes))
        });
        read.collect()
    }

    async fn read_clocks(&self, members: &mut [Member]) -> Result<(), RunError> {
        let read = members.iter_mut().map(|member| async {
            let clock =
                AgentClient::new(&self.bus.client, &member.facts.name).clock(READINGS).await;
            let read = clock.map(|clock| member.clock = clock);
            read.map_err(|why| (member.facts.name.clone(), why))
        });
        let mut read = futures_util::stream::iter(read).buffer_unordered(READ_AT_ONCE);
        let mut lost = None;
        while let Some(ended) = read.next().await {
            lost = lost.or(ended.err());
        }
        drop(read);
        lost.map_or(Ok(()), |(agent, why)| Err(mark_lost(members, &agent, &why)))
    }

    /// Sends the start request to all agents. Returns why one of them cannot start.
    async fn send_go(
        &self,
        members: &[Member],
        crews: &[WorkerRange],
        begin_ns: u64,
    ) -> Option<String> {
        let requests = participants(members, crews).map(|(m, _)| {
            let go = json(&GoRequest { key: self.key.clone(), at_ns: m.clock.agent_ns(begin_ns) });
            let client = AgentClient::new(&self.bus.client, &m.facts.name);
            async move {
                let left = begin_ns.saturating_sub(now_ns()) / 2;
                let limit = Duration::from_nanos(left).max(Duration::from_millis(1));
                match client.ask(Verb::Go, go, limit).await {
                    Ok(AgentAnswer::Yes) => None,
                    Ok(AgentAnswer::No(why) | AgentAnswer::Unreachable(why)) | Err(why) => {
                        Some(format!("agent {}: {why}", client.agent))
                    }
                }
            }
        });
        join_all(requests).await.into_iter().flatten().next()
    }

    async fn cancel(&self, members: &[Member]) {
        let names = members.iter().map(|member| member.facts.name.as_str());
        notify_agents(&self.bus.client, names, Verb::Cancel, &self.key).await;
    }

    /// Shows the progress and joins results, until each agent has delivered or is lost.
    async fn follow(
        &self,
        parts: &mut [AgentPart],
        mut beats: Subscriber,
        mut live: Subscriber,
        begin_ns: u64,
        watch: &mut dyn IntervalWatcher,
        flags: [&AtomicBool; 2],
    ) -> JoinedTrial {
        let mut joined = JoinedTrial::default();
        let places: HashMap<String, usize> =
            parts.iter().enumerate().map(|(place, part)| (part.name.clone(), place)).collect();
        let mut merge = LiveMerge::new(parts.iter().map(|part| part.name.as_str()));
        let mut glance = tokio::time::interval(GLANCE);
        glance.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopped_ns = None;
        let mut was_away = false;
        while parts.iter().any(|part| part.fate.is_none()) {
            tokio::select! {
                // Fetching may take longer than a glance interval: messages that arrived meanwhile
                // are read before an agent is declared silent.
                biased;
                Some(message) = beats.next() => {
                    let place = places.get(last_word(&message.subject));
                    let beat = parse::<Heartbeat>(&message.payload);
                    let beat = beat.filter(|beat| beat.key == self.key);
                    if let (Some(beat), Some(part)) = (beat, place.map(|&n| &mut parts[n])) {
                        part.doing = beat.doing;
                        part.heard_ns = now_ns();
                    }
                }
                Some(message) = live.next() => {
                    let snapshot = parse::<Snapshot>(&message.payload);
                    if let Some(snapshot) = snapshot.filter(|s| s.key == self.key) {
                        let agent = last_word(&message.subject).to_owned();
                        for (interval, response) in merge.add(&agent, snapshot.sum) {
                            watch.on_interval(&interval, &response);
                        }
                    }
                }
                _ = glance.tick() => {
                    let is_away = self.bus.link.down_since_ns().is_some();
                    if is_away != was_away {
                        watch.on_note(if is_away { NATS_IS_AWAY } else { NATS_IS_BACK });
                        was_away = is_away;
                    }
                    let is_over = flags.iter().any(|flag| flag.load(Ordering::Relaxed));
                    if is_over && stopped_ns.is_none() {
                        stopped_ns = Some(now_ns());
                        let names = parts.iter().map(|part| part.name.as_str());
                        notify_agents(&self.bus.client, names, Verb::Stop, &self.key).await;
                    }
                    self.fetch(parts, &mut joined).await;
                    self.declare_lost(parts, begin_ns, stopped_ns).await;
                }
            }
        }
        joined
    }

    /// Fetches and joins results that are ready. Their number is limited, as heartbeats wait
    /// meanwhile.
    async fn fetch(&self, parts: &mut [AgentPart], joined: &mut JoinedTrial) {
        let is_ready = |part: &&mut AgentPart| part.fate.is_none() && part.doing != JobState::Busy;
        let mut ready: Vec<&mut AgentPart> = parts.iter_mut().filter(is_ready).collect();
        ready.sort_by_key(|part| part.asked);
        let fetched = ready.into_iter().take(FETCHED_AT_ONCE).map(|part| async {
            part.asked += 1;
            let client = AgentClient::new(&self.bus.client, &part.name);
            let pieces = match &part.doing {
                JobState::Busy => return None,
                JobState::Failed(why) => {
                    part.fate = Some(Err(why.clone()));
                    return None;
                }
                JobState::Stored(count) => {
                    match fetch_stored(self.stores, &self.key, client.agent, *count).await {
                        Ok(pieces) => Ok(pieces),
                        Err(_) => fetch_kept(&client, &self.key, *count).await,
                    }
                }
                JobState::Kept(count, _) => fetch_kept(&client, &self.key, *count).await,
            };
            // A failed fetch is repeated at the next glance.
            Some((pieces.ok()?, part))
        });
        for (pieces, part) in join_all(fetched).await.into_iter().flatten() {
            part.fate = Some(joined.add(self.spec, &part.name, part.crew, &pieces));
        }
    }

    /// Declares silent agents lost once all others have delivered: those that are not connected to
    /// NATS sooner than those that are. While NATS is away no agent counts as silent; all are lost
    /// if it stays away too long.
    async fn declare_lost(&self, parts: &mut [AgentPart], begin_ns: u64, stopped_ns: Option<u64>) {
        let now = now_ns();
        let spec = self.spec;
        let longest = spec.last_start() + spec.timeout + spec.connect_timeout;
        let limit_ns =
            begin_ns.saturating_add(longest.0).saturating_add(DELIVERY_PATIENCE.as_nanos() as u64);
        let is_late = spec.operations_max.is_none() && now > limit_ns;
        if let Some(down_ns) = self.bus.link.down_since_ns() {
            let patience = if is_late || stopped_ns.is_some() {
                SILENT
            } else if spec.operations_max.is_some() {
                DELIVERY_PATIENCE
            } else {
                // The end of the measurement is known.
                Duration::MAX
            };
            let waited_ns = now.saturating_sub(down_ns.max(stopped_ns.unwrap_or(0)));
            if Duration::from_nanos(waited_ns) > patience {
                let away_s = now.saturating_sub(down_ns) / 1_000_000_000;
                let why = format!(
                    "NATS has been away for {away_s} s: once it is back, `knee fleet collect` \
                     fetches the agent's result"
                );
                let waiting = parts.iter_mut().filter(|part| part.fate.is_none());
                waiting.for_each(|part| part.fate = Some(Err(why.clone())));
            }
            return;
        }
        let back_ns = self.bus.link.back_ns();
        let silence =
            |part: &AgentPart| Duration::from_nanos(now.saturating_sub(part.heard_ns.max(back_ns)));
        let waiting = || parts.iter().filter(|part| part.fate.is_none());
        let all_silent = waiting().all(|part| silence(part) > SILENT);
        let disconnected = if !all_silent && waiting().all(|part| silence(part) > DISCONNECTED) {
            join_all(waiting().map(|part| self.is_disconnected(&part.name))).await
        } else {
            vec![false; waiting().count()]
        };
        let waiting = parts.iter_mut().filter(|part| part.fate.is_none());
        for (part, is_disconnected) in waiting.zip(disconnected) {
            let silent_s = now.saturating_sub(part.heard_ns) / 1_000_000_000;
            if all_silent {
                part.fate = Some(Err(format!("no sign of it for {silent_s} s")));
            } else if is_disconnected {
                let why = format!("it is not connected to NATS, no sign of it for {silent_s} s");
                part.fate = Some(Err(why));
            } else if is_late {
                let why = "it did not deliver within two minutes of the end";
                part.fate = Some(Err(why.to_owned()));
            }
        }
    }

    /// Whether NATS says that nobody listens for requests to an agent.
    async fn is_disconnected(&self, agent: &str) -> bool {
        let request = Request::new().timeout(Some(GLANCE));
        let subject = agent_subject(agent, Verb::Clock);
        let answer = self.bus.client.send_request(subject, request).await;
        answer.is_err_and(|e| e.kind() == RequestErrorKind::NoResponders)
    }

    /// Lets agents that delivered drop their results, and purges JetStream if no agent is lost.
    async fn release_results(&self, parts: &[AgentPart]) {
        let delivered = parts.iter().filter(|part| matches!(part.fate, Some(Ok(_))));
        let names = delivered.map(|part| part.name.as_str());
        notify_agents(&self.bus.client, names, Verb::Thanks, &self.key).await;
        if parts.iter().all(|part| matches!(part.fate, Some(Ok(_)))) {
            let filter = format!("knee.result.{}.{}.>", self.key.run, self.key.trial);
            let _ = self.stores.results.purge().filter(filter).await;
        }
    }

    /// Returns the trial that is joined from the results.
    fn finish(
        &self,
        members: &mut [Member],
        parts: Vec<AgentPart>,
        mut joined: JoinedTrial,
    ) -> Result<Trial, RunError> {
        let ahead = knee_engine::sys::clock::realtime_ahead_ns() as i64;
        // Asking chrony starts a process, and is of use only where an agent reports its error too.
        let has_chrony = members.iter().any(|m| m.clock.reading.chrony_error_ns.is_some());
        let own_error_ns = has_chrony.then(chrony_error_ns_max).flatten();
        let mut kept_reasons = BTreeMap::new();
        for part in parts {
            if let Some(Err(why)) = &part.fate {
                mark_lost(members, &part.name, why);
                joined.add_lost(&part.name, part.crew, why);
            }
            if let JobState::Kept(_, why) = part.doing {
                kept_reasons.insert(part.name, why);
            }
        }
        let mut trial = joined.finish()?;
        for agent in &mut trial.agents {
            let member = members.iter().find(|m| m.facts.name == agent.agent);
            agent.clock = member.map(|m| m.clock.for_report(ahead, own_error_ns));
            agent.kept_because = kept_reasons.remove(&agent.agent);
        }
        Ok(trial)
    }
}

async fn send_order(
    client: &AgentClient<'_>,
    pieces: &[Bytes],
    prepare: &PrepareRequest,
    limit: Duration,
) -> Result<AgentAnswer, String> {
    for (number, piece) in pieces.iter().enumerate() {
        let mut headers = HeaderMap::new();
        headers.insert(PIECE, piece_words(number, pieces.len()).as_str());
        let request = Request::new().headers(headers).payload(piece.clone());
        let answer = client.send(Verb::Piece, request).await?;
        match parse::<AgentAnswer>(&answer) {
            Some(AgentAnswer::Yes) => {}
            other => return Ok(other.unwrap_or_else(|| AgentAnswer::No("no answer".to_owned()))),
        }
    }
    client.ask(Verb::Prepare, json(prepare), limit).await
}

/// Members that have workers in the trial, with their share.
fn participants<'m>(
    members: &'m [Member],
    crews: &'m [WorkerRange],
) -> impl Iterator<Item = (&'m Member, WorkerRange)> {
    members.iter().zip(crews.iter().copied()).filter(|(_, crew)| crew.workers > 0)
}

/// Notes that an agent is lost, and why.
fn mark_lost(members: &mut [Member], agent: &str, why: &str) -> RunError {
    let member = members.iter_mut().find(|m| m.facts.name == agent);
    member.into_iter().for_each(|m| m.lost = Some(why.to_owned()));
    RunError::FleetLost(format!("agent {agent} is lost: {why}"))
}

fn last_word(subject: &str) -> &str {
    subject.rsplit('.').next().unwrap_or_default()
}
