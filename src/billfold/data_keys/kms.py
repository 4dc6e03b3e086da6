"""Master keys that wrap data keys: in AWS KMS (extra `billfold[aws]`), or in a file here.

Credentials and region of AWS are found as its SDK finds them. Source: the KMS API, `Encrypt` and `Decrypt` with an
encryption context.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

import structlog

from billfold.platform.clock import monotonic
from billfold.platform.crypto import Vault, associated_data
from billfold.platform.errors import InvariantError, Unavailable
from billfold.platform.telemetry.metrics import MASTER_KEY_FAILURES

Result = TypeVar("Result")
log = structlog.get_logger(__name__)
TIMEOUT_SECONDS = 5.0
SLOW_SECONDS = 1.0
"""A failure that took so long makes others wait: the service hangs."""
PAUSE_SECONDS = 5.0
"""Time for which a service that hangs is not called."""


class WrappedKey(NamedTuple):
    """A data key as it is stored: encrypted, with the name of the master key that encrypted it."""

    wrapped: bytes
    master_key: str


class MasterKey(Protocol):
    """Encrypts and decrypts data keys of 32 bytes, each bound to its subject.

    An adapter may call another machine: nothing waits for it inside a transaction if the key was loaded before.
    """

    @property
    def name(self) -> str:
        """The name of the key that `wrap` uses now; it reveals nothing about the key itself."""

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted. Raises Unavailable when the master key cannot be reached."""

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError when it is damaged, of another subject or of another master key."""


_DAMAGED = frozenset({"InvalidCiphertextException", "IncorrectKeyException", "InvalidKeyUsageException"})


class AwsKmsMasterKey:
    """Wraps data keys with one symmetric key of KMS, named by its id, ARN or alias."""

    def __init__(self, key: str, *, endpoint_url: str | None = None) -> None:
        # Only a bank that uses KMS has the SDK installed.
        import boto3  # noqa: PLC0415
        import botocore.config  # noqa: PLC0415
        import botocore.exceptions  # noqa: PLC0415

        self.name = f"aws-kms:{key}"
        self._key = key
        # By default a call to a service that hangs keeps its thread for five minutes.
        limits = botocore.config.Config(
            connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS, retries={"total_max_attempts": 1}
        )
        self._client: Any = boto3.client("kms", endpoint_url=endpoint_url, config=limits)
        self._errors = (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError)

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted, bound to its subject. Raises Unavailable."""
        answer = await self._call("encrypt", Plaintext=key, EncryptionContext=_context(subject_id))
        return WrappedKey(answer["CiphertextBlob"], self.name)

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises InvariantError, Unavailable."""
        answer = await self._call("decrypt", CiphertextBlob=stored.wrapped, EncryptionContext=_context(subject_id))
        plain: bytes = answer["Plaintext"]
        return plain

    async def _call(self, operation: str, **arguments: object) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await asyncio.to_thread(
                getattr(self._client, operation), KeyId=self._key, **arguments
            )
        except self._errors as error:
            answered = getattr(error, "response", None) or {}  # None after a timeout
            code = answered.get("Error", {}).get("Code", type(error).__name__)
            if code in _DAMAGED:
                raise InvariantError("KMS refuses a data key: it is damaged, or of another key or subject.") from None
            raise Unavailable(f"KMS answers {code} to {operation}.") from None
        return answer


def _context(subject_id: UUID) -> dict[str, str]:
    return {"billfold:subject": str(subject_id)}


class FileMasterKey:
    """Wraps data keys with the vault. A retired key still unwraps."""

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


class MasterKeys:
    """A master key that can be changed: the first wraps, and the one that wrapped a key unwraps it.

    Callers hold a connection to the database. So a service that hangs is called by one of them at a time, and the
    others are refused at once, until it answers.
    """

    def __init__(self, keys: Sequence[MasterKey], *, clock: Callable[[], float] = monotonic) -> None:
        self._keys = keys
        self.name = keys[0].name
        self._clock = clock
        self._paused_until: dict[str, float] = {}

    async def wrap(self, subject_id: UUID, key: bytes) -> WrappedKey:
        """Return the key encrypted by the current master key. Raises Unavailable."""
        return await self._call(self.name, partial(self._keys[0].wrap, subject_id, key))

    async def unwrap(self, subject_id: UUID, stored: WrappedKey) -> bytes:
        """Return the key. Raises Unavailable, and InvariantError where its master key is not among these."""
        for each in self._keys:
            if each.name == stored.master_key or (_is_file(each.name) and _is_file(stored.master_key)):
                return await self._call(each.name, partial(each.unwrap, subject_id, stored))
        raise InvariantError("The master key of a data key is not among the bank's.", master_key=stored.master_key)

    async def _call(self, name: str, work: Callable[[], Awaitable[Result]]) -> Result:
        began = self._clock()
        if name in self._paused_until:
            if began < self._paused_until[name]:
                raise Unavailable("The master key does not answer.", retry_after_seconds=round(PAUSE_SECONDS))
            self._paused_until[name] = began + PAUSE_SECONDS
        try:
            result = await work()
        except Unavailable as error:
            MASTER_KEY_FAILURES.add()
            log.warning("master_key_unavailable", key=name, error=error.detail)
            if self._clock() - began >= SLOW_SECONDS:
                self._paused_until[name] = self._clock() + PAUSE_SECONDS
            raise
        self._paused_until.pop(name, None)
        return result


def _is_file(name: str) -> bool:
    # This name covers the key of the settings and all retired ones: the vault knows which one.
    return name.startswith("file:")
