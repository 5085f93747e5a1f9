"""How much a sweep does and with what: prompts, repeats and workers, none of which changes a generation."""

from dataclasses import dataclass

from sweeps.checks import check

MAX_PROMPTS = 100_000  # planning makes every prompt: beyond this it would seem to hang
MIN_CPUS = 0.01  # a hundred workers a CPU; less would plan thousands


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSpec:
    """How much to measure. None of it changes a single generation, so none of it is part of a cell's identity.

    `prompts` a cell decodes (the first ones of the split); `timed_prompts` of them are also timed, variant and
    draft-free interleaved (0: NFE only; never more than `prompts`), `repeats` times each; `studied_prompts` (maybe more
    than `prompts`) show what stale distributions and the order model foretell (0: no study); `chunk` prompts an item.
    `uncached_prompts` (of `prompts`; more is all of them) are also decoded draft-free without a cache, where a target's
    cache is approximate, to see what it changes (0: that is not measured).
    """

    prompts: int = 16
    timed_prompts: int = 3
    repeats: int = 3
    studied_prompts: int = 0
    chunk: int = 8
    uncached_prompts: int = MAX_PROMPTS

    def __post_init__(self) -> None:
        allowed = f"a whole number from 1 to {MAX_PROMPTS}"
        check(1 <= self.prompts <= MAX_PROMPTS, "measure.prompts", self.prompts, allowed)
        check(self.timed_prompts >= 0, "measure.timed_prompts", self.timed_prompts, "a whole number from 0")
        object.__setattr__(self, "timed_prompts", min(self.timed_prompts, self.prompts))
        check(self.repeats >= 1, "measure.repeats", self.repeats, "a whole number from 1")
        allowed = f"a whole number from 0 (no study) to {MAX_PROMPTS}"
        check(0 <= self.studied_prompts <= MAX_PROMPTS, "measure.studied_prompts", self.studied_prompts, allowed)
        check(self.chunk >= 1, "measure.chunk", self.chunk, "a whole number from 1")
        allowed = "a whole number from 0 (not measured)"
        check(self.uncached_prompts >= 0, "measure.uncached_prompts", self.uncached_prompts, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpec:
    """What one worker needs and how many there are (0 workers: as many as fit)."""

    workers: int = 0
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        check(self.workers >= 0, "resources.workers", self.workers, "a whole number from 0 (0: as many as fit)")
        check(self.cpus >= MIN_CPUS, "resources.cpus", self.cpus, f"a number from {MIN_CPUS}")
        check(self.gpus >= 0, "resources.gpus", self.gpus, "a number from 0")
