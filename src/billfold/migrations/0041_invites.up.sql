-- Invites to fill in, review or submit an application, the browsers in which their links were opened, and what was
-- typed there and is not complete. Who is invited, and what was typed, is sealed with the key of the applicant.
CREATE TABLE application_invite (
  customer_id      uuid NOT NULL,
  invite_id        uuid PRIMARY KEY,
  application_id   uuid NOT NULL,
  invitation_type  text NOT NULL CHECK (invitation_type IN ('COLLABORATOR', 'AUTHORIZED_PERSON', 'RELATED_PARTY')),
  related_party_id uuid,
  requested_fields text[] NOT NULL DEFAULT '{}',
  content          bytea NOT NULL,
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL CHECK (expires_at > created_at),
  sent_at          timestamptz NOT NULL, -- wall time, as the next two
  link_hash        bytea NOT NULL UNIQUE,
  link_expires_at  timestamptz NOT NULL,
  accepted_at      timestamptz,
  written_no       bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  FOREIGN KEY (customer_id, application_id) REFERENCES application,
  CHECK ((invitation_type = 'RELATED_PARTY') = (related_party_id IS NOT NULL)),
  CHECK (invitation_type = 'RELATED_PARTY' OR requested_fields = '{}')
);
CREATE INDEX application_invite_list ON application_invite (customer_id, application_id, written_no);

-- Wall time.
CREATE TABLE invite_session (
  session_hash bytea PRIMARY KEY,
  invite_id    uuid NOT NULL REFERENCES application_invite ON DELETE CASCADE,
  last_seen_at timestamptz NOT NULL,
  ends_at      timestamptz NOT NULL
);
CREATE INDEX invite_session_invite ON invite_session (invite_id);
CREATE INDEX invite_session_end ON invite_session (ends_at);

CREATE TABLE invite_draft (
  invite_id uuid NOT NULL REFERENCES application_invite ON DELETE CASCADE,
  step      text NOT NULL,
  content   bytea NOT NULL,
  PRIMARY KEY (invite_id, step)
);

-- How many invites were mailed on a day; the subject is an application, its owner, or a keyed hash of an address.
CREATE TABLE invite_email_count (
  subject   uuid NOT NULL,
  starts_at timestamptz NOT NULL,
  sent      integer NOT NULL CHECK (sent > 0),
  PRIMARY KEY (subject, starts_at)
);

-- Who is invited into the team of a company when its application is approved; `content` is sealed.
CREATE TABLE awaited_team_member (
  customer_id    uuid NOT NULL,
  application_id uuid NOT NULL,
  member_id      uuid NOT NULL UNIQUE,
  content        bytea NOT NULL,
  created_at     timestamptz NOT NULL,
  written_no     bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, application_id, member_id),
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

ALTER TABLE audit_entry
  DROP CONSTRAINT audit_entry_actor_check,
  ADD CONSTRAINT audit_entry_actor_check
    CHECK (actor IN ('MEMBER', 'CLIENT', 'PARTNER', 'OPERATOR', 'SYSTEM', 'INVITED'));
