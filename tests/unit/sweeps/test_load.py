"""A sweep file and its overrides: what is read, and that whatever is wrong is one line that says where and what."""

from pathlib import Path

import pytest

from sweeps.load import CONFIGS, find_sweep, load_sweep, packaged
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, TaskSpec
from tests.sweep_files import BASE, TABLES, load


def refused(folder: Path, text: str | bytes, *overrides: str) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(SweepError) as caught:
        load(folder, text, *overrides)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(str(folder) + "/", "")


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    spec = load(
        tmp_path,
        """
name: mine
title: "50 % more: a title"
grid:
  target: [small, own]
  task: [sums, gsm]
  drafter: [none, spot, floor]
  budget: [4, 8]
  temperature: [0, 0.5]
  confidence: sampled
targets:
  own: {path: org/model, revision: "0123", dtype: bfloat16}
tasks:
  gsm: {kind: jsonl, path: gsm8k/test.jsonl, answer: number}
drafters:
  floor: {kind: spot, gamma: 0.05, merge_states: false}
exclude:
  - {drafter: spot, budget: 8}
  - task: [gsm]
measure: {prompts: 3, timed_prompts: 1}
resources: {workers: 2, cpus: 1.5}
ignore_eos: true
""",
    )
    assert (spec.name, spec.title) == ("mine", "50 % more: a title")
    assert spec.grid.budget == (4, 8)
    assert spec.grid.temperature == (0.0, 0.5)
    assert [(t.name, t.path, t.revision, t.dtype) for t in spec.targets] == [
        ("small", "/models/small", "", "float32"),
        ("own", "org/model", "0123", "bfloat16"),
    ]
    assert spec.tasks[1] == TaskSpec(name="gsm", kind="jsonl", path="gsm8k/test.jsonl")
    assert spec.drafters[2] == DrafterSpec(
        name="floor", kind="spot", gamma=0.05, merge_states=False, fixed=("gamma", "merge_states")
    )
    assert spec.exclude == ({"drafter": ("spot",), "budget": (8,)}, {"task": ("gsm",)})
    assert (spec.measure.prompts, spec.measure.timed_prompts) == (3, 1)
    assert (spec.resources.workers, spec.resources.cpus) == (2, 1.5)
    assert (spec.grid.confidence, spec.ignore_eos) == (("sampled",), True)


def test_a_lone_value_is_a_list_of_one(tmp_path: Path) -> None:
    grid = load(tmp_path, BASE + "  budget: 4\n  drafter: spot\n").grid
    assert (grid.target, grid.task, grid.budget, grid.drafter) == (("small",), ("sums",), (4,), ("spot",))


@pytest.mark.parametrize("text", ["0.2,0.7", "[0.2,0.7]", "[0.2, 0.7]", "0.2, 0.7"])
def test_comma_list_is_its_values(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, BASE, f"grid.temperature={text}").grid.temperature == (0.2, 0.7)


def test_names_are_not_split_into_letters(tmp_path: Path) -> None:
    assert load(tmp_path, BASE, "grid.drafter=spot").grid.drafter == ("spot",)
    assert load(tmp_path, BASE, "grid.drafter=none,ssd").grid.drafter == ("none", "ssd")


def test_a_comma_inside_text_elsewhere_stays_text(tmp_path: Path) -> None:
    assert load(tmp_path, BASE, "title=one, two").title == "one, two"


def test_index_override_edits_that_item(tmp_path: Path) -> None:
    text = BASE + "  budget: [4, 8]\nexclude: [{drafter: ssd}, {budget: 8}]\n"
    spec = load(tmp_path, text, "grid.budget[1]=16", "exclude[0].drafter=spot", "exclude[0].budget=4")
    assert spec.grid.budget == (4, 16)
    assert spec.exclude == ({"drafter": ("spot",), "budget": (4,)}, {"budget": (8,)})


def test_overrides_reach_own_entries_and_add_them(tmp_path: Path) -> None:
    text = BASE + "  drafter: [spot, floor]\ndrafters: {floor: {kind: spot, gamma: 0.05}}\n"
    assert load(tmp_path, text, "drafters.floor.gamma=0.1").drafters[1].gamma == 0.1
    spec = load(tmp_path, BASE, "grid.drafter=deep", "drafters.deep={kind: spot, budget: 64}")
    assert (spec.drafters[0].name, spec.drafters[0].budget) == ("deep", 64)


