"""Scheduled jobs: work to do at an instant of the business clock, besides what holdings require.

Owns the table `agenda`. Never knows what is to be done: `engine/agenda.py` runs the jobs.
"""

from billfold.domain.agenda.types import Appointment
from billfold.domain.agenda.writes import cancel, let_go, make

__all__ = ["Appointment", "cancel", "let_go", "make"]
