"""What people wrote, as it may stand in an e-mail of the bank: plain words of bounded length, without links. Pure."""

import re
import unicodedata
from typing import Final

CHARS_MAX: Final = 100
_ADDRESS: Final = re.compile(r"://|\bwww\.\w|\w[.\u3002][^\W\d_]{2,}|[<>@]", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\W\d_][^\W\d_ '\u2019.,\u00b7-]*(?:[ '\u2019.,\u00b7-]+[^\W\d_]*)*")
_KEPT: Final = frozenset(" '\u2019.,&()-/+#")
_POINT_IN_WORD: Final = re.compile(r"(?<=\w)[.\u3002](?=[^\W\d_])")


def has_web_address(text: str) -> bool:
    """Tell whether a mail program would make a link of a part of a text, however its characters are written."""
    return _ADDRESS.search(unicodedata.normalize("NFKC", text)) is not None


def is_name(text: str) -> bool:
    """Tell whether a text is the name of a person: letters, and what stands between them; no address, no digits."""
    composed = unicodedata.normalize("NFKC", text)
    letters = "".join(each for each in composed if not unicodedata.category(each).startswith("M"))
    return _NAME.fullmatch(letters) is not None and not has_web_address(text)


def plain_text(text: str, most: int = CHARS_MAX) -> str:
    """Return a text of letters, digits and common punctuation, in which no address is left for a mail program."""
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(each if each in _KEPT or unicodedata.category(each)[0] in "LMN" else " " for each in composed)
    return " ".join(without_links(kept.replace("//", " ")).split())[:most].strip()


def without_links(text: str) -> str:
    """Return a text whose words are not addresses of the web any more; addresses of mail stay."""
    words = text.replace("://", " ").split(" ")
    return " ".join(each if "@" in each else _POINT_IN_WORD.sub(". ", each) for each in words)
