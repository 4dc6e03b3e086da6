-- Who may read the tables may dump them: a dump reads where each sequence stands.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON SEQUENCES TO billfold_app;
