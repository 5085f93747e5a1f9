"""Rows of a JSONL file: encodings, ids, nulls and numbers; and that texts reach the target unchanged."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sweeps.spec import TaskSpec
from workers.tasks.jsonl import digest, make


def spec_of(path: Path, content: str | bytes, **options: str) -> TaskSpec:
    path = path / "rows.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TaskSpec(name="rows", kind="jsonl", path=str(path), **options)  # type: ignore[arg-type]


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_gsm8k_works_as_it_is(tmp_path: Path) -> None:
    rows = lines(
        {"question": "Natalia sold 48 clips. How many?", "answer": "48/2 = <<48/2=24>>24 clips.\n48+24 = 72.\n#### 72"},
        {"question": "Loss?", "answer": "It lost 3.\n#### -1,003"},
    )
    task = make(spec_of(tmp_path, rows))
    first, second = task.prompts(split="test", limit=None, seed=0)
    assert first.text == "Natalia sold 48 clips. How many?"
    assert task.score(first, r"So it is \boxed{72}.").correct
    assert not task.score(first, "#### 71").correct
    assert task.score(second, "#### -1003").correct


def test_encodings(tmp_path: Path) -> None:
    content = (
        "\ufeff" + '{"id": "a", "question": "one\u2028still one\x85", "answer": "1"}\r\n'
        "\r\n   \n"
        '{"id": "b", "question": "lone \\ud800 and pair \\ud83d\\ude00", "answer": "2"}\r\n'
        '{"id": "c", "question": "nul \\u0000 here", "answer": "3"}\n\n'
        '{"id": "d", "question": "数学 😀", "answer": "4"}'
    )
    prompts = make(spec_of(tmp_path, content, id_field="id")).prompts(split="test", limit=None, seed=0)
    assert [p.id for p in prompts] == ["a", "b", "c", "d"]
    assert [p.text for p in prompts] == ["one\u2028still one\x85", "lone \ufffd and pair 😀", "nul \0 here", "数学 😀"]
    for prompt in prompts:
        prompt.text.encode()


def test_text_is_never_interpolated(tmp_path: Path) -> None:
    text = "Cost is ${x} and f(${ {header} %s {0} $HOME \\n"
    (prompt,) = make(spec_of(tmp_path, lines({"question": text, "answer": 1}))).prompts(split="test", limit=9, seed=0)
    assert prompt.text == text


def test_instruction_is_added_and_part_of_the_digest(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, lines({"question": "Q?", "answer": 1}))
    asked = replace(spec, instruction="Put it in \\boxed{}.")
    (prompt,) = make(asked).prompts(split="test", limit=None, seed=0)
    assert prompt.text == "Q?\n\nPut it in \\boxed{}."
    assert digest(spec) != digest(asked)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{bad", "not JSON in UTF-8"),
        ('{"question": "a", "answer": NaN}', "NaN is no JSON number"),
        ("[1, 2]", "a row is an object with fields, this is a list"),
        ("null", "this is null"),
        ("[" * 100_000, "line 2: "),
        (b'{"question": "\xff", "answer": "1"}', "not JSON in UTF-8"),
        ('{"question": null, "answer": "1"}', "question is null: allowed is a text"),
        ('{"question": 5, "answer": "1"}', "question is a number: allowed is a text"),
        ('{"answer": "1"}', "no field 'question': the fields are 'answer'"),
        ('{"question": "a", "answer": null}', "answer is null: allowed is a text or a number"),
        ('{"question": "a", "answer": true}', "answer is true or false"),
        ('{"question": "a", "answer": ["72"]}', "answer is a list"),
        ('{"question": "a", "answer": {"final": "72"}}', "answer is an object"),
        ('{"question": "a", "answer": "many"}', "answer: 'many' is not one number (answer: number)"),
        ('{"question": "a", "answer": ' + "9" * 5000 + "}", "line 2: "),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_bad_row_is_refused_by_its_line(tmp_path: Path, row: str | bytes, message: str) -> None:
    good = lines({"question": "fine", "answer": 1}).encode()
    bad = row if isinstance(row, bytes) else row.encode()
    with pytest.raises(ValueError, match=r"rows\.jsonl: line 2: ") as caught:
        make(spec_of(tmp_path, good + bad + b"\n" + good))
    assert message in str(caught.value)
    str(caught.value).encode()


def test_all_bad_rows_are_counted_and_five_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 1: .*; line 5: .* \(and 3 more\)$"):
        make(spec_of(tmp_path, lines(*([{"question": None, "answer": 1}] * 8))))


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_a_file_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match="no rows"):
        make(spec_of(tmp_path, content))


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(ValueError, match=str(path)):
            make(TaskSpec(name="x", kind="jsonl", path=str(path)))


@pytest.mark.parametrize(("first", "second"), [(1, "1"), ("a", "a")])
def test_equal_ids_are_refused_with_both_lines(tmp_path: Path, first: object, second: object) -> None:
    rows = [{"id": i, "question": "q", "answer": 1} for i in (0, first, "between", second)]
    with pytest.raises(ValueError, match=r"line 4: id '.' is also that of line 2"):
        make(spec_of(tmp_path, lines(*rows), id_field="id"))


def test_a_missing_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: no field 'id'"):
        make(spec_of(tmp_path, lines({"question": "q", "answer": 1}), id_field="id"))


def test_equal_prompts_without_an_id_field_keep_apart(tmp_path: Path) -> None:
    row = {"question": "same", "answer": 1, "unknown": ["extra"]}
    prompts = make(spec_of(tmp_path, lines(row, row))).prompts(split="test", limit=None, seed=0)
    assert [p.id for p in prompts] == ["0", "1"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("72", "72"),
        ("72.0", "72"),
        ('"72"', "72.00"),
        ("1e3", "1,000"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.1", "0.1"),
    ],
)
def test_numbers_match_exactly_whatever_their_json_type(tmp_path: Path, answer: str, text: str) -> None:
    task = make(spec_of(tmp_path, f'{{"question": "q", "answer": {answer}}}\n'))
    (prompt,) = task.prompts(split="test", limit=None, seed=0)
    assert task.score(prompt, text).correct
    assert not task.score(prompt, text + "1").correct


def test_exact_answers(tmp_path: Path) -> None:
    task = make(spec_of(tmp_path, lines({"question": "q", "answer": " Paris\n"}), answer="exact"))
    (prompt,) = task.prompts(split="test", limit=None, seed=0)
    assert task.score(prompt, "Paris ").correct
    assert not task.score(prompt, "paris").correct
    assert not task.score(prompt, "").correct


def test_boxed_answers(tmp_path: Path) -> None:
    row = {"problem": "p", "answer": "\\frac{1}{2}"}
    task = make(spec_of(tmp_path, lines(row), answer="boxed", prompt_field="problem"))
    (prompt,) = task.prompts(split="test", limit=None, seed=0)
    assert task.score(prompt, "\\boxed{0.5}").correct


def test_layout_of_the_file_does_not_change_the_digest_but_content_does(tmp_path: Path) -> None:
    rows = lines({"question": "q", "answer": 1}, {"question": "r", "answer": 2})
    base = digest(spec_of(tmp_path, rows))
    assert digest(spec_of(tmp_path, "\ufeff" + rows.replace("\n", "\r\n\r\n"))) == base
    for changed in (rows.replace('"q"', '"Q"'), rows.replace("2", "3"), lines({"question": "q", "answer": 1})):
        assert digest(spec_of(tmp_path, changed)) != base
    assert digest(spec_of(tmp_path, rows, answer="boxed")) != base


def test_another_split_is_refused(tmp_path: Path) -> None:
    task = make(spec_of(tmp_path, lines({"question": "q", "answer": 1}), split="dev"))
    assert len(task.prompts(split="dev", limit=None, seed=0)) == 1
    with pytest.raises(ValueError, match="'test' is not in the file"):
        task.prompts(split="test", limit=None, seed=0)
