"""The documentation without a bank: it has no database to read."""

from typing import Any, cast

import httpx
import pytest
from tests.reference.documents import DOCUMENTS

from billfold.documentation.app import DocumentationApp
from billfold.oauth.server.app import auth_document
from billfold.platform.settings.settings import Settings


@pytest.fixture(scope="session")
def documentation():
    settings = Settings()
    documents = {name: lambda name=name: DOCUMENTS[name] for name in DOCUMENTS}
    return DocumentationApp(settings, documents | {"auth": lambda: auth_document(settings)})


@pytest.fixture
async def browser(documentation):
    """A reader of the documentation, on any host."""
    transport = httpx.ASGITransport(cast("Any", documentation), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="https://acme.localhost") as client:
        yield client
