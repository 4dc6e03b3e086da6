"""Who carries the letters of a bank."""

from billfold.events.email.file_sender import FileMail
from billfold.events.email.ports import Mail
from billfold.events.email.smtp import SmtpMail
from billfold.platform.settings.settings import Settings


def mail_of(settings: Settings) -> Mail:
    """Return the mail server that was set; a sandbox without one writes files."""
    if settings.mail_url is not None:
        return SmtpMail(settings.mail_url, settings.mail_from)
    return FileMail(settings.state_dir / "mail", settings.mail_from)
