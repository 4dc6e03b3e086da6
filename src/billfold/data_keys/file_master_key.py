"""The master key of the settings: the bank's encryption key and the retired ones."""

from uuid import UUID

from billfold.data_keys.ports import WrappedKey
from billfold.platform.crypto import Vault, associated_data


class FileMasterKey:
    """Wraps data keys with the vault. A retired key still unwraps."""

    __slots__ = ("_vault", "name")

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.name = f"file:{vault.key_id}"

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted, bound to its subject."""
        return WrappedKey(self._vault.seal(key, _place(subject_id)), self.name)

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError."""
        return self._vault.open(stored.wrapped, _place(subject_id))


def _place(subject_id: UUID) -> bytes:
    return associated_data("data_key", "wrapped", subject_id, tenant_id=subject_id)
