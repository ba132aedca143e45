
# The main job: max_wal_size rises to what the load needs, and checkpoints are
# no longer forced.
#
# Failures of other tuners that this file covers: 3, one forced checkpoint in
# each interval is tolerated for ever; 8, a size far beyond what the load
# needs; 11, the first load after the start goes unnoticed; 14, there is no
# extension to create; 16, a load that is served well is taken for no load.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use WalsizerTest;

my ($node, $offset, $event, $status);

# ---- the classic rule alone

# The interval is long enough for the worker to look only when asked.
$node = make_node('classic', conf => "walsizer.predict = off\ncheckpoint_timeout = 5min\n");

# One checkpoint of this server's life was forced, the very first load is it.
force_one_checkpoint($node);
$status = status($node);
is($status->{checkpoints_forced}, 1, 'one checkpoint was forced');
my $answer = adjust($node);
like($answer, qr/^raise to (\d+) MB: applied$/,
	'and that is one too many');

$event = last_event($node);
is($event->{id}, 1, 'history: id');
is($event->{action}, 'raise', 'history: action');
is($event->{reason}, 'forced', 'history: reason');
is($event->{explanation}, 'WAL volume forced checkpoints', 'history: explanation');
is($event->{outcome}, 'applied', 'history: outcome');
is($event->{message}, undef, 'history: nothing to explain');
is($event->{old_mb}, 4, 'history: old size');
is($event->{new_mb}, ($answer =~ /(\d+) MB/)[0], 'history: new size');
is($event->{wanted_size}, $event->{new_size}, 'history: as wanted');
is($event->{limited_by}, undef, 'history: no limit');
is($event->{checkpoints_forced}, 1, 'history: forced checkpoints');
cmp_ok($event->{num_requested}, '>=', 1, 'history: which the server counts as requested');
is($event->{num_timed}, 0, 'history: none was timed');
cmp_ok($event->{demand}, '>=', 2 * MB, 'history: demand is at least what was written');
cmp_ok($event->{demand}, '<', 6 * MB, 'history: and not much more');
is($event->{new_mb}, classic_size_mb($event, 1),
	'history: the size is for the demand and its headroom');
is($event->{checkpoint_timeout}, '00:05:00', 'history: checkpoint_timeout');
is($event->{checkpoint_completion_target}, 0.9, 'history: checkpoint_completion_target');
is($event->{role}, 'primary', 'history: role');
cmp_ok(abs($event->{epoch} - time), '<', 60, 'history: time');

wait_for($node, 'set_by_walsizer IS NOT NULL');
$status = status($node);
is($status->{max_wal_size}, $event->{new_size}, 'status: value in effect');
is($status->{original_size}, 4 * MB, 'status: original value');
is($status->{set_by_walsizer}, $event->{new_size}, 'status: own value');
is($status->{trigger_point}, MB * trigger_point_mb($event->{new_mb}, 1, 0.9), 'stats: trigger point');
# Half of what is free for this user; what is kept for root is not.  Others may
# write meanwhile.
my ($df) = run_command([ 'df', '--block-size=1', '--output=avail', $node->data_dir ]);
my ($free) = $df =~ /(\d+)\s*\z/;
cmp_ok(abs(2 * $status->{disk_limit} - $free), '<', 0.05 * $free + 200 * MB,
	'stats: limit of the disk');
is(setting_mb($node), $event->{new_mb}, 'the server knows it');
like(auto_conf($node), qr/^max_wal_size = '$event->{new_mb}MB'$/m,
	'and it will after a restart');
like(auto_conf($node), qr/^walsizer.last_written = '$event->{new_mb}MB instead of 4MB'$/m,
	'with a note that says whose value that is');
is($node->safe_psql('postgres',
		"SELECT sourcefile ~ 'postgresql.auto.conf' FROM pg_settings WHERE name = 'max_wal_size'"),
	't', 'as if ALTER SYSTEM had been used');
is(adjust($node), 'none: the value in effect suffices', 'which is enough');
$node->stop;

# ---- walsizer.threshold

$node = make_node('threshold',
	conf => "walsizer.predict = off\nwalsizer.threshold = 2\ncheckpoint_timeout = 5min\n");
force_one_checkpoint($node);
like(adjust($node), qr/^none: /, 'walsizer.threshold tolerates one');
force_one_checkpoint($node);
like(adjust($node), qr/^raise .*: applied$/, 'but not two');
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
cmp_ok($status->{set_by_walsizer}, '>', 40 * MB, 'raised');
is(count_forced_in_log($node, $offset), 0, 'raised before a checkpoint was forced');
is((history($node))[0]{reason}, 'predicted', 'history: the reason');
is((history($node))[0]{checkpoints_forced}, 0, 'history: none was forced');
$node->stop;

