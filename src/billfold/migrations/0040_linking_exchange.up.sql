-- A public token of a linking provider is exchanged once. Its secret is kept, sealed with the customer's data key,
-- until the accounts are linked: a request that was cut off in between can be sent again.
CREATE TABLE linking_exchange (
  customer_id   uuid NOT NULL REFERENCES customer,
  exchange_id   uuid NOT NULL,
  access        text NOT NULL CHECK (starts_with(access, 'sealed:')),
  exchanged_at  timestamptz NOT NULL,
  PRIMARY KEY (customer_id, exchange_id)
);
