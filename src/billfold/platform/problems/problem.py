"""One kind of problem: the content of an error response, and of the page that explains it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A stable code, its HTTP status, and an explanation for people.

    `meaning` says what happened, `remedy` what the caller does next. `retryable` is true when
    the same request, sent again unchanged, may succeed.
    """

    code: str
    status: int
    title: str
    meaning: str
    remedy: str
    retryable: bool = False
