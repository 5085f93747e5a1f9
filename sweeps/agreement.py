"""How far a cell's outputs are from another's: of lossy acceptance from draft-free decoding, of one commit rule from
the other, of an approximate key/value cache from decoding without any.

Kept outputs are compared; what lies behind the first stop id is no answer. This is a measurement and no check: a claim
compares all tokens with draft-free decoding by the same rule and cache (`sweeps.identity`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sweeps.cell import Cell
from sweeps.draws import share
from sweeps.edit_distance import edit_share
from sweeps.identity import first_difference
from sweeps.paired import paired_difference
from sweeps.records import GenerationRecord
from sweeps.statistics import Estimate, mean, ratio_of_sums, undefined, wilson

Pair = tuple[GenerationRecord, GenerationRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """A cell's kept outputs beside another's, over the `n` prompts that both decoded.

    `identical`: share of prompts with equal outputs (`n_identical` of them). `equal_tokens`: mean share of equal tokens
    at equal index, of the longer output. `first_divergence`: index of the first token that differs, median over the
    prompts that differ. `edit_distance`: insertions, deletions and replacements as a share of the longer output, mean
    over prompts. `correct_difference` is the cell's share of right answers less the other's, paired, of the prompts
    that both scored. All are undefined where n is 0: not measured.
    """

    n: int
    n_identical: int
    identical: Estimate
    equal_tokens: Estimate
    first_divergence: float | None
    edit_distance: Estimate
    correct: Estimate
    correct_other: Estimate
    correct_difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Outputs):
    """A cell with an approximate cache beside its uncached reference, the draft-free cell of the same target without
    any cache (`Cell.uncached`).

    `nfe`, `positions` (forwarded, without prefill) are means a prompt, `positions_ratio` those of the reference over
    the cell's own.
    """

    nfe: Estimate
    nfe_uncached: Estimate
    positions: Estimate
    positions_uncached: Estimate
    positions_ratio: Estimate

    @property
    def correct_uncached(self) -> Estimate:
        """Share of right answers without a cache."""
        return self.correct_other


NO_OUTPUTS = Outputs(
    n=0,
    n_identical=0,
    identical=undefined(),
    equal_tokens=undefined(),
    first_divergence=None,
    edit_distance=undefined(),
    correct=undefined(),
    correct_other=undefined(),
    correct_difference=undefined(),
)
NOT_MEASURED = Agreement(
    **{name: getattr(NO_OUTPUTS, name) for name in Outputs.__slots__},
    nfe=undefined(),
    nfe_uncached=undefined(),
    positions=undefined(),
    positions_uncached=undefined(),
    positions_ratio=undefined(),
)


def draft_free_outputs(
    cell: Cell, rows: Mapping[int, GenerationRecord], other: Mapping[int, GenerationRecord]
) -> Outputs | None:
    """A cell's outputs, by prompt, beside those of a draft-free cell; None for a draft-free cell itself, and under
    independent noise, which draws anew at every forward: outputs then differ by chance.
    """
    if cell.draws_anew or rows is other:
        return None
    return outputs_of(pairs_of(rows, other))


def pairs_of(rows: Mapping[int, GenerationRecord], other: Mapping[int, GenerationRecord]) -> list[Pair]:
    """The two rows of each prompt that both sides decoded."""
    return [(rows[index], other[index]) for index in sorted(rows.keys() & other.keys())]


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
    return agreement(pairs_of(rows, uncached))


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """The agreement of pairs of one prompt each: the cell's own row, then the reference's."""
    if not pairs:
        return NOT_MEASURED
    common = outputs_of(pairs)
    positions = [(own.counters.positions, other.counters.positions) for own, other in pairs]
    return Agreement(
        **{name: getattr(common, name) for name in Outputs.__slots__},
        nfe=mean([own.counters.nfe for own, _ in pairs]),
        nfe_uncached=mean([other.counters.nfe for _, other in pairs]),
        positions=mean([own for own, _ in positions]),
        positions_uncached=mean([other for _, other in positions]),
        positions_ratio=ratio_of_sums([other for _, other in positions], [own for own, _ in positions]),
    )


def outputs_of(pairs: Sequence[Pair]) -> Outputs:
    """The outputs of pairs of one prompt each: the cell's own row, then the other's."""
    if not pairs:
        return NO_OUTPUTS
    outputs = [(kept(own), kept(other)) for own, other in pairs]
    apart = [first_difference(own, other) for own, other in outputs if own != other]
    scored = [
        (own.correct, other.correct) for own, other in pairs if own.correct is not None and other.correct is not None
    ]
    ours, theirs = [own for own, _ in scored], [other for _, other in scored]
    n = len(pairs)
    return Outputs(
        n=n,
        n_identical=n - len(apart),
        identical=wilson(n - len(apart), n),
        equal_tokens=share([equal_share(own, other) for own, other in outputs], [1] * n),
        first_divergence=float(median(apart)) if apart else None,
        edit_distance=share([edit_share(own, other) for own, other in outputs], [1] * n),
        correct=wilson(sum(ours), len(ours)),
        correct_other=wilson(sum(theirs), len(theirs)),
        correct_difference=paired_difference(ours, theirs),
    )


def kept(row: GenerationRecord) -> tuple[int, ...]:
    """The tokens before the first stop id."""
    return row.output_ids[: row.tokens_kept]


def equal_share(own: Sequence[int], other: Sequence[int]) -> float:
    """Share of the longer output's places at which both have the same token; 1 where both are empty."""
    longer = max(len(own), len(other))
    return sum(a == b for a, b in zip(own, other, strict=False)) / longer if longer else 1.0
