"""Mail of a sandbox: every e-mail is a file that a mail client can open. Nothing leaves."""

from __future__ import annotations

import os
from pathlib import Path

from billfold.events.email.message import to_mime
from billfold.events.email.ports import OutboundEmail


class FileEmailTransport:
    """Writes e-mails to a folder, oldest first by name."""

    def __init__(self, folder: Path, sender: str) -> None:
        self._folder = folder
        self._sender = sender

    async def send(self, outbound_email: OutboundEmail) -> None:
        """Write the e-mail; the same one again writes the same file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{outbound_email.email_id}.eml"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(to_mime(outbound_email, self._sender).as_bytes())
