"""A state file is used whole or refused with the way out."""

from dataclasses import replace

import pytest
import torch

from workers.models.facts import OrderConfig
from workers.models.order_model import OrderModel
from workers.training.order_recipe import OrderRecipe
from workers.training.order_state import read_state, write_state
from workers.training.order_step import Trainee
from workers.training.update import make_optimizer

RECIPE = OrderRecipe(steps=9)


def trainee(seed=0, width=16):
    torch.manual_seed(seed)
    made = Trainee(OrderModel(OrderConfig(block_length=4, layers=1, width=width, heads=2, feedforward=16)))
    optimizer = make_optimizer(made, RECIPE)
    sum(parameter.sum() for parameter in made.parameters()).backward()
    optimizer.step()
    return made, optimizer


@pytest.fixture
def path(tmp_path):
    write_state(tmp_path / "state.pt", *trainee(), recipe=RECIPE, data_digest="d", step=4, seconds=2.5)
    return tmp_path / "state.pt"


def read(path, **other):
    fresh = trainee(seed=1)
    return read_state(path, *fresh, **({"recipe": RECIPE, "data_digest": "d"} | other)), fresh


def test_what_was_written_comes_back(path):
    ((step, seconds), (model, optimizer)) = read(path)
    was, before = trainee()
    assert (step, seconds) == (4, 2.5)
    for ours, theirs in zip(model.parameters(), was.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(optimizer.state[ours]["exp_avg_sq"], before.state[theirs]["exp_avg_sq"])
    assert [p.name for p in path.parent.iterdir()] == ["state.pt"]


def test_the_number_of_threads_comes_back_too(path):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        read(path)
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(before)


def test_no_file_is_a_fresh_start(tmp_path):
    assert read(tmp_path / "none.pt")[0] == (0, 0.0)


def change(path, edit):
    state = torch.load(path, weights_only=True)
    edit(state)
    torch.save(state, path)


def moments(state):
    return state["optimizer"]["state"][0]


DAMAGE = {
    "no file of torch": lambda path: path.write_bytes(b"nonsense"),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-1000]),
    "not a mapping": lambda path: torch.save([1, 2], path),
    "without a step": lambda path: change(path, lambda state: state.pop("step")),
    "another step": lambda path: change(path, lambda state: state.update(step=5)),
    "threads that are none": lambda path: change(path, lambda state: state.update(threads=0)),
    "a time that is text": lambda path: change(path, lambda state: state.update(seconds="long")),
    "a recipe that is text": lambda path: change(path, lambda state: state.update(recipe="fast")),
    "a tensor less": lambda path: change(path, lambda state: state["trainee"].popitem()),
    "a tensor of another shape": lambda path: change(
        path, lambda state: state["trainee"].update({"order.head.bias": torch.zeros(7)})
    ),
    "a tensor that is none": lambda path: change(path, lambda state: state["trainee"].update({"order.head.bias": 3})),
    "one number of a weight": lambda path: change(path, lambda state: state["trainee"]["order.head.bias"].add_(1e-6)),
    "one number of a moment": lambda path: change(path, lambda state: moments(state)["exp_avg"].view(-1)[0].add_(1)),
    "a moment of another shape": lambda path: change(path, lambda state: moments(state).update(exp_avg=torch.ones(3))),
    "no moments": lambda path: change(path, lambda state: state["optimizer"]["state"].clear()),
    "another model": lambda path: write_state(
        path, *trainee(width=32), recipe=RECIPE, data_digest="d", step=4, seconds=0.0
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_named_with_what_to_do(path, what):
    DAMAGE[what](path)
    with pytest.raises(ValueError, match=r"state\.pt: damaged \(.*\); delete it to start again") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 450


def test_a_flipped_byte_anywhere_is_found_or_harmless(path):
    """Every byte that changes what is loaded is found: zip padding alone may differ without harm."""
    good = path.read_bytes()
    expected = [parameter.detach().clone() for parameter in read(path)[1][0].parameters()]
    refused = 0
    for at in range(0, len(good), 997):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :])
        try:
            (step, _), (model, _) = read(path)
        except ValueError:
            refused += 1
        else:
            assert step == 4
            assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected, strict=True))
    assert refused > 10


def test_another_recipe_and_other_traces_are_named(path):
    with pytest.raises(ValueError, match=r"another recipe \(it differs in rate\)"):
        read(path, recipe=replace(RECIPE, rate=1.0))
    with pytest.raises(ValueError, match="belongs to other traces"):
        read(path, data_digest="e")
