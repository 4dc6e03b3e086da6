"""The agreements in force, from the file beside this one."""

from __future__ import annotations

from datetime import date
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

Category = Literal["BANK", "BROKERAGE", "GENERAL", "E-SIGN"]


class AgreementText(msgspec.Struct, frozen=True, kw_only=True):
    """One text; `type` names it for ever."""

    type: str
    title: str
    category: Category
    paragraphs: tuple[str, ...]

    @property
    def slug(self) -> str:
        """Return its name in addresses: `FORM_CRS` is `form-crs`."""
        return self.type.lower().replace("_", "-")


class AgreementTexts(msgspec.Struct, frozen=True, kw_only=True):
    """All texts of one version."""

    version: str
    release_date: date
    documents: tuple[AgreementText, ...]


@cache
def current_agreement() -> AgreementTexts:
    """Return the version in force."""
    text = files(__package__).joinpath("agreements.toml").read_bytes()
    return msgspec.toml.decode(text, type=AgreementTexts)
