"""People: who may sign in, how they prove it, and whose members they are.

Owns persons, memberships with their roles, credentials, sessions and the letters written to them,
all on the wall clock. Never decides about money, and never knows a page or a token of an
application. Secrets are kept as hashes, or sealed where they must be read again.
"""

from billfold.domain.people import codes, letters, links, notices, passkeys, sessions, tries
from billfold.domain.people.members import (
    add_member,
    deactivate_member,
    deactivate_person,
    enrol_person,
    forget_factors,
)
from billfold.domain.people.passwords import find_password_hash, set_password
from billfold.domain.people.reads import (
    factors_of,
    find_passkey,
    find_person,
    find_person_by_email,
    find_session,
    is_member,
    list_people,
    memberships_of,
    passkeys_of,
    person_of_session,
    sessions_of,
)
from billfold.domain.people.rules import (
    DEVICE_LASTS,
    FRESH_LASTS,
    PERMISSIONS,
    check_email,
    check_name,
    check_password,
    check_phone_number,
)
from billfold.domain.people.settling import renew_person, settle_person
from billfold.domain.people.types import (
    Factors,
    Membership,
    Passkey,
    Person,
    Role,
    Session,
    Visitor,
)

__all__ = [
    "DEVICE_LASTS",
    "FRESH_LASTS",
    "PERMISSIONS",
    "Factors",
    "Membership",
    "Passkey",
    "Person",
    "Role",
    "Session",
    "Visitor",
    "add_member",
    "check_email",
    "check_name",
    "check_password",
    "check_phone_number",
    "codes",
    "deactivate_member",
    "deactivate_person",
    "enrol_person",
    "factors_of",
    "find_passkey",
    "find_password_hash",
    "find_person",
    "find_person_by_email",
    "find_session",
    "forget_factors",
    "is_member",
    "letters",
    "links",
    "list_people",
    "memberships_of",
    "notices",
    "passkeys",
    "passkeys_of",
    "person_of_session",
    "renew_person",
    "sessions",
    "sessions_of",
    "set_password",
    "settle_person",
    "tries",
]
