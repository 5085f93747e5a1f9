"""A defect that changes outputs, put in on purpose: `spot run` ends with code 1, and the report calls it a BUG.

The target lets the copies of a batch see each other, which draft-free decoding never notices: it forwards one.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from sweeps.store import RunDir
from tests.pages import Page
from workers.targets.block_causal import BlockCausalSession

Spot = Callable[..., Any]
FEW = ("--pool", "inline", "measure.prompts=2", "measure.timed_prompts=0", "grid.budget=2", "grid.drafter=ssd")


@pytest.fixture
def leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every copy's hidden states are mixed with those of the copy before it."""
    sound = BlockCausalSession.forward

    def leaking(self: BlockCausalSession, blocks_NL: Tensor) -> Tensor:
        hidden_NLH = sound(self, blocks_NL)
        return hidden_NLH if len(hidden_NLH) == 1 else hidden_NLH + 5 * hidden_NLH.roll(1, 0)

    monkeypatch.setattr(BlockCausalSession, "forward", leaking)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_copies_that_see_each_other_are_a_bug_in_every_dtype(spot: Spot, sweep: Path, leak: None, dtype: str) -> None:
    """On a trained target: random weights are so undecided that in bfloat16 every margin is a near-tie."""
    trained = ("grid.target=tiny-sdar", f"targets.tiny-sdar={{dtype: {dtype}}}", "grid.max_new_tokens=32")
    ended = spot("run", sweep, *FEW, *trained)
    assert ended.code == 1
    assert "2 of 2 prompts differ from draft-free decoding by more than rounding explains" in ended.err
    run = RunDir(sweep.parent / "runs/small")
    with (run.report_data / "prompts.csv").open() as prompts:
        rows = [row for row in csv.DictReader(prompts) if row["drafter"] == "ssd"]
    assert [(row["identical"], row["verdict"]) for row in rows] == [("False", "BUG")] * 2
    text = " ".join(Page(run.report.read_text()).texts)
    assert "BUG: 2 generations differ from draft-free at a margin that rounding cannot explain." in text


@pytest.mark.parametrize("noise", ["coupled", "independent"])
def test_only_what_promises_identity_can_break_the_promise(spot: Spot, sweep: Path, leak: None, noise: str) -> None:
    ended = spot("run", sweep, *FEW, "grid.temperature=1", f"grid.noise={noise}")
    assert ended.code == (1 if noise == "coupled" else 0)


def test_a_margin_to_verify_hides_no_bug_that_it_does_not_reach(spot: Spot, sweep: Path, leak: None) -> None:
    """Outputs are repaired where the margin is below it: all of them with a huge one, and few with a small one."""
    verified = "drafters.verified={kind: ssd, verify_margin: %s}"
    assert spot("run", sweep, *FEW, "grid.drafter=verified", verified % "1e9", "name=huge").code == 0
    small = spot("run", sweep, *FEW, "grid.drafter=verified", verified % "1e-9", "name=small-margin")
    assert small.code == 1


def test_without_the_defect_all_is_well(spot: Spot, sweep: Path) -> None:
    assert spot("run", sweep, *FEW).code == 0
