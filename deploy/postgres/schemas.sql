-- Roles and schemas. Each service has one schema and two login roles:
--
--   <service>_owner   owns the schema and all that is in it; used by migrations only
--   <service>         the running service: reads and writes rows, defines nothing
--
-- Neither has a way into the schema of another service, or into another database of the server, which is taken to be
-- there for Bankside alone. What a service may only add to, or only read, its migrations
-- take away from these grants. Run by psql as a superuser, in the database to prepare. A database of a release in which
-- the services owned their schemas is brought to this; otherwise running it again changes nothing but passwords.
--
-- The passwords come from the environment: BANKSIDE_<SERVICE>_DATABASE_PASSWORD and
-- BANKSIDE_<SERVICE>_OWNER_DATABASE_PASSWORD. One that is missing is an error.

\set ON_ERROR_STOP on
\set QUIET on
\set VERBOSITY terse
SET client_min_messages = warning;
-- The server's log must not have the passwords: no statement, no row that a check refuses.
SET log_statement = none;
SET log_min_duration_statement = -1;
SET log_min_error_statement = panic;
SET log_error_verbosity = terse;

\getenv gateway BANKSIDE_GATEWAY_DATABASE_PASSWORD
\getenv onboarding BANKSIDE_ONBOARDING_DATABASE_PASSWORD
\getenv ledger_read BANKSIDE_LEDGER_READ_DATABASE_PASSWORD
\getenv payments BANKSIDE_PAYMENTS_DATABASE_PASSWORD
\getenv webhook_dispatcher BANKSIDE_WEBHOOK_DISPATCHER_DATABASE_PASSWORD
\getenv reconciliation BANKSIDE_RECONCILIATION_DATABASE_PASSWORD
\getenv provider_sandbox BANKSIDE_SANDBOX_DATABASE_PASSWORD
\getenv gateway_owner BANKSIDE_GATEWAY_OWNER_DATABASE_PASSWORD
\getenv onboarding_owner BANKSIDE_ONBOARDING_OWNER_DATABASE_PASSWORD
\getenv ledger_read_owner BANKSIDE_LEDGER_READ_OWNER_DATABASE_PASSWORD
\getenv payments_owner BANKSIDE_PAYMENTS_OWNER_DATABASE_PASSWORD
\getenv webhook_dispatcher_owner BANKSIDE_WEBHOOK_DISPATCHER_OWNER_DATABASE_PASSWORD
\getenv reconciliation_owner BANKSIDE_RECONCILIATION_OWNER_DATABASE_PASSWORD
\getenv provider_sandbox_owner BANKSIDE_SANDBOX_OWNER_DATABASE_PASSWORD

BEGIN;
-- Roles belong to the whole server: two runs at once would trip over one another. Released by COMMIT.
LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE;

CREATE TEMPORARY TABLE service (name name PRIMARY KEY, password text NOT NULL, owner name, owner_password text NOT NULL)
    ON COMMIT DROP;
INSERT INTO service VALUES
    ('gateway', :'gateway', 'gateway_owner', :'gateway_owner'),
    ('onboarding', :'onboarding', 'onboarding_owner', :'onboarding_owner'),
    ('ledger_read', :'ledger_read', 'ledger_read_owner', :'ledger_read_owner'),
    ('payments', :'payments', 'payments_owner', :'payments_owner'),
    ('webhook_dispatcher', :'webhook_dispatcher', 'webhook_dispatcher_owner', :'webhook_dispatcher_owner'),
    ('reconciliation', :'reconciliation', 'reconciliation_owner', :'reconciliation_owner'),
    ('provider_sandbox', :'provider_sandbox', 'provider_sandbox_owner', :'provider_sandbox_owner');
CREATE TEMPORARY TABLE login (name name PRIMARY KEY, password text NOT NULL CHECK (length(password) >= 16), schema name)
    ON COMMIT DROP;
INSERT INTO login SELECT name, password, name FROM service UNION ALL SELECT owner, owner_password, name FROM service;

SELECT format('CREATE ROLE %I', name) FROM login
 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) \gexec
SELECT format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD %L',
    name, password) FROM login \gexec
SELECT format('ALTER ROLE %I SET search_path = %I', name, schema) FROM login \gexec
-- Longer than any statement or transaction of ours should take: what exceeds it holds others up.
SELECT format('ALTER ROLE %I SET statement_timeout = %L', name, '15s') FROM login \gexec
SELECT format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', name, '15s') FROM login \gexec

SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC, %s', datname, (SELECT string_agg(format('%I', name), ', ') FROM login))
  FROM pg_catalog.pg_database
 WHERE datname IN (current_database(), 'postgres', 'template1') \gexec
-- Logins that are not ours keep CONNECT on the database `postgres`, which PUBLIC gave them: pg_rewind connects to it when a
-- former primary becomes a standby. A role that is made later has it once this has run again.
SELECT format('GRANT CONNECT ON DATABASE postgres TO %I', rolname)
  FROM pg_catalog.pg_roles JOIN pg_catalog.pg_database ON datname = 'postgres' AND datname <> current_database()
 WHERE rolcanlogin AND NOT rolsuper AND rolname NOT IN (SELECT name FROM login) \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SELECT format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name) FROM login \gexec
SELECT format('CREATE SCHEMA IF NOT EXISTS %I AUTHORIZATION %I', name, owner) FROM service \gexec

-- What migrations make from now on. Functions are executable by PUBLIC unless that is taken away for every schema.
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
    owner, name, name) FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT USAGE ON SEQUENCES TO %I', owner, name, name)
  FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC', owner)
  FROM service \gexec
SELECT format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT EXECUTE ON FUNCTIONS TO %I', owner, name, name)
  FROM service \gexec

-- What the services themselves own, since an earlier release made it: it goes to the owners, and the grants above are
-- made up for. Partitions have none: services reach their rows through the partitioned table.
CREATE TEMPORARY TABLE moved ON COMMIT DROP AS
SELECT s.name AS service, c.oid::regclass AS relation, c.relkind = 'S' AS is_sequence
  FROM service s
  JOIN pg_catalog.pg_roles r ON r.rolname = s.name
  JOIN pg_catalog.pg_class c ON c.relowner = r.oid
 WHERE c.relkind IN ('r', 'p', 'v', 'S') AND NOT c.relispartition;
CREATE TEMPORARY TABLE moved_function ON COMMIT DROP AS
SELECT s.name AS service, f.oid::regprocedure AS function
  FROM service s
  JOIN pg_catalog.pg_roles r ON r.rolname = s.name
  JOIN pg_catalog.pg_proc f ON f.proowner = r.oid;
SELECT format('REASSIGN OWNED BY %I TO %I', name, owner) FROM service \gexec
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', name, name) FROM service \gexec
SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO %I', relation, service)
  FROM moved WHERE NOT is_sequence \gexec
SELECT format('GRANT USAGE ON SEQUENCE %s TO %I', relation, service) FROM moved WHERE is_sequence \gexec
SELECT format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function) FROM moved_function \gexec
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', function, service) FROM moved_function \gexec
COMMIT;
