-- Applications of businesses and individuals, what became of them, and the agreements that were accepted with them.
-- What applicants say of themselves is sealed. An application belongs to who made it: a partner's own customer, or the
-- customer that applies through the Customer API.
CREATE TABLE application (
  customer_id         uuid NOT NULL REFERENCES customer,
  application_id      uuid NOT NULL,
  applicant_id        uuid NOT NULL UNIQUE,
  partner_id          uuid NOT NULL,
  kind                text NOT NULL CHECK (kind IN ('BUSINESS', 'INDIVIDUAL')),
  status              text NOT NULL CHECK (status IN ('CREATED', 'SUBMITTED', 'PENDING', 'MANUAL_REVIEW',
                                                      'DOCUMENTS_NEEDED', 'APPROVED', 'REJECTED', 'CLOSED')),
  is_approved         boolean NOT NULL DEFAULT false,
  content             bytea NOT NULL,
  request_mac         bytea NOT NULL,
  requested_documents text[] NOT NULL DEFAULT '{}',
  exception_reasons   text[] NOT NULL DEFAULT '{}',
  move_no             integer NOT NULL DEFAULT 0 CHECK (move_no >= 0),
  created_at          timestamptz NOT NULL,
  updated_at          timestamptz NOT NULL,
  submitted_at        timestamptz,
  submitted_by        uuid,
  submitted_address   text,
  submitted_agent     text,
  written_no          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, application_id),
  CHECK (status <> 'APPROVED' OR is_approved),
  CHECK (NOT is_approved OR status IN ('SUBMITTED', 'PENDING', 'MANUAL_REVIEW', 'APPROVED')),
  CHECK ((status IN ('CREATED', 'CLOSED')) OR submitted_at IS NOT NULL)
);
CREATE INDEX application_list ON application (customer_id, kind, created_at, written_no);
CREATE INDEX application_review ON application (submitted_at, application_id) WHERE status = 'MANUAL_REVIEW';

-- Every change of a status.
CREATE TABLE application_move (
  customer_id    uuid NOT NULL,
  move_id        uuid PRIMARY KEY,
  application_id uuid NOT NULL,
  move_no        integer NOT NULL,
  status         text NOT NULL,
  moved_at       timestamptz NOT NULL,
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

CREATE TABLE related_party_application (
  customer_id      uuid NOT NULL,
  application_id   uuid NOT NULL,
  related_party_id uuid NOT NULL,
  content          bytea NOT NULL,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  written_no       bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, application_id, related_party_id),
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

CREATE TABLE agreement_acceptance (
  customer_id    uuid NOT NULL REFERENCES customer,
  application_id uuid NOT NULL,
  version        text NOT NULL,
  accepted_at    timestamptz NOT NULL,
  recorded_at    timestamptz NOT NULL,
  ip_address     text,
  user_agent     text,
  PRIMARY KEY (customer_id, version)
);

-- The files of an application are sealed with the key of who becomes a customer: `subject_id`, NULL for the owner.
ALTER TABLE document
  ADD COLUMN subject_id uuid,
  ADD COLUMN application_id uuid,
  ADD COLUMN related_party_id uuid,
  ADD FOREIGN KEY (customer_id, application_id) REFERENCES application,
  ADD CHECK (related_party_id IS NULL OR application_id IS NOT NULL),
  ADD CHECK ((subject_id IS NULL) = (application_id IS NULL));
CREATE INDEX document_application ON document (customer_id, application_id) WHERE application_id IS NOT NULL;
