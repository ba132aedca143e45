
# Whose value is it: walsizer leaves alone what an administrator sets, and restores
# the original value of what it set itself.
#
# Failures of other tuners that this file covers: 12, a value that the
# administrator chose is lowered; 17 in part, ownership outlives a reset.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

# Cycles of five minutes: nothing happens but what is asked for, and an
# administrator's change is left alone until the server is restarted.
my $conf = "walsizer.predict = off\ncheckpoint_timeout = 5min\nrestart_after_crash = on\n";
my $node = make_node('node', live => 1, conf => $conf);
my $again = 'walsizer raises "max_wal_size" again when demand exceeds it; turn off "walsizer.enable" to keep the value';
my ($raised, $event, $offset);

# Have walsizer raise, from what is in effect; returns the new value in MB.
sub raise
{
	my ($what) = @_;
	my $old = setting_mb($node);

	force_checkpoints($node, 3 * trigger_point_mb($old, 1, 0.9));
	like(adjust($node), qr/^raise .*: applied$/, "$what: walsizer raises");
	my $new = setting_mb($node);
	cmp_ok($new, '>', $old, "$what: max_wal_size rises from $old MB to $new MB");
	wait_for($node, "set_by_walsizer = $new * 1048576");
	return $new;
}

# An administrator changed the value: it is noticed, adopted, and left alone.
sub is_external
{
	my ($what, $old, $new) = @_;

	wait_for($node, "max_wal_size = $new * 1048576 AND set_by_walsizer IS NULL");
	my $event = last_event($node);
	is($event->{action}, 'external', "$what: walsizer notices the change");
	is($event->{old_mb}, $old, "$what: the event has the old value");
	is($event->{new_mb}, $new, "$what: the event has the new value");
	is($event->{reason}, 'changed', "$what: the reason is that an administrator changed the value");
	is($event->{outcome}, 'none', "$what: walsizer has nothing to do");
	is(status($node)->{original_size}, $new * MB, "$what: the original value is the administrator's");
	is(setting_mb($node), $new, "$what: the administrator's value is in effect");
	return;
}

sub is_left_alone
{
	my ($what) = @_;
	my $events = history($node);
	my $value  = setting_mb($node);

	force_checkpoints($node, 2 * trigger_point_mb($value, 1, 0.9));
	is(adjust($node), 'none: an administrator changed or restored the setting less than checkpoint_timeout or five minutes ago, whichever is shorter',
		"$what: walsizer does not raise under load");
	is(setting_mb($node), $value, "$what: the administrator's value stays");
	is(scalar(history($node)), $events, "$what: nothing else is recorded");
	return;
}

# ---- changes by an administrator

$raised = raise('first');
$offset = log_offset($node);
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '60MB'");
$node->reload;
is_external('ALTER SYSTEM, up', $raised, 60);
is_left_alone('ALTER SYSTEM, up');
is(log_count($node,
		qr/LOG:  an administrator changed "max_wal_size" from $raised MB to 60 MB/, $offset),
	1, 'ALTER SYSTEM, up: the change is logged once');

$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '10MB'");
$node->reload;
is_external('ALTER SYSTEM, down', 60, 10);
is_left_alone('ALTER SYSTEM, down');

# The file edited by hand, while the server is down.
$node->stop;
$node->adjust_conf('postgresql.auto.conf', 'max_wal_size', '12MB');
$node->start;
wait_for_worker($node);
is_external('edited', 10, 12);

# Once more walsizer's, then RESET: back to postgresql.conf.
$node->restart;
wait_for_worker($node);
$raised = raise('after a restart');
is(status($node)->{original_size}, 12 * MB, 'the edited value is the original value');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->reload;
is_external('RESET', $raised, 4);
is_left_alone('RESET');

# postgresql.conf, where nothing stands in postgresql.auto.conf.
$node->append_conf('postgresql.conf', 'max_wal_size = 8MB');
$node->reload;
is_external('postgresql.conf', 4, 8);

# A change of walsizer's own value back to the original value is one as well.
$node->restart;
wait_for_worker($node);
$raised = raise('8MB');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '8MB'");
$node->reload;
is_external('the original value', $raised, 8);

# ---- a change by an administrator that was not reloaded yet

