"""The master keys of a bank: the one that wraps now, and earlier ones that still unwrap."""

from collections.abc import Sequence
from uuid import UUID

from billfold.data_keys.ports import MasterKey, WrappedKey
from billfold.platform.errors import InvariantError


class MasterKeys:
    """A master key that is being changed, or may be: the first wraps, whichever wrapped a key unwraps it."""

    __slots__ = ("_keys", "name")

    def __init__(self, keys: Sequence[MasterKey]) -> None:
        self._keys = keys
        self.name = keys[0].name

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted by the current master key."""
        return await self._keys[0].wrap(subject_id, key)

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError where its master key is not among these."""
        for each in self._keys:
            if each.name == stored.master_key or (_is_file(each.name) and _is_file(stored.master_key)):
                return await each.unwrap(subject_id, stored)
        raise InvariantError("The master key of a data key is not among the bank's.", master_key=stored.master_key)


def _is_file(name: str) -> bool:
    # Behind this name are the key of the settings and all retired ones: the vault knows which.
    return name.startswith("file:")
