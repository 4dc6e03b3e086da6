"""A note as it is shown: a base of the shapes of objects that have one."""

import msgspec


class ShownNote(msgspec.Struct, kw_only=True):
    """The note of an object."""

    external_id: str | None = None
    metadata: dict[str, str] = {}

    @property
    def metadata_text(self) -> str:
        """The metadata as JSON in one line, empty if there are none."""
        return msgspec.json.encode(self.metadata).decode() if self.metadata else ""
