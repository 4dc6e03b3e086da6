"""The kinds of errors, without any HTTP.

BillfoldError +- Refused       a rule refused; the code names the rule
              +- NotFound      unknown, or not the caller's
              +- InvalidInput  the request does not have the declared shape
              +- Unavailable   not now; the same request may work later
              +- Broken        an invariant does not hold: a bug in Billfold
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """An HTTP status, by default that of a conflict, and an explanation for people.

    `meaning` says what happened, `remedy` what the caller does next. `retryable` is true when
    the same request, sent again unchanged, may succeed. The stable `code` is its key in the register.
    """

    title: str
    _: KW_ONLY
    status: int = 409
    meaning: str
    remedy: str
    retryable: bool = False
    code: str = ""


class BillfoldError(Exception):
    """Base of all refusals: a stable code, one sentence, and the facts behind it.

    `code` is a key of `problems.PROBLEMS`; `detail` is for people and may change; `facts` are
    safe to show to the caller and become fields of the answer.
    """

    def __init__(self, code: str, detail: str, **facts: object) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.facts = facts
        self.about: Mapping[str, object] | None = None
        """The figures that an explanation begins with. They are logged and not shown: not each caller may see them."""


class Refused(BillfoldError):
    """A rule of the bank refused. Nothing was changed; the code names the rule."""


class NotFound(BillfoldError):
    """Unknown, or owned by someone else: the caller cannot tell which."""

    def __init__(self, detail: str = "Nothing has this id.", **facts: object) -> None:
        super().__init__("not-found", detail, **facts)


class Unavailable(BillfoldError):
    """A service that the request needs is unavailable. The same request may be sent again."""

    def __init__(self, detail: str, *, retry_after_seconds: int | None = None, **facts: object) -> None:
        super().__init__("unavailable", detail, **facts)
        self.retry_after_seconds = retry_after_seconds


class InvariantError(BillfoldError):
    """An invariant does not hold. The transaction is rolled back and an operator is alerted.

    The caller learns only that something went wrong: detail and facts are for the log.
    """

    def __init__(self, detail: str, **facts: object) -> None:
        super().__init__("internal-error", detail, **facts)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error in a request: its location, what is expected, and a machine-readable type."""

    loc: tuple[str | int, ...]
    msg: str
    type: str


class InvalidInput(BillfoldError):
    """The request does not have the declared shape. Holds every error found, never none."""

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
