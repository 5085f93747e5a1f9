"""Toy targets and drafters for tests: small, exact, float64, with every failure of the contract an assertion.

A toy target's logits are a seeded hash of everything it may see (committed prefix and its own block copy), so any
mix-up of states, copies, positions or cached blocks changes them. `drift` says how much they depend on the block: small
drift makes stale distributions good guesses, as in a trained model. `rounding` is what a batch of several copies may do
to a logit, as kernels chosen by shape do on real devices.
"""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from tests.plain_rule import PlainRule
from workers.decoding.expand import VirtualState, grow
from workers.decoding.rule import judge
from workers.decoding.seen import Seen
from workers.decoding.stale import Stale, stale_of
from workers.decoding.state import BlockState, Commit
from workers.decoding.tree import DraftTree
from workers.targets.base import TargetTraits
from workers.tasks.base import Prompt, Score


def hashed(*parts: object) -> int:
    """A 63-bit number that depends on all parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


def normal(key: int, *shape: int) -> Tensor:
    """Standard normal numbers that are a function of `key`."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(key))


@dataclass
class ToySession:
    """Remembers the committed tokens; the hidden state of a position is its row of logits."""

    target: "ToyTarget"
    prefix: tuple[int, ...]
    block_length: int
    forwards: int = 0
    positions: int = 0
    pending: int = 0

    def __post_init__(self) -> None:
        self.positions = len(self.prefix)

    @property
    def prefix_length(self) -> int:
        return len(self.prefix)

    def forward(self, blocks_NL: Tensor, behind_CL: Tensor | None = None) -> Tensor:
        assert blocks_NL.ndim == 2
        assert blocks_NL.shape[1] == self.block_length
        self.forwards += 1
        self.positions += blocks_NL.numel() + self.pending + (0 if behind_CL is None else behind_CL.numel())
        self.pending = 0
        self.target.batches.append(len(blocks_NL))
        behind = [] if behind_CL is None else behind_CL.tolist()
        assert not any(self.target.traits.mask_id in block for block in behind)
        fronts = [*[()] * (len(blocks_NL) - len(behind)), *map(tuple, behind)]
        copies = zip(fronts, blocks_NL.tolist(), strict=True)
        rows_NLV = torch.stack([self.target.row(self.prefix + front, tuple(block)) for front, block in copies])
        if len(blocks_NL) == 1 or not self.target.rounding:
            return rows_NLV
        key = hashed(self.target.seed, "rounding", self.prefix, blocks_NL.tolist())
        uniform_NLV = torch.rand(rows_NLV.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(key))
        return rows_NLV + self.target.rounding * (2 * uniform_NLV - 1)

    def commit(self, block_L: Tensor) -> None:
        block = tuple(block_L.tolist())
        assert len(block) == self.block_length
        assert self.target.traits.mask_id not in block
        self.prefix += block
        self.pending += len(block)


@dataclass
class ToyTarget:
    """Hashed logits; the mask is the last id, `never` (the one before it) is never emitted, `stops` end a text."""

    seed: int = 0
    vocab_size: int = 11
    drift: float = 0.3
    scale: float = 2.0
    stops: tuple[int, ...] = ()
    max_positions: int = 4096
    rounding: float = 0.0
    shape_logits: Callable[[Tensor], Tensor] = torch.clone
    batches: list[int] = field(default_factory=list)

    @property
    def never(self) -> int:
        return self.vocab_size - 2

    @property
    def traits(self) -> TargetTraits:
        return TargetTraits(
            name="toy",
            family="toy",
            revision="",
            weight_digest=f"toy-{self.seed}",
            parameters=0,
            vocab_size=self.vocab_size,
            mask_id=self.vocab_size - 1,
            stop_ids=self.stops,
            max_positions=self.max_positions,
            exact_cache=True,
            dtype="float64",
            device="cpu",
        )

    def start(self, prompt_ids: Sequence[int], *, block_length: int, max_new_tokens: int) -> ToySession:
        total = len(prompt_ids) + max_new_tokens
        if total > self.max_positions:
            raise ValueError(f"prompt of {len(prompt_ids)} tokens plus {max_new_tokens} new: over {self.max_positions}")
        whole = len(prompt_ids) // block_length * block_length
        return ToySession(self, tuple(prompt_ids[:whole]), block_length)

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        shape = len(block), self.vocab_size
        steady = normal(hashed(self.seed, prefix), *shape)
        drifting = normal(hashed(self.seed, prefix, block), *shape)
        return self.shape_logits(self.scale * (steady + self.drift * drifting))

    def logits(self, hidden_XH: Tensor) -> Tensor:
        logits_XV = hidden_XH.clone()
        logits_XV[..., [self.never, self.vocab_size - 1]] = -torch.inf
        return logits_XV

    def embed(self, ids_X: Tensor) -> Tensor:
        return normal(hashed(self.seed, "embedding"), self.vocab_size, self.vocab_size)[ids_X]

    def encode(self, prompt: str) -> list[int]:
        return [ord(letter) % (self.vocab_size - 2) for letter in prompt]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(97 + token % 26) for token in ids)


