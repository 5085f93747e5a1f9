"""A report page as a parser sees it: elements, attributes, visible text, embedded downloads."""

from base64 import b64decode
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Page(HTMLParser):
    """What a browser without script would build from the page."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __init__(self, html):
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        super().__init__(convert_charrefs=True)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        """All text, white space folded."""
        return " ".join(" ".join(self.texts).split())

    def values(self, name):
        """All values of one attribute."""
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def downloads(self):
        """Embedded files."""
        return [b64decode(uri.partition(",")[2]).decode() for uri in self.values("href") if uri.startswith("data:")]
