"""A few steps of the real trainer: it learns, resumes bit for bit, and ships a checkpoint that loads and decodes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from workers.targets.inspect import inspect_checkpoint
from workers.targets.load import load_target
from workers.training.target import Progress, rate_scale, train_target
from workers.training.target_recipes import RECIPES, TINY_SDAR, TargetRecipe
from workers.training.target_ship import ship_target

SMOKE = replace(
    TINY_SDAR,
    name="smoke",
    examples_per_task=40,
    hidden=32,
    layers=1,
    heads=2,
    kv_heads=1,
    head_dim=16,
    mlp=48,
    warm_start=6,
    steps=8,
    batch=4,
    rise=2,
)


def _interrupted(recipe: TargetRecipe, path: Path, monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """Start a run that dies after a number of steps, with a state file every two steps."""
    monkeypatch.setattr("workers.training.target.SAVE_EVERY", 2)

    def watch(progress: Progress) -> None:
        if progress.step == after + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_target(recipe, progress=watch, resume=path)


def test_recipes_are_named_and_refuse_nonsense() -> None:
    assert RECIPES["tiny-sdar"] is TINY_SDAR
    with pytest.raises(ValueError, match="copies: 0"):
        replace(TINY_SDAR, copies=0)
    with pytest.raises(ValueError, match="warm_start: -1"):
        replace(TINY_SDAR, warm_start=-1)
    with pytest.raises(ValueError, match=r"decay: 1\.5"):
        replace(TINY_SDAR, decay=1.5)


def test_rates_rise_in_each_phase_and_fall_at_the_end() -> None:
    recipe = replace(SMOKE, warm_start=10, steps=20, rise=4, decay=0.5)
    rates = [rate_scale(recipe, step) for step in range(30)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[10:15] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[19:22] == [1.0, 1.0, 0.9]
    assert rates[29] == 0.1


def test_the_loss_falls_in_both_phases() -> None:
    steps: list[Progress] = []
    train_target(replace(SMOKE, warm_start=25, steps=25, batch=8, rise=5), progress=steps.append)
    assert [p.step for p in steps] == list(range(1, 51))
    assert [p.phase for p in steps] == ["warm"] * 25 + ["diffusion"] * 25
    for part in (steps[:25], steps[25:]):
        assert part[-1].loss < part[0].loss - 0.5


@pytest.mark.parametrize("after", [4, 6, 11])
def test_a_resumed_run_gives_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    trained = train_target(SMOKE)
    whole = trained.body.state_dict()
    _interrupted(SMOKE, tmp_path / "state.pt", monkeypatch, after=after)
    steps: list[Progress] = []
    again = train_target(SMOKE, progress=steps.append, resume=tmp_path / "state.pt")
    resumed = again.body.state_dict()
    assert again.loss == trained.loss
    assert steps[0].step == after // 2 * 2 + 1
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_a_state_of_another_recipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupted(SMOKE, tmp_path / "state.pt", monkeypatch, after=2)
    with pytest.raises(ValueError, match="another recipe"):
        train_target(replace(SMOKE, seed=1), resume=tmp_path / "state.pt")


def test_shipping_writes_a_checkpoint_with_its_card(tmp_path: Path) -> None:
    card = ship_target(SMOKE, out_dir=tmp_path / "smoke", held_out=2)
    facts, target = inspect_checkpoint(tmp_path / "smoke"), load_target(tmp_path / "smoke")
    assert card.weight_digest == facts.weight_digest == target.traits.weight_digest
    assert target.chat == "template"
    assert target.encode("x")[0] == 0
    stored = json.loads((tmp_path / "smoke" / "card.json").read_text())
    assert stored["recipe"]["steps"] == 8
    assert [row["task"] for row in stored["held_out"]] == ["tiny-arith", "tiny-code"]
    for row in card.held_out:
        assert row.correct.n == 2
        assert row.nfe == row.commits / 2 > 0
        assert 0 <= row.leftmost <= 1
    readme = (tmp_path / "smoke" / "README.md").read_text()
    assert "| tiny-code | exact | 2 |" in readme
