"""The result file of a run, written again after every row: a run that is killed loses the row in the making only.

`state` of a part: waiting, running, done, cut (its time was over; rows may be missing), failed (with `error`). A row
with `problems` contradicts what the project claims: the run then ends with exit code 1.
"""

import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.gpu.machine import forget_peak, machine, peak_bytes, power
from tests.gpu.setting import Deadline, Row, Rows, Setting

FORMAT, VERSION = "spot-gpu-checks", 1
Part = Callable[[Setting], Rows]


class Report:
    """What is known so far; `save` makes it the file's content, at once or not at all."""

    def __init__(self, path: Path, setting: Setting, parts: Sequence[str], command: Sequence[str]) -> None:
        self.path = path
        self.began = time.monotonic()
        self.data: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "device": setting.device,
            "small": setting.small,
            "seed": setting.seed,
            "command": list(command),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine(setting),
            "parts": {name: {"state": "waiting", "rows": []} for name in parts},
            "problems": [],
            "finished": False,
            "complete": False,
            "seconds": 0.0,
        }
        self.save()

    def save(self) -> None:
        """Write the file."""
        self.data["seconds"] = round(time.monotonic() - self.began, 3)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(self.data, stream, indent=1, allow_nan=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self.path)

    def run(self, name: str, part: Part, setting: Setting, deadline: Deadline) -> None:
        """Run one part row by row until it is done or its time is over."""
        entry, began = self.data["parts"][name], time.monotonic()
        entry["state"] = "running"
        forget_peak(setting)
        try:
            for row in part(setting):
                entry["rows"].append(row)
                self.data["problems"] += row.get("problems", [])
                entry |= {"seconds": round(time.monotonic() - began, 3), "peak_bytes": peak_bytes(setting)}
                self.save()
                if not deadline.left:
                    entry["state"] = "cut"
                    break
            else:
                entry["state"] = "done"
        except Exception as error:  # the parts behind it can still tell something
            entry |= {"state": "failed", "error": f"{type(error).__name__}: {error}"}
            entry["traceback"] = traceback.format_exc()
            self.data["problems"].append(f"{name}: {entry['error']}")
        entry["power_behind"] = power(setting)
        self.save()

    def rows(self, name: str, kind: str) -> list[Row]:
        """The rows of a kind that a part has written so far."""
        return [row for row in self.data["parts"].get(name, {}).get("rows", []) if row["kind"] == kind]

    def finish(self) -> int:
        """Mark the file as whole, and as `complete` where no part was cut or failed; returns the exit code."""
        self.data["finished"] = True
        self.data["complete"] = all(part["state"] == "done" for part in self.data["parts"].values())
        self.save()
        return 1 if self.data["problems"] else 0
