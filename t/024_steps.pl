
# What lies between a decision and its effect: few synchronous writes, and none
# after which a crash, an administrator's ALTER SYSTEM or a clock that is set
# leaves it unclear whose value it is.  The way back is 025_steps_back.pl's.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerSteps;
use WalsizerTest;

start_server();

# ---- few of them

my $session = $node->background_psql('postgres');
sub steps_of_alter_system
{
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	arm($pid, 0, 'count');
	$session->query_safe("ALTER SYSTEM SET work_mem = '5MB'");
	return steps();
}
SKIP:
{
	skip 'needs PostgreSQL 16 or later', 1 unless $session->can('query_safe');
	is(fsyncs(steps_of_alter_system()), 5, 'ALTER SYSTEM makes five synchronous writes');
}
$session->quit;

my $reload;
foreach my $which ('the first raise', 'the next raise')
{
	need_a_raise($node);
	arm(pid($node), 0, 'count');
	like(adjust($node), qr/^raise .*: applied$/, "$which: walsizer raises");
	my @steps = steps();
	$reload = first_step(qr/^sighup/, @steps);
	my $before = fsyncs(@steps[ 0 .. $reload - 1 ]);
	my $all = fsyncs(@steps);
	diag("$which: $before synchronous writes before the reload, $all in all");
	cmp_ok($before, '<=', 4, "$which: walsizer makes at most four synchronous writes before the reload");
	cmp_ok($all, '<=', 8, "$which: walsizer makes at most eight synchronous writes in all");
}
back_to_original('the raises');

# ---- told to end while it waits for the reload, which does not come

my $offset = log_offset($node);
my $pid = pid($node);
need_a_raise($node);
unlink $node->data_dir . '/pg_stat/walsizer.state' or die $!;
arm($pid, $reload, 'stop');
my $told = ask($adjust, \my $no_answer);
wait_until('the worker stops', sub { return slurp_file("/proc/$pid/stat") =~ /\) T/ });
steps();
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;
kill 'STOP', $postmaster or die $!;
kill 'TERM', $pid or die $!;
kill 'CONT', $pid or die $!;
$told->finish;
kill 'CONT', $postmaster or die $!;
like(slurp_file("$dir/stderr"), qr/the walsizer worker ended before it answered/,
	'told to end: the worker ends');
ok(-e $node->data_dir . '/pg_stat/walsizer.state', 'told to end: the worker saves its memory');
is(log_count($node, qr/FATAL:/, $offset), 0, 'told to end: the log has no error');
wait_for_worker($node, $pid);
no_one_is_suspected('told to end');
back_to_original('told to end');

# ---- killed at each step of a raise

my $killed = 0;
for (my $step = 1;; $step++)
{
	my $what = "raise, killed at step $step";
	my $pid = pid($node);
	my $answer;

	need_a_raise($node);
	arm($pid, $step, 'kill');
	my $asked = ask($adjust, \$answer);
	$asked->finish;
	my @steps = steps();
	if (@steps < $step)
	{
		is($answer, "raise applied\n", 'all steps of a raise are tried');
		last;
	}
	$killed++;
	wait_for_restart($node, $pid);
	my $status = status($node);
	is($status->{original_size}, 4 * MB, "$what ($steps[-1]): the original value is known");
	is($status->{set_by_walsizer}, $status->{max_wal_size} > 4 * MB ? $status->{max_wal_size} : undef,
		"$what: the value that is walsizer's is known");
	no_one_is_suspected($what);
	# what was written and not reloaded is walsizer's to overwrite
	if ($status->{set_by_walsizer})
	{
		revert($node);
		restart();
	}
	need_a_raise($node);
	like(adjust($node), qr/^raise .*: applied$/, "$what: the next raise is applied");
	back_to_original($what);
}
cmp_ok($killed, '>=', 6, "a raise has several steps ($killed)");
back_to_original('raise');

# ---- killed at each step of the raise for a planned load

# The value that comes back after the planned load, as the state file has it.
sub return_mb
{
	return slurp_file($node->data_dir . '/pg_stat/walsizer.state') =~ /^state .* boost_return_mb (\d+)/m ? $1 : undef;
}

