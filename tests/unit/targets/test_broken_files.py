"""Checkpoint files of the wrong types: each is one ValueError that names the file and the field."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import LAYOUTS, edit_json, write_checkpoint
from workers.targets.inspect import inspect_checkpoint

INDEX = "model.safetensors.index.json"
CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"rope_parameters": "x"}, "rope_parameters is 'x'; allowed is an object or null"),
    ({"rope_scaling": [1]}, "rope_scaling is [1]; allowed is an object or null"),
    ({"rms_norm_eps": float("inf")}, "rms_norm_eps is inf; allowed is a positive finite number"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan; allowed is a positive finite number"),
    ({"rms_norm_eps": 0}, "rms_norm_eps is 0; allowed is a positive finite number"),
    ({"rms_norm_eps": 10**400}, "allowed is a positive finite number"),
]
TOKENIZERS: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model.vocab is NoneType; allowed is an object of tokens to ids"),
    ({"model": {"vocab": {"a": "x"}}}, "the id of 'a' is 'x'; allowed is a whole number from 0"),
    ({"added_tokens": [{"id": 1}]}, "added_tokens[0] is {'id': 1} with id 1; allowed is an object with content"),
    ({"added_tokens": [5]}, "added_tokens[0] is 5"),
    ({"added_tokens": "all"}, "added_tokens is 'all'; allowed is a list"),
]
TOKENIZER_CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"eos_token": {"a": 1}}, "eos_token is {'a': 1}; allowed is text, or an object with content"),
    ({"eos_token": 5}, "eos_token is 5; allowed is text"),
    ({"chat_template": 5}, "chat_template is 5; allowed is text, or a list of named templates"),
    ({"chat_template": ["a"]}, "chat_template is ['a']; allowed is text, or a list of named templates"),
]
INDEXES: list[tuple[dict[str, Any], str]] = [
    ({"weight_map": {"a": 5}}, "weight_map.a is 5; expected the name of a file"),
    ({"weight_map": {"a": ["x"]}}, "weight_map.a is ['x']; expected the name of a file"),
]
HEADERS: list[tuple[object, str]] = [
    ([], "the header is a list, not an object"),
    ({"w": "x"}, "tensor w is 'x'; expected dtype"),
    ({"w": {"dtype": "F32", "shape": [1]}}, "tensor w is"),
    ({"w": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}, "tensor w is"),
    ({"w": {"dtype": "F32", "shape": [1], "data_offsets": [4]}}, "tensor w is"),
]
EDITS = [
    *(("config.json", *case) for case in CONFIGS),
    *(("tokenizer.json", *case) for case in TOKENIZERS),
    *(("tokenizer_config.json", *case) for case in TOKENIZER_CONFIGS),
    *((INDEX, *case) for case in INDEXES),
]


def _refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked by the caller)
        inspect_checkpoint(folder)
    return str(error.value)


@pytest.mark.parametrize(("name", "changes", "expected"), EDITS)
@pytest.mark.parametrize("family", LAYOUTS)
def test_field_of_another_type(tmp_path: Path, family: str, name: str, changes: dict[str, Any], expected: str) -> None:
    folder = write_checkpoint(tmp_path, family=family)
    if name == "tokenizer_config.json":
        (folder / "chat_template.jinja").unlink(missing_ok=True)
    edit_json(folder / name, **changes)
    message = _refusal(folder)
    assert str(folder / name) in message
    assert expected in message


@pytest.mark.parametrize(("header", "expected"), HEADERS)
def test_header_of_another_form(tmp_path: Path, header: object, expected: str) -> None:
    folder = write_checkpoint(tmp_path)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    message = _refusal(folder)
    assert str(folder / "model.safetensors") in message
    assert expected in message


def test_endless_nesting(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "config.json").write_text('{"a": ' + "[" * 100_000)
    message = _refusal(folder)
    assert message.startswith(f"{folder / 'config.json'}: not valid JSON")


def test_template_that_is_not_utf8(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "chat_template.jinja").write_bytes(b"\xff\xfe")
    assert f"{folder / 'chat_template.jinja'}: not UTF-8 text" in _refusal(folder)


def test_default_among_named_templates(tmp_path: Path) -> None:
    from workers.targets.template import chat_template

    named = [{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert chat_template(tmp_path) == "d"
