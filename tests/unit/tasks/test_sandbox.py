"""Generated code runs fenced in: limits, leftovers, writes, network, and a verdict that the code cannot forge."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from workers.tasks.sandbox import GRACE_SECONDS, LAYERS, Limits, Outcome, run_tests

SHORT = Limits(wall_seconds=1.0)
FENCES = {
    "all": (),
    "no landlock": ("landlock",),
    "no namespaces": ("namespaces",),
    "nothing": LAYERS,
}


@pytest.fixture(params=FENCES, ids=lambda name: name.replace(" ", "-"))
def without(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Each way a machine may refuse the kernel's layers."""
    return FENCES[request.param]


@pytest.fixture(autouse=True)
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's rows have their folders, so that they and their processes are told from all others."""
    folder = tmp_path / "rows"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def alive(rows: Path) -> list[str]:
    """Command lines of the processes that were started for a row of this test (they inherit its environment)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if os.fsencode(rows) + b"/spot-row-" in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text(errors="replace"))
    return found


def failed_because(outcome: Outcome, *words: str) -> None:
    assert not outcome.passed
    assert any(word in outcome.reason for word in words), outcome


def test_right_code_passes_and_wrong_code_names_the_line(without: tuple[str, ...]) -> None:
    code = "def add(a, b):\n    return a + b\n"
    assert run_tests(code, "assert add(1, 2) == 3\n", without=without).passed
    wrong = run_tests(code, "assert add(1, 2) == 3\nassert add(1, 2) == 4\n", without=without)
    assert not wrong.passed
    assert wrong.reason == "AssertionError in line 2 of the tests: assert add(1, 2) == 4"


def test_layers_are_recorded_honestly() -> None:
    assert run_tests("", "", without=LAYERS).layers == {
        "processes": "process tree",
        "network": "audit hook",
        "files": "audit hook",
    }


def test_code_that_does_not_compile_fails() -> None:
    for code in ("def f(:", "\0", "\ud800", "(" * 5000, "x = " + "-" * 200_000 + "1"):
        outcome = run_tests(code, "")
        assert not outcome.passed, code[:20]
        outcome.reason.encode()


def test_loop_ends_at_the_wall_or_cpu_limit(without: tuple[str, ...]) -> None:
    started = time.monotonic()
    failed_because(
        run_tests("import time\ntime.sleep(60)", "", limits=SHORT, without=without), "wall time limit of 1 s"
    )
    busy = Limits(wall_seconds=20, cpu_seconds=1)
    failed_because(run_tests("while True: pass", "", limits=busy, without=without), "CPU time limit of 1 s")
    assert time.monotonic() - started < 2 + 2 * GRACE_SECONDS


def test_detached_grandchild_does_not_survive(rows: Path, without: tuple[str, ...]) -> None:
    code = """
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        try:
            os.execvp("sleep", ["sleep", "987"])
        except PermissionError:  # no other program where only the audit hook protects files
            time.sleep(987)
    os._exit(0)
try:
    subprocess.Popen(["sleep", "987"], start_new_session=True)
except PermissionError:
    pass
print("started", flush=True)
while True:
    time.sleep(0.01)
"""
    outcome = run_tests(code, "", limits=SHORT, without=without)
    failed_because(outcome, "wall time limit")
    assert "started" in outcome.output
    assert alive(rows) == []


def test_the_same_grandchild_is_gone_after_a_pass(rows: Path, without: tuple[str, ...]) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(987)\n    os._exit(0)\n"
    assert run_tests(code, "", without=without).passed
    assert alive(rows) == []


def test_memory_hog_is_stopped() -> None:
    code = "import itertools\nx = list(itertools.product(range(50), repeat=9))\n"
    outcome = run_tests(code, "", limits=Limits(memory_mb=256))
    failed_because(outcome, "MemoryError", "limit")
    assert outcome.seconds < 10 + GRACE_SECONDS


def test_a_long_c_call_ends_in_time() -> None:
    outcome = run_tests(
        "import itertools, collections\ncollections.deque(itertools.repeat(1), maxlen=0)", "", limits=SHORT
    )
    failed_because(outcome, "limit")
    assert outcome.seconds < 1 + GRACE_SECONDS


def test_two_hundred_kilobytes_of_output_pass_with_a_bounded_log() -> None:
    outcome = run_tests("print('x' * 200_000)\nprint('the end')", "")
    assert outcome.passed
    assert len(outcome.output) < 10_000
    assert "the end" in outcome.output
    assert "bytes left out" in outcome.output


def test_printing_for_ever_is_stopped_with_a_bounded_log(without: tuple[str, ...]) -> None:
    outcome = run_tests("while True: print('x' * 1000)", "", without=without)
    failed_because(outcome, "output limit of 1024 kB")
    assert len(outcome.output) < 10_000
    assert outcome.seconds < 10


def test_term_signal_cannot_be_survived(rows: Path) -> None:
    code = """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda *_: print("still here", flush=True))
