"""The kinds of things that go wrong, without any HTTP.

BillfoldError +- Refused       a rule said no; the code says which
              +- NotFound      nothing under that name, or not the caller's
              +- InvalidInput  the request does not have the declared shape
              +- Unavailable   not now; the same request may work later
              +- MarketDataStale  nothing is traded until newer market data is imported
              +- Broken        an invariant does not hold: a bug in Billfold
"""

from collections.abc import Iterable
from dataclasses import dataclass


class BillfoldError(Exception):
    """Anything Billfold says no with: a stable code, one sentence, and the facts behind it.

    `code` is a key of `problems.PROBLEMS`; `detail` is for people and may change; `facts` are
    safe to show to the caller and become fields of the answer.
    """

    def __init__(self, code: str, detail: str, **facts: object) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.facts = facts


class Refused(BillfoldError):
    """A rule of the bank said no. Nothing was changed; the code names the rule."""


class NotFound(BillfoldError):
    """Nothing is there, or it belongs to someone else: the caller cannot tell which."""

    def __init__(self, detail: str = "There is nothing under this id.", **facts: object) -> None:
        super().__init__("not-found", detail, **facts)


class Unavailable(BillfoldError):
    """Something the request needs does not answer. The same request may be sent again."""

    def __init__(self, detail: str, *, retry_after_seconds: int | None = None, **facts: object) -> None:
        super().__init__("unavailable", detail, **facts)
        self.retry_after_seconds = retry_after_seconds


class MarketDataStale(BillfoldError):
    """The market data is too old to trade by. Nothing was done; the same request may be sent again."""

    retry_after_seconds = 900

    def __init__(self, detail: str, **facts: object) -> None:
        super().__init__("market-data-stale", detail, **facts)


class InvariantError(BillfoldError):
    """An invariant does not hold. The transaction is rolled back and somebody is called.

    The caller learns only that something went wrong: detail and facts are for the log.
    """

    def __init__(self, detail: str, **facts: object) -> None:
        super().__init__("internal-error", detail, **facts)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake in a request: where it is, what is expected, and a word for machines."""

    loc: tuple[str | int, ...]
    msg: str
    type: str


class InvalidInput(BillfoldError):
    """The request does not have the declared shape. Holds every mistake found, never none."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = list(errors)
        if not self.errors:
            msg = "an invalid input has at least one mistake"
            raise ValueError(msg)
        first = self.errors[0]
        super().__init__("invalid-input", f"{'.'.join(map(str, first.loc))}: {first.msg}")

    @classmethod
    def at(cls, *loc: str | int, msg: str, kind: str = "value_error") -> "InvalidInput":
        """Return the error for a single field, such as `at("query", "limit", msg="...")`."""
        return cls([FieldError(loc, msg, kind)])
