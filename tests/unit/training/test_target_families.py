"""A few steps of the real trainer for every family: it learns in each phase, resumes bit for bit, and what it ships in
the published layout computes what was trained.
"""

from dataclasses import asdict, replace
from itertools import chain, combinations
from json import dumps
from pathlib import Path

import pytest
import torch

from workers.catalog import FAMILIES
from workers.targets.inspect import inspect_checkpoint
from workers.targets.layers import Body, block_causal, dense_attention
from workers.targets.load import load_target
from workers.training.balance import Balance
from workers.training.layouts import LAYOUTS
from workers.training.target import Progress, examples, rate_scale, train_target
from workers.training.target_recipes import RECIPES, TINY_DREAM, TINY_LLADA, TINY_LLADA2, TINY_SDAR, TargetRecipe
from workers.training.target_ship import export, ship_target
from workers.training.target_state import same_recipe
from workers.training.tiny_tokenizer import WORDS, train_tokenizer

SMALL = {
    "examples_per_task": 40,
    "hidden": 32,
    "layers": 2,
    "heads": 2,
    "head_dim": 16,
    "mlp": 48,
    "warm_start": 4,
    "steps": 4,
    "batch": 4,
    "rise": 2,
}


def _smoke(recipe: TargetRecipe, **changes: object) -> TargetRecipe:
    """A recipe of the same family that takes seconds."""
    small = SMALL | {"kv_heads": 2 if recipe.family == "llada" else 1}
    if recipe.whole_steps:
        small |= {"whole_steps": 4, "whole_batch": 4}
    if recipe.experts:
        small |= {"experts": replace(recipe.experts, mlp=12)}
    return replace(recipe, name="smoke", **{**small, **changes})  # type: ignore[arg-type]


@pytest.fixture(params=[TINY_LLADA2, TINY_LLADA, TINY_DREAM], ids=lambda recipe: recipe.family)
def recipe(request: pytest.FixtureRequest) -> TargetRecipe:
    return _smoke(request.param)


def test_each_phase_begins_anew_and_the_last_one_falls() -> None:
    recipe = _smoke(TINY_LLADA, warm_start=4, steps=6, whole_steps=10, rise=2, decay=0.5)
    assert [rate_scale(recipe, step) for step in range(20)] == [
        *[0.5, 1.0, 1.0, 1.0],
        *[0.5, 1.0, 1.0, 1.0, 1.0, 1.0],
        *[0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2],
    ]


def test_the_loss_falls_in_every_phase(recipe: TargetRecipe) -> None:
    steps: list[Progress] = []
    longer = {"warm_start": 25, "steps": 15} | ({"whole_steps": 15} if recipe.whole_steps else {})
    train_target(replace(recipe, batch=8, rise=5, **longer), progress=steps.append)
    losses = {phase: [p.loss for p in steps if p.phase == phase] for phase in ("warm", "diffusion", "whole")}
    assert [len(losses[phase]) for phase in losses] == [25, 15, 15 if recipe.whole_steps else 0]
    assert losses["warm"][-1] < losses["warm"][0] - 0.5
    last = losses["whole"] or losses["diffusion"]
    assert sum(last[-3:]) < sum(losses["warm"][:3])