while True:
    time.sleep(0.01)
"""
    outcome = run_tests(code, "", limits=SHORT)
    failed_because(outcome, "wall time limit")
    assert alive(rows) == []


def test_writes_outside_the_folder_are_refused_and_inside_removed(
    tmp_path: Path, rows: Path, without: tuple[str, ...]
) -> None:
    target = tmp_path / "outside.txt"
    code = f"""
import os, pathlib
refused = 0
for path in ("../x.txt", {str(target)!r}, "/etc/spot-test", "/dev/shm/spot-test"):
    try:
        open(path, "w").write("x")
    except OSError:
        refused += 1
for call in (
    lambda: os.mkdir({str(tmp_path / "folder")!r}),
    lambda: os.symlink("/etc/passwd", {str(tmp_path / "link")!r}),
    lambda: os.rename({str(tmp_path / "mine.txt")!r}, "stolen"),
    lambda: os.remove({str(tmp_path / "mine.txt")!r}),
    lambda: os.truncate({str(tmp_path / "mine.txt")!r}, 0),
):
    try:
        call()
    except OSError:
        refused += 1
os.symlink({str(tmp_path / "mine.txt")!r}, "inner")
try:
    open("inner", "w")
except OSError:
    refused += 1
with open("big", "wb") as big:
    for _ in range(50):
        big.write(bytes(1 << 20))
pathlib.Path("kept").write_text("fine")
os.mkdir("locked"); open("locked/f", "w").close(); os.chmod("locked", 0)
"""
    (tmp_path / "mine.txt").write_text("mine")
    outcome = run_tests(code, "assert refused == 10, refused\nassert open('kept').read() == 'fine'", without=without)
    assert outcome.passed, outcome
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt", "rows"]
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert list(rows.iterdir()) == []  # neither `../x.txt` nor the row's own folder


def test_one_file_cannot_grow_beyond_its_limit() -> None:
    code = "open('big', 'wb').write(bytes(3 << 20))"
    failed_because(run_tests(code, "", limits=Limits(file_mb=2)), "OSError", "File too large")


def test_programs_cannot_write_outside_either(tmp_path: Path) -> None:
    code = f"""
import subprocess
result = subprocess.run(["touch", {str(tmp_path / "x")!r}], capture_output=True)
"""
    for without in ((), ("landlock",), ("namespaces",)):
        assert run_tests(code, "assert result.returncode != 0", without=without).passed
    assert not (tmp_path / "x").exists()
    failed_because(run_tests(code, "", without=("namespaces", "landlock")), "subprocess.Popen")


def test_no_signal_reaches_other_processes(without: tuple[str, ...]) -> None:
    code = """
import os
reached = []
for pid in (os.getppid(), PARENT, -1):
    try:
        os.kill(pid, 0)
        reached.append(pid)
    except OSError:
        pass
"""
    tests = "assert reached in ([], [0])"  # 0, where the parent is outside of the namespace, is the row's own group
    outcome = run_tests(code.replace("PARENT", str(os.getpid())), tests, without=without)
    assert outcome.passed, outcome


def test_a_small_fork_loop_leaves_nothing(rows: Path, without: tuple[str, ...]) -> None:
    code = (
        "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        time.sleep(987)\n        os._exit(0)\n"
    )
    outcome = run_tests(code, "", without=without)
    assert outcome.passed, outcome
    assert alive(rows) == []


def test_a_fork_bomb_is_stopped(rows: Path, without: tuple[str, ...]) -> None:
    code = "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        time.sleep(987)\ntime.sleep(987)"
    outcome = run_tests(code, "", limits=Limits(wall_seconds=5), without=without)
    failed_because(outcome, "process limit of 32")
    assert outcome.seconds < 5 + GRACE_SECONDS
    assert alive(rows) == []


def test_no_network(without: tuple[str, ...]) -> None:
    code = """
