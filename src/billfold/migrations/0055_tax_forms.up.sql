-- Calendar years of which every tax form is made.
CREATE TABLE tax_run (
  year         int PRIMARY KEY CHECK (year BETWEEN 2000 AND 2999),
  finished_at  timestamptz NOT NULL
);
