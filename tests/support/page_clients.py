"""An application that an administrator registers on the pages, as it is filled into the form."""

from tests.support.browser import found
from tests.support.oauth_clients import KEYS, REDIRECT

FORM = {
    "name": "Books",
    "description": "Keeps our books",
    "profile": "fapi2",
    "redirect_uris": f"{REDIRECT}\r\n\r\n http://127.0.0.1:8123/back \r\n",
    "post_logout_redirect_uris": "https://books.example/bye",
    "public_key": KEYS["ES256"].pem,
    "scope.pockets.read": "yes",
    "scope.openid": "yes",
    "refreshes": "yes",
}


def applications(anna):
    """Return where the applications of her company are."""
    return f"/companies/{anna.customer_id}/applications"


async def register(anna, browser, **changed):
    """Register an application with the form; return the path of its page."""
    await browser.go(f"{applications(anna)}/new")
    # A browser sends only the boxes that are ticked.
    form = {"csrf": browser.csrf, **FORM, **changed}
    form = {name: value for name, value in form.items() if value is not None}
    browser.page = await browser.post(applications(anna), form)
    return browser.page.headers.get("location", "").partition("?")[0] or None


def client_of(path):
    """Return the client_id in the path of an application's page."""
    return found(r"/applications/([0-9a-f]{32})\b", path)
