//! Chooses the parts that a worker runs with, one axis per function: policy and conversation,
//! servers, sessions, backend. Only a client is compiled once for each kind, of its policy and its
//! conversation. All else is called through an interface.

use super::{RunPlan, connections_of};
use crate::addresses::AddressTurn;
use crate::confine;
use crate::error::RunError;
use crate::exchange::{
    Conversation, TargetConversation, TlsSetup, WithConversation, WorkerSetup, with_conversation,
};
use crate::kernel::host;
use crate::link::{Tls, TlsTarget};
use crate::pool::client::Client;
use crate::pool::diverting_client::DivertingClient;
use crate::pool::http_client::{ClientConfig, HttpClient, OnePerOperation, Policy, Pooled};
use crate::pool::replay_client::ReplayClient;
use crate::pool::requests::RequestSet;
use crate::pool::script_client;
use crate::pool::servers_client::ServersClient;
use crate::pool::session_client::{SessionClient, SessionConfig};
use crate::pool::step_client::StepClient;
use crate::reactor::{Backend, EpollBackend, UringBackend, WireRequests};
use knee_load::driver::{RateLimit, Retries};
use knee_load::session::Users;
use knee_load::spec::{BackendChoice, ConnectScheme, Load, OverloadLoad, Share};
use std::io;
use std::sync::Arc;

/// Connections of one worker that may wait for a response, or for the server to close them, beside
/// those that are being established. Bounded by the descriptors that this process may have.
const RESPONDING_MAX: usize = 16_384;

/// Resolves `Auto`, and checks that a backend asked for by name is permitted.
pub(super) fn choose_backend(choice: BackendChoice) -> Result<BackendChoice, RunError> {
    if choice != BackendChoice::IoUring {
        return Ok(BackendChoice::Epoll);
    }
    match UringBackend::new(1, WireRequests::new([]), false) {
        Ok(_) => Ok(BackendChoice::IoUring),
        Err(error) => Err(RunError::NotPermitted(format!(
            "--backend io_uring: this machine does not permit it ({error}); containers often \
             block it, kernel.io_uring_disabled may forbid it, and Linux 6.0 is needed: use \
             --backend epoll"
        ))),
    }
}

/// A client, and the backend that has room for its connections.
pub(super) type ClientAndBackend = (Box<dyn Client>, io::Result<Box<dyn Backend>>);

/// The client of one worker of a plan, made on its thread.
pub(super) struct Dispatch<'a> {
    pub(super) plan: &'a RunPlan<'a>,
    pub(super) share: Share,
    /// Each operation has a connection of its own, which is closed at once.
    pub(super) connects_each: bool,
}

