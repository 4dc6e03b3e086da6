"""The world outside a sandbox's bank: the other banks of both rails, and who answers in place of real providers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from billfold.sandbox.ach.network import SIMULATED_ANSWER, SimulatedAchNetwork
from billfold.sandbox.card_processor.launch import CARD_PROCESSOR, SimulatedCardProcessor
from billfold.sandbox.card_processor.settlement import CLEARING_JOB, CYCLE_JOB, claim_swipe, send_cycle
from billfold.sandbox.crypto_signer.client import SIGNER_FOLDER, SimulatedSigner
from billfold.sandbox.simulated_providers import (
    SimulatedCustodian,
    SimulatedIdentityCheck,
    SimulatedLinking,
    SimulatedScreening,
)
from billfold.sandbox.wires.fedwire import WIRE_ANSWER, SimulatedFedwire

if TYPE_CHECKING:
    from billfold.ledger.bank import JobRunners


class Simulation:
    """The simulated counterparts of one process."""

    def __init__(self, seed: bytes, state_dir: Path, identity_delay: timedelta = timedelta()) -> None:
        self.wires = SimulatedFedwire()
        self.ach = SimulatedAchNetwork()
        self.custodian = SimulatedCustodian()
        self.linking = SimulatedLinking(seed)
        self.identity = SimulatedIdentityCheck(identity_delay)
        self.screening = SimulatedScreening()
        self.cards = SimulatedCardProcessor(state_dir / CARD_PROCESSOR)
        self.signer = SimulatedSigner(state_dir / SIGNER_FOLDER)

    def job_runners(self) -> JobRunners:
        """Return the function of every kind of job that only a sandbox has."""
        return {
            WIRE_ANSWER: self.wires.answer,
            SIMULATED_ANSWER: self.ach.answer,
            CLEARING_JOB: claim_swipe,
            CYCLE_JOB: send_cycle,
        }
