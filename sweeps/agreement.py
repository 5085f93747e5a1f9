"""How far an approximate key/value cache changes what a target decodes: its cell beside the uncached reference.

The reference is the draft-free cell of the same target without any cache (`Cell.uncached`). Kept outputs are compared
token by token at equal index; what lies behind the first stop id is no answer. This is a measurement and no check: a
claim compares with draft-free decoding under the same cache (`sweeps.identity`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sweeps.cell import Cell
from sweeps.draws import share
from sweeps.identity import first_difference
from sweeps.paired import paired_difference
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, mean, ratio_of_sums, undefined, wilson

Pair = tuple[GenerationRecord, GenerationRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A cell with an approximate cache beside its uncached reference, over the `n` prompts that both decoded.

    `identical`: share of prompts with equal kept outputs (`n_identical` of them). `equal_tokens`: mean share of equal
    tokens at equal index, of the longer output. `first_divergence`: index of the first kept token that differs, median
    over the prompts that differ. `nfe`, `positions` (forwarded, without prefill) are means a prompt, `positions_ratio`
    those of the reference over the cell's own. `correct_difference` is the cell's share of right answers less the
    reference's, paired, of the prompts that both scored. All are undefined where n is 0: not measured.
    """

    n: int
    n_identical: int
    identical: Estimate
    equal_tokens: Estimate
    first_divergence: float | None
    nfe: Estimate
    nfe_uncached: Estimate
    positions: Estimate
    positions_uncached: Estimate
    positions_ratio: Estimate
    correct: Estimate
    correct_uncached: Estimate
    correct_difference: Estimate


NOT_MEASURED = Agreement(
    n=0,
    n_identical=0,
    identical=undefined(),
    equal_tokens=undefined(),
    first_divergence=None,
    nfe=undefined(),
    nfe_uncached=undefined(),
    positions=undefined(),
    positions_uncached=undefined(),
    positions_ratio=undefined(),
    correct=undefined(),
    correct_uncached=undefined(),
    correct_difference=undefined(),
)


def agreement_of(
    cell: Cell, rows: Mapping[int, GenerationRecord], uncached: Mapping[int, GenerationRecord]
) -> Agreement | None:
    """The agreement of a cell's rows, by prompt, with those of its reference; None where nothing is approximate.

    Independent noise draws anew at every forward: outputs then differ by chance, and nothing is compared.
    """
    if cell.target.exact_cache:
        return None
    if not cell.is_comparable_uncached:
        return NOT_MEASURED
    return agreement([(rows[index], uncached[index]) for index in sorted(rows.keys() & uncached.keys())])


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """The agreement of pairs of one prompt each: the cell's own row, then the reference's."""
    if not pairs:
        return NOT_MEASURED
    outputs = [(kept(own), kept(other)) for own, other in pairs]
    apart = [first_difference(own, other) for own, other in outputs if own != other]
    scored = [
        (own.correct, other.correct) for own, other in pairs if own.correct is not None and other.correct is not None
    ]
    ours, theirs = [own for own, _ in scored], [other for _, other in scored]
    positions = [(own.counters.positions, other.counters.positions) for own, other in pairs]
    n = len(pairs)
    return Agreement(
        n=n,
        n_identical=n - len(apart),
        identical=wilson(n - len(apart), n),
        equal_tokens=share([equal_share(own, other) for own, other in outputs], [1] * n),
        first_divergence=float(median(apart)) if apart else None,
        nfe=mean([own.counters.nfe for own, _ in pairs]),
        nfe_uncached=mean([other.counters.nfe for _, other in pairs]),
        positions=mean([own for own, _ in positions]),
        positions_uncached=mean([other for _, other in positions]),
        positions_ratio=ratio_of_sums([other for _, other in positions], [own for own, _ in positions]),
        correct=wilson(sum(ours), len(ours)),
        correct_uncached=wilson(sum(theirs), len(theirs)),
        correct_difference=paired_difference(ours, theirs),
    )


def kept(row: GenerationRecord) -> tuple[int, ...]:
    """The tokens before the first stop id."""
    return row.output_ids[: row.tokens_kept]


def equal_share(own: Sequence[int], other: Sequence[int]) -> float:
    """Share of the longer output's places at which both have the same token; 1 where both are empty."""
    longer = max(len(own), len(other))
    return sum(a == b for a, b in zip(own, other, strict=False)) / longer if longer else 1.0
