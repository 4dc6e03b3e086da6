"""The time to verify thousands of rows grows linearly."""

from billfold.verify.runner import verify_bank

ITEMS = 3_000
MANY_MORE = """
WITH chosen AS (SELECT item_id AS chosen_id FROM suspense_item WHERE status = 'RETURNED' LIMIT 1),
copies AS MATERIALIZED (SELECT chosen_id, gen_random_uuid() AS id FROM chosen, generate_series(1, $1::int)),
commands AS (
  INSERT INTO command OVERRIDING USER VALUE SELECT (jsonb_populate_record(c, jsonb_build_object(
           'command_id', gen_random_uuid(), 'outcome', c.outcome::jsonb || jsonb_build_object('item_id', id)))).*
    FROM copies JOIN command c ON c.outcome->>'item_id' = chosen_id::text)
INSERT INTO suspense_item OVERRIDING USER VALUE SELECT (jsonb_populate_record(i, jsonb_build_object('item_id', id))).*
  FROM copies JOIN suspense_item i ON item_id = chosen_id
"""


async def test_thousands_of_items_in_suspense_are_verified_in_seconds(damaged_conn):
    await damaged_conn.execute(MANY_MORE, ITEMS)
    # One item compared with every command of the bank takes minutes.
    await damaged_conn.execute("SET LOCAL statement_timeout = '10s'")
    await damaged_conn.execute("SET LOCAL citus.propagate_set_commands = 'local'")  # to nodes, as `verify` has it set
    report = await verify_bank(damaged_conn)
    assert report.checked["suspense_item"] > ITEMS
