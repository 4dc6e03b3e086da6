"""Bodies that say more of their fields than types can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from billfold.platform.errors import FieldError


class CheckedBody(msgspec.Struct):
    """A body whose fields obey more than their types say."""

    @classmethod
    def field_errors(cls, fields: Mapping[str, Any]) -> Iterator[FieldError]:
        """Yield what is wrong among `told`: the fields that have their types, by name.

        A field that has not is missing there, and its mistake is told already.
        """
        raise NotImplementedError
