"""The decoder: rounds of drafting, one batched forward, and a walk along the target's own steps (decoding.md 3).

A step is what the target's rule fills after one forward: one position, or under the threshold rule maybe several. The
last forward left the target's next step, so applying it (the root) needs no forward of its own. A round takes the steps
to the accepted drafts plus one: the last visited state's own next step. Without a drafter every round is one step (so
under the standard rule the forwards number exactly the tokens generated); no drafter can make them more, unless a
lenient acceptance rule leads to other states. A root that the known step filled ends its block without a forward.

A cross-block draft that the walk reaches takes the first step of the next block in the round that fills this one. One
that it does not reach leaves a glimpse of the next block; with `refresh` its first round is drafted from that.

With a verification `margin` a verdict by less is made once more, by a forward of that state alone: the shape it has
without drafts, and so the same bits. Such a forward commits nothing of its own, so only these can make the forwards
more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import torch

from sweeps.spec import DecodeSpec
from workers.decoding.acceptance import Step
from workers.decoding.active import ActiveBlock, Forwarded, Frame
from workers.decoding.rule import Verdict
from workers.decoding.seen import Seen, Watcher
from workers.decoding.stale import Stale
from workers.decoding.state import BlockState, NextBlock, positions
from workers.decoding.tally import Generation, Stopwatch, Tally, finished
from workers.decoding.tree import DraftTree, root_alone
from workers.decoding.verification import PLAIN, Verification
from workers.decoding.verify import verify
from workers.decoding.walk import Walk
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
    verification: Verification = PLAIN,
) -> Generation:
    """Decode one prompt. `seed` is the sample's own (see `sample_seed`).

    An empty prompt is a sequence that begins with masks. `watch` is called for every step, in order. By default
    drafts are accepted by the rule `exact`, in the active block alone. Raises ValueError for a prompt
    that is too long for the target, or holds an id outside its vocabulary or its mask token.
    """
    traits, prompt = target.traits, list(prompt_ids)
    if traits.mask_id in prompt:
        raise ValueError(f"prompt: token {prompt.index(traits.mask_id)} is the target's mask token ({traits.mask_id})")
    clock = Stopwatch(traits.device)
    session = target.start(prompt, block_length=spec.block_length, max_new_tokens=spec.max_new_tokens)
    tally = Tally(prompt_tokens=len(prompt), prefilled=session.positions)
    clock.prefilled()
    run = BlockRounds(target, drafter, session, tally, clock, watch, verification)
    frame = Frame(spec=spec, seed=seed, traits=traits, prompt_tokens=len(prompt))
    sequence, block = prompt, frame.block(session.prefix_length, prompt[session.prefix_length :])
    with torch.inference_mode():
        while True:
            run.fill(block)
            sequence = sequence[: block.start] + list(block.state.tokens[: frame.end - block.start])
            output = sequence[tally.prompt_tokens :]
            if block.following is None or not frame.stops.isdisjoint(output):
                return finished(output, frame.stops, tally, clock)
            session.commit(torch.tensor(block.state.tokens, device=traits.device))
            block = block.following


@dataclass(frozen=True, slots=True)
class BlockRounds:
    """The rounds of one decode call; all that changes is in `session`, `tally`, `clock` and the block."""

    target: Target
    drafter: Drafter
    session: Session
    tally: Tally
    clock: Stopwatch
    watch: Watcher | None
    verification: Verification

    def fill(self, block: ActiveBlock) -> None:
        """Fill the open positions of a block; the first step of the next one may be taken as well."""
        while not block.state.full:
            self.round(block)

    def round(self, block: ActiveBlock) -> None:
        """Draft, forward, walk. What is kept of it afterwards is in the block."""
        tree = self.draft(block)
        assert tree.states[0] == block.state, "a drafter changed the root"
        assert tree.drafts <= self.drafter.budget, "a drafter passed its budget"
        self.clock.lap("drafter")
        hidden_NLH = verify(self.session, tree, self.target.traits.device)
        self.clock.lap("forward")

        def left(node: int) -> Forwarded:
            own = block_of(tree, node, block)
            return own.forwarded(tree.states[node], self.tally.turn, node, hidden_NLH[node])

        walked = self.verification.walk(tree, lambda node: left(node).judge(self.target), block.frame.spec)
        if walked.doubtful:
            walked = self.judged_again(tree, walked, block)
        for node, verdict, step in zip(walked.nodes, walked.verdicts, walked.steps, strict=True):
            own = block_of(tree, node, block)
            leaves = self.take(own, left(node), verdict, step)
        own.known, own.recall = walked.verdicts[-1], cache(leaves)  # made when somebody asks for it
        if self.verification.refresh and tree.crossings and not tree.states[walked.nodes[-1]].behind:
            heaviest = max(tree.crossings, key=tree.masses.__getitem__)
            block_of(tree, heaviest, block).glimpse = left(heaviest)
        self.clock.lap("walk")
        self.tally.round(tree, walked, forwarded=self.session.positions)

    def draft(self, block: ActiveBlock) -> DraftTree:
        """The tree of the next round: the root alone where nothing is known of the block, or nothing can be drafted."""
        beyond = block.beyond if self.verification.cross_block else None
        if not self.drafter.budget:
            return root_alone(block.state)
        if block.recall is not None:
            return self.proposed(block.state, block.filled, block.recall, beyond)
        if block.glimpse is None:
            return root_alone(block.state)
        verdict = block.glimpse.judge(self.target)
        step = verdict.step  # this stale step itself is the first draft, the others go on from it
        after = block.state.fill(*step)
        if after.full:
            crossed = beyond.after(after) if beyond else None
            return root_alone(crossed).below(block.state, step) if crossed else root_alone(block.state)
        recall = partial(block.glimpse.stale, verdict, ())
        tree = self.proposed(after, positions(step), recall, beyond).below(block.state, step)
        return tree.cut(min(tree.drafts, self.drafter.budget))

    def proposed(
        self, root: BlockState, filled: tuple[int, ...], recall: Callable[[], Stale], beyond: NextBlock | None
    ) -> DraftTree:
        """What the drafter proposes below a root. A draft that fills the block needs no forward, unless it goes on
        `beyond`.
        """
        if len(root.open) < (1 if beyond else 2):
            return root_alone(root)
        return self.drafter.propose(root, filled, replace(recall(), beyond=beyond))

    def judged_again(self, tree: DraftTree, walked: Walk, block: ActiveBlock) -> Walk:
        """The walk with its last node judged by a forward of its own.

        The noise is that of the first verdict: drawing anew only where a draw was close would bend the distribution.
        """
        self.clock.lap("walk")
        node = walked.nodes[-1]
        hidden_1LH = verify(self.session, root_alone(tree.states[node]), self.target.traits.device)
        self.clock.lap("forward")
        verdict = block.forwarded(tree.states[node], self.tally.turn, node, hidden_1LH[0]).judge(self.target)
        return replace(walked, verdicts=(*walked.verdicts[:-1], verdict), steps=(*walked.steps[:-1], verdict.step))

    def take(self, block: ActiveBlock, left: Forwarded, verdict: Verdict, step: Step) -> Callable[[], Stale]:
        """Commit one step of the walk, from the state `left`; returns what makes the stale distribution it leaves."""
        leaves = partial(left.stale, verdict, tuple(block.order))
        if self.watch:
            self.watch(
                Seen(
                    start=block.start,
                    state=left.state,
                    verdict=verdict,
                    step=step,
                    known=block.known,
                    recall=block.recall,
                    fresh=leaves,
                )
            )
        self.tally.step(block.start, verdict, step)
        block.state = left.state.fill(*step)
        block.filled = positions(step)
        block.order += block.filled
        return leaves


def block_of(tree: DraftTree, node: int, block: ActiveBlock) -> ActiveBlock:
    """The block that a node's open positions are in: the active one, or the next."""
    if not tree.states[node].behind:
        return block
    assert block.following is not None, "a draft crossed into a block that is not asked for"
    return block.following
