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

-- what belongs to the extension (from 19 on the row types of views are members)
CREATE TEMPORARY VIEW members AS
SELECT classid, objid
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'walsizer')
   AND deptype = 'e' AND classid <> 'pg_type'::regclass;
SELECT classid::regclass::text AS kind, count(*) FROM members GROUP BY 1 ORDER BY 1;

-- functions
SELECT p.proname AS function, l.lanname AS language, p.prosrc AS symbol,
       p.proretset AS set, p.proisstrict AS strict, p.provolatile AS volatile,
       p.proparallel AS parallel, p.prosecdef AS secdef
  FROM members JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
  JOIN pg_language l ON l.oid = p.prolang
 ORDER BY p.proname COLLATE "C";
SELECT p.proname AS function, n AS number, name, format_type(type, NULL) AS type
  FROM members JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
 CROSS JOIN unnest(p.proargnames, p.proallargtypes) WITH ORDINALITY AS o (name, type, n)
 WHERE p.proname !~ '_get_'
 ORDER BY p.proname COLLATE "C", n;
SELECT p.proname AS function, obj_description(p.oid, 'pg_proc') AS comment
  FROM members JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
 ORDER BY p.proname COLLATE "C";

-- views
SELECT c.relname AS view, obj_description(c.oid, 'pg_class') AS comment
  FROM members JOIN pg_class c ON objid = c.oid AND classid = 'pg_class'::regclass
 ORDER BY c.relname COLLATE "C";
SELECT c.relname AS view, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type,
       col_description(c.oid, a.attnum) AS comment
  FROM members JOIN pg_class c ON objid = c.oid AND classid = 'pg_class'::regclass
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 ORDER BY c.relname COLLATE "C", a.attnum;

-- members and columns without a comment: none
SELECT pg_describe_object(classid, objid, 0) AS undescribed
  FROM members
 WHERE obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)) IS NULL
UNION ALL
SELECT pg_describe_object(classid, objid, attnum)
  FROM members JOIN pg_attribute ON attrelid = objid AND attnum > 0
 WHERE classid = 'pg_class'::regclass AND col_description(objid, attnum) IS NULL
 ORDER BY 1;
-- and so it would be noticed
COMMENT ON COLUMN walsizer_status.pid IS NULL;
SELECT pg_describe_object(classid, objid, attnum) AS undescribed
  FROM members JOIN pg_attribute ON attrelid = objid AND attnum > 0
 WHERE classid = 'pg_class'::regclass AND col_description(objid, attnum) IS NULL;

-- settings
SELECT name, unit, vartype AS type, min_val AS min, max_val AS max,
       boot_val AS default, context
  FROM pg_settings WHERE name LIKE 'walsizer.%'
 ORDER BY name COLLATE "C";
-- each is described by one sentence, and then by more
SELECT name, short_desc, extra_desc FROM pg_settings
 WHERE name LIKE 'walsizer.%'
   AND (short_desc !~ '^[A-Z].*\.$' OR extra_desc !~ '^[A-Z].*\.$') IS NOT FALSE;

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
        EXIT WHEN (SELECT pid IS NOT NULL AND sampled_at IS NOT NULL
                     FROM walsizer_status, walsizer_stats);
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;

SELECT backend_type, datid, backend_xmin FROM pg_stat_activity
 WHERE pid = (SELECT pid FROM walsizer_status);

-- This server is idle, at the default of 1GB: nothing is wrong with it.
SELECT state, role, pg_size_pretty(max_wal_size) AS max_wal_size,
       pg_size_pretty(original_size) AS original_size, set_by_walsizer,
       wanted_size < max_wal_size AS wants_less, limited_by, action,
       outcome, message, boost_size, boost_until
  FROM walsizer_status;
SELECT verdict_code, verdict FROM walsizer_status;
SELECT reason IN ('started', 'sufficient') AS reason, explanation <> '' AS explanation
  FROM walsizer_status;
SELECT trigger_point, recovery_limit, replay_rate > 0 AS replay_rate, replay_rate_source,
       size_limit = least(16 * 1024::bigint ^ 3, disk_limit) AS size_limit,
       recovery_time_max >= recovery_time_now AS recovery_time
  FROM walsizer_stats;
SELECT checkpoints_forced, checkpoints_forced_old_value,
       checkpoints_timed >= 0 AS timed, checkpoints_other >= 0 AS other,
       num_requested >= 0 AS num_requested, num_timed >= 0 AS num_timed,
       stats_reset <= now() AS stats_reset
  FROM walsizer_stats;
