-- A batch of few books is told in one call. Otherwise it would take ten round trips, in each of which
-- everything else of the process comes first, and plans that take longer to make than to carry out.
CREATE TYPE new_account AS (
  customer_id uuid, account_no int, kind text, pocket_id uuid, asset text, acquired_on date
);
CREATE TYPE new_event AS (
  customer_id uuid, event_no bigint, event_id uuid, kind text, payload json, raised_at timestamptz
);

CREATE FUNCTION pockets_move(moved pocket_counters[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  UPDATE pocket p
     SET inflow = n.inflow, outflow = n.outflow, fees = n.fees, realised = n.realised, fee_accrued = n.fee_accrued,
         idle = n.idle, accrued_through = n.accrued_through, charge_on = n.charge_on, moved_on = n.moved_on,
         unsettled_until = n.unsettled_until, invest_at = n.invest_at
    FROM unnest(moved) AS n
   WHERE p.customer_id = n.customer AND p.pocket_id = n.pocket;
END $$;

-- What moves balances is the same for both; only how it is planned differs.
ALTER FUNCTION ledger_apply RENAME TO ledger_move;
ALTER FUNCTION ledger_move RESET plan_cache_mode;

-- Many books, their rows copied before: planned for the batch at hand.
CREATE FUNCTION ledger_apply(
  journals bigint, legs bigint, heads head_move[], bases lot_basis[], moved pocket_counters[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(journals, legs, heads, bases);
  PERFORM pockets_move(moved);
END $$;

-- Few books with all their rows: the plans are kept.
CREATE FUNCTION ledger_book(
  heads head_move[], bases lot_basis[], moved pocket_counters[], accounts new_account[], journals journal[],
  legs leg[], links link[], trades trade[], activities activity[], events new_event[], commands command[],
  names directory[], transfers transfer[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal SELECT * FROM unnest(journals);
  INSERT INTO leg SELECT * FROM unnest(legs);
  PERFORM ledger_move(cardinality(journals), cardinality(legs), heads, bases);
  PERFORM pockets_move(moved);
  INSERT INTO link SELECT * FROM unnest(links);
  INSERT INTO trade SELECT * FROM unnest(trades);
  INSERT INTO activity SELECT * FROM unnest(activities);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
END $$;
