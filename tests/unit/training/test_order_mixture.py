"""Several targets in one training, and what is judged without being trained on."""

import json

import numpy as np
import pytest

from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.training.order import train_order
from workers.training.order_card import read_card
from workers.training.order_data import Trajectories
from workers.training.order_recipe import OrderRecipe

LENGTH = 8
TINY = OrderRecipe(steps=4, batch=8, rise=2, evaluate_every=2, held_out=0.3, max_depth=4)


def traces(folder, *, seed=0, task="toy", prompts=range(5), temperatures=(0.0,), vocab=40):
    """Trajectories of the toy target with weights `toy-<seed>`."""
    made = [
        toy_trace(
            ToyTarget(seed=seed, vocab_size=vocab),
            toy_cell(temperature=temperature, length=LENGTH, new=16, task=task),
            index,
            prompt=f"{index:08d}",  # a whole block
        )
        for temperature in temperatures
        for index in prompts
    ]
    return write_traces(folder / f"{task}-{seed}", made)


def sums(rows, who):
    return sum(getattr(row, who).hits for row in rows), sum(getattr(row, who).n for row in rows)


def test_trajectories_of_several_targets_make_one_model_and_the_card_names_each(tmp_path):
    paths = [*traces(tmp_path, seed=0), *traces(tmp_path, seed=1, prompts=range(3), vocab=11)]  # 11 ids: 10 candidates
    trained = train_order(paths, TINY, out_dir=tmp_path / "model")
    card = read_card(tmp_path / "model")
    assert card == trained.card
    assert card.targets == {"toy (toy-0)": "toy-0", "toy (toy-1)": "toy-1"}  # two weights under one name
    assert [(s.target_digest, s.prompts) for s in card.sources] == [("toy-0", 5), ("toy-1", 3)]
    assert (card.traces, card.prompts) == (8, 5)  # the targets share their prompts
    for depth, total in card.totals().items():
        parts = [r for r in card.accuracy if r.depth == depth and r.target and not r.task]
        assert [row.target for row in parts] == ["toy (toy-0)", "toy (toy-1)"]
        for who in ("order_model", "stale_confidence"):
            assert sums(parts, who) == sums([total], who)
    readme = (tmp_path / "model" / "README.md").read_text()
    assert "# Order model of SPOT for toy (toy-0), toy (toy-1)" in readme
    assert "| trained on | toy (toy-1) | `toy-1` | toy | 0 | 3 | " in readme
    assert "#### All of toy (toy-1)" in readme
    assert "#### toy at T = 0 of toy (toy-0)" in readme


def test_a_prompt_is_held_out_of_every_target(tmp_path):
    data = Trajectories.read([*traces(tmp_path, seed=0), *traces(tmp_path, seed=1)], held_out=0.3)
    judged = data.judged_S.reshape(2, 5, 16)  # target, prompt, step
    assert np.array_equal(judged[0], judged[1])
    assert judged.all(-1).sum() == 2 * 2
    assert np.array_equal(data.learnt_S, ~data.judged_S)


def test_what_is_only_judged_changes_no_weight_and_no_split(tmp_path):
    learnt, other = traces(tmp_path, task="zcode"), traces(tmp_path, task="arith", temperatures=(0.0, 1.0))
    alone = train_order(learnt, TINY, out_dir=tmp_path / "alone").card
    both = train_order(learnt, TINY, out_dir=tmp_path / "both", test_paths=other).card
    assert both.digest == alone.digest
    assert (both.data_digest, both.prompts, both.held_out_prompts) == (alone.data_digest, 5, 2)
    assert (both.traces, both.test_traces, both.steps_recorded) == (5, 10, 5 * 16)
    assert both.held_out_loss == pytest.approx(alone.held_out_loss, rel=1e-6)
    assert alone.out_of_domain_loss is None
    assert both.out_of_domain_loss > 0
    assert [row for row in both.accuracy if row.role == "trained on"] == list(alone.accuracy)
    assert [(s.role, s.task, s.temperature, s.prompts, s.judged) for s in both.sources] == [
        ("trained on", "zcode", 0.0, 5, 2),
        ("out of domain", "arith", 0.0, 5, 5),
        ("out of domain", "arith", 1.0, 5, 5),
    ]
    first = both.totals("out of domain")[1]
    assert first.order_model.n == 10 * 2 * 6  # every prompt, two blocks, and the last two of 8 steps leave no choice
    readme = (tmp_path / "both" / "README.md").read_text()
    assert "### Out of domain: nothing of it was trained on" in readme
    assert "#### arith at T = 1" in readme


def test_a_prompt_trained_on_by_one_target_is_not_judged_by_another(tmp_path):
    learnt, other = traces(tmp_path, seed=0), traces(tmp_path, seed=1, prompts=range(7))
    data = Trajectories.read(learnt, held_out=0.3, test_paths=other)
    trained, judged_only = data.sources
    assert (trained.judged, judged_only.prompts, judged_only.judged) == (2, 7, 4)  # the two held out, and two new ones
    assert not data.learnt_S[5 * 16 :].any()
    assert data.judged_S[5 * 16 :].sum() == 4 * 16


def test_evaluations_tell_the_roles_apart(tmp_path):
    seen = []
    train_order(
        traces(tmp_path),
        TINY,
        out_dir=tmp_path / "model",
        test_paths=traces(tmp_path, task="arith"),
        progress=lambda p: seen.append(p.evaluation),
    )
    evaluations = [row for row in seen if row]
    assert [row.step for row in evaluations] == [2, 4]
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    n = {role: sum(s["judged"] for s in card["sources"] if s["role"] == role) for role in evaluations[0].accuracy}
    assert n == {"trained on": 2, "out of domain": 5}
    for role, prompts in n.items():
        assert evaluations[-1].accuracy[role][0].n == prompts * 2 * 6
