"""One kind of problem: what an answer that is an error says, and what its page explains."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A stable code, the HTTP status it is answered with, and what people need to know.

    `meaning` says what happened, `remedy` what the caller does next. `retryable` is true when
    the same request, sent again unchanged, may succeed.
    """

    code: str
    status: int
    title: str
    meaning: str
    remedy: str
    retryable: bool = False
