--
-- The interface of walsizer: objects, privileges, settings, answers.
--
-- The library is preloaded (test/regress.conf).  What it does to a server
-- under load is tested in t/.  Nothing here may print what differs between
-- versions of the server, so no \d and no texts of the server's own errors.
--
CREATE EXTENSION walsizer;

SELECT extversion, extrelocatable FROM pg_extension WHERE extname = 'walsizer';
SELECT obj_description(oid, 'pg_extension') AS comment
  FROM pg_extension WHERE extname = 'walsizer';

-- objects
SELECT p.proname AS function, pg_get_function_result(p.oid) AS result,
       p.proretset AS set, p.proisstrict AS strict, p.provolatile AS volatile,
       p.proparallel AS parallel, p.prosecdef AS secdef
  FROM pg_proc p
  JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
  JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
 WHERE e.extname = 'walsizer' AND d.deptype = 'e'
 ORDER BY p.proname COLLATE "C";

SELECT c.relname AS view, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type
  FROM pg_class c
  JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass
  JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 WHERE e.extname = 'walsizer' AND d.deptype = 'e'
 ORDER BY c.relname COLLATE "C", a.attnum;

-- members of the extension without a comment, and those of no known kind
-- (from 19 on the row types of views are members)
SELECT pg_describe_object(classid, objid, 0) AS undescribed
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'walsizer')
   AND deptype = 'e' AND classid <> 'pg_type'::regclass
   AND obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)) IS NULL
 ORDER BY 1;
SELECT DISTINCT classid::regclass::text AS kinds
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'walsizer')
   AND deptype = 'e' AND classid <> 'pg_type'::regclass
 ORDER BY 1;

-- settings
SELECT name, unit, vartype AS type, min_val AS min, max_val AS max,
       boot_val AS default, context
  FROM pg_settings WHERE name LIKE 'walsizer.%'
 ORDER BY name COLLATE "C";
-- each is described by one sentence
SELECT name, short_desc FROM pg_settings
 WHERE name LIKE 'walsizer.%' AND short_desc !~ '^[A-Z].*\.$';

-- Bounds: just outside each is an error, the bound itself is not.  The file is
-- only written, never reloaded; the last command empties it.
\set VERBOSITY sqlstate
ALTER SYSTEM SET walsizer.enable = 'perhaps';
ALTER SYSTEM SET walsizer.max = '1MB';
ALTER SYSTEM SET walsizer.max = '2MB';
ALTER SYSTEM SET walsizer.threshold = 0;
ALTER SYSTEM SET walsizer.threshold = 1;
ALTER SYSTEM SET walsizer.threshold = 1000;
ALTER SYSTEM SET walsizer.threshold = 1001;
ALTER SYSTEM SET walsizer.sample_interval = '99ms';
ALTER SYSTEM SET walsizer.sample_interval = '100ms';
ALTER SYSTEM SET walsizer.sample_interval = '1min';
ALTER SYSTEM SET walsizer.sample_interval = '60001ms';
ALTER SYSTEM SET walsizer.headroom = 0.99;
ALTER SYSTEM SET walsizer.headroom = 1;
ALTER SYSTEM SET walsizer.headroom = 4;
ALTER SYSTEM SET walsizer.headroom = 4.01;
ALTER SYSTEM SET walsizer.headroom = 'NaN';
ALTER SYSTEM RESET ALL;

-- They are the server's, not a session's, and there are no others.
SET walsizer.enable = off;
SET walsizer.max = '2GB';
SET walsizer.nonsense = 1;
SELECT set_config('walsizer.nonsense', '1', false);
\set VERBOSITY default

-- The worker is started when the server is up; give it the time.
DO $$
BEGIN
    FOR i IN 1..1800 LOOP
        EXIT WHEN (SELECT worker_pid IS NOT NULL AND sampled_at IS NOT NULL FROM walsizer_status);
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;

SELECT backend_type, datid, backend_xmin FROM pg_stat_activity
 WHERE pid = (SELECT worker_pid FROM walsizer_status);

-- This server is idle, at the default of 1GB: nothing is wrong with it.
SELECT state, role, pg_size_pretty(max_wal_size) AS max_wal_size,
       pg_size_pretty(found_size) AS found_size, own_size, limited_by,
       capacity, checkpoints_forced, last_decision,
       trouble, trouble_message, trouble_since
  FROM walsizer_status;
