"""The page in a real browser: parsed as meant, its numbers there, nothing run, nothing asked of any server.

Skipped only where no Chromium is installed (continuous integration installs it).
"""

import shutil
import subprocess

import pytest

from reports.render import render
from sweeps.aggregate import aggregate_all
from tests.pages import Page
from tests.synthetic import HOSTILE, Faults, grid, sweep

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SMALL = {"tasks": ("tiny-arith",), "budgets": (4, 8), "temperatures": (0.0,)}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def browse(path, tmp_path, *options):
    command = [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def test_the_dom_holds_the_numbers_and_every_text_literally(tmp_path):
    made = sweep(grid(**SMALL, mark=HOSTILE[3], oracles=True), prompts=8, faults=Faults(hostile=True, failed=1, bugs=1))
    path = render(made.write(tmp_path / "run", title="".join(HOSTILE)))
    dom = browse(path, tmp_path, "--dump-dom")
    page = Page(dom)  # what the browser built, read back
    assert {"script", "img", "iframe", "object"} & set(page.tags) == set()
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    text = page.text
    for result in aggregate_all(made.jobs, made.rows()):
        if not result.cell.is_baseline:
            reduction = result.nfe_reduction
            assert f"{reduction.value:.2f} {reduction.low:.2f} \u2013 {reduction.high:.2f}" in text
    for shown in HOSTILE[:4]:
        assert shown in text
    assert "6/7 \u2717" in text
    assert "Oracles: what should be predicted" in text
    assert "oracle_joint" in text


def test_it_prints(tmp_path):
    path = render(sweep(grid(**SMALL), prompts=3).write(tmp_path / "run"))
    browse(path, tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "page.pdf").stat().st_size > 30_000
