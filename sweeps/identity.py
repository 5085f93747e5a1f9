"""Checking a claim: a cell's generations against the draft-free ones, token for token.

Where they differ, the first commit that differs is found in commit order (an early swap of two positions changes the
text far from where it happened), in whole steps of the target where these hold several commits, and the margin there
says whether rounding can explain it: near-tie, or BUG. Where no identity is promised, a difference asks for no
explanation and has no such verdict.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from sweeps.records import GenerationRecord

Verdict = Literal["near-tie", "BUG"]

# Rounding moves a log-odds by about this much when a state is forwarded in a batch of another shape. A smaller margin
# can flip; a larger one cannot, so that a mismatch there is a defect.
NEAR_TIE = {"float64": 1e-9, "float32": 1e-3, "float16": 0.05, "bfloat16": 0.25}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One prompt whose tokens differ from the draft-free ones.

    `step` counts commits from 0: the first that differs (position or token), or the first of the first step that
    differs in a position, a token or in how many commits it makes. `index` is the first output token that differs.
    `margin` is the greater of both runs' margins at that commit (log-odds; None: there was no rival, or no such commit
    in one of the runs), so that a near-tie must be one on both sides. `verdict` is None where nothing was promised.
    """

    prompt_id: str
    prompt_index: int
    step: int
    index: int
    margin: float | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How many prompts were compared with the draft-free ones, how many are equal, and every one that is not."""

    n_checked: int
    n_identical: int
    mismatches: tuple[Mismatch, ...]

    @property
    def share(self) -> float | None:
        """Share of compared prompts that are equal; None when nothing was compared."""
        return self.n_identical / self.n_checked if self.n_checked else None

    @property
    def near_ties(self) -> int:
        """Number of broken promises that rounding explains."""
        return sum(mismatch.verdict == "near-tie" for mismatch in self.mismatches)

    @property
    def bugs(self) -> int:
        """Number of broken promises that rounding cannot explain."""
        return sum(mismatch.verdict == "BUG" for mismatch in self.mismatches)


def compare(
    variant: Mapping[int, GenerationRecord],
    baseline: Mapping[int, GenerationRecord],
    *,
    dtype: str,
    temperature: float = 0.0,
    promised: bool = True,
) -> Identity:
    """Compare the prompts that both sides have; `promised`: they must be equal, so that each mismatch is judged."""
    both = sorted(variant.keys() & baseline.keys())
    differing = [index for index in both if variant[index].output_ids != baseline[index].output_ids]
    limit = near_tie(dtype, temperature) if promised else None
    mismatches = tuple(mismatch(variant[index], baseline[index], limit=limit) for index in differing)
    return Identity(n_checked=len(both), n_identical=len(both) - len(differing), mismatches=mismatches)


def near_tie(dtype: str, temperature: float) -> float:
    """The largest margin that rounding can flip: token scores are logits over T, so a T below 1 magnifies it."""
    return NEAR_TIE[dtype] / min(1.0, temperature or 1.0)


def mismatch(variant: GenerationRecord, baseline: GenerationRecord, *, limit: float | None) -> Mismatch:
    """Where and how two generations of one prompt part; a margin up to `limit` is a near-tie (None: no verdict)."""
    ours, theirs = steps(variant), steps(baseline)
    step = sum(map(len, ours[: first_difference(ours, theirs)]))
    margin = margin_at(step, variant, baseline)
    verdict: Verdict = "near-tie" if limit is not None and margin is not None and margin <= limit else "BUG"
    return Mismatch(
        prompt_id=variant.prompt_id,
        prompt_index=variant.prompt_index,
        step=step,
        index=first_difference(variant.output_ids, baseline.output_ids),
        margin=margin,
        verdict=None if limit is None else verdict,
    )


def steps(record: GenerationRecord) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The (output index, token id) pairs of a generation by step, in commit order."""
    pairs = tuple((index, record.output_ids[index]) for index in record.order)
    ends = tuple(accumulate(record.step_sizes))
    return tuple(pairs[first:last] for first, last in zip((0, *ends), ends, strict=False))


def first_difference(one: tuple[object, ...], other: tuple[object, ...]) -> int:
    """The first index where two tuples differ; the shorter one's length where one only goes on longer."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def margin_at(step: int, variant: GenerationRecord, baseline: GenerationRecord) -> float | None:
    """The greater of both margins at a commit; None when one of them is missing or infinite."""
    margins = [record.margins[step] if step < len(record.margins) else None for record in (variant, baseline)]
    known = [margin for margin in margins if margin is not None]
    return max(known) if len(known) == 2 else None
