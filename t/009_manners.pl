
# walsizer is a good guest: it blocks nobody, kills nobody's session, keeps no
# server from starting, says things once, and lowers nothing.
#
# Failures of other tuners that this file covers: 7, a statistics reset makes
# it blind under load; 9, there is no worker on a standby; 10, a message at
# the ceiling in each interval; 12, a ceiling below the value in effect lowers
# it; 15, DROP DATABASE ... WITH (FORCE) ends the worker for good; 20, the
# worker's session blocks commands on its database; 21, without preloading
# CREATE EXTENSION or LOAD kills the session.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $classic = "walsizer.predict = off\ncheckpoint_timeout = 1h\n";
my ($node, $pid, $offset, $stdout, $stderr, $result);

# ---- the worker among the others

$node   = make_node('guest', conf => $classic);
$pid    = pid($node);
$offset = log_offset($node);

is($node->safe_psql('postgres',
		"SELECT backend_type, datid IS NULL, backend_xmin IS NULL FROM pg_stat_activity WHERE pid = $pid"),
	'walsizer|t|t', 'the worker has no database and no snapshot');
is($node->safe_psql('postgres', "SELECT state IS NULL, query FROM pg_stat_activity WHERE pid = $pid"),
	't|', 'pg_stat_activity shows the worker without state and query');
