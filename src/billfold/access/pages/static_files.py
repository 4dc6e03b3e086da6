"""The files of the pages: one style sheet, one script, one mark. Nothing comes from elsewhere."""

from __future__ import annotations

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from billfold.access.pages.page_context import PUBLIC, PageServer
from billfold.access.pages.theme import MEDIA_TYPES
from billfold.platform.errors import NotFound


@get("/files/{name:str}", opt=PUBLIC)
async def show_file(name: str, server: PageServer) -> Response[bytes]:
    """Show a file."""
    content = server.theme.files.get(name)
    if content is None:
        raise NotFound("There is no such file.")
    return Response(content, media_type=MEDIA_TYPES[name.rpartition(".")[2]])


PAGE_ROUTES: list[HTTPRouteHandler] = [show_file]
