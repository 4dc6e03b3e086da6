"""The files of the pages: one style sheet, one script, one mark. Nothing comes from elsewhere."""

from __future__ import annotations

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from billfold.interfaces.auth.pages.entrance import ANYBODY, Desk
from billfold.interfaces.auth.pages.looks import KINDS
from billfold.kit.errors import NotFound


@get("/files/{name:str}", opt=ANYBODY)
async def show_file(name: str, desk: Desk) -> Response[bytes]:
    """Show a file."""
    content = desk.looks.files.get(name)
    if content is None:
        raise NotFound("There is no such file.")
    return Response(content, media_type=KINDS[name.rpartition(".")[2]])


ROUTES: list[HTTPRouteHandler] = [show_file]