SELECT wanted_size < max_wal_size AS wants_less, size_limit = least(16 * 1024::bigint ^ 3, disk_limit) AS limited_by_default,
       demand >= 0 AS demand, learned_demand >= 0 AS learned_demand, wal_rate >= 0 AS wal_rate,
       wal_since_redo >= 0 AS wal_since_redo, time_to_timed BETWEEN '0' AND '5min' AS time_to_timed,
       counting_since <= now() AS counting_since, last_reason IS NOT NULL AS last_reason,
       sampled_at > now() - interval '1min' AS sampled_at
  FROM walsizer_status;
SELECT walsizer_evaluate();
SELECT count(*) FROM walsizer_history;
SELECT count(*) >= 0 AS some FROM walsizer_demand;
SELECT pg_size_pretty(walsizer_revert());
SELECT walsizer_reset();
SELECT count(*) FROM walsizer_history;

-- privileges: nobody but monitors may look, nobody but superusers may touch
CREATE ROLE regress_walsizer_nobody;
CREATE ROLE regress_walsizer_monitor IN ROLE pg_monitor;
CREATE ROLE regress_walsizer_operator IN ROLE pg_monitor;

SELECT p.proname AS function,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public,
       has_function_privilege('regress_walsizer_nobody', p.oid, 'EXECUTE') AS nobody,
       has_function_privilege('regress_walsizer_monitor', p.oid, 'EXECUTE') AS monitor
  FROM pg_proc p WHERE p.proname LIKE 'walsizer%'
 ORDER BY p.proname COLLATE "C";
SELECT c.relname AS view,
       has_table_privilege('public', c.oid, 'SELECT') AS public,
       has_table_privilege('regress_walsizer_nobody', c.oid, 'SELECT') AS nobody,
       has_table_privilege('regress_walsizer_monitor', c.oid, 'SELECT') AS monitor,
       has_table_privilege('regress_walsizer_monitor', c.oid,
                           'INSERT, UPDATE, DELETE, TRUNCATE') AS monitor_writes
  FROM pg_class c WHERE c.relname LIKE 'walsizer%'
 ORDER BY c.relname COLLATE "C";

\set VERBOSITY terse
SET ROLE regress_walsizer_nobody;
SELECT count(*) FROM walsizer_status;
SELECT count(*) FROM walsizer_history;
SELECT count(*) FROM walsizer_demand;
SELECT count(*) FROM walsizer_status();
SELECT count(*) FROM walsizer_history();
SELECT count(*) FROM walsizer_demand();
SELECT walsizer_evaluate();
SELECT walsizer_revert();
SELECT walsizer_reset();

SET ROLE regress_walsizer_monitor;
SELECT count(*) FROM walsizer_status;
SELECT count(*) FROM walsizer_history;
SELECT count(*) > 0 AS some FROM walsizer_status();
SELECT count(*) FROM walsizer_history();
SELECT count(*) >= 0 AS some FROM walsizer_demand;
SELECT walsizer_evaluate();
SELECT walsizer_revert();
SELECT walsizer_reset();

RESET ROLE;
GRANT EXECUTE ON FUNCTION walsizer_evaluate(), walsizer_revert(), walsizer_reset()
   TO regress_walsizer_operator;
SET ROLE regress_walsizer_operator;
SELECT walsizer_evaluate() LIKE 'none: %' AS evaluated;
SELECT walsizer_revert() = pg_size_bytes(current_setting('max_wal_size')) AS reverted;
SELECT walsizer_reset();
RESET ROLE;
\set VERBOSITY default

REVOKE ALL ON FUNCTION walsizer_evaluate(), walsizer_revert(), walsizer_reset()
  FROM regress_walsizer_operator;
DROP ROLE regress_walsizer_nobody, regress_walsizer_monitor, regress_walsizer_operator;

-- It may live in any schema, and moves.
CREATE SCHEMA here;
CREATE SCHEMA there;
ALTER EXTENSION walsizer SET SCHEMA here;
SELECT state FROM here.walsizer_status;
DROP EXTENSION walsizer;
CREATE EXTENSION walsizer SCHEMA there;
SELECT state FROM there.walsizer_status;
SELECT count(*) FROM there.walsizer_history;
DROP EXTENSION walsizer;
DROP SCHEMA here, there;

-- Nothing is left behind.
SELECT count(*) FROM pg_proc WHERE proname LIKE 'walsizer%';
SELECT count(*) FROM pg_class WHERE relname LIKE 'walsizer%';
