"""What every drafter of the table must do, whoever adds one; a new kind of artifact is one line of `MAKERS`."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from sweeps.spec import DecodeSpec, DrafterSpec
from tests.graphs import write_wide_graph
from tests.toys import ToyTarget, coarse_target, flat_target
from workers.catalog import ARTIFACTS, DRAFTERS, resolve
from workers.decoding.loop import decode
from workers.decoding.reference import Reference, reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel, save_order_model
from workers.replay.future import Future

LENGTH = 8
BUDGETS = (1, 4, 20)
VARIANTS = ({"merge_states": False}, {"gamma": 0.05}, {"hedge": 1.0})
CASES = [(kind, budget, {}) for kind in DRAFTERS for budget in BUDGETS] + [
    (kind, 6, variant) for kind, entry in DRAFTERS.items() for variant in VARIANTS if set(variant) <= set(entry.uses)
]
RULES = [
    {"temperature": 0.0},
    *({"temperature": t, "confidence": c} for t in (0.5, 1.0, 2.0) for c in ("top1", "sampled")),
]
PROMPTS = ((), (1, 2, 3), (4,) * LENGTH)
Make = Callable[..., Drafter | Oracle]


def write_random_order_model(folder: Path) -> None:
    torch.manual_seed(0)
    save_order_model(OrderModel(OrderConfig(block_length=LENGTH, width=16, heads=2, feedforward=16)), folder)


MAKERS: dict[str, Callable[[Path], object]] = {
    "order_model": write_random_order_model,
    "draft_graph": lambda folder: write_wide_graph(folder, block_length=LENGTH),
}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One artifact of each kind, by kind."""
    folders = {kind: tmp_path_factory.mktemp("artifacts") / kind for kind in ARTIFACTS}
    for kind, folder in folders.items():
        MAKERS[kind](folder)
    return {kind: str(folder) for kind, folder in folders.items()}


@pytest.fixture(scope="module")
def make(artifacts: dict[str, str]) -> Make:
    """Drafters by kind, with the artifact that they need."""

    def make(kind: str, budget: int, **options: object) -> Drafter | Oracle:
        entry = DRAFTERS[kind]
        named = artifacts[entry.artifact] if entry.artifact else ""
        spec = DrafterSpec(name=kind, kind=kind, budget=budget, checkpoint=named, **options)  # type: ignore[arg-type]
        drafter: Drafter | Oracle = resolve(entry.factory)(spec, block_length=LENGTH, device="cpu")
        assert isinstance(drafter, Oracle) == entry.oracle
        return drafter

    return make


def ready(drafter: Drafter | Oracle, free: Generation) -> Drafter:
    """The drafter of one prompt; an oracle is told its draft-free generation first."""
    return drafter.knowing(Future.of(free, LENGTH)) if isinstance(drafter, Oracle) else drafter


@cache
def toy(seed: int) -> ToyTarget:
    return ToyTarget(seed=seed, vocab_size=40, drift=0.1)


@cache
def naive(seed: int, spec: DecodeSpec) -> Reference:
    return reference(toy(seed), PROMPTS[seed], spec=spec, seed=seed)


def draft_free(target: ToyTarget, prompt: tuple[int, ...], spec: DecodeSpec, seed: int) -> Generation:
    return decode(target, NoDrafter(), prompt, spec=spec, seed=seed)


class Checked:
    """Passes a drafter's trees on after looking at each."""

    def __init__(self, drafter: Drafter, options: dict[str, object]) -> None:
        self.drafter, self.options, self.budget = drafter, options, drafter.budget
        self.trees = self.drafts = 0

    def propose(self, root: BlockState, known: int, stale: Stale) -> DraftTree:
        assert known not in root.open
        assert known in stale.state.open
        assert len(root.open) > 1
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
        self.drafts += tree.drafts
        return tree


def test_every_kind_of_artifact_can_be_made_here() -> None:
    assert set(MAKERS) == set(ARTIFACTS)
    assert {entry.artifact for entry in DRAFTERS.values()} <= {"", *ARTIFACTS}


@pytest.mark.parametrize(("kind", "budget", "variant"), CASES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(map(str, rule.values())))
def test_trees_keep_the_contract_and_output_equals_the_naive_decoder(
    make: Make, kind: str, budget: int, variant: dict[str, object], rule: dict[str, object]
) -> None:
    made, trees, drafts = make(kind, budget, **variant), 0, 0
    spec = DecodeSpec(max_new_tokens=19, block_length=LENGTH, **rule)  # type: ignore[arg-type]
    for seed, prompt in enumerate(PROMPTS):
        free = draft_free(toy(seed), prompt, spec, seed)
        drafter = Checked(ready(made, free), variant)
        drafted = decode(toy(seed), drafter, prompt, spec=spec, seed=seed)
        assert (drafted.output_ids, drafted.order) == (naive(seed, spec).output_ids, naive(seed, spec).order)
        assert drafted.counters.nfe <= naive(seed, spec).forwards == free.counters.nfe
        assert drafted.counters.nfe + sum(drafted.counters.accepted) == len(drafted.output_ids)
        trees, drafts = trees + drafter.trees, drafts + drafter.drafts
    assert bool(trees) == bool(made.budget)
    assert drafts > 0 or made.budget == 0, "nothing was drafted, so nothing is shown"


@pytest.mark.parametrize("kind", DRAFTERS)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_output_is_the_draft_free_one_where_everything_ties(make: Make, kind: str, temperature: float) -> None:
    spec = DecodeSpec(max_new_tokens=13, block_length=LENGTH, temperature=temperature)
    for target in (flat_target(seed=1), coarse_target(seed=2, vocab_size=30)):
        free = draft_free(target, (1,), spec, 3)
        drafted = decode(target, Checked(ready(make(kind, 6), free), {}), [1], spec=spec, seed=3)
        assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)


@pytest.mark.parametrize("kind", DRAFTERS)
@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("confidence", ["top1", "sampled"])
def test_independent_noise_ends_with_every_token_within_the_forwards_and_repeats(
    make: Make, kind: str, temperature: float, confidence: str
) -> None:
    spec = DecodeSpec(
        max_new_tokens=13,
        block_length=LENGTH,
        temperature=temperature,
        noise="independent",
        confidence=confidence,  # type: ignore[arg-type]
    )
    free = draft_free(toy(1), (1,), spec, 3)
    first, again = (
        decode(toy(1), Checked(ready(make(kind, 6), free), {}), [1], spec=spec, seed=3) for _ in range(2)
    )
    assert sorted(first.order) == list(range(13))
    assert set(first.output_ids) <= set(range(toy(1).never))
    assert first.counters.nfe <= 13
    assert (first.output_ids, first.order, first.counters) == (again.output_ids, again.order, again.counters)


@pytest.mark.parametrize("kind", DRAFTERS)
def test_options_a_drafter_does_not_name_change_nothing(make: Make, kind: str) -> None:
    spec = DecodeSpec(max_new_tokens=16, block_length=LENGTH)
    free = draft_free(toy(1), (1,), spec, 3)
    plain = decode(toy(1), ready(make(kind, 6), free), [1], spec=spec, seed=3).counters
    for option, value in {"gamma": 0.3, "hedge": 1.0, "merge_states": False}.items():
        if option not in DRAFTERS[kind].uses:
            drafter = ready(make(kind, 6, **{option: value}), free)
            assert decode(toy(1), drafter, [1], spec=spec, seed=3).counters == plain
