"""A page for each problem, whose address is the `type` of the answer, and the table of all."""

from collections.abc import Iterable
from functools import partial

from billfold.documentation.types import Page
from billfold.platform.problems.problem import Problem

INDEX_PATH = "/docs/errors"
_INDEX = """\
# Errors

An error is a problem document (RFC 9457) with `type`, `title`, `status`, `detail`, `instance`, `code`, `trace_id` and
`retryable`. Its `type` is the address of its page here. Two things are answered otherwise: a request that does not fit
its schema gets 422 with `detail`, a list of `loc`, `msg` and `type`; and the token endpoints answer as RFC 6749 says.

| Code | Status | Title | Retry |
|---|---|---|---|
"""


def problem_index(problems: Iterable[Problem]) -> Page:
    """Return the page that lists all problems by code."""
    rows = "".join(
        f"| [`{each.code}`]({INDEX_PATH}/{each.code}) | {each.status} | {each.title} "
        f"| {'yes' if each.retryable else 'no'} |\n"
        for each in _in_order(problems)
    )
    note = "\n*Retry*: the same request, sent again unchanged, may succeed.\n"
    return Page(path=INDEX_PATH, title="Errors", text=lambda: _INDEX + rows + note)


def problem_pages(problems: Iterable[Problem]) -> list[Page]:
    """Return a page for each problem, in the order of codes."""
    return [
        Page(
            path=f"{INDEX_PATH}/{each.code}", title=each.title, text=partial(_problem_text, each), kind=str(each.status)
        )
        for each in _in_order(problems)
    ]


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda each: each.code)


def _problem_text(problem: Problem) -> str:
    again = "may succeed when it is sent again" if problem.retryable else "fails when it is sent again"
    return (
        f"# {problem.title}\n\n"
        f"`{problem.code}`, status {problem.status}. The same request {again}.\n\n"
        f"## What it means\n\n{problem.meaning}\n\n"
        f"## What to do\n\n{problem.remedy}\n"
    )