$killed = 0;
for (my $step = 1;; $step++)
{
	my $what = "planned load, killed at step $step";
	my $pid = pid($node);
	my $boost = "walsizer_boost('100MB', '1 hour')";

	arm($pid, $step, 'kill');
	ask("SELECT action FROM $boost", \my $answer)->finish;
	my @steps = steps();
	last if @steps < $step;
	$killed++;
	wait_for_restart($node, $pid);
	like(act($node, $boost), qr/^(raise to 100 MB: applied|none)/,
		"$what ($steps[-1]): the load can be planned again");
	is(setting_mb($node), 100, "$what: the planned size is in effect");
	act($node, 'walsizer_boost_end()');
	is(return_mb(), 4, "$what: the value from before it is the one to come back");
	no_one_is_suspected($what);
	back_to_original($what);
}
cmp_ok($killed, '>=', 6, "a planned load has several steps ($killed)");
act($node, 'walsizer_boost_end()');
back_to_original('planned load');

my $conf = slurp_file($node->data_dir . '/postgresql.conf');

# ---- an administrator's ALTER SYSTEM at each step of a raise

for (my $step = 1;; $step++)
{
	my $what = "ALTER SYSTEM at step $step";
	my ($answer, $out);
	my $pid = pid($node);

	need_a_raise($node);
	arm($pid, $step, 'stop');
	my $asked = ask($adjust, \$answer);
	wait_until('the worker stops, or is done',
		sub { return slurp_file("/proc/$pid/stat") =~ /\) T/ || is_done($asked); });
	my $stopped = slurp_file("/proc/$pid/stat") =~ /\) T/;
	my @steps = steps();
	if (!$stopped || $steps[-1] =~ /^sighup/)
	{
		kill 'CONT', $pid;
		$asked->finish;
		ok($stopped, 'all steps before the reload are tried');
		last;
	}
	my $admin = start_asking($node, "ALTER SYSTEM SET max_wal_size = '60MB'", \$out);
	wait_until('ALTER SYSTEM is done, or waits',
		sub {
			return is_done($admin) || $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'ALTER SYSTEM SET max%' AND wait_event = 'AutoFile'"
			) > 0;
		});
	kill 'CONT', $pid or die $!;
	$admin->finish;
	$asked->finish;
	$node->reload;
	wait_for($node, 'max_wal_size = 60 * 1048576');
	like(auto_conf($node), qr/^max_wal_size = '60MB'$/m,
		"$what ($steps[-1]): the administrator's line is not lost");
	wait_for($node, 'set_by_walsizer IS NULL AND original_size = 60 * 1048576');
	pass("$what: the value is the administrator's");
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
	$node->reload;
	wait_for($node, 'max_wal_size = 4 * 1048576');
	restart();
}
back_to_original('ALTER SYSTEM at each step');

# ---- an ALTER SYSTEM that hangs with the lock on the file

my $script = "$dir/hanging.sql";
write_file($script, <<"END");
SELECT pg_backend_pid();
\\! while [ ! -e $dir/go ]; do sleep 0.05; done
ALTER SYSTEM SET work_mem = '6MB';
END
my $pid_of_session = '';
my $hanging = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', $script ],
	'<', \undef, '>', \$pid_of_session);