import socket
def reach(family, kind):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(1)
            s.connect(("127.0.0.1" if family == socket.AF_INET else "::1", PORT))
        return "reached"
    except OSError:
        return "refused"
"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        tests = """
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        assert reach(family, kind) == "refused" or kind == socket.SOCK_DGRAM and family == 0
"""
        outcome = run_tests(code.replace("PORT", str(port)), tests, without=without)
    assert outcome.passed, outcome


def test_asyncio_works_inside(without: tuple[str, ...]) -> None:
    code = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 5\ndef g(): return asyncio.run(f())"
    outcome = run_tests(code, "assert g() == 5", without=without)
    assert outcome.passed, outcome


def test_the_workers_environment_and_files_stay_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "token"
    secret.write_text("hf_secret")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    code = f"""
import os
seen = [v for v in os.environ.values() if "hf_secret" in v]
try:
    seen.append(open({str(secret)!r}).read())
except OSError:
    pass
try:
    import workers
    seen.append("workers")
except ImportError:
    pass
"""
    assert run_tests(code, "assert seen == [], seen").passed


WAITING = ("stop", "early tests", "thread")  # attacks that may end at the wall limit
# What a solution that does not solve anything may try in order to be called right.
ATTACKS = {
    "exit": "import sys; sys.exit(0)",
    "hard exit": "import os; os._exit(0)",
    "exit in the call": "import os\ndef f(): os._exit(0)",
    "print": 'print(\'passed\'); print(\'{"passed": true, "reason": "passed"}\')',
    "builtins": """
import builtins
builtins.abs = lambda x: 0
builtins.AssertionError = Exception
builtins.print = builtins.exec = builtins.compile = lambda *a, **k: None
""",
    "shadowed helper": "def abs(x): return 0\ndef check(f): pass",
    "patched modules": """
import functools, json, linecache, marshal, operator, os, sys
json.loads = json._default_decoder.decode = marshal.loads = lambda *a: ["", []]
os.write = operator.call = functools.partial = lambda *a: None
class Lines(dict):
    def __setitem__(self, key, value):
        sys._getframe(1).f_locals.update(tests="", compiled=compile("", "", "exec"))
linecache.cache = Lines()
sys._getframe(1).f_globals.update(json=json, linecache=linecache, vars=lambda x: {}, exec=print, compile=print)
""",
    "atexit": "import atexit, os\natexit.register(lambda: os.write(3, b'passed\\n'))\nraise SystemExit(0)",
    "channel": """
import os
for line in (b'passed', b'{"failed": "passed"}'):
    os.write(3, line + b'\\n')
""",
    "channel layers": """
import os
os.write(3, b'{"layers": {"a": 1}, "passed": true}\\n' + b'[' * 100000 + b'\\n')
""",
    "all descriptors": """
import os
for fd in range(64):
    try: os.write(fd, b'{"passed": true, "reason": "passed"}\\n')
    except OSError: pass
""",
    "frames": """
import sys, os
frame = sys._getframe()
while frame:
    for space in (frame.f_locals, frame.f_globals):
        for value in list(space.values()):
            for text in (value, *getattr(value, "args", ())) if not isinstance(value, type) else ():
                if isinstance(text, bytes): os.write(3, text)
    frame = frame.f_back
""",
    "replace the steps": """
import sys
frame = sys._getframe()
while frame:
    for name, value in list(frame.f_globals.items()):
        if callable(value) and name.startswith("_") and not name.startswith("__"):
            frame.f_globals[name] = lambda *a, **k: None
    for name in list(frame.f_locals):
        try: frame.f_locals[name] = None
        except Exception: pass
    frame = frame.f_back
def f(): return 4
""",
    "gc": """
import gc, os
for thing in gc.get_objects():
    if type(thing).__name__ == "partial":
        os.write(3, thing.args[-1])
""",
    "referrers": "import gc, os\nfor x in gc.get_referrers(os.write):\n    os.write(3, x.args[-1])",
    "memory": "data = open('/proc/self/mem', 'rb').read(10)",
    "memory by another name": "import os\nos.chdir('/proc')\ndata = open('self/maps').read()",
    "ctypes": "import ctypes\nctypes.string_at(id(1), 8)",
    "tracing": """
