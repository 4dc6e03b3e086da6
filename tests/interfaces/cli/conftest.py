"""Commands run in the process of their tests: on a wide page, and their log ends with them."""

import logging

import pytest
import structlog

from billfold.interfaces.cli import shown


@pytest.fixture(autouse=True)
def _a_page_of_its_own(monkeypatch):
    monkeypatch.setattr(shown.console, "width", 200)
    root = logging.getLogger()
    doors, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = doors, level
    structlog.reset_defaults()
