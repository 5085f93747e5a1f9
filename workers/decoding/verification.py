"""How drafts are verified: which steps are accepted, where drafts may go on, when a verdict is made again."""

from collections.abc import Sequence
from dataclasses import dataclass

from sweeps.spec import Acceptance, DecodeSpec, DrafterSpec
from workers.decoding.acceptance import RULES, Step
from workers.decoding.rule import Verdict
from workers.decoding.tree import DraftTree
from workers.decoding.walk import Judge, Walk, first_accepted, most_commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The options of a `DrafterSpec` that the decoder itself reads; the names are the same, less `verify_`."""

    acceptance: Acceptance = "exact"
    max_commit: bool = False
    margin: float = 0.0
    cross_block: bool = False
    refresh: bool = False

    def __post_init__(self) -> None:
        assert not (self.margin and self.cross_block), "a crossing copy has not the draft-free shape"

    @classmethod
    def of(cls, spec: DrafterSpec) -> "Verification":
        """The verification that a drafter's spec asks for."""
        return cls(
            acceptance=spec.acceptance,
            max_commit=spec.max_commit,
            margin=spec.verify_margin,
            cross_block=spec.cross_block,
            refresh=spec.refresh,
        )

    def walk(self, tree: DraftTree, judge_node: Judge, spec: DecodeSpec) -> Walk:
        """The walk over a verified tree by the acceptance rule."""
        rule = RULES[self.acceptance]

        def accept(drafted: Sequence[Step], verdict: Verdict) -> list[Step]:
            return rule(drafted, verdict, spec)

        if self.max_commit and self.acceptance != "exact":  # that accepts one path alone
            return most_commits(tree, judge_node, accept)
        doubt = self.margin if tree.drafts else 0.0  # a root alone has the draft-free shape already
        return first_accepted(tree, judge_node, accept, doubt=doubt)


PLAIN = Verification()
