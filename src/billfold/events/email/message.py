"""How a letter looks as a message of RFC 5322."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import parseaddr

from billfold.events.email.ports import Letter

_LINE_CHARS_MAX = 998
"""What RFC 5322 allows in one line."""


def as_message(letter: Letter, sender: str) -> EmailMessage:
    """Return the message. Its id is the letter's, so that a second copy is known as one."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = letter.recipient
    message["Subject"] = letter.subject
    message["Message-ID"] = f"<{letter.letter_id}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    # A link stays in one piece for whoever reads the message as it travels.
    plain = letter.text.isascii() and max(map(len, letter.text.split("\n"))) <= _LINE_CHARS_MAX
    message.set_content(letter.text, cte="7bit" if plain else "quoted-printable")
    return message
