"""Files of messages: each with its header, in the envelope of the Fedwire Funds Service."""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from lxml import etree

from billfold.payments.files.types import MISTAKES_MAX, InvalidFile
from billfold.payments.wires.iso20022.messages import HEADER, LAYOUTS
from billfold.payments.wires.iso20022.types import FedwireMessage, FedwireMistake, FileDirection, Header, UnreadMessage
from billfold.payments.wires.iso20022.xml_fields import (
    Element,
    ElementCodec,
    ElementMapping,
    mistake_at,
    read_rows,
    repeated_in,
    write_rows,
)

_StructT = TypeVar("_StructT", bound=msgspec.Struct)

_ISO = "urn:iso:std:iso:20022:tech:xsd:"
_MISSING = re.compile(r"missing required field `(\w+)`")
_ERROR_PATH = re.compile(r" - at `\$\.([\w.]+)`$")
_HEADER_NAME = "head.001.001.03"
_TYPES_BY_ENVELOPE = {layout.envelope: message_type for message_type, layout in LAYOUTS.items()}


def write_messages(wires: Sequence[FedwireMessage], way: FileDirection) -> bytes:
    """Return the file of these messages.

    Raises ValueError if a value does not match its pattern or length (`iso20022.types`).
    """
    namespace = f"urn:fedwirefunds:{way}:v001"
    name = f"FedwireFunds{way.capitalize()}"
    root = etree.Element(f"{{{namespace}}}{name}", nsmap={None: namespace})
    root.text = "\n"
    for wire in wires:
        _validate(wire)
        layout = LAYOUTS[type(wire.message)]
        message_element = etree.SubElement(root, f"{{{namespace}}}{name}Message")
        message_element.tail = "\n"  # one message per line, so that a line identifies a message
        wrapper = etree.SubElement(message_element, f"{{{namespace}}}{layout.envelope}")
        write_rows(_in_namespace(wrapper, _HEADER_NAME, "AppHdr"), HEADER, wire.header)
        document = _in_namespace(wrapper, wire.header.message_name, "Document")
        body = etree.SubElement(document, f"{{{_ISO}{wire.header.message_name}}}{layout.element}")
        write_rows(body, layout.rows, wire.message)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")


def read_messages(raw: bytes, way: FileDirection) -> list[tuple[int, FedwireMessage]]:
    """Return the messages of a file in order, with the lines on which they begin.

    Raises InvalidFile if any message is invalid: malformed or truncated XML, an unknown
    message, a value that does not match its pattern, another currency.
    """
    wires, unread = read_file(raw, way)
    if unread:
        raise InvalidFile([mistake for each in unread for mistake in mistakes_of(each)][:MISTAKES_MAX])
    return wires


def mistakes_of(unread: UnreadMessage) -> tuple[FedwireMistake, ...]:
    """Return the errors of a message that is not read; an unknown kind is one."""
    unknown = FedwireMistake(unread.line, unread.name, "is not a known message")
    return unread.mistakes or (unknown,)


def read_file(raw: bytes, way: FileDirection) -> tuple[list[tuple[int, FedwireMessage]], list[UnreadMessage]]:
    """Return the messages of a file with their lines, and those that are not read: unknown kinds or with errors.

    Raises InvalidFile if the XML or the envelope is invalid. A message holds one header and one document with one
    payment.
    """
    root = parse_xml(raw)
    namespace = f"urn:fedwirefunds:{way}:v001"
    name = f"FedwireFunds{way.capitalize()}"
    if root.tag != f"{{{namespace}}}{name}":
        raise _invalid(root, f"is no {name} of {namespace}")
    wires: list[tuple[int, FedwireMessage]] = []
    unread: list[UnreadMessage] = []
    mistakes: list[FedwireMistake] = []
    for message_element in root:
        line = message_element.sourceline or 0
        try:
            wrapper = _only_child(message_element, namespace, f"{name}Message")
            _check_counts(wrapper)
            if etree.QName(wrapper).localname in _TYPES_BY_ENVELOPE:
                try:
                    wires.append((line, _read_wire(wrapper)))
                except InvalidFile as invalid:  # only for this message
                    own_name = _name_of(_TYPES_BY_ENVELOPE[etree.QName(wrapper).localname])
                    described = _describe(wrapper, line)
                    unread.append(described._replace(name=own_name, mistakes=tuple(invalid.mistakes)))
            else:
                unread.append(_describe(wrapper, line))
        except InvalidFile as invalid:
            mistakes += invalid.mistakes
        if len(mistakes) >= MISTAKES_MAX:
            break
    if mistakes:
        raise InvalidFile(mistakes)
    return wires, unread


