"""A text as a PDF in US Letter. The same text is the same file, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from xml.sax.saxutils import escape

from reportlab.lib.pagesizes import letter
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer

_SPACE = 8


def text_pdf(title: str, paragraphs: Sequence[str]) -> bytes:
    """Return the file: the title, then one paragraph below the other, over as many pages."""
    styles = getSampleStyleSheet()
    story: list[Flowable] = [Paragraph(escape(title), styles["Title"])]
    for paragraph in paragraphs:
        story += [Paragraph(escape(paragraph), styles["BodyText"]), Spacer(1, _SPACE)]
    out = BytesIO()
    # invariant: no time and no random id in the file.
    SimpleDocTemplate(out, pagesize=letter, title=title, invariant=1).build(story)
    return out.getvalue()
