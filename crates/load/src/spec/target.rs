//! The target of a load.

use super::{HttpRequest, HttpVersion, ParseError, Protocol, Proxy, Recording, Route, TlsSpec};
use crate::messages::StreamBounds;
use crate::session::{Origin, ScriptPlan, SessionPlan};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A server, what is spoken with it, and the requests to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Where to connect.
    pub endpoint: Endpoint,
    /// Further servers, to which some requests of sessions go. `endpoint` is server 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherServer>,
    /// The requests, at least one.
    pub requests: Vec<HttpRequest>,
    /// How the next one is picked.
    pub pick: Pick,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// What is spoken with it.
    #[serde(default)]
    pub protocol: Protocol,
    /// Connections that the virtual users of a closed loop share, at least 1; `None`: each has one
    /// of its own. Only where operations share connections.
    pub connections_max: Option<u32>,
    /// TLS parameters; `None`: cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Box<TlsSpec>>,
    /// The proxy that its connections go through; `None`: they go to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Box<Proxy>>,
    /// How connections to all its servers are made.
    #[serde(default)]
    pub route: Route,
    /// The sessions of users; `None`: each operation is one request, chosen by `pick`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Arc<SessionPlan>>,
    /// The recording whose requests are sent; `None`: they are chosen by `pick`.
    #[serde(skip)]
    pub recording: Option<Arc<Recording>>,
    /// What a stream of messages has to meet to be good; `None`: to be whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_bounds: Option<StreamBounds>,
}

impl Target {
    /// A target that all of `requests` go to.
    ///
    /// # Errors
    /// No request.
    pub fn new(
        endpoint: Endpoint,
        requests: Vec<HttpRequest>,
        pick: Pick,
        keep_alive: bool,
    ) -> Result<Target, ParseError> {
        if requests.is_empty() {
            return Err(ParseError("no request: give a URL".to_owned()));
        }
        Ok(Target {
            endpoint,
            further: Vec::new(),
            requests,
            pick,
            keep_alive,
            protocol: Protocol::default(),
            connections_max: None,
            tls: None,
            proxy: None,
            route: Route::default(),
            sessions: None,
            recording: None,
            stream_bounds: None,
        })
    }
}

impl Target {
    /// The version of HTTP where the target has a say in it: `Auto` in cleartext is HTTP/1.1. All
    /// its servers speak the same one.
    pub fn version(&self) -> HttpVersion {
        let is_cleartext = self.tls.is_none() || self.further.iter().any(|s| s.tls.is_none());
        match self.protocol.http().version {
            HttpVersion::Auto if is_cleartext => HttpVersion::Http11,
            version => version,
        }
    }

