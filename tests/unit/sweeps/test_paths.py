"""Paths of people: `~` is expanded, and what no file system can hold is refused with field and cut value."""

from pathlib import Path

import pytest

from sweeps.paths import cut, expanded


def test_home_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/a", "out") == Path("/home/me/a")
    assert expanded("a/~/b", "out") == Path("a/~/b")
    assert expanded("", "out") == Path()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("~nobody99/a", "out is '~nobody99/a': no home directory is known for ~nobody99"),
        ("a\0b", "out is 'a\\x00b': a path cannot hold a NUL character"),
        ("a/" + "x" * 256, ".. (258 characters)': allowed are 255 bytes a name and 4095 a path"),
        ("ü" * 128, "': allowed are 255 bytes a name"),
        ("a/" * 2100, ".. (4200 characters)': allowed are 255 bytes a name and 4095 a path"),
    ],
)
def test_what_no_file_can_be_called(path: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^out is ") as caught:
        expanded(path, "out")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 250


def test_the_longest_name_there_can_be_is_taken(tmp_path: Path) -> None:
    path = expanded(tmp_path / ("ü" * 127), "out")
    path.write_text("x")
    assert path.is_file()


def test_cut_says_how_long_it_was() -> None:
    assert cut("x" * 80) == "x" * 80
    assert cut("x" * 81) == "x" * 80 + ".. (81 characters)"
