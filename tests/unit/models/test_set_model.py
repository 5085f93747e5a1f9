"""The set model: its size, what its answers depend on, and its checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.toys import ToyTarget
from workers.catalog import ZOO
from workers.models.features import OPEN, confidence_rank, path_columns
from workers.models.named import find_artifact
from workers.models.set_facts import SET_FEATURES, SetConfig, find_set_model, inspect_set_model
from workers.models.set_features import ABSENT
from workers.models.set_model import SetModel, bind, load_set_model, save_set_model

LENGTH, WIDTH = 8, 11
SMALL = SetConfig(block_length=LENGTH, hidden=WIDTH, layers=2, width=32, feedforward=64, candidate_width=24)
STATES = [
    [0, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN, OPEN],
    [0, OPEN, 1, OPEN, OPEN, 2, OPEN, OPEN],
    [0, OPEN, 2, OPEN, OPEN, 1, OPEN, OPEN],
    [0, 1, 1, 2, 2, OPEN, OPEN, 3],
]


@pytest.fixture(scope="module")
def model() -> SetModel:
    torch.manual_seed(0)
    return SetModel(SMALL).eval()


@pytest.fixture
def saved(model: SetModel, tmp_path: Path) -> Path:
    save_set_model(model, tmp_path / "model")
    return tmp_path / "model"


class Asked:
    """One stale distribution of an untouched block, and answers about states given by fill depths and tokens."""

    def __init__(self, model: SetModel) -> None:
        torch.manual_seed(5)
        self.model = model
        self.features, self.hidden = torch.randn(1, LENGTH, SET_FEATURES), torch.randn(1, LENGTH, WIDTH)
        self.ids = torch.arange(LENGTH * 16).view(1, LENGTH, 16) % 50
        self.logprobs = torch.randn(1, LENGTH, 16).log_softmax(-1)
        self.embedded = torch.randn(50, WIDTH)
        self.tokens = torch.arange(LENGTH)[None]

    def __call__(self, depths: list[list[int]], extra: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Membership log-odds and candidate log probabilities, behind `extra` positions of padding."""
        depth = torch.tensor(depths)
        rank = confidence_rank(torch.arange(LENGTH, 0, -1.0), torch.ones(LENGTH, dtype=torch.bool)).expand_as(depth)
        columns, model = path_columns(depth, rank), self.model
        parts = [self.features, self.hidden, self.ids, self.logprobs, self.tokens.expand(1, -1)]
        parts = [torch.cat((part, part[:, :extra]), 1) for part in parts]
        columns = torch.cat((columns, columns[:, :extra]), 1)
        open = torch.cat((depth == OPEN, (depth == OPEN)[:, :extra]), 1)
        seen = (torch.arange(LENGTH + extra) < LENGTH).expand_as(open) if extra else None
        features, hidden, ids, logprobs, tokens = parts
        with torch.inference_mode():
            table = model.project(self.embedded)
            content = torch.where(open[..., None], model.mean(ids, logprobs, table[ids]), table[tokens])
            encoded = model.encode_states(model.embed_stale(features, hidden), content, columns, seen)
            return model.membership(encoded), model.scores(encoded, ids, logprobs, table[ids])


def test_about_five_million_parameters_at_the_published_width_of_target() -> None:
    """SDAR-8B is 4096 wide; the published set drafter has 5.1 M parameters."""
    count = sum(parameter.numel() for parameter in SetModel(SetConfig(block_length=32, hidden=4096)).parameters())
    assert round(count / 1e6, 1) == 5.1


@pytest.mark.parametrize("config", [SetConfig(block_length=32, hidden=192), SMALL])
def test_the_shapes_that_planning_asks_for_are_those_of_the_model(config: SetConfig) -> None:
    made = {name: tuple(tensor.shape) for name, tensor in SetModel(config).state_dict().items()}
    assert config.weight_shapes == made


def test_a_batch_of_states_equals_one_by_one_in_any_order(model: SetModel) -> None:
    asked = Asked(model)
    together = asked(STATES)
    turned = asked(STATES[::-1])
    for number, state in enumerate(STATES):
        for own, all_of_them, backwards in zip(asked([state]), together, turned, strict=True):
            assert torch.allclose(own[0], all_of_them[number], atol=1e-5)
            assert torch.allclose(backwards[-1 - number], all_of_them[number], atol=1e-5)


def test_which_step_filled_a_position_is_seen(model: SetModel) -> None:
    odds, logp = Asked(model)(STATES)
    assert not torch.allclose(odds[1], odds[2], atol=1e-4)
    assert not torch.allclose(logp[1], logp[2], atol=1e-4)


def test_the_token_that_fills_a_position_is_seen_and_what_stays_open_is_not_mixed_up(model: SetModel) -> None:
    asked = Asked(model)
    before, _ = asked(STATES[1:2])
    asked.tokens = asked.tokens.clone()
    asked.tokens[0, 1] = 40  # open there: its token is not looked at
    assert torch.equal(asked(STATES[1:2])[0], before)
    asked.tokens[0, 2] = 41  # filled by the first drafted step
    assert not torch.allclose(asked(STATES[1:2])[0], before, atol=1e-4)


