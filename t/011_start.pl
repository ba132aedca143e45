
# walsizer_start() and walsizer_stop(): from "make install" to the first raise without
# a restart of the server, from PostgreSQL 17 on, and what comes after that.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Copy qw(copy);
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my ($node, $pid, $stderr, $event, $mb, $offset);

my $started = 'none: the worker was started; after a restart of the server, it runs only if "shared_preload_libraries" contains walsizer';
my $running = 'none: the worker is already running';
my $stopped = 'none: the worker has ended; "max_wal_size" keeps its value';

# What a statement fails with, in a session of its own.
sub error_of
{
	my ($sql) = @_;
	my $error;

	$node->psql('postgres', $sql, stderr => \$error);
	return $error;
}

# ---- beside a worker that the server has started, on all versions

$node = make_node('preloaded', live => 0, conf => "walsizer.enable = off\n");
$pid = pid($node);
is(act($node, 'walsizer_start()'), $running, 'preloaded: walsizer_start() says that a worker is running');
is(pid($node), $pid, 'preloaded: walsizer_start() does not replace the worker');
is(act($node, 'walsizer_stop()'), $stopped, 'preloaded: walsizer_stop() ends the worker');
is(status($node)->{state}, 'not running', 'preloaded: the status shows that the worker has ended');
set_conf($node, 'max_wal_size = 3GB');
is($node->safe_psql('postgres', "SELECT instruction FROM walsizer_instructions WHERE place = 'SQL'"),
	"ALTER SYSTEM SET max_wal_size = '3072MB'; SELECT pg_reload_conf();",
	'preloaded: without a worker, the instructions do not lower what was set since');
is(act($node, 'walsizer_start()'), $started, 'preloaded: walsizer_start() starts another worker');
isnt(pid($node), $pid, 'preloaded: the status shows the new worker');
$node->stop;

# ---- a server that knows nothing of walsizer

$node = make_node('fresh', start => 0, conf => "shared_preload_libraries = ''\nrestart_after_crash = on\n");
$node->adjust_conf('postgresql.conf', 'walsizer.sample_interval', undef);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');

if ($node->pg_version < 17)
{
	my $error = qr/ERROR:  walsizer must be loaded via "shared_preload_libraries"\n/
	  . qr/DETAIL:  Before PostgreSQL 17, only libraries that are loaded at the start of the server have shared memory\.\n/
	  . qr/HINT:  Add walsizer to "shared_preload_libraries"/;

	like(error_of("SELECT walsizer_$_()"), qr/$error/,
		"before 17: the error of walsizer_$_() says that the library must be preloaded")
	  foreach qw(start stop);
	$node->stop;
	done_testing();
	exit 0;
}

is(status($node)->{state}, 'not running', 'fresh: walsizer_status says that the worker is not running');
like(status($node)->{verdict}, qr/worker is not running\. walsizer_start\(\) starts it/,
	'fresh: the verdict says that walsizer_start() starts the worker');
like($node->safe_psql('postgres', 'SELECT walsizer_report()'),
	qr/worker is not running\. walsizer_start\(\) starts it/,
	'fresh: the report says that walsizer_start() starts the worker');
like(error_of("SELECT walsizer_$_()"),
	qr/ERROR:  the walsizer worker is not running\nHINT:  walsizer_start\(\) starts it/,
	"fresh: the error of walsizer_$_() says that walsizer_start() starts the worker")
  foreach qw(adjust stop);

# Settings: known to a session that has called a function.  Another one can set them,
# too, but does not check the value.
like(error_of("SELECT FROM walsizer_status; ALTER SYSTEM SET walsizer.max = 'much'"),
	qr/ERROR:  invalid value for parameter "walsizer\.max": "much"/,
	'ALTER SYSTEM checks a setting after a function was called');
is(error_of("ALTER SYSTEM SET walsizer.max = 'much'"), '',
	'ALTER SYSTEM does not check a setting before a function is called');
$node->safe_psql('postgres', "SELECT FROM walsizer_status; ALTER SYSTEM SET walsizer.max = '64MB'");
$node->safe_psql('postgres', "ALTER SYSTEM SET walsizer.sample_interval = '100ms'");
$node->reload;
$node->poll_query_until('postgres', "LOAD 'walsizer'; SHOW walsizer.max", "LOAD\n64MB") or die 'walsizer.max is not set';

my $begun = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
is(act($node, 'walsizer_start()'), $started, 'walsizer_start() starts the worker');
is(act($node, 'walsizer_start()'), $running,
	'a second call of walsizer_start() says that the worker is running');
is(status($node)->{state}, 'active', 'the worker that was started is active');
is(status($node)->{replay_rate_source}, 'assumed',
	'the replay rate is assumed, because no recovery was measured');
$pid = pid($node);
# Up to walsizer.max, from where nothing raises further.
write_wal($node, 20) until setting_mb($node) == 64;
wait_for($node, 'set_by_walsizer > original_size');
$event = last_event($node);
is($event->{outcome}, 'applied', 'the first raise is applied');
$mb = setting_mb($node);
cmp_ok($mb, '>', 4, 'the first raise is in effect');
cmp_ok($mb, '<=', 64, 'the first raise keeps within the limit that was set');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $begun, 'the server was not restarted');

# ---- one worker for all databases, whatever becomes of an extension

$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION walsizer');
is($node->safe_psql('other', 'SELECT pid FROM walsizer_status'), $pid, 'another database sees the same worker');
like($node->safe_psql('other', 'SELECT walsizer_start()'), qr/already running/,
	'another database starts no second worker');
$node->safe_psql('postgres', 'DROP EXTENSION walsizer');
is($node->safe_psql('other', 'SELECT pid FROM walsizer_status'), $pid,
	'DROP EXTENSION does not end the worker');
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_sample($node);
is(pid($node), $pid, 'CREATE EXTENSION does not end the worker');

