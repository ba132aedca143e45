/* walsizer--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION walsizer" to load this file. \quit

-- Sizes are bytes, rates bytes per second.  Names of C functions carry the
-- version that their columns belong to: objects of another version than the
-- library fail with a clear error instead of reading the wrong columns.
--
-- A call or an operator names pg_catalog, or has exactly the types that one of
-- pg_catalog takes.  Otherwise one that a user has created in the schema of the
-- extension could match better, and would run with the rights of the reader.

--
-- What the worker knows.  The views are for people; the functions behind them
-- copy shared memory.
--
CREATE FUNCTION walsizer_get_status(
    OUT state text,
    OUT verdict text,
    OUT max_wal_size bigint,
    OUT wanted_size bigint,
    OUT limited_by text,
    OUT original_size bigint,
    OUT set_by_walsizer bigint,
    OUT role text,
    OUT action text,
    OUT reason text,
    OUT explanation text,
    OUT outcome text,
    OUT message text,
    OUT boost_size bigint,
    OUT boost_until timestamptz,
    OUT verdict_code text,
    OUT pid integer
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_get_status_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_stats(
    OUT sampled_at timestamptz,
    OUT demand bigint,
    OUT largest_demand bigint,
    OUT wal_rate bigint,
    OUT wal_since_checkpoint bigint,
    OUT trigger_point bigint,
    OUT time_to_forced interval,
    OUT time_to_timed interval,
    OUT size_limit bigint,
    OUT disk_limit bigint,
    OUT recovery_limit bigint,
    OUT recovery_time_max interval,
    OUT recovery_time_now interval,
    OUT replay_rate bigint,
    OUT replay_rate_source text,
    OUT wal_held_back bigint,
    OUT padding_percent integer,
    OUT checkpoints_forced bigint,
    OUT checkpoints_forced_old_value bigint,
    OUT checkpoints_timed bigint,
    OUT checkpoints_other bigint,
    OUT checkpoints_disk_full bigint,
    OUT num_requested bigint,
    OUT num_timed bigint,
    OUT stats_reset timestamptz
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_get_stats_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_history(
    OUT id bigint,
    OUT changed_at timestamptz,
    OUT action text,
    OUT reason text,
    OUT explanation text,
    OUT old_size bigint,
    OUT wanted_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text,
    OUT demand bigint,
    OUT wal_rate bigint,
    OUT checkpoints_forced bigint,
    OUT num_requested bigint,
    OUT num_timed bigint,
    OUT checkpoint_timeout interval,
    OUT checkpoint_completion_target double precision,
    OUT role text,
    OUT forced_after bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'walsizer_get_history_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_demand(
    OUT hour timestamptz,
    OUT demand bigint,
    OUT checkpoint_timeout interval,
    OUT needed_size bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'walsizer_get_demand_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_advice(
    OUT size bigint,
    OUT label text,
    OUT trigger_point bigint,
    OUT checkpoint_every_now interval,
    OUT checkpoint_every_at_peak interval,
    OUT forced_fraction double precision,
    OUT recovery_time interval,
    OUT limited_by text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'walsizer_get_advice_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_instructions(
    size_mb bigint,
    OUT place text,
    OUT instruction text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'walsizer_get_instructions_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION walsizer_get_timeout_advice(
    OUT checkpoint_timeout interval,
    OUT label text,
    OUT wal_saved_least double precision,
    OUT wal_saved_most double precision,
    OUT wal_saved double precision,
    OUT compared_with interval,
    OUT needed_size bigint,
    OUT recovery_time interval,
    OUT limited_by text,
    OUT basis text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'walsizer_get_timeout_advice_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW walsizer_status AS SELECT * FROM walsizer_get_status();
CREATE VIEW walsizer_stats AS SELECT * FROM walsizer_get_stats();
CREATE VIEW walsizer_history AS SELECT * FROM walsizer_get_history();
CREATE VIEW walsizer_demand AS SELECT * FROM walsizer_get_demand();
CREATE VIEW walsizer_advice AS SELECT * FROM walsizer_get_advice();
CREATE VIEW walsizer_timeout_advice AS SELECT * FROM walsizer_get_timeout_advice();

--
-- What follows from it, for people.
--

-- The size is what the load needs, or a planned one asks for: within the limits,
-- and never below the value in effect.  Only ways that have an effect here are
-- named: nothing overrides the command line, a file that is included counts more
-- than what stands before that, a line of ALTER SYSTEM hides both (but walsizer's own makes way for an edit, if it acts and did
-- not replace such a line), and what an operator or Patroni writes is theirs.
CREATE VIEW walsizer_instructions AS
SELECT CASE WHEN way.place = 'postgresql.conf' THEN coalesce(found.included, way.place) ELSE way.place END AS place,
       way.instruction
  FROM walsizer_status AS status
 CROSS JOIN walsizer_stats AS stats
 CROSS JOIN LATERAL (VALUES (greatest(pg_size_bytes(current_setting('max_wal_size')),
           least(greatest(status.wanted_size, status.boost_size), stats.size_limit)) / 1048576)
       ) AS size (mb)
 CROSS JOIN LATERAL (
    SELECT coalesce(sourcefile LIKE '%/postgresql.auto.conf' AND
               (status.set_by_walsizer IS NULL OR status.outcome IN ('forbidden', 'failed') OR
                status.state IN ('disabled', 'dry run', 'not running') OR
                current_setting('walsizer.last_written') LIKE '%ALTER SYSTEM'), false) AS hidden,
           CASE WHEN sourcefile NOT LIKE '%/postgresql.conf' AND sourcefile NOT LIKE '%/postgresql.auto.conf'
           THEN sourcefile END AS included,
           CASE WHEN status.outcome = 'refused' THEN 'configuration files'
                WHEN source = 'command line' THEN 'command line'
                WHEN current_setting('cnpg.config_sha256', true) IS NOT NULL THEN 'CloudNativePG'
                WHEN EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'Patroni%')
                THEN 'Patroni' END AS only_place
      FROM pg_settings WHERE name = 'max_wal_size'
  ) AS found
 CROSS JOIN LATERAL walsizer_get_instructions(size.mb) AS way
 WHERE status.max_wal_size IS NOT NULL AND place = coalesce(only_place, place)
   AND CASE place
       WHEN 'postgresql.conf' THEN NOT hidden
       WHEN 'postgresql.auto.conf' THEN hidden AND status.outcome = 'forbidden'
       WHEN 'SQL' THEN status.outcome IS DISTINCT FROM 'forbidden'
       ELSE only_place IS NOT NULL END;

-- A setting without a proposal has no row.  Nothing is proposed that the
-- server's manual advises against, and nothing here changes a setting.
CREATE VIEW walsizer_related_settings AS
SELECT rule.setting, current_setting(rule.setting) AS value,
       rule.proposal, rule.explanation
  FROM walsizer_status AS status
 CROSS JOIN walsizer_stats AS stats
 CROSS JOIN (
    SELECT pg_size_bytes(current_setting('wal_segment_size')) AS segment_size,
           pg_size_bytes(current_setting('min_wal_size')) AS min_wal_size,
           pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size,
           pg_size_bytes(current_setting('wal_buffers')) AS wal_buffers,
           extract(epoch FROM current_setting('checkpoint_timeout')::interval) AS timeout,
           extract(epoch FROM current_setting('wal_writer_delay')::interval) AS writer_delay,
           current_setting('wal_block_size')::numeric AS block_size,
           current_setting('checkpoint_completion_target')::numeric AS target
  ) AS server
 CROSS JOIN LATERAL (
    -- 19 counts the bytes of full-page images; before it, 6000 bytes are
    -- assumed for one: a page without its hole
    SELECT wal_fpi, CASE WHEN wal_bytes > 0.0
           THEN least(1, coalesce((pg_catalog.to_jsonb(w) ->> 'wal_fpi_bytes'::text)::numeric,
                wal_fpi::numeric * 6000.0) / wal_bytes) END AS images,
           CASE WHEN wal_bytes > 0.0
           THEN wal_buffers_full::numeric * server.block_size / wal_bytes END AS backends
      FROM pg_stat_wal AS w
  ) AS wal
 CROSS JOIN (
    SELECT pg_catalog.percentile_disc(0.5) WITHIN GROUP (ORDER BY demand) AS demand
      FROM walsizer_demand
  ) AS usual
  LEFT JOIN LATERAL (
    SELECT timeout, words, seconds, needed
      FROM (VALUES ('15min', '15 minutes', 900.0), ('5min', '5 minutes', 300.0)) AS t (timeout, words, seconds)
     CROSS JOIN LATERAL (VALUES (server.segment_size::numeric * floor((1.0 + server.target) *
              (1.0 + ceil(stats.demand::numeric * seconds / server.timeout / server.segment_size::numeric)))
           )) AS n (needed)
     WHERE current_setting('full_page_writes')::boolean
       AND server.timeout < 300.0 AND stats.demand >= 16 * server.segment_size
       AND needed <= stats.size_limit::numeric
     ORDER BY seconds DESC LIMIT 1
  ) AS longer ON true
  LEFT JOIN LATERAL (
    SELECT *, (extract(epoch FROM checkpoint_timeout) / 60.0)::integer AS minutes
      FROM walsizer_timeout_advice
     WHERE server.timeout >= 300.0 AND wal_saved_least >= 0.15::double precision AND limited_by IS NULL
       AND extract(epoch FROM checkpoint_timeout) > server.timeout
       AND extract(epoch FROM checkpoint_timeout) <= 3.0 * server.timeout
     ORDER BY minutes DESC LIMIT 1
  ) AS step ON true
 CROSS JOIN LATERAL (VALUES
    -- one that the file system cannot hold, or that walsizer leaves alone
    ('max_wal_size',
     CASE WHEN status.verdict_code = 'no_room'
               OR (status.verdict_code = 'beyond_max' AND status.wanted_size <= stats.size_limit)
          THEN (stats.size_limit / 1048576)::text || 'MB' END,
     status.verdict),
    -- below 5 minutes, unless fewer than 16 segments are written in that time: the
    -- longest that the limits allow
    ('checkpoint_timeout', longer.timeout,
     pg_catalog.format('After each checkpoint, the first change of a page logs the whole page. With a checkpoint every %s s, this happens up to %s times as often as with one every %s. That needs a max_wal_size of at most %s, and crash recovery takes longer.',
            server.timeout::integer, trim_scale(round(longer.seconds / server.timeout, 1)),
            longer.words, pg_size_pretty(longer.needed))),
    -- from 5 minutes on, up to three times the value, if it saves much for certain
    ('checkpoint_timeout', step.minutes::text || 'min',
     pg_catalog.format('With a checkpoint every %s minutes, the same load would write %s to %s %% less WAL, because fewer pages are logged as a whole. That needs a max_wal_size of %s. Crash recovery would take up to %s instead of %s, and backups that do not ask for a fast checkpoint would wait longer.',
            step.minutes, floor(100.0::double precision * step.wal_saved_least), ceil(100.0::double precision * step.wal_saved_most),
            pg_size_pretty(step.needed_size), step.recovery_time, stats.recovery_time_max)),
    -- the server's manual advises 0.9 at most; 0.88 is as good
    ('checkpoint_completion_target',
     CASE WHEN server.target <= 0.88 THEN '0.9' END,
     pg_catalog.format('A checkpoint is written within %s %% of the %s s of checkpoint_timeout. Spread over more time, the same writes disturb other sessions less.',
            round(100.0 * server.target), server.timeout::integer)),
    -- compression is worth its processor time if images make up 30 % of the WAL
    ('wal_compression',
     CASE WHEN current_setting('wal_compression') = 'off' AND wal.images >= 0.3
          THEN 'on' END,
     pg_catalog.format('About %s %% of the WAL written since the last reset of pg_stat_wal consists of full-page images (%s of them). Compression makes them smaller and costs processor time.',
            round(100.0 * wal.images), wal.wal_fpi)),
    -- a backend that finds wal_buffers full writes a page of them itself: 3 to 8 %
    -- of the WAL of INSERT ... SELECT and UPDATE, 0.0 % of that of short
    -- transactions, or with 10ms; figures: bench/run bulk, bench/run writer.  Pages of
    -- padding fill wal_buffers that hold no segment, too, and are not in
    -- wal_bytes: then this says nothing
    ('wal_writer_delay',
     CASE WHEN server.writer_delay >= 0.1 AND wal.backends >= 0.01 AND wal.backends < 1.5
               AND stats.padding_percent < 10
               AND (current_setting('archive_timeout') = '0' OR server.wal_buffers >= server.segment_size)
          THEN '10ms' END,
     pg_catalog.format('Backends wrote about %s %% of the WAL since the last reset of pg_stat_wal themselves, a page at a time, because they found wal_buffers full. With 10ms, the WAL writer does more of this for them: in benchmarks, bulk loads took 11 to 18 %% less time, and short transactions took no longer. The server wakes up more often.',
            round(100.0 * wal.backends))),
    -- above max_wal_size; or below the largest demand, where loads come in bulk:
    -- that demand is at least 256 MB, four times min_wal_size and four times the
    -- demand of the median hour; or below 1/16 of a max_wal_size of 1 GB or more
    ('min_wal_size',
     (floor((CASE WHEN server.min_wal_size > server.max_wal_size
          THEN server.max_wal_size
          WHEN server.max_wal_size > stats.size_limit THEN NULL
          WHEN stats.largest_demand >= greatest(pg_size_bytes('256MB'),
               4 * server.min_wal_size, 4 * usual.demand)
          THEN least(server.max_wal_size, stats.largest_demand + server.segment_size - 1)
          WHEN server.max_wal_size >= greatest(pg_size_bytes('1GB'),
               16 * server.min_wal_size + 1)
          THEN server.max_wal_size / 8 END)::numeric / server.segment_size::numeric)
      * server.segment_size::numeric / 1048576.0)::bigint::text || 'MB',
     CASE WHEN server.min_wal_size > server.max_wal_size
          THEN pg_catalog.format('It exceeds max_wal_size, so the server keeps all of max_wal_size (%s) as WAL files even when it is idle.',
               pg_size_pretty(server.max_wal_size))
          ELSE pg_catalog.format('After quiet hours, the server keeps about %s of old WAL files to recycle. A bulk load that writes more must create new files and fill them with zeros first. The largest demand is %s, max_wal_size is %s. A larger min_wal_size keeps more files.',
               pg_size_pretty(server.min_wal_size), pg_size_pretty(stats.largest_demand),
               pg_size_pretty(server.max_wal_size)) END),
    ('log_checkpoints',
     CASE WHEN NOT current_setting('log_checkpoints')::boolean THEN 'on' END,
     'The server log does not say when and why checkpoints start.')
  ) AS rule (setting, proposal, explanation)
 WHERE rule.proposal IS NOT NULL AND stats.sampled_at IS NOT NULL;

-- All of this as a page of 80 columns, wrapped at spaces.  A paragraph that is
-- null is left out; before the first sample most of them are.
CREATE FUNCTION walsizer_report()
RETURNS text
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
SET intervalstyle = 'postgres'
BEGIN ATOMIC
WITH status AS (
    SELECT *, role = 'standby' AS standby, pg_size_pretty(max_wal_size) AS size
      FROM walsizer_status
), stats AS (
    SELECT * FROM walsizer_stats
), hours AS (
    SELECT hour, needed_size
      FROM walsizer_demand CROSS JOIN stats
     WHERE hour > sampled_at - interval '24 hours'
), scale AS (
    -- what 40 columns show, and the limit unless it is far beyond
    SELECT greatest(widest, shown_limit) AS widest, shown_limit
      FROM (SELECT greatest(max_wal_size, max(needed_size)) AS widest
              FROM status LEFT JOIN hours ON true GROUP BY max_wal_size) AS sizes
      LEFT JOIN LATERAL (SELECT size_limit AS shown_limit FROM stats
             WHERE size_limit <= 2 * widest) AS l ON true
)
SELECT rtrim(regexp_replace(pg_catalog.concat_ws(E'\n',
    pg_catalog.format('walsizer on this %s: %s', coalesce(role, 'server'), state
        || CASE WHEN pid IS NULL AND sampled_at IS NOT NULL
            THEN '; these figures are of ' || to_char(sampled_at, 'YYYY-MM-DD HH24:MI:SS') ELSE '' END),
    verdict,

    E'\nmax_wal_size is ' || size || CASE WHEN set_by_walsizer <> original_size
        THEN ', set by walsizer; the original value is ' || pg_size_pretty(original_size)
        WHEN set_by_walsizer IS NULL THEN ' and not set by walsizer'
        ELSE ', the original value, to which walsizer set it back' END || '.',
    'Planned load: at least ' || pg_size_pretty(boost_size) || ' until '
        || to_char(boost_until, 'YYYY-MM-DD HH24:MI') || '; walsizer_boost_end() ends it.',
    CASE WHEN sampled_at IS NOT NULL THEN pg_catalog.format(CASE WHEN standby
        THEN 'walsizer has seen the primary write %s of WAL within checkpoint_timeout; after a promotion, a checkpoint is forced after %s.'
        ELSE 'walsizer has seen %s of WAL within the last checkpoint_timeout; a checkpoint is forced after %s.' END
        || ' The largest known demand is %s. With headroom, that much needs a max_wal_size of %s.',
        pg_size_pretty(demand), pg_size_pretty(trigger_point),
        pg_size_pretty(largest_demand), pg_size_pretty(wanted_size)) END,
    CASE WHEN sampled_at IS NOT NULL THEN pg_catalog.format(CASE WHEN standby
        THEN 'Restartpoints since %s: %s timed, %s forced by WAL volume, which is harmless on a standby, %s for other reasons.'
        ELSE 'Checkpoints since %s: %s timed, %s forced by WAL volume%5$s, %4$s for other reasons.' END,
        to_char(stats_reset, 'YYYY-MM-DD HH24:MI:SS'), checkpoints_timed,
        checkpoints_forced + checkpoints_forced_old_value, checkpoints_other,
        CASE WHEN checkpoints_forced_old_value > 0 THEN pg_catalog.format(
            ' (%s of them by statements that still used an older value)', checkpoints_forced_old_value) END) END,
    CASE WHEN checkpoints_disk_full > 0
        THEN pg_catalog.format('Checkpoints that walsizer requested because WAL was about to fill its file system: %s.', checkpoints_disk_full) END,
    CASE WHEN padding_percent > 0
        THEN pg_catalog.format('Of the WAL within checkpoint_timeout, %s %% is padding: segments were switched before they were full.', padding_percent) END,
    CASE WHEN NOT standby THEN
        CASE WHEN time_to_forced = interval '0'
            THEN 'WAL volume forces the next checkpoint when the present segment is full'
            WHEN time_to_forced < time_to_timed
            THEN 'At the present rate, WAL volume forces the next checkpoint in ' || time_to_forced::text
            ELSE 'The next timed checkpoint is due in ' || time_to_timed::text END
        || pg_catalog.format('. After a crash, recovery takes up to %s at %s/s (%s).',
            recovery_time_max, pg_size_pretty(replay_rate),
            replay_rate_source) END,

    E'\nmax_wal_size that each of the last hours needed (| is ' || size || ', in effect; '
        || CASE WHEN shown_limit IS NULL THEN 'the limit is far off, at ' ELSE '] the limit, ' END
        || pg_size_pretty(size_limit) || E'):\n' ||
    (SELECT string_agg(pg_catalog.format('  %s  %s %s', to_char(hour, 'YYYY-MM-DD HH24:MI'),
            overlay(CASE WHEN shown_limit IS NULL THEN bar
                ELSE overlay(bar PLACING ']' FROM limit_at + CASE limit_at WHEN size_at THEN 2 ELSE 1 END) END
                PLACING '|' FROM size_at + 1),
            pg_size_pretty(needed_size)), E'\n' ORDER BY hour)
       FROM hours
      CROSS JOIN LATERAL (SELECT rpad(repeat('#', (40 * needed_size / widest)::integer), 42) AS bar,
            (40 * max_wal_size / widest)::integer AS size_at,
            (40 * shown_limit / widest)::integer AS limit_at) AS marks),

    E'\n' || CASE WHEN EXISTS (SELECT FROM walsizer_history)
        THEN 'Last changes:' WHEN sampled_at IS NOT NULL THEN 'No changes are recorded.' END,
    (SELECT string_agg(pg_catalog.format('  %s  %s %s -> %s, %s%s', to_char(changed_at, 'YYYY-MM-DD HH24:MI:SS'),
            h.action, pg_size_pretty(old_size), pg_size_pretty(new_size), h.outcome,
            '; ' || forced_after::text || ' forced after it'), E'\n' ORDER BY id)
       FROM (SELECT * FROM walsizer_history ORDER BY id DESC LIMIT 5) AS h),

    E'\nThe limit is ' || pg_size_pretty(size_limit) || CASE size_limit
        WHEN disk_limit THEN ' (disk)' WHEN recovery_limit THEN ' (recovery)' ELSE ' (max)' END
        || '. Last decision: ' || action || ' (' || explanation || ').',
    (SELECT string_agg(pg_catalog.format(E'\nConsider %s = %s instead of %s: %s',
            setting, proposal, value, r.explanation), '' ORDER BY setting)
       FROM walsizer_related_settings AS r),
    (SELECT pg_catalog.format(E'\nSince checkpoint_timeout is %s instead of %s, a record takes %s %% less WAL; %s to %s %% were expected.',
            checkpoint_timeout, compared_with, round((100.0::double precision * wal_saved)::numeric),
            round((100.0::double precision * wal_saved_least)::numeric), round((100.0::double precision * wal_saved_most)::numeric))
       FROM walsizer_timeout_advice WHERE wal_saved IS NOT NULL)),
    '([^\n]{1,80})( +|\n|$)', E'\\1\n', 'g'), E'\n')
  FROM status CROSS JOIN stats CROSS JOIN scale;
END;

--
-- Functions that act ask the worker and return what it did.
--
CREATE FUNCTION walsizer_adjust(
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_adjust_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_revert(
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_revert_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_boost(
    size text,
    duration interval,
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_boost_1_0'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_boost_end(
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_boost_end_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_start(
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_start_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_stop(
    OUT action text,
    OUT old_size bigint,
    OUT new_size bigint,
    OUT limited_by text,
    OUT outcome text,
    OUT message text
)
RETURNS record
AS 'MODULE_PATHNAME', 'walsizer_stop_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_forget()
RETURNS void
AS 'MODULE_PATHNAME', 'walsizer_forget_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_reset_stats()
RETURNS void
AS 'MODULE_PATHNAME', 'walsizer_reset_stats_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

--
-- Monitoring roles may read.  Only superusers may act, and may grant that.
--
REVOKE ALL ON
    walsizer_status, walsizer_stats, walsizer_history, walsizer_demand,
    walsizer_advice, walsizer_timeout_advice, walsizer_instructions, walsizer_related_settings
FROM PUBLIC;
REVOKE ALL ON FUNCTION
    walsizer_get_status(), walsizer_get_stats(), walsizer_get_history(),
    walsizer_get_demand(), walsizer_get_advice(), walsizer_get_instructions(bigint),
    walsizer_get_timeout_advice(), walsizer_report(),
    walsizer_adjust(), walsizer_revert(), walsizer_boost(text, interval),
    walsizer_boost_end(), walsizer_start(), walsizer_stop(),
    walsizer_forget(), walsizer_reset_stats()
FROM PUBLIC;

GRANT SELECT ON
    walsizer_status, walsizer_stats, walsizer_history, walsizer_demand,
    walsizer_advice, walsizer_timeout_advice, walsizer_instructions, walsizer_related_settings
TO pg_monitor;
-- a view calls its function with the rights of the caller
GRANT EXECUTE ON FUNCTION
    walsizer_get_status(), walsizer_get_stats(), walsizer_get_history(),
    walsizer_get_demand(), walsizer_get_advice(), walsizer_get_instructions(bigint),
    walsizer_get_timeout_advice(), walsizer_report()
TO pg_monitor;

--
-- Descriptions
--
COMMENT ON FUNCTION walsizer_get_status() IS 'internal: read the view walsizer_status';
COMMENT ON FUNCTION walsizer_get_stats() IS 'internal: read the view walsizer_stats';
COMMENT ON FUNCTION walsizer_get_history() IS 'internal: read the view walsizer_history';
COMMENT ON FUNCTION walsizer_get_demand() IS 'internal: read the view walsizer_demand';
COMMENT ON FUNCTION walsizer_get_advice() IS 'internal: read the view walsizer_advice';
COMMENT ON FUNCTION walsizer_get_instructions(bigint) IS 'internal: read the view walsizer_instructions';
COMMENT ON FUNCTION walsizer_get_timeout_advice() IS 'internal: read the view walsizer_timeout_advice';
COMMENT ON FUNCTION walsizer_report() IS 'report on what walsizer knows and did, as one text';
COMMENT ON FUNCTION walsizer_adjust() IS 'apply all rules now, and change max_wal_size if they require it';
COMMENT ON FUNCTION walsizer_revert() IS 'restore the original value of max_wal_size';
COMMENT ON FUNCTION walsizer_boost(text, interval) IS 'raise max_wal_size now, for the duration of a planned load';
COMMENT ON FUNCTION walsizer_boost_end() IS 'end a planned load before its duration is over';
COMMENT ON FUNCTION walsizer_start() IS 'start the worker without a restart of the server';
COMMENT ON FUNCTION walsizer_stop() IS 'end the worker until walsizer_start(), or until the server starts again with walsizer preloaded';
COMMENT ON FUNCTION walsizer_forget() IS 'clear learned demand and history';
COMMENT ON FUNCTION walsizer_reset_stats() IS 'set the checkpoint counters in walsizer_stats to zero';

COMMENT ON VIEW walsizer_status IS 'what walsizer does, and its last decision; one row';
COMMENT ON COLUMN walsizer_status.state IS 'active, limited (a limit forbids wanted_size or boost_size, or any change), dry run, disabled, blocked (walsizer cannot change the setting) or not running';
COMMENT ON COLUMN walsizer_status.verdict IS 'whether the value in effect is large enough, or what else is wrong, and what to do';
COMMENT ON COLUMN walsizer_status.max_wal_size IS 'value in effect at the last sample, in bytes';
COMMENT ON COLUMN walsizer_status.wanted_size IS 'size that the largest known demand needs with headroom, regardless of limits, in bytes';
COMMENT ON COLUMN walsizer_status.limited_by IS 'limit that keeps the size below wanted_size or boost_size: max, disk or recovery; max, too, if an administrator''s value exceeds it; null if none does';
COMMENT ON COLUMN walsizer_status.original_size IS 'the administrator''s value: in effect before walsizer''s first change, or set by an administrator since, in bytes';
COMMENT ON COLUMN walsizer_status.set_by_walsizer IS 'value in effect at the last sample if walsizer set it, in bytes; null otherwise';
COMMENT ON COLUMN walsizer_status.role IS 'primary or standby';
COMMENT ON COLUMN walsizer_status.action IS 'decision at the last sample: none, raise, lower, external, revert or checkpoint';
COMMENT ON COLUMN walsizer_status.reason IS 'short code of the reason for that decision';
COMMENT ON COLUMN walsizer_status.explanation IS 'the reason as a sentence';
COMMENT ON COLUMN walsizer_status.outcome IS 'forbidden, overridden, refused or failed: outcome of the last attempt to change the setting, or of the next one if something prevents it; null otherwise';
COMMENT ON COLUMN walsizer_status.message IS 'what prevents the change; null if nothing does';
COMMENT ON COLUMN walsizer_status.boost_size IS 'size that the planned load in progress asks for, in bytes; null if there is none';
COMMENT ON COLUMN walsizer_status.boost_until IS 'end of the planned load; null if there is none';
COMMENT ON COLUMN walsizer_status.verdict_code IS 'short code of the verdict, for monitoring';
COMMENT ON COLUMN walsizer_status.pid IS 'process ID of the worker; null if it is not running';

COMMENT ON VIEW walsizer_stats IS 'what walsizer measured; one row, null before the first sample';
COMMENT ON COLUMN walsizer_stats.sampled_at IS 'time of the last sample';
COMMENT ON COLUMN walsizer_stats.demand IS 'WAL written within the last checkpoint_timeout, in bytes; on a standby, WAL that the primary wrote in that time or between two checkpoints';
COMMENT ON COLUMN walsizer_stats.largest_demand IS 'largest demand of the lookback and of the last checkpoint_timeout, in bytes';
COMMENT ON COLUMN walsizer_stats.wal_rate IS 'WAL written per second now, in bytes; on a standby, replayed';
COMMENT ON COLUMN walsizer_stats.wal_since_checkpoint IS 'WAL written since the last checkpoint began, in bytes; on a standby, replayed since the last restartpoint';
COMMENT ON COLUMN walsizer_stats.trigger_point IS 'WAL after which a checkpoint is forced, counted from the start of the segment in which the last checkpoint began, in bytes';
COMMENT ON COLUMN walsizer_stats.time_to_forced IS 'time until WAL volume forces a checkpoint at the present rate; null if no WAL is written';
COMMENT ON COLUMN walsizer_stats.time_to_timed IS 'time until the next timed checkpoint';
COMMENT ON COLUMN walsizer_stats.size_limit IS 'smallest of the limits, in bytes';
COMMENT ON COLUMN walsizer_stats.disk_limit IS 'limit by disk space, in bytes; null if not known';
COMMENT ON COLUMN walsizer_stats.recovery_limit IS 'limit by recovery time, in bytes; null if none is set';
COMMENT ON COLUMN walsizer_stats.recovery_time_max IS 'estimated recovery time after a crash at the worst moment, at least recovery_time_now';
COMMENT ON COLUMN walsizer_stats.recovery_time_now IS 'estimated recovery time after a crash now';
COMMENT ON COLUMN walsizer_stats.replay_rate IS 'WAL recovered per second at the worst moment, in bytes: max_wal_size divided by the time that its recovery takes';
COMMENT ON COLUMN walsizer_stats.replay_rate_source IS 'where replay_rate comes from: configured, measured or assumed';
COMMENT ON COLUMN walsizer_stats.wal_held_back IS 'WAL in pg_wal that slots, wal_keep_size or the archiver hold back, in bytes; max_wal_size does not limit it; null if not known';
COMMENT ON COLUMN walsizer_stats.padding_percent IS 'percentage of the WAL within checkpoint_timeout that is padding, because segments were switched before they were full; 0 if there is none, or if it is not known';
COMMENT ON COLUMN walsizer_stats.checkpoints_forced IS 'checkpoints that WAL volume forced at the value in effect; restartpoints on a standby';
COMMENT ON COLUMN walsizer_stats.checkpoints_forced_old_value IS 'checkpoints that WAL volume forced at a smaller, older value, because a statement still used it';
COMMENT ON COLUMN walsizer_stats.checkpoints_timed IS 'checkpoints that checkpoint_timeout triggered; restartpoints on a standby';
COMMENT ON COLUMN walsizer_stats.checkpoints_other IS 'checkpoints for other reasons, such as CHECKPOINT, backups and DDL; restartpoints on a standby';
COMMENT ON COLUMN walsizer_stats.checkpoints_disk_full IS 'checkpoints that walsizer requested because WAL was about to fill its file system';
COMMENT ON COLUMN walsizer_stats.num_requested IS 'the server''s own counter of requested checkpoints, which include forced ones; restartpoints on a standby';
COMMENT ON COLUMN walsizer_stats.num_timed IS 'the server''s own counter of timed checkpoints; restartpoints on a standby';
COMMENT ON COLUMN walsizer_stats.stats_reset IS 'time from which the five columns checkpoints_* count';

COMMENT ON VIEW walsizer_history IS 'adjustments of max_wal_size by walsizer, also failed ones and dry runs, and by administrators; oldest first';
COMMENT ON COLUMN walsizer_history.id IS 'number of the adjustment; walsizer_forget() does not reset it';
COMMENT ON COLUMN walsizer_history.changed_at IS 'time of the adjustment or of the attempt';
COMMENT ON COLUMN walsizer_history.action IS 'raise, lower, external (an administrator changed the setting), revert or checkpoint';
COMMENT ON COLUMN walsizer_history.reason IS 'short code of the reason';
COMMENT ON COLUMN walsizer_history.explanation IS 'the reason as a sentence';
COMMENT ON COLUMN walsizer_history.old_size IS 'value before, in bytes';
COMMENT ON COLUMN walsizer_history.wanted_size IS 'size that was wanted before limits, in bytes';
COMMENT ON COLUMN walsizer_history.new_size IS 'value that walsizer set or tried to set, or that an administrator set, in bytes';
COMMENT ON COLUMN walsizer_history.limited_by IS 'limit that kept new_size below wanted_size, or to which walsizer lowered: max, disk or recovery; null if none did';
COMMENT ON COLUMN walsizer_history.outcome IS 'applied, dry run, forbidden, overridden, refused or failed; none if there was nothing to apply';
COMMENT ON COLUMN walsizer_history.message IS 'what prevented the change, or when it took effect if not at once; null otherwise';
COMMENT ON COLUMN walsizer_history.demand IS 'demand at that time, in bytes';
COMMENT ON COLUMN walsizer_history.wal_rate IS 'WAL written per second at that time, in bytes';
COMMENT ON COLUMN walsizer_history.checkpoints_forced IS 'checkpoints that WAL volume forced within the checkpoint_timeout before, also at an older value';
COMMENT ON COLUMN walsizer_history.num_requested IS 'checkpoints that the server counted as requested within that checkpoint_timeout';
COMMENT ON COLUMN walsizer_history.num_timed IS 'checkpoints that the server counted as timed within that checkpoint_timeout';
COMMENT ON COLUMN walsizer_history.checkpoint_timeout IS 'value in effect at that time';
COMMENT ON COLUMN walsizer_history.checkpoint_completion_target IS 'value in effect at that time';
COMMENT ON COLUMN walsizer_history.role IS 'primary or standby';
COMMENT ON COLUMN walsizer_history.forced_after IS 'checkpoints that WAL volume forced within the first checkpoint_timeout after the adjustment, also at an older value; null if not known';

COMMENT ON VIEW walsizer_demand IS 'largest demand of each hour of the lookback, oldest first';
COMMENT ON COLUMN walsizer_demand.hour IS 'start of the hour';
COMMENT ON COLUMN walsizer_demand.demand IS 'most WAL written within one checkpoint_timeout, in bytes';
COMMENT ON COLUMN walsizer_demand.checkpoint_timeout IS 'value in effect when the demand was measured';
COMMENT ON COLUMN walsizer_demand.needed_size IS 'max_wal_size that this demand needs with the settings in effect and with headroom, regardless of limits, in bytes';

COMMENT ON VIEW walsizer_advice IS 'what other values of max_wal_size would mean, smallest first';
COMMENT ON COLUMN walsizer_advice.size IS 'candidate for max_wal_size, in bytes';
COMMENT ON COLUMN walsizer_advice.label IS 'in effect or wanted; null if neither';
COMMENT ON COLUMN walsizer_advice.trigger_point IS 'WAL after which a checkpoint is forced, in bytes';
COMMENT ON COLUMN walsizer_advice.checkpoint_every_now IS 'time between checkpoints at the present demand';
COMMENT ON COLUMN walsizer_advice.checkpoint_every_at_peak IS 'time between checkpoints at the largest known demand';
COMMENT ON COLUMN walsizer_advice.forced_fraction IS 'fraction of the remembered hours in which this size was too small, from 0 to 1';
COMMENT ON COLUMN walsizer_advice.recovery_time IS 'estimated recovery time after a crash at the worst moment';
COMMENT ON COLUMN walsizer_advice.limited_by IS 'limit that forbids this size: max, disk or recovery; null if it is allowed';

COMMENT ON VIEW walsizer_timeout_advice IS 'what other values of checkpoint_timeout would mean for the same load, shortest first';
COMMENT ON COLUMN walsizer_timeout_advice.checkpoint_timeout IS 'candidate for checkpoint_timeout, or the value in effect';
COMMENT ON COLUMN walsizer_timeout_advice.label IS 'in effect; null if it is not';
COMMENT ON COLUMN walsizer_timeout_advice.wal_saved_least IS 'part of the WAL that would be saved at least, 0 to 1; negative if more would be written; for the value in effect, as said before it was set';
COMMENT ON COLUMN walsizer_timeout_advice.wal_saved_most IS 'part of the WAL that would be saved at most; otherwise as wal_saved_least; both null if not known';
COMMENT ON COLUMN walsizer_timeout_advice.wal_saved IS 'part of the WAL that is saved for each record since the value in effect was set; null if not known, and for other values';
COMMENT ON COLUMN walsizer_timeout_advice.compared_with IS 'value before the one in effect, if it was said what the change would save; null otherwise';
COMMENT ON COLUMN walsizer_timeout_advice.needed_size IS 'max_wal_size that is needed with headroom if as little as possible is saved, regardless of limits, in bytes; null if not known';
COMMENT ON COLUMN walsizer_timeout_advice.recovery_time IS 'estimated recovery time after a crash at the worst moment, with that size; null if not known';
COMMENT ON COLUMN walsizer_timeout_advice.limited_by IS 'limit that forbids that size: max, disk or recovery; null if it is allowed';
COMMENT ON COLUMN walsizer_timeout_advice.basis IS 'measured, bounds (of what is possible), or cannot tell with the reason';

COMMENT ON VIEW walsizer_instructions IS 'how to set the wanted or planned size by hand, where that has an effect, within the limits and not below the value in effect';
COMMENT ON COLUMN walsizer_instructions.place IS 'where the setting is managed';
COMMENT ON COLUMN walsizer_instructions.instruction IS 'what to write or run there';

COMMENT ON VIEW walsizer_related_settings IS 'other settings that limit what max_wal_size can do; no rows if there is nothing to propose';
COMMENT ON COLUMN walsizer_related_settings.setting IS 'name of the setting';
COMMENT ON COLUMN walsizer_related_settings.value IS 'value in effect';
COMMENT ON COLUMN walsizer_related_settings.proposal IS 'value to consider';
COMMENT ON COLUMN walsizer_related_settings.explanation IS 'reason for the proposal';
