"""A user of a sandbox with a browser."""

import pyotp
from tests.support.browser import forms_of


class Person:
    """A user with a browser, who signs in and consents to every request."""

    def __init__(self, http, box):
        self.http, self.box, self.person = http, box, box["person"]

    def agree(self, address):
        """Open the address of a program; return where the last page leads."""
        self.open(address)
        sign_in = {each: self.person[each] for each in ("email", "password")}
        self.open(self.send("/sign-in", **sign_in))
        code = pyotp.TOTP(self.person["totp_secret"]).now()
        self.open(self.send("/second-factor", code=code))
        return self.send("/consent", decision="grant")

    def open(self, address):
        """Go to a page, wherever it leads."""
        page = self.http.get(address)
        while page.is_redirect:
            page = self.http.get(page.headers["location"])
        assert page.status_code == 200, page.text
        self.text = page.text

    def send(self, action, **fields):
        """Send the form of the page; return where it leads."""
        form = {**forms_of(self.text)[action], **fields}
        page = self.http.post(action, data=form, headers={"origin": self.box["auth_url"]})
        assert page.status_code == 303, page.text
        return page.headers["location"]
