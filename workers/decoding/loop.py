"""The decoder: rounds of drafting, one batched forward, and a walk along the target's own steps (decoding.md 3).

A step is what the target's rule fills after one forward: one position, or under the threshold rule maybe several. The
last forward left the target's next step, so applying it (the root) needs no forward of its own. A round takes the steps
to the accepted drafts plus one: the last visited state's own next step. Without a drafter every round is one step (so
under the standard rule the forwards number exactly the tokens generated); no drafter can make them more. A root that
the known step filled ends its block without a forward.

With a `verify_margin` a verdict by less is made once more, by a forward of that state alone: the shape it has without
drafts, and so the same bits. Such a forward commits nothing of its own, so only these can make the forwards more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from workers.decoding.noise import BlockNoise
from workers.decoding.rule import Verdict, judge
from workers.decoding.seen import Seen, Watcher
from workers.decoding.stale import Stale, stale_of
from workers.decoding.state import BlockState
from workers.decoding.tally import Generation, Stopwatch, Tally, finished
from workers.decoding.tree import DraftTree, root_alone
from workers.decoding.verify import verify
from workers.decoding.walk import Walk, walk
from workers.drafters.base import Drafter
from workers.targets.base import Session, Target


def decode(
    target: Target,
    drafter: Drafter,
    prompt_ids: Sequence[int],
    *,
    spec: DecodeSpec,
    seed: int,
    watch: Watcher | None = None,
    verify_margin: float = 0.0,
) -> Generation:
    """Decode one prompt. `seed` is the sample's own (see `sample_seed`).

    An empty prompt is a sequence that begins with masks. `watch` is called for every step, in order. A verdict on a
    batch of several states whose margin is below `verify_margin` is made again on the state alone. Raises ValueError
    for a prompt that is too long for the target, or holds an id outside its vocabulary or its mask token.
    """
    traits, prompt = target.traits, list(prompt_ids)
    if traits.mask_id in prompt:
        raise ValueError(f"prompt: token {prompt.index(traits.mask_id)} is the target's mask token ({traits.mask_id})")
    clock = Stopwatch(traits.device)
    session = target.start(prompt, block_length=spec.block_length, max_new_tokens=spec.max_new_tokens)
    tally = Tally(prompt_tokens=len(prompt), prefilled=session.positions)
    clock.prefilled()
    run = BlockRounds(target, drafter, session, spec, seed, tally, clock, watch, verify_margin)
    stops = frozenset(() if spec.ignore_eos else traits.stop_ids)
    sequence, end = prompt, len(prompt) + spec.max_new_tokens
    with torch.inference_mode():
        while True:
            start = session.prefix_length
            state = run.fill(open_block(sequence[start:], end - start, spec.block_length, traits.mask_id), start)
            sequence = sequence[:start] + list(state.tokens[: end - start])
            output = sequence[tally.prompt_tokens :]
            if len(sequence) == end or not stops.isdisjoint(output):
                return finished(output, stops, tally, clock)
            session.commit(torch.tensor(state.tokens, device=traits.device))


def open_block(given: list[int], room: int, block_length: int, mask_id: int) -> BlockState:
    """The active block: tokens already given (the prompt's last, partial block), then masks.

    Masks from `room` on lie behind the requested tokens: the target sees them, nothing ever fills them.
    """
    tokens = (*given, *[mask_id] * (block_length - len(given)))
    return BlockState(tokens, tuple(range(len(given), min(room, block_length))))


@dataclass(frozen=True, slots=True)
class BlockRounds:
    """The rounds of one decode call; all that changes is in `session`, `tally` and `clock`."""

    target: Target
    drafter: Drafter
    session: Session
    spec: DecodeSpec
    seed: int
    tally: Tally
    clock: Stopwatch
    watch: Watcher | None
    verify_margin: float

    def fill(self, state: BlockState, start: int) -> BlockState:
        """Fill the open positions of the block that begins at absolute position `start`."""
        traits, tally, clock, length = self.target.traits, self.tally, self.clock, len(state.tokens)
        positions_L = torch.arange(start, start + length, device=traits.device)
        noise = BlockNoise(self.spec, self.seed, positions_L, traits.vocab_size)
        order: list[int] = []
        filled: tuple[int, ...] = ()
        known: Verdict | None = None  # nothing was forwarded yet: the first root goes alone
        recall: Callable[[], Stale] | None = None
        while not state.full:
            asked = self.drafter.budget and len(state.open) > 1  # a draft is never full: one open position leaves none
            stale = recall() if asked and recall else None  # made when somebody asks for it
            tree = self.drafter.propose(state, filled, stale) if stale else root_alone(state)
            assert tree.states[0] == state, "a drafter changed the root"
            assert tree.drafts <= self.drafter.budget, "a drafter passed its budget"
            clock.lap("drafter")
            hidden_NLH = verify(self.session, tree, traits.device)
            clock.lap("forward")
            doubt = self.verify_margin if tree.drafts else 0.0  # a root alone has the draft-free shape already
            walked = walk(tree, partial(self.judge, tree, hidden_NLH, noise), doubt=doubt)
            if walked.doubtful:
                walked = self.judged_again(tree, walked, noise)
            for node, verdict in zip(walked.nodes, walked.verdicts, strict=True):
                before, state = tree.states[node], tree.states[node].fill(*verdict.step)
                if self.watch:
                    fresh = partial(self.stale, verdict, before, order, noise, start, tally.turn)
                    seen = Seen(start=start, state=before, verdict=verdict, known=known, recall=recall, fresh=fresh)
                    self.watch(seen)
                tally.step(start, verdict)
                filled = tuple(commit.position for commit in verdict.step)
                order += filled
            clock.lap("walk")
            known, last = walked.verdicts[-1], tree.states[walked.nodes[-1]]
            recall = cache(partial(self.stale, known, last, order[: -len(filled)], noise, start, tally.turn))
            tally.round(tree, walked, forwarded=self.session.positions)
        return state

    def judge(
        self, tree: DraftTree, hidden_NLH: Mapping[int, Tensor] | Tensor, noise: BlockNoise, node: int
    ) -> Verdict:
        """The target's next step in one node; the output head is run for the node's open positions only."""
        open = tree.states[node].open
        logits_RV = self.target.logits(hidden_NLH[node][list(open)])
        return judge(logits_RV, noise.target(self.tally.turn, node, open), open, self.spec)

    def judged_again(self, tree: DraftTree, walked: Walk, noise: BlockNoise) -> Walk:
        """The walk with its last node judged by a forward of its own.

        The noise is that of the first verdict: drawing anew only where a draw was close would bend the distribution.
        """
        self.clock.lap("walk")
        node = walked.nodes[-1]
        hidden_1LH = verify(self.session, root_alone(tree.states[node]), self.target.traits.device)
        self.clock.lap("forward")
        verdict = self.judge(tree, {node: hidden_1LH[0]}, noise, node)
        return replace(walked, verdicts=(*walked.verdicts[:-1], verdict))

    def stale(
        self, verdict: Verdict, state: BlockState, order: list[int], noise: BlockNoise, start: int, turn: int
    ) -> Stale:
        """What the forward of `state`, judged in round `turn`, leaves for the drafter."""
        own_noise_RV = noise.drafter(turn, verdict.open)
        return stale_of(verdict, state, tuple(order), start=start, spec=self.spec, own_noise_RV=own_noise_RV)
