"""What an entry of each table says: targets, families, artifacts, drafters and tasks.

Data and "module:attribute" strings alone, so that a table of them costs no import.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeps.spec import CommitRule
from workers.targets.published import Published


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEntry:
    """A named target: where its checkpoint is (a zoo directory or a hub id), and what it is decoded with by default.

    `block_length` is the one that it was made for, `dtype` what it computes in unless a sweep says otherwise.
    `artifacts` maps a kind of artifact to the one that was made for this target (its path). `family` and `published`,
    for a hub id, are what planning goes by while the checkpoint is not here; a worker goes by the checkpoint's own
    config.
    """

    path: str
    revision: str = ""
    family: str = ""
    block_length: int = 0  # 0: not known, so that every sweep has to state it
    dtype: str = "float32"
    published: Published | None = None
    artifacts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyEntry:
    """An architecture: `loader` is `load(spec: TargetSpec, *, device: str) -> Target`.

    `read` is `read(folder: Path) -> CheckpointConfig` (no torch). `caches` are the kinds of cache that its sessions can
    keep, the default first; with cache `none` every forward is a whole one, which is exact too. A family with an
    approximate cache has that as well: it is what the others are measured against.
    """

    loader: str
    exact_cache: bool
    read: str = ""
    caches: tuple[str, ...] = ("exact",)

    def __post_init__(self) -> None:
        if not self.exact_cache and "none" not in self.caches:
            caches = ", ".join(self.caches)
            raise ValueError(f"family {self.loader}: caches are {caches}: an approximate one needs none beside it")

    def cache(self, asked: str) -> str:
        """The kind of cache that `asked` means ("": the default). Raises ValueError naming what is allowed."""
        if asked and asked not in self.caches:
            raise ValueError(f"cache is {asked!r}: allowed for this architecture is {' | '.join(self.caches)}")
        return asked or self.caches[0]

    def exact(self, cache: str) -> bool:
        """Whether a target with this kind of cache computes what it would without any."""
        return self.exact_cache or cache == "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactEntry:
    """A kind of trained or calibrated file that drafters need, made by `command` for one target and block length.

    `result` is what the command writes into its --out, for a drafter's option `checkpoint`.
    `inspect` is `inspect(checkpoint: str) -> facts` (no torch) with `path`, `digest` and `block_length` (and
    `budget_max`, where it was made for budgets up to one); it raises ValueError when `checkpoint` (a path, or a name of
    the zoo) is missing, foreign or altered.
    """

    noun: str
    command: str
    result: str
    inspect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterEntry:
    """A drafter: `factory` is `make(spec: DrafterSpec, *, block_length: int, device: str) -> Drafter`.

    `uses` names the options of DrafterSpec it reads; `artifact` the kind of artifact it cannot work without (it is
    given as the option `checkpoint`). An `oracle` knows the target's real future: a bound, no method; its factory makes
    an `Oracle`. `commits` are the commit rules that it drafts for. A factory may also make a `TargetReader`.
    """

    factory: str
    summary: str
    uses: tuple[str, ...] = ()
    commits: tuple[CommitRule, ...] = ("standard",)
    artifact: str = ""
    oracle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task: `factory` is `make(spec: TaskSpec) -> Task`, `digest` is `digest(spec: TaskSpec) -> str` (no torch).

    `train_split`: it has prompts of its own to train on, by its name alone.
    """

    factory: str
    digest: str
    summary: str
    needs_path: bool = False
    train_split: bool = False
