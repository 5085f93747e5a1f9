"""Progress says what the events say, on any stream, and never ends a run."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestrator.board import Board, Rate
from orchestrator.events import RunEvent
from orchestrator.progress import LiveProgress, PlainProgress, make_progress
from orchestrator.words import counted, duration


def event(kind: str, **fields: Any) -> RunEvent:
    return RunEvent(kind=kind, **fields)  # type: ignore[arg-type]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def story(clock: Clock) -> list[RunEvent]:
    return [
        event("started", rows=26, decode=20, timing=6, repeats=3, stored=4, cells=3, cells_done=1),
        event("worker_ready", worker="ray-1", cells=3, cells_done=1),
        event("item_done", target="tiny-sdar", work="decode", rows=4, seconds=2.0, cells=3, cells_done=1),
        event(
            "item_failed",
            target="tiny-sdar",
            work="decode",
            rows=6,
            failed=2,
            seconds=4.0,
            loading=1.0,
            cells=3,
            cells_done=2,
            message="ValueError: bad",
        ),
    ]


def test_the_numbers() -> None:
    clock = Clock()
    board = Board(clock=clock)
    for each in story(clock):
        board.take(each)
        clock.now += 1 if each.kind not in ("item_done", "item_failed") else 0
    # 8 were decoded in 2 s by the clock, and 2 failed; 10 prompts took 5 s of work: 10 more take 5, and 6 timed ones
    # 2 x (3 + 1) decodes each, 24
    assert board.line() == (
        "cells 2/3 | decoded 10/20, timed 0/6 | 4 stored before | failed 2 | tiny-sdar decoded 4.00/s | 29 s left"
        " | 1 worker"
    )
    board.take(event("worker_lost", worker="ray-1"))
    assert board.workers == 0


def test_every_kind_of_work_is_counted_at_its_own_cost() -> None:
    clock = Clock()
    board = Board(clock=clock)
    board.take(event("started", rows=30, decode=20, timing=4, study=6, repeats=1))
    assert board.seconds_left() is None
    for worker in ("a", "b"):
        board.take(event("worker_ready", worker=worker))
    clock.now += 10
    board.take(event("item_done", target="t", work="decode", rows=10, seconds=20.0))
    assert board.seconds_left() == (10 * 2 + 4 * 4 * 2 + 6 * 2) / 2
    clock.now += 5
    assert board.seconds_left() == 32 - 5  # it runs down while nothing is reported
    clock.now += 5
    board.take(event("item_done", target="t", work="timing", rows=2, seconds=6.0))
    board.take(event("item_done", target="t", work="study", rows=4, seconds=2.0))
    assert board.seconds_left() == (10 * 2 + 2 * 3 + 2 * 0.5) / 2
    assert board.counts() == "decoded 10/20, timed 2/4, studied 4/6"
    # ten seconds for the first item; ten more for the timed ones, whose clock began when the decoding was reported
    assert board.speeds("t").startswith("decoded 1.00/s, timed 0.20/s, studied ")
    board.take(event("item_done", target="t", work="decode", rows=10, seconds=20.0))
    board.take(event("item_done", target="t", work="timing", rows=2, seconds=6.0))
    board.take(event("item_done", target="t", work="study", rows=2, seconds=1.0))
    assert board.seconds_left() is None


def test_failed_prompts_are_done_but_are_no_rate() -> None:
    clock = Clock()
    board = Board(clock=clock)
    board.take(event("started", rows=20, decode=20))
    clock.now += 10
    board.take(event("item_failed", target="t", work="decode", rows=10, failed=10, seconds=20.0))
    assert (board.counts(), board.failed) == ("decoded 10/20", 10)
    assert board.speeds("t") == "decoded 0.00/s"
    clock.now += 10
    board.take(event("item_failed", target="t", work="decode", rows=10, failed=4, seconds=20.0))
    assert board.speeds("t") == "decoded 0.30/s"  # six in twenty seconds


def test_uncached_references_are_counted_at_their_own_cost() -> None:
    """Decoding without a cache takes several times longer: neither may stand for the other once both are known."""
    board = Board(clock=Clock())
    board.take(event("started", rows=12, decode=10, uncached=2, repeats=1))
    board.take(event("worker_ready", worker="a"))
    board.take(event("item_done", target="t", work="decode", rows=5, seconds=10.0))
    assert board.seconds_left() == 5 * 2 + 2 * 2  # the best guess there is
    board.take(event("item_done", target="t", work="uncached", rows=1, seconds=30.0))
    assert board.seconds_left() == 5 * 2 + 1 * 30
    assert board.counts() == "decoded 5/10, uncached 1/2"


def test_only_timings_left_are_judged_by_timings() -> None:
    board = Board(clock=Clock())
    board.take(event("started", rows=4, timing=4, repeats=3))
    board.take(event("worker_ready", worker="a"))
    board.take(event("item_done", target="t", work="timing", rows=1, seconds=8.0))
    assert board.seconds_left() == 24
    assert board.counts() == "timed 1/4"


def test_the_rate_is_that_of_the_last_moments() -> None:
    rate = Rate(since=0.0)
    for second in range(1000):
        rate.add(float(second), 1 if second < 700 else 10)
    assert rate.per_second() == pytest.approx(10.0)


def test_plain_lines_say_what_matters_and_a_count_now_and_then() -> None:
    clock, stream = Clock(), io.StringIO()
    plain = PlainProgress(stream, clock)
    for each in story(clock):
        plain.show(each)
    clock.now += 11
    plain.show(event("item_done", target="t", work="decode", rows=4, cells=3, cells_done=3))
    plain.show(event("note", message="RAY_ADDRESS is ignored"))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("cells 1/3 | decoded 0/20, timed 0/6")
    assert lines[1] == "item failed: ValueError: bad"
    assert "decoded 14/20" in lines[2]
    assert lines[3] == "note: RAY_ADDRESS is ignored"


def test_the_last_count_is_said_once() -> None:
    clock, stream = Clock(), io.StringIO()
    plain = PlainProgress(stream, clock)
    plain.show(event("started", rows=4, decode=4, repeats=1, cells=1))
    clock.now += 11
    plain.show(event("item_done", target="t", work="decode", rows=4, seconds=2.0, cells=1, cells_done=1))
    plain.show(event("finished", stored=4))
    assert stream.getvalue().splitlines() == [
        "cells 0/1 | decoded 0/4 | failed 0 | 0 workers",
        "cells 1/1 | decoded 4/4 | failed 0 | t decoded 0.36/s | 0 workers",  # 4 in 11 s
    ]


def test_a_stream_of_any_encoding_and_a_closed_pipe() -> None:
    raw = io.BytesIO()
    ascii_stream = io.TextIOWrapper(raw, encoding="ascii")
    PlainProgress(ascii_stream).show(event("note", message="漢字 \udcff é"))
    ascii_stream.flush()
    assert raw.getvalue().startswith(b"note: \\u6f22\\u5b57 \\udcff \\xe9\n")
    closed = io.StringIO()
    closed.close()
    PlainProgress(closed).show(event("note", message="x"))


def test_live_display_shows_text_as_it_is() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    live = LiveProgress(console)
    for each in story(Clock()):
        live.show(each)
    live.show(event("note", message="[bold]not markup[/nonsense]"))
    live.show(event("item_done", target="[odd]", work="timing", rows=4, cells=3, cells_done=3))
    live.close()
    live.close()
    text = stream.getvalue()
    assert "[bold]not markup[/nonsense]" in text
    assert "[odd]" in text
    assert "cells 3/3" in text


def test_a_terminal_gets_the_live_display_and_nothing_else_does() -> None:
    assert isinstance(make_progress(io.StringIO()), PlainProgress)


@pytest.mark.parametrize(("locale", "utf8"), [("C", "0"), ("C.UTF-8", "1")])
def test_no_locale_breaks_it(locale: str, utf8: str) -> None:
    program = (
        "from orchestrator.progress import make_progress\nfrom orchestrator.events import RunEvent\n"
        "p = make_progress()\np.show(RunEvent(kind='note', message='emoji \\U0001f600 and \\u6f22'))\np.close()\n"
    )
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": utf8, "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(b"note: emoji ")


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.4, 60, 3599, 3600, 90061)] == [
        "0 s",
        "59 s",
        "1 min",
        "59 min",
        "1 h 0 min",
        "25 h 1 min",
    ]


def test_counts_have_their_noun() -> None:
    assert [counted(count, "model load") for count in (0, 1, 1200)] == [
        "0 model loads",
        "1 model load",
        "1,200 model loads",
    ]
