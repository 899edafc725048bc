//! The hot loop in virtual time, over a kernel that is not there and servers that mean no good.
//!
//! Whatever a server does, the load ends by its deadline, every operation that began has ended, no
//! user is lost, and no more operations are a success than answers came whole. `KNEE_HOSTILE_SEEDS=10000` tries more seeds than a test run does, from
//! `KNEE_HOSTILE_FIRST` on.

mod audit;
mod kernel;
mod peer;

use super::{Worker, WorkerResult};
use crate::addresses::{AddressBook, AddressTurn};
use crate::exchange::dns::Dns;
use crate::exchange::http1::Http1;
use crate::exchange::http2::Http2;
use crate::exchange::websocket::WebSocket;
use crate::exchange::{TargetConversation, WorkerSetup};
use crate::link::Tls;
use crate::pool::client::Client;
use crate::pool::diverting_client::DivertingClient;
use crate::pool::http_client::{ClientConfig, HttpClient, OnePerOperation, Pooled};
use crate::pool::requests::{RequestSet, serialise_all};
use crate::pool::servers_client::ServersClient;
use crate::pool::session_client::{SessionClient, SessionConfig};
use crate::pool::step_client::StepClient;
use crate::reactor::{COVERED, ReceiveClock, Waiter, WireRequests};
use crate::sys::socket::{Address, RawAddress};
use audit::{Audit, Books};
use kernel::{FakeKernel, VirtualClock};
use knee_load::arrival::ArrivalLaw;
use knee_load::driver::AnyDriver;
use knee_load::law::Law;
use knee_load::measure::{Outcome, Recorder, RecorderConfig, Window};
use knee_load::messages::{MessageFormat, MessageRules};
use knee_load::quantity::Rate;
use knee_load::rng::{self, Rng};
use knee_load::session::{Instruction, RequestStep, SessionKind, SessionPlan, Users};
use knee_load::spec::{
    CloseKind, ConnectScheme, DnsSettings, EngineOptions, FurtherServer, Http2Limits, HttpRequest,
    HttpSettings, HttpVersion, Load, Margins, Matching, OpenLoad, OverloadLoad, Pause, Pick,
    Protocol, Share, Target, TrialSpec, Url, WaitPolicy, WebSocketSettings,
};
use knee_load::time::Nanos;
use peer::{ServerTraits, Spoken};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Seeds of a test run.
const SEEDS: u64 = 200;

const DURATION: Nanos = Nanos::from_millis(1_500);
const TIMEOUT: Nanos = Nanos::from_millis(150);
const CONNECT_TIMEOUT: Nanos = Nanos::from_millis(60);

/// What a worker may be late by: it sleeps up to 50 ms, and wakes up late.
const SLACK: Nanos = Nanos::from_millis(60);

/// Which of `n` a chance picks.
fn pick(rng: &mut Rng, n: u64) -> u64 {
    (rng::unit(rng) * n as f64) as u64
}

/// Whether a chance of `percent` comes true.
fn chance(rng: &mut Rng, percent: u64) -> bool {
    pick(rng, 100) < percent
}

