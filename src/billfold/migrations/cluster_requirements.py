"""The requirements for the nodes of a Citus cluster before a production bank is distributed over them (ADR 0165)."""

from billfold.platform.database.connection import Connection
from billfold.platform.database.pool import APP_ROLE

_IS_JOINED = """
SELECT count(*) FILTER (WHERE groupid = 0) > 0 AND count(*) FILTER (WHERE shouldhaveshards) > 0
  FROM pg_dist_node WHERE isactive AND noderole = 'primary'
"""
_RUN = """
SELECT n.nodename || ':' || n.nodeport || ': ' || r.result AS said, r.success
  FROM run_command_on_all_nodes($1) r JOIN pg_dist_node n USING (nodeid) WHERE r.result <> '' ORDER BY n.groupid
"""
# Each node is compared with the coordinator, which fills this in; what it lacks is a text.
_LACKS = f"""
SELECT format($$SELECT concat_ws(', ',
  CASE WHEN current_setting('server_version_num')::int / 10000 <> greatest(%s, 15)
       THEN 'PostgreSQL 15 or later, of one version everywhere' END,
  CASE WHEN NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus' AND extversion = %L
         AND split_part(extversion, '.', 1)::int >= 13) THEN 'Citus 13 or later, of one version everywhere' END,
  CASE WHEN current_setting('max_prepared_transactions')::int < %s
       THEN 'max_prepared_transactions of at least twice max_connections of the coordinator' END,
  CASE WHEN current_setting('wal_level') <> 'logical' THEN 'wal_level = logical' END,
  CASE WHEN current_setting('archive_mode') = 'off' THEN 'archive_mode = on with an archive_command' END,
  CASE WHEN NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{APP_ROLE}' AND rolcanlogin)
       THEN 'ALTER ROLE {APP_ROLE} LOGIN' END)$$,
  current_setting('server_version_num')::int / 10000, (SELECT extversion FROM pg_extension WHERE extname = 'citus'),
  2 * current_setting('max_connections')::int)
"""
_POINTS = "SELECT to_regprocedure('create_restore_point(text)') IS NOT NULL"


async def list_shortfalls(conn: Connection) -> list[str]:
    """Return what the cluster lacks, by node; `conn` is the owner's, to a coordinator with Citus."""
    if not await conn.fetchval(_IS_JOINED):
        return [
            "its nodes: SELECT citus_set_coordinator_host(host, port), citus_add_node(host, port) on the coordinator"
        ]
    found = [said for said, _ in await conn.fetch(_RUN, await conn.fetchval(_LACKS))]
    if found:
        return found
    async with conn.transaction():
        await conn.execute(f"SET LOCAL ROLE {APP_ROLE}")
        refused = [said for said, succeeded in await conn.fetch(_RUN, "SELECT 1") if not succeeded]
    if not await conn.fetchval(_POINTS):
        refused.append("the function create_restore_point, which an administrator creates on the coordinator")
    return refused