impl Dispatch<'_> {
    /// Makes the client: chooses its policy, then its conversation.
    pub(super) fn client(&self, requests: RequestSet) -> ClientAndBackend {
        let target = &self.plan.spec.target;
        let Load::Overload(load) = &self.plan.spec.load else {
            let config = self.client_config();
            let policy = Pooled { closes_first: self.connects_each };
            return with_conversation(
                target,
                PolicyRun { dispatch: self, config, policy, requests },
            );
        };
        let request_bytes_max = match target.sessions {
            Some(_) => usize::MAX,
            None => self.plan.requests.length_max(),
        };
        let policy = OnePerOperation::new(load.close, request_bytes_max);
        let config = self.overload_config(load);
        with_conversation(target, PolicyRun { dispatch: self, config, policy, requests })
    }

    /// A client for each server of the target. Of the first alone an observer follows connections.
    fn with_servers<X: Conversation, P: Policy + Clone>(
        &self,
        config: ClientConfig,
        policy: P,
        requests: RequestSet,
        exchange: impl Fn(Option<TlsSetup>) -> X::Shared,
    ) -> ClientAndBackend {
        let target = &self.plan.spec.target;
        let (limit, mut one_of) = (self.rate_limit(), self.plan.one_of);
        let (mut clients, mut ends): (Vec<Box<dyn StepClient>>, _) = (Vec::new(), Vec::new());
        for server in &self.plan.servers {
            let config = ClientConfig {
                addresses: AddressTurn::new(&server.book, self.share.index),
                tunnel: server.tunnel.clone(),
                first_slot: ends.last().copied().unwrap_or(0),
                ..config.clone()
            };
            let tls = server.tls.as_ref().map(TlsTarget::with_own_sessions);
            let (policy, requests) = (policy.clone(), requests.clone());
            let setup = tls.as_ref().map(TlsTarget::setup);
            let tls = tls.filter(|_| !X::HAS_HANDSHAKE);
            let exchange = exchange(setup);
            let client = HttpClient::<Tls, X, P>::new(config, policy, requests, tls, exchange);
            ends.push(client.slots() as u32);
            let client = client.followed(one_of.take()).within(limit.clone());
            clients.push(Box::new(client.of_streams(target)));
        }
        let slots = ends.last().map_or(0, |end| *end as usize);
        match clients.len() {
            1 => self.with_steps(clients.remove(0), slots),
            _ => self.with_steps(Box::new(ServersClient::new((clients, ends), target)), slots),
        }
    }

    /// Chooses whether operations are requests, of a recording too, or sessions.
    fn with_steps(&self, client: Box<dyn StepClient>, slots: usize) -> ClientAndBackend {
        let spec = self.plan.spec;
        if let Some(recording) = &spec.target.recording {
            let recording = Arc::clone(recording);
            let client = ReplayClient::new(client, recording, self.share, spec.timeout);
            return (Box::new(client), self.backend(slots));
        }
        let Some(sessions) = &spec.target.sessions else {
            return (client, self.backend(slots));
        };
        let worker = (self.share.index, self.share.of);
        let users = Users::new(Arc::clone(sessions), worker, spec.seed);
        let users = users.of_origins(spec.target.origins());
        let config = SessionConfig {
            sessions_max: client.operations_max() / spec.target.lanes_per_user(),
            window: self.plan.window(),
            timeout: spec.timeout,
            retries: spec.retry.as_ref().map(|policy| Retries::new(policy, spec, self.share)),
        };
        if let Some(script) = &self.plan.script {
            let client = script_client::of_worker(client, config, users, script, spec, worker);
            return (client, self.backend(slots));
        }
        let client = SessionClient::new(client, config, users, &spec.target);
        (Box::new(client), self.backend(slots))
    }

    /// Chooses the backend.
    fn backend(&self, slots: usize) -> io::Result<Box<dyn Backend>> {
        let requests = self.plan.requests.clone();
        let timestamps = self.plan.timestamps.is_some();
        Ok(match self.plan.backend {
            BackendChoice::IoUring => Box::new(UringBackend::new(slots, requests, timestamps)?),
            BackendChoice::Epoll | BackendChoice::Auto => {
                Box::new(EpollBackend::new(slots, requests, timestamps)?)
            }
        })
    }

    fn worker_setup(&self, config: &ClientConfig, tls: Option<TlsSetup>) -> WorkerSetup<'_> {
        let spec = self.plan.spec;
        WorkerSetup {
            target: &spec.target,
            tls,
            streams_max: config.streams_max,
            timeout: spec.timeout,
            open_timeout: spec.connect_timeout,
            seed: (spec.seed, self.share.index.into()),
        }
    }

    /// One worker's part of the limit on operations per second: that of this process, or that
    /// which a script has for all processes, whichever is lower.
    fn rate_limit(&self) -> Option<RateLimit> {
        let crew = self.plan.crew;
        let permitted = match self.plan.barrier {
            Some(barrier) => barrier.rate_max(),
            None => confine::rate_max(),
        };
        let script = self.plan.spec.target.script();
        let asked = script.and_then(|script| script.requests_per_s_max);
        let asked = asked.map(|per_s| per_s * crew.weight());
        let per_s = permitted.into_iter().chain(asked).reduce(f64::min)?;
        Some(RateLimit::part_of(per_s, crew.workers))
    }

    fn overload_config(&self, load: &OverloadLoad) -> ClientConfig {
        let spec = self.plan.spec;
        let connecting = self.share.part(load.scheme.connecting_max().into()) as usize;
        let workers = u64::from(self.plan.crew.workers.max(1));
        let permitted = u64::from(host::connections_permitted()) / workers;
        let slots = (connecting + RESPONDING_MAX).min(permitted as usize);
        let connections_max = slots.max(connecting) as u32;
        // A session keeps its connection.
        let has_lanes = spec.target.sessions.is_some();
        ClientConfig {
            lanes: if has_lanes { connections_max } else { 0 },
            keeps_all_open: false,
            // A blocking connect waits as long as its client does.
            connect_timeout: match load.scheme {
                ConnectScheme::Simple { .. } => spec.timeout,
                ConnectScheme::SClients { .. } | ConnectScheme::Scheduled { .. } => {
                    spec.connect_timeout
                }
            },
            ..self.config_of(connections_max)
        }
    }

    fn client_config(&self) -> ClientConfig {
        let spec = self.plan.spec;
        let part = |of: u32| self.share.part(of.into()) as u32;
        let connections = part(connections_of(spec));
        // A session keeps its connection.
        let keeps_lanes =
            matches!(spec.load, Load::Closed { .. }) || spec.target.sessions.is_some();
        if self.connects_each {
            let config = self.config_of(connections.max(1));
            ClientConfig { keep_alive: false, keeps_all_open: false, ..config }
        } else if let Some(streams_max) = spec.target.shared_by() {
            ClientConfig { streams_max, ..self.config_of(connections.max(1)) }
        } else if keeps_lanes {
            let lanes = match spec.target.lanes_per_user() {
                1 => connections,
                each => each * part(connections_of(spec) / each).max(1),
            };
            ClientConfig { lanes, ..self.config_of(lanes) }
        } else {
            self.config_of(connections.max(1))
        }
    }

    /// Connections that no lane owns, with one operation on each.
    fn config_of(&self, connections_max: u32) -> ClientConfig {
        let spec = self.plan.spec;
        ClientConfig {
            addresses: AddressTurn::new(&self.plan.servers[0].book, self.share.index),
            tunnel: self.plan.servers[0].tunnel.clone(),
            first_slot: 0,
            keep_alive: spec.target.keep_alive,
            connections_max,
            lanes: 0,
            streams_max: 1,
            keeps_all_open: spec.target.protocol.keeps_all_open(),
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
        }
    }
}