/// One seed's load.
struct World {
    seed: u64,
    rng: Rng,
    spec: TrialSpec,
    traits: ServerTraits,
    connections_max: u32,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = rng::stream(seed, 0);
        let connections_max = 1 + pick(&mut rng, 6) as u32;
        let load = load(&mut rng, connections_max);
        let is_overload = matches!(load, Load::Overload(_));
        let speaks = match pick(&mut rng, 8) {
            _ if is_overload => Spoken::Http1,
            0 | 1 => Spoken::Http1,
            2 | 3 => Spoken::Http2,
            4 | 5 => Spoken::Grpc,
            6 => Spoken::WebSocket,
            _ => Spoken::Dns,
        };
        let begins_in_http = matches!(speaks, Spoken::Http1 | Spoken::Http2 | Spoken::Grpc);
        let streams = begins_in_http && !is_overload && chance(&mut rng, 30);
        let traits = ServerTraits { speaks, streams, never_whole: chance(&mut rng, 30) };
        let sessions = chance(&mut rng, 40).then(|| plan(chance(&mut rng, 50)));
        let counted = !is_overload && chance(&mut rng, 30);
        let keep_alive = chance(&mut rng, 80) || !begins_in_http;
        let mut target = target(traits, sessions.filter(|_| !is_overload), keep_alive);
        target.protocol = protocol(traits, &mut rng);
        if begins_in_http && chance(&mut rng, 50) {
            send_to_two_servers(&mut target);
        }
        let spec = TrialSpec {
            label: String::new(),
            level: load.level(),
            load,
            target,
            warmup: Nanos::ZERO,
            duration: if counted { Nanos::from_secs(3_600) } else { DURATION },
            operations_max: counted.then(|| 1 + pick(&mut rng, 300)),
            timeout: TIMEOUT,
            retry: None,
            sentinel: None,
            connect_timeout: CONNECT_TIMEOUT,
            interval: Nanos::from_millis(100),
            seed,
            engine: EngineOptions::default(),
        };
        World { seed, rng, spec, traits, connections_max }
    }

    /// Runs it over the one or the other kind of backend.
    fn run(self) {
        let requests = serialise_all(&self.spec.target);
        let picks = rng::stream(self.seed, rng::PICKS);
        let set = RequestSet::new(&self.spec.target, requests.clone(), 0, picks);
        let protocol = self.spec.target.protocol;
        if let Load::Overload(load) = &self.spec.load {
            let policy = OnePerOperation::new(load.close, requests.length_max());
            let shared = Http1::shared(&protocol.http(), &self.worker_setup());
            let client =
                HttpClient::<Tls, Http1, _>::new(self.config(0), policy, set, None, shared);
            let slots = client.slots();
            return self.over_kernel(Box::new(client), slots, requests);
        }
        match protocol {
            Protocol::Http(settings) if self.traits.speaks == Spoken::Http1 => {
                self.of_users::<Http1>(&settings, set, requests);
            }
            Protocol::Http(settings) => self.of_users::<Http2>(&settings, set, requests),
            Protocol::Grpc(_) => self.of_users::<Http2>(&protocol.http(), set, requests),
            Protocol::WebSocket(settings) => self.of_users::<WebSocket>(&settings, set, requests),
            Protocol::Dns(settings) => self.of_queries(settings, set, requests),
        }
    }

    fn worker_setup(&self) -> WorkerSetup<'_> {
        WorkerSetup {
            tls: None,
            target: &self.spec.target,
            streams_max: self.streams_max(),
            timeout: TIMEOUT,
            open_timeout: CONNECT_TIMEOUT,
            seed: (self.seed, 0),
        }
    }

    fn is_multiplexed(&self) -> bool {
        self.traits.speaks != Spoken::Http1
    }

    fn streams_max(&self) -> u32 {
        self.spec.target.shared_by().unwrap_or(1)
    }

    fn config(&self, first_slot: u32) -> ClientConfig {
        let spec = &self.spec;
        let keeps_lanes =
            matches!(spec.load, Load::Closed { .. }) || spec.target.sessions.is_some();
        let each = self.lanes_per_user();
        let lanes = match (&spec.load, self.is_multiplexed()) {
            (Load::Closed { vusers, .. }, false) => *vusers * each,
            _ if keeps_lanes && !self.is_multiplexed() => self.connections_max * each,
            _ => 0,
        };
        let connections_max = match &spec.load {
            Load::Overload(_) => 200,
            _ => lanes.max(self.connections_max),
        };
        ClientConfig {
            first_slot,
            addresses: AddressTurn::new(&Arc::new(AddressBook::of(address())), 0),
            tunnel: None,
            keep_alive: spec.target.keep_alive,
            connections_max,
            lanes,
            streams_max: self.streams_max(),
            keeps_all_open: spec.target.protocol.keeps_all_open(),
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
        }
    }

    fn client<X: TargetConversation>(
        &self,
        first_slot: u32,
        set: RequestSet,
        settings: &X::Settings,
    ) -> HttpClient<Tls, X, Pooled> {
        let shared = X::shared(settings, &self.worker_setup());
        HttpClient::new(self.config(first_slot), Pooled::default(), set, None, shared)
            .of_streams(&self.spec.target)
    }

    fn of_users<X: TargetConversation>(
        self,
        settings: &X::Settings,
        set: RequestSet,
        requests: WireRequests,
    ) {
        let target = &self.spec.target;
        let first = self.client::<X>(0, set.clone(), settings);
        let slots = first.slots();
        if target.sessions.is_none() {
            return self.over_kernel(Box::new(first), slots, requests);
        }
        if target.further.is_empty() {
            return self.of_sessions(Box::new(first), slots, requests);
        }
        let second = self.client::<X>(slots as u32, set, settings);
        let ends = vec![slots as u32, second.slots() as u32];
        let slots = second.slots();
        let clients: Vec<Box<dyn StepClient>> = vec![Box::new(first), Box::new(second)];
        let client = ServersClient::new((clients, ends), target);
        self.of_sessions(Box::new(client), slots, requests);
    }

    fn of_queries(self, settings: DnsSettings, set: RequestSet, requests: WireRequests) {
        let Some(then) = settings.after_truncation() else {
            return self.of_users::<Dns>(&settings, set, requests);
        };
        let worker = self.worker_setup();
        let wire = WireRequests::new(Dns::wire_requests(&then, worker.target));
        let kinds = [
            (set.clone(), Dns::shared(&settings, &worker)),
            (set.serialised_as(wire), Dns::shared(&then, &worker)),
        ];
        let client = DivertingClient::<Dns, _>::new(self.config(0), Pooled::default(), kinds);
        let slots = client.slots();
        if self.spec.target.sessions.is_some() {
            return self.of_sessions(Box::new(client), slots, requests);
        }
        self.over_kernel(Box::new(client), slots, requests);
    }

    fn of_sessions(self, client: Box<dyn StepClient>, slots: usize, requests: WireRequests) {
        let Some(plan) = &self.spec.target.sessions else { return };
        let config = SessionConfig {
            sessions_max: client.operations_max() / self.lanes_per_user(),
            window: self.window(),
            timeout: self.spec.timeout,
            retries: None,
        };
        let users = Users::new(Arc::clone(plan), (0, 1), self.seed);
        let client = SessionClient::new(client, config, users, &self.spec.target);
        self.over_kernel(Box::new(client), slots, requests);
    }

    fn lanes_per_user(&self) -> u32 {
        let plan = self.spec.target.sessions.as_ref().filter(|_| !self.is_multiplexed());
        plan.map_or(1, |plan| plan.width())
    }

    fn window(&self) -> Window {
        Window { start: Nanos::ZERO, end: self.spec.window_end() }
    }

    fn over_kernel(mut self, client: Box<dyn Client>, slots: usize, requests: WireRequests) {
        let at_once = chance(&mut self.rng, 50);
        let spec = &self.spec;
        let clock = VirtualClock::default();
        let kernel_rng = rng::stream(self.seed, 1);
        let (audit, books) = Audit::new(client);
        let (shape, shared) = ((slots, self.traits), (requests, Rc::clone(&books)));
        let mut kernel = FakeKernel::new(at_once, clock.clone(), kernel_rng, shape, shared);
        let window = self.window();
        let give_up = window.end + spec.timeout + spec.connect_timeout;
        let worker = Worker {
            driver: AnyDriver::new(spec, Share::WHOLE),
            client: Box::new(audit),
            recorder: Recorder::new(RecorderConfig::of(spec, 10_000)),
            clock: clock.clone(),
            receive_clock: ReceiveClock::new(0),
            waiter: Waiter::new(WaitPolicy::Sleep, COVERED, &Margins::of(Nanos::from_micros(50))),
            window,
            give_up,
            reading_delays: false,
        };
        let stop = AtomicBool::new(false);
        let done = worker.run(&mut kernel, [&stop, &AtomicBool::new(false)], &mut |_| {}).unwrap();
        self.audit(&done, &books, (clock.read(), give_up));
    }

    /// What must hold at the end.
    fn audit(&self, done: &WorkerResult, books: &Books, (ended, give_up): (Nanos, Nanos)) {
        let spec = &self.spec;
        let books = books.borrow();
        assert_eq!(books.begun, books.ended, "begun and ended");
        let measured = &done.measurement;
        assert_eq!(measured.lost, 0);
        let shed = measured.outcomes.count(Outcome::Shed);
        assert!(ended < give_up + SLACK, "it ended at {ended}, not by {give_up}");
        if let Some(all) = spec.operations_max {
            assert_eq!(books.begun + shed, all, "all were begun");
        }
        if spec.target.sessions.is_some() {
            return;
        }
        let outcomes = &measured.outcomes;
        assert_eq!(outcomes.total() - shed, books.begun, "outcomes: {outcomes:?}");
        assert_eq!(outcomes.count(Outcome::InFlight), 0, "each has a deadline");
        if let (Load::Closed { vusers, .. }, None) = (&spec.load, spec.operations_max) {
            let idle_max = TIMEOUT + CONNECT_TIMEOUT + Nanos::from_secs(1) + SLACK;
            let since = spec.window_end() - idle_max;
            for lane in 0..*vusers {
                let last = books.last_of_lane.get(&lane).copied();
                assert!(last.is_some_and(|at| at >= since), "user {lane} was lost: {last:?}");
            }
        }
    }
}