def test_a_target_may_be_a_path_and_a_task_a_file(tmp_path: Path) -> None:
    spec = load(tmp_path, BASE, "grid.target=./my models/x", "grid.task=jsonl:data/a,b.jsonl".replace(",", "-"))
    assert (spec.targets[0].name, spec.targets[0].path) == ("./my models/x", "./my models/x")
    assert (spec.tasks[0].kind, spec.tasks[0].path) == ("jsonl", "data/a-b.jsonl")


REFUSED_OVERRIDES = {
    "grid.temperature=[]": "grid.temperature is an empty list",
    "grid.temprature=[0]": "unknown key grid.temprature: allowed are target, task, ",
    "gird.budget=[0]": "did you mean grid?",
    "grid.budget=0": "grid.budget is 0: allowed is a whole number from 1 to 4096",
    "grid.budget=-3": "grid.budget is -3: allowed is a whole number from 1 to 4096",
    "grid.budget=8.0": "grid.budget is 8.0: allowed is a whole number",
    "grid.budget=true": "grid.budget is True: allowed is a whole number",
    "grid.budget=4,": "an empty value",
    "grid.budget=": "an empty value",
    "grid.budget=eight": "grid.budget is 'eight': allowed is a whole number",
    "grid.budget=010": "010 would be read as octal",
    "grid.temperature=-1": "grid.temperature is -1.0: allowed is a finite number from 0",
    "grid.temperature=nan": "grid.temperature is 'nan': allowed is a finite number",
    "grid.temperature=.nan": "grid.temperature is nan: allowed is a finite number",
    "grid.temperature=[0,.inf]": "grid.temperature[1] is inf: allowed is a finite number",
    "grid.temperature=1e400": "grid.temperature is inf: allowed is a finite number",
    "grid.temperature=false": "grid.temperature is False: allowed is a finite number",
    "grid.gamma=1": "grid.gamma is 1.0: allowed is a number in [0, 1)",
    "grid.seed=-1": "grid.seed is -1: allowed is a whole number from 0",
    "grid.seed=9223372036854775808": "allowed is a whole number from 0 to 2**63-1",
    "grid.max_new_tokens=0": "grid.max_new_tokens is 0",
    "grid.block_length=5000": "grid.block_length is 5000: allowed is a whole number from 1 to 1024",
    "grid.noise=coupld": "did you mean coupled?",
    "grid.drafter=sopt": "unknown drafter 'sopt': allowed are none, ssd, spot; did you mean spot?",
    "grid.drafter=[no]": "no would be read as true or false",
    "grid.target=smal": "unknown target 'smal': allowed are small, large; did you mean small?",
    "grid.task=sum": "unknown task 'sum': allowed are sums, code, jsonl:PATH; did you mean sums?",
    "grid.drafter.x=3": "grid.drafter is {'x': 3}: allowed is text",
    "grid.budget[7]=1": "grid.budget is no list in the file",
    "tasks[0].limit=5": "tasks is no list in the file",
    "exclude[0].drafter=ssd": "exclude is no list in the file: its entries are exclude.drafter",
    "measure.prompts=0": "measure.prompts is 0: allowed is a whole number from 1",
    "measure.promts=4": "did you mean prompts?",
    "drafters.x.gamma=0.1": "drafters.x.kind is missing; unknown drafter kind 'x'",
    "drafters.spot.gama=0.1": "unknown key drafters.spot.gama",
    "drafters.ssd.gamma=0.1": "drafters.ssd.gamma: ssd does not use it; it uses budget",
    "drafters.none={kind: spot}": "drafters.none: this name means draft-free decoding",
    "exclude={drafter: sdd}": "did you mean ssd?",
    "exclude={}": "exclude[0] is empty",
    "name=../x": "name is '../x'",
    "name=": "an empty value",
    "title=3": "title is 3: allowed is text (quote it: '3')",
    "title=f(${": "for a plain ${ write \\${",
    "title=${nothing}": "Interpolation key 'nothing' not found",
    "title=a #1": "what follows # would be a remark",
    "title=#1": "what follows # would be a remark",
    "title=[a": "not a YAML value",
    "grid..budget=3": "an override is KEY=VALUE",
    "grid.budget": "an override is KEY=VALUE",
    "=3": "an override is KEY=VALUE",
    "grid=3": "grid is 3: allowed is a mapping of keys",
}


