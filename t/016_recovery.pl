
# How long recovery after a crash would take: shown beforehand, measured when
# it happens, and a limit to what walsizer raises.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX qw(ceil);
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

my ($node, $offset, $status, $event, $rate);

# ---- the estimate, and what comes of it

# Much to replay, and of the kind that takes time: updates of many pages.  The
# log then says how long it took.
$node = make_node('crash', segsize => 16, conf => <<'END');
checkpoint_timeout = 1h
max_wal_size = 2GB
min_wal_size = 32MB
shared_buffers = 128MB
restart_after_crash = on
walsizer.enable = off
END
$node->safe_psql('postgres', <<'END');
CREATE TABLE load AS SELECT n, 0 AS v, repeat('x', 40) AS filler FROM generate_series(1, 300000) n;
CREATE INDEX ON load (v);
END

# The last recovery that was measured, as the state file has it; '' if there is none.
sub measured
{
	my ($node) = @_;
	my $file = $node->data_dir . '/pg_stat/walsizer.state';

	return -e $file && slurp_file($file) =~ /^recovery (.*)$/m ? $1 : '';
}

# Returns the estimate (s) made just before the crash, the bytes that were replayed,
# and the seconds that replay and what follows it took, as walsizer measured them.
# They are compared with the log, and not with the estimate before: a machine that
# stalls may make any recovery longer.  bench/run recovery shows how exact that is.
# The crash is that of the whole server, unless a function is given that brings
# one about.
sub crash
{
	my ($node, $how) = @_;
	my $before = measured($node);

	adjust($node);
	my $estimate = $node->safe_psql('postgres',
		'SELECT extract(epoch FROM recovery_time_now) FROM walsizer_stats');
	$offset = log_offset($node);
	my $began = time;
	if ($how)
	{
		$how->($node);
	}
	else
	{
		kill 'KILL', $node->{_pid};
		start_after_kill($node);
	}
	wait_for_worker($node);
	my $lasted = time - $began;
	wait_until('the recovery is kept', sub { return measured($node) ne $before });

	my %is = split ' ', measured($node);
	my ($from, $to, $replay, $checkpoint) = slurp_file($node->logfile, $offset) =~
	  /redo starts at (\S+).*redo done at (\S+) .* elapsed: ([\d.]+) s.* checkpoint complete: .* total=([\d.]+) s/s
	  or die 'there was no recovery';
	my $bytes = $node->safe_psql('postgres', "SELECT pg_wal_lsn_diff('$to', '$from')");
	my $what = $how ? 'crash of one process' : 'crash';
	my $writing = $is{writing_ms} / 1000;
	cmp_ok(abs($is{bytes} - $bytes), '<', MB, "$what: the measured WAL is that of the log");
	cmp_ok(abs($is{replay_ms} / 1000 - $replay), '<', 0.1, "$what: the measured time of replay is that of the log");
	# without what the postmaster takes to start a worker
	cmp_ok($writing + 0.06, '>', $checkpoint, "$what: the time to write the pages includes the checkpoint");
	cmp_ok($writing, '<', $lasted - $replay, "$what: the time to write the pages ends with the worker's start");
	note(sprintf('%.0f MB: estimated %.2f s, replay %.2f s, writing %.2f s, checkpoint %.2f s',
			$bytes / MB, $estimate, $replay, $writing, $checkpoint));
	return ($estimate, $is{bytes}, $is{replay_ms} / 1000 + $writing);
}

# What is to be replayed.
sub load
{
	my ($node, $updates) = @_;

	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->safe_psql('postgres', "UPDATE load SET v = v + n") for 1 .. $updates;
	return;
}

sub load_and_crash
{
	my ($node, $updates, $how) = @_;

	load($node, $updates);
	return crash($node, $how);
}

# One process crashes, and the postmaster lives on: the worker, unless another is given.
sub crash_of_one_process
{
	my ($node, $pid) = @_;

	$pid //= pid($node);
	kill 'KILL', $pid or die "could not kill process $pid: $!";
	wait_for_log_line($node, qr/all server processes terminated; reinitializing/, $offset);
	wait_for_log_line($node, qr/database system is ready to accept connections/, $offset);
	return;
}

