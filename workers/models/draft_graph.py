"""The draft graph of Spiffy (arXiv 2509.18085): which sets of (position rank, token rank) pairs are worth drafting.

A node is a set of pairs, the root the empty set. Its parents are all nodes from which one step of the target may lead
to it, so it may have several: those with exactly one pair less, or in a graph for the threshold rule, whose steps fill
several positions, all smaller sets. Ranks are frozen at the root's stale distribution: position rank r is the r-th most
confident position that is open in the root, token rank 0 the token the stale distribution draws there and 1 the
runner-up. The file is JSON with where its counts come from, and a digest over all of it. Planning reads it, so this
module imports no torch.
"""

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from sweeps.made_on import MadeOn
from sweeps.spec import MAX_BLOCK, MAX_BUDGET, CommitRule
from workers.models.named import find_artifact
from workers.models.sealed import read_sealed, require, write_sealed

FORMAT = "spot-draft-graph"
VERSION = 1
GRAPH_FILE = "graph.json"
TOKEN_RANKS = (0, 1)
NOUN = "draft graph"

Pairs = frozenset[tuple[int, int]]
ROOT: Pairs = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftNode:
    """A node: its (position rank, token rank) pairs, ascending.

    `count`: at how many of the counted steps its pairs were exactly the next commits, in whatever order. `gain`: how
    many more drafts would have been accepted at those steps, all together, because this node joined those before it.
    """

    pairs: tuple[tuple[int, int], ...]
    count: int
    gain: int

    @property
    def key(self) -> Pairs:
        """The pairs as a set."""
        return frozenset(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """Trajectories of one task at one temperature; `held_out` of the `prompts` were not counted."""

    task: str
    task_digest: str
    split: str
    temperature: float
    prompts: int
    held_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRow:
    """What the first `budget` nodes are worth on held-out prompts of one source.

    `accepted` drafts in sum over `steps` roots, one at every step that has a choice. `forwards` is the exact number
    of target forwards that decoding the same `tokens` takes with this graph, replayed from the trajectories;
    `draft_free` those without drafts (None: one a token).
    """

    task: str
    temperature: float
    budget: int
    steps: int
    accepted: int
    tokens: int
    forwards: int
    draft_free: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftGraph:
    """Nodes in the order in which they were chosen: the first D of them are the graph of budget D.

    A node comes after at least one of its parents. Fewer nodes than `budget_max` mean that no other set ever came true.
    `steps` roots of `traces` trajectories were counted; `data_digest` covers the futures of all, the held-out ones too.
    `tau` is the threshold that they were decoded by (None: by the standard rule).
    """

    format: str = FORMAT
    version: int = VERSION
    digest: str = ""
    block_length: int
    target: str
    target_digest: str
    dtype: str
    max_new_tokens: int
    seed: int
    sources: tuple[GraphSource, ...]
    traces: int
    steps: int
    data_digest: str
    budget_max: int
    nodes: tuple[DraftNode, ...]
    held_out: tuple[HeldOutRow, ...]
    tau: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError where the parts do not fit one another."""
        require(1 <= self.block_length <= MAX_BLOCK, f"block_length is {self.block_length}")
        require(1 <= self.budget_max <= MAX_BUDGET, f"budget_max is {self.budget_max}")
        require(self.tau is None or 0 < self.tau < 1, f"tau is {self.tau}")
        require(1 <= len(self.nodes) <= self.budget_max, f"it has {len(self.nodes)} nodes")
        known = {ROOT}
        for number, node in enumerate(self.nodes):
            what = f"node {number}"
            ranks = [rank for rank, _ in node.pairs]
            require(bool(ranks) and ranks == sorted(set(ranks)), f"{what}: position ranks are {ranks}")
            deepest = self.block_length - 2  # the known commit fills one position, and a draft leaves one open
            require(ranks[0] >= 0 and ranks[-1] <= deepest and len(ranks) <= deepest, f"{what}: it fits no block")
            require(all(token in TOKEN_RANKS for _, token in node.pairs), f"{what}: a token rank is neither 0 nor 1")
            require(1 <= node.count <= self.steps and node.gain >= 1, f"{what}: its counts are impossible")
            require(node.key not in known, f"{what}: it is there twice")
            require(bool(self.parents(node.key, known)), f"{what}: none of its parents comes before it")
            known.add(node.key)

    @property
    def commit(self) -> CommitRule:
        """The commit rule that it is for."""
        return "standard" if self.tau is None else "threshold"

    def parents(self, node: Pairs, among: Set[Pairs]) -> Set[Pairs]:
        """The sets among some from which one step may lead to `node`."""
        return parents_of(node) & among if self.tau is None else {other for other in among if other < node}


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftGraphFacts:
    """A graph that is whole. `budget_max`: the largest budget it was made for; `made_on`: its target; `commit` and
    `tau`: its commit rule.
    """

    path: Path
    digest: str
    block_length: int
    budget_max: int
    made_on: tuple[MadeOn, ...]
    commit: CommitRule
    tau: float | None


def parents_of(node: Pairs) -> set[Pairs]:
    """Every set with one pair less, whether or not it is in a graph."""
    return {node - {pair} for pair in node}


def find_draft_graph(checkpoint: str) -> Path:
    """The directory that `checkpoint` stands for. Raises ValueError when there is none."""
    return find_artifact(checkpoint, noun=NOUN, file=GRAPH_FILE)


def read_draft_graph(folder: Path) -> DraftGraph:
    """The graph in a directory. Raises ValueError when it is missing, foreign, altered or contradicts itself."""
    what, file = f"{NOUN} {folder}", folder / GRAPH_FILE
    return read_sealed(file, DraftGraph, what=what, format=FORMAT, version=VERSION, again="calibrate it again")


def write_draft_graph(folder: Path, graph: DraftGraph) -> str:
    """Write a graph with its digest, at once or not at all; returns the digest. Equal graphs give equal bytes."""
    return write_sealed(folder / GRAPH_FILE, graph)


def inspect(checkpoint: str) -> DraftGraphFacts:
    """Facts about the graph that `checkpoint` (a directory, or a name of the zoo's drafters) names.

    Raises ValueError when it is missing, foreign or altered.
    """
    path = find_draft_graph(checkpoint)
    graph = read_draft_graph(path)
    return DraftGraphFacts(
        path=path,
        digest=graph.digest,
        block_length=graph.block_length,
        budget_max=graph.budget_max,
        made_on=(MadeOn(target=graph.target, digest=graph.target_digest, dtype=graph.dtype),),
        commit=graph.commit,
        tau=graph.tau,
    )
