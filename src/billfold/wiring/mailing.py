"""Who carries the letters of a bank."""

from billfold.adapters.file_mail import FileMail
from billfold.adapters.smtp_mail import SmtpMail
from billfold.kit.settings import Settings
from billfold.ports.mail import Mail


def mail_of(settings: Settings) -> Mail:
    """Return the mail server that was set; a sandbox without one writes files."""
    if settings.mail_url is not None:
        return SmtpMail(settings.mail_url, settings.mail_from)
    return FileMail(settings.state_dir / "mail", settings.mail_from)
