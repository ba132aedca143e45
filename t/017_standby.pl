
# A standby is sized by what its primary writes, against its own disk, and is
# ready for the day on which it becomes the primary.
#
# Failure of other tuners that this file covers: 9, nothing runs on a standby,
# restartpoints are forced, and after promotion all has to be learned anew.
#
# checkpoint_timeout cannot be less than 30 seconds, and two intervals before
# and two after a promotion are what this is about: all runs side by side.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use List::Util qw(uniq);
use Test::More;
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my ($status, $event, $load);

# 1.5 MB/s are 45 MB in checkpoint_timeout.
my $rate   = 1.5;
my $needed = size_for_mb($rate * 30 * MB, 1, 0.9);

my $primary = make_node('primary', live => 0, streaming => 1, conf => <<'END');
walsizer.enable = off
walsizer.sample_interval = 200ms
wal_log_hints = on
max_wal_senders = 10
END
$primary->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('late', true)");
$primary->backup('early');
set_conf($primary, 'walsizer.enable = on');
$load = start_load($primary, $rate);

# A standby from a backup; what its name says of it is checked further down.
sub make_standby
{
	my ($name, $source, $backup, $conf, $volume) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($primary, $backup, has_streaming => 1);
	$node->enable_streaming($source);
	$node->append_conf('postgresql.conf', "walsizer.enable = on\n" . ($conf // ''));
	if ($volume)
	{
		move_wal($node, $volume);
		# What a backup has that came by here before the first raise, and by
		# postgresql.auto.conf after it.
		unlink $node->data_dir . '/pg_stat/walsizer.state' or die $!;
	}
	$node->start unless $name eq 'catching_up';
	return $node;
}

# max_wal_size in postgresql.auto.conf, in MB.
sub setting_in_file
{
	return auto_conf($_[0]) =~ /^max_wal_size = '(\d+)MB'$/m ? $1 : undef;
}

# Who begins late, or is behind when the timeline changes, needs older WAL.
my $keep = "wal_keep_size = '300MB'\n";
my $standby = make_standby('standby', $primary, 'early', $keep);
$standby->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('cascade', true)");
my $cascade = make_standby('cascade', $standby, 'early', "primary_slot_name = 'cascade'\n");
my $warm    = make_standby('warm', $primary, 'early', "hot_standby = off\n");
my $behind  = make_standby('catching_up', $primary, 'early',
	"primary_slot_name = 'late'\nmax_wal_size = " . ($needed + 16) . "MB\n");
my $asleep = log_offset($warm);

# A primary that makes no checkpoint, and writes as much.
my $rare = make_node('rare', live => 0, streaming => 1, conf => <<'END');
walsizer.enable = off
checkpoint_timeout = 1h
max_wal_size = 16GB
END
$rare->backup('early');
my $follower = PostgreSQL::Test::Cluster->new('follower');
$follower->init_from_backup($rare, 'early', has_streaming => 1);
$follower->append_conf('postgresql.conf',
	"walsizer.enable = on\ncheckpoint_timeout = 30s\nmax_wal_size = 4MB\n");
$follower->start;
wait_for_worker($follower);
my $redo = $rare->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()');
my $rare_load = start_load($rare, $rate);

wait_for_worker($standby);
$status = status($standby);
is($status->{role}, 'standby', 'walsizer runs on a hot standby');
is($status->{state}, 'active', 'walsizer is active on a standby');

# ---- the primary raises for itself, and the standby for what the primary writes

wait_for($primary, "set_by_walsizer >= $needed * 1048576");
wait_for($standby, "set_by_walsizer >= $needed * 1048576");
($event) = history($standby);
is($event->{action}, 'raise', 'the standby raises');
is($event->{old_mb}, 4, 'the first raise of the standby starts at the value in effect');
is($event->{role}, 'standby', 'the history has the role of the standby');
is_deeply([ uniq(map { $_->{reason} } history($standby)) ],
	['primary'],
	'the standby raises for what the primary writes, never for the speed of replay');
is($event->{outcome}, 'applied', 'the raise on a standby is applied before a promotion');
# the rate may have raised it before its window has as much
wait_for($standby, "demand >= 0.7 * $rate * 30 * 1048576");
$status = status($standby);
cmp_ok($status->{demand}, '>=', 0.7 * $rate * 30 * MB,
	'the demand of the standby is at least that of the primary');
cmp_ok($status->{demand}, '<=', 1.4 * $rate * 30 * MB,
	'the demand of the standby is not what replay reads at full speed');
cmp_ok($status->{max_wal_size}, '<=', 1.7 * $needed * MB,
	'the size of the standby is not for what replay reads at full speed');
like(auto_conf($standby), qr/^max_wal_size = '\d+MB'$/m, 'the standby writes its own postgresql.auto.conf');
wait_for_log_line($standby, qr/LOG:  walsizer changed "max_wal_size" from 4 MB/, 0);
like(slurp_file($standby->logfile),
	qr/LOG:  walsizer changed "max_wal_size" from 4 MB to \d+ MB\n.*DETAIL:  Reason: the primary writes more.*\. WAL that the primary writes within "checkpoint_timeout": \d+ MB\./,
	'the log of the standby says why walsizer raised');
my $report = $standby->safe_psql('postgres', 'SELECT walsizer_report()');
like($report, qr/^walsizer has seen the primary write \d+ MB of WAL within\s+checkpoint_timeout;/m,
	'the report speaks of the primary');
like($report, qr/^Restartpoints since /m, 'the report speaks of restartpoints');
unlike($report, qr/checkpoint is forced in|^Checkpoints since/m, 'the report counts no restartpoint as a checkpoint');
is( $standby->safe_psql('postgres',
		"SELECT count(*) FROM walsizer_related_settings WHERE setting = 'wal_compression'"),
	0, 'a server that writes no WAL has no share of page images');
wait_for($cascade, "set_by_walsizer >= $needed * 1048576");
is(status($cascade)->{role}, 'standby', 'a standby of a standby raises as well');
is(last_event($cascade)->{reason}, 'primary', 'a standby of a standby raises for what the primary writes');

# ---- so it does where no checkpoint of the primary says so

wait_for($follower, "set_by_walsizer >= 0.9 * $needed * 1048576");
is($rare->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'),
	$redo, 'no checkpoint: the primary makes none');
is(last_event($follower)->{reason}, 'primary',
	'no checkpoint: the standby raises for what the primary writes');
cmp_ok(status($follower)->{demand}, '<=', 1.4 * $rate * 30 * MB,
	'no checkpoint: the demand of the standby does not exceed that of the primary');
stop_load($rare_load);
like(revert($follower), qr/^revert to 4 MB: applied/, 'a standby restores its original value');
unlike(auto_conf($follower), qr/max_wal_size/,
	'postgresql.auto.conf of the standby has no max_wal_size after a revert');
$_->stop foreach $follower, $rare;

# ---- catching up forces restartpoints, which is no reason to raise

$primary->poll_query_until('postgres', <<"END") or die 'the primary writes no WAL';
SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > 1.5 * $rate * 30 * 1048576
  AND redo_lsn > restart_lsn
FROM pg_replication_slots, pg_control_checkpoint()
END
$behind->start;
wait_for_worker($behind);
$primary->wait_for_catchup('catching_up', 'replay', $primary->lsn('write'));
wait_for_log_line($behind, qr/restartpoint starting:.* wal\b/, 0);
pass('catching up: restartpoints are forced');
adjust($behind) for 1 .. 2;
is(setting_mb($behind), $needed + 16, 'catching up: the standby does not raise for forced restartpoints');
is(scalar(my @none = history($behind)), 0, 'catching up: nothing is recorded');
unlike(auto_conf($behind), qr/max_wal_size/, 'catching up: the file of the standby has no max_wal_size');

# ---- no load is planned on a standby, where its size might not come back

my (undef, undef, $refused) = $behind->psql('postgres', "SELECT walsizer_boost('1GB', '1 hour')");
like($refused, qr/ERROR:  no load can be planned on a standby\nHINT:  Call walsizer_boost\(\) on the primary/,
	'planned: walsizer_boost() on a standby is an error with a hint');
is(status($behind)->{boost_size}, undef, 'planned: the standby has no planned load');
like(act($behind, 'walsizer_boost_end()'), qr/^none: /,
	'planned: walsizer_boost_end() on a standby is no error');

# ---- a clone that brought the primary's value to a smaller disk, and no memory

$primary->backup('late');
my ($own) = slurp_file($primary->backup_dir . '/late/postgresql.auto.conf') =~ /^max_wal_size = '(\d+)MB'$/m;
# The volume does not depend on the value, which may be more than the load needs:
# what that disk allows has to be less than that.
my $clone = make_standby('clone', $primary, 'late', "walsizer.max_disk_percent = 20\n",
	small_volume(5, 3 * $needed));
wait_for_worker($clone);
wait_for($clone, "set_by_walsizer < $own * 1048576 AND max_wal_size <= disk_limit");
$event = last_event($clone);
is($event->{action}, 'lower', 'clone: walsizer lowers the value that came with the backup');
is($event->{reason}, 'limit_fell', 'clone: the reason is that the limit fell');
is($event->{limited_by}, 'disk', 'clone: the limit is the disk of the clone');
is($event->{old_mb}, $own, 'clone: the lowering starts at the value that came with the backup');
is(status($clone)->{original_size}, 4 * MB, 'clone: the original value came with the backup');
is(scalar(grep { $_->{action} eq 'external' } history($clone)), 0, 'clone: no administrator is suspected');
cmp_ok(setting_mb($primary), '>=', $own, 'clone: the primary keeps its value');
wait_for($clone, "limited_by = 'disk' AND demand > 0");
cmp_ok(status($clone)->{disk_limit}, '<', status($standby)->{disk_limit},
	'clone: each server has its own limit');
wait_for_log_line($clone,
	qr/LOG:  "max_wal_size" of \d+ MB is too small: (?:at most )?\d+ MB are needed, and "walsizer.max_disk_percent" allows \d+ MB/,
	0);
like(slurp_file($clone->logfile),
	qr/DETAIL:  WAL that the primary writes within "checkpoint_timeout": \d+ MB\.\n.*HINT:  (?:Raise "walsizer.max_disk_percent"|Enlarge the file system)/,
	'clone: the log has the demand of the primary, and a hint');

# ---- promotion

my $promoted = log_offset($standby);
set_conf($primary, $keep);
$standby->promote;
stop_load($load);
wait_for($standby, "role = 'primary'");
pass('promotion: the same worker continues');
cmp_ok(status($standby)->{set_by_walsizer}, '>=', $needed * MB,
	'promotion: the size that the standby had is in effect');

# The first checkpoint is the promotion's own; the two intervals begin with it, and
# so does the load: until the redo pointer has moved, each segment that is filled
# asks for a checkpoint that comes after it.
wait_for_log_line($standby, qr/checkpoint starting: force/, $promoted);
$load = start_load($standby, $rate);
wait_for_sample($standby);
$promoted = log_offset($standby);
my $forced = status($standby)->{checkpoints_forced};

# No worker there until now.
is(log_count($warm, qr/walsizer/, $asleep), 0, 'hot_standby = off: no worker runs before promotion');
$warm->promote;
wait_for_worker($warm);
is(status($warm)->{role}, 'primary', 'hot_standby = off: the worker starts at promotion');
my $warm_load = start_load($warm, $rate);
wait_for($warm, 'set_by_walsizer > 4 * 1048576');
is(last_event($warm)->{role}, 'primary', 'hot_standby = off: walsizer raises after promotion');
stop_load($warm_load);
$warm->stop('immediate');

# What was said on the standby is true of the primary in another way.
my $said = log_offset($clone);
$clone->promote;
wait_for($clone, "role = 'primary'");
my $clone_load = start_load($clone, $rate);
wait_for_log_line($clone,
	qr/LOG:  "max_wal_size" of \d+ MB is too small: .*"walsizer.max_disk_percent" allows/,
	$said);
wait_for_log_line($clone, qr/DETAIL:  WAL written within "checkpoint_timeout": \d+ MB.*; since the last checkpoint/, $said);
pass("clone: the log names the limit again after promotion, with the clone's own demand");
stop_load($clone_load);
$clone->stop('immediate');

# The old primary runs for a moment longer, and has to be rewound: it gets value
# and memory of the new one, on a smaller disk.
write_wal($primary, 1);
$behind->stop;
$primary->stop;
# its control file says where the timelines parted when that checkpoint is complete
$standby->poll_query_until('postgres', 'SELECT timeline_id > 1 FROM pg_control_checkpoint()')
  or die 'the checkpoint of the promotion is not completed';
my $conf = slurp_file($primary->data_dir . '/postgresql.conf');
$primary->command_ok(
	[
		'pg_rewind', '--no-sync', '--source-server', $standby->connstr('postgres'),
		'--target-pgdata', $primary->data_dir
	],
	'rewind: pg_rewind succeeds');
write_file($primary->data_dir . '/postgresql.conf', $conf);
$primary->append_conf('postgresql.conf', "walsizer.max_disk_percent = 10\n");
$primary->enable_streaming($standby);
my $brought = setting_in_file($primary);
ok((grep { $_->{new_mb} == $brought } history($standby)),
	'rewind: the value of the new primary comes along');
move_wal($primary, small_volume(6, 4 * $own));
$primary->start;
wait_for_worker($primary);
wait_for($primary, "role = 'standby' AND set_by_walsizer IS NOT NULL AND max_wal_size <= disk_limit");
my ($lowered) = reverse grep { $_->{action} eq 'lower' } history($primary);
is($lowered->{limited_by}, 'disk', 'rewind: walsizer lowers that value to the limit of the disk');

# The next standby follows the new primary, on its new timeline.
$cascade->poll_query_until('postgres',
	'SELECT received_tli > 1 FROM pg_stat_wal_receiver')
  or die 'the standby of a standby stays behind';
wait_for($cascade, "demand > 0.5 * $rate * 30 * 1048576");
is(status($cascade)->{role}, 'standby', 'the standby of a standby follows the new primary');

# Two whole intervals, each of which ends with a timed checkpoint.
wait_until('two timed checkpoints',
	sub { return log_count($standby, qr/checkpoint starting: time/, $promoted) >= 2 });
pass('promotion: the next two checkpoints are timed');
is(count_forced_in_log($standby, $promoted), 0,
	'promotion: no checkpoint is forced in the two intervals that follow');
wait_for($standby, "demand > 0.8 * $rate * 30 * 1048576");
pass('promotion: the load is large enough to force checkpoints at the original value');
$status = status($standby);
is($status->{checkpoints_forced}, $forced, 'promotion: walsizer counts no forced checkpoint');
stop_load($load);
is(log_count($_, qr/PANIC/), 0, $_->name . ': the server does not panic')
  foreach $primary, $standby, $cascade, $clone, $behind, $warm;
$_->stop('immediate') foreach $cascade, $primary, $standby;

done_testing();
