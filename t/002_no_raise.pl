
# What must not raise max_wal_size: checkpoints that an administrator requested.
#
# Failures of other tuners that this file covers: 1, CHECKPOINT, backups and
# DDL are counted as if WAL had forced them; 7, a statistics reset makes blind
# or worse; 17, forgetting what was learned is followed by a jump.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $node = make_node('node', streaming => 1, conf => "max_wal_size = 64MB\n");
my $counted = $node->pg_version < 17
  ? 'SELECT checkpoints_req FROM pg_stat_bgwriter'
  : 'SELECT num_requested FROM pg_stat_checkpointer';
my $timed = $node->pg_version < 17
  ? 'SELECT checkpoints_timed FROM pg_stat_bgwriter'
  : 'SELECT num_timed FROM pg_stat_checkpointer';
my $reset = 'SELECT pg_stat_reset_shared('
  . ($node->pg_version < 17 ? "'bgwriter'" : "'checkpointer'") . ')';

# A table to dirty, so that no checkpoint is skipped for having nothing to do.
$node->safe_psql('postgres', 'CREATE TABLE t (i int)');

my $before  = $node->safe_psql('postgres', $counted);
my $lsn     = $node->safe_psql('postgres', "SELECT pg_current_wal_lsn() - '0/0'");
my $begin   = time;
my $round   = 0;

# Longer than a checkpoint_timeout, so that walsizer's own cycle is in it.
while (time - $begin < 33 || $round < 15)
{
	$round++;
	$node->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
	$node->safe_psql('postgres', 'CHECKPOINT');
	if ($round == 5)
	{
		$node->backup('one');
	}
	elsif ($round == 10)
	{
		$node->safe_psql('postgres', 'CREATE DATABASE other STRATEGY FILE_COPY');
		$node->safe_psql('postgres', 'DROP DATABASE other');
	}
	elsif ($round == 15)
	{
		$node->backup('two');
	}
	wait_for_sample($node);
}

# That would have been enough for a rule that counts requests.
my $requested = $node->safe_psql('postgres', $counted) - $before;
cmp_ok($requested, '>=', 15, 'many checkpoints are requested');
my $written = $node->safe_psql('postgres', "SELECT pg_current_wal_lsn() - '0/0'") - $lsn;
cmp_ok($written, '<', 20 * MB, 'little WAL is written');
is(adjust($node), 'none: the value in effect suffices', 'requested checkpoints are no reason to raise');

my $status = status($node);
is($status->{checkpoints_forced}, 0, 'no checkpoint counts as forced by WAL volume');
is($status->{checkpoints_forced_old_value}, 0, 'no checkpoint counts as forced by the old value');
cmp_ok($status->{checkpoints_other}, '>=', 15, 'requested checkpoints count as other checkpoints');
wait_for($node, "num_requested = ($counted) AND num_timed = ($timed)");
pass("the counters of the server are shown beside walsizer's");
is(count_forced_in_log($node), 0, "the server's log has no forced checkpoint either");

# After a reset the counters begin at zero, or below what they were.
$node->safe_psql('postgres', $reset);
is(adjust($node), 'none: the value in effect suffices', 'a statistics reset changes nothing');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
is(adjust($node), 'none: the value in effect suffices', 'walsizer_forget() changes nothing');
$node->safe_psql('postgres', 'CHECKPOINT');
is(adjust($node), 'none: the value in effect suffices',
	'a statistics reset and walsizer_forget() together change nothing');

is(setting_mb($node), 64, 'max_wal_size keeps its value');
is(scalar(history($node)), 0, 'the history is empty');
unlike(auto_conf($node), qr/max_wal_size/, 'postgresql.auto.conf has no max_wal_size');
$node->stop;

# A switch of segments fills the rest of one with padding, which is no rate of WAL:
# neither it nor a backup, which ends with one, begins a load on an idle server.
my $idle = make_node('idle', streaming => 1, segsize => 16,
	conf => "max_wal_size = 128MB\nmin_wal_size = 32MB\n");

# Some WAL, then a switch of segments.
sub write_and_switch
{
	my ($bytes) = @_;

	$idle->safe_psql('postgres',
		"SELECT pg_logical_emit_message(false, '', repeat('x', $bytes)); SELECT pg_switch_wal()");
	wait_for_sample($idle);
}

write_and_switch(1);
$idle->backup('of_idle');
wait_for_sample($idle);
is(scalar(history($idle)), 0, 'a switch of segments and a backup raise nothing');

# As demand, padding counts for no more than the records.  No checkpoint is forced, so no
# segment is recycled before it was read.
set_conf($idle, 'max_wal_size = 1GB');
$lsn = $idle->safe_psql('postgres', "SELECT pg_current_wal_lsn() - '0/0'");
my $demand = status($idle)->{demand};
write_and_switch(2 * MB) foreach 1 .. 3;
cmp_ok($idle->safe_psql('postgres', "SELECT pg_current_wal_lsn() - '0/0'") - $lsn, '>', 40 * MB,
	'switches of segments move the position far');
cmp_ok(status($idle)->{demand} - $demand, '<', 13 * MB,
	'padding makes demand at most twice as large as the records');
$idle->stop;

done_testing();