@dataclass
class SpreadingTarget(ToyTarget):
    """Sure near what is filled and unsure elsewhere, as a trained target: a block takes several steps of some commits.

    `reach` is how many positions away from a filled one (or from the prefix) it is sure.
    """

    reach: int = 3

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        filled = [-1, *(place for place, token in enumerate(block) if token != self.traits.mask_id)]
        away = torch.tensor([min(abs(place - other) for other in filled) for place in range(len(block))])
        sure_L = torch.where(away <= self.reach, 1.0, 0.2 / away).to(torch.float64)
        return super().row(prefix, block) * sure_L[:, None]


def flat_target(**options: object) -> ToyTarget:
    """Every logit is zero: all tokens and all confidences tie."""
    return ToyTarget(shape_logits=torch.zeros_like, **options)  # type: ignore[arg-type]


def coarse_target(**options: object) -> ToyTarget:
    """Logits on a coarse grid: many tokens and many confidences tie, but not all."""
    return ToyTarget(shape_logits=lambda logits_LV: (logits_LV / 2).round(), **options)  # type: ignore[arg-type]


def const_target(token: int, **options: object) -> ToyTarget:
    """Every masked position wants `token`, by the same margin."""

    def want(logits_LV: Tensor) -> Tensor:
        wanted_LV = torch.zeros_like(logits_LV)
        wanted_LV[:, token] = 9.0
        return wanted_LV

    return ToyTarget(shape_logits=want, **options)  # type: ignore[arg-type]


def greedy_stale(p_LV: Tensor, mask: int = 9) -> tuple[Stale, BlockState]:
    """What an empty block with these probabilities leaves at T = 0, and the root that its next commit leads to."""
    length, spec = len(p_LV), DecodeSpec()
    state = BlockState((mask,) * length, tuple(range(length)))
    verdict = judge(p_LV.log(), None, state.open, spec)
    return stale_of(verdict, state, (), start=0, spec=spec, own_noise_RV=None), state.fill(verdict.commit)


def tree_of(root: BlockState, paths: Sequence[tuple[Commit, ...]]) -> DraftTree:
    """The tree of these paths (each one's parent path listed before it, or the root)."""
    states, parents, steps = [root], [-1], list[tuple[Commit, ...]]([()])
    node_of: dict[tuple[Commit, ...], int] = {(): 0}
    for path in paths:
        parent = node_of[path[:-1]]
        node_of[path] = len(states)
        states.append(states[parent].fill(path[-1]))
        parents.append(parent)
        steps.append((path[-1],))
    masses = tuple(0.5 ** (len(root.open) - len(state.open)) for state in states)
    return DraftTree(states=tuple(states), parents=tuple(parents), steps=tuple(steps), masses=masses)


def commits_of(tree: DraftTree) -> tuple[Commit, ...]:
    """The commits of a tree whose drafts each have one more than their parent, in node order."""
    return tuple(commit for (commit,) in tree.steps[1:])


@dataclass
class RandomDrafter:
    """Valid random trees; tokens are mostly the stale best, so that some drafts come true."""

    seed: int
    budget: int = 6

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        rng = random.Random(hashed(self.seed, root.tokens))
        paths: list[tuple[Commit, ...]] = []
        seen = {root.tokens}
        state_of: dict[tuple[Commit, ...], BlockState] = {(): root}
        for _ in range(4 * self.budget):
            path = rng.choice(list(state_of))
            state = state_of[path]
            if len(paths) == self.budget or len(state.open) < 2:
                continue
            position = rng.choice(state.open)
            rank = rng.choice((0, 0, 0, 1))
            commit = Commit(position, int(stale.drawn_ids_L2[position, rank]))
            child = state.fill(commit)
            if child.tokens not in seen:
                seen.add(child.tokens)
                state_of[(*path, commit)] = child
                paths.append((*path, commit))
        return tree_of(root, paths)


