-- The authorization server: which programs may ask, what people granted them, and the tokens that
-- came of it. Everything lives on the wall clock. Secrets are hashes; only signing keys are sealed.

CREATE TABLE oauth_client (
  client_id                  text PRIMARY KEY CHECK (client_id ~ '^[A-Za-z0-9._-]{1,128}$'),
  name                       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  description                text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
  profile                    text NOT NULL CHECK (profile IN ('fapi2', 'documented')),
  redirect_uris              text[] NOT NULL DEFAULT '{}',
  post_logout_redirect_uris  text[] NOT NULL DEFAULT '{}',
  scopes                     text[] NOT NULL CHECK (cardinality(scopes) > 0),
  grant_types                text[] NOT NULL CHECK (
    cardinality(grant_types) > 0 AND
    grant_types <@ ARRAY['authorization_code', 'refresh_token', 'client_credentials']),
  -- Whom it acts for by itself; only a client with client_credentials, a service user, has one.
  customer_id                uuid REFERENCES customer,
  dpop_bound                 boolean NOT NULL,
  requires_nonce             boolean NOT NULL,
  requires_signature         boolean NOT NULL DEFAULT false,
  created_at                 timestamptz NOT NULL,
  revoked_at                 timestamptz,
  CHECK (('client_credentials' = ANY (grant_types)) = (customer_id IS NOT NULL)),
  CHECK (('authorization_code' = ANY (grant_types)) = (cardinality(redirect_uris) > 0)),
  CHECK (NOT ('refresh_token' = ANY (grant_types)) OR 'authorization_code' = ANY (grant_types)),
  CHECK (profile <> 'fapi2' OR dpop_bound)
);

CREATE TABLE client_key (
  client_id    text NOT NULL REFERENCES oauth_client,
  key_id       text NOT NULL CHECK (length(key_id) BETWEEN 1 AND 128),
  algorithm    text NOT NULL CHECK (algorithm IN ('ES256', 'PS256', 'EdDSA')),
  public_pem   text NOT NULL,
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz,
  PRIMARY KEY (client_id, key_id)
);

-- What a client asked a person for, pushed or by the browser, until he has answered.
CREATE TABLE authorization_request (
  request_id      uuid PRIMARY KEY,
  client_id       text NOT NULL REFERENCES oauth_client,
  uri_hash        bytea UNIQUE,
  uri_expires_at  timestamptz,
  redirect_uri    text NOT NULL,
  scopes          text[] NOT NULL,
  state           text,
  nonce           text,
  response_mode   text NOT NULL CHECK (response_mode IN ('query', 'form_post')),
  code_challenge  text NOT NULL CHECK (code_challenge ~ '^[A-Za-z0-9_-]{43}$'),
  jkt             text,
  prompts         text[] NOT NULL DEFAULT '{}',
  max_age         int CHECK (max_age >= 0),
  login_hint      text,
  created_at      timestamptz NOT NULL,
  expires_at      timestamptz NOT NULL,
  answered_at     timestamptz,
  CHECK ((uri_hash IS NULL) = (uri_expires_at IS NULL))
);
CREATE INDEX authorization_request_age ON authorization_request (expires_at);

-- What a person lets a client do for one customer, until he takes it back.
CREATE TABLE oauth_grant (
  grant_id      uuid PRIMARY KEY,
  client_id     text NOT NULL REFERENCES oauth_client,
  user_id       uuid NOT NULL REFERENCES person,
  customer_id   uuid NOT NULL REFERENCES customer,
  scopes        text[] NOT NULL,
  created_at    timestamptz NOT NULL,
  renewed_at    timestamptz NOT NULL,
  revoked_at    timestamptz
);
CREATE UNIQUE INDEX oauth_grant_in_force
    ON oauth_grant (client_id, user_id, customer_id) WHERE revoked_at IS NULL;
CREATE INDEX oauth_grant_of_user ON oauth_grant (user_id);

