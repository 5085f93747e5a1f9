"""Acceptance rules in the decoder: every step of recorded generations judged again by a checker that shares no code.

`tests.plain_rule` forwards each state that a generation passed through afresh and works out in plain Python what the
target does there. Drafters are random, around the target's real steps, so that every rule has something to accept.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sweeps.laws import generation_alarms
from sweeps.spec import Acceptance, DecodeSpec, DrafterSpec
from tests.plain_rule import Pairs, PlainRule, Taken, mean_of, steps_taken
from tests.tiny_checkpoints import write_checkpoint
from tests.toys import RandomStepsDrafter, SetsDrafter, SpreadingTarget, ToyTarget, WrongDrafter
from tests.traces import toy_cell
from tests.unit.aggregates.test_threshold import row_of
from tests.unit.decoding.test_threshold import prompted, seeds, specs
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, Commit
from workers.decoding.tally import Generation
from workers.decoding.tree import DraftTree, root_alone
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.targets.base import Target
from workers.targets.load import load_target

LENIENT: tuple[Acceptance, ...] = ("subset", "cut", "product")
NEAR = 1e-9
"""How far apart the checker's and the decoder's geometric mean may be: they add and round in another order."""


@dataclass(frozen=True)
class Run:
    """A generation with what it was made by."""

    made: Generation
    prompt: list[int]
    verification: Verification
    rule: PlainRule
    drafter: SetsDrafter

    @property
    def steps(self) -> list[Taken]:
        """Its steps with their states."""
        return list(steps_taken(self.made, self.prompt, self.rule.spec, self.rule.target.traits.mask_id))

    def own(self, taken: Taken) -> Pairs:
        """The target's own step in the state of a step."""
        return self.rule.own(taken.prefix, taken.tokens, taken.open)

    def mean(self, taken: Taken) -> float:
        """The geometric mean confidence of a step."""
        return mean_of(self.rule.probabilities(taken.prefix, taken.tokens, taken.pairs))


def run_of(
    target: Target,
    prompt: list[int],
    spec: DecodeSpec,
    seed: int,
    verification: Verification,
    *,
    drafts: int = 0,
    budget: int = 8,
) -> Run:
    """Decode a prompt with random sets, `drafts` being their seed."""
    rule = PlainRule(target, spec, seed)
    drafter = SetsDrafter(rule, prompt, drafts, budget)
    made = decode(target, drafter, prompt, spec=spec, seed=seed, watch=drafter, verification=verification)
    return Run(made=made, prompt=prompt, verification=verification, rule=rule, drafter=drafter)


@st.composite
def askings(draw: st.DrawFn) -> tuple[ToyTarget, list[int]]:
    """A target and a prompt; every other target is sure near what is filled only."""
    target, prompt = draw(prompted())
    if draw(st.booleans()):
        options = {name: getattr(target, name) for name in ("seed", "vocab_size", "drift", "scale", "stops")}
        target = SpreadingTarget(**options, reach=draw(st.integers(1, 3)))
    return target, prompt


@st.composite
def runs(draw: st.DrawFn, rules: tuple[Acceptance, ...] = LENIENT, *, refreshing: bool = True) -> Run:
    """A random generation by one of some acceptance rules."""
    target, prompt = draw(askings())
    spec, seed, crossing = draw(specs()), draw(seeds), draw(st.booleans())
    verification = Verification(
        acceptance=draw(st.sampled_from(rules)),
        max_commit=draw(st.booleans()),
        cross_block=crossing,
        refresh=refreshing and crossing and draw(st.booleans()),
    )
    budget = draw(st.integers(1, 10))
    return run_of(target, prompt, spec, seed, verification, drafts=draw(st.integers(0, 10**6)), budget=budget)


