import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from workers.models.facts import OrderConfig, find_order_model, inspect_order_model
from workers.models.features import OPEN, confidence_rank, path_columns
from workers.models.order_model import OrderModel, load_order_model, save_order_model
from workers.models.order_shapes import STALE_FEATURES

LENGTH = 8


@pytest.fixture(scope="module")
def model() -> OrderModel:
    torch.manual_seed(0)
    return OrderModel(OrderConfig(block_length=LENGTH)).eval()


@pytest.fixture
def saved(model, tmp_path) -> Path:
    save_order_model(model, tmp_path / "model")
    return tmp_path / "model"


def asked(model, depths, features):
    """q of states given by fill depths, on one stale distribution."""
    depth = torch.tensor(depths)
    rank = confidence_rank(torch.arange(LENGTH, 0, -1.0), torch.ones(LENGTH, dtype=torch.bool)).expand_as(depth)
    with torch.inference_mode():
        hidden = model.encode(model.embed_stale(features), path_columns(depth, rank))
        return model.log_order(hidden, depth == OPEN).exp()


STATES = [
    [0, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN],
    [0, OPEN, 1, OPEN, OPEN, 2, OPEN, OPEN],
    [0, OPEN, 2, OPEN, OPEN, 1, OPEN, OPEN],
    [0, 1, 2, 3, 4, OPEN, OPEN, 5],
]


def test_probabilities_over_open_positions_only(model):
    q = asked(model, STATES, torch.randn(1, LENGTH, STALE_FEATURES))
    assert q.sum(-1).tolist() == pytest.approx([1.0] * 4, abs=1e-6)
    for row, state in zip(q, STATES, strict=True):
        assert all((value > 0) == (depth == OPEN) for value, depth in zip(row.tolist(), state, strict=True))


def test_a_batch_of_states_equals_one_by_one_in_any_order(model):
    features = torch.randn(1, LENGTH, STALE_FEATURES)
    together = asked(model, STATES, features)
    for number, state in enumerate(STATES):
        assert torch.allclose(asked(model, [state], features)[0], together[number], atol=1e-6)
    assert torch.allclose(asked(model, STATES[::-1], features).flip(0), together, atol=1e-6)


def test_the_order_of_the_draft_is_seen(model):
    q = asked(model, STATES, torch.randn(1, LENGTH, STALE_FEATURES))
    assert not torch.allclose(q[1], q[2], atol=1e-4)


def test_padding_changes_nothing(model):
    """In training, positions of wider states' blocks are padding for narrower ones."""
    depth = torch.tensor([[-1, 0, OPEN, OPEN, OPEN, -1, OPEN, OPEN]])
    rank = confidence_rank(torch.arange(LENGTH, 0, -1.0)[None], depth >= 0)
    at = torch.tensor([1, 2, 3, 4, 6, 7])
    features, columns, open = (
        torch.randn(1, 6, STALE_FEATURES),
        path_columns(depth, rank)[:, at],
        (depth == OPEN)[:, at],
    )
    padded = [torch.cat((part, part[:, :3]), 1) for part in (features, columns, open)]
    padded[2][:, 6:] = False
    seen = torch.arange(9)[None] < 6
    with torch.inference_mode():
        short = model.log_order(model.encode(model.embed_stale(features), columns), open)
        long = model.log_order(model.encode(model.embed_stale(padded[0]), padded[1], seen), padded[2])
    assert torch.allclose(short, long[:, :6], atol=1e-5)
    assert long[:, 6:].exp().tolist() == [[0.0] * 3]


def test_size_is_the_published_one_at_a_block_of_32():
    count = sum(parameter.numel() for parameter in OrderModel(OrderConfig(block_length=32)).parameters())
    assert 0.60e6 < count < 0.64e6


def test_saved_and_loaded_within_half_precision(model, saved):
    loaded = load_order_model(saved, block_length=LENGTH)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert not loaded.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float()), name


def test_equal_weights_have_equal_digests_and_others_do_not(model, saved, tmp_path):
    facts = inspect_order_model(saved)
    assert facts.block_length == LENGTH
    assert save_order_model(model, tmp_path / "again") == facts.digest
    torch.manual_seed(1)
    assert save_order_model(OrderModel(OrderConfig(block_length=LENGTH)), tmp_path / "other") != facts.digest


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_missing_files_are_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        load_order_model(saved, block_length=LENGTH)


def test_altered_weights_are_refused(saved):
    data = bytearray((saved / "model.safetensors").read_bytes())
    data[-5] ^= 1
    (saved / "model.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="digest"):
        inspect_order_model(saved)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("version", 2, "version is 2: allowed is 1"),
        ("format", "gpt", "format is 'gpt'"),
        ("block_length", 16, "digest"),
        ("block_length", "8", "block_length"),
        ("layers", None, "layers"),
    ],
)
def test_other_settings_are_refused(saved, field, value, message):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {field: value}))
    with pytest.raises(ValueError, match=message):
        inspect_order_model(saved)


@pytest.mark.parametrize("text", ["", "[1]", '{"format": '])
def test_a_broken_configuration_is_one_line(saved, text):
    (saved / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config.json is not a JSON object") as caught:
        inspect_order_model(saved)
    assert "\n" not in str(caught.value)


def test_another_block_length_is_refused(saved):
    with pytest.raises(ValueError, match="block_length is 8: allowed is the decoder's 32"):
        load_order_model(saved, block_length=32)


def test_unknown_checkpoint_names_are_refused(saved):
    assert find_order_model(str(saved)) == saved
    for name in ("", "no-such-drafter"):
        with pytest.raises(ValueError, match="order model: checkpoint"):
            find_order_model(name)


def test_inspecting_needs_no_torch(saved):
    code = (
        f"import sys; from workers.models.facts import inspect_order_model as i; print(i({str(saved)!r}).digest);"
        "assert 'torch' not in sys.modules and 'safetensors' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == inspect_order_model(saved).digest


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"block_length": 0}, "block_length is 0: allowed is 1 to 1024"),
        ({"block_length": 1025}, "block_length is 1025"),
        ({"layers": 0}, "layers is 0: allowed is 1 to 64"),
        ({"layers": 10**9}, "layers is 1000000000"),
        ({"width": 0}, "width is 0: allowed is 1 to 16384"),
        ({"feedforward": 10**30}, "feedforward is 1000000000000000000000000000000"),
        ({"heads": 7}, "heads is 7: allowed is a divisor of the width, 128"),
        ({"heads": 0}, "heads is 0"),
        ({"top_k": 31}, "top_k is 31: allowed is 32"),
    ],
)
def test_settings_that_no_model_can_have(setting: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        OrderConfig(**{"block_length": 8, **setting})


@pytest.mark.parametrize(
    "config",
    [
        OrderConfig(block_length=32),
        OrderConfig(block_length=5, layers=2, width=24, heads=3, feedforward=7),
    ],
)
def test_the_shapes_that_planning_asks_for_are_those_of_the_model(config: OrderConfig) -> None:
    made = {name: tuple(tensor.shape) for name, tensor in OrderModel(config).state_dict().items()}
    assert config.weight_shapes == made
