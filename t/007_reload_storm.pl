
# A reload every 100 ms shortens no window and puts no raise off, and the worker
# misses none, not even while it starts.
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

# Measure for ourselves what is written in 30 seconds, and continue until walsizer's
# window was full for a while and the cycle that began with the server is over.
my (@samples, @measured);
my $enough = $begin + $PostgreSQL::Test::Utils::timeout_default;
while (time < $enough && (@measured < 10 || log_count($node, qr/received SIGHUP/, $offset) < 110))
{
	my ($t, $lsn, $at, $demand) = split /\|/,
	  $node->safe_psql('postgres',
		"SELECT extract(epoch FROM clock_timestamp()), pg_current_wal_lsn() - '0/0', "
		  . 'extract(epoch FROM sampled_at), demand FROM walsizer_stats');
	push @samples, [ $t, $lsn ];
	push @measured, [ $at, $demand ] if $at >= $samples[0][0] + 31;
	usleep(250_000);
}
wait_for($node, 'set_by_walsizer IS NOT NULL');
my $began_at = $node->safe_psql('postgres',
	'SELECT extract(epoch FROM stats_reset) FROM walsizer_stats');
stop_load($storm);
stop_load($load);

# What was written in the 30 seconds before a moment, at the least and at the
# most, by the samples that enclose the two ends.
sub written_until
{
	my ($end) = @_;
	my @ends;

	foreach my $t ($end - 30, $end)
	{
		my ($after)  = grep { $_->[0] >= $t } @samples;
		my ($before) = grep { $_->[0] <= $t } reverse @samples;
		push @ends, ($before // $samples[0])->[1], ($after // $samples[-1])->[1];
	}
	return ($ends[2] - $ends[1], $ends[3] - $ends[0]);
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return $sorted[ $#sorted / 2 ];
}

cmp_ok(log_count($node, qr/received SIGHUP/, $offset), '>=', 110, 'the server reloads all the time');
cmp_ok(scalar(@measured), '>=', 10, 'the test has measured for long enough');

# A machine that stalls has a moment's figures differ; a window cut short would
# have all of them.
my $of_least = median(map { my ($w) = written_until($_->[0]); $_->[1] / $w } @measured);
my $of_most  = median(map { my (undef, $w) = written_until($_->[0]); $_->[1] / $w } @measured);
note(sprintf('walsizer measures %.2f of the most and %.2f of the least that it was', $of_most, $of_least));
cmp_ok($of_least, '>=', 0.85, 'walsizer measures as much as the test');
cmp_ok($of_most, '<=', 1.15, 'walsizer measures no more than the test');

my ($raise) = grep { $_->{action} eq 'raise' } history($node);
my ($written) = written_until($raise->{epoch});
is($raise->{outcome}, 'applied', 'the raise is applied');
is($raise->{reason}, 'forced', 'the raise comes from the classic rule');
cmp_ok($raise->{epoch} - $began_at, '>=', 29.9, 'walsizer raises at the end of its first cycle, not before');
# The first in which the load had forced checkpoints: without stalls, the very first.
my $cycles = int(($begin + 5 - $began_at) / 30) + 1;
cmp_ok($raise->{epoch} - $began_at, '<', 30 * ($cycles + 1), 'walsizer raises before its next cycle is over');
cmp_ok($raise->{demand}, '>=', 0.6 * $written, 'the demand is that of the whole window');
# The event has the last demand of the cycle, and the largest counts.
cmp_ok($raise->{new_mb}, '>=', classic_size_mb($raise, 1), 'the size is enough for the demand');
cmp_ok($raise->{new_mb}, '<=', classic_size_mb({ %$raise, demand => 1.1 * $raise->{demand} }, 1),
	'the size is for not much more than the demand');
$node->stop;

done_testing();
