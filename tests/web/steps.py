"""Steps that many stories about pages take."""

from tests.fixtures.pages import PASSWORD
from tests.support.browser import first_match


async def give_password(browser, email, password=PASSWORD):
    """Send the form that asks for an address and a password; return the answer."""
    await browser.go("/sign-in")
    return await browser.send("/sign-in", email=email, password=password)


async def reset_link(browser, emails, email):
    """Ask for a new password; return the path of the mailed link."""
    await browser.go("/forgot")
    await browser.send("/forgot", email=email)
    [(_, text)] = await emails()
    return first_match(r"https://auth\.localhost:8443(/password\?link=\S+)", text)
