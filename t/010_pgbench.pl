
# Under a load that goes on, max_wal_size rises to what it needs, and checkpoints are
# no longer forced.
#
# Failures of other tuners that this file covers: 3, one forced checkpoint in
# each interval is tolerated for ever; 8, a size far beyond what the load
# needs; 16, a load that is served well is taken for no load.

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

# With segments of the common size, and a rate that a busy machine achieves,
# so that the load is the same for the whole test.
my $node = make_node('pgbench', segsize => 16, conf => <<'END');
max_wal_size = 64MB
min_wal_size = 32MB
shared_buffers = 128MB
walsizer.enable = off
walsizer.sample_interval = 500ms
END
$node->command_ok([ 'pgbench', '-i', '-q', '-s', '5', $node->connstr('postgres') ],
	'pgbench creates its tables');
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
my $offset = log_offset($node);
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
is($quiet, 2, 'the last two intervals end with timed checkpoints and have no forced one');
cmp_ok(log_count($node, qr/checkpoint starting: time/, $offset), '>=', 2,
	'the log of the server has timed checkpoints');

my @events = history($node);
my @raises = grep { $_->{action} eq 'raise' } @events;
my $final  = setting_mb($node);
my $needed = size_for_mb($most, 16, 0.9);

note(sprintf('demand %.1f to %.1f MB, size for it %d to %d MB, max_wal_size 64 MB',
		$least / MB, $most / MB, size_for_mb($least, 16, 0.9), $needed)
	  . join('', map { " -> $_->{new_mb} MB" } @raises));
cmp_ok($needed, '>', 64, 'the load needs more than the original value');
cmp_ok(scalar(@raises), '>=', 1, 'walsizer raises');
cmp_ok(scalar(@raises), '<=', 4, 'walsizer raises in a few steps');
is(scalar(@events), scalar(@raises), 'walsizer only raises');
# The size for a demand has a trigger point of a segment more than the demand: for a
# redo pointer at the end of its segment, which need not have been met.
cmp_ok(trigger_point_mb($final, 16, 0.9) * MB, '>=', $least, 'walsizer raises to what the load needs');
cmp_ok($final, '<=', 1.6 * $needed, 'walsizer raises to not much more than the load needs');
is(scalar(grep { $_->{outcome} ne 'applied' } @events), 0, 'all raises are applied');
$node->stop;

done_testing();
