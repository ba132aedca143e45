-- timeout.sql: what would a longer checkpoint_timeout save on this server?  See
-- doc/timeout.md.  Needs psql, PostgreSQL 16 or later, the extension
-- pg_walinspect, and a superuser, or a member of pg_read_server_files and
-- pg_monitor.  Changes nothing.
--
--   psql -f timeout.sql                reads up to 8 GB of the newest WAL in pg_wal
--   psql -v most=2GB -f timeout.sql    or as much as this
--   psql -v intervals=6 -f timeout.sql and up to 12 intervals between checkpoints, or 6
--   psql -v relations=30 -f timeout.sql   names so many relations, not 10
--
-- Without the extension, for this session alone:
--   psql -c BEGIN -c 'CREATE EXTENSION pg_walinspect' -f timeout.sql -c ROLLBACK
--
-- After a checkpoint, the first change of a page logs the whole page: an image.
-- With checkpoints k times as far apart, a page is logged once where it is now
-- logged in several of k intervals.  So this looks up which pages were logged
-- in each interval between two checkpoints, and counts each page of k
-- consecutive intervals once.  A page that was created in one of them has no
-- image in the later ones.

\set ON_ERROR_STOP on
\set QUIET on
\pset footer off
\pset null ''
\if :{?most} \else
  \set most 8GB
\endif
\if :{?intervals} \else
  \set intervals 12
\endif
\if :{?relations} \else
  \set relations 10
\endif
\if :{?headroom} \else
  \set headroom 1.2
\endif
-- COMMIT records are shown in this time zone
SET timezone = 'UTC';

SELECT coalesce(CASE
    WHEN current_setting('server_version_num')::int < 160000
    THEN 'timeout.sql needs PostgreSQL 16 or later; this is ' || current_setting('server_version')
    WHEN pg_is_in_recovery()
    THEN 'timeout.sql must be run on the primary; this is a standby'
    WHEN NOT pg_has_role('pg_monitor', 'USAGE') OR NOT pg_has_role('pg_read_server_files', 'USAGE')
    THEN 'timeout.sql needs a superuser, or a member of pg_monitor and pg_read_server_files'
    WHEN NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_walinspect')
    THEN 'timeout.sql needs the extension pg_walinspect: CREATE EXTENSION pg_walinspect; or see the beginning of timeout.sql'
    WHEN current_setting('full_page_writes') = 'off'
    THEN 'full_page_writes is off: there are no images that a longer checkpoint_timeout could save'
  END, '') AS obstacle,
  (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
    WHERE extname = 'pg_walinspect') AS schema \gset
SELECT :'obstacle' <> '' AS stop \gset
\if :stop
  \set VERBOSITY terse
  SELECT set_config('timeout.obstacle', :'obstacle', false) AS obstacle \gset
  DO $$ BEGIN RAISE EXCEPTION '%', current_setting('timeout.obstacle'); END $$;
\endif

