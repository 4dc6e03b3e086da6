-- Items of background work that failed and are tried again later, by kind of work. Instants are of wall time.
CREATE TABLE failed_work (
  kind      text NOT NULL,
  item      text NOT NULL,
  tries     int NOT NULL CHECK (tries > 0),
  error     text NOT NULL,
  failed_at timestamptz NOT NULL,
  again_at  timestamptz NOT NULL,
  PRIMARY KEY (kind, item)
);
