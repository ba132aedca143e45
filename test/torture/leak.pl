
# The worker's memory after 10,000 adjustments, changes and messages included, is
# what it was after the first 1,000.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../../t";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

use constant FIRST => 1_000;
use constant ALL => 10_000;

my $node = make_node('leak', conf => <<'END');
walsizer.predict = off
checkpoint_timeout = 1h
END
alarm(0);    # it may take long with a server that checks its memory

# Every other adjustment changes max_wal_size: for a planned load, and back.
sub adjust_times
{
	my ($times) = @_;

	$node->safe_psql('postgres', <<"END");
DO \$\$
BEGIN
  FOR n IN 1 .. $times / 4 LOOP
    PERFORM walsizer_boost((16 + n % 50) || 'MB', '1 hour');
    PERFORM walsizer_adjust();
    PERFORM walsizer_revert();
    PERFORM walsizer_adjust();
  END LOOP;
END \$\$
END
	return;
}

# Bytes in all memory contexts of the worker, and its own resident memory in kB.
sub memory
{
	my $offset = log_offset($node);
	my $pid = pid($node);

	$node->safe_psql('postgres', "SELECT pg_log_backend_memory_contexts($pid)");
	wait_for_log_line($node, qr/Grand total: \d+ bytes/, $offset);
	my ($bytes) = slurp_file($node->logfile, $offset) =~ /Grand total: (\d+) bytes/;
	my ($resident) = slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m;
	return ($bytes, $resident);
}

my $worker = pid($node);
adjust_times(FIRST);
my ($bytes, $resident) = memory();
my $before = last_event($node)->{id};
adjust_times(ALL - FIRST);
my ($bytes_after, $resident_after) = memory();

is(pid($node), $worker, 'it is the same worker');
cmp_ok(last_event($node)->{id} - $before, '>', (ALL - FIRST) / 4, 'adjustments changed max_wal_size');
cmp_ok($bytes_after, '<=', $bytes, "no memory context has grown ($bytes, $bytes_after bytes)");
cmp_ok($resident_after, '<', $resident + 512, "nor has the process ($resident, $resident_after kB)");
diag('leak: ' . ALL . " adjustments, $bytes bytes in contexts before, $bytes_after after, resident $resident and $resident_after kB");
$node->stop;

done_testing();
