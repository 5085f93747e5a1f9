"""The nouns of a sweep: what to load, what to ask, how to decode, how to draft.

Every spec is a frozen dataclass that validates itself and says which field is wrong, its value and what is allowed.
Numbers are normalised by their declared type, so that 0 and 0.0 are one value and give one cell identity.
A spec comes from YAML (`sweeps.load`) and is completed with digests (`resolved`) before cells are made of it.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

from sweeps.checks import check, normalised
from sweeps.effort import MeasureSpec, ResourceSpec
from sweeps.made_on import MadeOn

Noise = Literal["coupled", "independent"]
Confidence = Literal["top1", "sampled"]
CommitRule = Literal["standard", "threshold"]
Acceptance = Literal["exact", "subset", "cut", "product"]

DTYPES = ("float64", "float32", "bfloat16", "float16")
MAX_BUDGET = 4096
MAX_BLOCK = 1024
DEFAULT_TAU = 0.9


def check_tau(where: str, tau: float) -> None:
    """Raise ValueError unless `tau` is a threshold that some confidence can exceed and some cannot."""
    check(0 < tau < 1, where, tau, "a number above 0 and below 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """A target model: a name of the built-in table, a directory, or a hub id with its revision.

    `digest` (sha256 over the weight files) and `settings_digest` (over config, tokenizer and template) are empty until
    resolved. `cache` is the kind of key/value cache, of those the family can keep ("": its default, until resolved);
    `exact_cache` says whether it changes nothing. `parameters` counts the weights (0 until resolved). `block_length` is
    the one it was made for (0: not known), which a grid that states none takes.
    """

    name: str
    path: str = ""
    revision: str = ""
    dtype: str = "float32"
    digest: str = ""
    settings_digest: str = ""
    family: str = ""
    cache: str = ""
    exact_cache: bool = True
    parameters: int = 0
    block_length: int = 0

    def __post_init__(self) -> None:
        check(bool(self.name), "target.name", self.name, "a non-empty name")
        allowed = f"a whole number from 1 to {MAX_BLOCK}"
        check(0 <= self.block_length <= MAX_BLOCK, f"target {self.name}: block_length", self.block_length, allowed)
        check(self.dtype in DTYPES, f"target {self.name}: dtype", self.dtype, " | ".join(DTYPES))

    @property
    def crosses(self) -> bool:
        """Whether drafts may go on in the next block (see `TargetTraits.crosses`)."""
        return self.cache == "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A set of prompts with a way to score answers.

    `kind` names the table entry (tiny-arith, tiny-code, humaneval, jsonl). The three field names and `answer` matter to
    `jsonl` only: `answer` says how gold and text are compared (number: the last number, gold after `####`; boxed:
    mathematical equality; exact: equal strings), `instruction` is added to each prompt behind an empty line.
    """

    name: str
    kind: str
    path: str = ""
    split: str = "test"
    prompt_field: str = "question"
    answer_field: str = "answer"
    id_field: str = ""
    answer: Literal["number", "boxed", "exact"] = "number"
    instruction: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        check(bool(self.name), "task.name", self.name, "a non-empty name")
        check(bool(self.kind), f"task {self.name}: kind", self.kind, "a task kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSpec:
    """The target's own rule: everything that decides the output without any drafter (decoding.md sections 1 and 2).

    `commit` says what one forward fills: the most confident position (`standard`), or every position whose confidence
    exceeds `tau`, and where none does the most confident one (`threshold`). The standard rule is that of a tau which
    nothing exceeds, so there `tau` is 1.
    """

    max_new_tokens: int = 128
    block_length: int = 32
    temperature: float = 0.0
    noise: Noise = "coupled"
    confidence: Confidence = "top1"
    ignore_eos: bool = False
    commit: CommitRule = "standard"
    tau: float = DEFAULT_TAU

    def __post_init__(self) -> None:
        check(self.max_new_tokens >= 1, "decode.max_new_tokens", self.max_new_tokens, "a whole number from 1")
        allowed = f"a whole number from 1 to {MAX_BLOCK}"
        check(1 <= self.block_length <= MAX_BLOCK, "decode.block_length", self.block_length, allowed)
        ok = math.isfinite(self.temperature) and self.temperature >= 0
        check(ok, "decode.temperature", self.temperature, "a finite number from 0")
        object.__setattr__(self, "temperature", normalised(self.temperature))
        if self.temperature == 0:  # no noise is drawn: one identity for both schemes and both confidence rules
            object.__setattr__(self, "noise", "coupled")
            object.__setattr__(self, "confidence", "top1")
        if self.commit == "standard":
            object.__setattr__(self, "tau", 1.0)
        else:
            check_tau("decode.tau", self.tau)

    @property
    def limit(self) -> float:
        """The log-odds that a confidence must exceed to be filled whatever the others are (standard: inf)."""
        return math.inf if self.commit == "standard" else math.log(self.tau / (1.0 - self.tau))

    @property
    def threshold(self) -> float | None:
        """tau, where it decides anything."""
        return None if self.commit == "standard" else self.tau

    @property
    def rule(self) -> str:
        """The commit rule as people read it."""
        return self.commit if self.threshold is None else f"{self.commit} {self.threshold}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterSpec:
    """A drafter with its options.

    `budget` is D, the number of draft states verified beside the root (0 for `none`); `gamma` the mass floor;
    `hedge` the stale top-1 probability below which the second token becomes a second child (0 switches hedging off);
    `merge_states` verifies a state reached by two orders once; `checkpoint` a path, a zoo name, or "" for the one the
    table holds for the target. `verify_margin`: a verified state whose margin (log-odds or score) is below it is
    forwarded again alone, in the draft-free shape, before anything is committed on it (0: never). `cost` names a
    measured cost curve by which each round chooses how many of the `budget` drafts it verifies ("": always all).
    Options that a drafter does not use are set to their neutral value (see `expand`). `digest` and `cost_digest` are
    empty until resolved.
    `acceptance` says which drafted steps are committed under the threshold rule, `max_commit` takes the accepted path
    with the most commits (there is only one under `exact`). `cross_block`: a draft that fills the block goes on with
    the next one; `refresh`: that block's first round is drafted from what such drafts brought back of it.
    `fixed` names the options which a sweep's own entry states: the axes leave them alone (empty
    in a cell). `oracle`: it knows the target's real future, so its numbers are bounds. `origins`: the targets that its
    artifact was made on, as that says itself; no part of an identity, but what a study of transfer goes by.
    """

    name: str
    kind: str
    budget: int = 8
    gamma: float = 0.0
    hedge: float = 0.6
    merge_states: bool = True
    checkpoint: str = ""
    verify_margin: float = 0.0
    cost: str = ""
    acceptance: Acceptance = "exact"
    max_commit: bool = False
    cross_block: bool = False
    refresh: bool = False
    digest: str = ""
    cost_digest: str = ""
    fixed: tuple[str, ...] = ()
    oracle: bool = False
    origins: tuple[MadeOn, ...] = ()

    def __post_init__(self) -> None:
        where = f"drafter {self.name}"
        if self.kind != "none":
            allowed = f"a whole number from 1 to {MAX_BUDGET}"
            check(1 <= self.budget <= MAX_BUDGET, f"{where}: budget", self.budget, allowed)
        check(0 <= self.gamma < 1, f"{where}: gamma", self.gamma, "a number in [0, 1)")
        check(0 <= self.hedge <= 1, f"{where}: hedge", self.hedge, "a number in [0, 1]")
        ok = math.isfinite(self.verify_margin) and self.verify_margin >= 0
        check(ok, f"{where}: verify_margin", self.verify_margin, "a finite number from 0")
        if self.verify_margin:
            why = "with a verify_margin, whose output is the draft-free one bit for bit"
            check(self.acceptance == "exact", f"{where}: acceptance", self.acceptance, f"exact {why}")
            check(not self.cross_block, f"{where}: cross_block", self.cross_block, f"false {why}")
        check(self.cross_block or not self.refresh, f"{where}: refresh", self.refresh, "false without cross_block")
        for name in ("gamma", "hedge", "verify_margin"):
            object.__setattr__(self, name, normalised(getattr(self, name)))

    @property
    def made_on(self) -> tuple[str, ...]:
        """Names of the targets that its artifact was made on."""
        return tuple(origin.target for origin in self.origins)

    @property
    def mark(self) -> str:
        """What stands behind the name wherever people read it: an oracle's numbers are bounds."""
        return " (bound)" if self.oracle else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSpec:
    """The axes. Cells are their product, less what `exclude` and impossibility take away.

    `block_length` empty: each target's own. `tau` multiplies only the commit rule `threshold`. `gamma` and `acceptance`
    empty: each drafter's own.
    """

    target: tuple[str, ...]
    task: tuple[str, ...]
    drafter: tuple[str, ...] = ("none", "ssd", "spot")
    budget: tuple[int, ...] = (8,)
    gamma: tuple[float, ...] = ()
    acceptance: tuple[Acceptance, ...] = ()
    temperature: tuple[float, ...] = (0.0,)
    noise: tuple[Noise, ...] = ("coupled",)
    confidence: tuple[Confidence, ...] = ("top1",)
    seed: tuple[int, ...] = (0,)
    max_new_tokens: tuple[int, ...] = (128,)
    block_length: tuple[int, ...] = ()
    commit: tuple[CommitRule, ...] = ("standard",)
    tau: tuple[float, ...] = (DEFAULT_TAU,)

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if name not in ("gamma", "acceptance", "block_length"):
                check(len(getattr(self, name)) > 0, f"grid.{name}", getattr(self, name), "at least one value")
        for budget in self.budget:
            check(1 <= budget <= MAX_BUDGET, "grid.budget", budget, f"a whole number from 1 to {MAX_BUDGET}")
        for gamma in self.gamma:
            check(0 <= gamma < 1, "grid.gamma", gamma, "a number in [0, 1)")
        for temperature in self.temperature:
            ok = math.isfinite(temperature) and temperature >= 0
            check(ok, "grid.temperature", temperature, "a finite number from 0")
        for tau in self.tau:
            check_tau("grid.tau", tau)
        for seed in self.seed:
            check(0 <= seed < 2**63, "grid.seed", seed, "a whole number from 0 to 2**63-1")
        for tokens in self.max_new_tokens:
            check(tokens >= 1, "grid.max_new_tokens", tokens, "a whole number from 1")
        for length in self.block_length:
            check(1 <= length <= MAX_BLOCK, "grid.block_length", length, f"a whole number from 1 to {MAX_BLOCK}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """A whole sweep. `exclude` is a tuple of rules; a cell that matches every axis value of a rule is left out."""

    name: str
    title: str = ""
    grid: GridSpec
    targets: tuple[TargetSpec, ...] = ()
    tasks: tuple[TaskSpec, ...] = ()
    drafters: tuple[DrafterSpec, ...] = ()
    exclude: tuple[dict[str, tuple[str | float | int, ...]], ...] = ()
    ignore_eos: bool = False
    measure: MeasureSpec = field(default_factory=MeasureSpec)
    resources: ResourceSpec = field(default_factory=ResourceSpec)
    tracking_uri: str = ""

    def __post_init__(self) -> None:
        ok = bool(self.name) and len(self.name) <= 80 and all(c.isalnum() or c in "-_." for c in self.name)
        check(ok and not self.name.startswith("."), "name", self.name, "1 to 80 letters, digits, '-', '_' or '.'")
