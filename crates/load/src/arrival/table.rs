//! Types and dispatch that follow from the table of processes in the parent module.

/// Generates [`ArrivalLaw`], [`Arrivals`] and their methods, without dynamic dispatch.
macro_rules! processes {
    ($($(#[$doc:meta])* $name:ident $(($law:ident: $type:ty))?;)*) => {
        /// Arrival process of an open loop with its parameters.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ArrivalLaw {
            $($(#[$doc])* $name $(($type))?,)*
        }

        /// One of the arrival processes. An enum, as the hot loop calls it for each operation.
        #[derive(Clone, Debug)]
        pub enum Arrivals {
            $($(#[$doc])* $name($name),)*
        }

        /// All processes in the order of the help.
        const ALL: &[ProcessKind] = &[$(<$name as Process>::KIND,)*];

        impl ArrivalLaw {
            /// The law of this name with these arguments; `None` where the name is unknown or the
            /// number of arguments is wrong.
            fn called(
                name: &str,
                text: &str,
                arguments: &[&str],
            ) -> Option<Result<ArrivalLaw, ParseError>> {
                $(if name == <$name as Process>::KIND.name {
                    let law = <$name as Process>::parse(text, arguments)?;
                    return Some(law.map(|_law| {
                        ArrivalLaw::$name $(({ let $law = _law; $law }))?
                    }));
                })*
                None
            }

            fn set(&mut self, run: &RunContext) -> Result<(), &'static str> {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::set(first!($($law,)? &mut ()), run)
                    })*
                }
            }

            fn kind(&self) -> &'static ProcessKind {
                match self {
                    $(ArrivalLaw::$name { .. } => &<$name as Process>::KIND,)*
                }
            }

            /// The process as it is typed. `file` is the file of a trace.
            pub fn text(&self, file: &str) -> String {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::text(first!($($law,)? &()), file)
                    })*
                }
            }

            /// Its own mean rate; `None` where it carries none above zero.
            pub fn own_rate(&self) -> Option<Rate> {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::own_rate(first!($($law,)? &()))
                    })*
                }
            }

            /// Highest planned rate at a mean `rate`, in operations per second.
            pub fn peak_per_s(&self, rate: Rate) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::peak_per_s(first!($($law,)? &()), rate)
                    })*
                }
            }

            /// Mean number of operations between two times.
            pub fn operations(&self, rate: Rate, between: [Nanos; 2]) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::operations(first!($($law,)? &()), rate, between)
                    })*
                }
            }

            /// Number of operations by which chance may change their mean number `operations`.
            pub fn slack(&self, rate: Rate, operations: f64) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::slack(first!($($law,)? &()), rate, operations)
                    })*
                }
            }
        }

        impl Arrivals {
            /// One worker's share of the schedule of `law` at this mean rate. The same seed gives
            /// the same schedule.
            pub fn of(rate: Rate, law: &ArrivalLaw, share: Share, seed: u64) -> Arrivals {
                match law {
                    $(ArrivalLaw::$name $(($law))? => {
                        let law = first!($($law,)? &());
                        Arrivals::$name(<$name as Process>::begin(law, rate, share, seed))
                    })*
                }
            }

            /// Whether each time is drawn from the one before, so that
            /// [`skip`](ArrivalProcess::skip) costs as much as drawing.
            pub fn is_random(&self) -> bool {
                match self {
                    $(Arrivals::$name(_) => <$name as Process>::KIND.is_random,)*
                }
            }
        }

        impl ArrivalProcess for Arrivals {
            #[inline]
            fn next(&mut self) -> Option<Nanos> {
                match self {
                    $(Arrivals::$name(process) => process.next(),)*
                }
            }

            fn skip(&mut self, n: u64) {
                match self {
                    $(Arrivals::$name(process) => process.skip(n),)*
                }
            }

            fn rate_at(&self, t: Nanos) -> f64 {
                match self {
                    $(Arrivals::$name(process) => process.rate_at(t),)*
                }
            }
        }
    };
}

/// The first of its arguments: the parameters of a law, or `()` where it has none.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

pub(super) use {first, processes};
