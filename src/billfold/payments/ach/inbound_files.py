"""Inbound ACH files. Failed lines are retried with growing delays and block nothing else."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.ledger.bank import Bank
from billfold.ledger.types import ScheduledJob
from billfold.payments.ach.booking import AchFileBooking
from billfold.payments.ach.nacha.reader import normalize, read_lines
from billfold.payments.ach.nacha.records import AchFileMistake
from billfold.payments.ach.validation import CheckedFile, check_file
from billfold.payments.files.inbound import InboundFiles
from billfold.payments.files.types import RailFile
from billfold.platform.ids import command_id

ACH_FILES_JOB = "ach.files"
"""The kind of scheduled job that processes inbound files. The worker also polls."""


class AchFileProcessor(InboundFiles):
    """Processes the inbound files of banks."""

    rail = "ACH"
    whole_file = AchFileMistake(0, None, "")

    async def run(self, bank: Bank, at: ScheduledJob) -> None:
        """Process the inbound files: a scheduled job."""
        del at
        await self.process_all(bank)

    async def check_file(self, bank: Bank, content: bytes) -> CheckedFile:
        """Return the header of a file and the errors in its batches. Raises InvalidFile if its format is invalid."""
        return await asyncio.to_thread(check_file, content, bank.settings.bank_routing_number)

    @override
    def file_id(self, bank: Bank, name: str, digest: str, attempt: int) -> UUID:
        return command_id("ach-arrived", f"{name}:{digest}:{attempt}" if attempt else f"{name}:{digest}")

    @override
    def normalize(self, raw: bytes) -> bytes:
        return normalize(raw)

    @override
    async def book(self, bank: Bank, file: RailFile, content: bytes) -> dict[str, Any]:
        checked = await self.check_file(bank, content)
        report = await AchFileBooking(bank, file, checked).book(read_lines(content))
        return msgspec.structs.asdict(report)
