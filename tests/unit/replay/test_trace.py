import hashlib
import struct
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toys import ToyTarget
from tests.traces import same, toy_cell, toy_trace
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.stale import Stale
from workers.decoding.state import Commit
from workers.drafters.none import NoDrafter
from workers.replay.blocks import steps_of
from workers.replay.container import PREFIX, pack, unpack
from workers.replay.trace import MAGIC, VERSION, Trace, decode_trace, encode_trace


@pytest.fixture(scope="module")
def trace() -> Trace:
    return toy_trace(ToyTarget(vocab_size=40), toy_cell(temperature=0.7))


@settings(max_examples=25, deadline=None)
@given(
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    noise=st.sampled_from(["coupled", "independent"]),
    length=st.integers(1, 5),
    new=st.integers(1, 12),
    prompt=st.integers(0, 9),
    vocabulary=st.sampled_from([11, 40]),
    seed=st.integers(0, 99),
    tau=st.sampled_from([None, 0.3, 0.6, 0.9]),
)
def test_every_step_comes_back_bit_for_bit(temperature, noise, length, new, prompt, vocabulary, seed, tau):
    target = ToyTarget(seed=seed, vocab_size=vocabulary)
    cell = toy_cell(temperature=temperature, length=length, new=new, tau=tau)
    cell = replace(cell, decode=replace(cell.decode, noise=noise))
    trace = decode_trace(encode_trace(toy_trace(target, cell, prompt="x" * prompt)))

    seen = []
    generation = decode(
        target,
        NoDrafter(),
        target.encode("x" * prompt),
        spec=cell.decode,
        seed=sample_seed(cell.seed, "p0"),
        watch=lambda step: seen.append((step.start, step.fresh(), step.verdict)),
    )
    assert len(trace) == len(seen) == generation.counters.nfe
    assert len(trace.commits) == new
    assert tuple(map(len, trace.taken)) == generation.steps
    for number, (start, stale, verdict) in enumerate(seen):
        assert trace.steps[number].start == start
        assert trace.taken[number] == verdict.step
        assert trace.margins[number] == verdict.margin
        back = trace.stale(number)
        for field in fields(Stale):
            if field.name in ("hidden_LH", "noise_LK"):  # only where a set model is to learn from them
                assert getattr(back, field.name) is None
                continue
            assert same(getattr(back, field.name), getattr(stale, field.name)), (number, field.name)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_hidden_states_and_noise_come_back_where_they_are_asked_for(temperature):
    """Hidden states scaled to a root mean square of 1 in half precision, the shared noise in single precision."""
    target, cell = ToyTarget(vocab_size=40), toy_cell(temperature=temperature, tau=0.9)
    trace = decode_trace(encode_trace(toy_trace(target, cell, states=True)))
    assert trace.states
    assert not toy_trace(target, cell).states
    seen = []
    decode(
        target,
        NoDrafter(),
        target.encode("hello"),
        spec=cell.decode,
        seed=sample_seed(cell.seed, "p0"),
        watch=lambda step: seen.append(step.fresh()),
    )
    for number, stale in enumerate(seen):
        back, open = trace.stale(number), list(stale.state.open)
        hidden = stale.hidden_LH[open].double()
        scaled = hidden / hidden.square().mean(-1, keepdim=True).sqrt()
        assert back.hidden_LH[open].flatten().tolist() == pytest.approx(scaled.flatten().tolist(), abs=2e-3)
        assert (back.noise_LK is None) == (temperature == 0)
        if temperature:
            assert back.noise_LK[open].flatten().tolist() == pytest.approx(stale.noise_LK[open].flatten().tolist())
    arrays = {name: rows[:-1] if name == "hidden" else rows for name, rows in trace.arrays.items()}
    with pytest.raises(ValueError, match=f"hidden has {trace.rows[-1] - 1} rows: its commits ask for {trace.rows[-1]}"):
        Trace.of(trace.header, arrays)


def test_the_header_says_where_it_comes_from(trace):
    header, cell = trace.header, toy_cell(temperature=0.7)
    assert header.cell_id == cell.cell_id
    assert (header.target_digest, header.task, header.split, header.prompt_id) == ("toy-0", "toy", "train", "p0")
    assert header.decode == cell.decode
    assert header.seed == cell.seed
    assert list(header.prompt_ids) == ToyTarget(vocab_size=40).encode("hello")


def test_equal_traces_have_equal_bytes(trace):
    assert encode_trace(decode_trace(encode_trace(trace))) == encode_trace(trace)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_flipped_bit_is_refused(trace, data):
    content = bytearray(encode_trace(trace))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"^trace"):
        decode_trace(bytes(content))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_truncation_is_refused(trace, data):
    content = encode_trace(trace)
    with pytest.raises(ValueError, match=r"^trace"):
        decode_trace(content[: data.draw(st.integers(0, len(content) - 1))])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" * 30, b'{"format": "trace"}' * 9])
