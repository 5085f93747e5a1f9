"""Tokenizers and templates that cannot be used: one line that names the file, in planning as far as that can see."""

import json
from pathlib import Path

import pytest

from sweeps.spec import TargetSpec
from tests.tiny_checkpoints import PADDED, edit_json, write_checkpoint
from workers.loading import Loaded
from workers.targets.inspect import inspect_checkpoint
from workers.targets.load import load_target


def _loading(folder: Path) -> str:
    """What a worker says of a target that cannot be loaded."""
    spec = TargetSpec(name="odd", path=str(folder), family="SDARForCausalLM")
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked by the caller)
        Loaded("cpu").get_target(spec)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("target odd: ")
    return str(error.value)


def test_a_tokenizer_whose_merges_are_unknown(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    data = json.loads((folder / "tokenizer.json").read_text())
    data["model"]["merges"] = [["zz", "qq"]]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    assert f"{folder / 'tokenizer.json'}: the tokenizer cannot be loaded" in _loading(folder)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ 1 // 0 }}", "fails (ZeroDivisionError: "),
        ("{{ 1 + 'a' }}", "fails (TypeError: "),
        ("{{ foo.bar.baz }}", "fails (UndefinedError: "),
        ("{{ ''.__class__.__mro__ }}", "fails (SecurityError: "),
        ("{{ raise_exception('no\nusers') }}", "refuses a user message (no users)"),
    ],
)
def test_a_template_that_raises(tmp_path: Path, source: str, words: str) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "chat_template.jinja").write_text(source)
    inspect_checkpoint(folder)
    assert f"target odd: {folder / 'chat_template.jinja'}: chat template: {words}" in _loading(folder)


@pytest.mark.parametrize("inside", [False, True])
def test_a_template_with_a_syntax_error_shows_in_planning(tmp_path: Path, inside: bool) -> None:
    folder = write_checkpoint(tmp_path)
    if inside:
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        edit_json(folder / "tokenizer_config.json", chat_template="a\n{% for %}")
    else:
        (folder / "chat_template.jinja").write_text("a\n{% for %}")
    file = folder / ("tokenizer_config.json" if inside else "chat_template.jinja")
    with pytest.raises(ValueError, match="syntax error in line 2") as error:
        inspect_checkpoint(folder)
    assert str(error.value).startswith(f"{file}: chat template: ")
    assert "refuses" not in _loading(folder)


def test_tags_of_transformers_and_of_loops_are_no_syntax_errors(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    loop = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% break %}{% endfor %}"
    (folder / "chat_template.jinja").write_text(loop)
    inspect_checkpoint(folder)
    load_target(folder)


@pytest.mark.parametrize("field", ["additional_special_tokens", "extra_special_tokens"])
def test_named_tokens_beyond_the_embedding_are_refused(tmp_path: Path, field: str) -> None:
    folder = write_checkpoint(tmp_path)
    rows = inspect_checkpoint(folder).vocab_size
    edit_json(folder / "tokenizer_config.json", **{field: [f"<|new{i}|>" for i in range(PADDED)]})
    load_target(folder)  # as many as the embedding has rows to spare
    edit_json(folder / "tokenizer_config.json", **{field: [f"<|new{i}|>" for i in range(PADDED + 1)]})
    for attempt in (inspect_checkpoint, load_target):
        with pytest.raises(ValueError, match=f"ids up to {rows}, vocab_size is {rows}") as error:
            attempt(folder)
        assert str(error.value).startswith(str(folder / "tokenizer_config.json"))


def test_tokens_that_only_the_loaded_tokenizer_has_are_refused_too(tmp_path: Path) -> None:
    from workers.targets.text import ChatText

    folder = write_checkpoint(tmp_path)
    tokens = inspect_checkpoint(folder).vocab_size - PADDED
    ChatText(folder, (), tokens)
    with pytest.raises(ValueError, match=f"can emit id {tokens - 1} .*; vocab_size is {tokens - 1}"):
        ChatText(folder, (), tokens - 1)
