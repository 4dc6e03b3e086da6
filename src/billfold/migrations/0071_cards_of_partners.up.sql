-- Outside a transaction
-- Cards and ACH originations of all customers of a partner are listed along an index of their own. A card that the release
-- before makes has no partner: it is listed by its Pocket's, until a later migration fills what this one could not see.
ALTER TABLE card ADD COLUMN IF NOT EXISTS partner_id uuid;

CREATE INDEX CONCURRENTLY IF NOT EXISTS card_partner ON card (partner_id, created_at, written_no);

CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_partner ON ach_entry (partner_id, created_at, written_no)
  WHERE way = 'ORIGINATION';

-- In parts, each of which keeps its rows for a moment. (A statement of a migration ends with a line.)
DO $$ BEGIN LOOP
  UPDATE card c SET partner_id = p.partner_id FROM pocket p
   WHERE (p.customer_id, p.pocket_id) = (c.customer_id, c.pocket_id)
     AND (c.customer_id, c.card_id) IN (SELECT customer_id, card_id FROM card WHERE partner_id IS NULL LIMIT 1000)
  ; EXIT WHEN NOT FOUND
  ; COMMIT
  ; END LOOP
  ; END $$;
