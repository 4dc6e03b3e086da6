-- Wires that wait keep their reason; the release before sends them.
ALTER TABLE wire DROP CONSTRAINT wire_reason;
ALTER TABLE wire ADD CONSTRAINT wire_rejected_for CHECK ((status = 'REJECTED') = (reason IS NOT NULL)) NOT VALID;