SELECT demand >= 0 AS demand, largest_demand >= demand AS largest_demand, wal_rate >= 0 AS wal_rate,
       wal_since_checkpoint >= 0 AS since, wal_held_back >= 0 AS held_back,
       padding_percent BETWEEN 0 AND 100 AS padding,
       time_to_timed BETWEEN '0' AND '5min' AS time_to_timed,
       sampled_at > now() - interval '1min' AS sampled_at
  FROM walsizer_stats;
SELECT count(*) >= 0 AS some FROM walsizer_demand;
SELECT pg_size_pretty(size) AS size, limited_by FROM walsizer_advice WHERE label = 'in effect';
SELECT place, instruction FROM walsizer_instructions;
SELECT setting, value, proposal FROM walsizer_related_settings WHERE setting NOT IN ('wal_compression', 'wal_writer_delay');
SELECT count(*) FROM walsizer_history;

-- What acts has nothing to do.
SELECT action, pg_size_pretty(old_size) AS old_size, pg_size_pretty(new_size) AS new_size,
       limited_by, outcome, message
  FROM walsizer_adjust();
SELECT * FROM walsizer_revert();
SELECT action, old_size = new_size AS same, outcome FROM walsizer_boost('64MB', '1 hour');
SELECT pg_size_pretty(boost_size) AS boost_size, boost_until > now() AS boost_until FROM walsizer_status;
SELECT action, old_size = new_size AS same, outcome FROM walsizer_boost_end();
SELECT boost_size, boost_until FROM walsizer_status;
SELECT walsizer_forget();
SELECT count(*) FROM walsizer_history;

-- CHECKPOINT is counted until the counters are set to zero; the server's own
-- counters stay.
CREATE TEMPORARY TABLE before AS SELECT * FROM walsizer_stats;
CHECKPOINT;
DO $$
BEGIN
    FOR i IN 1..1800 LOOP
        EXIT WHEN (SELECT s.checkpoints_other > b.checkpoints_other
                     FROM walsizer_stats s, before b);
        PERFORM pg_sleep(0.1);
    END LOOP;
END
$$;
SELECT s.checkpoints_other > b.checkpoints_other AS counted FROM walsizer_stats s, before b;
SELECT walsizer_reset_stats();
SELECT s.checkpoints_forced, s.checkpoints_forced_old_value, s.checkpoints_timed,
       s.checkpoints_other, s.stats_reset > b.stats_reset AS stats_reset,
       s.num_requested >= b.num_requested AS num_requested
  FROM walsizer_stats s, before b;

-- arguments
SELECT walsizer_boost('1MB', '1 hour');
\set VERBOSITY sqlstate
SELECT walsizer_boost('1MB', '1 hour');
SELECT walsizer_boost('64MB', '40 days');
\set VERBOSITY terse
SELECT walsizer_boost('much', '1 hour');
SELECT walsizer_boost('64MB', '0');
SELECT walsizer_boost('64MB', '40 days');
SELECT walsizer_boost(NULL, '1 hour');
\set VERBOSITY default

-- The page names the state, gives the verdict, and fits into 80 columns.
SELECT split_part(walsizer_report(), E'\n', 1) AS heading;
SELECT position((SELECT verdict FROM walsizer_status) IN
                replace(walsizer_report(), E'\n', ' ')) = length('walsizer on this primary: active') + 2 AS verdict;
SELECT line FROM regexp_split_to_table(walsizer_report(), E'\n') AS line WHERE length(line) > 80;

-- privileges: nobody but monitors may look, nobody but superusers may act
SELECT p.proname AS function, r.rolname AS grantee, a.privilege_type AS privilege
  FROM members JOIN pg_proc p ON objid = p.oid AND classid = 'pg_proc'::regclass
 CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE a.grantee <> p.proowner
 ORDER BY p.proname COLLATE "C", r.rolname;
SELECT c.relname AS view, r.rolname AS grantee, a.privilege_type AS privilege
  FROM members JOIN pg_class c ON objid = c.oid AND classid = 'pg_class'::regclass
 CROSS JOIN aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE a.grantee <> c.relowner
 ORDER BY c.relname COLLATE "C", r.rolname;