is($node->safe_psql('postgres',
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsizer'"),
	1, 'there is one worker');
SKIP:
{
	skip 'needs PostgreSQL 17 or later', 1 if $node->pg_version < 17;
	ok( $node->poll_query_until('postgres',
			"SELECT wait_event = 'WalsizerMain' FROM pg_stat_activity WHERE pid = $pid"),
		'the worker waits for an event of its own name');
}

# Commands on databases wait for every process to absorb a barrier: a worker
# that does not would have them hang.
foreach my $command (
	'CREATE DATABASE one TEMPLATE template1',
	'CREATE DATABASE two TEMPLATE one STRATEGY FILE_COPY',
	'ALTER DATABASE two RENAME TO three',
	'CREATE DATABASE four TEMPLATE postgres',
	'DROP DATABASE one',
	'DROP DATABASE three WITH (FORCE)')
{
	my $db = $command =~ /TEMPLATE postgres/ ? 'template1' : 'postgres';
	wait_for_nobody_in($node, 'postgres', $db) if $db ne 'postgres';
	$result = $node->psql($db, $command, stderr => \$stderr,
		timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \my $timed_out);
	ok(!$timed_out && $result == 0, "$command succeeds") or diag($stderr);
}
wait_for_nobody_in($node, 'postgres', 'four');
$result = $node->psql('four', 'DROP DATABASE postgres WITH (FORCE)', stderr => \$stderr);
is($result, 0, 'even the database postgres can be dropped') or diag($stderr);
wait_for_nobody_in($node, 'template1', 'four');
$node->safe_psql('four', 'CREATE DATABASE postgres');
$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS walsizer');
is(pid($node), $pid, 'the worker is the same after commands on databases');
is(log_count($node, qr/(ERROR|FATAL|PANIC|WARNING):/, $offset), 0,
	'the log has no complaint after commands on databases');

# ---- walsizer.max

set_conf($node, 'walsizer.max = 8MB');
$offset = log_offset($node);
force_checkpoints($node, 30);
# one that WAL has asked for must not start after the raise, as if at an old value
$node->safe_psql('postgres', 'CHECKPOINT');
is(adjust($node), 'raise to 8 MB, limited by max: applied',
	'walsizer.max: the raise goes as far as the limit');
is(last_event($node)->{limited_by}, 'max', 'history: the event names the limit');
cmp_ok(last_event($node)->{wanted_mb}, '>', 8, 'history: the size that was wanted exceeds the limit');
my $limited = qr/LOG:  "max_wal_size" of \d+ MB is too small: (?:at most )?\d+ MB are needed, and "walsizer\.max" allows \d+ MB$/;
for (1 .. 3)
{
	force_checkpoints($node, 30);
	is(adjust($node), 'none, limited by max: WAL volume forced checkpoints',
		'walsizer.max: there is no raise beyond the limit');
}
is(log_count($node, $limited, $offset), 1, 'walsizer.max: the limit is logged once');
is(status($node)->{limited_by}, 'max', 'status: limited_by names the limit');
is(status($node)->{state}, 'limited', 'status: the state is "limited"');
is(status($node)->{outcome}, undef, 'status: a limit is no failed attempt');
is(scalar(history($node)), 1, 'history: nothing else is recorded');

# Lowered below what the administrator has set, it lowers nothing.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '20MB'");
$node->safe_psql('postgres', "ALTER SYSTEM SET walsizer.max = '6MB'");
$node->restart;
wait_for_worker($node);
is(last_event($node)->{action}, 'external', 'walsizer notices that the administrator has set 20MB');
$node->restart;
wait_for_worker($node);
$offset = log_offset($node);
my $events = history($node);
is(adjust($node), 'none: the value in effect suffices',
	'walsizer.max below: the value in effect suffices without a load');
for (1 .. 3)
{
	force_checkpoints($node, 50);
	is(adjust($node), 'none, limited by max: WAL volume forced checkpoints',
		'walsizer.max below: the limit prevents a raise under load');
}
is(setting_mb($node), 20, 'walsizer.max below the value in effect lowers nothing');
is(scalar(history($node)), $events, 'walsizer.max below the value in effect causes no event');
is(log_count($node, $limited, $offset), 1, 'walsizer.max below the value in effect is logged once');
$node->stop;

# ---- statistics are reset all the time

$node = make_node('reset', conf => $classic);
my $script = $node->basedir . '/reset.sql';
append_to_file($script, 'SELECT pg_stat_reset_shared('
	  . ($node->pg_version < 17 ? "'bgwriter'" : "'checkpointer'") . ");\n");
my $resets = IPC::Run::start(
	[
		'pgbench',  '--no-vacuum', '--client=1', '--time=3600',
		'--rate=5', "--file=$script", $node->connstr('postgres')
	],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');
my $load = start_load($node, 4);
wait_for($node, 'checkpoints_forced >= 3');
like(adjust($node), qr/^raise .*: applied$/, 'statistics resets: walsizer raises');
stop_load($resets);
stop_load($load);
cmp_ok(last_event($node)->{checkpoints_forced}, '>=', 3,
	'statistics resets: all forced checkpoints are counted');
is(last_event($node)->{new_mb}, classic_size_mb(last_event($node), 1),
	'statistics resets: the size is the same as without them');
$node->stop;

# ---- a standby

# The primary's checkpoints are never forced.  Catching up with what it wrote has
# restartpoints forced, which means nothing by itself.  With its long interval the
# standby counts the primary's checkpoints for little, however slow the machine is.
my $primary = make_node('primary', streaming => 1,
	conf => "walsizer.enable = off\nmax_wal_size = 1GB\nwal_keep_size = 1GB\n");
$primary->backup('backup');
$node = PostgreSQL::Test::Cluster->new('standby');
$node->init_from_backup($primary, 'backup', has_streaming => 1);
$node->append_conf('postgresql.conf',
	"walsizer.enable = on\nmax_wal_size = 4MB\ncheckpoint_timeout = 1h\n");
$node->start;
wait_for_worker($node);
$pid = pid($node);
is(status($node)->{role},  'standby',  'a worker runs on the standby');
is(status($node)->{state}, 'active', 'the worker on the standby is active');

$node->stop;
for (1 .. 3)
{
	$primary->safe_psql('postgres', 'CHECKPOINT');
	write_wal($primary, 10);
}
$primary->safe_psql('postgres', 'CHECKPOINT');
$offset = log_offset($node);
$node->start;
wait_for_worker($node);
$pid = pid($node);
$primary->wait_for_catchup($node, 'replay', $primary->lsn('write'));
wait_for_log_line($node, qr/restartpoint starting:.* wal\b/, $offset);
wait_for_sample($node);
like(adjust($node), qr/^none: /, 'forced restartpoints are no reason to raise');
my ($requested, $timed) = $node->pg_version < 17
  ? ('checkpoints_req FROM pg_stat_bgwriter', 'checkpoints_timed FROM pg_stat_bgwriter')
  : ('restartpoints_req FROM pg_stat_checkpointer', 'restartpoints_timed FROM pg_stat_checkpointer');
wait_for($node, "num_requested = (SELECT $requested) AND num_timed = (SELECT $timed)");
pass("the standby shows the server's counters of restartpoints");
is(setting_mb($node), 4, 'forced restartpoints do not change max_wal_size');
is(scalar(history($node)), 0, 'forced restartpoints cause no event');
unlike(auto_conf($node), qr/max_wal_size/, 'forced restartpoints write nothing into postgresql.auto.conf');
foreach my $function (qw(forget reset_stats))
{
	is($node->psql('postgres', "SELECT walsizer_$function()"), 0, "walsizer_$function() works on a standby");
}

# But it follows what the primary needs between two checkpoints: 60 MB, and what
# was written before the load, if that counts.
my $needed = size_for_mb(60 * MB, 1, 0.9);
my $enough = 0.7 * $needed * MB;
set_conf($node, 'checkpoint_timeout = 30s');
my $load_on_primary = start_load($primary, 2);
wait_for($node, "set_by_walsizer >= $enough");
stop_load($load_on_primary);
pass('the standby follows the demand of the primary');

my $event = last_event($node);
is($event->{role}, 'standby', 'history: the event has the role of the standby');
cmp_ok($event->{new_mb}, '<=', 1.6 * size_for_mb(90 * MB, 1, 0.9),
	'the size on the standby does not exceed what it needs');
wait_for($node, "set_by_walsizer = pg_size_bytes(current_setting('max_wal_size'))");
pass('the raise on the standby is in effect');
is(setting_mb($primary), 1024, "the primary knows nothing of the standby's size");

# After promotion it is there, and so is the worker.
set_conf($node, 'checkpoint_timeout = 5min');
$node->promote;
wait_for($node, "role = 'primary'");
is(pid($node), $pid, 'the same worker continues after promotion');
my $set_by_walsizer = status($node)->{set_by_walsizer};
cmp_ok($set_by_walsizer, '>=', $enough, 'the value that the standby set survives the promotion');
$load = start_load($node, 20);
wait_for($node, "set_by_walsizer > $set_by_walsizer");
stop_load($load);
is(last_event($node)->{role}, 'primary', 'the new primary raises for its own load');
is(last_event($node)->{outcome}, 'applied', 'the raise of the new primary is applied');
cmp_ok(setting_mb($node) * MB, '>', $set_by_walsizer, 'the raise of the new primary is in effect');
$node->stop;
$primary->stop;

# ---- no room for the worker

$node = make_node('no_room', conf => "max_worker_processes = 0\n", start => 0);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
is(status($node)->{state}, 'not running', 'no room: the status says that the worker is not running');
is(status($node)->{pid}, undef, 'no room: the status has no process ID');
is(scalar(history($node)), 0, 'no room: the history is empty');
is($node->psql('postgres', 'SELECT walsizer_reset_stats()'), 0, 'no room: walsizer_reset_stats() needs no worker');
foreach my $function (qw(adjust revert boost_end forget))
{
	$node->psql('postgres', "SELECT walsizer_$function()", stderr => \$stderr);
	like($stderr, qr/ERROR:  the walsizer worker is not running\nHINT:  .*max_worker_processes/,
		"no room: the error of walsizer_$function() says so, with a hint");
}
$node->stop;

# ---- not preloaded

$node = make_node('not_preloaded', conf => "shared_preload_libraries = ''\n", start => 0);
$node->start;
$offset = log_offset($node);
is($node->psql('postgres', 'CREATE EXTENSION walsizer'), 0,
	'not preloaded: the extension can be created');

# Before 17 there is nothing to read or to ask; from 17 on, nobody to ask.
my $no_memory = qr/ERROR:  walsizer must be loaded via "shared_preload_libraries"\nDETAIL:  Before PostgreSQL 17, .*\nHINT:  Add walsizer to "shared_preload_libraries"/;
my $no_worker = qr/ERROR:  the walsizer worker is not running\nHINT:  walsizer_start\(\) starts it/;
my $preload_only = $node->pg_version < 17;
foreach my $from (
	qw(walsizer_status walsizer_stats walsizer_history walsizer_demand walsizer_advice walsizer_timeout_advice
	walsizer_instructions walsizer_related_settings walsizer_get_status() walsizer_get_stats()
	walsizer_report() walsizer_reset_stats()))
{
	$node->psql('postgres', "SELECT * FROM $from", stderr => \$stderr);
	like($stderr, $preload_only ? $no_memory : qr/^$/,
		"not preloaded: $from can be read, or fails with a clear error and a hint");
}
foreach my $function (qw(adjust() revert() boost_end() forget() stop()), "boost('8GB', '1 hour')")
{
	$node->psql('postgres', "SELECT * FROM walsizer_$function", stderr => \$stderr);
	like($stderr, $preload_only ? $no_memory : $no_worker,
		"not preloaded: walsizer_$function fails with a clear error and a hint");
}
is($node->safe_psql('postgres', "LOAD 'walsizer'; SELECT 'alive'"),
	'alive', 'not preloaded: LOAD does not kill the session');
is($node->safe_psql('postgres', "LOAD 'walsizer'; SHOW max_wal_size"),
	'4MB', 'not preloaded: LOAD changes nothing');
is($node->psql('postgres', 'DROP EXTENSION walsizer'), 0, 'not preloaded: the extension can be dropped');

# In a session's own list of libraries it is as harmless.
$node->safe_psql('postgres', "ALTER SYSTEM SET session_preload_libraries = 'walsizer'");
$node->reload;
$node->poll_query_until('postgres',
	"SELECT current_setting('session_preload_libraries') = 'walsizer'")
  or die 'session_preload_libraries is not set';
is($node->safe_psql('postgres', "SELECT 'alive'"), 'alive', 'not preloaded: session_preload_libraries does no harm');
is(log_count($node, qr/(FATAL|PANIC):/, $offset), 0, 'not preloaded: no session ends with an error');
$node->stop;

done_testing();
