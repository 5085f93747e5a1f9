"""A family that the project does not know: one file with a reader, one line in the table, and it loads and decodes."""

from pathlib import Path

import pytest

from sweeps.spec import DecodeSpec, TargetSpec
from tests.tiny_checkpoints import write_checkpoint
from workers.catalog import FAMILIES, FamilyEntry
from workers.decoding.loop import decode
from workers.decoding.reference import reference
from workers.drafters.ssd import SsdDrafter
from workers.loading import Loaded
from workers.targets.inspect import inspect_checkpoint

READER = '''\
"""Mine: a Qwen3 body that attends to the whole sequence and predicts one ahead."""

from pathlib import Path

from workers.targets.config import CheckpointConfig, ConfigFile
from workers.targets.shape import same_names
from workers.targets.tokens import token_facts


def read(folder: Path) -> CheckpointConfig:
    """Config and tokenizer files of a checkpoint folder, checked."""
    file = ConfigFile.of(folder)
    heads = file.whole("num_attention_heads")
    shape = file.body_shape(heads=heads, head_dim=file.even(file.whole("head_dim"), "head_dim"))
    return CheckpointConfig(
        family="mine",
        attention="whole",
        shifted=True,
        shape=shape,
        weights=tuple(same_names(shape)),
        max_positions=file.whole("max_position_embeddings"),
        tokens=token_facts(folder, file.values, shape.vocab_size),
        stored_dtype=file.stored_dtype(),
    )
'''


def test_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "mine.py").write_text(READER)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = FamilyEntry(
        loader="workers.targets.load:load",
        read="package_of_mine.mine:read",
        exact_cache=False,
        caches=("dual", "prefix", "none"),
    )
    monkeypatch.setitem(FAMILIES, "MineForDiffusion", entry)
    folder = write_checkpoint(tmp_path / "checkpoint", config={"architectures": ["MineForDiffusion"]}, tied=False)
    assert inspect_checkpoint(folder).architecture == "MineForDiffusion"
    for cache in entry.caches:
        spec = TargetSpec(name="x", path=str(folder), dtype="float64", family="MineForDiffusion", cache=cache)
        target = Loaded("cpu").get_target(spec)
        rule = DecodeSpec(max_new_tokens=9, block_length=4, ignore_eos=True)
        naive = reference(target, [9, 8, 7], spec=rule, seed=0)
        assert decode(target, SsdDrafter(3), [9, 8, 7], spec=rule, seed=0).output_ids == naive.output_ids
