
# The clock of the machine is set by hours and by weeks, both ways, under a
# server that goes on and across restarts.  Each time walsizer measures, raises
# by what it measured, and remembers.
#
# The server runs with the library of t/024_steps.pl, whose clock is that of a
# file.  libfaketime does not reach the worker: it keeps pointers into the
# environment, where the server writes what a process does.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../../t";

use Cwd qw(abs_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $dir = abs_path(PostgreSQL::Test::Utils::tempdir());
my %fake = (LD_PRELOAD => build_preloaded($dir, 'steps'), WALSIZER_STEPS => $dir);

sub set_clock
{
	my ($seconds) = @_;

	write_file("$dir/clock.new", "$seconds\n");
	rename "$dir/clock.new", "$dir/clock" or die "could not set the clock: $!";
	return;
}

# As WalsizerTest's, for a server whose time is not that of this test.
sub start
{
	my ($node, $how) = @_;
	local @ENV{ keys %fake } = values %fake;

	$node->$how;
	wait_for_worker($node);
	return;
}

set_clock(0);
my $node = make_node('clock',
	conf  => "walsizer.predict = off\ncheckpoint_timeout = 1h\nwalsizer.lookback = 7d\n",
	start => 0);
{
	local @ENV{ keys %fake } = values %fake;
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);

# Two samples since this was called, whatever the time.
sub wait_for_two_samples
{
	for (1 .. 2)
	{
		my $seen = status($node)->{sampled_at};
		wait_for($node, "sampled_at <> '$seen'");
	}
	return;
}

# A load of that many MB, which needs a raise, and what becomes of it.
sub raise_by_load
{
	my ($what, $mb) = @_;

	force_checkpoints($node, $mb);
	like(adjust($node), qr/^raise .*: applied$/, "$what: walsizer raises");

	my $event = last_event($node);
	cmp_ok($event->{demand}, '<', ($mb + 10) * MB, "$what: demand is no more than was written");
	cmp_ok($event->{demand}, '>', 0.9 * $mb * MB, "$what: nor much less");
	cmp_ok(abs($event->{epoch} - $node->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())')),
		'<', 30, "$what: the history has the time of the server");
	return;
}

my $jumps = 0;
foreach my $hours (3 * 24, -3 * 24, -30 * 24, 60 * 24, 0, -1, 1, 0)
{
	foreach my $how ('running', 'across a restart')
	{
		my $what = "clock $hours hours ahead, $how";
		my $worker = pid($node);

		if ($how eq 'running')
		{
			set_clock(3600 * $hours);
			wait_for_two_samples();
			is(pid($node), $worker, "$what: the worker goes on");
		}
		else
		{
			$node->stop;
			set_clock(3600 * $hours);
			start($node, 'start');
		}
		raise_by_load($what, 24);
		cmp_ok(log_count($node, qr/(?:WARNING|ERROR|FATAL|PANIC): .*walsizer/), '==', 0,
			"$what: no complaint in the log");
		is(act_row($node, 'walsizer_revert()')->{new_mb}, 4, "$what: the original value is known");
		note_is_removed($node, $what);
		unlike(auto_conf($node), qr/max_wal_size|walsizer/, "$what: nothing is left behind");
		start($node, 'restart');
		$jumps++;
	}
}
diag("clock: set $jumps times");
$node->stop;

done_testing();
