#!/usr/bin/env python3
"""Records what the package MLRsearch 1.2.1 decides on simulated systems under test.

The table is test data of the search over rates:

    python3 -m venv venv && venv/bin/pip install MLRsearch==1.2.1
    venv/bin/python bench/mlrsearch/record.py \
        > crates/core/src/experiment/sweep/tests/mlrsearch.json
"""

import json
import random

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

GOAL = {
    "loss_ratio": 0.0,
    "exceed_ratio": 0.49,
    "relative_width": 0.05,
    "initial_trial_duration": 0.5,
    "final_trial_duration": 2.0,
    "duration_sum": 6.0,
}


class Server(AbstractMeasurer):
    """Serves up to its capacity; at random, a trial has half of it."""

    def __init__(self, capacity, disturbed, seed):
        self.capacity = capacity
        self.disturbed = disturbed
        self.random = random.Random(seed)
        self.trials = []

    def measure(self, intended_duration, intended_load):
        share = 0.5 if self.random.random() < self.disturbed else 1.0
        offered = max(1, round(intended_duration * intended_load))
        served = min(offered, int(share * self.capacity * intended_duration))
        self.trials.append([intended_load, intended_duration, served < offered])
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            forwarding_count=served,
        )


def record(capacity, disturbed, seed):
    goal = SearchGoal(**GOAL)
    config = Config(
        goals=[goal], min_load=10.0, max_load=100_000.0, search_duration_max=600.0,
        warmup_duration=None,
    )
    server = Server(capacity, disturbed, seed)
    search = MultipleLossRatioSearch(config)
    result = search.search(server, debug=lambda _: None)[goal]
    target = search.scaling.goal_to_final_target[goal]
    loads = []
    for load, stats in search.database.load_to_stats.items():
        best, worst = stats.estimates(target)
        loads.append([float(load), best if best == worst else None])

    def bound(stat):
        return None if stat is None else float(stat)

    return {
        "capacity": capacity,
        "disturbed": disturbed,
        "trials": server.trials,
        "verdicts": loads,
        "lower": bound(result.relevant_lower_bound),
        "upper": bound(result.relevant_upper_bound),
    }


def main():
    runs = [
        record(capacity, disturbed, seed)
        for seed, (capacity, disturbed) in enumerate(
            (capacity, disturbed)
            for capacity in (37.0, 130.0, 600.0, 4_000.0, 45_200.0)
            for disturbed in (0.0, 0.1, 0.3)
        )
    ]
    lines = ",\n".join(json.dumps(run) for run in runs)
    print(f'{{"goal": {json.dumps(GOAL)},\n"runs": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()