-- The redo pointers of the last checkpoints, newest first, as far as WAL goes
-- back.  It is read backward, a piece at a time, because pg_walinspect keeps
-- what it reads; each piece a little longer, for the records that cross its end.
WITH RECURSIVE server AS (
  SELECT pg_current_wal_flush_lsn() AS newest, pg_size_bytes('32MB') AS piece,
    '0/0'::pg_lsn + greatest(pg_current_wal_flush_lsn() - '0/0' - pg_size_bytes(:'most')::numeric,
      (SELECT min(s.segment_number) FROM pg_ls_waldir() f, pg_split_walfile_name(f.name) s
        WHERE f.name ~ '^[0-9A-F]{24}$' AND s.timeline_id =
          (pg_split_walfile_name(pg_walfile_name(pg_current_wal_flush_lsn()))).timeline_id)
      * pg_size_bytes(current_setting('wal_segment_size'))) AS oldest
), piece (beginning, redo) AS (
  SELECT newest, ARRAY[]::pg_lsn[] FROM server
  UNION ALL
  SELECT at, p.redo || found.redo
  FROM piece p, server s, LATERAL (SELECT CASE WHEN p.beginning - s.oldest < 2 * s.piece THEN s.oldest
      ELSE p.beginning - s.piece::numeric END AS at) b,
    LATERAL (
      SELECT coalesce(array_agg(substring(description FROM '^redo ([0-9A-F/]+)')::pg_lsn
          ORDER BY start_lsn DESC), '{}') AS redo
      FROM :schema.pg_get_wal_records_info(at, p.beginning + 1048576)
      WHERE start_lsn < p.beginning AND resource_manager = 'XLOG'
        AND record_type IN ('CHECKPOINT_ONLINE', 'CHECKPOINT_SHUTDOWN')
    ) found
  WHERE p.beginning > s.oldest AND cardinality(p.redo) <= :intervals
), redo AS (
  SELECT DISTINCT lsn
  FROM server, unnest((SELECT redo FROM piece ORDER BY beginning LIMIT 1)) lsn
  WHERE lsn >= oldest ORDER BY lsn DESC LIMIT :intervals + 1
), timed AS (
  -- the time of a checkpoint: that of the next commit; the last one's is known
  SELECT lsn, coalesce((SELECT substring(description FROM '^[^;]+')::timestamptz
      FROM :schema.pg_get_wal_records_info(lsn, lsn + 4194304)
      WHERE resource_manager = 'Transaction' AND record_type = 'COMMIT'
      ORDER BY start_lsn LIMIT 1), CASE lsn WHEN redo_lsn THEN checkpoint_time + interval '1 s' END) AS at
  FROM redo, pg_control_checkpoint()
), interval AS (
  SELECT row_number() OVER (ORDER BY lsn) AS i, lsn AS beginning,
    lead(lsn) OVER (ORDER BY lsn) AS ending,
    nullif(greatest(0, extract(epoch FROM lead(at) OVER (ORDER BY lsn) - at)::float8), 0) AS seconds
  FROM timed
), usual AS (
  SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds FROM interval
), run AS (
  -- the longest series of intervals that are about alike, the newest of several
  SELECT count(*) AS intervals, min(beginning) AS beginning, max(ending) AS ending, avg(seconds) AS seconds
  FROM (SELECT *, i - row_number() OVER (ORDER BY i) AS series FROM interval
    WHERE abs(seconds - (SELECT seconds FROM usual)) <= greatest(1, 0.1 * (SELECT seconds FROM usual))) s
  GROUP BY series ORDER BY count(*) DESC, max(i) DESC LIMIT 1
)
SELECT coalesce(r.intervals, 0) AS intervals, coalesce(r.seconds, 0) AS seconds,
  (SELECT coalesce(array_agg(lsn ORDER BY lsn), '{}') FROM redo
    WHERE lsn BETWEEN r.beginning AND r.ending) AS redo,
  (SELECT count(*) FROM interval WHERE ending IS NOT NULL) AS all_intervals
FROM (SELECT) one LEFT JOIN run r ON true \gset

SELECT CASE WHEN :all_intervals = 0
    THEN 'cannot tell: pg_wal does not have the WAL between two checkpoints any more'
    ELSE 'cannot tell: the time of the checkpoints is not known, because no transaction committed in the 4 MB of WAL after each'
  END || '; see "How far back?" in doc/timeout.md' AS obstacle, :intervals = 0 AS stop \gset
\if :stop
  \echo :obstacle
  \q
\endif

-- Each page in each interval.  "before" is the last earlier interval in which it
-- was logged or created: a longer interval that contains both logs it once.  In
-- place of an image, a record has the data of its change, as others of its type.
-- An FPI is the image of a new page of an index, written in any case; VISIBLE
-- does not change the page of the table.
WITH piece AS (
  SELECT i, at AS beginning, least(at + 33554432, ending) AS ending
  FROM generate_series(1, :intervals) i,
    LATERAL (SELECT (:'redo'::pg_lsn[])[i] AS beginning, (:'redo'::pg_lsn[])[i + 1] AS ending) n,
    LATERAL (SELECT beginning + m AS at FROM generate_series(0, ending - beginning - 1, 33554432) m) p
), logged AS MATERIALIZED (
  -- by page, and by type of record
  SELECT i, reltablespace, reldatabase, relfilenode, relforknumber, relblocknumber, type,
    count(*) FILTER (WHERE image) AS images, min(type) FILTER (WHERE image) AS image_type,
    coalesce(sum(block_fpi_length) FILTER (WHERE image), 0) AS bytes,
    coalesce(avg(block_data_length) FILTER (WHERE block_fpi_length = 0), 0) AS change
  FROM piece p, LATERAL (
    SELECT *, resource_manager || record_type AS type,
      block_fpi_length > 0 AND record_type <> 'FPI' AS image
    FROM :schema.pg_get_wal_block_info(p.beginning, p.ending + 1048576, false)) b
  WHERE start_lsn < p.ending
    AND NOT (record_type = 'VISIBLE' AND relforknumber = 0 AND block_fpi_length = 0)
  GROUP BY GROUPING SETS ((1, 2, 3, 4, 5, 6), (7))
), page AS (
  SELECT *, lag(i) OVER (PARTITION BY reltablespace, reldatabase, relfilenode, relforknumber, relblocknumber
      ORDER BY i) AS before
  FROM logged WHERE type IS NULL
), interval AS (
  SELECT p.i, p.before, sum(p.images) AS images, sum(p.bytes) AS bytes,
    sum(p.bytes - p.images * coalesce(t.change, 0)) AS extra
  FROM page p LEFT JOIN logged t ON t.type = p.image_type GROUP BY p.i, p.before
), relation AS (
  SELECT reltablespace, reldatabase, relfilenode, sum(images) AS images, sum(bytes) AS bytes,
    count(DISTINCT (relforknumber, relblocknumber)) AS pages
  FROM page WHERE images > 0 GROUP BY 1, 2, 3 ORDER BY 5 DESC LIMIT :relations
)
SELECT json_build_object('interval', (SELECT json_agg(interval) FROM interval),
  'relation', (SELECT json_agg(relation) FROM relation)) AS measured \gset