@settings(max_examples=80, deadline=None)
@given(askings(), specs(), seeds, st.integers(0, 10**6), st.sampled_from(["sets", "steps", "wrong"]), st.integers(0, 7))
def test_exact_is_threshold_decoding_whatever_the_drafter(
    asked: tuple[ToyTarget, list[int]], spec: DecodeSpec, seed: int, drafts: int, kind: str, switches: int
) -> None:
    target, prompt = asked
    crossing = bool(switches & 1)
    verification = Verification(
        max_commit=bool(switches & 4), cross_block=crossing, refresh=crossing and bool(switches & 2)
    )
    naive = reference(target, prompt, spec=spec, seed=seed)
    if kind == "sets":
        made = run_of(target, prompt, spec, seed, verification, drafts=drafts).made
    else:
        drafter: Drafter = RandomStepsDrafter(drafts) if kind == "steps" else WrongDrafter(target.never)
        made = decode(target, drafter, prompt, spec=spec, seed=seed, verification=verification)
    assert (made.output_ids, made.order, made.steps) == (naive.output_ids, naive.order, naive.steps)
    assert made.counters.nfe <= naive.forwards
    if kind == "wrong":
        assert sum(made.counters.accepted) == 0


@settings(max_examples=80, deadline=None)
@given(runs(("subset", "cut")))
def test_subset_and_cut_commit_only_what_the_target_commits_in_that_very_state(run: Run) -> None:
    for taken in run.steps:
        assert taken.pairs <= run.own(taken)


@settings(max_examples=80, deadline=None)
@given(runs(("product",)))
def test_product_commits_the_targets_own_steps_and_steps_of_enough_mean_confidence(run: Run) -> None:
    for taken in run.steps:
        assert taken.pairs == run.own(taken) or run.mean(taken) >= run.rule.spec.tau * (1 - NEAR)


@settings(max_examples=80, deadline=None)
@given(runs())
def test_no_rule_loses_progress(run: Run) -> None:
    """Every forward commits something, so that none needs more forwards than tokens; every token is committed once.

    That is all that holds of every rule: forwards may be more than threshold decoding takes (see below).
    """
    counters, made = run.made.counters, run.made
    assert set(made.rounds) == set(range(counters.nfe))
    assert counters.nfe <= len(made.output_ids) == sum(made.steps)
    assert sorted(made.order) == list(range(len(made.output_ids)))
    assert len(made.steps) == counters.nfe + sum(counters.accepted)
    assert max(counters.drafted) <= run.drafter.budget
    stops = run.rule.target.traits.stop_ids
    if run.rule.spec.ignore_eos or not set(stops) & set(made.output_ids):
        assert len(made.output_ids) == run.rule.spec.max_new_tokens


@settings(max_examples=80, deadline=None)
@given(runs(("exact", *LENIENT)))
def test_no_run_raises_an_alarm_of_its_counts(run: Run) -> None:
    """What holds of counts holds under every rule of acceptance, beside a draft-free run of any other output too."""
    way, spec = run.verification, run.rule.spec
    drafter = DrafterSpec(
        name="sets",
        kind="freedave",
        budget=run.drafter.budget,
        acceptance=way.acceptance,
        max_commit=way.max_commit,
        cross_block=way.cross_block,
        refresh=way.refresh,
    )
    free = decode(run.rule.target, NoDrafter(), run.prompt, spec=spec, seed=run.rule.seed)
    cell = replace(toy_cell(), decode=spec, drafter=drafter)
    assert list(generation_alarms(cell, row_of(run.made), row_of(free))) == []


