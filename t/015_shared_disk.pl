
# Several clusters keep their WAL on one small volume.  None knows of the others,
# and each may claim a share of what is free: they must not fill it together, and
# reach equal shares, which are 1 / (N + 1) of the volume.
#
# Each case runs for two intervals, in which nothing but the loads is waited for.
# Those that were hardest are run always; all of them, each also without walsizer
# for comparison, if WALSIZER_FILLS in the environment is larger than 1:
#
#     WALSIZER_FILLS=2 script/test 15 -v t/015_shared_disk.pl

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use List::Util qw(max min sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my $volume_mb   = 573;
my $seconds     = 60;
my $most_apart  = 2.5;
my $everything  = ($ENV{WALSIZER_FILLS} // 1) > 1;

# "rate": MB of WAL per second of each cluster; 0: as fast as it goes.
#
# "dirty": when the load dirties pages, too, one for each 100 kB of WAL.  Then a
# checkpoint lasts nearly until the next one, and WAL fills max_wal_size.  With nothing
# to write a checkpoint is over at once, and WAL fills half of max_wal_size.  "later":
# from half of the time on, when the sizes have been raised for quick checkpoints.
my @cases = (
	{ clusters => 4, rate => 9, interval => '1s', dirty => 'later', hardest => 1 },
	{ clusters => 6, rate => 6, interval => '10s', dirty => 'later', hardest => 1 },
	{ clusters => 4, rate => 9, interval => '10s', dirty => 'always' },
	{ clusters => 6, rate => 6, interval => '1s', dirty => 'always' },
	{ clusters => 6, rate => 6, interval => '1s', dirty => 'never' },
	{ clusters => 2, rate => 0, interval => '1s', dirty => 'never' },
	{ clusters => 2, rate => 0, interval => '10s', dirty => 'always' },
	{ clusters => 1, rate => 20, interval => '1s', dirty => 'never' },
	{ clusters => 1, rate => 20, interval => '1s', dirty => 'always' });

# What is free of the volume, in percent, five times a second until it is ended.
sub start_df
{
	my ($dir, $file) = @_;

	return IPC::Run::start(
		[
			'bash', '-c',
			'while stat --file-system --format="%a %b" "$0"; do sleep 0.2; done', $dir
		],
		'<', \undef, '>', $file, '2>', '/dev/null');
}

sub least_free
{
	my ($file) = @_;
	my @free = map { /^(\d+) (\d+)$/ ? 100 * $1 / $2 : () } split(/\n/, slurp_file($file));

	return (scalar(@free), min(@free));
}

sub died
{
	my ($node) = @_;
	return log_count($node, qr/PANIC|No space left/) > 0;
}

# The clusters of one case, with pg_wal on the volume.
sub make_clusters
{
	my ($case, $name, $volume, $enable) = @_;
	my @nodes;

	foreach my $n (1 .. $case->{clusters})
	{
		my $node = make_node("${name}_$n", start => 0, conf => <<"END");
max_wal_size = 16MB
walsizer.sample_interval = $case->{interval}
walsizer.enable = $enable
END
		mkdir "$volume/$n" or die "could not make $volume/$n: $!";
		move_wal($node, "$volume/$n");
		$node->start;
		$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
		make_pages($node);
		wait_for_worker($node);
		push @nodes, $node;
	}
	return @nodes;
}

# What each cluster has at least, in MB: half of its share.
sub least_size { return $volume_mb / ($_[0]->{clusters} + 1) / 2 }

# What WAL does not fill others cannot see: no further step follows.
sub is_shared { return $_[0]->{clusters} == 1 || $_[0]->{dirty} ne 'never' }

sub are_even
{
	my ($case, @sizes) = @_;

	return !is_shared($case) || min(@sizes) >= least_size($case) && max(@sizes) <= $most_apart * min(@sizes);
}

# Run one case, and say what came of it.
sub run_case
{
	my ($case, $enable) = @_;
	my $dirty = $case->{dirty};
	my $name = "c$case->{clusters}_r$case->{rate}_$case->{interval}_${dirty}_$enable";
	my $volume = small_volume(7, $volume_mb);
	my @nodes  = make_clusters($case, $name, $volume, $enable);
	my $file   = $nodes[0]->basedir . '/free';
	my $df     = start_df($volume, $file);
	my %result = (died => 0, sizes => []);
	my @loads  = map { start_load($_, $case->{rate}) } @nodes;
	push @loads, map { start_dirtying($_, $case->{rate} || 10) } @nodes if $dirty eq 'always';
	my $began  = time;

	# on a busy machine WAL may fill the sizes later; who is dead cannot be asked
	while (!$result{died} && (time - $began < $seconds
			|| $enable eq 'on' && time - $began < 5 * $seconds && !are_even($case, @{ $result{sizes} })))
	{
		Time::HiRes::usleep(500_000);
		$result{died} = grep { died($_) } @nodes;
		$result{sizes} = [ map { $result{died} ? () : setting_mb($_) } @nodes ];
		if ($dirty eq 'later' && time - $began > $seconds / 2)
		{
			push @loads, map { start_dirtying($_, $case->{rate} || 10) } @nodes;
			$dirty = 'now';
		}
	}
	$result{seconds} = time - $began;

	foreach my $node (grep { !$result{died} } @nodes)
	{
		$result{written} += $node->safe_psql('postgres',
			"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1048576");
		$result{changes} += history($node);
		$result{requests} += status($node)->{checkpoints_disk_full};
	}
	stop_load($_) foreach @loads;
	stop_load($df);
	($result{samples}, $result{free}) = least_free($file);
	$_->stop('immediate', fail_ok => 1) foreach @nodes;
	note(sprintf('%s: after %d s: %d cannot write WAL, least free %.1f %%, sizes %s = %d MB, %d changes, %d requests, %d MB/s',
			$name, $result{seconds}, $result{died}, $result{free},
			join(' + ', @{ $result{sizes} }), sum(0, @{ $result{sizes} }),
			$result{changes} // 0, $result{requests} // 0, ($result{written} // 0) / $result{seconds}));
	return %result;
}

foreach my $case (grep { $everything || $_->{hardest} } @cases)
{
	my $what = sprintf('%d clusters, %s each, dirty pages %s, sample every %s',
		$case->{clusters}, $case->{rate} ? "$case->{rate} MB/s" : 'full speed',
		$case->{dirty}, $case->{interval});
	my %without = $everything ? run_case($case, 'off') : (free => 100);
	my %result = run_case($case, 'on');

	cmp_ok($result{samples}, '>=', 20, "$what: the test watches the free space");
	is($result{died}, 0, "$what: the volume is never full");
	cmp_ok($result{free}, '>=', min(5, $without{free}),
		"$what: 5 % of the volume stay free, or as much as without walsizer");

	next unless is_shared($case);
	cmp_ok(min(@{ $result{sizes} }) // 0, '>=', least_size($case),
		"$what: each cluster has at least half of its share");
	# a limit is followed down only by a fifth, and up by a tenth
	cmp_ok(max(@{ $result{sizes} }) // 1e6, '<=', $most_apart * (min(@{ $result{sizes} }) // 0),
		"$what: no cluster has more than $most_apart times as much as another");
}

done_testing();