@dataclass
class RandomStepsDrafter:
    """Valid random trees whose drafts fill one to three positions more than their parents, mostly by stale tokens.

    Where drafts may go on in the next block, some do.
    """

    seed: int
    budget: int = 6

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        rng = random.Random(hashed(self.seed, root.tokens))
        states, parents, steps = [root], [-1], list[tuple[Commit, ...]]([()])
        kept = 1 if stale.beyond is None else 0
        for _ in range(4 * self.budget):
            parent = rng.randrange(len(states))
            open = states[parent].open
            if len(states) > self.budget or len(open) <= kept or states[parent].behind:
                continue
            places = sorted(rng.sample(open, min(rng.randint(1, 3), len(open) - kept)))
            step = tuple(Commit(place, int(stale.drawn_ids_L2[place, rng.choice((0, 0, 0, 1))])) for place in places)
            state = crossed(states[parent].fill(*step), stale)
            if state is not None and state not in states:
                states.append(state)
                parents.append(parent)
                steps.append(step)
        masses = [1.0]
        for parent, step in zip(parents[1:], steps[1:], strict=True):
            masses.append(masses[parent] * 0.5 ** len(step))
        return DraftTree(states=tuple(states), parents=tuple(parents), steps=tuple(steps), masses=tuple(masses))


def crossed(state: BlockState, stale: Stale) -> BlockState | None:
    """The state itself, or, where it fills the block, the next one's first (None: there is none to go on in)."""
    if not state.full:
        return state
    return stale.beyond.after(state) if stale.beyond else None


@dataclass
class KnowingStepsDrafter:
    """Drafts the true future as a chain: the target's step in every (start of a block, state) that a run went through,
    recorded before. Where drafts may go on in the next block, its chain does.
    """

    future: Mapping[tuple[int, BlockState], tuple[Commit, ...]]
    budget: int

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        states, steps = [root], list[tuple[Commit, ...]]([()])
        while len(states) <= self.budget and (step := self.future.get((stale.start, states[-1]))):
            state = crossed(states[-1].fill(*step), stale)
            if state is None:
                break
            states.append(state)
            steps.append(step)
        parents, nodes = tuple(range(-1, len(states) - 1)), len(states)
        return DraftTree(states=tuple(states), parents=parents, steps=tuple(steps), masses=(1.0,) * nodes)


