"""Parts `forward` and `graphs`: what one verification costs at the published sizes, with random weights.

A forward is timed through the project's own session, as users run it, for every number of drafts and prefix, beside the
two floors; then what the walk pays for each state it visits, at the real vocabulary. `graphs` plays the same forwards
from a recorded CUDA graph, which the decoder does not do: it tells how much of the time is the host's.

Shapes: N copies, L block width, R open positions, H hidden, V vocabulary.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from sweeps.spec import DecodeSpec
from tests.gpu.clock import seconds_of, spread
from tests.gpu.floors import Rates, measured_rates
from tests.gpu.guarded import guarded
from tests.gpu.random_target import random_target
from tests.gpu.setting import BLOCK, Row, Rows, Setting
from workers.decoding.active import open_block
from workers.decoding.noise import BlockNoise
from workers.decoding.rule import judge
from workers.decoding.stale import stale_of
from workers.measure_cost import session_of, tree_of
from workers.targets.base import Session, Target
from workers.targets.block_causal import BlockCausalTarget

IDS = range(1, 200)  # ids of the vocabulary that fill prefixes and states


def forward_rows(setting: Setting) -> Rows:
    """The device's rates; then, for every body, its forwards and its walk."""
    rates, row = measured_rates(setting)
    yield row
    for name in setting.shapes:
        yield from guarded(f"forward {name}", partial(timed_rows, name, rates, setting))


def timed_rows(name: str, rates: Rates, setting: Setting) -> Rows:
    """Forwards and walk of one body."""
    target = random_target(name, setting.shapes[name], setting)
    for budget, prefix, session, blocks_NL in forwards(target, setting):
        time = spread(seconds_of(partial(session.forward, blocks_NL), setting))
        yield forward_row("forward", name, target, rates, budget, prefix, time)
    yield from walk_rows(name, target, setting)


def graph_rows(setting: Setting) -> Rows:
    """The same forwards as recorded graphs; one row that says why where that cannot be had."""
    if not setting.on_cuda:
        yield {"kind": "graphs", "skipped": "CUDA graphs need a CUDA device"}
        return
    rates, _ = measured_rates(setting)
    for name in setting.shapes:
        yield from guarded(f"graphs {name}", partial(replayed_rows, name, rates, setting))


def replayed_rows(name: str, rates: Rates, setting: Setting) -> Rows:
    """Recorded forwards of one body."""
    target = random_target(name, setting.shapes[name], setting)
    for budget, prefix, session, blocks_NL in forwards(target, setting):
        session.forward(blocks_NL)
        torch.cuda.synchronize(setting.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            session.forward(blocks_NL)
        time = spread(seconds_of(graph.replay, setting))
        yield forward_row("graph", name, target, rates, budget, prefix, time)


def forwards(target: Target, setting: Setting) -> Iterator[tuple[int, int, Session, Tensor]]:
    """Every budget (0: the root alone) over every prefix: the session and what is forwarded in it."""
    for prefix in setting.prefixes:
        session = session_of(target, IDS, prefix, BLOCK)
        for budget in (0, *setting.budgets):
            tree = tree_of(target, IDS, 1 + budget, BLOCK)
            blocks_NL = torch.tensor([state.tokens for state in tree.states], device=setting.device)
            yield budget, prefix, session, blocks_NL


def forward_row(
    kind: str, name: str, target: BlockCausalTarget, rates: Rates, budget: int, prefix: int, time: Row
) -> Row:
    """A forward's time beside its floors."""
    positions = (1 + budget) * BLOCK
    floors = rates.floors(target.body.shape, positions, prefix, BLOCK)
    return {
        "kind": kind,
        "model": name,
        "weights": "random bfloat16",
        "drafts": budget,
        "positions": positions,
        "prefix": prefix,
        "time": time,
        **floors,
        "over_floor": time["median_s"] / max(floors.values()),
    }


@torch.inference_mode()
def walk_rows(name: str, target: Target, setting: Setting) -> Rows:
    """What a visited state costs (head and verdict), what a round leaves for the drafter, and a block's noise."""
    state = open_block([], BLOCK, BLOCK, target.traits.mask_id)
    blocks_1L = torch.tensor([state.tokens], device=setting.device)
    hidden_LH = session_of(target, IDS, setting.prefixes[0], BLOCK).forward(blocks_1L)[0]
    positions_L = torch.arange(BLOCK, device=setting.device)
    for temperature in (0.0, 1.0):
        rule = DecodeSpec(max_new_tokens=BLOCK, block_length=BLOCK, temperature=temperature)
        noise = BlockNoise(rule, setting.seed, positions_L, target.traits.vocab_size)
        noise_RV = noise.target(0, 0, state.open)
        logits_RV = target.logits(hidden_LH)
        verdict = judge(logits_RV, noise_RV, state.open, rule)
        works = {
            "head": lambda: target.logits(hidden_LH[list(state.open)]),
            "verdict": lambda: judge(logits_RV, noise_RV, state.open, rule),  # noqa: B023  (called at once)
            "stale": lambda: stale_of(verdict, state, (), start=0, spec=rule, own_noise_RV=None),  # noqa: B023
            "noise_of_a_block": lambda: BlockNoise(rule, setting.seed, positions_L, target.traits.vocab_size),  # noqa: B023
        }
        for what, work in works.items():
            yield {
                "kind": "walk",
                "model": name,
                "what": what,
                "temperature": temperature,
                "open": len(state.open),
                "vocab_size": target.traits.vocab_size,
                "time": spread(seconds_of(work, setting)),
            }
