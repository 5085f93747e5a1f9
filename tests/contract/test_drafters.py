"""What every drafter of the table must do, whoever adds one."""

from functools import cache
from itertools import product

import pytest

from sweeps.spec import DecodeSpec
from tests.costs import steep_curve_file
from tests.drafters import MAKERS, ready
from tests.toys import ToyTarget, coarse_target, flat_target
from workers.catalog import ARTIFACTS, DRAFTERS
from workers.decoding.loop import decode
from workers.decoding.reference import Reference, reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState
from workers.decoding.tree import DraftTree
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter

LENGTH = 8
BUDGETS = (1, 4, 20)
TAU = 0.5  # what an untrained toy target is sometimes sure of
VARIANTS = (
    {"merge_states": False},
    {"gamma": 0.05},
    {"hedge": 1.0},
    {"cost": steep_curve_file(LENGTH)},
    {"cross_block": True},
    {"cross_block": True, "refresh": True},
)
RULES = [
    {"temperature": 0.0},
    *({"temperature": t, "confidence": c} for t in (0.5, 1.0, 2.0) for c in ("top1", "sampled")),
]
FEW = (RULES[0], RULES[4], RULES[5])
CASES = [(kind, budget, {}, rule) for kind in DRAFTERS for budget in BUDGETS for rule in RULES] + [
    (kind, 6, variant, rule)
    for kind, entry in DRAFTERS.items()
    for variant in VARIANTS
    for rule in FEW
    if set(variant) <= set(entry.uses)
]
PROMPTS = ((), (1, 2, 3), (4,) * LENGTH)


def named(value: object) -> str:
    """A part of a case's name."""
    return (
        "-".join(map(str, value.values() if "temperature" in value else value))
        if isinstance(value, dict)
        else str(value)
    )


def commits(kind: str) -> list[dict[str, object]]:
    """The commit rules that a kind drafts for, as options of a `DecodeSpec`."""
    return [{"commit": commit} | ({"tau": TAU} if commit == "threshold" else {}) for commit in DRAFTERS[kind].commits]


def rule_of(kind: str) -> dict[str, object]:
    """The first of them."""
    return commits(kind)[0]


@cache
def toy(seed: int) -> ToyTarget:
    return ToyTarget(seed=seed, vocab_size=40, drift=0.1)


@cache
def naive(seed: int, spec: DecodeSpec) -> Reference:
    return reference(toy(seed), PROMPTS[seed], spec=spec, seed=seed)


def switched(variant: dict[str, object]) -> Verification:
    """The verification that a variant's options ask for."""
    return Verification(**{name: variant[name] for name in ("cross_block", "refresh") if name in variant})  # type: ignore[arg-type]


class Checked:
    """Passes a drafter's trees on after looking at each."""

    def __init__(self, drafter: Drafter, options: dict[str, object]) -> None:
        self.drafter, self.options, self.budget = drafter, options, drafter.budget
        self.trees = self.drafts = self.crossings = 0

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        assert known
        assert not {*known} & {*root.open}
        assert {*known} | {*root.open} == {*stale.state.open}
        assert len(root.open) > (0 if stale.beyond else 1)
        tree = self.drafter.propose(root, known, stale)
        again = self.drafter.propose(root, known, stale)
        assert tree == again, "the same question has one answer"
        assert tree.states[0] == root
        assert tree.drafts <= self.budget
        assert len(tree.states) == len(tree.parents) == len(tree.steps) == len(tree.masses)
        assert (tree.parents[0], tree.steps[0], tree.masses[0]) == (-1, (), 1.0)
        for node in range(1, len(tree.states)):
            parent, step = tree.parents[node], tree.steps[node]
            assert 0 <= parent < node
            assert step
            assert list(step) == sorted(step)
            assert {*dict(step)} <= {*tree.states[parent].open}, "fills a position that is not open"
            state, filled = tree.states[node], tree.states[parent].fill(*step)
            assert not tree.states[parent].behind, "nothing hangs below a draft in the next block"
            if filled.full:
                assert stale.beyond is not None, "a full state needs no forward, unless the draft goes on behind it"
                assert state == stale.beyond.after(filled)
                self.crossings += 1
            else:
                assert state == filled
            assert 0 < tree.masses[node] <= tree.masses[parent]
            assert tree.masses[node] >= self.options.get("gamma", 0.0)
        if self.options.get("merge_states", True):
            assert len(set(tree.states)) == len(tree.states)
        self.trees += 1
        self.drafts += tree.drafts
        return tree


def test_every_kind_of_artifact_can_be_made_here() -> None:
    assert set(MAKERS) == set(ARTIFACTS)
    assert {entry.artifact for entry in DRAFTERS.values()} <= {"", *ARTIFACTS}


