"""Who carries the letters of a bank."""

from billfold.events.email.file_sender import FileEmailTransport
from billfold.events.email.ports import EmailTransport
from billfold.events.email.smtp import SmtpEmailTransport
from billfold.platform.settings.settings import Settings


def email_transport_of(settings: Settings) -> EmailTransport:
    """Return the mail server that was set; a sandbox without one writes files."""
    if settings.mail_url is not None:
        return SmtpEmailTransport(settings.mail_url, settings.mail_from)
    return FileEmailTransport(settings.state_dir / "mail", settings.mail_from)