def test_foreign_files_are_refused(content):
    with pytest.raises(ValueError, match="not a file of this kind"):
        decode_trace(content)


def test_another_version_is_refused(trace):
    content = bytearray(encode_trace(trace))
    struct.pack_into("<I", content, len(MAGIC), VERSION + 1)
    with pytest.raises(ValueError, match="version is 2: allowed is 1"):
        decode_trace(bytes(content))


def repacked(trace, *, header=None, **arrays):
    """A file with a right digest and other content."""
    found, stored = unpack(encode_trace(trace), MAGIC, VERSION, "trace")
    kept = {name: array for name, array in {**stored, **arrays}.items() if array is not None}
    return pack(MAGIC, VERSION, {**found, **(header or {})}, kept)


def test_contents_that_contradict_each_other_are_refused(trace):
    with pytest.raises(ValueError, match="logodds has 3 rows"):
        decode_trace(repacked(trace, logodds=np.zeros(3)))
    with pytest.raises(ValueError, match="arrays are"):
        decode_trace(repacked(trace, entropy=None))
    with pytest.raises(ValueError, match=r"header.*seed"):
        decode_trace(repacked(trace, header={"seed": "three"}))
    twice = trace.arrays["positions"].copy()
    twice[1] = twice[0]
    with pytest.raises(ValueError, match="step 1 fills position"):
        decode_trace(repacked(trace, positions=twice))


def test_steps_of_several_commits_that_contradict_their_commits_are_refused():
    sets = toy_trace(ToyTarget(scale=3.0), toy_cell(tau=0.5))
    sizes = sets.arrays["sizes"]
    assert max(sizes) > 1
    assert decode_trace(repacked(sets)).taken == sets.taken
    with pytest.raises(ValueError, match=r"10 commits and \d+ steps that do not fit one another"):
        decode_trace(repacked(sets, sizes=sizes[:-1]))
    with pytest.raises(ValueError, match="arrays are"):
        decode_trace(repacked(sets, sizes=None))
    twice = sets.arrays["positions"].copy()
    first = int(np.argmax(sizes > 1))
    at = int(sizes[:first].sum())
    twice[at + 1] = twice[at]
    with pytest.raises(ValueError, match=f"step {first} fills position"):
        decode_trace(repacked(sets, positions=twice))


def test_a_trace_of_the_standard_rule_says_nothing_of_rules(trace):
    """Its bytes are what they were before there was another rule, so that digests of training data stay."""
    header, arrays = unpack(encode_trace(trace), MAGIC, VERSION, "trace")
    assert not {"commit", "tau"} & {*header["decode"]}
    assert "sizes" not in arrays


def test_states_follow_from_prompt_and_commits():
    spec = toy_cell(length=4, new=5).decode
    commits = [Commit(3, 7), Commit(2, 8), Commit(1, 5), Commit(0, 6), Commit(2, 4)]
    steps = steps_of((1, 2, 3, 4, 9, 9), [(commit,) for commit in commits], mask_id=0, decode=spec)
    assert [step.start for step in steps] == [4, 4, 8, 8, 8]
    assert [step.state.tokens for step in steps] == [
        (9, 9, 0, 0),
        (9, 9, 0, 7),
        (0, 0, 0, 0),
        (0, 5, 0, 0),
        (6, 5, 0, 0),
    ]
    assert [step.state.open for step in steps] == [(2, 3), (2,), (0, 1, 2), (0, 2), (2,)]  # the fourth is never filled
    assert [step.fill_order for step in steps] == [(), (3,), (), (1,), (1, 0)]


@pytest.mark.parametrize("array", [np.arange(7.0), np.zeros((0, 3), np.int32), np.array([[1, -2], [3, 2**40]])])
def test_container_keeps_shape_dtype_and_values(array):
    header, arrays = unpack(pack(MAGIC, 1, {"a": [1, "é"]}, {"x": array}), MAGIC, 1, "file")
    assert header == {"a": [1, "é"]}
    assert arrays["x"].dtype == array.dtype
    assert arrays["x"].shape == array.shape
    assert np.array_equal(arrays["x"], array)


def test_container_layout_is_as_documented():
    data = pack(b"ABCDEFGH", 7, {}, {})
    magic, version, length, digest = PREFIX.unpack_from(data)
    assert (magic, version, length) == (b"ABCDEFGH", 7, len(data) - 52)
    assert digest == hashlib.sha256(data[52:]).digest()
