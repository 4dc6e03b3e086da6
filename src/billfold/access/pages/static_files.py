"""The files of the pages: one style sheet, one script, one mark. Nothing comes from elsewhere."""

from __future__ import annotations

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import ANYBODY, Desk
from billfold.access.pages.theme import KINDS
from billfold.platform.errors import NotFound


@get("/files/{name:str}", opt=ANYBODY)
async def show_file(name: str, desk: Desk) -> Response[bytes]:
    """Show a file."""
    content = desk.looks.files.get(name)
    if content is None:
        raise NotFound("There is no such file.")
    return Response(content, media_type=KINDS[name.rpartition(".")[2]])


PAGE_ROUTES: list[HTTPRouteHandler] = [show_file]
