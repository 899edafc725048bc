//! What follows from the table of all processes in the module above.

/// Makes the laws, the processes without dynamic dispatch, and what asks the one for the other.
macro_rules! processes {
    ($($(#[$doc:meta])* $name:ident $(($law:ident: $type:ty))?;)*) => {
        /// When the operations of an open loop come.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ArrivalLaw {
            $($(#[$doc])* $name $(($type))?,)*
        }

        /// One of the arrival processes: an enum, since the hot loop asks it for each operation.
        #[derive(Clone, Debug)]
        pub enum Arrivals {
            $($(#[$doc])* $name($name),)*
        }

        /// All processes, as the command line knows them.
        const ALL: &[Written] = &[$(Written::of::<$name>(),)*];

        impl ArrivalLaw {
            /// The law of this name with these arguments; `None` where the name is none, or the
            /// arguments are not as many as it has.
            fn called(
                name: &str,
                text: &str,
                arguments: &[&str],
            ) -> Option<Result<ArrivalLaw, ParseError>> {
                $(if name == <$name as Process>::NAME {
                    let law = <$name as Process>::parse(text, arguments)?;
                    return Some(law.map(|_law| {
                        ArrivalLaw::$name $(({ let $law = _law; $law }))?
                    }));
                })*
                None
            }

            fn set(&mut self, run: &Run) -> Result<(), &'static str> {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::set(first!($($law,)? &mut ()), run)
                    })*
                }
            }

            /// How it is written.
            fn written(&self) -> Written {
                match self {
                    $(ArrivalLaw::$name { .. } => Written::of::<$name>(),)*
                }
            }

            /// As it is typed; the moments of a trace by the name of their file.
            pub fn text(&self, file: &str) -> String {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::text(first!($($law,)? &()), file)
                    })*
                }
            }

            /// The mean rate that it carries; `None`: it needs to be told one, or carries none that
            /// is above zero.
            pub fn own_rate(&self) -> Option<Rate> {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::own_rate(first!($($law,)? &()))
                    })*
                }
            }

            /// The highest rate that it reaches by plan at a mean `rate`, in operations per second.
            pub fn peak_per_s(&self, rate: Rate) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::peak_per_s(first!($($law,)? &()), rate)
                    })*
                }
            }

            /// The mean number of operations that it has between two times.
            pub(crate) fn operations(&self, rate: Rate, between: [Nanos; 2]) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::operations(first!($($law,)? &()), rate, between)
                    })*
                }
            }

            /// By how many the operations of a window, so many in the mean, may be off by chance.
            pub(crate) fn slack(&self, rate: Rate, operations: f64) -> f64 {
                match self {
                    $(ArrivalLaw::$name $(($law))? => {
                        <$name as Process>::slack(first!($($law,)? &()), rate, operations)
                    })*
                }
            }

            /// What it promises of the gaps between operations, if anything.
            pub(crate) fn gaps(&self) -> Option<GapLaw> {
                match self {
                    $(ArrivalLaw::$name { .. } => <$name as Process>::GAPS,)*
                }
            }

            /// Whether it asks for operations all the time: if not, silence says nothing.
            pub(crate) fn asks_all_the_time(&self) -> bool {
                match self {
                    $(ArrivalLaw::$name { .. } => <$name as Process>::ASKS_ALL_THE_TIME,)*
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

            /// Whether the process draws its moments at random, one from the other, so that
            /// [`skip`](ArrivalProcess::skip) costs as much as drawing them.
            pub fn is_random(&self) -> bool {
                match self {
                    $(Arrivals::$name(_) => <$name as Process>::IS_RANDOM,)*
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

/// The first of what is there: a law's parameters, or nothing in their place.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

pub(super) use {first, processes};
