"""Appointments: things to do at an instant of the business clock, besides what holdings ask for.

Owns the table `agenda`. Never knows what is to be done: `engine/agenda.py` asks whoever does.
"""

from billfold.domain.agenda.types import Appointment
from billfold.domain.agenda.writes import cancel, let_go, make

__all__ = ["Appointment", "cancel", "let_go", "make"]