import sys
def jump(frame, event, argument):
    if frame.f_code.co_filename == "<tests>":
        frame.f_lineno = 5
    return jump
sys.settrace(jump)
""",
    "hook": "import sys\nsys.addaudithook(lambda *a: None)",
    "kill the supervisor": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "stop": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nimport time\ntime.sleep(60)",
    "real time signal": "import os, signal\nos.kill(os.getpid(), signal.SIGRTMIN)",
    "crash": "import os\nos.abort()",
    "recursion": "def f(): return f()",
    "thread": """
import threading, os, time
threading.Thread(target=lambda: [os.write(3, b'x') or time.sleep(.01) for _ in range(50)], daemon=True).start()
""",
    "closed files": "import os\nos.closerange(0, 64)",
    "raises oddly": "class E(Exception):\n    def __str__(self): raise self\nraise E",
    "surrogate message": "raise ValueError('\\ud800' * 10**6)",
    "early tests": "import os\nos.read(3, 100)",
}
TESTS = "def check(f):\n    assert abs(f() - 5) < 1e-9\n    assert f() == 5\n\ncheck(f)\n"


@pytest.mark.parametrize("fences", ["all", "nothing"])
@pytest.mark.parametrize("name", ATTACKS)
def test_verdict_cannot_be_forged(name: str, fences: str, rows: Path) -> None:
    code = ATTACKS[name]
    if "def f" not in code:
        code += "\ndef f(): return 4\n"
    limits = SHORT if name in WAITING else Limits()
    outcome = run_tests(code, TESTS, limits=limits, without=FENCES[fences])
    assert not outcome.passed, outcome
    assert outcome.reason != "passed"
    assert "wall time" not in outcome.reason or name in WAITING, outcome
    outcome.reason.encode()
    outcome.output.encode()
    assert alive(rows) == []


def test_patched_builtins_do_not_reach_the_tests() -> None:
    code = "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.all = lambda x: True\ndef f(): return 7"
    failed_because(run_tests(code, "assert abs(f() - 5) < 1"), "AssertionError")


def test_names_keep_a_shadowing_helper_out() -> None:
    code = "def abs(x): return 0\ndef f(): return 7"
    assert run_tests(code, "assert abs(f() - 5) < 1").passed  # documented: the tests see the code's own names
    failed_because(run_tests(code, "assert abs(f() - 5) < 1", names=("f",)), "AssertionError")


def test_verdict_does_not_depend_on_luck() -> None:
    code = "import random\ndef f(): return (random.random(), hash('word'), list({'a', 'b', 'c', 'd'}))"
    first = run_tests(code, "print(f())").output
    assert first == run_tests(code, "print(f())").output


def test_dataclasses_typing_and_pickle_work() -> None:
    code = """
from __future__ import annotations
import collections, dataclasses, enum, pickle, typing
@dataclasses.dataclass
class A:
    x: int
    y: typing.List[int] = dataclasses.field(default_factory=list)
P = collections.namedtuple("P", "a b")
class C(enum.Enum):
    RED = 1
back = pickle.loads(pickle.dumps(A(1)))
"""
    assert run_tests(code, "assert back == A(1) and P(1, 2).b == 2 and C(1) is C.RED").passed


def test_many_at_once_from_threads() -> None:
    outcomes: dict[int, Outcome] = {}

    def one(i: int) -> None:
        outcomes[i] = run_tests(f"def f(): return {i}", f"assert f() == {i // 2 * 2}")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: o.passed for i, o in outcomes.items()} == {i: i % 2 == 0 for i in range(8)}


def test_a_killed_worker_leaves_nothing(rows: Path, without: tuple[str, ...]) -> None:
    start = (
        "from workers.tasks.sandbox import run_tests\n"
        f"run_tests('import time\\nwhile True: time.sleep(.1)', '', without={without!r})\n"
    )
    root = Path(__file__).parents[3]
    worker = subprocess.Popen([sys.executable, "-c", start], cwd=root, env={**os.environ, "TMPDIR": str(rows)})
    deadline = time.monotonic() + 20
    while len(alive(rows)) < 2 and time.monotonic() < deadline:  # the supervisor and its runner
        time.sleep(0.01)
    assert len(alive(rows)) >= 2
    worker.kill()
    worker.wait()
    while (alive(rows) or list(rows.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive(rows) == []
    assert list(rows.iterdir()) == []
