-- Needs a stop: the release before cannot read proposals that move money.
-- Such a proposal has no subject that is frozen: `movement` is the command that another operator confirms, as JSON, and
-- `subject_id` what it is about.
ALTER TABLE freeze_proposal ADD COLUMN movement text;
ALTER TABLE freeze_proposal ALTER COLUMN subject DROP NOT NULL;
ALTER TABLE freeze_proposal ADD CONSTRAINT freeze_proposal_movement
  CHECK ((subject IS NULL) = (movement IS NOT NULL) AND NOT (movement IS NOT NULL AND freezes));
