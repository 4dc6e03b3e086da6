"""How an e-mail looks as a message of RFC 5322."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import parseaddr

from billfold.events.email.ports import OutboundEmail

_LINE_CHARS_MAX = 998
"""What RFC 5322 allows in one line."""


def to_mime(outbound_email: OutboundEmail, sender: str) -> EmailMessage:
    """Return the message. Its id is the e-mail's, so that a second copy is known as one."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = outbound_email.recipient
    message["Subject"] = outbound_email.subject
    message["Message-ID"] = f"<{outbound_email.email_id}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    # A link must not be broken across lines.
    is_plain = outbound_email.text.isascii() and max(map(len, outbound_email.text.split("\n"))) <= _LINE_CHARS_MAX
    message.set_content(outbound_email.text, cte="7bit" if is_plain else "quoted-printable")
    return message
