"""The frozen tree against numbers worked out by hand, and its shape on toy targets."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.spec import DecodeSpec
from tests.toys import ToyTarget, commits_of, greedy_stale
from workers.decoding.noise import gumbel
from workers.decoding.rule import judge
from workers.decoding.stale import stale_of
from workers.decoding.state import BlockState, Commit
from workers.drafters.blockspec import BlockSpecDrafter, width_of

P = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8], [0.9, 0.05, 0.05]], dtype=torch.float64)


def test_two_a_level_by_hand() -> None:
    """Below the root 0, 2 and 3 are open, with confidences .7, .8 and .9 (in sum 2.4).

    Level 1: position 3 has .9/2.4 of the order and .9 of the token; position 2 has .8/2.4 and .8; position 0 less.
    Level 2: {2, 3} from {3} by .8/1.5 x .8, from {2} by .9/1.6 x .9: more than {2} itself has, so as much as {2} has.
    {0, 3} from {3} by .7/1.5 x .7. A third level would be full.
    """
    stale, root = greedy_stale(P)
    tree = BlockSpecDrafter(4).propose(root, (1,), stale)
    assert [state.tokens for state in tree.states[1:]] == [(9, 1, 9, 0), (9, 1, 2, 9), (9, 1, 2, 0), (0, 1, 9, 0)]
    assert commits_of(tree) == (Commit(3, 0), Commit(2, 2), Commit(2, 2), Commit(0, 0))
    assert tree.parents == (-1, 0, 0, 1, 1)
    first, second = 0.9 / 2.4 * 0.9, 0.8 / 2.4 * 0.8
    assert first * 0.8 / 1.5 * 0.8 + second * 0.9 / 1.6 * 0.9 > second
    assert tree.masses == pytest.approx((1.0, first, second, second, first * 0.7 / 1.5 * 0.7))
    assert tree.merged == 1
    assert tree.calls == 0


def test_a_token_that_is_nearly_as_likely_comes_before_a_less_confident_position() -> None:
    """Up to the common sum of confidences: .52 x .52, then .5 x .5 and .5 x .49, and only then .35 x .35."""
    p_LV = torch.tensor([[0.98, 0.01, 0.01], [0.5, 0.49, 0.01], [0.3, 0.35, 0.35], [0.52, 0.28, 0.2]])
    stale, root = greedy_stale(p_LV)
    tree = BlockSpecDrafter(20).propose(root, (0,), stale)
    assert commits_of(tree)[:3] == (Commit(3, 0), Commit(1, 0), Commit(1, 1))


@pytest.mark.parametrize(("budget", "width"), [(1, 2), (4, 2), (8, 2), (12, 2), (13, 3), (20, 3), (32, 4), (200, 10)])
def test_width_of_a_level(budget: int, width: int) -> None:
    assert width_of(budget) == width


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 24), st.integers(2, 10), st.sampled_from([0.0, 0.7, 2.0]), st.booleans())
def test_level_by_level_as_wide_as_it_may_be_with_stale_tokens(
    seed: int, budget: int, length: int, temperature: float, coupled: bool
) -> None:
    target, spec = ToyTarget(seed=seed, vocab_size=12), DecodeSpec(temperature=temperature)
    state = BlockState((11,) * length, tuple(range(length)))
    logits_LV = target.logits(target.row((), state.tokens))
    noise_LV = gumbel(seed, torch.arange(length), 12) if temperature else None
    own_LV = gumbel(seed + 1, torch.arange(length), 12) if temperature and not coupled else None
    verdict = judge(logits_LV, noise_LV, state.open, spec)
    stale = stale_of(verdict, state, (), start=0, spec=spec, own_noise_RV=own_LV)
    root = state.fill(verdict.commit)
    tree = BlockSpecDrafter(budget).propose(root, (verdict.commit.position,), stale)
    depths = [len(root.open) - len(drafted.open) for drafted in tree.states[1:]]
    assert depths == sorted(depths)
    sizes = [depths.count(depth) for depth in range(1, max(depths, default=0) + 1)]
    width = width_of(budget)
    assert all(size == width for size in sizes[:-1])
    deepest = length - 2  # one position is the known commit's, one stays open
    assert sum(sizes) == min(budget, width * deepest)
    for parent, commit in zip(tree.parents[1:], commits_of(tree), strict=True):
        assert commit is not None
        assert commit.token in stale.drawn_ids_L2[commit.position].tolist()
        assert commit.position in tree.states[parent].open
