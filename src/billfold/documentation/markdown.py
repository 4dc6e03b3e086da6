"""Markdown to HTML: headings with anchors, links within the site, code with syntax classes."""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_CONTENTS_LEVELS = ("h2", "h3")


class Link(NamedTuple):
    """A link target: its address and the title of the page."""

    address: str
    title: str


FindLink = Callable[[str], Link | None]
"""Resolves a link, or returns None if its target is not on the site."""


class Heading(NamedTuple):
    """A heading below the title: its level (2 or 3), text and anchor."""

    level: int
    text: str
    anchor: str


class Rendered(NamedTuple):
    """A page's HTML and its headings."""

    html: str
    contents: Sequence[Heading]


def render(text: str, find_link: FindLink) -> Rendered:
    """Return a page as HTML. Links to other sites become plain text."""
    parser = MarkdownIt("commonmark", {"html": False, "highlight": highlighted}).enable("table")
    parser.add_render_rule("table_open", lambda *_: '<div class="table" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("code_block", lambda _, tokens, at, *__: highlighted(tokens[at].content, ""))
    tokens = parser.parse(without_comments(text))
    contents = list(_add_anchors(tokens))
    for each in tokens:
        if each.children:
            each.children = _with_links(each.children, find_link)
    return Rendered(parser.renderer.render(tokens, parser.options, {}), contents)


def without_comments(text: str) -> str:
    """Return Markdown without the comments for its writers."""
    return _COMMENT.sub("", text)


def title_of(text: str) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else ""


def anchor_of(heading: str) -> str:
    """Return the anchor of a heading, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def highlighted(code: str, language: str, _attributes: str = "") -> str:
    """Return a highlighted block of code; an unknown language stays plain."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        inner = escape(code)
    else:
        inner = highlight(code, lexer, HtmlFormatter(nowrap=True))
    return f'<pre tabindex="0"><code>{inner}</code></pre>\n'


def _add_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Add an anchor to every heading; yield those of the page's contents."""
    seen: dict[str, int] = {}
    for place, each in enumerate(tokens):
        if each.type != "heading_open":
            continue
        text = tokens[place + 1].content.replace("`", "")
        anchor = anchor_of(text)
        seen[anchor] = seen.get(anchor, -1) + 1
        if seen[anchor]:
            anchor = f"{anchor}-{seen[anchor]}"
        each.attrSet("id", anchor)
        if each.tag in _CONTENTS_LEVELS:
            yield Heading(int(each.tag[1]), text, anchor)


def _with_links(children: Sequence[Token], find_link: FindLink) -> list[Token]:
    """Return the tokens of a line. Links with no target on the site are dropped; file names become titles."""
    kept: list[Token] = []
    link: Link | None = None
    for each in children:
        if each.type == "link_open":
            link = find_link(str(each.attrGet("href")))
            each.attrSet("href", link.address if link else "")
        elif each.type == "text" and link and each.content.endswith(".md"):
            each.content = link.title
        if link or each.type not in {"link_open", "link_close"}:
            kept.append(each)
        if each.type == "link_close":
            link = None
    return kept
