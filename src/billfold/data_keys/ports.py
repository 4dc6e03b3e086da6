"""The port of the master key, which encrypts data keys and nothing else."""

from typing import NamedTuple, Protocol
from uuid import UUID


class WrappedKey(NamedTuple):
    """A data key as it is stored: encrypted, with the name of the master key that did it."""

    wrapped: bytes
    master_key: str


class MasterKey(Protocol):
    """Encrypts and decrypts data keys of 32 bytes, each bound to its subject.

    An adapter may call another machine: nothing waits for it inside a transaction if the key was loaded before.
    """

    @property
    def name(self) -> str:
        """The name of the key that `wrap` uses now; it tells nothing about the key itself."""

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted. Raises Unavailable when the master key cannot be reached."""

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError when it is damaged, of another subject or of another master key."""