$status = status($node);
is($status->{replay_rate_source}, 'assumed', 'the rate is assumed before the first recovery');
cmp_ok(abs($status->{replay_rate} / MB - 40), '<', 5, 'the assumed rate is about 40 MB/s, if WAL has small records');
cmp_ok(abs($status->{replay_rate} / MB * $node->safe_psql('postgres',
			'SELECT extract(epoch FROM recovery_time_max) FROM walsizer_stats') - 2048),
	'<', 20 + $status->{replay_rate} / MB, 'the longest recovery replays max_wal_size, to the second');

my (undef, undef, $took) = load_and_crash($node, 2);
is(status($node)->{replay_rate_source}, 'measured', 'the rate is measured after a recovery');
isnt(status($node)->{replay_rate}, $status->{replay_rate}, 'the measured rate is not the assumed one');

# What the same load's recovery takes is told from the one before.  Twice that is
# allowed for, as files may not be in the cache.
my ($estimate) = load_and_crash($node, 2);
cmp_ok($estimate, '>', $took / 1.25, 'recovery takes at most a quarter more than estimated');
cmp_ok($estimate, '<', 6 * $took, 'recovery takes not much less than estimated');
load_and_crash($node, 2, \&crash_of_one_process);

# It is not known when the pages had been written, if the worker does not start by itself.
load($node, 2);
act($node, 'walsizer_stop()');
my $before = measured($node);
$offset = log_offset($node);
crash_of_one_process($node,
	$node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'"));
act($node, 'walsizer_start()');
wait_until('the recovery is kept', sub { return measured($node) ne $before });
like(measured($node), qr/^bytes \d+ .* pages_written 0 /,
	'a worker that a session starts does not say how long the pages took');
load_and_crash($node, 2, \&crash_of_one_process);
unlike(measured($node), qr/ pages_written 0 /, 'the same worker does after the next crash');

$rate = status($node)->{replay_rate};
$node->restart;
wait_for_worker($node);
$status = status($node);
is($status->{replay_rate_source}, 'measured', 'a restart does not change the source of the rate');
is($status->{replay_rate}, $rate, 'a restart does not change the rate');
ok(-s $node->data_dir . '/pg_stat/walsizer.state', 'a restart finds a state file');
$node->stop;

# A restart after a crash that left next to nothing to replay tells nothing.
$node->start;
kill 'KILL', $node->{_pid};
start_after_kill($node);
wait_for_worker($node);
is(status($node)->{replay_rate}, $rate, 'a crash with nothing to replay does not change the rate');

# ---- with a limit, a crash at the worst moment takes about that

# The size that was there was an administrator's, and is left alone for a
# checkpoint_timeout: the first start notices the change, the second has
# forgotten when that was.
$node->append_conf('postgresql.conf', <<"END");
walsizer.enable = on
max_wal_size = 32MB
END
for (1 .. 2)
{
	$node->restart;
	wait_for_worker($node);
}

# Load until the limit applies and there is much to replay.  In statements that
# are short, because a running one keeps the size with which it began.
sub load_to_the_limit
{
	my ($node) = @_;

	for my $n (1 .. 1000)
	{
		my $there = $node->safe_psql('postgres',
			"UPDATE load SET v = v + 1 WHERE n % 20 = $n % 20; "
			  . "SELECT limited_by = 'recovery' AND set_by_walsizer > 0.8 * recovery_limit AND "
			  . 'recovery_time_now > 0.65 * recovery_time_max FROM walsizer_status, walsizer_stats');

		return 1 if $there eq 't';
	}
	return 0;
}

# Two seconds, or more if this server needs more for what the test takes.
my $limit = ceil(160 * MB / status($node)->{replay_rate});
$limit = 2 if $limit < 2;
set_conf($node, "walsizer.max_recovery_time = ${limit}s");
ok(load_to_the_limit($node),
	'limit: walsizer raises as far as it allows, and there is nearly as much to replay');
$status = status($node);
cmp_ok($status->{set_by_walsizer} / MB, '>', 32, 'limit: the raise exceeds the original value');
($estimate, my $bytes) = crash($node);
cmp_ok($estimate, '<=', $limit, 'limit: the estimate is at most what is allowed');
# a soft limit: a checkpoint may end a little late, as on a busy machine
cmp_ok($bytes, '<=', 1.1 * $status->{set_by_walsizer}, 'limit: there is hardly more to replay than max_wal_size');

# The administrator's own figure counts more.
set_conf($node, 'walsizer.replay_rate = 5MB');
adjust($node);
$status = status($node);
is($status->{replay_rate_source}, 'configured', 'a rate that is set takes precedence');
is($status->{replay_rate}, 5 * MB, 'the rate is the one that is set, not the one that was measured');

# The estimate is that of the WAL since the redo pointer of the last checkpoint:
# 8 MB, too little to force the next one from the start of a segment.
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$node->safe_psql('postgres', 'CHECKPOINT');
write_wal($node, 8);
adjust($node);
cmp_ok(abs($node->safe_psql('postgres', <<'END')), '<', MB, 'the estimate is that of the WAL since the redo pointer');
SELECT extract(epoch FROM recovery_time_now) * replay_rate
    - pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)
