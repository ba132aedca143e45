
# What the functions that act answer, what the states say, what is forgotten and
# what is only counted anew, and which of two settings takes precedence.
#
# 003_apply.pl has the outcomes, 004_owner.pl walsizer_revert(), 012_planned.pl
# walsizer_boost().

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

# Cycles of five minutes: nothing happens but what is asked for.
my $conf = "walsizer.predict = off\ncheckpoint_timeout = 5min\n";
my @counters = qw(checkpoints_forced checkpoints_forced_old_value checkpoints_timed checkpoints_other);
my ($node, $row, $status, $before, $pid, $stderr);

sub is_row
{
	my ($row, $what, %expected) = @_;

	is($row->{$_}, $expected{$_}, "$what: $_ is " . ($expected{$_} // 'null'))
	  foreach sort keys %expected;
	return;
}

sub peak
{
	return $node->safe_psql('postgres', 'SELECT max(demand) FROM walsizer_demand');
}

# ---- functions that act return one row

$node = make_node('rows', conf => $conf . "walsizer.dry_run = on\n");
force_checkpoints($node, 8);
$row = act_row($node, 'walsizer_adjust()');
is_row($row, 'dry run', action => 'raise', old_mb => 4, limited_by => undef,
	outcome => 'dry run', message => undef);
cmp_ok($row->{new_mb}, '>', 4, 'dry run: new_size exceeds the value in effect');
is(setting_mb($node), 4, 'dry run: max_wal_size stays');

set_conf($node, 'walsizer.dry_run = off');
$row = act_row($node, 'walsizer_adjust()');
is_row($row, 'raise', action => 'raise', old_mb => 4, limited_by => undef,
	outcome => 'applied', message => undef);
is(setting_mb($node), $row->{new_mb}, 'raise: new_size is in effect');
is(last_event($node)->{new_size}, $row->{new_size}, 'raise: the history has new_size');

my $raised = $row->{new_mb};
$row = act_row($node, 'walsizer_adjust()');
is_row($row, 'nothing to do', action => 'none', old_mb => $raised, new_mb => $raised,
	limited_by => undef, outcome => 'none', message => 'the value in effect suffices');
$status = status($node);
is_row($status, 'status', action => 'none', reason => 'sufficient',
	explanation => 'the value in effect suffices', outcome => undef, message => undef);
is_row(act_row($node, 'walsizer_boost_end()'), 'no planned load to end', action => 'none',
	old_mb => $raised, new_mb => $raised, limited_by => undef, outcome => 'none');

# ---- walsizer_reset_stats(): counters begin at zero, and nothing else changes

# The first one may end an interval in which WAL volume would have forced one.
for (1 .. 2)
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for_sample($node);
}
wait_for($node, 'checkpoints_forced > 0 AND checkpoints_other > 0');
$before = status($node);
my $peak = peak();
is($node->safe_psql('postgres', 'SELECT walsizer_reset_stats()'), '',
	'reset_stats: the function returns nothing');
$status = status($node);
is($status->{$_}, 0, "reset_stats: $_ is 0") foreach @counters;
is($node->safe_psql('postgres',
		"SELECT stats_reset > '$before->{stats_reset}' AND stats_reset <= now() FROM walsizer_stats"),
	't', 'reset_stats: stats_reset is the time of the call');
is($status->{$_}, $before->{$_}, "reset_stats: $_ stays")
  foreach qw(max_wal_size set_by_walsizer original_size);
# these can only grow, unless they were reset
cmp_ok($status->{$_}, '>=', $before->{$_}, "reset_stats: $_ stays") foreach qw(wanted_size num_requested num_timed);
# the server writes a little WAL all the time
cmp_ok(abs($status->{demand} - $before->{demand}), '<', 0.1 * MB, 'reset_stats: demand stays');
cmp_ok(abs(peak() - $peak), '<', 0.1 * MB, 'reset_stats: walsizer_demand stays');
is(scalar(history($node)), 2, 'reset_stats: the history stays');
is(adjust($node), 'none: the value in effect suffices', 'reset_stats: the value in effect still suffices');

# They count again, and the worker's end ends neither them nor stats_reset.
force_one_checkpoint($node);
$before = status($node);
is($before->{checkpoints_forced}, 1, 'reset_stats: forced checkpoints count again');
cmp_ok($before->{checkpoints_other}, '>=', 2, 'reset_stats: other checkpoints count again');
$pid = pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_for_worker($node, $pid);
$status = status($node);
is($status->{$_}, $before->{$_}, "reset_stats: $_ survives the end of the worker")
  foreach @counters, 'stats_reset';
$node->stop;

# What walsizer decides by is none of these counters.
$node = make_node('threshold', conf => $conf . "walsizer.threshold = 2\n");
force_one_checkpoint($node);
$node->safe_psql('postgres', 'SELECT walsizer_reset_stats()');
force_one_checkpoint($node);
is(status($node)->{checkpoints_forced}, 1,
	'threshold: one checkpoint has been forced since walsizer_reset_stats()');
like(adjust($node), qr/^raise .*: applied$/, 'threshold: walsizer counts the two in the window');

# ---- walsizer_forget(): demand and history go, counters and value stay

$node->stop;
remember_peaks($node, 20, 30);
$node->start;
wait_for($node, 'largest_demand = 30 * 1048576');
force_one_checkpoint($node);
$before = status($node);
cmp_ok($before->{wanted_size}, '>=', size_for_mb(30 * MB, 1, 0.9) * MB,
	'forget: remembered demand counts before the call');
my $mb = setting_mb($node);
like($before->{verdict}, qr/^"max_wal_size" of $mb MB is too small: (?:at most )?\d+ MB are needed\. walsizer raises it when a load needs it; for a larger size now, call walsizer_boost\(\)\.$/,
	'forget: the verdict says before the call that the value is too small');
is(scalar(history($node)), 1, 'forget: the history has an event before the call');
is($node->safe_psql('postgres', 'SELECT walsizer_forget()'), '', 'forget: the function returns nothing');
wait_for_sample($node);
$status = status($node);
is($status->{$_}, $before->{$_}, "forget: $_ stays")
  foreach @counters, qw(stats_reset max_wal_size set_by_walsizer original_size);
cmp_ok($status->{demand}, '<', MB, 'forget: demand is only what is written since');
is($status->{largest_demand}, $status->{demand}, 'forget: no remembered demand counts');
cmp_ok($status->{wanted_size}, '<', $before->{wanted_size}, 'forget: the wanted size is smaller');
is(scalar(history($node)), 0, 'forget: the history is empty');
is(adjust($node), 'none: the value in effect suffices', 'forget: the worker answers');
$node->stop;

# ---- states: limited, and what takes precedence over it

$node = make_node('states', conf => $conf . "walsizer.max = 8MB\n");
is(status($node)->{state}, 'active', 'active: the limit allows what is wanted');
force_checkpoints($node, 30);
is(adjust($node), 'raise to 8 MB, limited by max: applied',
	'limited: the raise goes as far as walsizer.max allows');
wait_for($node, "state = 'limited'");
$status = status($node);
is_row($status, 'limited', limited_by => 'max', max_wal_size => 8 * MB, size_limit => 8 * MB, outcome => undef);
cmp_ok($status->{wanted_size}, '>', 8 * MB, 'limited: the wanted size exceeds walsizer.max');

my $auto_conf = $node->data_dir . '/postgresql.auto.conf';
chmod 0400, $auto_conf or die $!;
is_row(status($node), 'blocked, before an attempt', state => 'blocked', outcome => 'forbidden',
	message => '"postgresql.auto.conf" is not writable', limited_by => 'max');
set_conf($node, 'walsizer.dry_run = on');
is_row(status($node), 'dry run, which takes precedence over blocked', state => 'dry run', outcome => 'forbidden',
	message => '"postgresql.auto.conf" is not writable');
set_conf($node, 'walsizer.enable = off');
is(status($node)->{state}, 'disabled', 'disabled: the state takes precedence over dry run');
set_conf($node, 'walsizer.enable = on');
set_conf($node, 'walsizer.dry_run = off');

# An attempt that fails is recorded, and succeeds when nothing prevents it any more.
set_conf($node, 'walsizer.max = 1GB');
like(adjust($node), qr/^raise to \d+ MB: forbidden: "postgresql.auto.conf" is not writable$/,
	'blocked: an attempt is forbidden');
is_row(status($node), 'blocked', state => 'blocked', outcome => 'forbidden',
	message => '"postgresql.auto.conf" is not writable', limited_by => undef, max_wal_size => 8 * MB);
is_row(last_event($node), 'blocked, history', action => 'raise', outcome => 'forbidden',
	message => '"postgresql.auto.conf" is not writable', old_mb => 8);
# walsizer's line hides postgresql.conf, and ALTER SYSTEM is not what the file is for.
like($node->safe_psql('postgres', 'SELECT place, instruction FROM walsizer_instructions'),
	qr/^postgresql\.auto\.conf\|max_wal_size = '\d+MB'$/, 'blocked: the instructions say what has an effect');
chmod 0600, $auto_conf or die $!;
like(adjust($node), qr/^raise to \d+ MB: applied$/, 'active: the raise is applied when the file is writable');
is_row(status($node), 'active', state => 'active', outcome => undef, message => undef, limited_by => undef);
$node->stop;

# ---- an administrator's value above walsizer.max, as initdb sets it with segments of 1GB

$node = make_node('exceeds', conf => $conf . "max_wal_size = 64MB
walsizer.max = 32MB
");
$status = status($node);
is_row($status, 'exceeds', state => 'limited', limited_by => 'max', set_by_walsizer => undef, outcome => undef);
cmp_ok($status->{wanted_size}, '<', 64 * MB, 'exceeds: the wanted size does not exceed the value in effect');
like($status->{verdict}, qr/exceeds "walsizer\.max", so walsizer does not change it\./,
	'exceeds: the verdict says so');
set_conf($node, 'walsizer.max = 64MB');
wait_for($node, "state = 'active' AND limited_by IS NULL");
$node->stop;

# ---- another program takes back what walsizer raises

$node = make_node('taken_back', conf => $conf);
for (1 .. 2)
{
	isnt(status($node)->{verdict_code}, 'taken_back',
		'taken back: the verdict does not speak of a single change');
	like(act($node, "walsizer_boost('50MB', '1 hour')"), qr/^raise to 50 MB: applied$/,
		'taken back: walsizer raises');
	$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '4MB'");
	$node->reload;
	wait_for($node, 'max_wal_size = 4 * 1048576 AND set_by_walsizer IS NULL');
}
wait_for($node, "verdict_code = 'taken_back'");
wait_for_log_line($node, qr/LOG:  another program sets "max_wal_size" back after each raise$/, 0);
is(log_count($node, qr/HINT:  Have only one of the two set it: /), 1, 'taken back: the hint says what to do');
set_conf($node, 'walsizer.enable = off');
wait_for($node, "state = 'disabled'");
isnt(status($node)->{verdict_code}, 'taken_back', 'taken back: the verdict is over when the hint was followed');
set_conf($node, 'walsizer.enable = on');
wait_for($node, "state = 'active'");
like(act($node, "walsizer_boost('50MB', '1 hour')"), qr/^raise to 50 MB: applied$/,
	'taken back: walsizer raises again');
isnt(status($node)->{verdict_code}, 'taken_back',
	'taken back: the verdict is over while the raise is in effect');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '4MB'");
$node->reload;
wait_for($node, 'EXISTS (SELECT FROM walsizer_history) AND set_by_walsizer IS NULL');
isnt(status($node)->{verdict_code}, 'taken_back', 'taken back: a raise that was forgotten does not count');
$node->stop;

# ---- walsizer.min above walsizer.max: walsizer.max takes precedence

$node = make_node('precedence', conf => $conf . "walsizer.min = 64MB\nwalsizer.max = 16MB\n");
is(adjust($node), 'none: the value in effect suffices', 'precedence: walsizer.min alone raises nothing');
force_checkpoints($node, 40);
is(adjust($node), 'raise to 16 MB, limited by max: applied',
	'precedence: the raise goes no further than walsizer.max');
is(act($node, "walsizer_boost('50MB', '1 hour')"), 'none, limited by max: the limit is 16 MB',
	'precedence: a planned load does not exceed walsizer.max');
$node->safe_psql('postgres', 'SELECT walsizer_boost_end()');

# To come down to 12 MB, most of a trigger point must be free.
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$node->safe_psql('postgres', 'CHECKPOINT');
set_conf($node, 'walsizer.max = 12MB');
wait_for($node, 'set_by_walsizer = 12 * 1048576');
is_row(last_event($node), 'precedence, lowered', action => 'lower', reason => 'limit_fell',
	limited_by => 'max', old_mb => 16, new_mb => 12, outcome => 'applied');
adjust($node) for 1 .. 2;
is(setting_mb($node), 12, 'precedence: walsizer.min does not raise it again');
set_conf($node, 'walsizer.max = 2MB');
wait_for($node, 'max_wal_size = original_size');
is(setting_mb($node), 4, 'precedence: only the original value is more than walsizer.max');

# ---- what a user has planted in the schema of the extension takes no part in it

# Functions and operators that match better than those of the server, if these do
# not match exactly: by the names that the script calls, with the types that it has.
my $script = slurp_file("$FindBin::RealBin/../walsizer--1.0.sql") =~ s/--.*$//mgr;
my %called = map { $_ => 1 } $script =~ /\b([a-z_]+)\s*\(/g;
my $called = join(',', sort keys %called);

$node->safe_psql('postgres', 'CREATE ROLE planter; CREATE DATABASE planted');
$node->safe_psql('planted', <<"END");
GRANT CREATE ON SCHEMA public TO PUBLIC;
SET ROLE planter;
SET check_function_bodies = off;
DO \$do\$
DECLARE
  body CONSTANT text := 'RETURNS text LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION \$\$planted\$\$; END''';
  types CONSTANT text[] := '{text,varchar,bigint,integer,numeric,double precision,interval,timestamptz,boolean}';
  statement text;
BEGIN
  FOR statement IN
    WITH named AS (
      SELECT proname AS name, bool_or(provariadic = '"any"'::regtype) AS variable
        FROM pg_proc JOIN unnest('{$called}'::name[]) AS called ON proname = called
       WHERE pronamespace = 'pg_catalog'::regnamespace GROUP BY proname
    ), typed AS (
      SELECT concat_ws(',', a, b, c) AS list, c IS NOT NULL AS long
        FROM unnest(types) AS a CROSS JOIN unnest(array_append(types, NULL)) AS b
       CROSS JOIN unnest(array_append(types, NULL)) AS c
       WHERE b IS NOT NULL OR c IS NULL
       UNION ALL SELECT 'pg_stat_wal', false
    )
    SELECT format('CREATE FUNCTION public.%I(%s) %s', name, list, body) FROM named, typed
     UNION ALL
    SELECT format('CREATE FUNCTION public.%I(%s, VARIADIC %s[]) %s', name, list, tail, body)
      FROM named, typed, unnest('{text,bigint}'::text[]) AS tail WHERE variable AND long
     UNION ALL
    SELECT format('CREATE FUNCTION public.planted(%s, %s) %s', a, b, body)
      FROM unnest(types || '{jsonb}'::text[]) AS a, unnest(types || '{jsonb}'::text[]) AS b
     UNION ALL
    SELECT format('CREATE OPERATOR public.%s (FUNCTION = public.planted, LEFTARG = %s, RIGHTARG = %s)', name, a, b)
      FROM unnest('{+,-,*,/,<,>,<=,>=,=,<>,||,->>}'::text[]) AS name,
           unnest(types || '{jsonb}'::text[]) AS a, unnest(types || '{jsonb}'::text[]) AS b
  LOOP
    EXECUTE statement;
  END LOOP;
END \$do\$;
END

# The views and functions in which one of them is bound.
my $captured = <<'END';
SELECT string_agg(DISTINCT pg_describe_object(d.classid, d.objid, 0), ', ')
  FROM pg_depend AS d
  LEFT JOIN pg_proc AS p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
  LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
 WHERE 'planter'::regrole IN (p.proowner, o.oprowner)
   AND d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass)
END
$node->safe_psql('planted', q(CREATE VIEW walsizer AS SELECT format('%s', 1::bigint), 1::bigint * 1.5));
is($node->safe_psql('planted', $captured), 'rule _RETURN on view walsizer',
	'planted: a view that calls the planted operators would be noticed');
$node->safe_psql('planted', 'DROP VIEW walsizer');

is($node->psql('planted', 'CREATE EXTENSION walsizer', stderr => \$stderr), 0, 'planted: the extension can be created')
  or diag($stderr);
is($node->safe_psql('planted', $captured), '',
	'planted: no view or function of the extension calls what is planted');
foreach my $from (qw(walsizer_status walsizer_stats walsizer_history walsizer_demand walsizer_advice walsizer_timeout_advice
	walsizer_instructions walsizer_related_settings walsizer_report()))
{
	is($node->psql('planted', "SELECT * FROM public.$from", stderr => \$stderr), 0,
		"planted: $from can be read")
	  or diag($stderr);
}
$node->stop;

done_testing();
