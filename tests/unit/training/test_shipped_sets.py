"""The zoo's set models: what their cards say, and that they foresee steps on prompts that nothing was trained on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.spec import DecodeSpec, TargetSpec, TaskSpec
from tests.traces import write_traces
from workers.catalog import TARGETS, ZOO
from workers.loading import Loaded
from workers.models.order_shapes import DEPTH_CAP
from workers.models.set_facts import SetConfig, inspect_set_model
from workers.models.set_model import SetModel, embeddings_of, load_set_model
from workers.replay.record import record
from workers.targets.inspect import inspect_checkpoint
from workers.training.sets_accuracy import judge_examples
from workers.training.sets_card import read_card
from workers.training.sets_data import SetTrajectories
from workers.training.sets_recipe import SetRecipe

SHIPPED = {
    name: Path(entry.artifacts["set_model"]) for name, entry in TARGETS.items() if "set_model" in entry.artifacts
}


def test_two_families_have_one() -> None:
    assert set(SHIPPED) == {"tiny-sdar", "tiny-llada2"}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_set_model_is_the_one_its_card_describes(name: str) -> None:
    card, facts = read_card(SHIPPED[name]), inspect_set_model(SHIPPED[name])
    assert card.digest == facts.digest
    assert card.targets == {name: inspect_checkpoint(ZOO / name).weight_digest}
    assert {made.digest for made in facts.made_on} == set(card.targets.values())
    assert card.recipe == SetRecipe(width=128, layers=3)
    assert (card.width, card.layers, card.recipe.max_depth) == (facts.width, facts.layers, DEPTH_CAP)
    config = SetConfig.sized(block_length=32, hidden=192, width=128, layers=3)
    assert card.parameters == sum(parameter.numel() for parameter in SetModel(config).parameters())
    assert {source.tau for source in card.sources} == {0.7, 0.8, 0.9, 0.95}
    assert card.warnings() == ()
    for depth in range(1, DEPTH_CAP + 1):
        row = card.totals()[depth]
        assert row.model.exact.low is not None
        assert row.stale.exact.high is not None
        assert row.model.exact.low > row.stale.exact.high  # beyond the intervals
        assert row.model.exact.value > 0.6
    text = (SHIPPED[name] / "README.md").read_text(encoding="utf-8")
    assert "smaller than the default, 4 layers of width 256" in text
    assert card.digest[:16] in text


@pytest.mark.parametrize("name", SHIPPED)
def test_steps_are_foreseen_on_a_few_test_prompts(name: str, tmp_path: Path) -> None:
    """Decoded here and now, by two taus and temperatures; the rival reads the stale distribution by the rule itself."""
    loaded, traces = Loaded("cpu"), []
    target = loaded.get_target(
        TargetSpec(name=name, path=str(ZOO / name), family=inspect_checkpoint(ZOO / name).architecture)
    )
    for number, (kind, tau, heat) in enumerate((("tiny-arith", 0.7, 0.0), ("tiny-code", 0.9, 1.0))):
        task = TaskSpec(name=kind, kind=kind)
        rule = DecodeSpec(commit="threshold", tau=tau, temperature=heat, max_new_tokens=64)
        cell = Cell(
            target=TargetSpec(name=name, digest="d"),
            task=replace(task, digest="d"),
            decode=rule,
            drafter=NO_DRAFTER,
            seed=1,
        )
        (prompt,) = loaded.get_task(task).prompts(split="test", limit=1, seed=0)
        ids = target.encode(prompt.text)
        traces.append(record(target, cell, prompt_id=prompt.id, prompt_index=number, prompt_ids=ids, states=True)[1])
    data = SetTrajectories.read(write_traces(tmp_path, traces), held_out=0.5)
    counts = np.minimum(data.choices_S, 4)
    steps = np.repeat(np.arange(data.steps), counts)
    depths = np.concatenate([np.arange(count) for count in counts])
    model = load_set_model(SHIPPED[name], block_length=32)
    tally = judge_examples(model, data, embeddings_of(target).float(), steps, depths, other_weight=0.1)
    ours, stale = tally.counts["exact"].mean(-1)
    assert len(steps) > 60
    assert ours > stale + 0.15
