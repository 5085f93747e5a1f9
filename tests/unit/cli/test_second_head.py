"""A tied checkpoint that stores another head: plans and runs say which one is used, in the console's own words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_checkpoints import write_checkpoint

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"
SWEEP = """\
name: heads
grid: {target: odd, task: tiny-arith, drafter: none, max_new_tokens: 4, block_length: 4}
targets: {odd: {path: TARGET}}
measure: {prompts: 1, timed_prompts: 0}
"""


def test_plan_and_run_say_that_the_embedding_is_used(
    spot: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_checkpoint(
        tmp_path / "odd",
        config={"max_position_embeddings": 2048},
        weights=lambda tensors: tensors.update({HEAD: tensors[EMBEDDING] + 1}),
    )
    Path("heads.yaml").write_text(SWEEP.replace("TARGET", str(folder)))
    note = f"target odd: the head is tied but {HEAD} differs; the embedding is used"
    assert note in json.loads(spot("plan", "heads.yaml", "--json").out)["notes"]
    with pytest.warns(UserWarning, match="the embedding is used"):
        ended = spot("run", "heads.yaml", "--pool", "inline", "--out", "out")
    assert ended.code == 0, ended.err
    assert f"note: {note}\n" in ended.err
