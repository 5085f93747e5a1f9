"""The future an oracle is told: the same from a generation and from a trace, and what it says off the recorded path."""

import pytest

from tests.toys import ToyTarget
from tests.traces import toy_cell
from workers.decoding.state import BlockState, Commit
from workers.replay.future import Future
from workers.replay.record import record


@pytest.mark.parametrize("prompt", ["", "hi", "hell", "hello there"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_generation_and_its_trace_hold_the_same_future(prompt: str, temperature: float) -> None:
    target, cell = ToyTarget(seed=4), toy_cell(temperature=temperature)
    ids = target.encode(prompt)
    generation, trace = record(target, cell, prompt_id="p", prompt_index=0, prompt_ids=ids)
    future = Future.of(generation, cell.decode.block_length)
    assert future == Future.of_trace(trace)
    assert len(future) == len(generation.output_ids) == 10
    filled = dict(enumerate(ids))
    for start, commits in future.blocks.items():
        assert start % 4 == 0
        filled |= {start + position: token for position, token in commits}
    assert [filled[place] for place in range(len(filled))] == [*ids, *generation.output_ids]


def test_the_path_is_told_in_order_and_off_it_what_is_recorded_of_open_positions() -> None:
    future = Future({8: (Commit(2, 5), Commit(0, 6), Commit(3, 7), Commit(1, 8))})
    on = BlockState((9, 9, 5, 9), (0, 1, 3))
    assert future.coming(8, on) == (Commit(0, 6), Commit(3, 7), Commit(1, 8))
    off = BlockState((9, 9, 5, 4), (0, 1))  # position 3 too early, and with another token
    assert future.coming(8, off) == (Commit(0, 6), Commit(1, 8))
    assert future.coming(4, on) == ()
