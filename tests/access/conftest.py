"""What tests of the pages begin with."""

import pytest


@pytest.fixture
async def signed_in(anna, browser):
    """The browser, in which Anna has just signed in with both factors."""
    await anna.sign_in(browser)
    return browser