$node->restart;
wait_for_worker($node);
$raised = raise('pending');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '70MB'");
force_checkpoints($node, 3 * trigger_point_mb($raised, 1, 0.9));
like(adjust($node), qr/^raise .*: overridden\b/, 'pending: walsizer wants to raise');
is(status($node)->{message}, 'a change of "max_wal_size" in "postgresql.auto.conf" awaits a reload',
	'pending: walsizer does not overwrite a change that awaits a reload');
like(auto_conf($node), qr/^max_wal_size = '70MB'$/m, "pending: the administrator's line stays");
like(revert($node), qr/^revert to \d+ MB: overridden: a change of "max_wal_size"/,
	"pending: walsizer_revert() does not remove the administrator's line");
is(setting_mb($node), $raised, 'pending: the value in effect stays');

# The server does not read its files again after a crash, not even good ones.
my $crash = sub {
	my $pid = pid($node);
	kill 'KILL', $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
	wait_for_worker($node, $pid);
};
my $files = slurp_file($node->data_dir . '/postgresql.conf');
$crash->();
force_checkpoints($node, 3 * trigger_point_mb($raised, 1, 0.9));
like(adjust($node), qr/^raise .*: overridden\b/,
	'pending: walsizer does not overwrite the change after a crash');
$node->append_conf('postgresql.conf', 'max_connections = = 3');
$crash->();
pass('pending: the worker comes back after a crash with unreadable files');
write_file($node->data_dir . '/postgresql.conf', $files);
like(auto_conf($node), qr/^max_wal_size = '70MB'$/m, "pending: the administrator's line is still there");
$node->reload;
is_external('pending', $raised, 70);
wait_for($node, 'outcome IS NULL');

# Also where the value in effect is not walsizer's; taken back, it is none.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '8MB'");
$node->reload;
is_external('pending again', 70, 8);
$node->restart;
wait_for_worker($node);
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
force_checkpoints($node, 24);
like(adjust($node), qr/^raise .*: overridden\b/, 'pending RESET: walsizer wants to raise');
unlike(auto_conf($node), qr/max_wal_size/, 'pending RESET: walsizer does not write max_wal_size');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '8MB'");
wait_for($node, 'outcome IS NULL');
like(adjust($node), qr/^raise .*: applied$/, 'pending RESET, taken back: walsizer raises');
is(revert($node), "revert to 8 MB: applied: $again", 'pending RESET, taken back: walsizer_revert() succeeds');
is(setting_mb($node), 8, "pending RESET, taken back: the administrator's value is back");

# Also where it sets what is in effect, to keep that, or removes what walsizer would
# restore.
$node->restart;
wait_for_worker($node);
$raised = raise('pending, the same value');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '${raised}MB'");
force_checkpoints($node, 3 * trigger_point_mb($raised, 1, 0.9));
like(adjust($node), qr/^raise .*: overridden\b/, 'pending, the same value: walsizer does not raise');
like(revert($node), qr/^revert to 8 MB: overridden\b/,
	'pending, the same value: walsizer_revert() does not change the value');
like(auto_conf($node), qr/^max_wal_size = '${raised}MB'$/m,
	"pending, the same value: the administrator's line stays");
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
like(revert($node), qr/^revert to 8 MB: overridden\b/,
	'pending RESET: walsizer_revert() does not change the value');
unlike(auto_conf($node), qr/^max_wal_size/m, 'pending RESET: walsizer does not write the line again');
$node->reload;
is_external('pending RESET', $raised, 8);

# ---- walsizer_revert()

$node->append_conf('postgresql.conf', 'max_wal_size = 9MB');
$node->safe_psql('postgres', "ALTER SYSTEM RESET max_wal_size");
$node->restart;
wait_for_worker($node);
is_external('while the server was down', 8, 9);
$node->restart;
wait_for_worker($node);
$raised = raise('revert');
is_deeply(
	act_row($node, 'walsizer_revert()'),
	{
		action     => 'revert',
		old_size   => $raised * MB,
		new_size   => 9 * MB,
		limited_by => undef,
		outcome    => 'applied',
		message    => $again,
		old_mb     => $raised,
		new_mb     => 9,
	},
	'revert: the answer says what was done, and that walsizer raises again');
