"""Training the set model: examples, going on after a kill, calibrating, the card."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from orchestrator.show_sets import foreseen_table
from tests.toys import ToyTarget, hashed, normal
from tests.traces import toy_cell, toy_trace, write_traces
from workers.models.set_facts import TARGET_WEIGHTS, inspect_set_model
from workers.models.set_model import embeddings_of, load_set_model
from workers.training import fitting, sets
from workers.training.fitting import FitProgress
from workers.training.order_card import Share
from workers.training.sets import train_sets
from workers.training.sets_accuracy import MODEL, STALE, counted
from workers.training.sets_card import SetCard, read_card
from workers.training.sets_data import SetTrajectories
from workers.training.sets_readme import readme
from workers.training.sets_recipe import SetRecipe

LENGTH, VOCAB = 8, 24
GROUPS = ((1, 6), (0, 3, 7), (2,), (4, 5))  # the hidden law: which positions a step fills, one group after the other
TINY = SetRecipe(steps=6, batch=8, rise=2, evaluate_every=3, held_out=0.3, width=32, layers=1)
TARGET = ToyTarget(vocab_size=VOCAB)


class Grouped(ToyTarget):
    """Is sure of one group of positions at a time, and of a token that depends on what was filled before: neither shows
    in an earlier distribution, but the order is always the same.
    """

    def row(self, prefix: tuple[int, ...], block: tuple[int, ...]) -> Tensor:
        length, mask = len(block), self.vocab_size - 1
        logits_LV = 0.3 * normal(hashed(self.seed, prefix, block), length, self.vocab_size)
        logits_LV[:, :4] += 2.0  # four tokens that may come
        open = [i for i, token in enumerate(block) if token == mask]
        if open:
            (number, group) = next((n, g) for n, g in enumerate(GROUPS) if set(g) & set(open))
            logits_LV[list(group), number] += 9.0
        return logits_LV


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    target, cell = Grouped(vocab_size=VOCAB), toy_cell(length=LENGTH, new=16, tau=0.9)
    traces = [toy_trace(target, cell, index, prompt=f"{index:08d}", states=True) for index in range(20)]
    return write_traces(tmp_path_factory.mktemp("grouped"), traces)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two temperatures and two taus, blocks that open with prompt tokens, a last block not filled to its end."""
    traces = [
        toy_trace(
            TARGET,
            toy_cell(temperature=heat, length=LENGTH, new=13, tau=tau),
            index,
            prompt="abc" + "d" * index,
            states=True,
        )
        for index in range(4)
        for heat in (0.0, 1.0)
        for tau in (0.6, 0.9)
    ]
    return write_traces(tmp_path_factory.mktemp("mixed"), traces)


def trained(paths: list[Path], recipe: SetRecipe, out: Path, target: ToyTarget = TARGET, **options: object) -> SetCard:
    return train_sets(paths, recipe, embedded_VH=embeddings_of(target), out_dir=out, **options).card  # type: ignore[arg-type]


@pytest.mark.slow
def test_hidden_groups_are_learnt_where_the_stale_distribution_says_nothing(
    grouped: list[Path], tmp_path: Path
) -> None:
    recipe = replace(TINY, steps=150, batch=32, rise=10, evaluate_every=150, max_depth=3, held_out=0.2)
    card = trained(grouped, recipe, tmp_path / "model", Grouped(vocab_size=VOCAB))
    total = card.totals()
    for depth in (1, 2, 3):
        assert total[depth].model.exact.value > 0.98
        assert total[depth].stale.exact.value < 0.5
    assert total[1].model.exact.n == 4 * 2 * 3  # 4 prompts of 2 blocks of 4 steps, each with a later one but the last
    assert total[3].model.exact.n == 4 * 2


def test_batches_hold_the_whole_virtual_prefix(grouped: list[Path]) -> None:
    """Worked out from the law of the target: group 0 is known, the next ones are drafted."""
    data = SetTrajectories.read(grouped, held_out=0.2)
    batch = data.batch(np.array([0, 0, 0, 1]), np.array([0, 1, 2, 1]))
    for row, (first, depth) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1))):
        masked = sorted(position for group in GROUPS[first:] for position in group)
        still = sorted(position for group in GROUPS[first + depth + 1 :] for position in group)
        asked = GROUPS[first + depth + 1]
        assert [masked[i] for i in np.flatnonzero(batch.open_BA[row])] == still
        assert [masked[i] for i in np.flatnonzero(batch.member_BA[row])] == sorted(asked)
        for place, position in enumerate(masked):
            number = next(number for number, group in enumerate(GROUPS) if position in group)
            assert int(batch.tokens_BA[row, place]) == number
            status, drafted_by = batch.columns_BAC[row, place, :2].tolist()
            if number == first:
                assert (status, drafted_by) == (3, 0)  # filled by the known step
            elif number <= first + depth:
                assert (status, drafted_by) == (4, number - first)  # by the draft's step of that number
            else:
                assert status == 0