wait_until('the session has told its pid', sub { $hanging->pump_nb; return $pid_of_session =~ /\n/ });
chomp $pid_of_session;
need_a_raise($node);
arm($pid_of_session, 1, 'stop');
write_file("$dir/go", '');
wait_until('the session stops', sub { return slurp_file("/proc/$pid_of_session/stat") =~ /\) T/ });
steps();
$pid = pid($node);
my $asked = ask($adjust, \my $unanswered, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_for($node, "pid <> $pid");
$asked->finish;
like(slurp_file("$dir/stderr"), qr/the walsizer worker ended before it answered/,
	'hanging ALTER SYSTEM: the worker can be told to end');
kill 'CONT', $pid_of_session or die $!;
$hanging->finish;
like(adjust($node), qr/^raise .*: applied$/, 'hanging ALTER SYSTEM: walsizer raises when it is over');
like(auto_conf($node), qr/^work_mem = '6MB'$/m, 'hanging ALTER SYSTEM: its line is not lost');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET work_mem');
back_to_original('hanging ALTER SYSTEM');

# ---- ALTER SYSTEM RESET leaves the note behind

raise('reset');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->reload;
wait_for($node, 'max_wal_size = 4 * 1048576 AND set_by_walsizer IS NULL');
is(last_event($node)->{action}, 'external', 'reset: walsizer notices the change');
note_is_removed($node, 'reset');
restart();

# ---- an edit that was not reloaded: after the crash of a process walsizer sees it,
# and makes way, as it would after any reload

my $raised = raise('not reloaded');
$pid = pid($node);
my $id = last_event($node)->{id};
$node->append_conf('postgresql.conf', "max_wal_size = 1GB");
kill 'KILL', $node->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
wait_for_restart($node, $pid);
wait_for($node, 'max_wal_size = 1073741824 AND set_by_walsizer IS NULL');
is(last_event($node)->{id}, $id + 1, 'not reloaded: walsizer needs one step');
is(last_event($node)->{reason}, 'edited', 'not reloaded: the reason is an edit');
is(last_event($node)->{old_mb}, $raised, 'not reloaded: the event has the value that walsizer had set');
write_file($node->data_dir . '/postgresql.conf', $conf);
restart() for 1 .. 2;

# The same before walsizer's first raise, whose reload makes the edit count.
$pid = pid($node);
$node->append_conf('postgresql.conf', 'max_wal_size = 1GB');
kill 'KILL', $node->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
wait_for_restart($node, $pid);
need_a_raise($node);
like(adjust($node), qr/^raise .*: applied$/, 'not reloaded, before a raise: walsizer raises');
wait_for($node, 'max_wal_size = 1073741824 AND set_by_walsizer IS NULL');
is(last_event($node)->{reason}, 'edited',
	'not reloaded, before a raise: the reason of the next event is an edit');
write_file($node->data_dir . '/postgresql.conf', $conf);
restart() for 1 .. 2;

# ---- an administrator keeps walsizer's value

$raised = raise('pinned');
my $pinned = log_offset($node);
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '${raised}MB'");
$node->reload;
wait_for($node, "set_by_walsizer IS NULL AND original_size = $raised * 1048576");
is(last_event($node)->{action}, 'external', 'pinned: walsizer notices the change');
is(last_event($node)->{old_mb}, $raised, "pinned: the old value is walsizer's");
is(log_count($node, qr/LOG:  an administrator took over "max_wal_size" of $raised MB/, $pinned), 1,
	'pinned: the log says that an administrator took over the value');
revert($node);
is(setting_mb($node), $raised, 'pinned: walsizer_revert() does not change the value');
restart();
is(status($node)->{set_by_walsizer}, undef, "pinned: the value is not walsizer's after a restart");
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
restart() for 1 .. 2;
is(setting_mb($node), 4, 'pinned: ALTER SYSTEM RESET restores the original value');

# ---- the system clock is set back

need_a_raise($node);
$node->append_conf('postgresql.conf', 'max_connections = = 5');
like(adjust($node), qr/^raise .*: refused\b/, 'clock: the server refuses files with a syntax error');
set_clock(-7200);
write_file($node->data_dir . '/postgresql.conf', $conf);
$node->reload;
wait_for($node, 'outcome IS NULL AND set_by_walsizer > 4 * 1048576');
pass('clock: the trouble ends with a good reload, whatever the time is');
set_clock(0);
back_to_original('clock');
is(act($node, "walsizer_boost('100MB', '10 seconds')"), 'raise to 100 MB: applied',
	'clock: the planned load is applied');
set_clock(-7200);
wait_for($node, 'boost_size IS NULL');
pass('clock: the planned load ends in time');
set_clock(0);
revert($node);

# ---- two requests between two passes

$pid = stop_worker($node);
my ($first, $second);
my @asked = (
	ask("SELECT new_size / 1048576, outcome FROM walsizer_boost('100MB', '1 hour')", \$first));
sub wait_for_askers
{
	my ($number) = @_;
	wait_until("$number sessions wait",
		sub {
			return $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE query ~ 'walsizer_(boost|revert)' AND pid <> pg_backend_pid() AND wait_event_type IN ('Extension', 'Lock')"
			) == $number;
		});
	return;
}
wait_for_askers(1);
push @asked, ask("SELECT new_size / 1048576, outcome FROM walsizer_boost('200MB', '1 hour')", \$second);
wait_for_askers(2);
kill 'CONT', $pid or die $!;
$_->finish foreach @asked;
is($first, "100|applied\n", 'two planned loads: the first has its own answer');
is($second, "200|applied\n", 'two planned loads: the second has its own answer');
is(setting_mb($node), 200, 'two planned loads: the second size is in effect');

stop_worker($node);
@asked = (ask('SELECT new_size / 1048576, outcome FROM walsizer_revert()', \$first));
wait_for_askers(1);
push @asked, ask("SELECT new_size / 1048576, outcome FROM walsizer_boost('150MB', '1 hour')", \$second);
wait_for_askers(2);
kill 'CONT', $pid or die $!;
$_->finish foreach @asked;
is($first, "4|applied\n", 'revert, then a planned load: the original value is restored');
is($second, "150|applied\n", 'revert, then a planned load: walsizer raises');
is(setting_mb($node), 150, 'revert, then a planned load: the planned size is in effect');
revert($node);
is(setting_mb($node), 4, 'the original value is in effect at the end');
$node->stop;

done_testing();
