"""Getting the program out of a generated answer: fenced or bare, whole or only the body, with prose around it.

Candidates are the fenced blocks (``` or ~~~, any tag or none; an unclosed one reaches to the end) and the unfenced
stretches between them. A *full solution* parses and defines the wanted function with a real body. Rule: the last
fenced full solution wins (a draft before it is retracted, tests after it define nothing), then the last unfenced one,
then a body that completes the prompt's header. If none is full, the first block, or the whole text, goes to the tests
as it is and fails there by name.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator

MAX_LENGTH = 20_000  # characters of a stretch that is searched for code between prose
MAX_STARTS, MAX_CUTS = 20, 8
_OPENING = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*(?:[ \t]*\{.*\})?)(?P<rest>[^`]*)$")
_CLOSING = re.compile(r"(?P<before>.*?)(?P<marks>`{3,}|~{3,})[ \t]*$")
_START = re.compile(r"(?:async\s+def|def|class|import|from)\s|@\w|[A-Za-z_]\w*\s*(?::[^=]+)?=[^=]")
_UNINDENTED = re.compile(r"^(?:async\s+def|def|class)\s", re.MULTILINE)  # a program of its own, no function's body
_FUTURE = re.compile(r"^from __future__ import [^\n]*\n?", re.MULTILINE)


def extract_code(answer: str, *, entry_point: str, prompt: str = "") -> str:
    """The program to test: what comes before the function in `prompt` (imports, helpers), then the answer's own code.

    `prompt` is source text that ends with the header of `entry_point`, or "". Never raises.
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    fenced, bare = _stretches(text)
    for is_fenced, stretches in ((True, fenced), (False, bare)):
        for stretch in reversed(stretches):
            found = _whole(stretch, entry_point, fenced=is_fenced)
            if found is not None:
                return _joined(preamble(prompt, entry_point), found)
    if prompt:
        for stretch in (s for s in (*fenced, *bare) if not _UNINDENTED.search(s) and len(s) <= MAX_LENGTH):
            for body in _bodies(stretch):
                if _defines(f"{prompt.rstrip()}\n{body}\n", entry_point):
                    return f"{prompt.rstrip()}\n{body}\n"
    return _joined(preamble(prompt, entry_point), fenced[0] if fenced else text)


def preamble(prompt: str, entry_point: str) -> str:
    """What stands before `entry_point` in valid source: imports and helper functions; "" if it is not valid."""
    for node in reversed(_parsed(prompt)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == entry_point:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            return "\n".join(prompt.split("\n")[: first - 1])
    return ""


def defined_names(source: str) -> tuple[str, ...]:
    """The names that valid source defines or imports at its top level."""
    names: list[str] = []
    for node in _parsed(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names += [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return tuple(names)


def _stretches(text: str) -> tuple[list[str], list[str]]:
    """The fenced blocks and the unfenced stretches, in order, empty ones left out."""
    fenced: list[str] = []
    bare: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opening, closing = _OPENING.match(line), _CLOSING.match(line)
        if fence and closing and closing["marks"].startswith(fence):
            fenced.append("\n".join([*lines, closing["before"]]))
            fence, lines = "", []
        elif not fence and opening:
            bare.append("\n".join(lines))
            is_code = bool(opening["rest"].strip())  # code on the opening line, not a language
            fence, lines = opening["marks"], [opening["tag"] + opening["rest"]] if is_code else []
        else:
            lines.append(line)
    (fenced if fence else bare).append("\n".join(lines))
    return [s for s in fenced if s.strip()], [s for s in bare if s.strip()]


def _whole(stretch: str, entry_point: str, *, fenced: bool) -> str | None:
    """The part of a stretch that is a full solution: all of it, or from a line that starts code to one that ends it."""
    dedented = textwrap.dedent(stretch)
    if _defines(dedented, entry_point):
        return dedented if fenced else _without_prose(dedented)
    if f"def {entry_point}" not in dedented or len(dedented) > MAX_LENGTH:
        return None
    lines = dedented.split("\n")
    starts = [i for i, line in enumerate(lines) if _START.match(line)]
    searched = 0
    for start in starts[:MAX_STARTS]:
        part = _longest_prefix(lines[start:]) if start >= searched else ""
        if _defines(part, entry_point):
            return _without_prose(part)
        searched = max(searched, start + part.count("\n") + 1)
    return None


def _without_prose(source: str) -> str:
    """Source without the words around it that happen to parse, such as a closing `Done` or `Note: fine`."""
    lines = source.split("\n")
    for node in reversed(_parsed(source)):
        idle = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)
        if idle or (isinstance(node, ast.AnnAssign) and node.value is None):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _longest_prefix(lines: list[str]) -> str:
    """The most lines from the first that parse: a syntax error's line is where code ends and prose begins."""
    end = len(lines)
    for _ in range(MAX_CUTS):
        part = "\n".join(lines[:end])
        fault = _fault(part)
        if fault is None or end == 0:
            return part
        end = min(end - 1, max(fault - 1, 0))
    return ""


def _bodies(stretch: str) -> Iterator[str]:
    """Ways to read a stretch as the body of a function: prose around it, and a first line that lost its indent."""
    lines = stretch.strip("\n").split("\n")
    indented = [i for i, line in enumerate(lines) if line.startswith((" ", "\t"))]
    first = indented[0] if indented else 0
    outside = (i for i, line in enumerate(lines) if i > first and line.strip() and not line.startswith((" ", "\t")))
    end = next(outside, len(lines))
    for part in (lines, lines[:end], lines[first:end]):
        yield "\n".join(part)
        yield textwrap.indent(textwrap.dedent("\n".join(part)), "    ")
        yield "\n".join(["    " + part[0].lstrip(), *part[1:]])


def _defines(source: str, entry_point: str) -> bool:
    """Whether source parses and defines the function with more than docstring, `pass`, `...`, NotImplementedError."""
    for node in _parsed(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == entry_point:
            return not all(_is_idle(statement) for statement in node.body)
    return False


def _is_idle(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement)


def _fault(source: str) -> int | None:
    """The line of the first syntax error (1 when there is no better), None when the source parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def _parsed(source: str) -> list[ast.stmt]:
    """The top-level statements; none when the source does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _joined(before: str, code: str) -> str:
    """Both, with `from __future__` imports of the second kept where they must stand: at the top."""
    future = "".join(_FUTURE.findall(code))
    rest = _FUTURE.sub("", code) if future else code
    return "\n".join(part.rstrip("\n") for part in (future, before, rest) if part.strip()) + "\n"
