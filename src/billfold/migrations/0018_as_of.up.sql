-- Pockets and other rows as they were, for reads as of an instant (ADR 0143).

-- A Pocket after each commit that changed it: `state` is an array in the order of `PocketImage`. `known_at` is the
-- business time of the commit, which due work is booked before; `entry_no` the customer's last journal entry by then.
CREATE TABLE pocket_version (
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
CREATE FUNCTION pocket_versions_add(added pocket_version[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO pocket_version SELECT * FROM unnest(added);
END $$;

-- A row of another table as it was before a change at `until`; of several changes at one instant, before the first.
CREATE TABLE former_row (
  customer_id  uuid NOT NULL,
  kind         text NOT NULL,
  object_id    uuid NOT NULL,
  until        timestamptz NOT NULL,
  row          json NOT NULL,
  PRIMARY KEY (customer_id, kind, object_id, until)
);
-- By the journal entry that reserved the cash of a card payment.
CREATE INDEX former_row_hold ON former_row (customer_id, ((row ->> 'hold_entry_no')::bigint))
  WHERE kind = 'card_authorization';

-- The Pockets that are there, as they have been since the last entry of their customer. What was before is not known.
INSERT INTO pocket_version (customer_id, pocket_id, known_at, version, entry_no, status, state)
SELECT p.customer_id, p.pocket_id, greatest(g.booked_at, p.opened_at), g.version, g.entry_no, p.status, json_build_array(
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
    SELECT json_agg(json_build_array(o.amount, o.until)) AS holds FROM hold o
     WHERE o.customer_id = p.customer_id AND o.pocket_id = p.pocket_id AND (o.status IS NULL OR o.status = 'ACTIVE')
  ) l ON true;
