"""People without an account, who open a mailed link of an invite and fill in what they are asked for."""

from tests.support.applications import V2
from tests.support.browser import ORIGIN, Browser, found

from billfold.events.email import outbox
from billfold.platform.clock import wall_now


def invite_path(application_id, *more):
    """Return where the invites of an application are."""
    return "/".join([f"{V2}{application_id}", *more]) + "/"


async def mailed(bank):
    """Return the e-mails that wait, by address: (subject, text)."""
    now, found_there = wall_now(), {}
    while rows := await outbox.claim_emails(bank.pool, now):
        for each in (outbox.open_email(row, bank.vault) for row in rows):
            await outbox.mark_email_sent(bank.pool, each.email_id, now)
            found_there[each.recipient] = (each.subject, each.text)
    return found_there


def link_in(email):
    """Return the path of the link of an e-mail."""
    return found(rf"{ORIGIN}(/onboarding\?link=\S+)", email[1])


class Guest(Browser):
    """A browser in which a link of an invite is opened; paths are below the invite's."""

    base = ""

    async def open(self, path, *, begins=True):
        """Open a mailed link, and begin."""
        await self.go(path)
        assert "link" not in self.page.headers["location"]
        self.base = self.page.headers["location"]
        await self.follow()
        if begins:
            await self.send(f"{self.base}/begin")
            await self.follow()
        return self

    async def at(self, path=""):
        """Load a page of the invite."""
        return await self.go(f"{self.base}/{path}".rstrip("/"))

    async def fill(self, path, go="next", **fields):
        """Fill in a step, whose fields have `__` for a dot, and send it."""
        await self.at(path)
        named = {name.replace("__", "."): value for name, value in fields.items()}
        return await self.send(f"{self.base}/{path}", **named, go=go)

    async def upload(self, document_id, content, *, kind="application/pdf", name="scan.pdf", **fields):
        """Send a file of a document with the form of the page."""
        await self.at("documents")
        form = {"csrf": self.csrf} | fields
        path = f"{self.base}/documents/{document_id}"
        sent = {"file": (name, content, kind)}
        self.page = await self.http.post(path, data=form, files=sent, headers={"origin": ORIGIN})
        return self.page
