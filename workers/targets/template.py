"""The chat template of a checkpoint: where it stands and whether it can be read, without torch or transformers.

A syntax error shows in planning. What a template does with a message shows when a target is loaded (`text.py`).
"""

from pathlib import Path

from workers.targets.files import read_json


def template_file(folder: Path) -> Path:
    """The file that a checkpoint's chat template stands in, if it has one."""
    own = folder / "chat_template.jinja"
    return own if own.is_file() else folder / "tokenizer_config.json"


def chat_template(folder: Path) -> str | None:
    """The template's source; None when there is none or it is empty. Raises ValueError naming the file."""
    file = template_file(folder)
    if file.suffix == ".jinja":
        try:
            source = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file}: not UTF-8 text ({error})") from None
    else:
        given = value = read_json(file, required=False).get("chat_template")
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):  # several named templates
            value = next((item.get("template") for item in reversed(value) if item.get("name") == "default"), None)
        if not isinstance(value, str | None):
            raise ValueError(f"{file}: chat_template is {given!r}; allowed is text, or a list of named templates")
        source = value or ""
    if not source.strip():
        return None
    check_syntax(file, source)
    return source


def check_syntax(file: Path, source: str) -> None:
    """Raise ValueError, naming file and line, for what is no template. Tags that only transformers knows pass."""
    from jinja2 import Environment, TemplateSyntaxError

    try:
        Environment(extensions=["jinja2.ext.loopcontrols"]).parse(source)
    except TemplateSyntaxError as error:
        if "unknown tag" not in str(error.message):
            raise ValueError(f"{file}: chat template: syntax error in line {error.lineno} ({error.message})") from None
