-- Ends with an error where PostgreSQL does not archive its WAL: beside each base backup ("Backups" in
-- deploy/PRODUCTION.md), so that its exit status tells. Run by psql as a superuser.

\set ON_ERROR_STOP on
\set VERBOSITY terse

DO $$
DECLARE
    archiver pg_catalog.pg_stat_archiver;
    oldest pg_catalog.timestamptz;
BEGIN
    IF current_setting('archive_mode') = 'off' THEN
        RAISE EXCEPTION 'WAL is not archived: archive_mode is off';
    END IF;
    SELECT * INTO archiver FROM pg_catalog.pg_stat_archiver;
    IF archiver.last_failed_time > coalesce(archiver.last_archived_time, '-infinity') THEN
        RAISE EXCEPTION 'WAL is not archived: % failed at %, the newest in the archive is % of %',
            archiver.last_failed_wal, archiver.last_failed_time,
            coalesce(archiver.last_archived_wal, 'none'), archiver.last_archived_time;
    END IF;
    -- An archive_command that hangs does not fail.
    SELECT min(modification) INTO oldest FROM pg_catalog.pg_ls_archive_statusdir() WHERE name LIKE '%.ready';
    IF oldest < now() - interval '10 minutes' THEN
        RAISE EXCEPTION 'WAL is not archived: a file has waited since %', oldest;
    END IF;
END $$;
