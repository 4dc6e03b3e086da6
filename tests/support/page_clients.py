"""A program that an administrator registers on the pages, as it is filled into the form."""

from tests.support.browser import found
from tests.support.oauth_clients import KEYS, REDIRECT

FORM = {
    "name": "Books",
    "description": "Keeps our books",
    "profile": "fapi2",
    "redirect_uris": f"{REDIRECT}\r\n\r\n http://127.0.0.1:8123/back \r\n",
    "post_logout_redirect_uris": "https://books.example/bye",
    "key": KEYS["ES256"].pem,
    "scope.pockets.read": "yes",
    "scope.openid": "yes",
    "refreshes": "yes",
}


def programs(anna):
    """Return where the programs of her company are."""
    return f"/companies/{anna.customer_id}/programs"


async def register(anna, browser, **changed):
    """Register a program with the form; return the path of its page."""
    await browser.go(f"{programs(anna)}/new")
    # A browser sends only the boxes that are ticked.
    form = {"csrf": browser.csrf, **FORM, **changed}
    form = {name: value for name, value in form.items() if value is not None}
    browser.page = await browser.post(programs(anna), form)
    return browser.page.headers.get("location")


def client_of(path):
    """Return the client_id in the path of a program's page."""
    return found(r"/programs/([0-9a-f]{32})$", path)
