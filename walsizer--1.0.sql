/* walsizer--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION walsizer" to load this file. \quit

-- Sizes are bytes, rates bytes per second.

CREATE FUNCTION walsizer_status(
    OUT state text,
    OUT role text,
    OUT max_wal_size bigint,
    OUT found_size bigint,
    OUT own_size bigint,
    OUT wanted_size bigint,
    OUT size_limit bigint,
    OUT limited_by text,
    OUT disk_limit bigint,
    OUT recovery_limit bigint,
    OUT demand bigint,
    OUT learned_demand bigint,
    OUT wal_rate bigint,
    OUT wal_since_redo bigint,
    OUT capacity bigint,
    OUT time_to_forced interval,
    OUT time_to_timed interval,
    OUT checkpoints_forced bigint,
    OUT checkpoints_stale bigint,
    OUT checkpoints_timed bigint,
    OUT checkpoints_other bigint,
    OUT counting_since timestamptz,
    OUT recovery_time_worst interval,
    OUT recovery_time_now interval,
    OUT replay_rate bigint,
    OUT replay_rate_source text,
    OUT last_decision text,
    OUT last_reason text,
    OUT sampled_at timestamptz,
    OUT remark text,
    OUT trouble text,
    OUT trouble_message text,
    OUT trouble_since timestamptz,
    OUT boost_size bigint,
    OUT boost_until timestamptz,
    OUT worker_pid integer
)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_history(
    OUT number bigint,
    OUT at timestamptz,
    OUT action text,
    OUT reason text,
    OUT old_size bigint,
    OUT wanted_size bigint,
    OUT new_size bigint,
    OUT bound text,
    OUT outcome text,
    OUT message text,
    OUT demand bigint,
    OUT wal_rate bigint,
    OUT forced bigint,
    OUT requested bigint,
    OUT checkpoint_timeout interval,
    OUT checkpoint_completion_target double precision,
    OUT role text,
    OUT forced_after bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_demand(
    OUT hour timestamptz,
    OUT demand bigint,
    OUT checkpoint_timeout interval,
    OUT size bigint
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_instructions(
    OUT place text,
    OUT instruction text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_advice(
    OUT size bigint,
    OUT remark text,
    OUT capacity bigint,
    OUT spacing_now interval,
    OUT spacing_peak interval,
    OUT forced_hours double precision,
    OUT disk_needed bigint,
    OUT recovery_time interval,
    OUT allowed boolean,
    OUT forbidden_by text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_companions(
    OUT setting text,
    OUT value text,
    OUT proposal text,
    OUT reason text
)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION walsizer_report()
RETURNS SETOF text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW walsizer_status AS SELECT * FROM walsizer_status();
CREATE VIEW walsizer_history AS SELECT * FROM walsizer_history();
CREATE VIEW walsizer_demand AS SELECT * FROM walsizer_demand();
CREATE VIEW walsizer_advice AS SELECT * FROM walsizer_advice();

CREATE FUNCTION walsizer_evaluate()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_revert()
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_boost(size text, duration interval)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION walsizer_boost_end()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION walsizer_status() IS 'state of walsizer, one row';
COMMENT ON FUNCTION walsizer_history() IS 'adjustments of max_wal_size, oldest first';
COMMENT ON FUNCTION walsizer_demand() IS 'hourly peaks of WAL per checkpoint_timeout';
COMMENT ON FUNCTION walsizer_advice() IS 'what other values of max_wal_size would mean';
COMMENT ON FUNCTION walsizer_companions() IS 'other settings worth a change';
COMMENT ON FUNCTION walsizer_instructions() IS 'how to set the wanted size by hand';
COMMENT ON FUNCTION walsizer_report() IS 'a page on the state of walsizer to read';
COMMENT ON FUNCTION walsizer_evaluate() IS 'apply all rules now';
COMMENT ON FUNCTION walsizer_revert() IS 'give back the value that walsizer found';
COMMENT ON FUNCTION walsizer_reset() IS 'forget history and learned demand';
COMMENT ON FUNCTION walsizer_boost(text, interval) IS 'raise now, for a while, for a planned load';
COMMENT ON FUNCTION walsizer_boost_end() IS 'end a planned load before its time';
COMMENT ON VIEW walsizer_status IS 'state of walsizer, one row';
COMMENT ON VIEW walsizer_history IS 'adjustments of max_wal_size, oldest first';
COMMENT ON VIEW walsizer_demand IS 'hourly peaks of WAL per checkpoint_timeout';
COMMENT ON VIEW walsizer_advice IS 'what other values of max_wal_size would mean';

-- Reading is for monitoring, changing for superusers, who may grant it.
REVOKE ALL ON FUNCTION walsizer_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_history() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_demand() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_instructions() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_advice() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_companions() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_report() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_evaluate() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_revert() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_reset() FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_boost(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION walsizer_boost_end() FROM PUBLIC;

GRANT EXECUTE ON FUNCTION walsizer_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_history() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_demand() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_instructions() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_advice() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_companions() TO pg_monitor;
GRANT EXECUTE ON FUNCTION walsizer_report() TO pg_monitor;
GRANT SELECT ON walsizer_status, walsizer_history, walsizer_demand, walsizer_advice
    TO pg_monitor;
