"""Checks on a GPU: is the shipped zoo lossless there, and what does a round cost? JSON out.

python tests/gpu/check.py                         # everything, under 8 minutes on one H100 or H200
python tests/gpu/check.py --parts zoo,forward     # some of it
python tests/gpu/check.py --device cpu --small    # the same code at tiny sizes: is the script in order?

Needs torch, transformers and numpy, and nothing else. Ends with 0 when all is well, 1 when an output differs from
draft-free decoding by more than rounding explains, differs in spite of `verify_margin`, noise differs between devices,
or a part failed; 2 when the run cannot begin.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from tests.gpu.forward import forward_rows, graph_rows
from tests.gpu.noise import noise_rows
from tests.gpu.report import Part, Report
from tests.gpu.rounds import Rounds
from tests.gpu.setting import Deadline, Setting
from tests.gpu.zoo import zoo_rows
from workers.catalog import DRAFTERS
from workers.decode_one import check_device

RESULTS = Path(__file__).parent / "results"
SHARES = {"noise": 1, "forward": 4, "round": 2, "zoo": 20, "graphs": 2}  # of the seconds left, in running order


def main(argv: Sequence[str]) -> int:
    """Run the parts asked for; returns the exit code."""
    asked = parser().parse_args(argv)
    setting = Setting(
        device=asked.device,
        small=asked.small,
        seed=asked.seed,
        targets=names(asked.targets),
        drafters=names(asked.drafters),
    )
    chosen = names(asked.parts) or tuple(SHARES)
    if wrong := refusal(setting, chosen, asked.seconds):
        print(f"check: {wrong}", file=sys.stderr)
        return 2
    chosen = tuple(name for name in SHARES if name in chosen)
    if setting.on_cuda:  # events and graphs are made on the current device
        torch.cuda.set_device(setting.device)
    torch.manual_seed(setting.seed)
    report = Report(asked.out or named_after(setting), setting, chosen, argv)
    parts: dict[str, Part] = {
        "noise": noise_rows,
        "zoo": zoo_rows,
        "forward": forward_rows,
        "round": Rounds(report),
        "graphs": graph_rows,
    }
    end = Deadline.after(asked.seconds)
    for place, name in enumerate(chosen):
        share = SHARES[name] / sum(SHARES[later] for later in chosen[place:])
        report.run(name, parts[name], setting, Deadline.after(end.left * share))
        entry = report.data["parts"][name]
        print(f"{name}: {entry['state']}, {len(entry['rows'])} rows", flush=True)
    code = report.finish()
    for problem in report.data["problems"]:
        print(f"PROBLEM {problem}")
    if not report.data["complete"]:
        print("INCOMPLETE: give the parts that were cut more time (--seconds), or run them alone (--parts)")
    print(report.path)
    return code


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description="Checks of losslessness and of costs on a GPU.")
    options.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu together with --small")
    options.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    options.add_argument("--parts", default="", help=f"some of {','.join(SHARES)}, (default: all)")
    options.add_argument("--seconds", type=float, default=440.0, help="time of all parts together (default: 440)")
    options.add_argument("--targets", default="", help="names of shipped targets (default: all)")
    options.add_argument("--drafters", default="", help="names of drafters (default: all that can run)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="the result file (default: results/<device>-<date>.json)")
    return options


def names(text: str) -> tuple[str, ...]:
    """The names of a comma list."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def refusal(setting: Setting, chosen: Sequence[str], asked_seconds: float) -> str:
    """Why this cannot run ("": it can)."""
    everything = Setting(device=setting.device, small=setting.small, seed=setting.seed)
    for what, given, allowed in (
        ("part", chosen, tuple(SHARES)),
        ("target", setting.targets, everything.zoo),
        ("drafter", setting.drafters, tuple(DRAFTERS)),
    ):
        if unknown := sorted(set(given) - set(allowed)):
            return f"unknown {what} {unknown[0]!r}: allowed are {', '.join(allowed)}"
    if setting.on_cuda and not torch.cuda.is_available():
        return "there is no CUDA device here, so nothing was measured; --device cpu --small tries the script without"
    if not setting.on_cuda and not setting.small:
        return f"device is {setting.device!r}: allowed is cuda, or cpu together with --small"
    try:
        check_device(setting.device)
    except ValueError as error:
        return str(error)
    return "" if asked_seconds > 0 else f"seconds are {asked_seconds:g}: allowed is a number above 0"


def named_after(setting: Setting) -> Path:
    """The result file of this device and moment."""
    name = torch.cuda.get_device_name(setting.device) if setting.on_cuda else "CPU-small"
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")
    return RESULTS / f"{slug}-{time.strftime('%Y-%m-%d-%H%M%S', time.gmtime())}.json"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
