"""What an error page says: of the pages, and of the endpoints of OAuth to which a browser is sent."""

from litestar.exceptions import HTTPException

from billfold.oauth.types import OAuthError
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.problems import PROBLEMS

_HEADINGS = {
    400: "The request cannot be read",
    403: "This is not allowed",
    404: "Not found",
    422: "The request cannot be read",
    429: "Too many attempts",
    503: "Temporarily unavailable",
}


def error_facts(error: Exception, status: int, trace_id: str) -> dict[str, str]:
    """Return heading, sentence and trace of an error page."""
    heading = _HEADINGS.get(status, "Something went wrong")
    if isinstance(error, OAuthError):
        heading = "This request cannot be answered"
    return {"heading": heading, "sentence": _sentence(error), "trace_id": trace_id}


def _sentence(error: Exception) -> str:
    if isinstance(error, OAuthError):
        return f"{error.description} ({error.error}) Go back to the application that sent you here and begin again."
    if isinstance(error, InvalidInput):
        return _of_fields(error)
    if isinstance(error, BillfoldError) and error.code in PROBLEMS:
        return error.detail
    if isinstance(error, HTTPException):
        return "The address is wrong, or the page no longer exists."
    return "This is our fault, and it was logged. Try again in a moment."


def _of_fields(error: InvalidInput) -> str:
    first = error.errors[0]
    if first.loc[0] == "query":
        return f"The address is wrong: {first.loc[-1]} {first.msg}."
    return "The form is incomplete. Go back and try again."