-- A code and all tokens that came of it are one family: a second use of the code ends them all.
CREATE TABLE authorization_code (
  code_hash       bytea PRIMARY KEY,
  family_id       uuid NOT NULL UNIQUE,
  grant_id        uuid NOT NULL REFERENCES oauth_grant,
  client_id       text NOT NULL REFERENCES oauth_client,
  user_id         uuid NOT NULL REFERENCES person,
  customer_id     uuid NOT NULL REFERENCES customer,
  redirect_uri    text NOT NULL,
  scopes          text[] NOT NULL,
  nonce           text,
  code_challenge  text NOT NULL,
  jkt             text,
  auth_time       timestamptz NOT NULL,
  session_id      uuid NOT NULL,
  issued_at       timestamptz NOT NULL,
  expires_at      timestamptz NOT NULL,
  used_at         timestamptz
);
CREATE INDEX authorization_code_age ON authorization_code (expires_at);

CREATE TABLE access_token (
  token_hash    bytea PRIMARY KEY,
  client_id     text NOT NULL REFERENCES oauth_client,
  user_id       uuid REFERENCES person,
  customer_id   uuid NOT NULL REFERENCES customer,
  grant_id      uuid REFERENCES oauth_grant,
  family_id     uuid NOT NULL,
  scopes        text[] NOT NULL,
  jkt           text,
  auth_time     timestamptz,
  session_id    uuid,
  issued_at     timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL CHECK (expires_at > issued_at),
  CHECK (grant_id IS NULL OR user_id IS NOT NULL)
);
CREATE INDEX access_token_family ON access_token (family_id);
CREATE INDEX access_token_grant ON access_token (grant_id);
CREATE INDEX access_token_user ON access_token (user_id);
CREATE INDEX access_token_client ON access_token (client_id);
CREATE INDEX access_token_session ON access_token (session_id);
CREATE INDEX access_token_age ON access_token (expires_at);

-- `used_at` is set when a bearer's token was exchanged for the next one; bound ones stay as they are.
CREATE TABLE refresh_token (
  token_hash    bytea PRIMARY KEY,
  client_id     text NOT NULL REFERENCES oauth_client,
  user_id       uuid NOT NULL REFERENCES person,
  customer_id   uuid NOT NULL REFERENCES customer,
  grant_id      uuid NOT NULL REFERENCES oauth_grant,
  family_id     uuid NOT NULL,
  scopes        text[] NOT NULL,
  jkt           text,
  auth_time     timestamptz NOT NULL,
  session_id    uuid NOT NULL,
  issued_at     timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  used_at       timestamptz,
  CHECK (jkt IS NULL OR used_at IS NULL)
);
CREATE INDEX refresh_token_family ON refresh_token (family_id);
CREATE INDEX refresh_token_grant ON refresh_token (grant_id);
CREATE INDEX refresh_token_user ON refresh_token (user_id);
CREATE INDEX refresh_token_client ON refresh_token (client_id);
CREATE INDEX refresh_token_age ON refresh_token (expires_at);

-- Proofs seen in the last seconds, by all processes. Unlogged: after a crash they are too old anyway.
CREATE UNLOGGED TABLE dpop_jti (
  jkt         text NOT NULL,
  jti_hash    bytea NOT NULL,
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (jkt, jti_hash)
);
CREATE INDEX dpop_jti_age ON dpop_jti (expires_at);

-- The keys ID tokens are signed with: published from their making, used from `active_at`.
CREATE TABLE signing_key (
  key_id       text PRIMARY KEY,
  algorithm    text NOT NULL CHECK (algorithm IN ('PS256', 'RS256')),
  public_jwk   jsonb NOT NULL,
  sealed       bytea NOT NULL,
  created_at   timestamptz NOT NULL,
  active_at    timestamptz NOT NULL,
  retires_at   timestamptz
);
