//! What a worker carries its operations with.

use super::{Plan, connections_of};
use crate::exchange::Exchange;
use crate::exchange::http1::{self, Http1};
use crate::exchange::http2::{Http2, Http2Shared};
use crate::kernel::limits;
use crate::link::{Clear, Link, Tls, TlsTarget};
use crate::pool::http_client::{ClientConfig, HttpClient, Kept, OneEach, Policy};
use crate::pool::requests::RequestSet;
use crate::pool::session_client::{SessionClient, SessionConfig};
use crate::worker::Done;
use knee_core::driver::RateLimit;
use knee_core::measure::IntervalPart;
use knee_core::session::{Origin, Users};
use knee_core::spec::{ConnectScheme, HttpVersion, Load, OverloadLoad, Share};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Beside the connects of a worker so many connections may be open that wait for a response, or for
/// the server to close them, as far as this process may have descriptors.
const RESPONDING_MAX: usize = 16_384;

impl Plan<'_> {
    /// Works with the client for this kind of load, link and exchange.
    pub(super) fn work_kind(
        &self,
        requests: RequestSet,
        share: Share,
        parts: &Sender<IntervalPart>,
    ) -> io::Result<Done> {
        let target = &self.spec.target;
        let http1 = || http1::Shared::new(target);
        if let Load::Overload(load) = &self.spec.load {
            let longest = match target.sessions {
                Some(_) => usize::MAX,
                None => self.requests.length_max(),
            };
            let policy = OneEach::new(self.sources.clone(), load.close, longest);
            let made_of = self.made_of(self.connect_config(load, share), policy, requests);
            return made_of.speak::<Http1>(http1(), share, parts);
        }
        let made_of = self.made_of(self.client_config(share), Kept, requests);
        match target.version() {
            HttpVersion::Http2 => made_of.speak::<Http2>(Http2Shared::new(target), share, parts),
            HttpVersion::Auto | HttpVersion::Http11 => {
                made_of.speak::<Http1>(http1(), share, parts)
            }
        }
    }

    fn made_of<P: Policy>(
        &self,
        config: ClientConfig,
        policy: P,
        requests: RequestSet,
    ) -> MadeOf<'_, P> {
        MadeOf {
            plan: self,
            config,
            policy,
            requests,
            tls: self.tls.as_ref().map(TlsTarget::with_own_sessions),
        }
    }

    fn carry<L: Link, X: Exchange, P: Policy>(
        &self,
        client: HttpClient<L, X, P>,
        share: Share,
        parts: &Sender<IntervalPart>,
    ) -> io::Result<Done> {
        let slots = client.slots();
        let client = client.followed(self.one_of).within(self.rate_limit());
        if let Some(plan) = &self.spec.target.sessions {
            let target = &self.spec.target;
            let host = target.requests.first().map_or("", |r| r.host.as_str());
            let users = Users::new(Arc::clone(plan), (share.index, share.of), self.spec.seed)
                .of_origin(Origin::new(target.tls.is_some(), host));
            let config = SessionConfig {
                sessions_max: client.operations_max(),
                window: self.window(),
                timeout: self.spec.timeout,
            };
            let client = SessionClient::new(client, config, users, target);
            return self.work_with(client, slots, share, parts);
        }
        self.work_with(client, slots, share, parts)
    }

    /// One worker's part of the limit on operations per second.
    fn rate_limit(&self) -> Option<RateLimit> {
        let per_s = self.muster?.rate_max()?;
        Some(RateLimit::part_of(per_s, self.crew.workers))
    }

    fn connect_config(&self, load: &OverloadLoad, share: Share) -> ClientConfig {
        let spec = self.spec;
        let connecting = share.part(load.scheme.connecting_max().into()) as usize;
        let permitted = limits::connections_permitted() / u64::from(self.crew.workers.max(1));
        let slots = (connecting + RESPONDING_MAX).min(permitted as usize);
        let connections = slots.max(connecting) as u32;
        ClientConfig {
            address: self.address,
            keep_alive: spec.target.keep_alive,
            connections_max: connections,
            // A session keeps its connection.
            lanes: match spec.target.sessions {
                Some(_) => connections,
                None => 0,
            },
            streams_max: 1,
            timeout: spec.timeout,
            // A blocking connect waits for as long as its client has patience at all.
            connect_timeout: match load.scheme {
                ConnectScheme::Simple { .. } => spec.timeout,
                ConnectScheme::SClients { .. } | ConnectScheme::Scheduled { .. } => {
                    spec.connect_timeout
                }
            },
        }
    }

    fn client_config(&self, share: Share) -> ClientConfig {
        let spec = self.spec;
        let connections = share.part(connections_of(spec).into()) as u32;
        let is_multiplexed = spec.target.version() == HttpVersion::Http2;
        let keeps_lanes = match &spec.load {
            Load::Closed { .. } => true,
            // A session keeps its connection.
            Load::Open(_) | Load::Overload(_) => spec.target.sessions.is_some(),
        };
        let (connections_max, lanes) = match keeps_lanes && !is_multiplexed {
            true => (connections, connections),
            false => (connections.max(1), 0),
        };
        ClientConfig {
            address: self.address,
            keep_alive: spec.target.keep_alive,
            connections_max,
            lanes,
            streams_max: match is_multiplexed {
                true => spec.target.http2.streams(),
                false => 1,
            },
            timeout: spec.timeout,
            connect_timeout: spec.connect_timeout,
        }
    }
}

/// What a worker's connections are made of, but for what is spoken over them.
struct MadeOf<'a, P> {
    plan: &'a Plan<'a>,
    config: ClientConfig,
    policy: P,
    requests: RequestSet,
    tls: Option<TlsTarget>,
}

impl<P: Policy> MadeOf<'_, P> {
    fn speak<X: Exchange>(
        self,
        shared: X::Shared,
        share: Share,
        parts: &Sender<IntervalPart>,
    ) -> io::Result<Done> {
        let MadeOf {
            plan,
            config,
            policy,
            requests,
            tls,
        } = self;
        match tls {
            Some(tls) => {
                let link = tls.into();
                let client = HttpClient::<Tls, X, P>::new(config, policy, requests, link, shared);
                plan.carry(client, share, parts)
            }
            None => {
                let client = HttpClient::<Clear, X, P>::new(config, policy, requests, (), shared);
                plan.carry(client, share, parts)
            }
        }
    }
}
