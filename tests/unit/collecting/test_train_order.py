import json

import pytest
import torch

from orchestrator.collect import CollectProgress
from orchestrator.pool_inline import InlinePool
from orchestrator.train import OrderRequest, order_cells, train_order_command
from tests.tiny_checkpoints import write_checkpoint
from workers.models.facts import inspect_order_model
from workers.training.order_recipe import OrderRecipe

RECIPE = OrderRecipe(steps=3, batch=8, rise=1, evaluate_every=3)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-rand"
    return str(write_checkpoint(folder, config={"max_position_embeddings": 512}))


def request(checkpoint, **options) -> OrderRequest:
    values = {"targets": (checkpoint,), "tasks": ("tiny-arith",), "prompts": 3, "max_new_tokens": 7, "block_length": 4}
    return OrderRequest(**(values | options))


@pytest.mark.slow
def test_from_names_to_a_checkpoint_and_a_second_run_collects_nothing(checkpoint, tmp_path):
    wanted = request(checkpoint, tasks=("tiny-arith", "tiny-code"))
    threads = torch.get_num_threads()
    outcome = train_order_command(wanted, out=tmp_path, pool=InlinePool(threads=threads + 1), recipe=RECIPE)
    assert torch.get_num_threads() == outcome.trained.card.threads == threads  # not those it was decoded with
    assert outcome.traces == 2 * 2 * 3
    assert outcome.failures == ()
    facts = inspect_order_model(tmp_path / "model")
    assert (facts.block_length, facts.digest) == (4, outcome.trained.digest)
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    sources = [(source["task"], source["temperature"], source["prompts"]) for source in card["sources"]]
    assert sources == [("tiny-arith", 0.0, 3), ("tiny-arith", 1.0, 3), ("tiny-code", 0.0, 3), ("tiny-code", 1.0, 3)]
    assert card["prompts"] == 6  # a prompt counts once, however often it was decoded
    assert {source["target_digest"] for source in card["sources"]} == {order_cells(wanted).learnt[0].target.digest}

    seen: list[CollectProgress] = []
    (tmp_path / "state.pt").unlink()
    again = train_order_command(wanted, out=tmp_path, pool=InlinePool(), recipe=RECIPE, on_collect=seen.append)
    assert [(p.kept, p.done) for p in seen] == [(12, 0)]
    assert again.trained.digest == outcome.trained.digest


def test_cells_are_draft_free_over_the_train_split(checkpoint):
    cells = order_cells(request(checkpoint, temperatures=(0.0, 0.5, 1.0), seed=7)).learnt
    assert [cell.decode.temperature for cell in cells] == [0.0, 0.5, 1.0]
    assert all(cell.is_baseline and cell.task.split == "train" and cell.seed == 7 for cell in cells)
    assert len({cell.cell_id for cell in cells}) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ("tiny-sdra",)}, "unknown target.*tiny-sdra.*tiny-sdar"),
        ({"targets": ("./nowhere",)}, "no checkpoint in"),
        ({"tasks": ("tiny-arit",)}, "unknown task.*tiny-arith"),
        ({"tasks": ("jsonl",)}, "needs a file: jsonl:PATH"),
        ({"tasks": ("tiny-arith:x",)}, "reads no file"),
        ({"tasks": ()}, "tasks is .*one or more"),
        ({"tasks": ("tiny-arith", "tiny-arith")}, "each once"),
        ({"temperatures": (0.0, -1.0)}, "temperature is -1.0"),
        ({"temperatures": (0, 0.0)}, "each once"),
        ({"prompts": 1}, "prompts is 1: allowed is a whole number from 2"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"block_length": 0}, "block_length is 0"),
        ({"max_new_tokens": 10**6}, "max_new_tokens is 1000000: allowed is a number below"),
        ({"dtype": "int8"}, "dtype"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_requests_are_refused_before_any_work(checkpoint, tmp_path, options, message):
    class NeverStarted(InlinePool):
        def start(self, at_most=0):
            raise AssertionError("work was started")

    with pytest.raises(ValueError, match=message) as caught:
        train_order_command(request(checkpoint, **options), out=tmp_path, pool=NeverStarted(), recipe=RECIPE)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_task_no_prompt_of_which_fits_is_an_error(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="no trajectory of tiny-arith at T = 0"):
        train_order_command(request(checkpoint, max_new_tokens=511), out=tmp_path, pool=InlinePool(), recipe=RECIPE)
