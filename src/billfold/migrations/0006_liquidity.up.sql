-- A wire that is due may wait for funds of the bank: PENDING, with a reason. Rows that are there satisfy the former
-- condition, which is narrower; the release before writes only what both allow.
-- squawk-ignore ban-drop-constraint
ALTER TABLE wire DROP CONSTRAINT wire_rejected_for;
ALTER TABLE wire ADD CONSTRAINT wire_reason CHECK (
  CASE status WHEN 'REJECTED' THEN reason IS NOT NULL
              WHEN 'PENDING' THEN reason IS NULL OR reason IN ('WAITING_FOR_FUNDS', 'RELEASED')
              ELSE reason IS NULL END) NOT VALID;
