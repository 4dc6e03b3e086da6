-- Links of invitations that were mailed before the newest one: they stay valid beside it until one is used. They go with
-- their invitation. The release before does not read them: to it only the newest link opens. Wall time.
CREATE TABLE earlier_link (
  link_hash  bytea PRIMARY KEY,
  member_id  uuid REFERENCES invitation ON DELETE CASCADE, -- of an invitation into a team
  invite_id  uuid REFERENCES application_invite ON DELETE CASCADE, -- of an invite to an application
  expires_at timestamptz NOT NULL,
  CHECK (num_nonnulls(member_id, invite_id) = 1)
);
CREATE INDEX earlier_link_member ON earlier_link (member_id);
CREATE INDEX earlier_link_invite ON earlier_link (invite_id);
GRANT DELETE ON earlier_link TO billfold_app;
