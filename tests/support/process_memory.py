"""The memory of a process of the bank, searched for secrets."""

import base64
from pathlib import Path

_BLOCK = 1 << 24


def written(secret):
    """Return the ways in which a secret may be written."""
    return {secret, secret.hex().encode(), base64.b64encode(secret)[:-4]}


def traces(chunks, secrets):
    """Return which of the secrets are found in chunks of bytes that follow each other."""
    found, tail = set(), b""
    for chunk in chunks:
        text = tail + chunk
        found |= {name for name, each in secrets.items() if any(form in text for form in each)}
        tail = text[-4096:]
    return found


def memory_of(pid):
    """Yield the private memory of a process."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, access, *_ = line.split(maxsplit=5)
            first, last = (int(each, 16) for each in span.split("-"))
            if access.startswith("rw") and access.endswith("p"):
                for at in range(first, last, _BLOCK):
                    memory.seek(at)
                    yield memory.read(min(_BLOCK, last - at))
