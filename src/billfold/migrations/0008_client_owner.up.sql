-- A program that a company's administrator registered is that company's own: it works for nobody else.
ALTER TABLE oauth_client ADD COLUMN owner_id uuid REFERENCES customer;
ALTER TABLE oauth_client ADD CONSTRAINT oauth_client_owner_asks_people CHECK (owner_id IS NULL OR customer_id IS NULL);
CREATE INDEX oauth_client_owner ON oauth_client (owner_id) WHERE owner_id IS NOT NULL;