def test_a_resumed_run_gives_the_same_weights(
    recipe: TargetRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the second phase; the balance of a mixture goes on as well."""
    whole = train_target(recipe).body.state_dict()
    monkeypatch.setattr("workers.training.target.SAVE_EVERY", 2)

    def stop(progress: Progress) -> None:
        if progress.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_target(recipe, progress=stop, resume=tmp_path / "state.pt")
    steps: list[Progress] = []
    resumed = train_target(recipe, progress=steps.append, resume=tmp_path / "state.pt").body.state_dict()
    assert steps[0].step == 7
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_what_is_exported_computes_what_was_trained(recipe: TargetRecipe, tmp_path: Path) -> None:
    """Loaded from the published layout: the trained body with its weights rounded to bfloat16, bit for bit."""
    trained = train_target(recipe)
    export(trained, tmp_path)
    assert inspect_checkpoint(tmp_path).architecture == LAYOUTS[recipe.family].architecture
    target = load_target(tmp_path)
    rounded = Body(trained.body.shape)
    kept = {
        name: value if "router.bias" in name else value.bfloat16() for name, value in trained.body.state_dict().items()
    }
    rounded.load_state_dict({name: value.float() for name, value in kept.items()})
    ids = torch.arange(5, 45)[None]
    visible = block_causal(torch.arange(40)[None] // 8)
    with torch.inference_mode():
        theirs = rounded(ids, torch.arange(40), dense_attention(visible))
    assert target.body.shape == trained.body.shape
    assert torch.equal(target.dense(ids, visible), theirs)


def test_shipping_evaluates_every_kind_of_cache(recipe: TargetRecipe, tmp_path: Path) -> None:
    card = ship_target(recipe, out_dir=tmp_path, held_out=1)
    caches = FAMILIES[LAYOUTS[recipe.family].architecture].caches
    assert [(row.cache, row.task) for row in card.held_out] == [
        (cache, task) for cache in caches for task in ("tiny-arith", "tiny-code")
    ]
    assert LAYOUTS[recipe.family].name in (tmp_path / "README.md").read_text()


def test_a_recipe_says_what_its_family_lacks_or_needs() -> None:
    with pytest.raises(ValueError, match="family: 'gpt' is none of sdar, llada2, llada, dream"):
        replace(TINY_SDAR, family="gpt")
    with pytest.raises(ValueError, match="whole_steps, whole_batch: sdar needs none"):
        replace(TINY_SDAR, whole_steps=3)
    with pytest.raises(ValueError, match="whole_steps, whole_batch: llada needs some"):
        replace(TINY_LLADA, whole_steps=0)
    with pytest.raises(ValueError, match="experts: sdar has none"):
        replace(TINY_LLADA2, family="sdar")


def test_a_stored_recipe_without_newer_fields_is_the_same_recipe() -> None:
    old = {name: value for name, value in asdict(TINY_SDAR).items() if name not in ("family", "words", "experts")}
    assert same_recipe(dumps(old), TINY_SDAR)
    assert same_recipe(dumps(asdict(TINY_LLADA2)), TINY_LLADA2)
    assert not same_recipe(dumps(old | {"seed": 5}), TINY_SDAR)
    assert not same_recipe("{}", TINY_SDAR)
    assert not same_recipe("x", TINY_SDAR)


def test_vocabularies_differ_and_give_every_answer_back() -> None:
    recipe = replace(TINY_SDAR, examples_per_task=200)
    texts = [text for prompt, answer in chain.from_iterable(examples(recipe)) for text in (prompt.text, answer)]
    tokenizers = [train_tokenizer(texts, words=words) for words in WORDS]
    for tokenizer in tokenizers:
        for text in texts[:40]:
            assert tokenizer.decode(tokenizer(text).input_ids) == text
            assert len(tokenizer(text).input_ids) < 128
    for one, other in combinations(tokenizers, 2):
        assert one.get_vocab() != other.get_vocab()
        assert all(one.tokenize(text) != other.tokenize(text) for text in texts if "\n" in text)
    used = [recipe.words for recipe in RECIPES.values() if recipe.name != "tiny-sdar-s"]
    assert sorted(used) == sorted(WORDS)


def test_balance_moves_biases_against_the_load() -> None:
    torch.manual_seed(0)
    body = Body(TINY_LLADA2.shape(300))
    router = body.layers[1].mlp.router
    balance = Balance(body, rate=0.1)
    with torch.no_grad():
        router.weight.zero_()
        router.weight[3] = 1.0
        router(torch.full((50, 192), 0.5))  # expert 3 wins everywhere, its group with it, the tie goes to expert 0
    balance.step()
    expected = torch.full((8,), 0.1)
    expected[[0, 3]] = -0.1
    torch.testing.assert_close(router.bias.detach(), expected)
    assert balance.uneven() == 4.0  # all positions, where a quarter would be even
    assert body.layers[2].mlp.router.bias.eq(0).all()