def test_a_prompt_is_on_one_side_by_every_rule(mixed: list[Path]) -> None:
    data = SetTrajectories.read(mixed, held_out=0.3)
    assert (data.traces, data.prompts, data.held_out_prompts) == (16, 4, 2)
    rules = [(source.temperature, source.tau) for source in data.sources]
    assert rules == [(0.0, 0.6), (0.0, 0.9), (1.0, 0.6), (1.0, 0.9)]
    assert [(source.prompts, source.judged) for source in data.sources] == [(4, 2)] * 4
    learnt, held_out = set(data.prompt_S[data.learnt_S]), set(data.prompt_S[~data.learnt_S])
    assert not learnt & held_out
    assert (len(learnt), len(held_out)) == (2, 2)


def test_reading_a_step_off_log_odds(grouped: list[Path]) -> None:
    """Counts for one example, by hand: what exceeds the limit, or else the best; a wrong token spoils the step."""
    batch = SetTrajectories.read(grouped, held_out=0.2).batch(np.array([0]), np.array([0]))
    members = batch.member_BA[0].nonzero()[:, 0].tolist()
    (first, second, third), (other, *_) = members, (batch.open_BA & ~batch.member_BA)[0].nonzero()[:, 0].tolist()
    odds = torch.full(batch.open_BA.shape, -5.0)
    odds[0, members] = 1.0
    whole = {"exact": 1, "asked": 1, "hit": 3, "guessed": 3, "filled": 3, "token": 3}
    tokens = batch.tokens_BA.clone()
    assert {name: int(value) for name, value in counted(odds, torch.zeros(1), tokens, batch).items()} == whole
    tokens[0, second] += 1
    found = counted(odds, torch.zeros(1), tokens, batch)
    assert (int(found["exact"]), int(found["hit"]), int(found["token"])) == (0, 3, 2)
    odds[0, third], odds[0, other] = -6.0, 2.0
    found = counted(odds, torch.zeros(1), batch.tokens_BA, batch)
    assert [int(found[name]) for name in ("exact", "hit", "guessed", "filled", "token")] == [0, 2, 3, 3, 3]
    found = counted(odds, torch.tensor([9.0]), batch.tokens_BA, batch)  # nothing exceeds it: the best alone
    assert [int(found[name]) for name in ("exact", "hit", "guessed")] == [0, 0, 1]
    odds[0, first] = 8.0
    assert int(counted(odds, torch.tensor([9.0]), batch.tokens_BA, batch)["hit"]) == 1


def test_the_same_seed_gives_the_same_weights_and_another_does_not(mixed: list[Path], tmp_path: Path) -> None:
    digests = [
        trained(mixed, replace(TINY, seed=seed), tmp_path / str(number)).digest for number, seed in enumerate((0, 0, 1))
    ]
    assert digests[0] == digests[1] != digests[2]


class Interrupted(Exception):  # noqa: N818
    pass


def test_going_on_gives_the_weights_of_an_uninterrupted_run(
    mixed: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "SAVE_EVERY", 2)
    whole = trained(mixed, TINY, tmp_path / "whole").digest
    seen: list[int] = []

    def stop(progress: FitProgress) -> None:
        if progress.step == 5:  # step 4 is the last one saved
            raise Interrupted

    def note(progress: FitProgress) -> None:
        seen.append(progress.step)

    state = tmp_path / "state.pt"
    with pytest.raises(Interrupted):
        trained(mixed, TINY, tmp_path / "parts", progress=stop, resume=state)
    assert trained(mixed, TINY, tmp_path / "parts", progress=note, resume=state).digest == whole
    assert seen == [5, 6]
    assert trained(mixed, TINY, tmp_path / "parts", progress=note, resume=state).digest == whole
    assert seen == [5, 6]
    with pytest.raises(ValueError, match=r"another recipe .it differs in steps"):
        trained(mixed, replace(TINY, steps=9), tmp_path / "parts", resume=state)
    with pytest.raises(ValueError, match="other traces"):
        trained(mixed[:-1], TINY, tmp_path / "parts", resume=state)


