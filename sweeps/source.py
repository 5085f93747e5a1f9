"""The text of a sweep file: where each key stands, and the spellings that YAML 1.1 would read as something else.

The file is composed into nodes with their lines before anything interprets it. So every later error can name file and
line, and `010` (8), `1:30` (90), `no` (False), a key given twice or a tab indent are refused instead of misread.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from sweeps.paths import cut

Path = tuple[str | int, ...]
TAG = "tag:yaml.org,2002:"
BOOL, INT, FLOAT, MERGE, NULL = (TAG + tag for tag in ("bool", "int", "float", "merge", "null"))
PLAIN = (BOOL, INT, FLOAT, MERGE, NULL, *(TAG + tag for tag in ("str", "map", "seq", "timestamp")))
MAX_DEPTH = 20  # levels; a sweep has four
MAX_NODES = 100_000  # values, each alias counted as what it stands for


EMPTY = "the file is empty: a sweep has at least `grid:` with `target` and `task`"


class SweepError(ValueError):
    """Bad input: one line for the person who typed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A named text with the line of every key path in it."""

    name: str
    lines: Mapping[Path, int]
    overrides: Mapping[Path, str]

    def at(self, path: Path) -> str:
        """`file:line` of a path or of its nearest parent; for a value given on the command line, that argument."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.overrides:
                return self.overrides[path[:end]]
            inside = next((text for key, text in self.overrides.items() if end and key[:end] == path[:end]), None)
            if inside and path[:end] not in self.lines:
                return inside
            if path[:end] in self.lines:
                return f"{self.name}:{self.lines[path[:end]]}"
        return self.name

    def error(self, path: Path, message: str) -> SweepError:
        """The error for something at `path`."""
        return SweepError(f"{self.at(path)}: {message}")


def dotted(path: Path) -> str:
    """A key path as it is typed: `grid.budget[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def key_lines(text: str, name: str, *, empty: str = EMPTY) -> dict[Path, int]:
    """The line of every key path of a YAML text; raises SweepError (`file:line: ...`) on whatever would be misread.

    `empty` says what a file without anything in it lacks.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise SweepError(f"{name}: nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise SweepError(f"{where}: not YAML: {_what_is_wrong(error, text, mark)}") from None
    except yaml.YAMLError as error:
        raise SweepError(f"{name}: not YAML: {' '.join(str(error).split())}") from None
    if root is None:
        raise SweepError(f"{name}: {empty}")
    if not isinstance(root, yaml.MappingNode):
        raise SweepError(
            f"{name}:{root.start_mark.line + 1}: the top level must be a mapping of keys, not a list or a word"
        )
    _measure(root, name, {})
    lines: dict[Path, int] = {}
    _walk(root, (), name, lines)
    return lines


def check_value(text: str, where: str) -> None:
    """Refuse a value given on the command line that YAML would misread; `where` is the whole argument."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        raise SweepError(f"{where}: nested too deeply") from None
    except yaml.YAMLError as error:
        raise SweepError(f"{where}: not a YAML value: {getattr(error, 'problem', None) or error}") from None
    if node is None or text[node.end_mark.index :].strip():
        raise SweepError(f"{where}: what follows # would be a remark: quote the value (KEY='\"...\"' in a shell)")
    _measure(node, where, {}, inline=True)
    _walk(node, (), where, {}, inline=True)


def _measure(
    node: yaml.Node, name: str, known: dict[int, tuple[int, int]], *, level: int = 1, inline: bool = False
) -> tuple[int, int]:
    """How many values a node stands for and how many levels they take; refuses more than anybody writes.

    A few lines of aliases can stand for billions of values, which would be made one by one later. `known` holds what
    was measured; a node within itself counts once (it is refused later).
    """
    where = name if inline else f"{name}:{node.start_mark.line + 1}"
    if id(node) not in known:
        if level > MAX_DEPTH:
            raise SweepError(f"{where}: nested too deeply: allowed are {MAX_DEPTH} levels")
        known[id(node)] = (1, 1)
        inside = [] if isinstance(node, yaml.ScalarNode) else node.value
        children = [child for item in inside for child in (item if isinstance(item, tuple) else (item,))]
        found = [_measure(child, name, known, level=level + 1, inline=inline) for child in children]
        known[id(node)] = (1 + sum(size for size, _ in found), 1 + max((height for _, height in found), default=0))
    size, height = known[id(node)]
    if level + height - 1 > MAX_DEPTH:
        raise SweepError(f"{where}: nested too deeply: allowed are {MAX_DEPTH} levels")
    if size > MAX_NODES:
        raise SweepError(f"{where}: stands for {size} values: allowed are {MAX_NODES}")
    return size, height


def _walk(
    node: yaml.Node,
    path: Path,
    name: str,
    lines: dict[Path, int],
    *,
    inline: bool = False,
    above: tuple[yaml.Node, ...] = (),
) -> None:
    """Record the lines under a node and refuse misleading scalars, repeated keys and anchors within themselves."""

    def where(at: yaml.Node) -> str:
        return name if inline else f"{name}:{at.start_mark.line + 1}"

    if any(node is outer for outer in above):
        raise SweepError(f"{where(node)}: {dotted(path)} is an alias of what it stands in: write its value out")
    above = (*above, node)
    if node.tag not in PLAIN:
        tag = node.tag.replace(TAG, "!!")
        raise SweepError(
            f"{where(node)}: not YAML for a sweep: {dotted(path)} has the tag {cut(tag)}: write it plainly"
        )
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node, where(node))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), name, lines, inline=inline, above=above)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[Any, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise SweepError(f"{where(key)}: a key must be one word")
            if key.tag == MERGE:
                continue  # the merged mapping was walked where its anchor stands
            _check_scalar(key, where(key))
            if key.tag in (BOOL, INT, FLOAT, NULL):
                what = f"{dotted(path)}: the key" if path else "the key"
                kind = key.tag.removeprefix(TAG)
                raise SweepError(f"{where(key)}: {what} {key.value or 'null'} is read as a {kind}: quote it")
            if key.value in seen:
                first = "" if inline else f" (first in line {seen[key.value].start_mark.line + 1})"
                raise SweepError(f"{where(key)}: {key.value} is given twice{first}")
            seen[key.value] = key
            lines[(*path, key.value)] = key.start_mark.line + 1
            _walk(value, (*path, key.value), name, lines, inline=inline, above=above)


def _check_scalar(node: yaml.ScalarNode, where: str) -> None:
    """Refuse an unquoted word that YAML 1.1 reads as something that it does not look like."""
    text = node.value
    if node.style is not None:
        return
    if node.tag == BOOL and text.lower() not in ("true", "false"):
        raise SweepError(f"{where}: {text} would be read as true or false: quote it ('{text}'), or write true or false")
    if node.tag in (INT, FLOAT) and ":" in text:
        raise SweepError(f"{where}: {text} would be read as a number to base 60: quote it or write the number out")
    if node.tag == INT and re.fullmatch(r"[-+]?0[0-7_]+", text):
        raise SweepError(f"{where}: {text} would be read as octal: drop the leading zero, or quote it if it is text")


def _what_is_wrong(error: yaml.MarkedYAMLError, text: str, mark: yaml.Mark | None) -> str:
    """One line on a syntax error, with the cause that people run into most often."""
    problem = " ".join(part for part in (error.context, error.problem) if part)
    line = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
    hint = " (a tab in the indent: use spaces)" if "\t" in line[: len(line) - len(line.lstrip())] else ""
    if "single document" in problem:
        hint = " (a second `---` document: one sweep a file)"
    return " ".join(problem.split()) + hint
