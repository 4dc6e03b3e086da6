"""The page of a problem, as Markdown and as HTML, and the index of all."""

from collections.abc import Iterable
from html import escape

from billfold.platform.problems.problem import Problem

_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem;"
    "color:#1b1f24;background:#fff}code{background:#eef1f4;padding:.1em .3em;border-radius:3px}"
    "h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.1rem;margin-top:2rem}"
    "td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{color:#e6e9ec;background:#14181d}"
    "code{background:#262c33}a{color:#8ab8ff}}"
)


def as_markdown(problem: Problem) -> str:
    """Return the page of one problem as Markdown."""
    return (
        f"# {problem.title}\n\n"
        f"`{problem.code}`, status {problem.status}, {_retry_hint(problem)}\n\n"
        f"## What it means\n\n{problem.meaning}\n\n"
        f"## What to do\n\n{problem.remedy}\n"
    )


def as_html(problem: Problem) -> str:
    """Return the page of one problem as an HTML document that needs nothing else."""
    return _document(
        problem.title,
        f"<h1>{_inline_html(problem.title)}</h1>"
        f"<p><code>{escape(problem.code)}</code>, status {problem.status}, {_retry_hint(problem)}</p>"
        f"<h2>What it means</h2><p>{_inline_html(problem.meaning)}</p>"
        f"<h2>What to do</h2><p>{_inline_html(problem.remedy)}</p>",
    )


def index_as_markdown(problems: Iterable[Problem]) -> str:
    """Return the table of all problems as Markdown, in the order of their codes."""
    rows = "".join(
        f"| [`{problem.code}`](errors/{problem.code}) | {problem.status} | {problem.title} |\n"
        for problem in _sorted(problems)
    )
    return f"# Errors\n\n| Code | Status | Title |\n|---|---|---|\n{rows}"


def index_as_html(problems: Iterable[Problem], prefix: str = "/docs/errors/") -> str:
    """Return the table of all problems as an HTML document linking to the page of each."""
    rows = "".join(
        f'<tr><td><a href="{escape(prefix + problem.code)}"><code>{escape(problem.code)}</code>'
        f"</a></td><td>{problem.status}</td><td>{_inline_html(problem.title)}</td></tr>"
        for problem in _sorted(problems)
    )
    head = "<tr><th>Code</th><th>Status</th><th>Title</th></tr>"
    return _document("Errors", f"<h1>Errors</h1><table>{head}{rows}</table>")


def _sorted(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.code)


def _retry_hint(problem: Problem) -> str:
    if problem.retryable:
        return "the same request may be sent again"
    return "the same request will fail again"


def _inline_html(text: str) -> str:
    """Escape a sentence, and turn what stands between backquotes into code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if quoted % 2 else part for quoted, part in enumerate(parts))


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )
