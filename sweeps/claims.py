"""What a cell may claim about its output: a pure function of the cell and the target's traits (decoding.md section 7).

A claim is a label to be checked, never a result: the report prints the measured identity rate beside it.
"""

from enum import StrEnum

from sweeps.cell import Cell


class Claim(StrEnum):
    """The four labels."""

    LOSSLESS = "lossless"
    DISTRIBUTION_EXACT = "distribution-exact"
    EXACT_GIVEN_CACHE = "exact given the cache"
    LOSSY = "lossy"

    @property
    def promises_identity(self) -> bool:
        """Whether every generation must equal the draft-free one token for token."""
        return self in (Claim.LOSSLESS, Claim.EXACT_GIVEN_CACHE)


def claim_of(cell: Cell) -> Claim:
    """The claim of a cell.

    Every acceptance rule but `exact` is lossy: what it commits may be another output than draft-free decoding's, and by
    `product` even tokens that the target would not commit in that state. Independent noise is exact in distribution; an
    approximate cache bounds identity to it.

    The commit rule changes no claim: under the threshold rule too the target's next step is a function of the state
    (and the shared noise), and identity is promised against draft-free decoding by the same rule and tau.

    A whole-sequence target without a cache forwards the whole canvas for every state, so that its logits are a function
    of the state alone: lossless, as with an exact cache (`exact_cache` says so). With a `prefix` or `dual` cache they
    depend on what was kept as well, and identity is promised against the draft-free decoder with the same cache.
    """
    if cell.drafter.acceptance != "exact":
        return Claim.LOSSY
    if cell.decode.temperature > 0 and cell.decode.noise == "independent" and not cell.is_baseline:
        return Claim.DISTRIBUTION_EXACT
    return Claim.LOSSLESS if cell.target.exact_cache else Claim.EXACT_GIVEN_CACHE


def in_words(cell: Cell, claim: str) -> str:
    """A claim of a cell, with the cache that it is about where that is approximate and the label does not say so:
    `distribution-exact (given the dual cache)`. By itself it would say more than it does.
    """
    says = cell.target.exact_cache or claim == Claim.EXACT_GIVEN_CACHE
    return claim if says else f"{claim} (given the {cell.target.cache} cache)"