@dataclass(frozen=True)
class Round:
    """One round of a run, to be walked again in plain Python over the tree that was drafted in it."""

    run: Run
    tree: DraftTree
    taken: list[Taken]

    @property
    def acceptance(self) -> str:
        return self.run.verification.acceptance

    def at(self, node: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Prefix, tokens and open positions of a node."""
        state = self.tree.states[node]
        return self.taken[0].prefix + state.behind, state.tokens, state.open

    def moves(self, node: int) -> list[tuple[int, Pairs]]:
        """Every verified state that may follow a node: where the own step leads, then accepted children."""
        rule, here, state = self.run.rule, self.at(node), self.tree.states[node]
        own = rule.own(*here)
        after = tuple(dict(own).get(position, token) for position, token in enumerate(state.tokens))
        fills = not state.behind and len(own) == len(state.open)
        nodes = range(len(self.tree.states))
        same = [
            n for n in nodes if (self.tree.states[n].behind == after if fills else self.at(n)[:2] == (here[0], after))
        ]
        found = [(n, own) for n in same[:1]]
        for child in nodes:
            step = frozenset(self.tree.steps[child])
            fresh = self.tree.parents[child] == node and [child] != same[:1]
            if fresh and rule.accepted(self.acceptance, *here, step) == step:
                found.append((child, step))
        return found

    def last(self, node: int) -> Pairs:
        """What the plain walk commits in a node that it ends in."""
        rule, here = self.run.rule, self.at(node)
        children = [child for child, parent in enumerate(self.tree.parents) if parent == node]
        parts = [rule.accepted(self.acceptance, *here, frozenset(self.tree.steps[child])) for child in children]
        return next((part for part in parts if part), rule.own(*here))

    def plain(self) -> list[Pairs]:
        """The steps of the plain walk: always the first move that there is."""
        node, steps = 0, list[Pairs]()
        while found := self.moves(node):
            node, step = found[0]
            steps.append(step)
        return [*steps, self.last(node)]

    def ways(self, node: int = 0, steps: tuple[Pairs, ...] = ()) -> Iterator[tuple[int, int]]:
        """Every accepted way from a node on that ends with an own step: the commits of all its steps, its last node."""
        yield sum(map(len, steps)) + len(self.run.rule.own(*self.at(node))), node
        for child, step in self.moves(node):
            yield from self.ways(child, (*steps, step))


def rounds_of(run: Run) -> Iterator[Round]:
    """The rounds of a run without draft refresh (with it, trees are not the drafter's alone)."""
    for number, group in groupby(run.steps, key=lambda taken: taken.round):
        taken = list(group)
        root = BlockState(taken[0].tokens, taken[0].open)
        drafted = run.made.counters.drafted[number]
        tree = run.drafter.trees[len(taken[0].prefix), root.tokens] if drafted else root_alone(root)
        yield Round(run, tree, taken)


@settings(max_examples=150, deadline=None)
@given(runs(("exact", *LENIENT), refreshing=False))
def test_every_round_takes_the_walk_that_its_rule_says(run: Run) -> None:
    """The first accepted move at every node, or by `max_commit` the way with the most commits of all accepted ones."""
    for one in rounds_of(run):
        taken = [step.pairs for step in one.taken]
        plain = one.plain()
        if not run.verification.max_commit or one.acceptance == "exact":
            assert taken == plain
            continue
        ways = list(one.ways())
        most = max(commits for commits, _ in ways)
        assert sum(map(len, taken)) == most >= sum(map(len, plain))
        last = min(node for commits, node in ways if commits == most)
        assert (one.taken[-1].prefix, one.taken[-1].tokens) == one.at(last)[:2]


def test_random_runs_have_what_the_rules_differ_in() -> None:
    """The properties above are not empty: proper parts, parts that end a walk, sure steps that the target would not
    make, ways that commit more than the plain walk, and several that commit the most.
    """
    spec, found = DecodeSpec(max_new_tokens=32, block_length=12, commit="threshold", tau=0.4), Counter[str]()
    for seed in range(10):
        target = SpreadingTarget(seed=seed, scale=2.0, drift=1.0)
        for acceptance in LENIENT:
            plain = run_of(target, [1, 2], spec, seed, Verification(acceptance=acceptance))
            most = run_of(target, [1, 2], spec, seed, Verification(acceptance=acceptance, max_commit=True))
            found[f"{acceptance}, fewer forwards by max_commit"] += most.made.counters.nfe < plain.made.counters.nfe
            for one in rounds_of(plain):
                for step in one.taken:
                    where = "at the end" if step is one.taken[-1] else "on the walk"
                    found[f"{acceptance}, part {where}"] += step.pairs < plain.own(step)
                    found[f"{acceptance}, not of the own"] += not step.pairs <= plain.own(step)
            for one in rounds_of(most):
                ways = dict.fromkeys(one.ways())
                found["ties"] += sum(commits == max(ways)[0] for commits, _ in ways) > 1
    assert all(found[f"{acceptance}, part on the walk"] > 10 for acceptance in LENIENT)
    assert all(found[f"{acceptance}, fewer forwards by max_commit"] > 1 for acceptance in LENIENT)
    assert found["ties"] > 10
    assert found["cut, part at the end"] > 10
    assert found["subset, part at the end"] == found["product, part at the end"] == 0, "these take the own step there"
    assert found["product, not of the own"] > 3
    assert found["subset, not of the own"] == found["cut, not of the own"] == 0


def test_a_lossy_rule_may_take_more_forwards_than_threshold_decoding() -> None:
    """What was committed otherwise leads elsewhere, and a cut may end a round with less than the own step."""
    spec = DecodeSpec(max_new_tokens=32, block_length=12, commit="threshold", tau=0.5)
    more = Counter[str]()
    for seed in range(10):
        target = ToyTarget(seed=seed, scale=2.5, drift=1.0)
        free = decode(target, NoDrafter(), [1, 2], spec=spec, seed=seed)
        for acceptance in LENIENT:
            run = run_of(target, [1, 2], spec, seed, Verification(acceptance=acceptance))
            more[acceptance] += run.made.counters.nfe > free.counters.nfe
    assert min(more[acceptance] for acceptance in LENIENT) > 0


class Unfolding(ToyTarget):
    """One sure position at first; once that is filled, positions 1 and 2 have probabilities .95 and .7."""

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        best = (0.99, 0.5, 0.5, 0.5) if block[0] == self.traits.mask_id else (0.99, 0.95, 0.7, 0.5)
        p_LV = torch.tensor([[p, 1 - p, 0, 0] for p in best], dtype=torch.float64)
        return p_LV.log()


class PairDrafter:
    """Positions 1 and 2 in one step, while both are open."""

    budget = 1

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        if not {1, 2} <= set(root.open):
            return root_alone(root)
        step = (Commit(1, 0), Commit(2, 0))
        return DraftTree(states=(root, root.fill(*step)), parents=(-1, 0), steps=((), step), masses=(1.0, 0.5))


@pytest.mark.parametrize(
    ("tau", "steps", "forwards"),
    [
        (0.80, (1, 2, 1), 2),  # sqrt(.95 * .7) is .8155, although .7 is less than tau
        (0.82, (1, 1, 1, 1), 4),  # and less than tau here, although the arithmetic mean is .825
    ],
)
def test_product_goes_by_the_geometric_mean_not_by_the_arithmetic_one_nor_by_the_least(
    tau: float, steps: tuple[int, ...], forwards: int
) -> None:
    spec = DecodeSpec(max_new_tokens=4, block_length=4, commit="threshold", tau=tau)
    target, verification = Unfolding(vocab_size=4), Verification(acceptance="product")
    made = decode(target, PairDrafter(), [], spec=spec, seed=0, verification=verification)
    assert (made.steps, made.counters.nfe) == (steps, forwards)
    assert decode(target, NoDrafter(), [], spec=spec, seed=0).steps == (1, 1, 1, 1)


@pytest.fixture(scope="module")
def sdar(tmp_path_factory: pytest.TempPathFactory) -> Target:
    return load_target(write_checkpoint(tmp_path_factory.mktemp("checkpoint")), dtype="float64")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("acceptance", ["exact", *LENIENT])
def test_a_real_architecture_with_its_cache_keeps_the_rules(
    sdar: Target, acceptance: Acceptance, temperature: float
) -> None:
    """Random weights are sure of nothing: a best token has about .0055, and few positions exceed this tau."""
    spec = DecodeSpec(
        max_new_tokens=21, block_length=8, temperature=temperature, ignore_eos=True, commit="threshold", tau=0.006
    )
    prompt = [10 + 7 * i for i in range(11)]
    parts, accepted, sizes = 0, 0, Counter[int]()
    for max_commit, crossing in product((False, True), repeat=2):
        way = Verification(acceptance=acceptance, max_commit=max_commit, cross_block=crossing, refresh=crossing)
        run = run_of(sdar, prompt, spec, 3, way, drafts=crossing)
        sizes.update(run.made.steps)
        accepted += sum(run.made.counters.accepted)
        for taken in run.steps:
            own = run.own(taken)
            right = {
                "exact": taken.pairs == own,
                "product": taken.pairs == own or run.mean(taken) >= spec.tau * (1 - NEAR),
            }
            assert right.get(acceptance, taken.pairs <= own)
            parts += taken.pairs != own
    assert max(sizes) > 1
    assert accepted > 5
    assert parts == 0 or acceptance != "exact"
