"""How a letter looks as a message of RFC 5322."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import parseaddr

from billfold.ports.mail import Letter


def as_message(letter: Letter, sender: str) -> EmailMessage:
    """Return the message. Its id is the letter's, so that a second copy is known as one."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = letter.recipient
    message["Subject"] = letter.subject
    message["Message-ID"] = f"<{letter.letter_id}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.text)
    return message
