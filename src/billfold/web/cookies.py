"""The cookies of the pages."""

from dataclasses import replace

from litestar.datastructures import Cookie

from billfold.pages.theme import COOKIE

DEVICE_COOKIE = "__Host-device"
_DEVICE_SECONDS = 180 * 24 * 3600


def session_cookie(value: str) -> Cookie:
    """Return the session cookie of a browser, signed in or not; it ends with the browser."""
    return Cookie(key=COOKIE, value=value, path="/", secure=True, httponly=True, samesite="lax")


def device_cookie(value: str) -> Cookie:
    """Return the cookie by which a browser is recognized for half a year."""
    return replace(session_cookie(value), key=DEVICE_COOKIE, max_age=_DEVICE_SECONDS)
