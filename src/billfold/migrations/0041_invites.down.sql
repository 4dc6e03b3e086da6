ALTER TABLE audit_entry
  DROP CONSTRAINT audit_entry_actor_check,
  ADD CONSTRAINT audit_entry_actor_check
    CHECK (actor IN ('MEMBER', 'CLIENT', 'PARTNER', 'OPERATOR', 'SYSTEM')) NOT VALID;
DELETE FROM scheduled_job WHERE kind = 'application.team';
DROP TABLE awaited_team_member;
DROP TABLE invite_email_count;
DROP TABLE invite_draft;
DROP TABLE invite_session;
DROP TABLE application_invite;
