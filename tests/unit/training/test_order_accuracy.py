"""What is judged of a trained model, and how sure its numbers are: prompts are the unit, and a fixed part is enough."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sweeps.statistics import wilson
from tests.toys import ToyTarget
from tests.traces import toy_cell, toy_trace, write_traces
from workers.catalog import ZOO
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel
from workers.training.order_accuracy import Tally, judge, source_examples
from workers.training.order_card import CLUSTERED, DepthAccuracy, Share, read_card
from workers.training.order_data import Trajectories
from workers.training.order_readme import readme

LENGTH = 8


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three held-out prompts of six, at two temperatures."""
    traces = [
        toy_trace(ToyTarget(vocab_size=40), toy_cell(temperature=t, length=LENGTH, new=16), n, prompt=f"{n:08d}")
        for t in (0.0, 1.0)
        for n in range(6)
    ]
    return Trajectories.read(write_traces(tmp_path_factory.mktemp("data"), traces), held_out=0.5)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return OrderModel(OrderConfig(block_length=LENGTH))


def tally(right, prompts, depths):
    right = np.array(right, dtype=np.bool_)
    return Tally(
        losses=np.zeros(len(right)),
        right=right,
        stale_right=~right,
        depths=np.array(depths),
        prompts=np.array(prompts),
    )


def test_commits_of_prompts_that_go_all_one_way_are_as_few_as_the_prompts():
    split = tally([True] * 50 + [False] * 50, [3] * 50 + [7] * 50, [0] * 100)  # one prompt always right, one never
    ours, stale, prompts = split.at(1)
    assert (ours.hits, ours.n, ours.value, prompts) == (50, 100, 0.5, 2)
    assert (stale.hits, stale.n) == (50, 100)
    independent = wilson(50, 100)
    assert ours.low < 0.01 < 0.4 < independent.low
    assert ours.high > 0.99 > 0.6 > independent.high


def test_only_the_depth_asked_for_counts_and_one_prompt_gives_no_interval():
    mixed = tally([True, False, True, True], [0, 0, 0, 1], [0, 0, 1, 1])
    first, _, prompts = mixed.at(1)
    assert (first.hits, first.n, first.low, first.high, prompts) == (1, 2, None, None, 1)
    assert [mixed.at(2)[0].n, mixed.at(2)[2]] == [2, 2]
    nothing, _, prompts = mixed.at(3)
    assert (nothing.n, nothing.value, prompts) == (0, None, 0)


def test_a_prompt_is_one_prompt_at_every_temperature(data, model):
    numbers = data.prompt_S.reshape(2, 6, 16)  # temperature, prompt, step
    assert np.array_equal(numbers[0], numbers[1])
    assert len(np.unique(numbers)) == 6
    rows = {(row.task, row.temperature, row.depth): row for row in judge(model, data, 4).accuracy}
    for depth in range(1, 5):
        assert {rows["", None, depth].prompts, rows["toy", 0.0, depth].prompts, rows["toy", 1.0, depth].prompts} == {3}
        both = rows["toy", 0.0, depth].order_model.n + rows["toy", 1.0, depth].order_model.n
        assert rows["", None, depth].order_model.n == both == 2 * 3 * 2 * (LENGTH - 1 - depth)  # steps that deep


def test_a_part_of_a_source_is_the_same_part_each_time_and_nothing_but_its_examples(data):
    steps, depths = source_examples(data, 1, 4, limit=10_000)
    assert len(steps) == 3 * 2 * (4 * 3 + 3 + 2 + 1)  # prompts, blocks, and 4, 4, 4, 3, 2, 1 depths of a block's steps
    whole = set(zip(steps.tolist(), depths.tolist(), strict=True))
    assert len(whole) == len(steps)
    few = [set(zip(*(part.tolist() for part in source_examples(data, 1, 4, 20)), strict=True)) for _ in range(2)]
    assert few[0] == few[1]
    assert len(few[0]) == 20
    assert few[0] < whole
    assert len({data.prompt_S[step] for step, _ in few[0]}) == 3


def test_judging_says_which_source_it_is_at_and_asks_no_more_than_the_limit(data, model):
    seen = []
    rows = judge(model, data, 4, limit=20, progress=seen.append).accuracy
    assert [(p.number, p.total, p.source.task, p.source.temperature) for p in seen] == [
        (1, 2, "toy", 0.0),
        (2, 2, "toy", 1.0),
    ]
    assert sum(row.order_model.n for row in rows if row.temperature == 1.0) == 20
    assert sum(row.order_model.n for row in rows if row.task == "") == 40


def card_with(ours, rival):
    """The shipped card with other numbers at depths 1 and 2, as a card of today."""
    rows = [
        DepthAccuracy(
            depth=depth,
            order_model=Share.clustered(np.array(hits), np.array([10, 10])),
            stale_confidence=Share.clustered(np.array(other), np.array([10, 10])),
            prompts=2,
        )
        for depth, hits, other in ((1, ours, rival), (2, rival, ours))
    ]
    shipped = read_card(ZOO / "drafters" / "spot-tiny-sdar")
    return replace(shipped, accuracy=tuple(rows), version=CLUSTERED, judged_limit=8192)


def test_a_card_says_where_the_model_is_worse_than_nothing():
    card = card_with((5, 6), (7, 8))
    assert card.warnings() == ("worse than the stale confidence at depth 1 (trained on)",)
    assert "**Mind: worse than the stale confidence at depth 1 (trained on).**" in readme(card)
    even = card_with((5, 6), (6, 5))
    assert even.warnings() == ()
    assert "Mind" not in readme(even)


def test_cards_say_how_their_intervals_were_made():
    shipped = readme(read_card(ZOO / "drafters" / "spot-tiny-sdar"))
    assert "95 % intervals (Wilson, as if commits were independent)." in shipped
    assert "commits, drawn by a fixed seed" not in shipped
    card = card_with((5, 6), (7, 8))
    assert "Wilson" not in readme(card)
    assert "over prompts, since commits of one prompt are not independent" in readme(card)
    first = card.totals()[1].order_model
    assert f"| 1 | 20 | 2 | 55.0% ({first.low:.1%} to {first.high:.1%}) |" in readme(card)
