//! The client of an observer on another host, and the choice of where to observe from.

use super::control::{Ask, ObserverFacts, SAY_MAX, SERVICE, Say};
use super::follow::Following;
use super::watch::{Armed, Watch};
use crate::control::{Door, Lost, SILENCE_NS, ServiceClock, Talk, printable};
use crate::error::RunError;
use crate::kernel::host;
use crate::sys::clock::monotonic_ns;
use knee_core::both_ends::ObservedStreams;
use knee_core::measure::{Observed, SynSource};
use knee_core::time::Nanos;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

/// A `knee observe` that watches for us.
#[derive(Debug)]
pub struct RemoteWatch {
    talk: Talk,
    facts: ObserverFacts,
    round_trip: Nanos,
    /// As read when it was armed.
    clock: ServiceClock,
}

impl RemoteWatch {
    /// Connects to the observer at `at` (`host:port`).
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: nobody answers there, or is no observer, or it refuses (busy, a
    /// wrong token).
    pub fn connect(at: &str, token: Option<&str>) -> Result<RemoteWatch, RunError> {
        let door = Door {
            at,
            service: SERVICE,
            token: token.unwrap_or_default(),
            purpose: "an observer watches the server's port at its host",
            line_max: SAY_MAX,
        };
        let asked_ns = monotonic_ns();
        let (talk, welcome) = door.enter(&AtomicBool::new(false))?;
        Ok(RemoteWatch {
            talk,
            facts: welcome.facts,
            round_trip: Nanos(monotonic_ns() - asked_ns),
            clock: ServiceClock::default(),
        })
    }

    /// The port that it watches.
    pub fn port(&self) -> u16 {
        self.facts.port
    }

    /// What counts the SYNs there.
    pub fn source(&self) -> SynSource {
        self.facts.source
    }

    /// What it takes to ask it something, at most.
    pub fn round_trip(&self) -> Nanos {
        self.round_trip
    }

    /// Lets the observer keep what comes from now on, and learns how its clock differs from this
    /// host's: from the quickest of several answers.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn arm(&mut self) -> Result<(), RunError> {
        let (clock, round_ns) =
            ServiceClock::quickest(CLOCK_READINGS, || match self.ask(&Ask::Arm)? {
                Say::Armed { clock_ns } => Ok(clock_ns),
                other => Err(self.unexpected(&other)),
            })?;
        (self.clock, self.round_trip) = (clock, Nanos(round_ns));
        Ok(())
    }