def parse_xml(raw: bytes) -> Element:
    """Parse without entities, network access, comments or processing instructions. Raises InvalidFile."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(raw, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidFile([FedwireMistake(error.lineno or 0, "file", str(error.msg))]) from None
    if root.getroottree().docinfo.doctype:
        raise InvalidFile([FedwireMistake(1, "file", "has a document type: messages have none")])
    return root


def _only_child(message_element: Element, namespace: str, name: str) -> Element:
    """Return the one message of an element of the envelope."""
    if message_element.tag != f"{{{namespace}}}{name}":
        raise _invalid(message_element, f"is no {name} of {namespace}")
    if len(message_element) != 1:
        raise _invalid(message_element, "holds not exactly one message")
    if etree.QName(message_element[0]).namespace != namespace:
        raise _invalid(message_element[0], f"is not of {namespace}")
    return message_element[0]


def _check_counts(wrapper: Element) -> None:
    """Check that a message holds one header and one document with one body. Raises InvalidFile if it holds more."""
    for parent, count in ((wrapper, 2), (wrapper.find("{*}Document"), 1)):
        if parent is not None and len(parent) > count:
            reason = f"holds {len(parent)} elements, not {count}: send each payment in its own message"
            raise _invalid(parent, reason)


def _describe(wrapper: Element, line: int) -> UnreadMessage:
    """Return a message that is not read, with the name of its document and the number in its header."""
    document = wrapper.find("{*}Document")
    namespace = "" if document is None else etree.QName(document).namespace or ""
    announced = wrapper.findtext(".//{*}AppHdr/{*}MsgDefIdr") or etree.QName(wrapper).localname
    number = wrapper.findtext(".//{*}AppHdr/{*}BizMsgIdr") or ""
    return UnreadMessage(line, namespace.removeprefix(_ISO) or announced.strip(), number.strip())


def _read_wire(wrapper: Element) -> FedwireMessage:
    message_type = _TYPES_BY_ENVELOPE[etree.QName(wrapper).localname]
    message_name = _name_of(message_type)
    head = _child(wrapper, _HEADER_NAME, "AppHdr")
    body = _child(_child(wrapper, message_name, "Document"), message_name, LAYOUTS[message_type].element)
    header = _read_struct(head, HEADER, Header)
    message = _read_struct(body, LAYOUTS[message_type].rows, message_type)
    if header.message_name != message_name:
        raise _invalid(head, f"announces {header.message_name}, and {message_name} follows")
    return FedwireMessage(header=header, message=message)


def _child(parent: Element, message_name: str, name: str) -> Element:
    """Return the child with a name. Raises InvalidFile if there is none."""
    child = parent.find(f"{{{_ISO}{message_name}}}{name}")
    if child is None:
        raise _invalid(parent, f"has no {name} of {message_name}")
    return child


def _read_struct(element: Element, rows: Sequence[ElementMapping], message_type: type[_StructT]) -> _StructT:
    fields, mistakes = read_rows(element, rows)
    mistakes += repeated_in(element, rows)
    if mistakes:
        raise InvalidFile(mistakes)
    try:
        return msgspec.convert({"type": _name_of(message_type), **fields}, message_type)
    except msgspec.ValidationError as error:
        raise InvalidFile([_to_mistake(element, rows, str(error))]) from None


def _to_mistake(element: Element, rows: Sequence[ElementMapping], error_text: str) -> FedwireMistake:
    """Return the error for an invalid value, at its element."""
    missing, error_path = _MISSING.search(error_text), _ERROR_PATH.search(error_text)
    fields = error_path.group(1).split(".") if error_path else []
    names = _names_of(rows, [*fields, missing.group(1)] if missing else fields)
    deepest = _innermost_element(element, names)
    if missing:
        return FedwireMistake(deepest.sourceline or 0, names[-1] if names else "", "is missing")
    reason = error_text[: error_path.start()] if error_path else error_text
    limits = reason.replace("Expected `int`", "cents").replace("Expected `str`", "a text")
    return mistake_at(deepest, f"{(deepest.text or '').strip()!r} cannot be: expected {limits}")


def _names_of(rows: Sequence[ElementMapping], fields: Sequence[str]) -> list[str]:
    """Return the elements that hold a nested field, outermost first."""
    names: list[str] = []
    for field in fields:
        row = next((each for each in rows if each.field == field), None)
        if row is None:
            break
        names += row.path.split("/")
        rows = () if isinstance(row.form, ElementCodec) else row.form
    return names


def _innermost_element(element: Element, names: Sequence[str]) -> Element:
    """Return the innermost element along these names."""
    for name in names:
        child = element.find(f"{{{etree.QName(element).namespace}}}{name}")
        if child is None:
            break
        element = child
    return element


def _invalid(element: Element, reason: str) -> InvalidFile:
    return InvalidFile([mistake_at(element, reason)])


def _validate(wire: FedwireMessage) -> None:
    try:
        msgspec.convert(msgspec.to_builtins(wire), FedwireMessage)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    if wire.header.message_name != _name_of(type(wire.message)):
        reason = f"the header announces {wire.header.message_name}, not what follows it"
        raise ValueError(reason)


def _name_of(message_type: type[msgspec.Struct]) -> str:
    return str(message_type.__struct_config__.tag)


def _in_namespace(parent: Element, name: str, element: str) -> Element:
    namespace = f"{_ISO}{name}"
    wrapper: Element = etree.SubElement(parent, f"{{{namespace}}}{element}", nsmap={None: namespace})
    return wrapper
