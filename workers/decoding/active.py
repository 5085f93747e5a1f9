"""The block that is being filled, and what is known of the one behind it: all that changes between two rounds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from workers.decoding.noise import BlockNoise
from workers.decoding.rule import Verdict, judge
from workers.decoding.stale import Stale, stale_of
from workers.decoding.state import BlockState, NextBlock
from workers.targets.base import Target, TargetTraits


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What all blocks of one decode call have in common."""

    spec: DecodeSpec
    seed: int
    traits: TargetTraits
    prompt_tokens: int

    @property
    def end(self) -> int:
        """The absolute position behind the last token that is asked for."""
        return self.prompt_tokens + self.spec.max_new_tokens

    @property
    def stops(self) -> frozenset[int]:
        """Ids that end the text."""
        return frozenset(() if self.spec.ignore_eos else self.traits.stop_ids)

    def block(self, start: int, given: Sequence[int] = ()) -> "ActiveBlock":
        """The untouched block at an absolute position, which opens with tokens `given` by the prompt."""
        length = self.spec.block_length
        return ActiveBlock(self, start, open_block(given, self.end - start, length, self.traits.mask_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarded:
    """A state of the block at absolute position `start`, as node `node` of round `turn` left it.

    It does not know its block, which may keep it: so nothing large waits for a garbage collector.
    """

    frame: Frame
    start: int
    noise: BlockNoise
    state: BlockState
    turn: int
    node: int
    hidden_LH: Tensor

    def judge(self, target: Target) -> Verdict:
        """The target's next step; the output head is run for the open positions only."""
        open = self.state.open
        logits_RV = target.logits(self.hidden_LH[list(open)])
        return judge(logits_RV, self.noise.target(self.turn, self.node, open), open, self.frame.spec)

    def stale(self, verdict: Verdict, order: tuple[int, ...]) -> Stale:
        """What it leaves for the drafter, once judged. `order`: the positions filled before, in commit order."""
        own_noise_RV = self.noise.drafter(self.turn, verdict.open)
        spec = self.frame.spec
        stale = stale_of(verdict, self.state, order, start=self.start, spec=spec, own_noise_RV=own_noise_RV)
        return replace(stale, hidden_LH=self.hidden_LH)


@dataclass
class ActiveBlock:
    """A block at absolute position `start`.

    `order` holds its filled positions in commit order, `filled` those of the last step. `known` is the verdict which
    that step was taken by, and `recall` makes what the forward left for the drafter; both are None until the block was
    forwarded. `glimpse` is the untouched block in a cross-block copy, whose filled block in front was a guess (None:
    there was no such copy).
    """

    frame: Frame
    start: int
    state: BlockState
    order: list[int] = field(default_factory=list)
    filled: tuple[int, ...] = ()
    known: Verdict | None = None
    recall: Callable[[], Stale] | None = None
    glimpse: Forwarded | None = None

    def __post_init__(self) -> None:
        self.given = self.state.open[0] if self.state.open else len(self.state.tokens)

    @cached_property
    def noise(self) -> BlockNoise:
        """The noise at the block's positions."""
        traits, length = self.frame.traits, len(self.state.tokens)
        positions_L = torch.arange(self.start, self.start + length, device=traits.device)
        return BlockNoise(self.frame.spec, self.frame.seed, positions_L, traits.vocab_size)

    def forwarded(self, state: BlockState, turn: int, node: int, hidden_LH: Tensor) -> Forwarded:
        """A state of this block in a round's forward."""
        return Forwarded(
            frame=self.frame,
            start=self.start,
            noise=self.noise,
            state=replace(state, behind=()),
            turn=turn,
            node=node,
            hidden_LH=hidden_LH,
        )

    @cached_property
    def following(self) -> "ActiveBlock | None":
        """The block behind this one; None where no token of it is asked for."""
        start = self.start + len(self.state.tokens)
        return self.frame.block(start) if start < self.frame.end else None

    @cached_property
    def beyond(self) -> NextBlock | None:
        """The block behind as drafts go on there, while it is untouched."""
        if self.following is None:
            return None
        state = self.following.state
        return NextBlock(tokens=state.tokens, open=state.open, given=self.given, stops=self.frame.stops)


def open_block(given: Sequence[int], room: int, block_length: int, mask_id: int) -> BlockState:
    """An untouched block: tokens already given (the prompt's last, partial block), then masks.

    Masks from `room` on lie behind the requested tokens: the target sees them, nothing ever fills them.
    """
    tokens = (*given, *[mask_id] * (block_length - len(given)))
    return BlockState(tokens, tuple(range(len(given), min(room, block_length))))
