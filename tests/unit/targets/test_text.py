"""End tokens, chat templates and beginning-of-sequence ids of a checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tiny_checkpoints import BEGIN, END, edit_json, write_checkpoint
from workers.targets.inspect import inspect_checkpoint
from workers.targets.load import load_target


def _drop_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    edit_json(folder / "tokenizer_config.json", chat_template=...)


def _add_bos_by_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<|begin|>": {"id": "<|begin|>", "ids": [BEGIN], "tokens": ["<|begin|>"]}},
    }
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("generation", "config", "tokenizer", "expected"),
    [
        ([1, 7], 1, "<|end|>", (1, 7)),
        (1, [7, 9], "<|end|>", (1, 7, 9)),
        (7, ..., "<|end|>", (1, 7)),
        (None, None, "<|end|>", (1,)),
        (..., ..., "<|end|>", (1,)),
        ([7], ..., ..., (7,)),
    ],
)
def test_stop_ids_are_the_union(
    tmp_path: Path, generation: object, config: object, tokenizer: object, expected: tuple[int, ...]
) -> None:
    folder = write_checkpoint(tmp_path, config={"eos_token_id": config})
    if generation is not ...:
        edit_json(folder / "generation_config.json", eos_token_id=generation)
    edit_json(folder / "tokenizer_config.json", eos_token=tokenizer)
    assert inspect_checkpoint(folder).stop_ids == expected
    target = load_target(folder)
    assert target.traits.stop_ids == expected
    assert target.decode([20, *expected, 21]) == target.decode([20, 21])


@pytest.mark.parametrize("value", [[1, 100_000], -1, "<|end|>", [True]])
def test_an_impossible_stop_id_is_refused(tmp_path: Path, value: object) -> None:
    folder = write_checkpoint(tmp_path)
    edit_json(folder / "generation_config.json", eos_token_id=value)
    with pytest.raises(ValueError, match=r"generation_config\.json: eos_token_id"):
        load_target(folder)


def test_no_end_token_at_all_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, config={"eos_token_id": None})
    edit_json(folder / "tokenizer_config.json", eos_token=...)
    with pytest.raises(ValueError, match="no end token"):
        load_target(folder)


def test_the_template_wraps_the_prompt(tmp_path: Path) -> None:
    target = load_target(write_checkpoint(tmp_path))
    words = target.encode("the word")
    assert words[:2] == [BEGIN, 3]
    assert words[-1] == 4
    assert target.decode(words) == "the word"
    assert target.chat == "template"


@pytest.mark.parametrize("source", [None, "", "  \n"])
def test_without_a_template_the_prompt_is_raw(tmp_path: Path, source: str | None) -> None:
    folder = write_checkpoint(tmp_path)
    _drop_template(folder)
    if source is not None:
        (folder / "chat_template.jinja").write_text(source)
    target = load_target(folder)
    assert target.chat == "raw"
    assert inspect_checkpoint(folder).chat == "raw"
    ids = target.encode("the word")
    assert not {BEGIN, 3, 4} & set(ids)
    assert target.decode(ids) == "the word"


def test_template_in_the_tokenizer_config_or_in_its_own_file(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    _drop_template(folder)
    edit_json(folder / "tokenizer_config.json", chat_template="A {{ messages[0]['content'] }}")
    assert load_target(folder).decode(load_target(folder).encode("x")) == "A x"
    (folder / "chat_template.jinja").write_text("B {{ messages[0]['content'] }}")
    assert load_target(folder).decode(load_target(folder).encode("x")) == "B x"


@pytest.mark.parametrize("template", [True, False])
def test_exactly_one_begin_id(tmp_path: Path, template: bool) -> None:
    folder = write_checkpoint(tmp_path)
    _add_bos_by_tokenizer(folder)
    if not template:
        _drop_template(folder)
    ids = load_target(folder).encode("the word")
    assert ids[0] == BEGIN
    assert ids.count(BEGIN) == 1


def test_a_template_that_refuses_is_a_named_error_at_load(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "chat_template.jinja").write_text("{{ raise_exception('system role only') }}")
    with pytest.raises(ValueError, match=r"chat template: refuses a user message .*system role only"):
        load_target(folder)


def _split_tokenizer(folder: Path) -> None:
    """Rewrite `tokenizer.json` as the older files: vocabulary, merges, added tokens."""
    data = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(data["model"]["vocab"]))
    merges = "".join(f"{first} {second}\n" for first, second in data["model"]["merges"])
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges)
    decoder = {str(t["id"]): {key: t[key] for key in t if key != "id"} for t in data["added_tokens"]}
    edit_json(folder / "tokenizer_config.json", tokenizer_class="Qwen2Tokenizer", added_tokens_decoder=decoder)
    edit_json(folder / "added_tokens.json", **{t["content"]: t["id"] for t in data["added_tokens"]})


def test_a_tokenizer_of_vocabulary_and_merges(tmp_path: Path) -> None:
    whole = load_target(write_checkpoint(tmp_path / "whole"))
    folder = write_checkpoint(tmp_path / "split")
    _split_tokenizer(folder)
    split = load_target(folder)
    assert split.traits == replace(whole.traits, name="split")
    assert inspect_checkpoint(folder) == inspect_checkpoint(tmp_path / "whole")
    prompt = "the word and the other word"
    assert split.encode(prompt) == whole.encode(prompt)
    assert split.decode(split.encode(prompt)) == prompt
    (folder / "vocab.json").unlink()
    with pytest.raises(ValueError, match=r"no tokenizer; allowed are tokenizer\.json"):
        load_target(folder)


def test_text_round_trips_through_bytes(tmp_path: Path) -> None:
    target = load_target(write_checkpoint(tmp_path))
    hostile = "naïve 🙂 数学 <|mask|>\n\t`x`  y"
    ids = target.encode(hostile)[2:-1]
    assert target.decode([i for i in ids if i != target.traits.mask_id]) == hostile.replace("<|mask|>", "")
    assert END not in ids
