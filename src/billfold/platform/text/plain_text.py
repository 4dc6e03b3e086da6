"""What people wrote, as it may stand in an e-mail of the bank: plain words of bounded length, without links. Pure."""

import re
import unicodedata
from typing import Final

CHARS_MAX: Final = 100
_NUMBERS: Final = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_ADDRESS: Final = re.compile(rf"://|\bwww\.\w|\w[.\u3002][^\W\d_]{{2,}}|[<>@]|{_NUMBERS.pattern}", re.IGNORECASE)
_MAIL: Final = re.compile(r"[(\"']*[\w.+'-]+@(?:[\w-]+\.)+[\w-]+[)\"'.,:;!?]*")
_NAME: Final = re.compile(r"[^\W\d_][^\W\d_ '\u2019.,\u00b7-]*(?:[ '\u2019.,\u00b7-]+[^\W\d_]*)*")
_KEPT: Final = frozenset(" '\u2019.,&()-/+#")
_POINT_IN_WORD: Final = re.compile(r"(?<=\S)[.\u2024\u3002\uff0e\uff61](?=[^\W\d_]|[^\x00-\x7f])")
"""A point before a letter, or before what may be an accent or not be seen at all."""


def has_web_address(text: str) -> bool:
    """Tell whether a mail program would make a link of a part of a text, however its characters are written."""
    composed = unicodedata.normalize("NFKC", text)
    seen = "".join(each for each in composed if unicodedata.category(each) not in {"Cf", "Me", "Mn"})
    return _ADDRESS.search(seen) is not None


def is_name(text: str) -> bool:
    """Tell whether a text is the name of a person: letters, and what stands between them; no address, no digits."""
    composed = unicodedata.normalize("NFKC", text)
    letters = "".join(each for each in composed if not unicodedata.category(each).startswith("M"))
    return _NAME.fullmatch(letters) is not None and not has_web_address(text)


def plain_text(text: str, most: int = CHARS_MAX) -> str:
    """Return a text of letters, digits and common punctuation, in which no address is left for a mail program."""
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(each if each in _KEPT or unicodedata.category(each)[0] in "LMN" else " " for each in composed)
    spread = _NUMBERS.sub(lambda found: found[0].replace(".", ". "), kept.replace("//", " "))
    return " ".join(without_links(spread).split())[:most].strip()


def without_links(text: str) -> str:
    """Return a text whose words are not addresses of the web any more; addresses of mail stay."""
    words = text.replace("://", " ").split(" ")
    return " ".join(each if _MAIL.fullmatch(each) else _POINT_IN_WORD.sub(". ", each) for each in words)
