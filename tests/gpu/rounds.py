"""Part `round`: what drafter, tree and walk take a round on the device, and their share of a round at published sizes.

Measured on the shipped target with its order model at the paper's width. The shares are arithmetic on measured times
and labelled predicted: no model of that size was decoded with.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.gpu.report import Report
from tests.gpu.setting import BLOCK, Row, Rows, Setting
from tests.gpu.zoo import prompts_of, target_spec
from workers.catalog import TARGETS
from workers.decoding.loop import decode
from workers.decoding.tally import Generation
from workers.drafters.base import Drafter, Oracle
from workers.loading import Loaded
from workers.measure_cost import CostGrid, measure_drafter
from workers.targets.base import Target

TARGET, DTYPE = "tiny-sdar", "bfloat16"


@dataclass(frozen=True, slots=True)
class Rounds:
    """The part; it reads what part `forward` of the same run has measured."""

    report: Report

    def __call__(self, setting: Setting) -> Rows:
        """A measured row a budget, and a predicted one for every body whose forward was timed."""
        loaded = Loaded(setting.device)
        target = loaded.get_target(target_spec(TARGET, DTYPE))
        prompts = list(prompts_of(setting, loaded, target).values())
        grid = CostGrid(
            states=(1,), prefixes=(0,), block_length=BLOCK, repeats=setting.repeats, threads=torch.get_num_threads()
        )
        for budget in setting.budgets:
            drafter = loaded.get_drafter(spot(budget), DecodeSpec(block_length=BLOCK))
            assert not isinstance(drafter, Oracle)
            asked = measure_drafter(target, [drafter], prompts, grid)[0].time
            row = measured_row(target, drafter, prompts, setting) | {
                "drafter_alone": {"median_s": asked.seconds, "quartiles_s": [asked.low, asked.high]},
            }
            yield row
            yield from self.predicted(row)

    def predicted(self, measured: Row) -> Rows:
        """The drafter's and the walk's share of a round at the sizes whose forward was timed.

        What the drafter is given costs by the vocabulary: its time at the real one is added. That of the small one is
        in the measured time as well, so the drafter's share is a little too high.
        """
        forwards = [row for row in self.report.rows("forward", "forward") if row["drafts"] == measured["drafts"]]
        for forward in forwards:
            costs = {
                row["what"]: row["time"]["median_s"]
                for row in self.report.rows("forward", "walk")
                if row["model"] == forward["model"] and row["temperature"] == 0
            }
            if not {"head", "verdict", "stale"} <= costs.keys():
                continue
            drafter = measured["drafter_alone"]["median_s"] + costs["stale"]
            walk = measured["states_visited_a_round"] * (costs["head"] + costs["verdict"])
            total = drafter + forward["time"]["median_s"] + walk
            yield {
                "kind": "share",
                "label": "predicted from measured times",
                "model": forward["model"],
                "drafts": measured["drafts"],
                "prefix": forward["prefix"],
                "forward_s": forward["time"]["median_s"],
                "drafter_s": drafter,
                "walk_s": walk,
                "drafter_share": drafter / total,
                "walk_share": walk / total,
            }


def spot(budget: int) -> DrafterSpec:
    """SPOT with the order model that is shipped for the target."""
    return DrafterSpec(name="spot", kind="spot", budget=budget, checkpoint=TARGETS[TARGET].artifacts["order_model"])


def measured_row(target: Target, drafter: Drafter, prompts: Sequence[Sequence[int]], setting: Setting) -> Row:
    """The parts of a round of whole decodes, as the decoder's own stopwatch books them, and what waits for the device.

    The device is waited for at every lap of that watch. `host_waits_a_round` counts what else waits for it: None where
    CUDA cannot be asked.
    """
    spec = DecodeSpec(max_new_tokens=setting.new_tokens, block_length=BLOCK, ignore_eos=True)

    def decoded() -> list[Generation]:
        return [decode(target, drafter, ids, spec=spec, seed=0) for ids in prompts]

    decoded()
    made = decoded()
    rounds = sum(one.counters.rounds for one in made)
    with waits_counted(setting) as count:
        decoded()
    return {
        "kind": "round",
        "target": TARGET,
        "dtype": DTYPE,
        "drafts": drafter.budget,
        "rounds": rounds,
        "drafted_a_round": sum(sum(one.counters.drafted) for one in made) / rounds,
        "states_visited_a_round": 1 + sum(sum(one.counters.accepted) for one in made) / rounds,
        "drafter_s": sum(one.drafter_seconds for one in made) / rounds,
        "forward_s": sum(one.forward_seconds for one in made) / rounds,
        "walk_s": sum(one.walk_seconds for one in made) / rounds,
        "host_waits_a_round": count() / rounds if setting.on_cuda else None,
    }


@contextmanager
def waits_counted(setting: Setting) -> Iterator[Callable[[], int]]:
    """Counts the operations that make the host wait for the device, apart from waiting on purpose."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if setting.on_cuda:
            torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("synchroniz" in str(warning.message) for warning in caught)
        finally:
            if setting.on_cuda:
                torch.cuda.set_sync_debug_mode("default")
