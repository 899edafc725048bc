//! What each clause of INVALID means and what to do about it, by the name that the clause has in
//! JSON.

use crate::finding::{Code, codes};

/// The meaning of each clause, in the order of the reference.
pub fn reasons() -> impl Iterator<Item = Code> {
    CODES.iter().copied()
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

codes! {
    FELL_BEHIND = "fell_behind":
        cause "The generator started fewer than 99.9 % of the operations that its schedule asked \
               for. The target met a lower rate than the report names.",
        remedy "Ask for a lower --rate, or give the generator more cores with --threads.";

    STALLED = "stalled":
        cause "The generator did nothing for 100 ms or longer, for so large a part of the trial \
               that the load was another one: 5 % of the operations started 100 ms late or more, \
               or the users of a closed loop did nothing for 9 % of the time. Its process was \
               stopped, or its machine was paused or overloaded.",
        remedy "Find what stopped the process: a suspended virtual machine, a quota of processor \
                time in its container, or other programs. Then measure again.";

    PACED_LATE = "paced_late":
        cause "An overload keeps connects in flight and replaces each after T. They started so \
               late that the time between a connect and its successor was not T.",
        remedy "Give the generator a processor of its own with taskset, try --wait spin, or ask \
                for fewer --descriptors.";

    GAPS_VARY = "gaps_vary":
        cause "The gaps between starts vary more or less than the arrival process promises. The \
               target met clumps or pauses that the schedule does not have.",
        remedy "Give the generator a processor of its own with taskset, or ask for a lower \
                --rate.";

    GAPS_NOT_EXPONENTIAL = "gaps_not_exponential":
        cause "With --arrival poisson the gaps between starts must be exponential. A \
               Kolmogorov–Smirnov test rejects that for the gaps that the generator achieved.",
        remedy "Give the generator a processor of its own with taskset, or ask for a lower \
                --rate.";

    COUNTS_NOT_POISSON = "counts_not_poisson":
        cause "With --arrival poisson the number of starts per unit of time varies by as much as \
               its mean. The variation achieved is different, so arrivals were clumped or \
               smoothed.",
        remedy "Give the generator a processor of its own with taskset, or ask for a lower \
                --rate.";

    PROCESSORS_SHARED = "processors_shared":
        cause "Other programs used the processors that --client-cpus reserves for the clients.",
        remedy "Stop the other programs, move them with taskset, or choose other processors.";

    RESOURCES_EXHAUSTED = "resources_exhausted":
        cause "More than 0.1 % of the operations found no free port, file descriptor or memory on \
               the generator's host. They never reached the target.",
        remedy "Raise the limit of descriptors with ulimit -n. Add source addresses with \
                --source, or keep connections alive.";

    VALUES_MISSING = "values_missing":
        cause "More than 0.1 % of the steps were not sent, or a program of the scenario ended \
               during the load. So the target met less load than the report names. Either a \
               program that is started with 'exec' gave no value, or a value does not fit its \
               place in the request.",
        remedy "The report names the reason. Run a program by hand with a line of JSON on its \
                standard input. Mend the records or the template of a value that does not fit.";

    AGENT_LOST = "agent_lost":
        cause "An agent of the fleet did not deliver what it measured. The figures are those of \
               the other agents, and the target met more load than they show.",
        remedy "See why the agent ended or was cut off. An agent that comes back delivers: knee \
                fleet collect fetches that.";

    OPERATIONS_LOST = "operations_lost":
        cause "Operations began and neither ended nor were under way at the end. This is a fault \
               of knee: the outcomes do not sum to what was begun, so no figure can be relied on.",
        remedy "Report the fault with the command, the report as JSON and the kind of server.";

    RATE_LIMITED = "rate_limited":
        cause "The agents of a fleet, or python -m knee.mcp, have --rate-max, and more than 1 % of \
               the operations had to wait for it. The throughput is that of the limit, not of the \
               target.",
        remedy "Ask for less: fewer --vusers, a think time, or a --rate below the limit. To offer \
                more, add agents, or start them or python -m knee.mcp with a higher --rate-max.";

    UNDETERMINED = "undetermined":
        cause "The generator's own delays may have changed both the throughput and the median by \
               more than 10 %. The report has the range of each figure. Only reports of earlier \
               versions have this reason.",
        remedy "Give the generator a processor of its own with taskset, or run it on another \
                machine than the target.";
}

#[cfg(test)]
mod tests {
    use super::super::Clause;
    use super::*;
    use serde_json::{from_value, to_value};

    #[test]
    fn each_page_has_the_name_of_a_clause_in_json() {
        for code in CODES {
            let clause: Clause = from_value(code.name.into()).unwrap();
            assert_eq!(to_value(clause).unwrap(), code.name);
        }
    }
}
