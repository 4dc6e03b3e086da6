"""Events as Parquet files (extra `billfold[parquet]`): the columns of the export, ids and payloads as texts."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from asyncpg import Record

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_NUMBERS = ("global_sequence", "partner_sequence", "customer_sequence", "event_no")
_NULLABLE = frozenset({"partner_sequence", "customer_sequence"})


def write_parquet(path: Path, rows: Sequence[Record]) -> None:
    """Write events to a file."""
    # Only who exports so has the extra installed.
    from arro3.core import Array, DataType, Field, RecordBatch, Schema  # noqa: PLC0415
    from arro3.io import write_parquet as write  # noqa: PLC0415

    number, text, instant = DataType.int64(), DataType.utf8(), DataType.timestamp("us", tz="UTC")
    fields, columns = [], []
    for name in rows[0].keys():  # noqa: SIM118 - of a record, not of a dict
        values = [row[name] for row in rows]
        if name in _NUMBERS:
            kind, column = number, Array(values, type=number)
        elif name == "raised_at":
            kind, column = (
                instant,
                Array([(each - _EPOCH) // _MICROSECOND for each in values], type=number).cast(instant),
            )
        else:
            kind, column = text, Array([None if each is None else str(each) for each in values], type=text)
        fields.append(Field(name, kind, nullable=name in _NULLABLE))
        columns.append(column)
    write(RecordBatch.from_arrays(columns, schema=Schema(fields)), path, compression="zstd(3)")
