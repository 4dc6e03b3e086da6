-- The customer's last journal entry when the report was requested: what is booked later, even at the same instant of a
-- clock that stands still, is not in it. A notification may go on after the last entry that an earlier one showed.
ALTER TABLE report_request
  ADD COLUMN entry_no bigint CHECK (entry_no >= 0),
  ADD COLUMN entries_after bigint CHECK (entries_after BETWEEN 0 AND entry_no);
UPDATE report_request r SET entry_no = coalesce((
  SELECT j.entry_no FROM journal_entry j WHERE j.customer_id = r.customer_id AND j.booked_at <= r.created_at
   ORDER BY j.entry_no DESC LIMIT 1), 0);
ALTER TABLE report_request ALTER COLUMN entry_no SET NOT NULL;
