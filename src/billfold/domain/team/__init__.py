"""Teams: who works for a customer, as what, and how that comes and goes.

Owns invitations and the rules by which members, people and programs alike, are invited, changed
and deactivated; each change leaves its entry in the audit log and tells the administrators. Never
knows how a person proves himself, and never what a token is.
"""

from billfold.domain.team import programs
from billfold.domain.team.accepting import Bearer, accept, find_invitation, join
from billfold.domain.team.acting import Administrator
from billfold.domain.team.changes import change_member, deactivate_member
from billfold.domain.team.invitations import (
    cancel_invitation,
    forget_invitation,
    invite,
    resend_invitation,
)
from billfold.domain.team.reads import get_member, list_team
from billfold.domain.team.rules import (
    INVITATION_LASTS,
    ROLES,
    changes_team,
    check_invited,
    permissions_of,
)
from billfold.domain.team.types import STATUSES, Invitation, Invited, Member, Status

__all__ = [
    "INVITATION_LASTS",
    "ROLES",
    "STATUSES",
    "Administrator",
    "Bearer",
    "Invitation",
    "Invited",
    "Member",
    "Status",
    "accept",
    "cancel_invitation",
    "change_member",
    "changes_team",
    "check_invited",
    "deactivate_member",
    "find_invitation",
    "forget_invitation",
    "get_member",
    "invite",
    "join",
    "list_team",
    "permissions_of",
    "programs",
    "resend_invitation",
]