FROM walsizer_stats, pg_control_checkpoint()
END
$node->stop;

# ---- the limit

# 2 MB/s for 8 seconds.
$node = make_node('limit', conf => <<'END');
walsizer.predict = off
checkpoint_timeout = 1h
walsizer.replay_rate = 2MB
walsizer.max_recovery_time = 8s
END
is(status($node)->{recovery_limit}, 16 * MB, 'the recovery limit is the allowed time multiplied by the rate');
$offset = log_offset($node);
force_checkpoints($node, 24);
# one that WAL has asked for must not start after the raise, as if at an old value
$node->safe_psql('postgres', 'CHECKPOINT');
is(adjust($node), 'raise to 16 MB, limited by recovery: applied',
	'walsizer raises as far as the recovery limit');
$event = last_event($node);
is($event->{limited_by}, 'recovery', 'the history names the limit');
cmp_ok($event->{wanted_mb}, '>', 16, 'the history has the size that was wanted');
wait_for($node, "set_by_walsizer = 16 * 1048576");
is($node->safe_psql('postgres', 'SELECT recovery_time_max FROM walsizer_stats'),
	'00:00:08', 'the longest recovery takes the allowed time');
force_checkpoints($node, 24);
is(adjust($node), 'none, limited by recovery: WAL volume forced checkpoints',
	'walsizer does not raise beyond the recovery limit');
$status = status($node);
is($status->{limited_by}, 'recovery', 'the status names the limit');
adjust($node) for 1 .. 3;
is(log_count($node,
		qr/LOG:  "max_wal_size" of 16 MB is too small: (?:at most )?\d+ MB are needed, and "walsizer.max_recovery_time" allows 16 MB/,
		$offset), 1, 'the log names the setting and the size that is needed, once');
is(log_count($node, qr/HINT:  Raise "walsizer.max_recovery_time" so that it allows (?:at most )?\d+ MB, or accept forced checkpoints\./, $offset),
	1, 'the log has a hint');

# The limit moves, the value follows.
set_conf($node, 'walsizer.max_recovery_time = 16s');
like(adjust($node), qr/^raise to 32 MB.*: applied$/, 'a higher limit lets walsizer raise');
wait_for($node, "set_by_walsizer = 32 * 1048576");
# To come down to 4 MB, no more than one segment may have been begun since the
# redo pointer: it is to lie at the start of its own.
$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
$node->safe_psql('postgres', 'CHECKPOINT');
set_conf($node, 'walsizer.max_recovery_time = 6s');
wait_for($node, "set_by_walsizer = 12 * 1048576");
$event = last_event($node);
is($event->{action}, 'lower', 'a limit that falls takes back what walsizer raised');
is($event->{reason}, 'limit_fell', 'the history says that the limit fell');
is($event->{limited_by}, 'recovery', 'the history names the limit that fell');

set_conf($node, 'walsizer.max_recovery_time = 1s');
wait_for($node, "max_wal_size = 4 * 1048576");
adjust($node) for 1 .. 2;
is(status($node)->{recovery_limit}, 2 * MB, 'the recovery limit may be below the original value');
is(setting_mb($node), 4, 'a limit below the original value does not lower it');

# Nor one that an administrator sets.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '40MB'");
$node->reload;
wait_for($node, "original_size = 40 * 1048576");
$node->restart;
wait_for_worker($node);
adjust($node) for 1 .. 2;
is(setting_mb($node), 40, 'a limit does not lower the value of an administrator');
is(scalar(grep { $_->{action} eq 'lower' && $_->{old_mb} == 40 } history($node)),
	0, 'walsizer never tries to lower the value of an administrator');
$node->stop;

done_testing();