# ---- pgbench

# With segments of the common size, and a rate that a busy machine achieves,
# so that the load is the same for the whole test.
$node = make_node('pgbench', segsize => 16, conf => <<'END');
max_wal_size = 64MB
min_wal_size = 32MB
shared_buffers = 128MB
walsizer.enable = off
walsizer.sample_interval = 500ms
END
$node->command_ok([ 'pgbench', '-i', '-q', '-s', '5', $node->connstr('postgres') ],
	'pgbench has its tables');
$node->safe_psql('postgres', 'CHECKPOINT');
$node->append_conf('postgresql.conf', 'walsizer.enable = on');
$node->restart;
wait_for_worker($node);
$node->safe_psql('postgres', 'SELECT walsizer_forget()');

# What is asked of the server, by ourselves and once before the load, so that no
# window of walsizer's begins earlier than ours.
my $query = <<'END';
SELECT extract(epoch FROM clock_timestamp())::float8 AS t, pg_current_wal_lsn() - '0/0' AS lsn,
  checkpoints_timed, checkpoints_forced, checkpoints_forced_old_value, max_wal_size, set_by_walsizer
FROM walsizer_status, walsizer_stats
END
my ($most, $least, $quiet, $intervals) = (0, 0, 0, 0);
my @samples = WalsizerTest::rows($node, $query);
my $last;

# What does not get done in time is left out, not made up for in a burst.
$offset = log_offset($node);
my $load = IPC::Run::start(
	[
		'pgbench', '-n', '-c', '4', '-T', '3600', '-R', '600', '-L', '200',
		$node->connstr('postgres')
	],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');

# From the raise on, let the load run until two intervals in a row have ended with
# a timed checkpoint, by walsizer's counts and by the server's log.
my $give_up = time + 15 * 30;
while ($quiet < 2 && $intervals < 12 && time < $give_up)
{
	usleep(250_000);
	my ($now) = WalsizerTest::rows($node, $query);
	$now->{offset} = log_offset($node);

	# Measure the demand ourselves: WAL written in no less than 30 seconds.
	push @samples, $now;
	shift @samples while @samples > 1 && $samples[1]{t} <= $now->{t} - 30;
	my $written = $now->{lsn} - $samples[0]{lsn};
	$most = $written if $written > $most;

	$last = $now if !$last && $now->{set_by_walsizer};
	next if !$last || $now->{checkpoints_timed} == $last->{checkpoints_timed};

	# And at the least, what was written in the interval that has ended, which
	# a slow machine sees a little late.
	my $seconds = $now->{t} - $last->{t};
	$least = ($now->{lsn} - $last->{lsn}) * ($seconds > 30 ? 30 / $seconds : 1);
	my $forced = count_forced_in_log($node, $last->{offset})
	  || grep { $now->{$_} != $last->{$_} } qw(checkpoints_forced checkpoints_forced_old_value max_wal_size);
	$quiet = $forced ? 0 : $quiet + 1;
	$intervals++;
	$last = $now;
}
stop_load($load);
is($quiet, 2, 'in the end all checkpoints are timed');
cmp_ok(log_count($node, qr/checkpoint starting: time/, $offset), '>=', 2,
	'by the log of the server, too');

my @events = history($node);
my @raises = grep { $_->{action} eq 'raise' } @events;
my $final  = setting_mb($node);
my $needed = size_for_mb($most, 16, 0.9);

note(sprintf('demand %.1f to %.1f MB, size for it %d to %d MB, max_wal_size 64 MB',
		$least / MB, $most / MB, size_for_mb($least, 16, 0.9), $needed)
	  . join('', map { " -> $_->{new_mb} MB" } @raises));
cmp_ok($needed, '>', 64, 'the load needs more than was there');
cmp_ok(scalar(@raises), '>=', 1, 'walsizer raised');
cmp_ok(scalar(@raises), '<=', 4, 'in a few steps');
is(scalar(@events), scalar(@raises), 'and did nothing else');
# The size for a demand has a trigger point of a segment more than the demand: for a
# redo pointer at the end of its segment, which need not have been met.
cmp_ok(trigger_point_mb($final, 16, 0.9) * MB, '>=', $least, 'to what the load needs');
cmp_ok($final, '<=', 1.6 * $needed, 'and not much more');
is(scalar(grep { $_->{outcome} ne 'applied' } @events), 0, 'all was applied');
$node->stop;

done_testing();