is(setting_mb($node), 9, 'revert: the original value is in effect');
unlike(auto_conf($node), qr/max_wal_size/, 'revert: postgresql.auto.conf has no max_wal_size');
note_is_removed($node, 'revert');
$event = last_event($node);
is($event->{action}, 'revert', 'revert: the history has the action');
is($event->{old_mb}, $raised, 'revert: the history has the old value');
is($event->{new_mb}, 9, 'revert: the history has the new value');
is($event->{outcome}, 'applied', 'revert: the history has the outcome');
is(status($node)->{set_by_walsizer}, undef, "revert: no value is walsizer's");
is_left_alone('revert');

is_deeply(
	act_row($node, 'walsizer_revert()'),
	{
		action     => 'none',
		old_size   => 9 * MB,
		new_size   => 9 * MB,
		limited_by => undef,
		outcome    => 'none',
		message    => '"max_wal_size" was not set by walsizer',
		old_mb     => 9,
		new_mb     => 9,
	},
	"revert again: the answer says that the value is not walsizer's");
is(last_event($node)->{id}, $event->{id}, 'revert again: nothing is recorded');

# Under a load for which a rule would raise at the next sample.  The worker is
# stopped, so that this sample is the request.
$node->restart;
wait_for_worker($node);
$raised = raise('revert under load');
my $worker = stop_worker($node);
write_wal($node, 0.5 * trigger_point_mb($raised, 1, 0.9));
set_conf($node, 'walsizer.predict = on');
$offset = log_offset($node);
my $answer;
my $asked = start_asking($node,
	q{SELECT action || ' to ' || new_size / 1048576 || ': ' || outcome FROM walsizer_revert()}, \$answer);
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'walsizer_revert' AND wait_event_type = 'Extension'}
) or die 'nobody asks';
kill 'CONT', $worker or die $!;
$asked->finish;
is($answer, "revert to 9: applied\n", 'revert under load: the original value is restored');
is(log_count($node, qr/received SIGHUP, reloading configuration files/, $offset), 1,
	'revert under load: the server reloads once');
is(log_count($node, qr/walsizer changed "max_wal_size" from $raised MB to 9 MB/, $offset), 1,
	'revert under load: max_wal_size falls in one step');
set_conf($node, 'walsizer.predict = off');

# The original value stood in postgresql.auto.conf: it is written there again.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '6MB'");
$node->restart;
wait_for_worker($node);
is(last_event($node)->{new_mb}, 6, 'walsizer notices the value of ALTER SYSTEM');
$node->restart;
wait_for_worker($node);
$raised = raise('revert to ALTER SYSTEM');
like(auto_conf($node), qr/^walsizer.last_written = '${raised}MB instead of 6MB by ALTER SYSTEM'$/m,
	'revert: the note has the value of ALTER SYSTEM');
is(revert($node), "revert to 6 MB: applied: $again", 'revert: the value of ALTER SYSTEM is restored');
like(auto_conf($node), qr/^max_wal_size = '6MB'$/m,
	'revert: the value of ALTER SYSTEM is in postgresql.auto.conf again');

# An attempt that fails says why; with enable = off there is nothing to say.
$node->restart;
wait_for_worker($node);
$raised = raise('revert with trouble');
mkdir $node->data_dir . '/postgresql.auto.conf.tmp' or die $!;
like(revert($node), qr/^revert to 6 MB: failed: could not open file/,
	'revert: the outcome of a revert that fails has the error');
is(setting_mb($node), $raised, 'revert: max_wal_size stays if the revert fails');
is(status($node)->{set_by_walsizer}, $raised * MB,
	"revert: the value is still walsizer's if the revert fails");
rmdir $node->data_dir . '/postgresql.auto.conf.tmp' or die $!;
set_conf($node, 'walsizer.enable = off');
is(revert($node), 'revert to 6 MB: applied',
	'revert: it works while walsizer is disabled, and has no message');

# ---- walsizer.enable = off

$node->restart;
wait_for_worker($node);
is(status($node)->{state}, 'disabled', 'disabled: the status shows it');
force_checkpoints($node, 3 * trigger_point_mb(6, 1, 0.9));
is(adjust($node), 'none: walsizer.enable is off', 'disabled: walsizer does not raise');
is(setting_mb($node), 6, 'disabled: max_wal_size stays');
cmp_ok(status($node)->{checkpoints_forced}, '>', 0, 'disabled: walsizer counts forced checkpoints');
set_conf($node, 'walsizer.enable = on');
like(adjust($node), qr/^raise .*: applied$/, 'enabled again: walsizer raises for the load that it has seen');
$raised = setting_mb($node);

