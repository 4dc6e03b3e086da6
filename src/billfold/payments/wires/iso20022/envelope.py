"""Files of messages: each with its header, in the envelope of the Fedwire Funds Service."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from lxml import etree

from billfold.payments.wires.iso20022.messages import HEADER, LAYOUTS
from billfold.payments.wires.iso20022.xml_fields import (
    Element,
    Form,
    Row,
    mistake_at,
    read_rows,
    repeated_in,
    write_rows,
)
from billfold.payments.wires.ports import MISTAKES_SHOWN, FedwireRefused, Header, Mistake, Way, Wire

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_ISO = "urn:iso:std:iso:20022:tech:xsd:"
_MISSING = re.compile(r"missing required field `(\w+)`")
_PLACE = re.compile(r" - at `\$\.([\w.]+)`$")
_HEADER_NAME = "head.001.001.03"
_KINDS = {layout.envelope: kind for kind, layout in LAYOUTS.items()}


class FedwireXml:
    """The files of the port `FedwireFiles`, in XML."""

    def write(self, wires: Sequence[Wire], way: Way) -> bytes:
        """Return the file of these messages. Raises ValueError when one cannot be sent."""
        return write_wires(wires, way)

    def read(self, raw: bytes, way: Way) -> list[tuple[int, Wire]]:
        """Return the messages with the lines on which they begin. Raises FedwireRefused."""
        return read_numbered(raw, way)


def write_wires(wires: Sequence[Wire], way: Way) -> bytes:
    """Return the file of these messages.

    Raises ValueError when a value does not keep to its pattern or length (`ports/fedwire`).
    """
    namespace = f"urn:fedwirefunds:{way}:v001"
    name = f"FedwireFunds{way.capitalize()}"
    root = etree.Element(f"{{{namespace}}}{name}", nsmap={None: namespace})
    root.text = "\n"
    for wire in wires:
        _expect_valid(wire)
        layout = LAYOUTS[type(wire.message)]
        around = etree.SubElement(root, f"{{{namespace}}}{name}Message")
        around.tail = "\n"  # a message each line, so that a line names a message
        inside = etree.SubElement(around, f"{{{namespace}}}{layout.envelope}")
        write_rows(_in_namespace(inside, _HEADER_NAME, "AppHdr"), HEADER, wire.header)
        document = _in_namespace(inside, wire.header.message_name, "Document")
        body = etree.SubElement(document, f"{{{_ISO}{wire.header.message_name}}}{layout.element}")
        write_rows(body, layout.rows, wire.message)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def read_wires(raw: bytes, way: Way) -> list[Wire]:
    """Return the messages of a file, in order. Raises FedwireRefused."""
    return [wire for _, wire in read_numbered(raw, way)]


def read_numbered(raw: bytes, way: Way) -> list[tuple[int, Wire]]:
    """Return the messages of a file in order, with the lines on which they begin.

    Raises FedwireRefused when anything is wrong with any of them: XML that is broken or cut, an
    unknown message, a value that does not keep to its pattern, another currency.
    """
    root = _parsed(raw)
    namespace = f"urn:fedwirefunds:{way}:v001"
    name = f"FedwireFunds{way.capitalize()}"
    if root.tag != f"{{{namespace}}}{name}":
        raise _refused(root, f"is no {name} of {namespace}")
    wires: list[tuple[int, Wire]] = []
    mistakes: list[Mistake] = []
    for around in root:
        try:
            wires.append((around.sourceline or 0, _read_wire(around, namespace)))
        except FedwireRefused as refused:
            mistakes += refused.mistakes
        if len(mistakes) >= MISTAKES_SHOWN:
            break
    if mistakes:
        raise FedwireRefused(mistakes)
    return wires


def _parsed(raw: bytes) -> Element:
    """Parse without entities, without the network, without anything a message has no use for."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        raise FedwireRefused([Mistake(error.lineno or 0, "file", str(error.msg))]) from None
    if root.getroottree().docinfo.doctype:
        raise FedwireRefused([Mistake(1, "file", "has a document type: messages have none")])
    return root


def _read_wire(around: Element, namespace: str) -> Wire:
    inside = around[0] if len(around) == 1 else None
    if inside is None:
        raise _refused(around, "holds not exactly one message")
    name = etree.QName(inside)
    kind = _KINDS.get(name.localname) if name.namespace == namespace else None
    if kind is None:
        raise _refused(inside, "is no message that is known here")
    layout, message_name = LAYOUTS[kind], _name_of(kind)
    head = _child(inside, _HEADER_NAME, "AppHdr")
    document = _child(inside, message_name, "Document")
    body = _child(document, message_name, layout.element)
    header = _read_struct(head, HEADER, Header)
    message = _read_struct(body, layout.rows, kind)
    if header.message_name != message_name:
        raise _refused(head, f"announces {header.message_name}, and {message_name} follows")
    return Wire(header=header, message=message)


def _child(parent: Element, message_name: str, name: str) -> Element:
    child = parent.find(f"{{{_ISO}{message_name}}}{name}")
    if child is None:
        raise _refused(parent, f"has no {name} of {message_name}")
    return child


def _read_struct(element: Element, rows: Sequence[Row], kind: type[_Struct]) -> _Struct:
    fields, mistakes = read_rows(element, rows)
    mistakes += repeated_in(element)
    if mistakes:
        raise FedwireRefused(mistakes)
    try:
        return msgspec.convert({"type": _name_of(kind), **fields}, kind)
    except msgspec.ValidationError as error:
        raise FedwireRefused([_explained(element, rows, str(error))]) from None


def _explained(element: Element, rows: Sequence[Row], said: str) -> Mistake:
    """Say at its element what does not keep to its pattern, its length or its limits."""
    missing, place = _MISSING.search(said), _PLACE.search(said)
    fields = place.group(1).split(".") if place else []
    names = _names_of(rows, [*fields, missing.group(1)] if missing else fields)
    here = _deepest(element, names)
    if missing:
        return Mistake(here.sourceline or 0, names[-1] if names else "", "is missing")
    reason = said[: place.start()] if place else said
    limits = reason.replace("Expected `int`", "cents").replace("Expected `str`", "a text")
    return mistake_at(here, f"{(here.text or '').strip()!r} cannot be: expected {limits}")


def _names_of(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """The elements that hold a field of a field, from the outside in."""
    names: list[str] = []
    for field in fields:
        row = next((each for each in rows if each.field == field), None)
        if row is None:
            break
        names += row.path.split("/")
        rows = () if isinstance(row.form, Form) else row.form
    return names


def _deepest(element: Element, names: Sequence[str]) -> Element:
    """Go down by these names as far as they lead."""
    for name in names:
        child = element.find(f"{{{etree.QName(element).namespace}}}{name}")
        if child is None:
            break
        element = child
    return element


def _refused(element: Element, reason: str) -> FedwireRefused:
    return FedwireRefused([mistake_at(element, reason)])


def _expect_valid(wire: Wire) -> None:
    try:
        msgspec.convert(msgspec.to_builtins(wire), Wire)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    if wire.header.message_name != _name_of(type(wire.message)):
        reason = f"the header announces {wire.header.message_name}, not what follows it"
        raise ValueError(reason)


def _name_of(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _in_namespace(parent: Element, name: str, element: str) -> Element:
    namespace = f"{_ISO}{name}"
    inside: Element = etree.SubElement(parent, f"{{{namespace}}}{element}", nsmap={None: namespace})
    return inside
