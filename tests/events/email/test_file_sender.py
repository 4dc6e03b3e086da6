"""Letters of a sandbox are files that a mail program reads."""

import stat
from email import message_from_bytes, policy
from uuid import UUID

import msgspec

from billfold.events.email.ports import OutboundEmail
from billfold.events.email.transports import FileEmailTransport

LETTER = OutboundEmail(
    email_id=UUID("8f3b6f60-0000-4000-8000-00000000aaaa"),
    recipient="anna@b.example",
    subject="Grüße",
    text="Hello,\n\nhttps://auth.localhost:8443/password?link=abc\n",
)


async def test_an_email_file_is_readable_by_its_owner_only(tmp_path):
    mail = FileEmailTransport(tmp_path / "mail", "Billfold <no-reply@localhost>")
    await mail.send(LETTER)
    await mail.send(LETTER)
    [path] = (tmp_path / "mail").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    message = message_from_bytes(path.read_bytes(), policy=policy.default)
    assert message["to"] == "anna@b.example"
    assert message["subject"] == "Grüße"
    assert message["message-id"] == f"<{LETTER.email_id}@localhost>"
    assert "password?link=abc\n" in message.get_content()


async def test_a_long_link_is_one_piece_in_the_file(tmp_path):
    link = f"https://auth.localhost:8443/invitation?link={'a' * 80}"
    texts = {"plain": f"Hello,\n\n{link}\n", "other letters": f"Grüße\n{link}\n"}
    for name, text in texts.items():
        mail = FileEmailTransport(tmp_path / name, "Billfold <no-reply@localhost>")
        await mail.send(msgspec.structs.replace(LETTER, text=text))
        [path] = (tmp_path / name).iterdir()
        assert (link in path.read_text()) is (name == "plain")
        message = message_from_bytes(path.read_bytes(), policy=policy.default)
        assert message.get_content().splitlines() == text.splitlines()
