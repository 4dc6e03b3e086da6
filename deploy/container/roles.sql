-- Copy it to secrets/roles.sql, with passwords of your own, for the user of PostgreSQL in its image (999, mode 0400).
-- The owner migrates (secrets/owner), the bank logs in as a member of billfold_app (secrets/database).
CREATE ROLE billfold LOGIN PASSWORD 'a long random one';
CREATE ROLE billfold_app NOLOGIN;
GRANT billfold_app TO billfold;
CREATE ROLE billfold_serve LOGIN PASSWORD 'another one' IN ROLE billfold_app;
ALTER DATABASE billfold OWNER TO billfold;
