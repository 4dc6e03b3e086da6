"""The application of the authorization server: its endpoints in one frame; pages are separate."""

from http import HTTPStatus

from typing_extensions import override

from billfold import __version__
from billfold.http.api import Api
from billfold.http.openapi import Described, Document, describe
from billfold.http.operations import Operation, Proof, operations_in
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse
from billfold.ledger.bank import Bank
from billfold.oauth.consent import FORM_POST_PATH
from billfold.oauth.endpoint import error_response
from billfold.oauth.server import authorize, logout
from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.types import OAuthError
from billfold.platform.clock import wall_now
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.problems import PROBLEMS
from billfold.platform.settings.settings import Settings
from billfold.platform.telemetry.metrics import SIGN_IN_FAILURES

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
    return "This is our fault, and it was logged. Try again in a moment."


def _of_fields(error: InvalidInput) -> str:
    first = error.errors[0]
    if first.loc[0] == "query":
        return f"The address is wrong: {first.loc[-1]} {first.msg}."
    return "The form is incomplete. Go back and try again."


_TITLE = "Authorization server"
_DESCRIPTION = (
    "OAuth 2.0 and OpenID Connect for the Customer API: authorization code with PKCE, pushed "
    "requests, clients that authenticate by `private_key_jwt`, and tokens bound to a key by "
    "DPoP. Access tokens are opaque and last 900 seconds.\n\n"
    "Clients of the profile `fapi2` push their requests and prove their key with our nonce; for "
    "clients of the profile `documented` both are optional. Errors are those of RFC 6749.\n\n"
    "Administrators of a company register its clients with their public keys on the pages of this "
    "server, under Applications."
)
PROOFS = frozenset({Proof.NONE})
_BROWSER_PATHS = (authorize.PATH, logout.PATH, FORM_POST_PATH)
"""Paths to which browsers are sent: an error there is a page."""


_SIGN_IN_ERRORS = frozenset({"access_denied", "invalid_client", "invalid_dpop_proof", "invalid_grant"})
"""Errors that count as a failed sign-in."""


class AuthApi(Api):
    """The authorization server of one process. Its endpoints authenticate clients themselves."""

    def __init__(self) -> None:
        super().__init__(auth_operations(), PROOFS)

    def open_bank(self, bank: Bank) -> None:
        """Serve a bank."""
        self._server = AuthServer(bank)
        self.open(bank, None, server=self._server)

    @override
    def error_response(self, error: Exception, request: RawRequest) -> HttpResponse:
        if request.path.startswith(_BROWSER_PATHS):
            return self._error_page(error, request)
        if not isinstance(error, OAuthError):
            return super().error_response(error, request)
        if error.error in _SIGN_IN_ERRORS:
            SIGN_IN_FAILURES.add(f"oauth {error.error}")
        nonce = (b"dpop-nonce", self._server.nonces.current(wall_now()).encode())
        headers = [nonce] if error.error == "use_dpop_nonce" else []
        return error_response(error, *headers)

    def _error_page(self, error: Exception, request: RawRequest) -> HttpResponse:
        """Return the page for a user whom a client sent here."""
        known = None if isinstance(error, OAuthError) else super().error_response(error, request)
        status = HTTPStatus.BAD_REQUEST if known is None else known.status
        facts = error_facts(error, status, request.trace_id)
        return self._server.page("error", status=status, more=() if known is None else known.headers, **facts)


def auth_operations() -> list[Operation]:
    """Return the operations of every module here."""
    return operations_in(str(__package__))


def create_auth_app(bank: Bank) -> AuthApi:
    """Return the ASGI application of one worker."""
    api = AuthApi()
    api.open_bank(bank)
    return api


def auth_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the authorization server; it needs no bank."""
    described = Described(
        operations=auth_operations(),
        proofs=PROOFS,
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        servers=[{"url": settings.auth_origin}],
    )
    document = describe(described)
    # Its paths are published as the specifications spell them: without a trailing slash.
    document["paths"] = {path.rstrip("/"): item for path, item in document["paths"].items()}
    return document
