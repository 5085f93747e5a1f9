"""What a training directory remembers of the call that made it."""

from pathlib import Path

import pytest

from orchestrator.train_request import Request, absolute_name, check_request, option, write_request

MADE = Request(
    command="spot train order",
    options={"--task": ["code"], "--temperature": [0.0, 1.0], "--steps": 9, "--test-prompts": None},
    digests={"code": "a" * 64},
)


def asked(digests: dict[str, str] | None = None, **options: object) -> Request:
    changed = {"--" + name.replace("_", "-"): value for name, value in options.items()}
    return Request(command=MADE.command, options=MADE.options | changed, digests=digests or MADE.digests)


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("targets", "--target"),
        ("test_tasks", "--test-task"),
        ("temperatures", "--temperature"),
        ("max_new_tokens", "--max-new-tokens"),
        ("prompts", "--prompts"),
        ("test_prompts", "--test-prompts"),
    ],
)
def test_fields_are_named_as_they_are_typed(field: str, typed: str) -> None:
    assert option(field) == typed


def test_names_with_a_path_are_the_same_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.jsonl").touch()
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert absolute_name("./model") == str(tmp_path / "model")
    assert absolute_name("jsonl:rows.jsonl") == f"jsonl:{tmp_path / 'rows.jsonl'}"
    assert absolute_name("jsonl:./rows.jsonl") == f"jsonl:{tmp_path / 'rows.jsonl'}"
    for name in ("model", "tiny-sdar", "owner/name", "jsonl:nothing"):  # a table's name, though a folder is called so
        assert absolute_name(name) == name


def test_an_empty_directory_and_the_same_request_are_fine(tmp_path: Path) -> None:
    check_request(tmp_path, MADE, free=())
    write_request(tmp_path, MADE)
    check_request(tmp_path, MADE, free=())
    check_request(tmp_path, asked(test_prompts=3), free=("--test-prompts",))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (asked(task=["arith"]), "made with --task code .here --task arith.: choose another --out, or delete .*order$"),
        (asked(temperature=[0.5]), "--temperature 0 --temperature 1 .here --temperature 0.5."),
        (asked(steps=10), r"--steps 9 .here --steps 10.: .* delete .*state.pt to train again"),
        (asked(steps=10, task=["arith"]), "--task code --steps 9 .here --task arith --steps 10.: .*to start again$"),
        (asked(test_prompts=3), "no --test-prompts .here --test-prompts 3."),
        (asked(digests={"code": "b" * 64}), "code was aaaaaaaaaaaa when it was made, and is bbbbbbbbbbbb now"),
    ],
)
def test_what_differs_is_said_as_it_is_typed(tmp_path: Path, request_: Request, message: str) -> None:
    write_request(tmp_path / "order", MADE)
    with pytest.raises(ValueError, match=message.replace("order$", "order to start again$")):
        check_request(tmp_path / "order", request_, free=(), free_untrained=("--steps",))
