"""What the three oracles draft, by hand, and the bound that the joint one is.

`least` is arithmetic from lengths alone: it shares nothing with the decoder.
"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeps.bound import least_forwards
from sweeps.spec import DecodeSpec
from tests.drafters import made, ready
from tests.toys import RandomDrafter, ToyTarget, coarse_target, commits_of
from workers.catalog import DRAFTERS
from workers.decoding.loop import decode
from workers.decoding.rule import judge
from workers.decoding.stale import Stale, stale_of
from workers.decoding.state import BlockState, Commit
from workers.drafters.base import Drafter, Oracle, TargetReader
from workers.drafters.none import NoDrafter
from workers.futures import future_of
from workers.replay.future import Future

ORACLES = [kind for kind, entry in DRAFTERS.items() if entry.oracle]
P = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]], dtype=torch.float64)
# stale argmax by position: 0, 1, 2, 0; by confidence: 1 (the known commit), 2, 0, 3
FUTURE = Future({16: (Commit(1, 1), Commit(0, 0), Commit(3, 1), Commit(2, 2))})


def stale_of_p() -> tuple[Stale, BlockState]:
    state = BlockState((9, 9, 9, 9), (0, 1, 2, 3))
    verdict = judge(P.log(), None, state.open, DecodeSpec())
    return stale_of(verdict, state, (), start=16, spec=DecodeSpec(), own_noise_RV=None), state.fill(verdict.commit)


def oracle_of(kind: str, budget: int, length: int) -> Oracle:
    oracle = made(kind, length, budget)
    assert isinstance(oracle, Oracle)
    return oracle


@pytest.mark.parametrize(
    ("kind", "drafted"),
    [
        ("oracle_joint", [Commit(0, 0), Commit(3, 1)]),  # never the third: it would fill the block
        ("oracle_position", [Commit(0, 0)]),  # position 3 will hold 1, its stale token is 0: stop
        ("oracle_token", [Commit(2, 2), Commit(0, 0)]),  # stale confidence says 2 first, the target 0
    ],
)
def test_each_oracle_knows_what_its_name_says(kind: str, drafted: list[Commit]) -> None:
    stale, root = stale_of_p()
    oracle = oracle_of(kind, 8, 4)
    tree = oracle.knowing(FUTURE).propose(root, (1,), stale)
    assert list(commits_of(tree)) == drafted
    assert tree.parents == tuple(range(-1, len(drafted)))
    assert tree.states[-1].open == tuple(sorted({0, 2, 3} - {commit.position for commit in drafted}))
    assert oracle.knowing(Future({})).propose(root, (1,), stale).drafts == 0


@pytest.mark.parametrize("kind", ["oracle_joint", "oracle_token"])
def test_the_budget_cuts_the_chain(kind: str) -> None:
    stale, root = stale_of_p()
    assert oracle_of(kind, 1, 4).knowing(FUTURE).propose(root, (1,), stale).drafts == 1


def test_a_drafter_is_no_oracle_and_an_oracle_no_drafter() -> None:
    for kind, entry in DRAFTERS.items():
        drafter = made(kind, 8, 4, entry.commits[0], hidden=16)
        assert isinstance(drafter, Oracle) is entry.oracle
        assert hasattr(drafter, "propose") is not isinstance(drafter, Oracle | TargetReader)


def least(*, prompt: int, new: int, length: int, budget: int) -> int:
    """Fewest forwards, by going through them: a block's first commits 1, each later one 1 + budget while there are."""
    total, done = 0, prompt
    while done < prompt + new:
        left = min(length - done % length, prompt + new - done)
        done, left, total = done + left, left - 1, total + 1
        while left > 0:
            left, total = left - (1 + budget), total + 1
    return total