CREATE ROLE regress_walsizer_nobody;
CREATE ROLE regress_walsizer_monitor IN ROLE pg_monitor;
CREATE ROLE regress_walsizer_operator;

\set VERBOSITY terse
SET ROLE regress_walsizer_nobody;
SELECT count(*) FROM walsizer_status;
SELECT count(*) FROM walsizer_stats;
SELECT count(*) FROM walsizer_history;
SELECT count(*) FROM walsizer_demand;
SELECT count(*) FROM walsizer_advice;
SELECT count(*) FROM walsizer_timeout_advice;
SELECT count(*) FROM walsizer_instructions;
SELECT count(*) FROM walsizer_related_settings;
SELECT count(*) FROM walsizer_get_status();
SELECT count(*) FROM walsizer_get_stats();
SELECT count(*) FROM walsizer_get_history();
SELECT count(*) FROM walsizer_get_demand();
SELECT count(*) FROM walsizer_get_advice();
SELECT count(*) FROM walsizer_get_timeout_advice();
SELECT walsizer_report();
SELECT walsizer_adjust();
SELECT walsizer_revert();
SELECT walsizer_boost('64MB', '1 hour');
SELECT walsizer_boost_end();
SELECT walsizer_start();
SELECT walsizer_stop();
SELECT walsizer_forget();
SELECT walsizer_reset_stats();

SET ROLE regress_walsizer_monitor;
SELECT count(*) FROM walsizer_status;
SELECT count(*) FROM walsizer_stats;
SELECT count(*) FROM walsizer_history;
SELECT count(*) >= 0 AS some FROM walsizer_demand;
SELECT count(*) > 0 AS some FROM walsizer_advice;
SELECT basis FROM walsizer_timeout_advice WHERE label = 'in effect';
SELECT count(*) FROM walsizer_instructions;
SELECT count(*) >= 0 AS some FROM walsizer_related_settings;
SELECT walsizer_report() LIKE 'walsizer on this primary: active%' AS report;
SELECT walsizer_adjust();
SELECT walsizer_revert();
SELECT walsizer_boost('64MB', '1 hour');
SELECT walsizer_boost_end();
SELECT walsizer_start();
SELECT walsizer_stop();
SELECT walsizer_forget();
SELECT walsizer_reset_stats();

RESET ROLE;
GRANT EXECUTE ON FUNCTION walsizer_adjust(), walsizer_revert(), walsizer_boost(text, interval),
      walsizer_boost_end(), walsizer_start(), walsizer_stop(), walsizer_forget(),
      walsizer_reset_stats()
   TO regress_walsizer_operator;
SET ROLE regress_walsizer_operator;
SELECT action, outcome FROM walsizer_adjust();
SELECT action, outcome FROM walsizer_revert();
SELECT action, outcome FROM walsizer_boost('64MB', '1 hour');
SELECT action, outcome FROM walsizer_boost_end();
SELECT message FROM walsizer_start();
SELECT action, outcome, message FROM walsizer_stop();
SELECT action, outcome, message FROM walsizer_start();
SELECT walsizer_forget();
SELECT walsizer_reset_stats();
SELECT count(*) FROM walsizer_status;
RESET ROLE;
\set VERBOSITY default

REVOKE ALL ON FUNCTION walsizer_adjust(), walsizer_revert(), walsizer_boost(text, interval),
       walsizer_boost_end(), walsizer_start(), walsizer_stop(), walsizer_forget(),
       walsizer_reset_stats()
  FROM regress_walsizer_operator;
DROP ROLE regress_walsizer_nobody, regress_walsizer_monitor, regress_walsizer_operator;

-- It may live in any schema, and moves; what refers to its own objects still does.
CREATE SCHEMA here;
CREATE SCHEMA there;
ALTER EXTENSION walsizer SET SCHEMA here;
SELECT state FROM here.walsizer_status;
SELECT count(*) FROM here.walsizer_instructions;
SELECT split_part(here.walsizer_report(), E'\n', 1) AS heading;
DROP EXTENSION walsizer;
CREATE EXTENSION walsizer SCHEMA there;
SELECT state FROM there.walsizer_status;
SELECT count(*) FROM there.walsizer_history;
DROP EXTENSION walsizer;
DROP SCHEMA here, there;

-- Nothing is left behind.
SELECT count(*) FROM pg_proc WHERE proname LIKE 'walsizer%';
SELECT count(*) FROM pg_class WHERE relname LIKE 'walsizer%';
