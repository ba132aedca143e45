
# Segments of other sizes than 16 MB, and the ends of the range of values.
#
# Failure of other tuners that this file covers: 13, integer overflow.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $conf = "walsizer.predict = off\ncheckpoint_timeout = 5min\n";

foreach my $segsize (1, 64)
{
	my $least = 2 * $segsize;
	my $node  = make_node(
		"node_$segsize",
		segsize => $segsize,
		conf => $conf . "max_wal_size = ${least}MB\nmin_wal_size = ${least}MB\n");

	is($node->safe_psql('postgres', 'SHOW wal_segment_size'),
		"${segsize}MB", "segments have $segsize MB");
	is(status($node)->{trigger_point}, $segsize * MB, 'the trigger point is one segment');

	force_checkpoints($node, 3 * $segsize + 1);
	like(adjust($node), qr/^raise .*: applied$/, 'walsizer raises');
	my $event = last_event($node);
	is($event->{new_mb}, classic_size_mb($event, $segsize),
		"the raise is to $event->{new_mb} MB, the size for the demand");
	is($event->{new_mb} % $segsize, 0, 'the size is in whole segments');
	is(setting_mb($node), $event->{new_mb}, 'the size is in effect');
	wait_for($node, 'set_by_walsizer IS NOT NULL');
	is(status($node)->{trigger_point}, MB * trigger_point_mb($event->{new_mb}, $segsize, 0.9),
		'the trigger point is that of the new size');

	$node->restart;
	wait_for_worker($node);
	is(setting_mb($node), $event->{new_mb}, 'the raise survives a restart');
	$node->stop;
}

# A walsizer.max that is no whole number of segments, and one below two of them.
my $node = make_node(
	'max',
	segsize => 64,
	conf    => $conf . "max_wal_size = 128MB\nmin_wal_size = 128MB\nwalsizer.max = 300MB\n");
force_checkpoints($node, 200);
is(adjust($node), 'raise to 256 MB, limited by max: applied',
	'walsizer.max is rounded down to whole segments');
revert($node);
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
is(act($node, "walsizer_boost('200MB', '1 hour')"), 'raise to 256 MB: applied',
	'a planned size is rounded up to whole segments');
is(act($node, "walsizer_boost('300MB', '1 hour')"), 'none, limited by max: the limit is 256 MB',
	'a size that exceeds the whole segments of walsizer.max is limited');
$node->safe_psql('postgres', 'SELECT walsizer_boost_end()');
set_conf($node, 'walsizer.max = 2MB');
wait_for($node, 'size_limit < 256 * 1048576');
is(status($node)->{size_limit}, 128 * MB,
	'no limit is below two segments, with which the server would not start');
$node->stop;

# A value that a reload accepts, and with which no server starts, is not restored.
$node = make_node('one', segsize => 16, conf => $conf . "max_wal_size = 32MB\nmin_wal_size = 32MB\n");
set_conf($node, 'max_wal_size = 16MB');
wait_for($node, 'original_size = 16 * 1048576');
is(act($node, "walsizer_boost('64MB', '1 hour')"), 'raise to 64 MB: applied',
	'walsizer raises from one segment');
like(revert($node), qr/^revert to 32 MB: applied/, 'walsizer_revert() restores two segments instead of one');
$node->restart;
is(setting_mb($node), 32, 'the server starts with two segments');
$node->stop;

# The largest segments: two of them exceed what an int holds in bytes.
$node = make_node('large', segsize => 1024, conf => "max_wal_size = 2GB\nmin_wal_size = 2GB\n");
my (undef, undef, $stderr) = $node->psql('postgres', "SELECT walsizer_boost('1GB', '1 hour')");
like($stderr, qr/ERROR:  size must be between 2048 MB and /, 'two segments of 1 GB are the smallest size');

# The server's own default is less than two of them, so our line stays if no other sets a value.
is(act($node, "walsizer_boost('4GB', '1 hour')"), 'raise to 4096 MB: applied', 'walsizer raises in segments of 1 GB');
$node->adjust_conf('postgresql.conf', 'max_wal_size', undef);
$node->reload;
like(adjust($node), qr/^none: /, 'walsizer makes no way for a default with which the server would not start');
is(setting_mb($node), 4096, 'its value stays');
like(revert($node), qr/^revert to 2048 MB: applied/, 'walsizer_revert() writes the original value instead of the default');
$node->restart;
is(setting_mb($node), 2048, 'the server starts with it');
$node->stop;

# The largest values there are.
$node = make_node('largest', conf => <<'END');
max_wal_size = 2147483647MB
walsizer.max = 2147483647MB
walsizer.headroom = 4.0
walsizer.threshold = 1000
END
my $pid = pid($node);
write_wal($node, 20);
like(adjust($node), qr/^none: the value in effect suffices$/, 'the largest max_wal_size suffices');
is(status($node)->{trigger_point}, MB * trigger_point_mb(2147483647, 1, 0.9),
	'the trigger point of the largest max_wal_size is known');
is(status($node)->{max_wal_size}, MB * 2147483647, 'the largest max_wal_size is known in bytes');
set_conf($node, 'checkpoint_timeout = 1d');
like(adjust($node), qr/^none: /, 'the largest checkpoint_timeout causes no error');
is(pid($node), $pid, 'the worker is the same');
is(log_count($node, qr/(ERROR|FATAL|PANIC):/), 0, 'the log has no error');
$node->stop;

done_testing();
