
# A standby that receives WAL faster than it replays it, here because of
# recovery_min_apply_delay.  What waits for replay is on the volume whatever
# max_wal_size is: it is not part of what max_wal_size may claim.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my $volume_mb = 400;
my $lag_mb    = 250;

# Whole segments, the one that is being filled, and what is written beside the load.
my $slack_mb = 5;

sub disk_limit_mb
{
	my ($node) = @_;
	return status($node)->{disk_limit} / MB;
}

# Segments of pg_wal that begin after the replayed position.
sub segments_ahead
{
	my ($node) = @_;
	return $node->safe_psql('postgres', <<'END');
SELECT count(*) FROM pg_ls_waldir()
WHERE name ~ '^[0-9A-F]{24}$'
  AND ('x' || substr(name, 9, 8))::bit(32)::bigint * 4294967296
    + ('x' || substr(name, 17, 8))::bit(32)::bigint * 1048576
    > pg_last_wal_replay_lsn() - '0/0'
END
}

my $primary = make_node('primary', streaming => 1, conf => <<'END');
walsizer.enable = off
checkpoint_timeout = 1h
max_wal_size = 1GB
END
$primary->backup('copy');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->enable_streaming($primary);
$standby->append_conf('postgresql.conf', <<'END');
checkpoint_timeout = 1h
max_wal_size = 100MB
min_wal_size = 100MB
recovery_min_apply_delay = 1h
END
my $volume = small_volume(8, $volume_mb);
move_wal($standby, $volume);
$standby->start;
wait_for_worker($standby);
wait_for($standby, "disk_limit BETWEEN ($volume_mb / 2 - $slack_mb) * 1048576 AND $volume_mb / 2 * 1048576");
pass('the disk limit is half of the volume if nothing waits for replay');

# ---- received and not replayed

write_wal($primary, $lag_mb);
$primary->wait_for_catchup('standby', 'flush', $primary->lsn('flush'));
cmp_ok($standby->safe_psql('postgres',
		'SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) / 1048576'),
	'>=', $lag_mb, "$lag_mb MB of WAL are received and not replayed");
my $smaller = "disk_limit BETWEEN ($volume_mb - $lag_mb - 2 * $slack_mb) / 2 * 1048576 AND ($volume_mb - $lag_mb) / 2 * 1048576";
$standby->poll_query_until('postgres', "SELECT $smaller FROM walsizer_stats");
cmp_ok(disk_limit_mb($standby), '<=', ($volume_mb - $lag_mb) / 2,
	'WAL that waits for replay does not count as part of max_wal_size');
cmp_ok(disk_limit_mb($standby), '>=', ($volume_mb - $lag_mb) / 2 - $slack_mb,
	'the rest of the volume counts');

# Started again, the standby has it on its volume, and no receiver: first it
# replays that.
$standby->restart;
wait_for_worker($standby);
is($standby->safe_psql('postgres', 'SELECT pg_last_wal_receive_lsn() IS NULL'), 't',
	'after a restart: the server knows no received position');
adjust($standby);
cmp_ok(disk_limit_mb($standby), '<=', ($volume_mb - $lag_mb) / 2,
	'after a restart: WAL that waits for replay does not count');
cmp_ok(disk_limit_mb($standby), '>=', ($volume_mb - $lag_mb) / 2 - $slack_mb,
	'after a restart: the rest of the volume counts');

# ---- replayed, and recycled

set_conf($standby, 'recovery_min_apply_delay = 0');
$primary->wait_for_catchup('standby', 'replay', $primary->lsn('flush'));
wait_for($standby, "disk_limit >= ($volume_mb / 2 - $slack_mb) * 1048576");
pass('replayed WAL counts as part of max_wal_size');

# Two restartpoints: what the first one leaves counts as held back after the next.
for (1 .. 2)
{
	$primary->safe_psql('postgres', 'CHECKPOINT');
	write_wal($primary, 1);
	$primary->wait_for_catchup('standby', 'replay', $primary->lsn('flush'));
	$standby->safe_psql('postgres', 'CHECKPOINT');
	wait_for_sample($standby);
}
cmp_ok(segments_ahead($standby), '>=', 50, 'old segments are recycled for later');
wait_for($standby, "disk_limit >= ($volume_mb / 2 - $slack_mb) * 1048576");
pass('recycled segments count as part of max_wal_size');

# Without a primary there is no receiver, either.
$standby->append_conf('postgresql.conf', "primary_conninfo = ''\nrestart_after_crash = on\n");
$standby->restart;
wait_for_worker($standby);
is($standby->safe_psql('postgres', 'SELECT pg_last_wal_receive_lsn() IS NULL'), 't',
	'without a primary: the server knows no received position');
cmp_ok(segments_ahead($standby), '>=', 50, 'without a primary: recycled segments are ready for later');
adjust($standby);
cmp_ok(disk_limit_mb($standby), '>=', $volume_mb / 2 - $slack_mb,
	'without a primary: recycled segments count as part of max_wal_size');

# If one of its processes crashes, the timer of restartpoints begins anew, and the postmaster goes on.
my $pid = pid($standby);
wait_for($standby, q{clock_timestamp() - pg_postmaster_start_time() > interval '3 s'});
kill 'KILL', $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
wait_for_worker($standby, $pid);
is($standby->safe_psql('postgres', <<'END'), 't', 'after a crash: the timer of restartpoints does not count from the start of the postmaster');
SELECT time_to_timed + (clock_timestamp() - pg_postmaster_start_time()) >
	current_setting('checkpoint_timeout')::interval + interval '2 s' FROM walsizer_stats
END

is(log_count($_, qr/PANIC|No space left/), 0, $_->name . ': the server neither panics nor fills its volume')
  foreach $primary, $standby;
$_->stop('immediate') foreach $standby, $primary;

done_testing();
