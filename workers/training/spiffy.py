"""Calibrating a draft graph on draft-free trajectories (arXiv 2509.18085; decoding.md section 5).

Every step of a trajectory is a root: the state after the step's own commits, with what its forward left as the stale
distribution. The steps that followed in the block, as ranks at that distribution, are the chain that the walk would
have taken. All trajectories of a graph follow one commit rule, the graph's. Deterministic: the same trajectories and
recipe give the same file, byte for byte.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sweeps.cell import digest_of
from workers.drafters.spiffy import ranked_positions
from workers.models.draft_graph import DraftGraph, DraftNode, GraphSource, HeldOutRow, Pairs, write_draft_graph
from workers.replay.trace import Trace, decode_trace
from workers.training.spiffy_card import write_card
from workers.training.spiffy_choice import Chain, accepted, choose, rounds
from workers.training.spiffy_recipe import SpiffyRecipe

JUDGED = (1, 2, 4, 8, 12, 16, 20, 32, 64, 128, 256)  # budgets of the held-out table


@dataclass(frozen=True, slots=True, kw_only=True)
class Futures:
    """What is kept of one trajectory: the chains of its roots by step, and the steps `[first, last)` of each block.

    `origin` is what all trajectories of a graph must share: target, weights, dtype, block length, tokens, seed; `tau`
    (None: the standard rule) too. `tokens` were committed.
    """

    origin: tuple[str, str, str, int, int, int]
    tau: float | None
    tokens: int
    task: str
    task_digest: str
    split: str
    temperature: float
    prompt_id: str
    chains: dict[int, Chain]
    blocks: tuple[tuple[int, int], ...]

    @property
    def content(self) -> tuple[Any, ...]:
        """All that calibration reads of it, as JSON values: neither file names nor the last bits of a probability.

        A step of the standard rule is its only pair: the digest of such data is what it always was.
        """
        told = [
            (step, tuple(link[0] if self.tau is None else link for link in chain))
            for step, chain in self.chains.items()
        ]
        return self.task, self.task_digest, self.prompt_id, self.temperature, self.blocks, tuple(told)


def calibrate(paths: Sequence[Path], recipe: SpiffyRecipe, *, out_dir: Path) -> DraftGraph:
    """Choose a graph of the traces in `paths`, judge it on the held-out prompts, write it and its card to `out_dir`.

    Raises ValueError for unusable or mixed traces, and where there are too few prompts or nothing was ever drafted
    right.
    """
    if not paths:
        raise ValueError("traces: none given")
    futures: list[Futures] = []
    for path in sorted(paths):
        try:
            futures.append(futures_of(decode_trace(path.read_bytes()), recipe.budget_max))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if futures[-1].origin != futures[0].origin:
            what = "target, weights, dtype, block length, new tokens and seed"
            raise ValueError(f"{path}: {what} are {futures[-1].origin}: the others have {futures[0].origin}")
        if futures[-1].tau != futures[0].tau:
            raise ValueError(
                f"{path}: tau is {futures[-1].tau}: the others have {futures[0].tau} (None: standard rule)"
            )
    kept_out = held_out_prompts(futures, recipe.held_out)
    counted = [each for each in futures if (each.task, each.prompt_id) not in kept_out]
    judged = [each for each in futures if (each.task, each.prompt_id) in kept_out]
    chains = Counter(chain for each in counted for chain in each.chains.values())
    nodes = choose(chains, recipe.budget_max)
    if not nodes:
        raise ValueError(
            f"draft graph: nothing to count in {len(paths)} trajectories: no next commit could have been drafted; "
            "allowed are longer ones (max_new_tokens), longer blocks or more prompts"
        )
    target, target_digest, dtype, block_length, max_new_tokens, seed = futures[0].origin
    graph = DraftGraph(
        block_length=block_length,
        target=target,
        target_digest=target_digest,
        dtype=dtype,
        max_new_tokens=max_new_tokens,
        seed=seed,
        sources=sources_of(futures, kept_out),
        traces=len(counted),
        steps=sum(chains.values()),
        data_digest=digest_of(sorted(each.content for each in futures)),
        budget_max=recipe.budget_max,
        nodes=nodes,
        held_out=tuple(judge(judged, nodes, recipe.budget_max)),
        tau=futures[0].tau,
    )
    graph = replace(graph, digest=write_draft_graph(out_dir, graph))
    write_card(out_dir, graph)
    return graph


def futures_of(trace: Trace, limit: int) -> Futures:
    """The chains of a trace, cut after `limit` steps. Raises ValueError when it ends within a block."""
    header, total = trace.header, len(trace)
    starts = [step for step in range(total) if not trace.steps[step].fill_order]
    blocks = tuple(zip(starts, [*starts[1:], total], strict=True))
    if any(len(trace.steps[first].state.open) != sum(map(len, trace.taken[first:last])) for first, last in blocks):
        raise ValueError("trace: it ends within a block")
    return Futures(
        origin=(
            header.target,
            header.target_digest,
            header.dtype,
            header.decode.block_length,
            header.decode.max_new_tokens,
            header.seed,
        ),
        tau=header.decode.threshold,
        tokens=len(trace.commits),
        task=header.task,
        task_digest=header.task_digest,
        split=header.split,
        temperature=header.decode.temperature,
        prompt_id=header.prompt_id,
        chains={
            step: chain_of(trace, step, last)[:limit]
            for first, last in blocks
            for step in range(first, last)
            if len(trace.steps[step].state.open) - len(trace.taken[step]) > 1  # else its root leaves no choice
        },
        blocks=blocks,
    )


def chain_of(trace: Trace, step: int, last: int) -> Chain:
    """The steps behind step `step`, as ranks at what its forward left; `last` is the end of its block.

    It ends before the step that fills the block (a full state is never verified), and before the first one with a token
    that is neither the drawn one nor its runner-up.
    """
    stale = trace.stale(step)
    root = stale.state.fill(*trace.taken[step])
    rank_of = {position: rank for rank, position in enumerate(ranked_positions(root, stale))}
    drawn_L2 = stale.drawn_ids_L2.tolist()
    chain: list[tuple[tuple[int, int], ...]] = []
    for commits in trace.taken[step + 1 : last - 1]:
        if any(token not in drawn_L2[position] for position, token in commits):
            break
        chain.append(tuple(sorted((rank_of[position], drawn_L2[position].index(token)) for position, token in commits)))
    return tuple(chain)


def held_out_prompts(futures: Sequence[Futures], share: float) -> set[tuple[str, str]]:
    """The (task, prompt id) pairs to keep out: a share of each task's prompts, at least one, by the hash of the id.

    Raises ValueError for a task that has no other prompt left.
    """
    prompts: dict[str, set[str]] = defaultdict(set)
    for each in futures:
        prompts[each.task].add(each.prompt_id)
    kept_out: set[tuple[str, str]] = set()
    for task, ids in prompts.items():
        ranked = sorted(ids, key=lambda prompt: hashlib.sha256(prompt.encode()).digest())
        count = math.ceil(share * len(ranked))
        if count == len(ranked):
            raise ValueError(f"traces: {len(ranked)} prompts of {task}: at least 2 are needed, one of them held out")
        kept_out.update((task, prompt) for prompt in ranked[:count])
    return kept_out


def sources_of(futures: Sequence[Futures], kept_out: set[tuple[str, str]]) -> tuple[GraphSource, ...]:
    """Where the trajectories come from, one entry a task and temperature."""
    found: dict[tuple[str, float], list[Futures]] = defaultdict(list)
    for each in futures:
        found[each.task, each.temperature].append(each)
    return tuple(
        GraphSource(
            task=task,
            task_digest=group[0].task_digest,
            split=group[0].split,
            temperature=temperature,
            prompts=len(group),
            held_out=sum((each.task, each.prompt_id) in kept_out for each in group),
        )
        for (task, temperature), group in sorted(found.items())
    )


def judge(futures: Sequence[Futures], nodes: Sequence[DraftNode], budget_max: int) -> Iterator[HeldOutRow]:
    """What the first D nodes are worth on trajectories that were not counted, per task, temperature and D."""
    for group in sorted({(each.task, each.temperature) for each in futures}):
        own = [each for each in futures if (each.task, each.temperature) == group]
        for budget in [budget for budget in JUDGED if budget <= budget_max]:
            graph = {node.key for node in nodes[:budget]}
            yield HeldOutRow(
                task=group[0],
                temperature=group[1],
                budget=budget,
                steps=sum(len(each.chains) for each in own),
                accepted=sum(accepted(chain, graph) for each in own for chain in each.chains.values()),
                tokens=sum(each.tokens for each in own),
                forwards=sum(forwards(each, graph) for each in own),
                draft_free=None
                if own[0].tau is None
                else sum(last - first for each in own for first, last in each.blocks),
            )


def forwards(futures: Futures, graph: Collection[Pairs]) -> int:
    """Target forwards of decoding a trajectory's tokens again with drafts of `graph`: one a round."""
    return sum(
        1
        for first, last in futures.blocks
        for _ in rounds(
            {step - first: futures.chains.get(step, ()) for step in range(first, last)}, last - first, graph
        )
    )
