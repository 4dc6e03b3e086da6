"""Statements as both APIs list them."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.http.schemas import one_of
from billfold.reports.statements.types import StatementType

TYPES = {each.value: each for each in StatementType} | {
    each.value.replace("-", ""): each for each in StatementType if each.startswith("1099-")
}
"""Types by every spelling that a filter takes."""


class Statement(msgspec.Struct, kw_only=True):
    """A statement. `key` is its month, or the year of a tax form. A corrected one has a higher version and a reason."""

    id: UUID
    service_account_id: UUID
    type: Annotated[str, one_of(*StatementType)]
    key: str
    version: int
    reason: str | None
    pdf_download_url: Annotated[str, msgspec.Meta(max_length=2083)]
    time_created: datetime
    object_type: Literal["Statement"] = "Statement"