    /// Watches a window that begins at `origin_ns` of this host's CLOCK_MONOTONIC; to be called
    /// once it is armed. The window begins there up to a [`RemoteWatch::round_trip`] early, as the
    /// way there and the way back may differ, and never late.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn begin(
        &mut self,
        origin_ns: u64,
        interval: Nanos,
        duration: Nanos,
    ) -> Result<(), RunError> {
        let at_ns = origin_ns.wrapping_add(self.clock.ahead_ns);
        let begin = Ask::Begin {
            at_ns: at_ns.wrapping_sub(self.round_trip.0.div_ceil(2)),
            interval_ns: interval.0,
            duration_ns: duration.0,
        };
        match self.ask(&begin)? {
            Say::Begun => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends the watch and says what was seen there.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn finish(&mut self) -> Result<Observed, RunError> {
        match self.ask(&Ask::Finish)? {
            Say::Observed(observed) => Ok(*observed),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Follows one of `one_of` connections from now on.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn follow(&mut self, one_of: u16) -> Result<(), RunError> {
        match self.ask(&Ask::Follow { one_of })? {
            Say::Following => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends following and says what was seen there.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: it is gone.
    pub fn seen(&mut self) -> Result<ObservedStreams, RunError> {
        match self.ask(&Ask::Seen)? {
            Say::Seen(seen) => Ok(ObservedStreams {
                because: seen.because.as_deref().map(printable),
                ..*seen
            }),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<Say, RunError> {
        let told = self.talk.tell(ask);
        // One that refuses may close before it has read; why is then still to be read.
        let said = self.talk.hear(SILENCE_NS, None);
        said.map_err(|lost| self.talk.lost(told.err().unwrap_or(lost)))
    }

    fn unexpected(&self, said: &Say) -> RunError {
        self.talk.lost(Lost::unexpected(match said {
            Say::Refused { reason } => Some(reason),
            _ => None,
        }))
    }
}

/// Where the SYNs of trials are watched from, one window after another.
#[derive(Debug)]
pub enum Vantage {
    /// This host is the target's.
    Here {
        /// The target's port.
        port: u16,
        /// What keeps all that comes, until its window is told.
        armed: Option<Armed>,
        /// The window being watched.
        watch: Option<Watch>,
        /// The connections being followed.
        following: Option<Following>,
        /// Whether any are to be.
        follows: bool,
    },
    /// An observer on the target's host.
    There {
        /// The observer.
        watch: Box<RemoteWatch>,
        /// Why it could not be armed or told to begin.
        failed: Option<String>,
    },
}

/// The best place to observe `target` from: the observer that was named, this host where the
/// target's address is its own, or none, where only the generator's attempts can be counted.
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
        let here = Vantage::Here {
            port,
            armed: None,
            watch: None,
            following: None,
            follows: true,
        };
        return Ok(host::is_own(target.ip()).then_some(here));
    };
    let watch = RemoteWatch::connect(at, token)?;
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
    /// How long before a window begins it should be told, so that what stands then can be read
    /// then.
    pub fn lead(&self) -> Nanos {
        match self {
            Vantage::Here { .. } => Nanos::from_millis(5),
            Vantage::There { watch, .. } => watch.round_trip() + watch.round_trip() + LEAD_THERE,
        }
    }

    /// Keeps what comes from now on: what comes in a window that begins later is not missed,
    /// however late [`Vantage::begin`] tells of it.
    pub fn arm(&mut self) {
        match self {
            Vantage::Here {
                port, armed, watch, ..
            } => {
                *watch = None;
                *armed = Some(Armed::new(*port));
            }
            Vantage::There { watch, failed } => {
                *failed = watch.arm().err().map(|e| e.to_string());
            }
        }
    }

    /// Watches a window, once armed; see [`Armed::begin`]. What goes wrong is told by
    /// [`Vantage::finish`].
    pub fn begin(&mut self, origin_ns: u64, interval: Nanos, duration: Nanos) {
        match self {
            Vantage::Here { armed, watch, .. } => {
                *watch = armed
                    .take()
                    .map(|armed| armed.begin(origin_ns, interval, duration));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    let begun = watch.begin(origin_ns, interval, duration);
                    *failed = begun.err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends the watch and says what was seen: nothing, and why, where the observer is gone.
    pub fn finish(&mut self) -> Observed {
        let nothing = |because: String| Observed {
            because: Some(because),
            ..Observed::default()
        };
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
}

/// Connections that are followed.
impl Vantage {
    /// The same, but on this host no connection is followed: all packets that leave it would be
    /// looked at, which takes about 14 % of the connects that a processor can make.
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

    /// Follows one of `one_of` connections that begin from now on. What goes wrong is told by
    /// [`Vantage::seen`].
    pub fn follow(&mut self, one_of: u16) {
        match self {
            Vantage::Here {
                port, following, ..
            } => {
                *following = None;
                *following = Some(Following::begin(*port, one_of));
            }
            Vantage::There { watch, failed } => {
                if failed.is_none() {
                    *failed = watch.follow(one_of).err().map(|e| e.to_string());
                }
            }
        }
    }

    /// Ends following, and says what was seen: nothing, and why, where the observer is gone. To be
    /// asked before [`Vantage::finish`], which tells the same reason.
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

/// An answer that was not kept waiting is among so many.
const CLOCK_READINGS: u32 = 5;

const LEAD_THERE: Nanos = Nanos::from_millis(20);
