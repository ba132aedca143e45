
# A reload every 100 ms shortens no window and puts no raise off.
#
# Failure of other tuners that this file covers: 4, any SIGHUP cuts the
# measuring interval short.

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

# The classic rule alone: it acts at the end of a cycle, which is what storms
# of reloads used to put off for ever.
my $node   = make_node('node', conf => "walsizer.predict = off\n");
my $script = $node->basedir . '/reload.sql';
my $offset = log_offset($node);
my $load   = start_load($node, 2);
my $begin  = time;

append_to_file($script, "SELECT pg_reload_conf();\n");
my $storm = IPC::Run::start(
	[
		'pgbench',   '--no-vacuum', '--client=1', '--time=3600',
		'--rate=10', "--file=$script", $node->connstr('postgres')
	],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');

# Measure for ourselves what is written in 30 seconds, and go on until the
# window is full and the cycle that began with the server is over.
my (@samples, $w, $covered, $demand);
while (time - $begin < 36)
{
	my ($t, $lsn);
	($t, $lsn, $demand) = split /\|/,
	  $node->safe_psql('postgres',
		"SELECT extract(epoch FROM clock_timestamp()), pg_current_wal_lsn() - '0/0', "
		  . 'demand FROM walsizer_status');
	push @samples, [ $t, $lsn ];
	shift @samples while @samples > 1 && $samples[1][0] <= $t - 30;
	$w       = $lsn - $samples[0][1];
	$covered = $t - $samples[0][0];
	usleep(250_000);
}
my $waited = time - $begin;
wait_for($node, 'own_size IS NOT NULL');
stop_load($storm);
stop_load($load);

cmp_ok(log_count($node, qr/received SIGHUP/, $offset), '>=', 3 * $waited,
	'a storm of reloads');
cmp_ok($covered, '>=', 29, 'our own window is full');
note(sprintf('in %.1f s: %.1f MB by our count, %.1f MB by walsizer\'s',
		$covered, $w / MB, $demand / MB));
cmp_ok($demand, '>=', 0.85 * $w, 'walsizer measures as much as we do');
cmp_ok($demand, '<=', 1.15 * $w, 'and no more');

my ($raise) = grep { $_->{action} eq 'raise' } history($node);
is($raise->{outcome}, 'applied', 'it raised');
is($raise->{reason}, 'checkpoints were forced by WAL volume', 'by the classic rule');
cmp_ok($raise->{epoch} - $begin, '<', 40, 'at the end of its first cycle');
cmp_ok($raise->{epoch} - $begin, '>', 20, 'and not with the first reload');
cmp_ok($raise->{new_mb}, '>=', size_for_mb(0.6 * $w, 1, 0.9),
	'for a window that was not cut short');
$node->stop;

done_testing();