fn address() -> RawAddress {
    RawAddress::new(&Address::Tcp("127.0.0.1:1".parse().unwrap())).unwrap()
}

fn load(rng: &mut Rng, connections_max: u32) -> Load {
    match pick(rng, 5) {
        0 | 1 => {
            Load::Closed { vusers: 1 + pick(rng, 8) as u32, pause: Pause::NONE, stages: Vec::new() }
        }
        2 | 3 => Load::Open(OpenLoad {
            rate: Rate::per_second(20 + pick(rng, 400)).unwrap(),
            arrival: ArrivalLaw::Poisson,
            connections_max,
            in_flight_max: chance(rng, 30).then_some(20),
        }),
        _ => Load::Overload(OverloadLoad {
            scheme: ConnectScheme::SClients { descriptors: 1 + pick(rng, 16) as u32, sclients: 1 },
            close: if chance(rng, 50) { CloseKind::Fin } else { CloseKind::Rst },
        }),
    }
}

/// A short request and a long one, alone or as the steps of sessions. Their responses may be
/// streams of messages.
fn target(traits: ServerTraits, sessions: Option<SessionPlan>, keep_alive: bool) -> Target {
    let is_dns = traits.speaks == Spoken::Dns;
    let url = Url::parse(if is_dns { "dns://h/a.b?type=A" } else { "http://h:81/" }).unwrap();
    let request = |method, body| HttpRequest::new(method, &url, Vec::new(), body, 1).unwrap();
    let mut requests = vec![request("GET", Vec::new()), request("POST", vec![b'b'; 90_000])];
    let is_grpc = traits.speaks == Spoken::Grpc;
    let format = if is_grpc { MessageFormat::Grpc } else { MessageFormat::Sse };
    for request in requests.iter_mut().filter(|_| traits.streams) {
        request.answers_stream = is_grpc;
        let rules = MessageRules { format: Some(format), ..MessageRules::default() };
        request.messages = Some(Box::new(rules));
    }
    let endpoint = url.endpoint().clone();
    let mut target = Target::new(endpoint, requests, Pick::InOrder, keep_alive).unwrap();
    target.sessions = sessions.map(Arc::new);
    target
}

