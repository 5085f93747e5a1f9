"""What a round hands to the next one's drafter: the stale distribution of the last state on the walk, none earlier.

The future is known here, so walks are long and the first state of a walk is not its last.
"""

from dataclasses import dataclass, field, replace

import pytest
import torch

from sweeps.spec import DecodeSpec
from tests.toys import KnowingDrafter, ToyTarget
from workers.decoding.loop import decode
from workers.decoding.rule import log_odds
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree
from workers.decoding.verification import Verification
from workers.drafters.none import NoDrafter

LENGTH, BLOCKS, BUDGET = 8, 2, 2
TARGET = ToyTarget(seed=6, vocab_size=12)
MASK = TARGET.traits.mask_id


@dataclass
class Asked(KnowingDrafter):
    """Remembers what it was asked with."""

    asked: list[tuple[BlockState, int, Stale]] = field(default_factory=list)

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        self.asked.append((root, known, stale))
        return super().propose(root, known, stale)


def known_future(spec: DecodeSpec) -> list[list[Commit]]:
    """The commits of each block, draft-free."""
    commits: list[Commit] = []
    decode(TARGET, NoDrafter(), [], spec=spec, seed=5, watch=lambda seen: commits.append(seen.verdict.commit))
    return [commits[:LENGTH], commits[LENGTH:]]


def state_after(commits: list[Commit]) -> BlockState:
    """An empty block with these commits filled in."""
    state = BlockState((MASK,) * LENGTH, tuple(range(LENGTH)))
    for commit in commits:
        state = state.fill(commit)
    return state


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_drafter_is_told_of_the_last_state_of_the_walk(temperature: float) -> None:
    """Budget 2 in blocks of 8: commits 1, 3, 3, 1; the second and third round are asked for drafts."""
    spec = DecodeSpec(max_new_tokens=LENGTH * BLOCKS, block_length=LENGTH, temperature=temperature)
    futures = known_future(spec)
    drafter = Asked(futures, BUDGET)
    out = decode(TARGET, drafter, [], spec=spec, seed=5)
    assert out.counters.accepted == (0, 2, 2, 0) * BLOCKS
    assert len(drafter.asked) == 2 * BLOCKS
    for place, (root, known, stale) in enumerate(drafter.asked):
        block, done = place // 2, (1, 4)[place % 2]
        future, prefix = futures[block], tuple(out.output_ids[: block * LENGTH])
        last = state_after(future[: done - 1])
        assert stale.state == last
        assert (root, known) == (last.fill(future[done - 1]), (future[done - 1].position,))
        assert stale.fill_order == tuple(commit.position for commit in future[: done - 1])
        assert stale.start == block * LENGTH
        own_RV = TARGET.logits(TARGET.row(prefix, last.tokens))[list(last.open)]
        logp_RV = own_RV.log_softmax(-1)
        best = logp_RV.max(-1)
        assert stale.ids_LK[list(last.open), 0].tolist() == best.indices.tolist()
        assert torch.allclose(stale.logprobs_LK[list(last.open), 0], best.values, atol=1e-6)
        assert torch.allclose(stale.logodds_L[list(last.open)], log_odds(own_RV, best.indices), atol=1e-9)


def test_after_a_verdict_made_again_the_drafter_is_told_of_that_one() -> None:
    """All are doubtful, so each round ends at its root; the batch's logits were rounded, the second forward's not."""
    spec = DecodeSpec(max_new_tokens=LENGTH, block_length=LENGTH)
    drafter = Asked(known_future(replace(spec, max_new_tokens=LENGTH * BLOCKS)), BUDGET)
    out = decode(replace(TARGET, rounding=0.05), drafter, [], spec=spec, seed=5, verification=Verification(margin=1e9))
    assert out.counters.recomputes == len(drafter.asked) == LENGTH - 2
    for _, _, stale in drafter.asked:
        open = list(stale.state.open)
        expected_R = TARGET.logits(TARGET.row((), stale.state.tokens))[open].log_softmax(-1).amax(-1)
        assert torch.allclose(stale.logprobs_LK[open, 0], expected_R, atol=1e-6)


@pytest.mark.parametrize("knows", [False, True])
def test_a_watcher_is_told_of_the_verdict_before_the_round(knows: bool) -> None:
    """`known` is the very verdict that ended the round before, `stale` its state; a block's first round has neither."""
    spec = DecodeSpec(max_new_tokens=LENGTH * BLOCKS, block_length=LENGTH)
    drafter = KnowingDrafter(known_future(spec), BUDGET) if knows else NoDrafter()
    heard: list[tuple[Seen, Stale | None]] = []
    out = decode(TARGET, drafter, [], spec=spec, seed=5, watch=lambda seen: heard.append((seen, seen.stale)))
    assert max(out.counters.accepted) == (BUDGET if knows else 0)
    before: Seen | None = None
    for place, (seen, stale) in enumerate(heard):
        if place and out.rounds[place] != out.rounds[place - 1]:
            last, _ = heard[place - 1]
            before = last if last.start == seen.start else None
        assert seen.known is (before and before.verdict)
        assert (stale and stale.state) == (before and before.state)