    /// The target with one of its servers alone, each in turn, by their numbers.
    pub fn each_server(&self) -> impl Iterator<Item = Cow<'_, Target>> {
        let version = self.version();
        let further = self.further.iter().map(Some);
        std::iter::once(None).chain(further).map(move |server| {
            if self.further.is_empty() {
                return Cow::Borrowed(self);
            }
            let mut alone = Target { further: Vec::new(), ..self.clone() };
            if let Some(FurtherServer { endpoint, tls, proxy, .. }) = server.cloned() {
                (alone.endpoint, alone.tls, alone.proxy) = (endpoint, tls, proxy);
            }
            Cow::Owned(alone.with_version(version))
        })
    }

    /// Where the connections to its first server go: to that, or to its proxy.
    pub fn hop(&self) -> Cow<'_, Endpoint> {
        match &self.proxy {
            Some(proxy) => Cow::Owned(proxy.endpoint()),
            None => Cow::Borrowed(&self.endpoint),
        }
    }

    /// The proxies of its servers, each once.
    pub fn proxies(&self) -> Vec<&Proxy> {
        let further = self.further.iter().map(|server| &server.proxy);
        let mut all: Vec<&Proxy> = Vec::new();
        for proxy in std::iter::once(&self.proxy).chain(further).filter_map(Option::as_deref) {
            if !all.contains(&proxy) {
                all.push(proxy);
            }
        }
        all
    }

    /// Whether a proxy makes a tunnel to its first server (CONNECT, RFC 9110 §9.3.6). Otherwise it
    /// forwards the requests, which are those of HTTP/1.1 in cleartext.
    pub fn is_tunnelled(&self) -> bool {
        self.proxy.is_some() && !(self.tls.is_none() && self.speaks_http1())
    }

    /// The proxy that forwards a request; `None`: no proxy has to understand it.
    pub fn forwarder_of(&self, request: usize) -> Option<&Proxy> {
        self.forwarder_to(self.server_of(request))
    }

    /// The proxy that forwards requests to a server; `None`: no proxy has to understand them.
    pub fn forwarder_to(&self, server: u16) -> Option<&Proxy> {
        let further = usize::from(server).checked_sub(1).and_then(|at| self.further.get(at));
        let (proxy, is_secured) = match further {
            Some(server) => (&server.proxy, server.tls.is_some()),
            None => (&self.proxy, self.tls.is_some()),
        };
        proxy.as_deref().filter(|_| !is_secured && self.speaks_http1())
    }

    fn speaks_http1(&self) -> bool {
        matches!(self.protocol, Protocol::Http(_)) && !self.version().has_streams()
    }

    /// The server that a request goes to.
    pub fn server_of(&self, request: usize) -> u16 {
        let plan = self.sessions.as_ref().filter(|_| !self.further.is_empty());
        plan.and_then(|plan| plan.requests.get(request)).map_or(0, |step| step.server)
    }

    /// Whether the connections of a request are secured.
    pub fn is_secured(&self, request: usize) -> bool {
        let further = usize::from(self.server_of(request)).checked_sub(1);
        match further.and_then(|at| self.further.get(at)) {
            Some(server) => server.tls.is_some(),
            None => self.tls.is_some(),
        }
    }

    /// The script that makes its requests, if any.
    pub fn script(&self) -> Option<&ScriptPlan> {
        self.sessions.as_ref()?.script.as_deref()
    }

    /// The origins of its servers, by their numbers.
    pub fn origins(&self) -> Vec<Origin> {
        let own = (0..self.requests.len()).find(|request| self.server_of(*request) == 0);
        let host = own.map_or_else(|| self.endpoint.to_string(), |n| self.requests[n].host.clone());
        let first = Origin::new(self.tls.is_some(), &host);
        let further = self.further.iter().map(|s| Origin::new(s.tls.is_some(), &s.host));
        std::iter::once(first).chain(further).collect()
    }

    /// The TLS parameters of its servers that have some.
    pub fn tls_of_servers(&mut self) -> impl Iterator<Item = &mut TlsSpec> {
        let further = self.further.iter_mut().map(|server| &mut server.tls);
        std::iter::once(&mut self.tls).chain(further).filter_map(Option::as_deref_mut)
    }

    /// The same target with this version of HTTP.
    pub fn with_version(mut self, version: HttpVersion) -> Target {
        self.protocol.set_version(version);
        self
    }

    /// The most connections that one user needs: one for each branch of its session. Where
    /// connections have many operations at a time, one is enough.
    pub fn lanes_per_user(&self) -> u32 {
        match (&self.sessions, self.shared_by()) {
            (Some(plan), None) => plan.width(),
            _ => 1,
        }
    }

    /// Most operations under way on a connection; `None` where a connection has one at a time.
    pub fn shared_by(&self) -> Option<u32> {
        self.protocol.shared_by(self.version())
    }
}

/// A server beside the first of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherServer {
    /// Where to connect.
    pub endpoint: Endpoint,
    /// Its host as in URLs, with the port unless that goes without saying.
    pub host: String,
    /// TLS parameters; `None`: cleartext.
    pub tls: Option<Box<TlsSpec>>,
    /// The proxy that its connections go through; `None`: they go to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Box<Proxy>>,
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A host name or address (an IPv6 address without brackets) and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port, 1 to 65535.
        port: u16,
    },
    /// A Unix stream socket.
    Unix {
        /// Its path.
        path: String,
    },
}

/// `host:port` with an IPv6 address in brackets, or `unix:path`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Endpoint::Tcp { host, port } => write!(f, "{host}:{port}"),
            Endpoint::Unix { path } => write!(f, "unix:{path}"),
        }
    }
}

/// How the next of several requests is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// One after the other, again from the first after the last.
    InOrder,
    /// At random by weight.
    Weighted,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Url;

    #[test]
    fn a_target_has_a_request() {
        let url = Url::parse("http://h/").unwrap();
        let request = HttpRequest::new("GET", &url, Vec::new(), Vec::new(), 1).unwrap();
        let target = |requests| Target::new(url.endpoint().clone(), requests, Pick::InOrder, true);
        assert!(target(Vec::new()).is_err());
        assert_eq!(target(vec![request.clone()]).unwrap().requests, [request]);
    }

    #[test]
    fn endpoints_read_as_they_are_written() {
        let tcp = |host: &str| Endpoint::Tcp { host: host.to_owned(), port: 81 };
        assert_eq!(tcp("h").to_string(), "h:81");
        assert_eq!(tcp("::1").to_string(), "[::1]:81");
        assert_eq!(Endpoint::Unix { path: "/a b".to_owned() }.to_string(), "unix:/a b");
    }
}
