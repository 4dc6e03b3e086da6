"""The error that a call raises when the bank refuses."""

from typing import Any, NamedTuple

import httpx


class FieldError(NamedTuple):
    """A mistake in one field of a request; `loc` leads to it: `("body", "amount", "value")`."""

    loc: tuple[str | int, ...]
    msg: str


class ApiError(Exception):
    """The bank refused. `code` names the problem (`/docs/errors` of a bank), or is "invalid" if fields were wrong."""

    def __init__(self, response: httpx.Response) -> None:
        problem = _json_body(response)
        detail = problem.get("detail")
        self.response = response
        self.status = response.status_code
        self.code = str(problem.get("code") or problem.get("error") or "invalid")
        self.title = str(problem.get("title") or "")
        self.detail = str(detail or problem.get("error_description") or "")
        self.fields = _field_errors(detail) if isinstance(detail, list) else []
        """The fields of the request that are wrong."""
        self.retryable: bool | None = problem.get("retryable")
        """Whether the same request may succeed later; None if the answer does not say, as one of a proxy."""
        self.trace_id = response.headers.get("x-service-trace-id", "")
        super().__init__(f"{self.status} {self.code}: {self.detail or self.title}")


def _json_body(response: httpx.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {"detail": response.text}
    return problem if isinstance(problem, dict) else {"detail": problem}


def _field_errors(details: list[Any]) -> list[FieldError]:
    wrong = [each for each in details if isinstance(each, dict)]
    return [FieldError(tuple(each.get("loc", ())), str(each.get("msg", ""))) for each in wrong]
