
# The main job: max_wal_size rises to what the load needs (010_pgbench.pl has a
# load that goes on).
#
# Failures of other tuners that this file covers: 3, one forced checkpoint in
# each interval is tolerated for ever; 11, the first load after the start goes
# unnoticed; 14, there is no extension to create.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

my ($node, $offset, $event, $status);

# ---- the classic rule alone

# The interval is long enough for the worker to look only when asked.
$node = make_node('classic', conf => "walsizer.predict = off\ncheckpoint_timeout = 5min\n");

# One checkpoint of this server's life was forced, the very first load is it.
force_one_checkpoint($node);
$status = status($node);
is($status->{checkpoints_forced}, 1, 'one checkpoint is forced');
my $answer = adjust($node);
like($answer, qr/^raise to (\d+) MB: applied$/,
	'walsizer raises after one forced checkpoint');

$event = last_event($node);
is($event->{id}, 1, 'history: the first event has ID 1');
is($event->{action}, 'raise', 'history: the action is a raise');
is($event->{reason}, 'forced', 'history: the reason is forced checkpoints');
is($event->{explanation}, 'WAL volume forced checkpoints',
	'history: the explanation says that WAL volume forced checkpoints');
is($event->{outcome}, 'applied', 'history: the raise is applied');
is($event->{message}, undef, 'history: a raise that is applied has no message');
is($event->{old_mb}, 4, 'history: the old size is the original value');
is($event->{new_mb}, ($answer =~ /(\d+) MB/)[0], 'history: the new size is the one that the answer names');
is($event->{wanted_size}, $event->{new_size}, 'history: the size that was wanted is the new size');
is($event->{limited_by}, undef, 'history: no limit applies');
is($event->{checkpoints_forced}, 1, 'history: the event has the number of forced checkpoints');
cmp_ok($event->{num_requested}, '>=', 1, 'history: the server counts the forced checkpoint as requested');
is($event->{num_timed}, 0, 'history: no checkpoint is timed');
cmp_ok($event->{demand}, '>=', 2 * MB, 'history: demand is at least what was written');
cmp_ok($event->{demand}, '<', 6 * MB, 'history: demand is not much more than what was written');
is($event->{new_mb}, classic_size_mb($event, 1),
	'history: the size is for the demand and its headroom');
is($event->{checkpoint_timeout}, '00:05:00', 'history: the event has the checkpoint_timeout');
is($event->{checkpoint_completion_target}, 0.9, 'history: the event has the checkpoint_completion_target');
is($event->{role}, 'primary', 'history: the event has the role of the server');
cmp_ok(abs($event->{epoch} - time), '<', 60, 'history: the event has the time');

wait_for($node, 'set_by_walsizer IS NOT NULL');
$status = status($node);
is($status->{max_wal_size}, $event->{new_size}, 'status: max_wal_size is the new size');
is($status->{original_size}, 4 * MB, 'status: the original value is the one before the raise');
is($status->{set_by_walsizer}, $event->{new_size}, 'status: set_by_walsizer is the new size');
is($status->{trigger_point}, MB * trigger_point_mb($event->{new_mb}, 1, 0.9),
	'stats: the trigger point is that of the new size');
# Half of what is free for this user; what is kept for root is not.  Others may
# write meanwhile, and remove what they wrote.
wait_until('the limit of the disk is half of the free space', sub {
	my ($df) = run_command([ 'df', '--block-size=1', '--output=avail', $node->data_dir ]);
	my ($free) = $df =~ /(\d+)\s*\z/;

	return abs(2 * status($node)->{disk_limit} - $free) < 0.05 * $free + 200 * MB;
});
pass('stats: the limit of the disk is half of the free space');
is(setting_mb($node), $event->{new_mb}, 'the new size is in effect');
like(auto_conf($node), qr/^max_wal_size = '$event->{new_mb}MB'$/m,
	'the file that ALTER SYSTEM writes has the new value');
like(auto_conf($node), qr/^walsizer.last_written = '$event->{new_mb}MB instead of 4MB'$/m,
	"a note in that file says that the value is walsizer's");
is($node->safe_psql('postgres',
		"SELECT sourcefile ~ 'postgresql.auto.conf' FROM pg_settings WHERE name = 'max_wal_size'"),
	't', 'the server takes the value from postgresql.auto.conf');
is(adjust($node), 'none: the value in effect suffices', 'nothing is changed while the new value suffices');
$node->stop;

# ---- walsizer.threshold

$node = make_node('threshold',
	conf => "walsizer.predict = off\nwalsizer.threshold = 2\ncheckpoint_timeout = 5min\n");
force_one_checkpoint($node);
like(adjust($node), qr/^none: /, 'walsizer.threshold = 2 tolerates one forced checkpoint');
force_one_checkpoint($node);
like(adjust($node), qr/^raise .*: applied$/, 'walsizer.threshold = 2 does not tolerate two');
$node->stop;

# ---- prediction: before the first one is forced

# Step by step, each of which the worker sees, so that no stall of the machine
# carries the load past what is left.
$node = make_node('predict', live => 1, conf => "max_wal_size = 40MB\ncheckpoint_timeout = 1h\n");
$offset = log_offset($node);
do
{
	write_wal($node, 1);
	wait_for_sample($node);
	$status = status($node);
} while ($status->{wal_since_checkpoint} < 30 * MB && $status->{checkpoints_forced} == 0);
cmp_ok($status->{set_by_walsizer}, '>', 40 * MB, 'prediction: walsizer raises');
is(count_forced_in_log($node, $offset), 0, 'prediction: the raise comes before a checkpoint is forced');
is((history($node))[0]{reason}, 'predicted', 'prediction: the history has the reason');
is((history($node))[0]{checkpoints_forced}, 0, 'prediction: the history has no forced checkpoint');
$node->stop;

done_testing();