fn protocol(traits: ServerTraits, rng: &mut Rng) -> Protocol {
    let http2 = Http2Limits::default();
    match traits.speaks {
        Spoken::Http1 => Protocol::Http(HttpSettings { version: HttpVersion::Http11, http2 }),
        Spoken::Http2 => Protocol::Http(HttpSettings { version: HttpVersion::Http2, http2 }),
        Spoken::Grpc => Protocol::Grpc(http2),
        Spoken::WebSocket => Protocol::WebSocket(WebSocketSettings {
            matching: Matching::Number,
            messages_max: 1 + pick(rng, 5) as u32,
            is_binary: chance(rng, 20),
            ping_every: chance(rng, 50).then_some(Nanos::from_millis(40)),
            message_bytes_max: 1 << 20,
            subscribes: false,
        }),
        Spoken::Dns => Protocol::Dns(DnsSettings {
            over_tcp: chance(rng, 50),
            queries_max: 1 + pick(rng, 20) as u32,
            ..DnsSettings::default()
        }),
    }
}

/// The second step of sessions goes to another server.
fn send_to_two_servers(target: &mut Target) {
    let Some(plan) = &mut target.sessions else { return };
    Arc::make_mut(plan).requests[1].server = 1;
    let (endpoint, host) = (target.endpoint.clone(), "other".to_owned());
    let further = FurtherServer { endpoint, host, tls: None, proxy: None };
    target.further.push(further);
}

/// Users who ask twice, with a pause between; the second step has a time limit of its own. In
/// branches they then ask three times at once; one pauses before.
fn plan(with_branches: bool) -> SessionPlan {
    let pause = Instruction::Think(Law::Fixed(Nanos::from_millis(3)));
    let step = |timeout, goes_on| RequestStep {
        name: "step".to_owned(),
        timeout,
        goes_on,
        ..RequestStep::default()
    };
    let mut program = vec![Instruction::Request(0), pause.clone(), Instruction::Request(1)];
    if with_branches {
        program.extend([
            Instruction::Fork(vec![6, 9]),
            Instruction::Request(0),
            Instruction::Join(11),
            pause,
            Instruction::Request(1),
            Instruction::Join(11),
            Instruction::Request(0),
            Instruction::Join(11),
        ]);
    }
    SessionPlan {
        kinds: vec![SessionKind {
            name: "user".to_owned(),
            weight: 1,
            data: Vec::new(),
            program,
            variables: Vec::new(),
            repetitions: Vec::new(),
            new_connection: false,
        }],
        requests: vec![step(None, true), step(Some(Nanos::from_millis(40)), false)],
        ..SessionPlan::default()
    }
}

#[test]
fn hostile_servers_lose_no_operation_and_no_user() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first = number("KNEE_HOSTILE_FIRST").unwrap_or(0);
    let seeds = number("KNEE_HOSTILE_SEEDS").unwrap_or(SEEDS);
    let mut failed = Vec::new();
    for seed in first..first + seeds {
        if catch_unwind(AssertUnwindSafe(|| World::new(seed).run())).is_err() {
            failed.push(seed);
        }
    }
    assert_eq!(failed, [0; 0], "seeds that failed");
}
