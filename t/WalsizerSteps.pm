
# A server whose steps are counted and interrupted (t/steps.c), for 024_steps.pl and
# 025_steps_back.pl.

package WalsizerSteps;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use Fcntl ':flock';
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

our @EXPORT = qw(
  $node $dir $adjust
  start_server with_library restart arm steps first_step fsyncs set_clock ask is_done raise
  no_one_is_suspected back_to_original
);

our ($node, $dir);
my $shim;

# What psql answers with to one row.
our $adjust = "SELECT action || ' ' || outcome FROM walsizer_adjust()";

# Cycles of an hour: nothing happens but what is asked for.
sub start_server
{
	# the server has another working directory, and may be given a relative one
	$dir = abs_path(PostgreSQL::Test::Utils::tempdir());
	$shim = build_preloaded($dir, 'steps');
	$ENV{WALSIZER_STEPS} = $dir;
	$node = make_node('steps',
		live  => 1,
		conf  => "walsizer.predict = off\ncheckpoint_timeout = 1h\nrestart_after_crash = on\nfsync = on\n",
		start => 0);
	with_library(sub { $node->start });
	$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
	wait_for_worker($node);
	return;
}

# With the library: to start the server in any way.
sub with_library
{
	my ($start) = @_;

	local $ENV{LD_PRELOAD} = $shim;
	$start->();
	return;
}

# What was left alone before is no longer then.
sub restart
{
	with_library(sub { $node->restart });
	wait_for_worker($node);
	return;
}

my %signals = (count => 0, kill => 9, stop => 19);

# From here on the steps of that process count; at this one (0: none) it gets
# the signal.
sub arm
{
	my ($pid, $step, $signal) = @_;

	unlink "$dir/log";
	write_file("$dir/arm", "$pid $step $signals{$signal}\n");
	return;
}

sub steps
{
	# a process that is in a step goes through it first, or not at all
	if (open(my $arm, '<', "$dir/arm"))
	{
		flock($arm, LOCK_EX) or die $!;
		unlink "$dir/arm";
	}
	return -e "$dir/log" ? split(/\n/, slurp_file("$dir/log")) : ();
}

# The number of the first step that matches.
sub first_step
{
	my ($regexp, @steps) = @_;
	my ($index) = grep { $steps[$_] =~ $regexp } 0 .. $#steps;

	return $index + 1;
}

sub fsyncs { return scalar grep { /^fsync/ } @_ }

sub set_clock
{
	my ($seconds) = @_;

	write_file("$dir/clock", "$seconds\n");
	return;
}

# What is said to stderr is kept.
sub ask
{
	my ($sql, $out, $until_it_waits) = @_;
	my $asked = start_asking($node, $sql, $out, "$dir/stderr");

	$node->poll_query_until('postgres', <<"END") or die "nobody asks: $sql" if $until_it_waits;
SELECT count(*) > 0 FROM pg_stat_activity
WHERE query = \$\$$sql\$\$ AND wait_event_type IN ('Extension', 'LWLock')
END
	return $asked;
}

# Has a program ended?
sub is_done
{
	my ($run) = @_;
	$run->pump_nb if $run->pumpable;
	return !$run->pumpable;
}

sub raise
{
	need_a_raise($node);
	like(adjust($node), qr/^raise .*: applied$/, "$_[0]: walsizer raises");
	return setting_mb($node);
}

# No administrator is suspected of what none did.
sub no_one_is_suspected
{
	my ($what) = @_;
	is(scalar(grep { $_->{action} eq 'external' && $_->{outcome} eq 'none' } history($node)),
		0, "$what: no administrator is suspected");
	is(status($node)->{outcome}, undef, "$what: the status shows no failed attempt");
	return;
}

sub back_to_original
{
	my ($what) = @_;
	is(act_row($node, 'walsizer_revert()')->{new_mb}, 4,
		"$what: walsizer_revert() leads to the original value");
	note_is_removed($node, $what);
	unlike(auto_conf($node), qr/max_wal_size|walsizer/, "$what: walsizer's lines are removed");
	restart();
	return;
}

1;
