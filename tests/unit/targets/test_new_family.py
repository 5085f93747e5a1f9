"""README's "Adding a target", followed to the letter: its code and its commands, and nothing else.

The code blocks are taken out of README.md and written where it says, into a copy of the packages; the commands then run
in that copy. What README leaves out is missing here too, and fails.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file

from sweeps.results import load_results
from sweeps.spec import DecodeSpec
from sweeps.store import RunDir
from tests import tiny_checkpoints
from tests.naive import assert_drafts_change_nothing
from tests.tiny_checkpoints import LAYOUTS, write_checkpoint
from workers import catalog
from workers.catalog import FAMILIES
from workers.targets.load import load_target

ROOT = Path(__file__).parents[3]
PACKAGES = ("orchestrator", "reports", "sweeps", "tests", "workers")
FILES = ("pyproject.toml", "README.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def section() -> str:
    """The text of the walk-through."""
    _, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Adding a target\n")
    return rest.partition("\n## ")[0]


@pytest.fixture(scope="module")
def blocks(section: str) -> tuple[str, str, str, str]:
    """Its code: the file, the line of the table, the entry for the tests, and the commands."""
    found = FENCE.findall(section)
    assert [language for language, _ in found] == ["python", "python", "python", ""]
    file, line, layout, commands = (text for _, text in found)
    return file, line, layout, commands


@pytest.fixture(scope="module")
def copied(section: str, blocks: tuple[str, str, str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which a newcomer did what the walk-through says."""
    file, line, layout, _ = blocks
    copy = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "zoo"))
    for name in FILES:
        shutil.copy(ROOT / name, copy / name)
    (copy / "workers" / "zoo").symlink_to(ROOT / "workers" / "zoo")
    ((name, folder),) = re.findall(r"`(\w+\.py)` in\s`(workers/targets)`", section)
    _, table, tests = re.findall(r"`((?:workers|tests)/[\w/]+\.py)`", section)
    written = f"{folder}/{name}"
    assert (written, table, tests) == ("workers/targets/mine.py", "workers/catalog.py", "tests/tiny_checkpoints.py")
    (copy / written).write_text(file)
    into(copy / table, "FAMILIES", line)
    into(copy / tests, "LAYOUTS", layout)
    (imported,) = re.findall(r"`(from workers\.targets import \w+)`", section)
    source = (copy / tests).read_text()
    assert "\nfrom workers" in source
    (copy / tests).write_text(source.replace("\nfrom workers", f"\n{imported}\nfrom workers", 1))
    return copy


def into(path: Path, table: str, entry: str) -> None:
    """Put an entry at the end of a table, a dictionary at the top level of a module."""
    source = path.read_text()
    found = re.search(rf"^{table}\b[^\n]*{{\n(?:[^\n]*\n)*?(?=}}\n)", source, flags=re.MULTILINE)
    assert found, f"{path.name} has no {table}"
    path.write_text(source[: found.end()] + entry + source[found.end() :])


def run(copy: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A shell command in the copy, whose packages come before the installed ones."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": places, "PYTHONPATH": str(copy)}
    return subprocess.run(
        ["bash", "-euc", command], cwd=copy, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def checkpoint(copy: Path, folder: Path) -> Path:
    """A random checkpoint in the family's published layout, made by the copy's own tests."""
    made = (
        f"from pathlib import Path; from tests.tiny_checkpoints import write_checkpoint as w; w(Path({str(folder)!r}), "
    )
    made += "family='mine', config={'max_position_embeddings': 512})"
    done = run(copy, shlex.join([sys.executable, "-c", made]))
    assert done.returncode == 0, done.stderr
    return folder


def test_the_walk_through_fits_a_screen_and_lints(section: str, copied: Path) -> None:
    assert section.count("\n") < 90
    for command in ("check", "format --check"):
        done = run(copied, f"{sys.executable} -m ruff {command} workers/targets/mine.py")
        assert done.returncode == 0, done.stdout


def test_its_reader_fills_the_body_as_the_published_tensors_say(
    blocks: tuple[str, str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gate and up are the halves of their tensor, and drafts change nothing in float64."""
    file, line, layout, _ = blocks
    mine = ModuleType("workers.targets.mine")
    exec(compile(file, "mine.py", "exec"), vars(mine))
    monkeypatch.setitem(sys.modules, mine.__name__, mine)
    for table, entry, names in (
        (FAMILIES, line, vars(catalog)),
        (LAYOUTS, layout, {**vars(tiny_checkpoints), "mine": mine}),
    ):
        ((name, value),) = eval(f"{{{entry}}}", names).items()
        monkeypatch.setitem(table, name, value)
    folder = write_checkpoint(tmp_path / "mine", family="mine", tied=False)
    target, stored = load_target(folder, dtype="float64"), load_file(folder / "model.safetensors")
    held = target.body.state_dict()
    for layer in range(2):
        both = stored[f"model.layers.{layer}.mlp.gate_up_proj.weight"].double()
        assert torch.equal(held[f"layers.{layer}.mlp.gate_proj.weight"], both[:48])
        assert torch.equal(held[f"layers.{layer}.mlp.up_proj.weight"], both[48:])
        assert torch.equal(
            held[f"layers.{layer}.self_attn.o_proj.weight"],
            stored[f"model.layers.{layer}.mixer.o_proj.weight"].double(),
        )
    assert_drafts_change_nothing(target, [9, 8, 7], DecodeSpec(max_new_tokens=9, block_length=4, ignore_eos=True))


@pytest.mark.slow
def test_the_suites_that_it_names_cover_the_new_family(copied: Path, blocks: tuple[str, str, str, str]) -> None:
    (command,) = [line for line in blocks[3].splitlines() if "pytest" in line]
    done = run(copied, f"{command} --verbose")
    passed = [line.partition(" PASSED")[0] for line in done.stdout.splitlines() if " PASSED" in line]
    assert done.returncode == 0, done.stdout[-4000:]
    for needed in (
        "test_targets.py::test_a_batch_of_copies_equals_one_by_one[random-mine exact-float64]",
        "test_targets.py::test_rows_do_not_depend_on_other_rows[random-mine exact-bfloat16]",
        "test_loading_families.py::test_every_key_is_consumed_once_and_every_weight_filled_once[mine]",
        "test_loading_families.py::test_broken_shards[mine]",
        "test_loop_families.py::test_output_equals_the_naive_decoder_with_cache_and_drafts[mine-exact-0.0-3-13-4]",
    ):
        assert any(needed in test for test in passed), (needed, passed)


@pytest.mark.slow
def test_a_checkpoint_is_planned_and_decoded_by_spot_as_without_drafts(
    copied: Path, blocks: tuple[str, str, str, str], tmp_path: Path
) -> None:
    folder = checkpoint(copied, tmp_path / "mine")
    command = "\n".join(line for line in blocks[3].splitlines() if "pytest" not in line).replace("DIR", str(folder))
    done = run(copied, command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mine-1b" in done.stdout
    loaded = load_results(RunDir(copied / "runs" / "quick"))
    assert not loaded.problems
    outputs: dict[int, set[tuple[int, ...]]] = {}
    for result in loaded.results:
        assert not result.failures
        for row in result.generations:
            outputs.setdefault(row.counters.nfe, set()).add(row.output_ids)
    plain, drafted = outputs.pop(128), {ids for own in outputs.values() for ids in own}
    assert len(plain) == 4  # two tasks at two temperatures
    assert drafted == plain
    assert all(nfe < 128 for nfe in outputs)
