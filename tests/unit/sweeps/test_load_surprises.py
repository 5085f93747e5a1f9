"""Spellings that YAML or omegaconf read as something else: refused with line and hint, or read as they look."""

from pathlib import Path

import pytest

from sweeps.source import SweepError
from tests.sweep_files import BASE, load


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(SweepError) as caught:
        load(folder, text)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(str(folder) + "/", "")


SURPRISES: dict[str | bytes, tuple[str, str]] = {
    BASE + "  seed: 010\n": ("s.yaml:4:", "octal"),
    BASE + "  seed: -017\n": ("s.yaml:4:", "octal"),
    BASE + "  max_new_tokens: 1:30\n": ("s.yaml:4:", "base 60"),
    BASE + "  drafter: [no]\n": ("s.yaml:4:", "no would be read as true or false"),
    BASE + "ignore_eos: yes\n": ("s.yaml:4:", "yes would be read as true or false"),
    BASE + "on: 1\n": ("s.yaml:4:", "on would be read as true or false"),
    BASE + "title: a\n\ntitle: b\n": ("s.yaml:6:", "title is given twice (first in line 4)"),
    BASE + "drafters:\n  x: {kind: spot}\n  x: {kind: ssd}\n": ("s.yaml:6:", "x is given twice (first in line 5)"),
    "grid:\n\ttarget: small\n": ("s.yaml:2:1:", "tab"),
    "grid: {target: small\n": ("s.yaml:2:1:", "not YAML"),
    BASE + "title: 'open\n": ("s.yaml:5:1:", "not YAML"),
    BASE + "---\nname: b\n": ("s.yaml:4:1:", "one sweep a file"),
    "": ("s.yaml:", "empty"),
    "# only a remark\n": ("s.yaml:", "empty"),
    "- grid\n": ("s.yaml:1:", "top level must be a mapping"),
    "grid\n": ("s.yaml:1:", "top level must be a mapping"),
    BASE + "1: 2\n": ("s.yaml:4:", "the key 1 is read as a int: quote it"),
    BASE + "? [a, b]\n: 2\n": ("s.yaml:4:", "a key must be one word"),
    BASE + "title: !!python/name:os.system x\n": ("s.yaml:", "not YAML"),
    b"grid: {target: \xff}\n": ("s.yaml:", "not UTF-8"),
    BASE + 'title: "Cost is ${x} and f(${"\n': ("s.yaml:4:", "title: ${...} asks for another value"),
    BASE + 'title: "${x}"\n': ("s.yaml:4:", "'x' not found; for a plain ${ write \\${"),
    BASE + "title: ${oc.env:SPOT_NO_SUCH_VARIABLE}\n": ("s.yaml:4:", "SPOT_NO_SUCH_VARIABLE"),
    BASE + "tasks:\n  g:\n    kind: jsonl\n    path: ${x}/a\n": ("s.yaml:7:", "tasks.g.path: ${...}"),
}


@pytest.mark.parametrize("text", SURPRISES)
def test_refused_with_place_and_hint(tmp_path: Path, text: str | bytes) -> None:
    place, hint = SURPRISES[text]
    line = refused(tmp_path, text)
    assert line.startswith(place), line
    assert hint in line


def test_the_escaped_sign_is_plain_text(tmp_path: Path) -> None:
    assert load(tmp_path, BASE + r"title: 'Cost is \${x} and f(\${'" + "\n").title == "Cost is ${x} and f(${"


def test_interpolation_that_means_something_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPOT_TEST_DATA", "/data")
    text = BASE + "tasks: {g: {kind: jsonl, path: '${oc.env:SPOT_TEST_DATA}/g.jsonl'}}\n"
    assert load(tmp_path, text, "grid.task=g").tasks[0].path == "/data/g.jsonl"


@pytest.mark.parametrize("text", ["1e-3", "0.001", "1.0e-3", "1E-3"])
def test_equal_numbers_are_one_value_in_the_file_and_on_the_command_line(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, BASE + f"  temperature: {text}\n").grid.temperature == (0.001,)
    assert load(tmp_path, BASE, f"grid.temperature={text}").grid.temperature == (0.001,)


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = "drafters:\n  a: &a {kind: spot, gamma: 0.1}\n  b: {<<: *a, gamma: 0.2}\n"
    text += "grid: {target: small, task: sums, drafter: [a, b]}\n"
    assert [drafter.gamma for drafter in load(tmp_path, text).drafters] == [0.1, 0.2]


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode()).grid.target == ("small",)


def test_odd_folder_and_file_names_give_a_safe_sweep_name(tmp_path: Path) -> None:
    assert load(tmp_path, file="my runs/прогон 1.yaml").name == "прогон-1"
    assert load(tmp_path, file="a#b%c'd.yaml").name == "a-b-c-d"


@pytest.mark.parametrize("name", ["a/b", "..", ".x", "a b", "x" * 81, "数" * 40 + "学" * 41, "a\\0b"])
def test_names_that_make_bad_folders_are_refused(tmp_path: Path, name: str) -> None:
    assert "name is " in refused(tmp_path, BASE + f"name: '{name}'\n")


def test_labels_never_reach_the_file_system_so_any_label_will_do(tmp_path: Path) -> None:
    labels = ["x" * 300, "a/../b", '50% #1 "q"', "Floor", "floor"]
    entries = "".join(f"  {label!r}: {{kind: spot}}\n" for label in labels)
    names = ", ".join(map(repr, labels))
    spec = load(tmp_path, f"drafters:\n{entries}" + f"grid: {{target: small, task: sums, drafter: [{names}]}}\n")
    assert len(spec.drafters) == 5
