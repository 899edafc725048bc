//! What each clause of INVALID means and what to do about it.

use super::Clause;
use crate::finding::Code;

/// What each clause means and what to do about it.
pub fn reasons() -> impl Iterator<Item = Code> {
    Clause::ALL.into_iter().map(Clause::explained)
}

/// The verdict itself.
pub const INVALID: Code = Code {
    name: "INVALID",
    cause: "The load was not the one asked for, so the figures are of another load. A slow or \
            failing target never causes this verdict. The report names each clause that was \
            broken, and the command exits with 3.",
    remedy: "Read the clause, remove its cause and measure again. The usual remedies are a quieter \
             machine, processors of its own for the generator, or a lower load.",
};

impl Clause {
    /// All of them, in the order in which they are checked.
    const ALL: [Clause; 13] = [
        Clause::FellBehind,
        Clause::Stalled,
        Clause::PacedLate,
        Clause::GapsVary,
        Clause::GapsNotExponential,
        Clause::CountsNotPoisson,
        Clause::ProcessorsShared,
        Clause::ResourcesExhausted,
        Clause::ValuesMissing,
        Clause::AgentLost,
        Clause::OperationsLost,
        Clause::RateLimited,
        Clause::Undetermined,
    ];

    /// What it means and what to do about it, by the name that it has in JSON.
    fn explained(self) -> Code {
        match self {
            Clause::FellBehind => FELL_BEHIND,
            Clause::Stalled => STALLED,
            Clause::PacedLate => PACED_LATE,
            Clause::GapsVary => GAPS_VARY,
            Clause::GapsNotExponential => GAPS_NOT_EXPONENTIAL,
            Clause::CountsNotPoisson => COUNTS_NOT_POISSON,
            Clause::ProcessorsShared => PROCESSORS_SHARED,
            Clause::ResourcesExhausted => RESOURCES_EXHAUSTED,
            Clause::ValuesMissing => VALUES_MISSING,
            Clause::AgentLost => AGENT_LOST,
            Clause::OperationsLost => OPERATIONS_LOST,
            Clause::RateLimited => RATE_LIMITED,
            Clause::Undetermined => UNDETERMINED,
            Clause::Former => INVALID,
        }
    }
}

const FELL_BEHIND: Code = Code {
    name: "fell_behind",
    cause: "The generator started fewer than 99.9 % of the operations that its schedule asked for. \
            The target met a lower rate than the report names.",
    remedy: "Ask for a lower --rate, or give the generator more cores with --threads.",
};

const STALLED: Code = Code {
    name: "stalled",
    cause: "The generator did nothing for 100 ms or longer. Its process was stopped, or its \
            machine was paused or overloaded. Waits in that time are the generator's own.",
    remedy: "Find what stopped the process: a suspended virtual machine, a quota of processor time \
             in its container, or other programs. Then measure again.",
};

const PACED_LATE: Code = Code {
    name: "paced_late",
    cause: "An overload keeps connects in flight and replaces each after T. They started so late \
            that the time between a connect and its successor was not T.",
    remedy: "Give the generator a processor of its own with taskset, try --wait spin, or ask for \
             fewer --descriptors.",
};

const GAPS_VARY: Code = Code {
    name: "gaps_vary",
    cause: "The gaps between starts vary more or less than the arrival process promises. The \
            target met clumps or pauses that the schedule does not have.",
    remedy: "Give the generator a processor of its own with taskset, or ask for a lower --rate.",
};

const GAPS_NOT_EXPONENTIAL: Code = Code {
    name: "gaps_not_exponential",
    cause: "With --arrival poisson the gaps between starts must be exponential. A \
            Kolmogorov–Smirnov test rejects that for the gaps that the generator achieved.",
    remedy: "Give the generator a processor of its own with taskset, or ask for a lower --rate.",
};

const COUNTS_NOT_POISSON: Code = Code {
    name: "counts_not_poisson",
    cause: "With --arrival poisson the number of starts per unit of time varies by as much as its \
            mean. The variation achieved is different, so arrivals were clumped or smoothed.",
    remedy: "Give the generator a processor of its own with taskset, or ask for a lower --rate.",
};

const PROCESSORS_SHARED: Code = Code {
    name: "processors_shared",
    cause: "Other programs used the processors that --client-cpus reserves for the clients.",
    remedy: "Stop the other programs, move them with taskset, or choose other processors.",
};

const RESOURCES_EXHAUSTED: Code = Code {
    name: "resources_exhausted",
    cause: "More than 0.1 % of the operations found no free port, file descriptor or memory on the \
            generator's host. They never reached the target.",
    remedy: "Raise the limit of descriptors with ulimit -n. Add source addresses with --source, or \
             keep connections alive.",
};

const VALUES_MISSING: Code = Code {
    name: "values_missing",
    cause: "More than 0.1 % of the steps were not sent, or a program of the scenario ended during \
            the load. So the target met less load than the report names. Either a program that is \
            started with 'exec' gave no value, or a value does not fit its place in the request.",
    remedy: "The report names the reason. Run a program by hand with a line of JSON on its \
             standard input. Mend the records or the template of a value that does not fit.",
};

const AGENT_LOST: Code = Code {
    name: "agent_lost",
    cause: "An agent of the fleet did not deliver what it measured. The figures are those of the \
            other agents, and the target met more load than they show.",
    remedy: "See why the agent ended or was cut off. An agent that comes back delivers: knee fleet \
             collect fetches that.",
};

const OPERATIONS_LOST: Code = Code {
    name: "operations_lost",
    cause: "Operations began and neither ended nor were under way at the end. This is a fault of \
            knee: the outcomes do not sum to what was begun, so no figure can be relied on.",
    remedy: "Report the fault with the command, the report as JSON and the kind of server.",
};

const RATE_LIMITED: Code = Code {
    name: "rate_limited",
    cause: "The agents have --rate-max, and more than 1 % of the operations had to wait for it. \
            The throughput is that of the limit, not of the target.",
    remedy: "Ask for less: fewer --vusers, a think time, or a --rate below the limit. To offer \
             more, add agents, or start them with a higher --rate-max.",
};

const UNDETERMINED: Code = Code {
    name: "undetermined",
    cause: "The generator's own delays may have changed both the throughput and the median by \
            more than 10 %. The report has the range of each figure.",
    remedy: "Give the generator a processor of its own with taskset, or run it on another machine \
             than the target.",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_name_that_the_clause_has_in_json() {
        for clause in Clause::ALL {
            let name = serde_json::to_value(clause).unwrap();
            assert_eq!(name, clause.explained().name);
        }
    }
}
