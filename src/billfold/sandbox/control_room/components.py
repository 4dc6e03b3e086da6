"""Every component of the pages once, in all its states: for those who build pages."""

from datetime import date
from decimal import Decimal
from types import SimpleNamespace

from litestar import get

from billfold.http.schemas import usd
from billfold.oauth.rules.scopes import SCOPES
from billfold.sandbox.control_room.overview import PATH
from billfold.sandbox.control_room.room import InRoom
from billfold.web.console.charts import maturity_ladder
from billfold.web.page_context import PUBLIC, PageResponse

_STATES = (
    ("SETTLED", "APPROVED", "ACTIVE", "COMPLETED"),
    ("PENDING", "BOOKED", "IN_PROGRESS", "RUNNING"),
    ("FAILED", "RETURNED", "FROZEN", "DENIED"),
    ("DRAFT", "CLOSED"),
)
_LADDER = ((date(2025, 7, 1), 50_000_00), (date(2025, 7, 8), 125_000_00), (date(2025, 7, 15), 20_000_00))
_MISTAKES = {"cents": "The amount must be at least 1.", "text": "The text is too long."}


@get(f"{PATH}/components", opt=PUBLIC)
async def show_components(room: InRoom) -> PageResponse:
    """Show the components."""
    return room.render(
        "control_room_components",
        states=_STATES,
        amounts=[usd(each) for each in (1_204_33, -87_10, 0)],
        per_second=Decimal("3.7"),
        ladder=maturity_ladder(_LADDER),
        marks=_MISTAKES,
        pages=SimpleNamespace(prev_page="newer", next_page="older"),
        scopes=list(SCOPES)[:4],
        signed=[
            SimpleNamespace(direction=direction, amount=usd(amount))
            for direction, amount in (("CREDIT", 250_000_00), ("DEBIT", -1_500_00))
        ],
    )