@pytest.mark.parametrize(("kind", "budget", "variant", "rule"), CASES, ids=named)
def test_trees_keep_the_contract_and_output_equals_the_naive_decoder(
    kind: str, budget: int, variant: dict[str, object], rule: dict[str, object]
) -> None:
    for commit in commits(kind):
        spec = DecodeSpec(max_new_tokens=19, block_length=LENGTH, **rule, **commit)  # type: ignore[arg-type]
        trees = drafts = crossings = 0
        for seed, prompt in enumerate(PROMPTS):
            drafter = Checked(ready(kind, toy(seed), prompt, spec, seed, budget=budget, **variant), variant)
            drafted = decode(toy(seed), drafter, prompt, spec=spec, seed=seed, verification=switched(variant))
            free = naive(seed, spec)
            assert (drafted.output_ids, drafted.order, drafted.steps) == (free.output_ids, free.order, free.steps)
            assert drafted.counters.nfe <= free.forwards
            assert drafted.counters.nfe + sum(drafted.counters.accepted) == len(drafted.steps)
            trees, drafts = trees + drafter.trees, drafts + drafter.drafts
            crossings += drafter.crossings
        assert (trees > 0) == (drafts > 0) == (kind != "none")
        assert (crossings > 0) == variant.get("cross_block", False)


@pytest.mark.parametrize("kind", DRAFTERS)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_output_is_the_draft_free_one_where_everything_ties(kind: str, temperature: float) -> None:
    spec = DecodeSpec(max_new_tokens=13, block_length=LENGTH, temperature=temperature, **rule_of(kind))  # type: ignore[arg-type]
    for target in (flat_target(seed=1), coarse_target(seed=2, vocab_size=30)):
        free = decode(target, NoDrafter(), [1], spec=spec, seed=3)
        drafted = decode(target, Checked(ready(kind, target, [1], spec, 3, budget=6), {}), [1], spec=spec, seed=3)
        assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order)


@pytest.mark.parametrize("kind", DRAFTERS)
@pytest.mark.parametrize("temperature", [0.01, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("confidence", ["top1", "sampled"])
def test_independent_noise_ends_with_every_token_within_the_forwards_and_repeats(
    kind: str, temperature: float, confidence: str
) -> None:
    rule = {"temperature": temperature, "noise": "independent", "confidence": confidence}
    spec = DecodeSpec(max_new_tokens=13, block_length=LENGTH, **rule, **rule_of(kind))  # type: ignore[arg-type]
    drafter = Checked(ready(kind, toy(1), [1], spec, 3, budget=6), {})
    first, again = (decode(toy(1), drafter, [1], spec=spec, seed=3) for _ in range(2))
    assert sorted(first.order) == list(range(13))
    assert set(first.output_ids) <= set(range(toy(1).never))
    assert first.counters.nfe <= 13
    assert (first.output_ids, first.order, first.counters) == (again.output_ids, again.order, again.counters)


@pytest.mark.parametrize("kind", DRAFTERS)
def test_options_a_drafter_does_not_name_change_nothing(kind: str) -> None:
    spec = DecodeSpec(max_new_tokens=16, block_length=LENGTH, **rule_of(kind))  # type: ignore[arg-type]
    plain = decode(toy(1), ready(kind, toy(1), [1], spec, 3, budget=6), [1], spec=spec, seed=3).counters
    options = {"gamma": 0.3, "hedge": 1.0, "merge_states": False, "cost": steep_curve_file(LENGTH)}
    for option, value in options.items():
        if option not in DRAFTERS[kind].uses:
            drafter = ready(kind, toy(1), [1], spec, 3, budget=6, **{option: value})
            assert decode(toy(1), drafter, [1], spec=spec, seed=3).counters == plain


@pytest.mark.parametrize("kind", [kind for kind in DRAFTERS if kind != "none"])
def test_rounding_in_a_batch_changes_nothing_where_doubtful_verdicts_are_made_again(kind: str) -> None:
    """Logits move by up to 0.05 in a batch: gaps of log-odds by four times that, over T below 1.

    Each rule has so few close verdicts that one of them may have none: that any were made again, and that outputs
    differ where they are not, is asked of all rules together.
    """
    assert "verify_margin" in DRAFTERS[kind].uses
    recomputes = differing = 0
    for rule, (seed, prompt) in product(RULES, enumerate(PROMPTS)):
        spec = DecodeSpec(max_new_tokens=19, block_length=LENGTH, **rule, **rule_of(kind))  # type: ignore[arg-type]
        target = ToyTarget(seed=seed, vocab_size=40, drift=0.1, rounding=0.05)
        drafter = Checked(ready(kind, target, prompt, spec, seed, budget=6), {})
        margin, free = 4 * 0.05 / min(1.0, spec.temperature or 1.0), naive(seed, spec)
        drafted = decode(target, drafter, prompt, spec=spec, seed=seed, verification=Verification(margin=margin))
        assert (drafted.output_ids, drafted.order) == (free.output_ids, free.order), rule
        assert drafted.counters.rounds + sum(drafted.counters.accepted) == len(drafted.steps)
        rounded = decode(target, drafter, prompt, spec=spec, seed=seed)
        differing += (rounded.output_ids, rounded.order) != (free.output_ids, free.order)
        recomputes += drafted.counters.recomputes
    assert differing > 0, "nothing was rounded: the margin shows nothing"
    assert recomputes > differing