def test_stale_draws_are_the_tokens_above_temperature_zero() -> None:
    """At T = 3 a draw is rarely the argmax. This target never changes its mind, so every stale draw comes true."""
    spec = DecodeSpec(max_new_tokens=24, block_length=8, temperature=3.0)
    target = ToyTarget(seed=3, vocab_size=40, drift=0.0)
    drafter = ready("oracle_position", target, [1], spec, 5, budget=5)
    nfe = decode(target, drafter, [1], spec=spec, seed=5).counters.nfe
    assert nfe == least(prompt=1, new=24, length=8, budget=5)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    prompt=st.integers(0, 13),
    new=st.integers(1, 23),
    length=st.sampled_from((4, 6, 8)),
    budget=st.integers(1, 9),
    temperature=st.sampled_from((0.0, 0.5, 1.0, 2.0)),
    confidence=st.sampled_from(("top1", "sampled")),
    drift=st.sampled_from((0.0, 0.1, 1.0)),
    ties=st.booleans(),
)
def test_the_joint_oracle_takes_the_least_forwards_and_no_drafter_fewer(
    seed: int, prompt: int, new: int, length: int, budget: int, drift: float, ties: bool, **rule: Any
) -> None:
    spec = DecodeSpec(max_new_tokens=new, block_length=length, **rule)
    target = (coarse_target if ties else ToyTarget)(seed=seed, vocab_size=40, drift=drift)
    ids = target.encode("abcdefghijklm"[:prompt])
    kinds = [kind for kind, entry in DRAFTERS.items() if "standard" in entry.commits]
    drafters: dict[str, Drafter] = {kind: ready(kind, target, ids, spec, seed, budget=budget) for kind in kinds}
    drafters["random trees"] = RandomDrafter(seed, budget)
    nfe = {name: decode(target, drafter, ids, spec=spec, seed=seed).counters.nfe for name, drafter in drafters.items()}
    bound = least(prompt=prompt, new=new, length=length, budget=budget)
    assert nfe["oracle_joint"] == min(nfe.values()) == bound
    assert nfe["none"] == max(nfe.values()) == new
    assert least_forwards(prompt, new, length, budget) == bound


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_stop_id_ends_oracle_and_draft_free_alike(kind: str, temperature: float) -> None:
    spec = DecodeSpec(max_new_tokens=40, block_length=8, temperature=temperature)
    target = ToyTarget(seed=2, vocab_size=12, drift=0.2, stops=(3,))
    free = decode(target, NoDrafter(), [1, 2], spec=spec, seed=1)
    assert free.finish_reason == "stop"
    assert len(free.output_ids) < 40
    drafted = decode(target, ready(kind, target, [1, 2], spec, 1, budget=4), [1, 2], spec=spec, seed=1)
    assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)


@pytest.mark.parametrize("kind", ORACLES)
def test_a_wrong_future_costs_forwards_and_never_output(kind: str) -> None:
    """As where rounding makes a run leave the recorded path: the oracle goes on by the record, the target decides."""
    spec = DecodeSpec(max_new_tokens=16, block_length=8)
    target, other = ToyTarget(seed=1, vocab_size=40), ToyTarget(seed=2, vocab_size=40)
    wrong = future_of(other, [1], spec=spec, seed=0)
    free = decode(target, NoDrafter(), [1], spec=spec, seed=0)
    drafted = decode(target, oracle_of(kind, 4, 8).knowing(wrong), [1], spec=spec, seed=0)
    assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)
    assert drafted.counters.nfe <= 16


def test_two_commits_swapped_in_the_record_cost_a_round_or_two_and_not_the_block() -> None:
    """A near-tie of positions that went the other way when it was recorded."""
    spec = DecodeSpec(max_new_tokens=32, block_length=32)
    target = ToyTarget(seed=1, vocab_size=40)
    future = future_of(target, [], spec=spec, seed=0)
    commits = list(future.blocks[0])
    commits[10], commits[11] = commits[11], commits[10]
    oracle = oracle_of("oracle_joint", 8, 32)
    true, swapped = (
        decode(target, oracle.knowing(told), [], spec=spec, seed=0).counters.nfe
        for told in (future, Future({0: tuple(commits)}))
    )
    assert true == 5
    assert true <= swapped <= 7
