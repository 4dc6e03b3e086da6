"""Rows that say who may do what, and where events go: an entry about one keeps its fingerprint for `verify`.

Only what entries name: rows without one, and what the other columns hold, are not proven.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.audit.rules import NewEntry
from billfold.platform.database.connection import Connection

RESOURCES = frozenset({"member", "program", "subscription", "partner_key"})
"""What entries about these rows are about."""


class RightsTable(NamedTuple):
    """A table: in whose log its rows are, what an entry calls one, what is proven of it, and how entries find it."""

    name: str
    key: str
    log: str
    named: str
    proven: str
    rows: str
    found: str

    def select(self, condition: str = "true") -> str:
        """Return the statement of the rows with their fingerprints."""
        return f"""
          SELECT '{self.name}' AS name, {self.log} AS customer_id, {self.key}::text AS id, {self.named} AS named,
                 encode(sha256(convert_to(jsonb_build_array({self.proven})::text, 'UTF8')), 'hex') AS fingerprint
            FROM {self.rows} WHERE {condition}"""


RIGHTS = (
    RightsTable(
        "membership",
        key="m.member_id",
        log="m.customer_id",
        named="m.member_id::text",
        proven="m.user_id, m.role, m.status",
        rows="membership m",
        found="m.member_id = ANY($1)",
    ),
    RightsTable(
        "oauth_client",
        key="c.client_id",
        log="coalesce(c.customer_id, c.owner_id)",
        named="coalesce(c.member_id::text, c.client_id)",
        proven="""c.scopes, c.grant_types, c.redirect_uris, c.profile, c.dpop_bound, c.requires_nonce,
                  c.requires_signature, (SELECT jsonb_agg(jsonb_build_array(k.key_id, k.algorithm, k.public_pem)
                                                          ORDER BY k.key_id COLLATE "C")
                                           FROM client_key k WHERE k.client_id = c.client_id)""",
        rows="oauth_client c",
        found="(c.member_id = ANY($1) OR c.client_id = ANY($2))",
    ),
    RightsTable(
        "subscription",
        key="s.subscription_id",
        log="coalesce(s.customer_id, p.own_customer_id)",
        named="s.subscription_id::text",
        proven="s.partner_id, s.customer_id, s.url",
        rows="subscription s LEFT JOIN partner p USING (partner_id)",
        found="s.subscription_id = ANY($1)",
    ),
    RightsTable(
        "partner_key",
        key="k.key_id",
        log="p.own_customer_id",
        named="k.key_id",
        proven="k.user_id, k.algorithm, k.public_pem",
        rows="partner_key k JOIN partner_user u USING (user_id) JOIN partner p USING (partner_id)",
        found="k.key_id = ANY($2)",
    ),
)
_FIND = " UNION ALL ".join(each.select(f"{each.found} AND {each.log} = ANY($3)") for each in RIGHTS)


async def prove_rights(conn: Connection, entries: Sequence[NewEntry]) -> list[NewEntry]:
    """Return the entries, those about such rows with their fingerprints as the transaction leaves them."""
    about = [each for each in entries if each.outcome == "SUCCESS" and each.resource_type in RESOURCES]
    if not about:
        return list(entries)
    names = [str(each.resource_id) for each in about if each.resource_id is not None]
    ids = [found for each in names if (found := _as_uuid(each)) is not None]
    proofs: dict[tuple[UUID, str], dict[str, dict[str, str]]] = {}
    for row in await conn.fetch(_FIND, ids, names, [each.customer_id for each in about]):
        tables = proofs.setdefault((row["customer_id"], row["named"]), {})
        tables.setdefault(row["name"], {})[row["id"]] = row["fingerprint"]
    return [_with_proofs(each, proofs.get((each.customer_id, str(each.resource_id)))) for each in entries]


def _with_proofs(entry: NewEntry, proofs: dict[str, dict[str, str]] | None) -> NewEntry:
    if not proofs or entry.outcome != "SUCCESS" or entry.resource_type not in RESOURCES:
        return entry
    details: dict[str, Any] = {**entry.details, "proves": {**entry.details.get("proves", {}), **proofs}}
    return msgspec.structs.replace(entry, details=details)


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
