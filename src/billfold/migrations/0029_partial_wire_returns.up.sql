-- A wire of ours may come back in parts: each incoming return has its own number. A return of ours is in full, so there
-- is one that is not rejected. What returns come to, compared with the wire, is checked by the rule and by `verify`.
DROP INDEX wire_returned_once;
CREATE UNIQUE INDEX wire_returned_once ON wire
  (customer_id, original_wire_id, (CASE direction WHEN 'INCOMING' THEN imad END)) NULLS NOT DISTINCT
  WHERE original_wire_id IS NOT NULL AND status <> 'REJECTED';
CREATE INDEX suspense_item_original_wire ON suspense_item ((details->>'original_wire_id'))
  WHERE details->>'original_wire_id' IS NOT NULL;
