"""What tests of the pages begin with."""

import pytest

from billfold.identity.users.passwords import PasswordGate


@pytest.fixture
def verified(monkeypatch):
    """Whether each password that was verified had no account, in order."""
    seen = []
    verify = PasswordGate.verify_now

    async def noted(gate, password_hash, password):
        seen.append(password_hash is None)
        return await verify(gate, password_hash, password)

    monkeypatch.setattr(PasswordGate, "verify_now", noted)
    return seen