# ---- a process crashes: all shared memory is made anew

my $events = scalar(history($node));
$offset = log_offset($node);
my $victim = start_asking($node, 'SELECT pg_sleep(600)');
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'")
  or die 'the victim does not run';
kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'");
eval { $victim->finish };
wait_for_log_line($node, qr/reinitializing/, $offset);
wait_for_worker($node, $pid);
isnt(pid($node), $pid, 'a crash: the worker comes back by itself');
wait_for($node, "set_by_walsizer = $mb * 1048576");
is(scalar(history($node)), $events, 'a crash: the history is still there');
is(act($node, 'walsizer_start()'), $running, 'a crash: the worker need not be started');

# ---- stopped, and started again

is(act($node, 'walsizer_stop()'), $stopped, 'walsizer_stop() ends the worker');
is(status($node)->{state}, 'not running', 'stopped: the status says that the worker is not running');
is(status($node)->{pid}, undef, 'stopped: the status has no process ID');
like($node->safe_psql('postgres', 'SELECT walsizer_report()'), qr/: not running; these figures are of 2\d{3}-/,
	'stopped: the report says how old its figures are');
is(setting_mb($node), $mb, 'stopped: max_wal_size stays');
is(act($node, 'walsizer_start()'), $started, 'stopped: walsizer_start() starts the worker at once');
cmp_ok(status($node)->{set_by_walsizer}, '==', $mb * MB, "started again: the value is known as walsizer's");

# ---- a restart of the server ends it, too

$node->restart;
is(status($node)->{state}, 'not running', 'a restart: walsizer_status says that the worker is not running');
is(setting_mb($node), $mb, 'a restart: max_wal_size stays');
is(act($node, 'walsizer_start()'), $started, 'a restart: walsizer_start() starts the worker');
cmp_ok(status($node)->{set_by_walsizer}, '==', $mb * MB, "a restart: the value is known as walsizer's");
is(scalar(history($node)), $events, 'a restart: the history is still there');
like(revert($node), qr/^revert to 4 MB: applied/, 'a restart: walsizer_revert() restores the original value');

# The whole server has one.
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsizer'"), 1, 'there is one worker');
unlike(slurp_file($node->logfile), qr/PANIC|FATAL:  (?!terminating|the database system)/,
	'the log has no unexpected error');
$node->stop;

# ---- no room for a worker

$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->start;
like(error_of('SELECT walsizer_start()'),
	qr/ERROR:  could not start the walsizer worker\nDETAIL:  All 0 slots of "max_worker_processes" are taken\.\nHINT:  Raise/,
	'no room: the error of walsizer_start() says so');
$node->adjust_conf('postgresql.conf', 'max_worker_processes', '8');
$node->restart;

# ---- other copies of the library: of another version, after a package upgrade

my $dir = File::Spec->rel2abs($node->basedir);
my ($installed) = glob $node->config_data('--pkglibdir') . '/walsizer.*';
my $copy = "$dir/" . ($installed =~ s/.*\///r);
copy($installed, $copy) or die "could not copy $installed: $!";
my $columns = 'OUT action text, OUT old_size bigint, OUT new_size bigint, OUT limited_by text, OUT outcome text, OUT message text';
$node->safe_psql('postgres', "CREATE FUNCTION ${_}_copy($columns) AS '$copy', 'walsizer_${_}_1_0' LANGUAGE C")
  foreach qw(start stop);

is(act($node, 'start_copy()'), $started, 'another copy: its function starts the worker');
is(act($node, 'walsizer_start()'), $running, 'another copy: the functions at $libdir see its worker');
like(error_of('SELECT start_copy(); SELECT * FROM walsizer_status'),
	qr/ERROR:  walsizer must be loaded via "shared_preload_libraries"\nHINT:  .* names another file/,
	'another copy: a session can use only one');
wait_for_sample($node);
$pid = pid($node);

my $library = slurp_file($copy);
$library =~ s/\0walsizer \K1\.0\.0(?=\0)/9.9.9/ or die 'the library has no name for its shared memory';
write_file($copy, $library);
$offset = log_offset($node);
like(error_of('SELECT start_copy()'), qr/ERROR:  the walsizer worker has not started\nHINT:  See the server log/,
	'another version: its function starts no second worker');
is(log_count($node, qr/LOG:  the walsizer worker ends, because another one is running/, $offset), 1, 'another version: the log says why');
is(pid($node), $pid, 'another version: the first one continues');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'walsizer' AND pid <> $pid AND wait_event_type = 'Extension'")
  or die 'the worker does not come back';
is(act($node, 'start_copy()'), $running, 'another version: the worker comes back in that version');
is(act($node, 'stop_copy()'), $stopped, 'another version: its function stops the worker');
$node->stop;

# ---- on a hot standby, and after its promotion

my $primary = make_node('primary', live => 1, streaming => 1,
	conf => "walsizer.enable = off\nwal_keep_size = 1GB\n");
my $standby = PostgreSQL::Test::Cluster->new('standby');
$primary->backup('backup');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'walsizer.enable = on');
$standby->start;
is(act($standby, 'walsizer_start()'), $started, 'a hot standby: walsizer_start() starts the worker');
wait_for($standby, "role = 'standby'");
my $load = start_load($primary, 10);
wait_for($standby, 'set_by_walsizer > original_size');
stop_load($load);
is(last_event($standby)->{outcome}, 'applied', 'a hot standby: walsizer raises for the primary');
$pid = pid($standby);
$standby->promote;
wait_for($standby, "role = 'primary' AND pid = $pid");
pass('a promotion: the worker continues');
$_->stop foreach $standby, $primary;

done_testing();
