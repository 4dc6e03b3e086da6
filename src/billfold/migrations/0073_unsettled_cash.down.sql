-- What a head carries of these columns goes with them.
UPDATE ledger_head SET serialized_book = NULL
 WHERE customer_id IN (SELECT customer_id FROM pocket WHERE unsettled_on IS NOT NULL);
ALTER TABLE pocket DROP COLUMN unsettled, DROP COLUMN unsettled_discount, DROP COLUMN unsettled_on;
