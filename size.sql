-- size.sql: how large must max_wal_size be so that WAL volume forces no
-- checkpoint?  For servers that cannot load walsizer: see doc/where-it-runs.md.
-- Needs psql, and no extension, table or privilege.  PostgreSQL 13 and later.
--
--   psql -f size.sql                 measures until you press Ctrl-C
--   psql -v wal=700MB -f size.sql    for so much WAL in each checkpoint_timeout
--   psql -v from=0/3000000 -v to=0/2F000000 -f size.sql
--                                    for the WAL between these two positions
--
-- "size" lets the largest WAL pass, "roomy" that times -v headroom=1.2.
-- Units: seconds and MB, rounded up.

\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
\pset fieldsep ''
\if :{?headroom} \else
  \set headroom 1.2
\endif
\if :{?from}
  SELECT abs(:'to'::pg_lsn - :'from'::pg_lsn) AS wal \gset
\endif
\if :{?wal} \else
  \set wal ''
  SELECT extract(epoch FROM current_setting('checkpoint_timeout')::interval) / 10 AS step \gset
\endif
\echo 'time       seconds       WAL   largest      size     roomy  max_wal_size'

WITH server AS (
  SELECT pg_size_bytes(current_setting('wal_segment_size')) AS segment,
    1 + current_setting('checkpoint_completion_target')::float8 AS divisor,
    extract(epoch FROM current_setting('checkpoint_timeout')::interval) AS timeout
), step AS (
  -- the earlier steps, kept in a setting of this session, and this one
  SELECT * FROM jsonb_to_recordset(coalesce(nullif(
    current_setting('size.steps', true), ''), '[]')::jsonb) AS (at float8, lsn numeric, largest numeric)
  UNION ALL
  SELECT extract(epoch FROM clock_timestamp()), CASE WHEN pg_is_in_recovery()
    THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0'::pg_lsn, 0
  WHERE :'wal' = ''
), kept AS (
  -- those of the last checkpoint_timeout, and the one before them
  SELECT * FROM step, server WHERE at >= (SELECT coalesce(
    max(s.at) FILTER (WHERE s.at <= n.at - timeout), min(s.at))
    FROM step s, (SELECT max(at) AS at FROM step) n)
), measured AS (
  SELECT max(at) - min(at) AS seconds, max(lsn) - min(lsn) AS wal,
    greatest(max(largest), max(lsn) - min(lsn)) AS largest
  FROM kept HAVING count(*) > 0
), load AS (
  SELECT *, set_config('size.steps', (SELECT jsonb_agg(jsonb_build_object(
    'at', at, 'lsn', lsn, 'largest', m.largest))::text FROM kept), false) AS steps
  FROM measured m
  UNION ALL
  SELECT NULL, pg_size_bytes(w), pg_size_bytes(w), ''
  FROM regexp_split_to_table(nullif(:'wal', ''), ',') w
), sized AS (
  -- CalculateCheckpointSegments() of the server, the other way round.  The redo
  -- pointer may lie anywhere in its segment, so one segment more is needed.
  SELECT load.*, (SELECT array_agg(segment / 1048576 * (
      SELECT min(m) FROM generate_series(greatest(2, floor(n * divisor))::bigint,
        ceil(n * divisor)::bigint + 2) m WHERE greatest(1, floor(m / divisor)) >= n) ORDER BY f)
    FROM (VALUES (1::float8), (:headroom)) v (f),
      LATERAL (SELECT ceil(floor(largest * f) / segment) + 1) c (n)) AS mb
  FROM load, server
)
SELECT to_char(clock_timestamp(), 'HH24:MI:SS'),
  coalesce(to_char(seconds, '999999999'), repeat(' ', 10)),
  to_char(ceil(wal / 1048576.0), '99999999'), to_char(ceil(largest / 1048576.0), '999999999'),
  to_char(mb[1], '999999999'), to_char(mb[2], '999999999'),
  to_char(pg_size_bytes(current_setting('max_wal_size')) / 1048576, '9999999999999')
FROM sized WHERE steps IS NOT NULL
\if :{?step}
  \watch :step
\else
  \g
\endif
