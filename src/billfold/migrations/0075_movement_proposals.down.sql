-- It fails where money was proposed to be moved: the release before cannot read that.
ALTER TABLE freeze_proposal ALTER COLUMN subject SET NOT NULL;
ALTER TABLE freeze_proposal DROP COLUMN movement;
