-- Roles and schemas: one login role for each service, owner of the one schema of the same name, and no way into
-- another's. Run by psql as a superuser, in the database to prepare; running it again changes nothing but passwords.
--
-- The passwords come from the environment: BANKSIDE_<SERVICE>_DATABASE_PASSWORD. One that is missing is an error.

\set ON_ERROR_STOP on
\set QUIET on
SET client_min_messages = warning;

\getenv gateway BANKSIDE_GATEWAY_DATABASE_PASSWORD
\getenv onboarding BANKSIDE_ONBOARDING_DATABASE_PASSWORD
\getenv ledger_read BANKSIDE_LEDGER_READ_DATABASE_PASSWORD
\getenv payments BANKSIDE_PAYMENTS_DATABASE_PASSWORD
\getenv webhook_dispatcher BANKSIDE_WEBHOOK_DISPATCHER_DATABASE_PASSWORD
\getenv reconciliation BANKSIDE_RECONCILIATION_DATABASE_PASSWORD
\getenv provider_sandbox BANKSIDE_SANDBOX_DATABASE_PASSWORD

BEGIN;
-- Roles belong to the whole server: two runs at once would trip over one another. Released by COMMIT.
LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE;

CREATE TEMPORARY TABLE service (name name PRIMARY KEY, password text NOT NULL CHECK (length(password) >= 16))
    ON COMMIT DROP;
INSERT INTO service VALUES
    ('gateway', :'gateway'),
    ('onboarding', :'onboarding'),
    ('ledger_read', :'ledger_read'),
    ('payments', :'payments'),
    ('webhook_dispatcher', :'webhook_dispatcher'),
    ('reconciliation', :'reconciliation'),
    ('provider_sandbox', :'provider_sandbox');

SELECT format('CREATE ROLE %I', name) FROM service
 WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) \gexec
SELECT format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD %L', name, password)
  FROM service \gexec
SELECT format('ALTER ROLE %I SET search_path = %I', name, name) FROM service \gexec
-- Longer than any statement or transaction of ours should take: what exceeds it holds others up.
SELECT format('ALTER ROLE %I SET statement_timeout = %L', name, '15s') FROM service \gexec
SELECT format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', name, '15s') FROM service \gexec

SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
REVOKE ALL ON SCHEMA public FROM PUBLIC;
SELECT format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name) FROM service \gexec
SELECT format('CREATE SCHEMA IF NOT EXISTS %I AUTHORIZATION %I', name, name) FROM service \gexec
COMMIT;
