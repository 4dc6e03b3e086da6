-- Pockets and other rows as they were, for reads as of an instant (ADR 0143). Outside a transaction, because the states
-- of all Pockets are kept a thousand customers at a time.
-- Outside a transaction

-- A Pocket after each commit that changed it: `state` is an array in the order of `PocketImage`. `known_at` is the
-- business time of the commit, which due work is booked before; `entry_no` the customer's last journal entry by then.
CREATE TABLE IF NOT EXISTS pocket_version (
  customer_id  uuid NOT NULL,
  pocket_id    uuid NOT NULL,
  known_at     timestamptz NOT NULL,
  version      bigint NOT NULL,
  entry_no     bigint NOT NULL,
  status       text NOT NULL,
  state        json NOT NULL,
  PRIMARY KEY (customer_id, pocket_id, known_at, version)
);

-- Called by the same statement as `ledger_book`.
CREATE OR REPLACE FUNCTION pocket_versions_add(added pocket_version[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN INSERT INTO pocket_version SELECT * FROM unnest(added); END $$;

-- A row of another table as it was before a change at `until`; of several changes at one instant, before the first.
CREATE TABLE IF NOT EXISTS former_row (
  customer_id  uuid NOT NULL,
  kind         text NOT NULL,
  object_id    uuid NOT NULL,
  until        timestamptz NOT NULL,
  row          json NOT NULL,
  PRIMARY KEY (customer_id, kind, object_id, until)
);
-- By the journal entry that reserved the cash of a card payment.
CREATE INDEX CONCURRENTLY IF NOT EXISTS former_row_hold ON former_row (customer_id, ((row ->> 'hold_entry_no')::bigint))
  WHERE kind = 'card_authorization';

-- The Pockets that are there, as they have been since the last entry of their customer. What was before is not known.
-- No line within the statement ends with a semicolon.
DO $$ DECLARE done uuid := '00000000-0000-0000-0000-000000000000'; upto uuid; BEGIN LOOP
  upto := (SELECT customer_id FROM ledger_head WHERE customer_id > done ORDER BY customer_id OFFSET 999 LIMIT 1)
  ; INSERT INTO pocket_version (customer_id, pocket_id, known_at, version, entry_no, status, state)
  SELECT p.customer_id, p.pocket_id, greatest(g.booked_at, p.opened_at), g.version, g.entry_no, p.status,
         json_build_array(
           p.name, p.deposit_weeks, p.reinvestment_weeks, p.real_time_yield, p.inflow, p.outflow, p.fees, p.realised,
           p.fee_accrued, p.accrued_through, coalesce(h.cash, 0), coalesce(h.earnings_basis, 0),
           coalesce(h.lots, '[]'), coalesce(h.owed, 0), coalesce(h.reserved, 0), p.unsettled_discount, p.unsettled_on,
           coalesce(l.holds, '[]'))
    FROM pocket p JOIN ledger_head g ON g.customer_id = p.customer_id
    LEFT JOIN LATERAL (
      SELECT max(a.credits - a.debits) FILTER (WHERE a.kind = 'cash') AS cash,
             max(a.debits - a.credits) FILTER (WHERE a.kind = 'owed') AS owed,
             max(a.reserved) FILTER (WHERE a.kind = 'cash') AS reserved,
             sum(a.earnings_basis)::bigint AS earnings_basis,
             json_agg(json_build_array(a.asset, a.credits - a.debits, a.acquired_on))
               FILTER (WHERE a.kind = 'lot' AND a.credits > a.debits) AS lots
        FROM account a WHERE a.customer_id = p.customer_id AND a.pocket_id = p.pocket_id AND a.live
    ) h ON true
    LEFT JOIN LATERAL (
      SELECT json_agg(json_build_array(e.cents, e.until)) AS holds FROM (
        SELECT sum(o.amount)::bigint AS cents, o.until FROM hold o
         WHERE o.customer_id = p.customer_id AND o.pocket_id = p.pocket_id AND (o.status IS NULL OR o.status = 'ACTIVE')
           AND o.until > g.booked_at - interval '14 days' GROUP BY o.until
      ) e
    ) l ON true
   WHERE g.customer_id > done AND (upto IS NULL OR g.customer_id <= upto)
      ON CONFLICT DO NOTHING
  ; EXIT WHEN upto IS NULL; done := upto; COMMIT; END LOOP; END $$;