/// A worker whose policy is chosen, and whose conversation is not.
struct PolicyRun<'a, P> {
    dispatch: &'a Dispatch<'a>,
    config: ClientConfig,
    policy: P,
    requests: RequestSet,
}

impl<P: Policy + Clone> WithConversation for PolicyRun<'_, P> {
    type Output = ClientAndBackend;

    fn with<X: TargetConversation>(self, settings: &X::Settings) -> ClientAndBackend {
        let PolicyRun { dispatch, config, policy, requests } = self;
        let of_connections = config.clone();
        let exchange = |tls| X::shared(settings, &dispatch.worker_setup(&of_connections, tls));
        dispatch.with_servers::<X, P>(config, policy, requests, exchange)
    }

    fn with_diversion<X: TargetConversation>(
        self,
        settings: &X::Settings,
        then: &X::Settings,
    ) -> ClientAndBackend {
        let PolicyRun { dispatch, config, policy, requests } = self;
        let worker = dispatch.worker_setup(&config, None);
        let wire = X::wire_requests(then, worker.target);
        let requests_then = requests.serialised_as(WireRequests::new(wire));
        let kinds =
            [(requests, X::shared(settings, &worker)), (requests_then, X::shared(then, &worker))];
        let client = DivertingClient::<X, P>::new(config, policy, kinds);
        let client = client.followed(dispatch.plan.one_of).within(dispatch.rate_limit());
        let slots = client.slots();
        dispatch.with_steps(Box::new(client), slots)
    }
}