def test_hidden_states_tau_and_candidates_are_seen(model: SetModel) -> None:
    before = Asked(model)(STATES)
    for change in ("hidden", "features", "logprobs"):
        asked = Asked(model)
        value = getattr(asked, change).clone()
        value[0, 3] = value[0, 3].flip(-1)
        setattr(asked, change, value)
        odds, logp = asked(STATES)
        assert not torch.allclose(odds, before[0], atol=1e-4)
        assert not torch.allclose(logp, before[1], atol=1e-4)


def test_padding_changes_nothing(model: SetModel) -> None:
    asked = Asked(model)
    for short, long in zip(asked(STATES), asked(STATES, extra=3), strict=True):
        assert torch.allclose(short, long[:, :LENGTH], atol=1e-5)


def test_scores_are_log_probabilities_and_absent_candidates_have_none(model: SetModel) -> None:
    asked = Asked(model)
    asked.ids[0, 2, 5:] = ABSENT
    _, logp = asked(STATES)
    assert logp.exp().sum(-1).flatten().tolist() == pytest.approx([1.0] * logp[..., 0].numel(), abs=1e-5)
    assert (logp[:, 2, 5:] == -torch.inf).all()


def test_an_untrained_query_leaves_the_stale_distribution(model: SetModel) -> None:
    fresh = SetModel(SMALL).eval()
    torch.nn.init.zeros_(fresh.query.weight)
    torch.nn.init.zeros_(fresh.query.bias)
    asked = Asked(fresh)
    assert torch.allclose(asked(STATES)[1], asked.logprobs.expand(4, -1, -1), atol=1e-5)


def test_binding_projects_every_token_once(model: SetModel) -> None:
    target = ToyTarget(vocab_size=WIDTH)
    bound = bind(model, target)
    assert bound.table_VE.shape == (WIDTH, 24)
    with torch.inference_mode():
        assert torch.allclose(bound.table_VE[4], model.project(target.embed(torch.tensor([4]))[0]), atol=1e-6)


def test_a_target_of_another_width_is_refused(model: SetModel) -> None:
    with pytest.raises(ValueError, match=r"reads vectors of width 11, the target's are 9 wide.*--calibrate-from"):
        bind(model, ToyTarget(vocab_size=9))


def test_saved_and_loaded_within_half_precision(model: SetModel, saved: Path) -> None:
    loaded = load_set_model(saved, block_length=LENGTH)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert not loaded.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float()), name
    facts = inspect_set_model(saved)
    assert (facts.block_length, facts.hidden, facts.commit, facts.made_on) == (LENGTH, WIDTH, "threshold", ())


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_missing_files_are_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        load_set_model(saved, block_length=LENGTH)


def test_altered_weights_and_settings_are_refused(saved: Path) -> None:
    weights = saved / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(data)
    with pytest.raises(ValueError, match="digest is"):
        inspect_set_model(saved)
    data[-5] ^= 1
    weights.write_bytes(data)
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {"hidden": 12}))
    with pytest.raises(ValueError, match="digest is"):
        inspect_set_model(saved)


def test_another_block_length_is_refused(saved: Path) -> None:
    with pytest.raises(ValueError, match=r"set model .*block_length is 8: allowed is the decoder's 32"):
        load_set_model(saved, block_length=32)


def test_a_model_of_the_other_kind_is_named(saved: Path) -> None:
    with pytest.raises(ValueError, match=r"order model .*: this is a set model"):
        find_artifact(str(saved), noun="order model", file="config.json")
    with pytest.raises(ValueError, match=r"set model .*: this is an order model"):
        find_set_model(str(ZOO / "drafters" / "spot-tiny-sdar"))
    with pytest.raises(ValueError, match=r"set model: checkpoint 'spot-tiny-sdar' is neither"):
        find_set_model("spot-tiny-sdar")


def test_inspecting_needs_no_torch(saved: Path) -> None:
    code = (
        f"import sys; from workers.models.set_facts import inspect_set_model as i; print(i({str(saved)!r}).digest);"
        "assert 'torch' not in sys.modules and 'safetensors' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == inspect_set_model(saved).digest


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"block_length": 0}, "block_length is 0"),
        ({"hidden": 0}, "hidden is 0: allowed is 1 to 16384"),
        ({"candidates": 8}, "candidates is 8: allowed is 16"),
        ({"heads": 7}, "heads is 7: allowed is a divisor of the width, 256"),
    ],
)
def test_settings_that_no_model_can_have(setting: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SetConfig(**{"block_length": 8, "hidden": 8, **setting})


def test_a_width_that_does_not_divide_is_refused() -> None:
    assert SetConfig.sized(block_length=8, hidden=8, width=128, layers=3).candidate_width == 88
    with pytest.raises(ValueError, match="width is 100: allowed is a multiple of 32"):
        SetConfig.sized(block_length=8, hidden=8, width=100, layers=3)