# Switched off, it leaves its value where it is.
set_conf($node, 'walsizer.enable = off');
adjust($node);
is(setting_mb($node), $raised, 'disabled: the value that walsizer set stays');
is(status($node)->{set_by_walsizer}, $raised * MB, "disabled: the value is still known as walsizer's");

# ---- an administrator's change is left alone for one checkpoint_timeout, not longer

set_conf($node, 'checkpoint_timeout = 30s');
set_conf($node, 'walsizer.predict = on');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '5MB'");
my $changed = time;
$node->reload;
is_external('at last', $raised, 5);
set_conf($node, 'walsizer.enable = on');
my $load   = start_load($node, 2);
my $loaded = time;
wait_for($node, 'set_by_walsizer > 5 * 1048576');
stop_load($load);
my @events = history($node);
my ($last) = grep { $events[$_]{action} eq 'external' } reverse 0 .. $#events;
my $next   = $events[ $last + 1 ];
is($events[$last]{new_mb}, 5, "at last: the history has the administrator's value");
is($next->{action}, 'raise', 'at last: walsizer raises again under load');
is($next->{old_mb}, 5, 'at last: the raise begins with the new value');
cmp_ok($next->{epoch} - $changed, '>=', 30, 'at last: the raise comes a checkpoint_timeout later');
my $due = $events[$last]{epoch} + 30;
$due = $loaded if $loaded > $due;
cmp_ok($next->{epoch}, '<', $due + 30, 'at last: the raise comes before two checkpoint_timeout are over');

# ---- each of several changes to the same size has its own forced_after

set_conf($node, "walsizer.enable = off\ncheckpoint_timeout = 5min");
foreach my $mb (40, 50, 40)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '${mb}MB'");
	$node->reload;
	wait_for($node, "max_wal_size = $mb * 1048576");
	force_checkpoints($node, 30) if $mb == 50;
}
set_conf($node, 'checkpoint_timeout = 30s');
wait_until('all are followed up',
	sub { @events = (history($node))[-3 .. -1]; return !grep { !defined $_->{forced_after} } @events });
is(join(' ', map { $_->{new_mb} } @events), '40 50 40',
	'several changes: the history has the same size twice');
cmp_ok($events[0]{forced_after}, '>', 0, 'several changes: a checkpoint is forced after the first 40 MB');
is($events[2]{forced_after}, 0, 'several changes: no checkpoint is forced after the second 40 MB');
$node->stop;

# ---- walsizer_revert() by the session that has just turned walsizer off

# The session asks before it has reread the configuration itself: the postmaster
# sleeps, and signals nobody, until the worker waits for the reload.
$node = make_node('just_off', conf => $conf);
$raised = raise('just turned off');
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;
my ($stdin, $stdout, $stderr) = ("SELECT 'connected';\n", '', '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
	'<', \$stdin, '>', \$stdout, '2>', \$stderr,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$session->pump until $stdout =~ /connected/;
kill 'STOP', $postmaster or die $!;
$stdin = "ALTER SYSTEM SET walsizer.enable = off;\nSELECT pg_reload_conf();\n"
  . "SELECT new_size / 1048576, outcome, message FROM walsizer_revert();\n";
my $written = eval {
	wait_until('the worker removes its line',
		sub { $session->pump_nb; return auto_conf($node) !~ /^max_wal_size/m });
};
kill 'CONT', $postmaster or die $!;
die $@ unless $written;
$session->finish;
is($stdout . $stderr, "connected\nt\n4|applied|\n",
	'just turned off: walsizer_revert() does not say that walsizer raises again');

$node->safe_psql('postgres', 'ALTER SYSTEM RESET walsizer.enable');
$node->restart;
wait_for_worker($node);
raise('dry run');
set_conf($node, 'walsizer.dry_run = on');
is(revert($node), 'revert to 4 MB: applied',
	'dry run: walsizer_revert() reverts, and does not say that walsizer raises again');
$node->stop;

done_testing();