def test_slow_training_is_saved_by_the_clock(
    mixed: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind step 2, long before the number of steps asks for a state file."""
    monkeypatch.setattr(fitting, "LONGEST_UNSAVED", 0.0)
    seen: list[int] = []

    def stop(progress: FitProgress) -> None:
        seen.append(progress.step)
        if seen == [1, 2]:
            raise Interrupted

    state = tmp_path / "state.pt"
    with pytest.raises(Interrupted):
        trained(mixed, TINY, tmp_path / "parts", progress=stop, resume=state)
    trained(mixed, TINY, tmp_path / "parts", progress=stop, resume=state)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_calibrating_changes_the_input_layer_alone(mixed: list[Path], tmp_path: Path) -> None:
    """For a target of another width; every other weight stays, bit for bit."""
    base = trained(mixed, TINY, tmp_path / "base")
    other = ToyTarget(seed=5, vocab_size=VOCAB + 6)
    cell = toy_cell(length=LENGTH, new=13, tau=0.9)
    cell = replace(cell, target=replace(cell.target, name="other", digest="toy-5"))
    paths = write_traces(tmp_path / "other", [toy_trace(other, cell, index, states=True) for index in range(3)])
    recipe = replace(TINY, calibrate_from=base.digest, steps=4)
    card = trained(paths, recipe, tmp_path / "new", other, base=tmp_path / "base")
    before, after = (load_set_model(tmp_path / name, block_length=LENGTH).state_dict() for name in ("base", "new"))
    for name, tensor in before.items():
        if name in TARGET_WEIGHTS:
            assert after[name].shape[-1] in (VOCAB + 6, 32)
        else:
            assert torch.equal(after[name], tensor), name
    assert after["hidden.weight"].shape == (32, VOCAB + 6)
    assert card.fitted == 32 * (VOCAB + 6) + 32 + 22 * (VOCAB + 6)
    assert (card.base, base.base) == (base.digest, "")
    assert [(source.target, source.role) for source in card.sources[-2:]] == [
        ("toy", "trained on"),
        ("toy", "calibrated on"),
    ]
    made_on = {made.digest for made in inspect_set_model(tmp_path / "new").made_on}
    assert made_on == {"toy-5"}
    assert card.targets == {"toy": "toy-5"}
    assert {made.digest for made in inspect_set_model(tmp_path / "base").made_on} == {"toy-0"}
    text = (tmp_path / "new" / "README.md").read_text()
    assert f"all other weights are those of the set model `{base.digest[:16]}`" in text
    assert text.startswith("# Set model of SPOT-Sets for toy\n")
    named = replace(card, sources=(*card.sources[:-1], replace(card.sources[-1], target="other")))
    assert readme(named).startswith("# Set model of SPOT-Sets for other\n")
    assert "  which was trained on toy\n" in readme(named)


def test_calibrating_what_was_calibrated_keeps_no_origin_between(mixed: list[Path], tmp_path: Path) -> None:
    """From toy-0 to toy-5 and back: the input layer for toy-5 is thrown away."""
    base = trained(mixed, TINY, tmp_path / "base")
    other = ToyTarget(seed=5, vocab_size=VOCAB)
    cell = toy_cell(length=LENGTH, new=13, tau=0.9)
    cell = replace(cell, target=replace(cell.target, name="other", digest="toy-5"))
    paths = write_traces(tmp_path / "other", [toy_trace(other, cell, index, states=True) for index in range(3)])
    recipe = replace(TINY, calibrate_from=base.digest, steps=1)
    there = trained(paths, recipe, tmp_path / "there", other, base=tmp_path / "base")
    back = trained(mixed, replace(recipe, calibrate_from=there.digest), tmp_path / "back", base=tmp_path / "there")
    assert {made.digest for made in inspect_set_model(tmp_path / "there").made_on} == {"toy-5"}
    assert {made.digest for made in inspect_set_model(tmp_path / "back").made_on} == {"toy-0"}
    assert {(source.target, source.role) for source in back.sources} == {
        ("toy", "trained on"),
        ("toy", "calibrated on"),
    }


def test_calibrating_moves_the_input_layer(mixed: list[Path], tmp_path: Path) -> None:
    base = trained(mixed, TINY, tmp_path / "base")
    cards = [
        trained(
            mixed, replace(TINY, calibrate_from=base.digest, steps=steps), tmp_path / str(steps), base=tmp_path / "base"
        )
        for steps in (1, 4)
    ]
    one, four = (load_set_model(tmp_path / name, block_length=LENGTH).state_dict() for name in ("1", "4"))
    assert all(not torch.equal(one[name], four[name]) for name in TARGET_WEIGHTS)
    assert cards[0].digest != cards[1].digest


def test_the_card_says_what_was_measured(mixed: list[Path], tmp_path: Path) -> None:
    card = trained(mixed, TINY, tmp_path / "model")
    assert read_card(tmp_path / "model") == card
    assert card.digest == json.loads((tmp_path / "model" / "config.json").read_text())["digest"]
    rows = {(row.group, row.depth): row for row in card.accuracy}
    for depth in range(1, 13):
        total = rows[("", None, None), depth]
        by_tau = [rows[("", None, tau), depth] for tau in (0.6, 0.9)]
        by_task = [rows[("toy", heat, None), depth] for heat in (0.0, 1.0)]
        for parts in (by_tau, by_task):
            for reader in ("model", "stale"):
                whole = getattr(total, reader)
                assert whole.exact.hits == sum(getattr(part, reader).exact.hits for part in parts)
                assert whole.recall.n == sum(getattr(part, reader).recall.n for part in parts)
        if total.prompts:
            assert total.model.exact.n == total.stale.exact.n
    text = (tmp_path / "model" / "README.md").read_text()
    assert "### toy at T = 1" in text
    assert "### tau = 0.9" in text
    assert "smaller than the default, 4 layers of width 256" in text
    assert (MODEL, STALE) == (0, 1)


def test_a_depth_that_is_warned_of_is_in_the_tables(mixed: list[Path], tmp_path: Path) -> None:
    """Depth 9 is otherwise left out of what people see."""
    card = trained(mixed, TINY, tmp_path / "model")
    (ninth,) = [row for row in card.accuracy if row.depth == 9 and row.group == ("", None, None)]
    worse, better = Share.of(1, 4), Share.of(3, 4)
    told = replace(ninth, model=replace(ninth.model, exact=worse), stale=replace(ninth.stale, exact=better), prompts=4)
    fine = [replace(row, stale=row.model) for row in card.accuracy if row is not ninth]
    other = replace(card, accuracy=tuple(fine))
    assert (other.warnings(), other.shown_depths) == ((), (1, 2, 3, 4, 6, 8, 10, 12))
    card = replace(card, accuracy=(*fine, told))
    assert card.warnings() == ("worse than the stale distribution at depth 9",)
    assert "| 9 | 4 | 4 | set model | 25.0%" in readme(card)
    console = Console(width=250, record=True, file=io.StringIO())
    console.print(foreseen_table(card))
    head, *_ = [line.split() for line in console.export_text().splitlines() if line.startswith("task")]
    assert head[3:] == ["1", "2", "3", "4", "6", "8", "9", "10", "12"]


def test_a_card_tells_decoding_steps_from_training_steps(mixed: list[Path], tmp_path: Path) -> None:
    text = readme(trained(mixed, TINY, tmp_path / "model"))
    decoded = SetTrajectories.read(mixed, held_out=0.3).steps
    assert f"  ({decoded} decoding steps); of 4 prompts 2 are held out;" in text
    assert "- recipe: 6 training steps of 8 examples" in text


def test_unusable_traces_are_refused(mixed: list[Path], tmp_path: Path) -> None:
    def refused(says: str, *traces: Path) -> None:
        with pytest.raises(ValueError, match=says):
            SetTrajectories.read(traces, held_out=0.3)

    cell = toy_cell(length=LENGTH, new=8, tau=0.5)
    refused("none given")
    refused("at least 2 are needed", mixed[0])
    standard = write_traces(tmp_path / "a", [toy_trace(TARGET, toy_cell(length=LENGTH, new=8), states=True)])
    refused("commit rule is standard: allowed for a set model is threshold", *standard)
    refused("recorded without hidden states", *write_traces(tmp_path / "b", [toy_trace(TARGET, cell)]))
    independent = replace(cell, decode=replace(cell.decode, temperature=1.0, noise="independent"))
    traces = write_traces(tmp_path / "c", [toy_trace(TARGET, independent, states=True)])
    refused("noise is independent: allowed for a set model is coupled", *traces)
    other = write_traces(tmp_path / "d", [toy_trace(ToyTarget(seed=1, vocab_size=VOCAB), cell, states=True)])
    refused("target_digest is toy-1: the others have toy-0", *mixed, *other)
    short = toy_cell(length=LENGTH // 2, new=8, tau=0.5)
    refused("block_length is 4", *mixed, *write_traces(tmp_path / "e", [toy_trace(TARGET, short, states=True)]))


def test_blocks_of_one_step_leave_nothing_to_learn(tmp_path: Path) -> None:
    cell = toy_cell(length=2, new=2, tau=0.001)
    paths = write_traces(tmp_path / "t", [toy_trace(TARGET, cell, i, prompt="ab", states=True) for i in range(3)])
    with pytest.raises(ValueError, match=r"nothing to learn from 3 trajectories: every block was filled in one step"):
        trained(paths, TINY, tmp_path / "model")


@pytest.mark.parametrize(
    ("field", "value"),
    [("steps", 0), ("batch", -1), ("rate", 0.0), ("held_out", 1.0), ("other_weight", 1.0), ("dropout", -0.1)],
)
def test_bad_recipes_name_the_field(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"set recipe: {field} is"):
        SetRecipe(**{field: value})  # type: ignore[arg-type]
