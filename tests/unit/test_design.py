"""DESIGN.md and README.md name only what exists: modules, their attributes, files of the repository, commands."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("sweeps", "workers", "orchestrator", "reports")


def definitions() -> set[str]:
    """Every class, function, constant and field name defined in the four packages."""
    names: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef):
                    names.add(node.name)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
    return names


def quoted(document: str) -> list[str]:
    """What stands between single backticks, outside of fenced blocks."""
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("document", ["DESIGN.md", "README.md"])
def test_every_dotted_name_exists(document: str) -> None:
    for name in quoted(document):
        if not re.fullmatch(r"[a-z_]+(\.[A-Za-z_]+)+", name) or name.split(".")[0] not in PACKAGES:
            continue
        module, _, last = name.rpartition(".")
        if find_spec(name) is None:
            assert find_spec(module) is not None, f"{document}: {name}"
            assert last in definitions(), f"{document}: {name}"


@pytest.mark.parametrize("document", ["DESIGN.md", "README.md"])
def test_every_class_and_function_named_exists(document: str) -> None:
    known = definitions()
    for name in quoted(document):
        if match := re.fullmatch(r"(?:[A-Z][a-z0-9]+){2,}|([a-z_]+)\(\)", name):
            assert (match.group(1) or name) in known, f"{document}: {name}"


@pytest.mark.parametrize("document", ["DESIGN.md", "README.md"])
def test_every_file_named_exists(document: str) -> None:
    for name in quoted(document):
        if re.fullmatch(r"(?:sweeps|workers|orchestrator|reports|tests)/[\w./-]+", name):
            assert (ROOT / name).exists(), f"{document}: {name}"
