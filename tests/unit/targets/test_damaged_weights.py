"""Damaged headers, lying indexes and second heads: seen in planning, in one line that names the file."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_checkpoints import cut_in_shards, edit_json, write_checkpoint
from workers.targets.inspect import facts_of, inspect_checkpoint

NORM, HEAD, EMBEDDING = "model.norm.weight", "lm_head.weight", "model.embed_tokens.weight"
FIRST, SECOND = (f"model.layers.{layer}.input_layernorm.weight" for layer in (0, 1))
INDEX = "model.safetensors.index.json"


def _hurt(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the header of a checkpoint's single file and leave its data as they are."""
    file = write_checkpoint(folder) / "model.safetensors"
    raw = file.read_bytes()
    data = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:data])
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + raw[data:])
    return file


def _refusal(folder: Path) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the words are checked by the caller)
        inspect_checkpoint(folder)
    return str(error.value)


def _reversed(header: dict[str, Any]) -> None:
    header[FIRST]["data_offsets"].reverse()


def _shifted(header: dict[str, Any]) -> None:
    header[FIRST]["data_offsets"] = [offset - 4 for offset in header[FIRST]["data_offsets"]]


def _on_top(header: dict[str, Any]) -> None:
    header[FIRST]["data_offsets"] = header[SECOND]["data_offsets"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (_reversed, "damaged header"),
        (_shifted, "damaged header"),
        (_on_top, "damaged header"),
        (lambda header: header[FIRST].update(dtype="F16"), "damaged header"),
        (lambda header: header[FIRST].update(dtype="F64"), "damaged header"),
        (lambda header: header[FIRST].update(shape=[16]), "damaged header"),
        (
            lambda header: header.update(__metadata__={"a": 5}),
            "__metadata__ is {'a': 5}; allowed is an object of texts",
        ),
        (lambda header: header.update(__metadata__=[]), "__metadata__ is []; allowed"),
    ],
)
def test_a_damaged_header_names_its_file(tmp_path: Path, change: Callable[[dict[str, Any]], object], word: str) -> None:
    file = _hurt(tmp_path / "hurt", change)
    message = _refusal(file.parent)
    assert message.startswith(f"{file}: ")
    assert word in message
    assert ("fetch it again" in message) == (word == "damaged header")


def test_the_header_as_it_was_is_read(tmp_path: Path) -> None:
    inspect_checkpoint(_hurt(tmp_path, lambda header: header.update(__metadata__={"format": "pt"})).parent)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/outside.safetensors", "sub/x.safetensors", ".."])
def test_a_shard_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path)
    cut_in_shards(folder)
    edit_json(folder / INDEX, weight_map={NORM: name})
    assert _refusal(folder) == (
        f"{folder / INDEX}: weight_map.{NORM} is {name!r}; shards must lie in the folder of their index"
    )


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_a_missing_file(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path)
    cut_in_shards(folder)
    edit_json(folder / INDEX, weight_map={NORM: name})
    message = _refusal(folder)
    assert message.startswith(str(folder))
    assert "missing weight file" in message
    assert message.endswith("fetch it again")
    assert len(message) < 1000


def test_tensors_that_do_not_fit_name_the_folder_and_cut_long_names(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, weights=lambda tensors: tensors.update({"x" * 5000: torch.ones(1)}))
    message = _refusal(folder)
    assert message.startswith(f"{folder}: tensors unexpected in the weight files: xxx")
    assert "(5000 characters)" in message
    assert len(message) < 1000


def _notes(folder: Path, head: torch.Tensor | None, *, tied: bool = True) -> tuple[str, ...]:
    add = {} if head is None else {HEAD: head}
    return facts_of(write_checkpoint(folder, tied=tied, weights=lambda tensors: tensors.update(add)))[0].notes


def test_another_head_beside_a_tied_embedding_is_noted(tmp_path: Path) -> None:
    stored: dict[str, torch.Tensor] = {}
    write_checkpoint(tmp_path / "plain", weights=lambda tensors: stored.update(tensors))
    embedding = stored[EMBEDDING]
    last = embedding.clone()
    last[-1, -1] += 1
    note = (f"the head is tied but {HEAD} differs; the embedding is used",)
    assert _notes(tmp_path / "last", last) == note
    assert _notes(tmp_path / "half", embedding.half()) == note
    assert _notes(tmp_path / "same", embedding.clone()) == _notes(tmp_path / "none", None) == ()
    assert _notes(tmp_path / "untied", last, tied=False) == ()


def test_a_head_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, weights=lambda tensors: tensors.update({HEAD: torch.ones(3, 3)}))
    message = _refusal(folder)
    assert message.startswith(f"{folder}: tensor {HEAD} in model.safetensors has shape [3, 3]; the config asks for [")