@pytest.mark.parametrize("override", REFUSED_OVERRIDES)
def test_bad_override_is_refused_with_the_override_itself(tmp_path: Path, override: str) -> None:
    text = BASE + ("exclude: {drafter: spot}\n" if override.startswith("exclude[") else "")
    line = refused(tmp_path, text, override)
    assert line.startswith(f"override {override}: "), line
    assert REFUSED_OVERRIDES[override] in line


def test_index_into_named_entries_says_their_names(tmp_path: Path) -> None:
    text = BASE + "tasks: {gsm: {kind: jsonl, path: x}, mbpp: {kind: jsonl, path: y}}\n"
    assert "its entries are tasks.gsm, tasks.mbpp" in refused(tmp_path, text, "tasks[0].path=z")


def test_index_past_the_end(tmp_path: Path) -> None:
    line = refused(tmp_path, BASE + "  budget: [4, 8]\n", "grid.budget[2]=16")
    assert line == "override grid.budget[2]=16: grid.budget has 2 items, numbers 0 to 1"


REFUSED_FILES = {
    BASE + "  temprature: 0\n": "s.yaml:4: unknown key grid.temprature",
    BASE + "tasks:\n  gsm:\n    kind: jsonl\n    pth: x\n": "s.yaml:7: unknown key tasks.gsm.pth",
    BASE + "tasks:\n  gsm: {kind: jsonl}\n": "s.yaml:5: tasks.gsm.path is missing",
    BASE + "tasks:\n  s: {kind: sums, path: x}\n": "s.yaml:5: unknown key tasks.s.path: allowed are kind, split",
    BASE + "tasks:\n  s: {kind: summ}\n": "s.yaml:5: unknown task kind 'summ'",
    BASE + "targets:\n  x: {}\n": "s.yaml:5: targets.x.path is missing",
    BASE + "targets:\n  x: {path: 3}\n": "s.yaml:5: targets.x.path is 3: allowed is text (quote it: '3')",
    BASE + "targets:\n  x: {path: p, digest: q}\n": "s.yaml:5: unknown key targets.x.digest",
    BASE + "targets:\n  x: {path: p, dtype: int8}\n": "s.yaml:5: target x: dtype is 'int8': allowed is float64 |",
    BASE
    + "drafters:\n  x:\n    kind: spot\n    gamma: 2\n": "s.yaml:7: drafter x: gamma is 2.0: allowed is a number in",
    BASE + "  budget:\n    - 4\n    - 0.5\n": "s.yaml:6: grid.budget[1] is 0.5: allowed is a whole number",
    BASE + "  temperature: 0.2,0.7\n": "s.yaml:4: grid.temperature is '0.2,0.7': allowed is a finite number (several",
    BASE + "  drafter:\n    - none\n    - sopt\n": "s.yaml:6: unknown drafter 'sopt'",
    BASE + "measure:\n  prompts: 4\n  repeats: 0\n": "s.yaml:6: measure.repeats is 0",
    BASE + "targets:\n": "s.yaml:4: targets is None: allowed is a mapping",
    BASE + "title: ???\n": "s.yaml:4: title is ???: give it a value",
    "grid:\n  task: sums\n": "s.yaml:1: grid.target is missing",
    "name: x\n": "s.yaml:1: grid is missing",
}


@pytest.mark.parametrize("text", REFUSED_FILES)
def test_bad_file_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    line = refused(tmp_path, text)
    assert line.startswith(REFUSED_FILES[text]), line


def test_more_timed_prompts_than_prompts_means_all_of_them(tmp_path: Path) -> None:
    assert load(tmp_path, BASE, "measure.prompts=2").measure.timed_prompts == 2


def test_packaged_sweeps_are_found_by_name_and_a_typo_gets_the_nearest() -> None:
    assert find_sweep("quick") == CONFIGS / "quick.yaml" == packaged()["quick"]
    with pytest.raises(SweepError, match="did you mean quick"):
        find_sweep("quik")


def test_a_file_that_is_not_there_or_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match="no sweep file"):
        find_sweep(str(tmp_path / "none.yaml"))
    with pytest.raises(SweepError, match="is a directory"):
        find_sweep(str(tmp_path))
    with pytest.raises(SweepError, match="No such file"):
        load_sweep(tmp_path / "none.yaml", (), TABLES)
