//! The client of an observer, and the choice of where to observe from.

use super::streams::StreamCapture;
use super::watch::{ArmedWatch, PortWatch};
use super::wire::{ObserverFacts, ObserverReply, ObserverRequest, SAY_MAX, SERVICE};
use crate::control::{
    ControlClient, SILENCE_NS, ServiceClock, ServiceLogin, ServiceLost, printable,
};
use crate::error::RunError;
use crate::kernel::host;
use crate::sys::clock::monotonic_ns;
use knee_load::both_ends::ObservedStreams;
use knee_load::measure::{Observed, SynSource};
use knee_load::time::Nanos;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// A client of `knee observe`.
#[derive(Debug)]
pub struct ObserverClient {
    client: ControlClient,
    facts: ObserverFacts,
    round_trip: Nanos,
    /// Clock as read when it was armed.
    clock: ServiceClock,
}

impl ObserverClient {
    /// Connects to the observer at `at` (`host:port`).
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nothing answers, it is not an observer, or it refuses (busy,
    /// wrong token).
    pub fn connect(at: &str, token: Option<&str>) -> Result<ObserverClient, RunError> {
        let login = ServiceLogin {
            at,
            service: SERVICE,
            token: token.unwrap_or_default(),
            token_option: "--observe-token",
            purpose: "an observer watches the server's port at its host",
            line_max: SAY_MAX,
        };
        let asked_ns = monotonic_ns();
        let (client, welcome) = login.connect(&AtomicBool::new(false))?;
        Ok(ObserverClient {
            client,
            facts: welcome.facts,
            round_trip: Nanos(monotonic_ns() - asked_ns),
            clock: ServiceClock::default(),
        })
    }

    /// Port that it watches.
    pub fn port(&self) -> u16 {
        self.facts.port
    }

    /// What counts the SYNs at the server.
    pub fn source(&self) -> SynSource {
        self.facts.source
    }

    /// Longest round trip of a request.
    pub fn round_trip(&self) -> Nanos {
        self.round_trip
    }

    /// Lets the observer begin to keep SYNs, and reads its clock from the quickest of several
    /// answers.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the observer is gone.
    pub fn arm(&mut self) -> Result<(), RunError> {
        let (clock, round_ns) = ServiceClock::quickest(CLOCK_READINGS, || {
            match self.request(&ObserverRequest::Arm)? {
                ObserverReply::Armed { clock_ns } => Ok(clock_ns),
                other => Err(self.unexpected(&other)),
            }
        })?;
        (self.clock, self.round_trip) = (clock, Nanos(round_ns));
        Ok(())
    }

    /// Watches a window that begins at `origin_ns` of this host's CLOCK_MONOTONIC. Call it once it
    /// is armed. The window begins up to a round trip early, as the two directions may differ, and
    /// never late.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the observer is gone.
    pub fn begin(
        &mut self,
        origin_ns: u64,
        interval: Nanos,
        duration: Nanos,
    ) -> Result<(), RunError> {
        let at_ns = origin_ns.wrapping_add(self.clock.ahead_ns);
        let begin = ObserverRequest::Begin {
            at_ns: at_ns.wrapping_sub(self.round_trip.0.div_ceil(2)),
            interval_ns: interval.0,
            duration_ns: duration.0,
        };
        match self.request(&begin)? {
            ObserverReply::Begun => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends the watch and returns what was seen.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the observer is gone.
    pub fn finish(&mut self) -> Result<Observed, RunError> {
        match self.request(&ObserverRequest::Finish)? {
            ObserverReply::Observed(observed) => Ok(*observed),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Follows one of `one_of` connections from now on.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the observer is gone.
    pub fn follow(&mut self, one_of: u16) -> Result<(), RunError> {
        match self.request(&ObserverRequest::Follow { one_of })? {
            ObserverReply::Following => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends following and returns what was seen.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the observer is gone.
    pub fn seen(&mut self) -> Result<ObservedStreams, RunError> {
        match self.request(&ObserverRequest::Seen)? {
            ObserverReply::Seen(seen) => {
                Ok(ObservedStreams { because: seen.because.as_deref().map(printable), ..*seen })
            }
            other => Err(self.unexpected(&other)),
        }
    }

    fn request(&mut self, request: &ObserverRequest) -> Result<ObserverReply, RunError> {
        let sent = self.client.send(request);
        // An observer that refuses may close before it reads the request: its reason can still be
        // received.
        let reply = self.client.receive(SILENCE_NS, None);
        reply.map_err(|lost| self.client.lost(sent.err().unwrap_or(lost)))
    }

    fn unexpected(&self, reply: &ObserverReply) -> RunError {
        self.client.lost(ServiceLost::unexpected(match reply {
            ObserverReply::Refused { reason } => Some(reason),
            _ => None,
        }))
    }
}

/// Where the server's side of trials is watched from, one window after another.
#[derive(Debug)]
pub enum Vantage {
    /// This host, which is that of the target.
    Here {
        /// Port of the target.
        port: u16,
        /// The capture before its window is known.
        armed: Option<ArmedWatch>,
        /// The window being watched.
        watch: Option<PortWatch>,
        /// The connections being followed.
        following: Option<StreamCapture>,
        /// Whether connections are to be followed.
        follows: bool,
    },
    /// An observer on the target's host.
    There {
        /// The observer.
        watch: Box<ObserverClient>,
        /// Why it could not be armed or begun.
        failed: Option<String>,
    },
}

/// Chooses where to observe `target` from: the given observer, or this host if the target's address
/// is its own. Otherwise only the generator's attempts can be counted.
///
/// # Errors
/// [`RunError::Unreachable`]: the observer does not answer, refuses, or watches another port.
pub fn watch_for(
    target: SocketAddr,
    observer: Option<&str>,
    token: Option<&str>,
) -> Result<Option<Vantage>, RunError> {
    let Some(at) = observer else {
        let port = target.port();
        let this_host =
            Vantage::Here { port, armed: None, watch: None, following: None, follows: true };
        return Ok(host::is_own(target.ip()).then_some(this_host));
    };
    let watch = ObserverClient::connect(at, token)?;
    if watch.port() != target.port() {
        let (watched, wanted) = (watch.port(), target.port());
        return Err(RunError::Unreachable(format!(
            "the observer at {at} watches port {watched}, but the target's is {wanted}: start it \
             with --port {wanted}"
        )));
    }
    let (watch, failed) = (Box::new(watch), None);
    Ok(Some(Vantage::There { watch, failed }))
}

impl Vantage {
    /// Time before a window at which to call [`Vantage::begin`], so that its initial counters can
    /// be read.
    pub fn lead(&self) -> Nanos {
        match self {
            Vantage::Here { .. } => Nanos::from_millis(5),
            Vantage::There { watch, .. } => watch.round_trip() + watch.round_trip() + LEAD_THERE,
        }
    }

    /// Begins to keep SYNs. So none of a later window is missed, however late [`Vantage::begin`] is
    /// called.
    pub fn arm(&mut self) {
        match self {
            Vantage::Here { port, armed, watch, .. } => {
                *watch = None;
                *armed = Some(ArmedWatch::new(*port));
            }
            Vantage::There { watch, failed } => {
                *failed = watch.arm().err().map(|e| e.to_string());
            }
        }
    }

    /// Watches a window, once armed; see [`ArmedWatch::begin`]. Errors are reported by
    /// [`Vantage::finish`].
    pub fn begin(&mut self, origin_ns: u64, interval: Nanos, duration: Nanos) {
        match self {
            Vantage::Here { armed, watch, .. } => {
                *watch = armed.take().map(|armed| armed.begin(origin_ns, interval, duration));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    let begun = watch.begin(origin_ns, interval, duration);
                    *failed = begun.err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends the watch and returns what was seen; nothing, with a reason, if the observer is gone.
    pub fn finish(&mut self) -> Observed {
        let nothing = |because: String| Observed { because: Some(because), ..Observed::default() };
        match self {
            Vantage::Here { watch, .. } => match watch.take() {
                Some(watch) => watch.finish(),
                None => nothing("nothing was watched".to_owned()),
            },
            Vantage::There { watch, failed } => match failed.take() {
                Some(because) => nothing(because),
                None => watch.finish().unwrap_or_else(|e| nothing(e.to_string())),
            },
        }
    }

    /// Turns off following of connections on this host. Following inspects all packets that leave
    /// it, which costs about 14 % of the connects that a processor can make.
    #[must_use]
    pub fn counting_only(mut self) -> Vantage {
        if let Vantage::Here { follows, .. } = &mut self {
            *follows = false;
        }
        self
    }

    /// Whether connections can be followed from here.
    pub fn follows(&self) -> bool {
        match self {
            Vantage::Here { follows, .. } => *follows,
            Vantage::There { .. } => true,
        }
    }

    /// Follows one of `one_of` connections that begin from now on. Errors are reported by
    /// [`Vantage::seen`].
    pub fn follow(&mut self, one_of: u16) {
        match self {
            Vantage::Here { port, following, .. } => {
                *following = None;
                *following = Some(StreamCapture::begin(*port, one_of));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    *failed = watch.follow(one_of).err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends following and returns what was seen; nothing, with a reason, if the observer is gone.
    /// Call it before [`Vantage::finish`], which takes the same reason.
    pub fn seen(&mut self) -> ObservedStreams {
        let nothing = |because: String| ObservedStreams {
            because: Some(because),
            ..ObservedStreams::default()
        };
        match self {
            Vantage::Here { following, .. } => match following.take() {
                Some(following) => following.finish(),
                None => nothing("nothing was followed".to_owned()),
            },
            Vantage::There { watch, failed } => match failed {
                Some(because) => nothing(because.clone()),
                None => watch.seen().unwrap_or_else(|e| nothing(e.to_string())),
            },
        }
    }
}

/// Clock readings: at least one of them is not delayed.
const CLOCK_READINGS: u32 = 5;

const LEAD_THERE: Nanos = Nanos::from_millis(20);