@dataclass
class SetsDrafter:
    """Random trees of commit sets around what the target really does next: its own step, parts of it, steps that go
    beyond it, wrong tokens, and steps that have nothing to do with it.

    No method: it asks the target, and learns the sequence as the decoder's watcher. `trees` keeps what it drafted, by
    block and root. Where it may, it goes on behind the block.
    """

    rule: PlainRule
    prompt: Sequence[int]
    seed: int
    budget: int = 6
    trees: dict[tuple[int, tuple[int, ...]], DraftTree] = field(default_factory=dict)

    KINDS = ("own", "part", "beyond", "wrong", "other")

    def __post_init__(self) -> None:
        self.sequence = dict(enumerate(self.prompt))

    def __call__(self, seen: Seen) -> None:
        """One step of the decoder that this drafter drafts for."""
        for position, token in seen.step:
            self.sequence[seen.start + position] = token

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        rng = random.Random(hashed(self.seed, stale.start, root.tokens))
        prefix = tuple(self.sequence[place] for place in range(stale.start))
        states, parents, steps, depths = [root], [-1], list[tuple[Commit, ...]]([()]), [0]
        kinds = rng.sample(
            self.KINDS, rng.randint(1, len(self.KINDS))
        )  # a tree with the own step hides what else is there
        for _ in range(6 * self.budget):
            parent = rng.randrange(len(states))
            before = states[parent]
            if len(states) > self.budget or before.behind:
                continue
            own = dict(sorted(self.rule.own(prefix, before.tokens, before.open)))
            pairs = self.variant(rng.choice(kinds), own, before, stale, rng)
            step = tuple(Commit(*pair) for pair in sorted(pairs.items()))
            state: BlockState | None = before.fill(*step)
            if state is not None and state.full:
                state = stale.beyond.after(state) if stale.beyond else None
            if state is not None and state not in states:
                states.append(state)
                parents.append(parent)
                steps.append(step)
                depths.append(depths[parent] + 1)
        masses = tuple(0.8**depth for depth in depths)
        tree = DraftTree(states=tuple(states), parents=tuple(parents), steps=tuple(steps), masses=masses)
        self.trees[stale.start, root.tokens] = tree
        return tree

    def variant(
        self, kind: str, own: dict[int, int], before: BlockState, stale: Stale, rng: random.Random
    ) -> dict[int, int]:
        """Token by position of a drafted step of a kind; of the own step where there is nothing else to fill."""
        others = [position for position in before.open if position not in own]
        more = rng.sample(others, min(len(others), rng.randint(1, 3)))
        drafted = {position: int(stale.drawn_ids_L2[position, rng.choice((0, 0, 1))]) for position in more}
        match kind:
            case "part":
                return dict(rng.sample(list(own.items()), rng.randint(1, max(1, len(own) - 1))))
            case "beyond":
                return dict(rng.sample(list(own.items()), rng.randint(1, len(own)))) | drafted
            case "wrong":
                position = rng.choice(list(own))
                return own | {position: (own[position] + 1) % self.rule.target.traits.mask_id}
        return drafted if kind == "other" and drafted else own


class RandomOrderDrafter:
    """The tree search with a random order scorer."""

    def __init__(self, seed: int, budget: int, *, merge_states: bool, gamma: float = 0.0, hedge: float = 0.6) -> None:
        self.seed, self.budget = seed, budget
        self.options = {"merge_states": merge_states, "gamma": gamma, "hedge": hedge}

    def score(self, nodes: Sequence[VirtualState]) -> Tensor:
        rows = []
        for node in nodes:
            open, length = list(node.state.open), len(node.state.tokens)
            weights_L = normal(hashed(self.seed, node.state.tokens, node.path), length)
            rows.append(
                torch.zeros(length, dtype=torch.float64).index_copy(0, torch.tensor(open), weights_L[open].softmax(-1))
            )
        return torch.stack(rows)

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        return grow(root, known[0], stale, budget=self.budget, score=self.score, **self.options)  # type: ignore[arg-type]


@dataclass
class WrongDrafter:
    """Only tokens the target never emits: nothing is ever accepted."""

    never: int
    budget: int = 4

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        places = root.open[: min(self.budget, len(root.open))] if len(root.open) > 1 else ()
        return tree_of(root, [(Commit(place, self.never),) for place in places])


@dataclass
class KnowingDrafter:
    """Drafts the true future as a chain, from the commits of each block, recorded before."""

    futures: list[list[Commit]]
    budget: int = 4

    def propose(self, root: BlockState, known: tuple[int, ...], stale: Stale) -> DraftTree:
        done = len(stale.fill_order) + 1
        state, path, paths = root, (), []
        for future in self.futures:
            if all(root.tokens[commit.position] == commit.token for commit in future[:done]):
                for commit in future[done : done + min(self.budget, len(root.open) - 1)]:
                    state, path = state.fill(commit), (*path, commit)  # type: ignore[assignment]
                    paths.append(path)
                break
        return tree_of(root, paths)


@dataclass(frozen=True)
class ToyTask:
    """Prompts of growing length; right is what begins with the gold letter. Text `boom` in a prompt raises `error`."""

    texts: tuple[str, ...] = ("a", "bcd", "efghi", "a")
    error: BaseException | None = None
    name: str = "toy"
    data_digest: str = "toy-data"

    def prompts(self, *, split: str, limit: int | None, seed: int) -> tuple[Prompt, ...]:
        return tuple(Prompt(id=f"{split}-{i}", text=text, gold="a") for i, text in enumerate(self.texts))[:limit]

    def score(self, prompt: Prompt, text: str) -> Score:
        if self.error is not None and "boom" in prompt.text:
            raise self.error
        return Score(correct=text[:1] == prompt.gold, reason="first letter", extracted=text[:1] or None)