SELECT format(E'Read %s of WAL: %s intervals between checkpoints, of %s s (checkpoint_timeout is %s s)\n',
  pg_size_pretty(((:'redo'::pg_lsn[])[:intervals + 1] - (:'redo'::pg_lsn[])[1])::bigint),
  :intervals, round(:seconds), extract(epoch FROM current_setting('checkpoint_timeout')::interval)::int) AS read \gset
\echo :read

WITH server AS (
  SELECT pg_size_bytes(current_setting('wal_segment_size')) AS segment,
    1 + current_setting('checkpoint_completion_target')::float8 AS divisor,
    :'redo'::pg_lsn[] AS redo
), logged AS (
  SELECT * FROM json_to_recordset(:'measured'::json -> 'interval')
    AS (i int, before int, images numeric, bytes numeric, extra numeric)
), trend AS (
  SELECT coalesce(abs(regr_slope(images, i)) * (count(*) - 1) / nullif(avg(images), 0), 0) AS change
  FROM (SELECT i, sum(images)::float8 AS images FROM logged GROUP BY i) l
), range AS (
  -- each range of k consecutive intervals: its WAL if it were one, and its images
  SELECT k, redo[first + k] - redo[first] - l.saved AS wal, l.images
  FROM server, (VALUES (1), (2), (3), (6), (12)) t (k),
    LATERAL generate_series(1, :intervals - k + 1) first,
    LATERAL (SELECT coalesce(sum(extra) FILTER (WHERE before >= first), 0) AS saved,
        coalesce(sum(bytes) FILTER (WHERE before IS NULL OR before < first), 0) AS images
      FROM logged WHERE i BETWEEN first AND first + k - 1) l
), row AS (
  SELECT k, avg(wal) * 3600 / (k * :seconds) AS hourly, avg(images) / avg(wal) AS images,
    CASE WHEN k > :intervals THEN format('%s intervals are needed', k)
      WHEN k > 1 AND change > 0.1 THEN format('the images change by %s %% over the intervals', round(100 * change))
    END AS obstacle, ceil(floor(max(wal) * :headroom) / segment) + 1 AS segments
  FROM (VALUES (1), (2), (3), (6), (12)) t (k) LEFT JOIN range USING (k), trend, server
  GROUP BY k, change, segment
)
SELECT make_interval(secs => round(k * :seconds)) AS "checkpoint every",
  CASE WHEN obstacle IS NULL THEN round(hourly / 1048576) || ' MB' END AS "WAL per hour",
  CASE WHEN obstacle IS NULL AND k > 1
    THEN round((100 * (1 - hourly / first_value(hourly) OVER (ORDER BY k)))::numeric, 1) || ' %' END AS "saved",
  CASE WHEN obstacle IS NULL THEN round(100 * images) || ' %' END AS "images",
  CASE WHEN obstacle IS NULL THEN (SELECT pg_size_pretty(segment * min(m))
      FROM server, generate_series(greatest(2, floor(segments * divisor))::bigint,
        ceil(segments * divisor)::bigint + 2) m
      WHERE greatest(1, floor(m / divisor)) >= segments GROUP BY segment) END AS "max_wal_size",
  'cannot tell: ' || obstacle AS "remark"
FROM row ORDER BY k;

SELECT coalesce(r.name::text, format('database %s, file %s', coalesce(datname, r.reldatabase::text), r.relfilenode)) AS "relation",
  CASE c.relkind WHEN 'i' THEN am.amname || ' index' WHEN 'r' THEN 'table' WHEN 't' THEN 'TOAST table'
    WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' END AS "kind",
  r.images, r.pages,
  round(100 * r.bytes / (SELECT sum(bytes) FROM json_to_recordset(:'measured'::json -> 'interval')
    AS (bytes numeric))) || ' %' AS "of all images"
FROM (SELECT *, CASE WHEN reldatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      THEN pg_filenode_relation(reltablespace, relfilenode) END AS name
    FROM json_to_recordset(:'measured'::json -> 'relation') AS (reltablespace oid,
      reldatabase oid, relfilenode oid, images bigint, bytes numeric, pages bigint)) r
  LEFT JOIN pg_database d ON d.oid = r.reldatabase
  LEFT JOIN pg_class c ON c.oid = r.name
  LEFT JOIN pg_am am ON am.oid = c.relam
ORDER BY r.bytes DESC;
