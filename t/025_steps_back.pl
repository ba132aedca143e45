
# No step of a revert, nor of making way for an edit, is one after which a crash
# leaves it unclear whose value it is: as 024_steps.pl, for the way back.

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

# ---- killed at each step of a revert

my ($written_original, $write_edit);
my $killed = 0;
for (my $step = 1;; $step++)
{
	my $what = "revert, killed at step $step";
	my $raised = raise($what);
	my $pid = pid($node);

	arm($pid, $step, 'kill');
	ask('SELECT walsizer_revert()', \my $answer)->finish;
	my @steps = steps();
	# from then on the file says it
	$written_original ||= first_step(qr/^rename .*auto\.conf/, @steps) + 1 if grep { /^sighup/ } @steps;
	last if @steps < $step;
	$killed++;
	wait_for_restart($node, $pid);
	adjust($node);
	my $status = status($node);
	# the file tells what was to come, or nothing had happened
	if ($status->{set_by_walsizer})
	{
		is($status->{max_wal_size}, $raised * MB,
			"$what ($steps[-1]): the value that walsizer set is still in effect");
		cmp_ok($step, '<=', 3, "$what: the value stays only if the file was not replaced");
	}
	else
	{
		is($status->{max_wal_size}, 4 * MB, "$what ($steps[-1]): the original value is in effect");
	}
	no_one_is_suspected($what);
	if (!$status->{set_by_walsizer})
	{
		# known to the state file, too: a crash does not bring it back
		$node->stop('immediate');
		with_library(sub { start_after_kill($node) });
		wait_for_worker($node);
		need_a_raise($node);
		like(adjust($node), qr/^raise .*: applied$/, "$what: walsizer raises after a crash");
	}
	back_to_original($what);
}
cmp_ok($killed, '>=', 10, "a revert has several steps ($killed)");
is(setting_mb($node), 4, 'revert: the original value is in effect');
restart();

# ---- killed at each step of making way for an edit

my $conf = slurp_file($node->data_dir . '/postgresql.conf');
$killed = 0;
for (my $step = 1;; $step++)
{
	my $what = "edit, killed at step $step";
	my ($pid, $before);

	raise($what);
	$pid = pid($node);
	$before = last_event($node)->{id};
	arm($pid, $step, 'kill');
	$node->append_conf('postgresql.conf', 'max_wal_size = 7MB');
	$node->reload;
	wait_until('the edit takes effect, or the worker is killed',
		sub {
			return !kill(0, $pid)
			  || (try_to_ask($node, "SELECT count(*) FROM walsizer_history WHERE id > $before") // 0);
		});
	try_to_ask($node, 'SELECT walsizer_adjust()');	# answered when all is done
	my @steps = steps();
	$write_edit = first_step(qr/auto\.conf/, @steps);
	wait_for_restart($node, $pid) if @steps >= $step;
	adjust($node);
	is(setting_mb($node), 7, "$what: the edit is in effect");
	note_is_removed($node, $what);
	unlike(auto_conf($node), qr/max_wal_size|walsizer/, "$what: walsizer's lines are removed");
	no_one_is_suspected($what);
	write_file($node->data_dir . '/postgresql.conf', $conf);
	$node->reload;
	wait_for($node, 'max_wal_size = 4 * 1048576');
	$node->safe_psql('postgres', 'SELECT walsizer_forget()');
	# what an administrator has changed is left alone until a restart
	restart();
	last if @steps < $step;
	$killed++;
}
cmp_ok($killed, '>=', 10, "making way for an edit has several steps ($killed)");

# ---- turned off meanwhile: what was asked for is finished, and nothing else

my $raised = raise('turned off');
my $pid = pid($node);
arm($pid, $write_edit, 'stop');
$node->append_conf('postgresql.conf', 'max_wal_size = 7MB');
$node->reload;
wait_until('the worker stops', sub { return slurp_file("/proc/$pid/stat") =~ /\) T/ });
steps();
set_conf($node, 'walsizer.enable = off');
kill 'KILL', $pid or die $!;
wait_for_restart($node, $pid);
is(adjust($node), q(none: walsizer.enable is off, and walsizer's value hides an edit of max_wal_size in the configuration file),
	'turned off: walsizer does not make way for an edit');
is(setting_mb($node), $raised, 'turned off: the value that walsizer set stays');
like(auto_conf($node), qr/^walsizer\.last_written/m, "turned off: walsizer's note stays");
is(revert($node), 'revert to 7 MB: applied', 'turned off: walsizer_revert() makes way for the edit');
write_file($node->data_dir . '/postgresql.conf', $conf);
$node->reload;
wait_for($node, 'max_wal_size = 4 * 1048576');
restart();

raise('turned off, revert');
set_conf($node, 'walsizer.enable = off');
$pid = pid($node);
arm($pid, $written_original, 'kill');
ask('SELECT walsizer_revert()', \my $nothing)->finish;
steps();
wait_for_restart($node, $pid);
adjust($node);
is(setting_mb($node), 4, 'turned off, revert: the original value is in effect');
note_is_removed($node, 'turned off, revert');
unlike(auto_conf($node), qr/max_wal_size|walsizer/, "turned off, revert: walsizer's lines are removed");
write_file($node->data_dir . '/postgresql.conf', $conf);
restart();
$node->stop;

done_testing();
