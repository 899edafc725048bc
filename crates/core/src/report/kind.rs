//! Which experiment a report is of, and its answer.

use crate::experiment::latency::report::LatencyConclusion;
use crate::experiment::overload::report::OverloadConclusion;
use crate::experiment::recover::report::RecoverConclusion;
use crate::experiment::run::RunConclusion;
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::throttle::report::ThrottleConclusion;
use crate::experiment::udp::report::UdpConclusion;
use crate::experiment::{Answer, Experiment};
use crate::finding::Code;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Makes everything that has one line per experiment.
macro_rules! experiments {
    ($($(#[$doc:meta])* $kind:ident, $name:literal, $conclusion:ty;)*) => {
        /// An experiment, and so the type of a report's conclusion.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        /// An experiment's own answer. The document's `command` names its type, never guessed from
        /// the keys, so that keys may be added to any.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Conclusion {
            $($(#[$doc])* $kind($conclusion),)*
        }

        $(impl From<$conclusion> for Conclusion {
            fn from(conclusion: $conclusion) -> Conclusion {
                Conclusion::$kind(conclusion)
            }
        })*

        impl Conclusion {
            /// Its common interface.
            pub fn answer(&self) -> &dyn Answer {
                match self {
                    $(Conclusion::$kind(conclusion) => conclusion,)*
                }
            }

            pub(super) fn answer_mut(&mut self) -> &mut dyn Answer {
                match self {
                    $(Conclusion::$kind(conclusion) => conclusion,)*
                }
            }
        }

        impl Kind {
            /// All experiments with their names on the command line and in reports.
            const NAMES: &[(Kind, &str)] = &[$((Kind::$kind, $name),)*];

            /// The conclusion in a document.
            pub(super) fn read_conclusion(
                self,
                document: serde_json::Value,
            ) -> Result<Conclusion, serde_json::Error> {
                Ok(match self {
                    $(Kind::$kind => Conclusion::$kind(serde_json::from_value(document)?),)*
                })
            }

            /// The codes of the findings that only this experiment has.
            pub(super) fn codes(self) -> Vec<Code> {
                match self {
                    $(Kind::$kind => <$conclusion>::codes(),)*
                }
            }

            /// The name of its conclusion's type, as the JSON Schema has it.
            pub fn conclusion_name(self) -> &'static str {
                match self {
                    $(Kind::$kind => stringify!($conclusion),)*
                }
            }

            /// What a report has in place of its conclusion before anything was measured: no
            /// number.
            pub fn without_conclusion(self) -> Conclusion {
                match self {
                    $(Kind::$kind => Conclusion::$kind(Default::default()),)*
                }
            }
        }
    };
}

// Each with its name on the command line and the type of its conclusion.
experiments! {
    /// One load, one trial.
    Run, "run", RunConclusion;
    /// Throughput and response time against load, and the knee.
    Sweep, "sweep", SweepConclusion;
    /// How the machine waits and holds a rate.
    Throttle, "throttle", ThrottleConclusion;
    /// Datagrams, and where they were lost.
    Udp, "udp", UdpConclusion;
    /// Connections beyond capacity.
    Overload, "overload", OverloadConclusion;
    /// An overload, and whether the service comes back after it.
    Recover, "recover", RecoverConclusion;
    /// Latency under flows.
    Latency, "latency", LatencyConclusion;
}

impl Kind {
    /// All experiments.
    pub fn all() -> impl Iterator<Item = Kind> {
        Kind::NAMES.iter().map(|&(kind, _)| kind)
    }
}

/// An experiment whose answer a report can hold.
pub trait Reported: Experiment<Conclusion: Into<Conclusion>> {}

impl<X: Experiment<Conclusion: Into<Conclusion>>> Reported for X {}

/// The command that made a report: `sweep`, or `analyze sweep` where others measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command {
    /// The experiment.
    pub kind: Kind,
    /// Whether the numbers were measured elsewhere, by another program.
    pub is_analysis: bool,
}

impl Command {
    /// The command that measures.
    pub const fn of(kind: Kind) -> Command {
        Command { kind, is_analysis: false }
    }

    /// The command that analyzes what others measured.
    pub const fn analysis_of(kind: Kind) -> Command {
        Command { kind, is_analysis: true }
    }

    /// The command of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(name: &str) -> Result<Command, String> {
        let (is_analysis, kind) = match name.strip_prefix("analyze ") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        let known = Kind::NAMES.iter().find(|(_, name)| *name == kind);
        known
            .map(|&(kind, _)| Command { kind, is_analysis })
            .ok_or_else(|| format!("unknown command `{name}`"))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::NAMES.iter().find(|(kind, _)| *kind == self.kind);
        let analyze = if self.is_analysis { "analyze " } else { "" };
        write!(f, "{analyze}{}", name.map_or("", |(_, name)| name))
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Command, D::Error> {
        let name = String::deserialize(from)?;
        Command::parse(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_refused() {
        for kind in Kind::all() {
            for command in [Command::of(kind), Command::analysis_of(kind)] {
                assert_eq!(Command::parse(&command.to_string()), Ok(command));
            }
            let conclusion = serde_json::to_value(kind.without_conclusion()).unwrap();
            let read = kind.read_conclusion(conclusion).unwrap();
            assert_eq!(read, kind.without_conclusion());
        }
        for wrong in ["", "analyze", "Sweep", "analyze  sweep", "analyze run x"] {
            assert!(Command::parse(wrong).is_err(), "{wrong:?}");
        }
        let sweep = Command::analysis_of(Kind::Sweep);
        assert_eq!(serde_json::to_value(sweep).unwrap(), "analyze sweep");
    }
}
