from pathlib import Path

import pytest
import torch

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.graphs import graph_of, write_wide_graph
from tests.toys import commits_of
from workers.decoding.rule import judge
from workers.decoding.stale import Stale, stale_of
from workers.decoding.state import BlockState, Commit
from workers.drafters.spiffy import SpiffyDrafter, make, shapes_of
from workers.models.draft_graph import DraftGraph, write_draft_graph

NEVER = 0.0  # a token that cannot be had
P = torch.tensor(
    [
        [0.60, 0.30, 0.10, NEVER],
        [0.05, 0.05, 0.90, NEVER],  # the known commit
        [0.20, 0.80, NEVER, NEVER],
        [0.15, 0.15, 0.70, NEVER],
        [NEVER, 1.00, NEVER, NEVER],  # no second token
    ],
    dtype=torch.float64,
)
M = 9
X, Y, Z, W = (0, 0), (1, 0), (2, 0), (1, 1)


def roots(open: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[Stale, BlockState]:
    """The stale distribution of a block with these open positions, and its root (position 1 is filled)."""
    state = BlockState(tuple(M if i in open else 0 for i in range(5)), open)
    verdict = judge(P[list(open)].log(), None, state.open, DecodeSpec())
    return stale_of(verdict, state, (), start=0, spec=DecodeSpec(), own_noise_RV=None), state.fill(verdict.commit)


def drafter(graph: DraftGraph, budget: int) -> SpiffyDrafter:
    return SpiffyDrafter(shapes_of(graph, budget), budget)


def test_ranks_are_those_of_the_open_positions_of_the_root() -> None:
    stale, root = roots()
    tree = drafter(graph_of([[X], [X, Y], [X, W]]), 3).propose(root, (1,), stale)
    assert commits_of(tree) == (
        Commit(2, 1),
        Commit(3, 2),
        Commit(3, 0),
    )  # 0.8, then 0.7: tie of two seconds, lowest id
    assert [state.tokens for state in tree.states] == [
        (M, 2, M, M, 0),
        (M, 2, 1, M, 0),
        (M, 2, 1, 2, 0),
        (M, 2, 1, 0, 0),
    ]


def test_equal_confidences_are_ranked_by_position() -> None:
    state = BlockState((M, M, M), (0, 1, 2))
    verdict = judge(torch.zeros(3, 4), None, state.open, DecodeSpec())
    stale = stale_of(verdict, state, (), start=0, spec=DecodeSpec(), own_noise_RV=None)
    tree = drafter(graph_of([[X], [Y]]), 2).propose(state.fill(verdict.commit), (0,), stale)
    assert commits_of(tree) == (Commit(1, 0), Commit(2, 0))


def test_a_node_with_several_parents_is_drafted_once_below_the_one_that_counts_most() -> None:
    stale, root = roots()
    sets = [[X], [Y], [X, Y]]
    for counts, parent, commit in (([9, 5, 4], 1, Commit(3, 2)), ([5, 9, 4], 2, Commit(2, 1))):
        tree = drafter(graph_of(sets, counts=counts, steps=10), 3).propose(root, (1,), stale)
        assert len({state.tokens for state in tree.states}) == 4
        assert (tree.parents[3], tree.steps[3], tree.merged) == (parent, (commit,), 1)


def test_a_parent_chosen_after_its_child_comes_before_it_in_the_tree() -> None:
    stale, root = roots()
    graph = graph_of([[X], [X, Y], [Y]], counts=[5, 4, 9], steps=10)
    small, whole = (drafter(graph, budget).propose(root, (1,), stale) for budget in (2, 3))
    assert (small.parents, small.merged) == ((-1, 0, 1), 0)  # of budget 2 the second parent is no node
    assert [*commits_of(whole)] == [Commit(2, 1), Commit(3, 2), Commit(2, 1)]
    assert (whole.parents, whole.merged) == ((-1, 0, 0, 2), 1)


def test_masses_are_frequencies_that_never_grow_along_a_path() -> None:
    graph = graph_of([[X], [Y], [X, Y], [X, Z]], counts=[6, 5, 8, 3], steps=20)
    stale, root = roots((0, 1, 2, 3, 4))  # position 4 is surest: it is the known commit
    tree = drafter(graph, 4).propose(root, (4,), stale)
    assert tree.masses == pytest.approx((1.0, 0.3, 0.25, 0.3, 0.15))  # 8 of 20 came through two parents: capped


def test_nodes_that_do_not_exist_below_a_root_are_left_out_with_all_that_builds_on_them() -> None:
    graph = graph_of([[Z], [Z, Y], [X], [X, Y], [X, Y, Z]])
    stale, root = roots((0, 1, 2))  # two positions are open in the root
    tree = drafter(graph, 5).propose(root, (1,), stale)
    assert [state.tokens for state in tree.states[1:]] == [(M, 2, 1, 0, 0)]  # no third rank, and a pair would fill it
    stale, root = roots((0, 1, 2, 4))
    certain = graph_of([[(0, 1)], [(0, 1), Y], [Y]])
    tree = drafter(certain, 3).propose(root, (4,), stale)
    assert root.tokens == (M, M, M, 0, 1)
    assert tree.drafts == 3  # position 1 has a second token ...
    alone = BlockState((M, 2, M, 0, M), (0, 2, 4))
    tree = drafter(certain, 3).propose(alone, (1,), stale)
    assert [*commits_of(tree)] == [Commit(2, 1)]  # ... position 4 has none


def test_a_graph_for_other_blocks_or_smaller_budgets_is_refused(tmp_path: Path) -> None:
    folder = str(write_wide_graph(tmp_path / "wide", block_length=8))
    assert make(DrafterSpec(name="s", kind="spiffy", checkpoint=folder, budget=64), block_length=8).budget == 64
    with pytest.raises(ValueError, match="block_length is 8: allowed is the decoder's 32"):
        make(DrafterSpec(name="s", kind="spiffy", checkpoint=folder), block_length=32)
    with pytest.raises(ValueError, match="drafter s: budget is 65: allowed is at most 64"):
        make(DrafterSpec(name="s", kind="spiffy", checkpoint=folder, budget=65), block_length=8)
    with pytest.raises(ValueError, match="checkpoint is ''"):
        make(DrafterSpec(name="s", kind="spiffy"), block_length=8)


def test_fewer_nodes_than_the_budget_are_all_that_there_is(tmp_path: Path) -> None:
    write_draft_graph(tmp_path, graph_of([[X]]))
    spec = DrafterSpec(name="s", kind="spiffy", checkpoint=str(tmp_path), budget=20)
    stale, root = roots()
    assert make(spec, block_length=8).propose(root, (1,), stale).drafts == 1
