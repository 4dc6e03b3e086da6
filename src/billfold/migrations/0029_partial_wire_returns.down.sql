DROP INDEX suspense_item_original_wire;
DROP INDEX wire_returned_once;
CREATE UNIQUE INDEX wire_returned_once ON wire (customer_id, original_wire_id)
 WHERE original_wire_id IS NOT NULL AND status <> 'REJECTED';
