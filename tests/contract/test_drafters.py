"""What every drafter of the table must do, whoever adds one."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.graphs import write_wide_graph
from tests.toys import ToyTarget, coarse_target, flat_target
from workers.catalog import DRAFTERS, resolve
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.futures import future_of, told
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model

LENGTH = 8
BUDGETS = (1, 4, 20)
VARIANTS = ({}, {"merge_states": False}, {"gamma": 0.05}, {"hedge": 1.0})
CASES = [
    (kind, budget, variant)
    for kind, entry in DRAFTERS.items()
    for budget in BUDGETS
    for variant in VARIANTS
    if set(variant) <= set(entry.uses)
]
Make = Callable[..., Drafter | Oracle]


def ready(drafter: Drafter | Oracle, target: ToyTarget, prompt: list[int], spec: DecodeSpec, seed: int) -> Drafter:
    """The drafter; an oracle is told the draft-free trajectory of the prompt first."""
    return told(drafter, partial(future_of, target, prompt, spec=spec, seed=seed))


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Drafters by kind; one that needs an order model gets a random one, one that needs a draft graph a wide one."""
    checkpoint = tmp_path_factory.mktemp("order")
    torch.manual_seed(0)
    save_order_model(OrderModel(OrderConfig(block_length=LENGTH, width=16, heads=2, feedforward=16)), Path(checkpoint))
    graph = write_wide_graph(tmp_path_factory.mktemp("graph"), block_length=LENGTH)
    artifacts = {"": "", "order_model": str(checkpoint), "draft_graph": str(graph)}

    def make(kind: str, budget: int, **options: object) -> Drafter | Oracle:
        named = artifacts[DRAFTERS[kind].artifact]
        spec = DrafterSpec(name=kind, kind=kind, budget=budget, checkpoint=named, **options)  # type: ignore[arg-type]
        drafter: Drafter | Oracle = resolve(DRAFTERS[kind].factory)(spec, block_length=LENGTH, device="cpu")
        return drafter

    return make


class Checked:
    """Passes a drafter's trees on after looking at each."""

    def __init__(self, drafter: Drafter, spec: dict[str, object]) -> None:
        self.drafter, self.options, self.budget = drafter, spec, drafter.budget
        self.trees = 0

    def propose(self, root: BlockState, known: int, stale: Stale) -> DraftTree:
        assert known not in root.open
        assert known in stale.state.open
        tree = self.drafter.propose(root, known, stale)
        again = self.drafter.propose(root, known, stale)
        assert tree == again, "the same question has one answer"
        assert tree.states[0] == root
        assert tree.drafts <= self.budget
        assert len(tree.states) == len(tree.parents) == len(tree.commits) == len(tree.masses)
        assert (tree.parents[0], tree.commits[0], tree.masses[0]) == (-1, None, 1.0)
        for node in range(1, len(tree.states)):
            parent, commit = tree.parents[node], tree.commits[node]
            assert 0 <= parent < node
            assert commit is not None
            assert commit.position in tree.states[parent].open, "fills a position that is not open"
            assert tree.states[node] == tree.states[parent].fill(commit)
            assert not tree.states[node].full
            assert 0 < tree.masses[node] <= tree.masses[parent]
            assert tree.masses[node] >= self.options.get("gamma", 0.0)
        if self.options.get("merge_states", True):
            assert len({state.tokens for state in tree.states}) == len(tree.states)
        self.trees += 1
        return tree


@pytest.mark.parametrize(("kind", "budget", "variant"), CASES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_trees_keep_the_contract_and_output_equals_the_naive_decoder(
    make: Make, kind: str, budget: int, variant: dict[str, object], temperature: float
) -> None:
    made, trees = make(kind, budget, **variant), 0
    spec = DecodeSpec(max_new_tokens=19, block_length=LENGTH, temperature=temperature)
    for seed, prompt in enumerate(([], [1, 2, 3], [4] * LENGTH)):
        target = ToyTarget(seed=seed, vocab_size=40, drift=0.1)
        naive = reference(target, prompt, spec=spec, seed=seed)
        drafter = Checked(ready(made, target, prompt, spec, seed), variant)
        drafted = decode(target, drafter, prompt, spec=spec, seed=seed)
        trees += drafter.trees
        assert (drafted.output_ids, drafted.order) == (naive.output_ids, naive.order)
        assert drafted.counters.nfe <= naive.forwards
    assert trees > 0 or made.budget == 0


@pytest.mark.parametrize("kind", DRAFTERS)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_output_is_the_draft_free_one_where_everything_ties(make: Make, kind: str, temperature: float) -> None:
    spec = DecodeSpec(max_new_tokens=13, block_length=LENGTH, temperature=temperature)
    for target in (flat_target(seed=1), coarse_target(seed=2, vocab_size=30)):
        drafter = Checked(ready(make(kind, 6), target, [1], spec, 3), {})
        drafted = decode(target, drafter, [1], spec=spec, seed=3)
        free = decode(target, NoDrafter(), [1], spec=spec, seed=3)
        assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)


@pytest.mark.parametrize("kind", DRAFTERS)
def test_independent_noise_ends_with_every_token_and_within_the_forwards(make: Make, kind: str) -> None:
    spec = DecodeSpec(max_new_tokens=13, block_length=LENGTH, temperature=1.0, noise="independent")
    target = ToyTarget(seed=1, vocab_size=40, drift=0.1)
    drafter = Checked(ready(make(kind, 6), target, [1], spec, 3), {})
    drafted, again = (decode(target, drafter, [1], spec=spec, seed=3) for _ in range(2))
    assert len(drafted.output_ids) == 13
    assert drafted.counters.nfe <= 13
    assert drafted.output_ids == again.output_ids


@pytest.mark.parametrize("kind", DRAFTERS)
def test_options_a_drafter_does_not_name_change_nothing(make: Make, kind: str) -> None:
    spec = DecodeSpec(max_new_tokens=16, block_length=LENGTH)
    target = ToyTarget(seed=1, vocab_size=40, drift=0.1)
    plain = decode(target, ready(make(kind, 6), target, [1], spec, 3), [1], spec=spec, seed=3).counters
    for option, value in {"gamma": 0.3, "hedge": 1.0, "merge_states": False}.items():
        if option not in DRAFTERS[kind].uses:
            drafter = ready(make(kind, 6, **{option: value}), target, [1], spec, 3)
            assert decode(target, drafter, [1], spec=spec, seed=3).counters == plain
