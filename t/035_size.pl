
# size.sql, for servers that cannot load walsizer: its arithmetic is walsizer's, what
# it measures is what was written, and the size that it proposes lets that pass.  It
# needs no privilege.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $script = "$FindBin::RealBin/../size.sql";
my @columns = qw(seconds wal largest size roomy in_effect);
my $node;

sub psql_command
{
	my ($node, %variable) = @_;

	return ('psql', '-X', '-d', $node->connstr('postgres') . ' user=anybody',
		(map { ('-v', "$_=$variable{$_}") } sort keys %variable), '-f', $script);
}

# The lines of a table as rows; figures that are not measured are left out.
sub rows_of
{
	my ($output) = @_;
	my @rows;

	foreach my $line (split /\n/, $output)
	{
		my ($time, @figures) = split ' ', $line;
		my %row;

		next unless defined $time && $time =~ /^\d\d:\d\d:\d\d$/;
		@row{ @columns[ -@figures .. -1 ] } = @figures;
		push @rows, \%row;
	}
	return @rows;
}

sub size_sql
{
	my ($node, %variable) = @_;
	my ($stdout, $stderr);

	IPC::Run::run([ psql_command($node, %variable) ], '>', \$stdout, '2>', \$stderr)
	  or die "size.sql: $stderr";
	is($stderr, '', 'size.sql has no error');
	return rows_of($stdout);
}

# ---- the arithmetic

# Amounts of WAL, in MB: few and many, whole segments and one byte to either
# side, and a spread from 1MB to 16TB.
sub amounts
{
	my ($segsize) = @_;
	my $byte    = 1 / MB;
	my @amounts = map { my $n = $_; map { $n * $segsize + $_ * $byte } -1, 0, 1 } 1 .. 80;

	push @amounts, int(MB * 1.047**$_) / MB foreach 1 .. 360;
	return @amounts;
}

# walsizer_demand has the sizes for these peaks.
sub sizes_of_walsizer
{
	my ($node) = @_;
	my %size;

	foreach my $row (split /\n/, $node->safe_psql('postgres',
		'SELECT demand, needed_size / 1048576 FROM walsizer_demand'))
	{
		my ($demand, $size) = split /\|/, $row;
		$size{$demand} = $size;
	}
	return %size;
}

# Where two lists of sizes differ.
sub differences
{
	my ($bytes, $got, $expected) = @_;
	my @differ = grep { ($got->[$_] // 'none') ne ($expected->[$_] // 'none') } 0 .. $#$bytes;

	return join '', map {
		"$bytes->[$_] bytes: " . ($got->[$_] // 'none') . ', not ' . ($expected->[$_] // 'none') . "\n"
	} @differ;
}

sub compare
{
	my ($segsize, $target, $headroom, @amounts) = @_;
	my $what = "segments of ${segsize}MB, target $target, headroom $headroom";
	my @bytes = map { sprintf '%.0f', $_ * MB } @amounts;

	set_conf($node, "checkpoint_completion_target = $target\nwalsizer.headroom = $headroom\n");
	wait_for_sample($node);
	my %expected = sizes_of_walsizer($node);
	my @rows = size_sql($node, headroom => $headroom, wal => join(',', @bytes));

	is(differences(\@bytes, [ map { $_->{roomy} } @rows ], [ @expected{@bytes} ]),
		'', "$what: size.sql has the sizes of walsizer");

	# the column without headroom, by the test's own arithmetic
	my @small = grep { $amounts[$_] < 2048 } 0 .. $#amounts;
	is(differences([ @bytes[@small] ], [ map { $_->{size} } @rows[@small] ],
			[ map { size_for_mb($_ * MB, $segsize, $target) } @amounts[@small] ]),
		'', "$what: size.sql has the sizes without headroom");
	return;
}

is(differences([ 1, 2 ], [ 3, 4 ], [ 3, 5 ]), "2 bytes: 4, not 5\n", 'a difference would be noticed');

foreach my $segsize (1, 16)
{
	my @amounts = amounts($segsize);

	$node = make_node("arithmetic_$segsize", segsize => $segsize,
		conf => "walsizer.enable = off\nwalsizer.lookback = 31d\nmax_wal_size = 1GB\nmin_wal_size = 80MB\n");
	$node->safe_psql('postgres', 'CREATE ROLE anybody LOGIN');
	$node->stop;
	remember_peaks($node, @amounts);
	$node->start;
	wait_for_worker($node);
	foreach my $target (0, 0.5, 0.9, 0.987654, 1)
	{
		compare($segsize, $target, 1.2, @amounts);
	}
	compare($segsize, 0.9, 1, @amounts);
	compare($segsize, 0.9, 2.7, @amounts);
	$node->stop;
}

# ---- two positions, and a standby

$node = make_node('positions', streaming => 1, conf => "walsizer.enable = off\nwal_keep_size = 64MB\n");
$node->safe_psql('postgres', 'CREATE ROLE anybody LOGIN');
my ($row) = size_sql($node, from => '0/3000000', to => '0/2F000000');
is("$row->{wal} $row->{size} $row->{in_effect}", '704 ' . size_for_mb(704 * MB, 1, 0.9) . ' 4',
	'two positions have their WAL and its size');
my ($same) = size_sql($node, from => '0/2F000000', to => '0/3000000');
is_deeply($same, $row, 'two positions may be given in the other order');

# Start to measure; the table appears in $$output, a line every three seconds.
sub start_measuring
{
	my ($node, $output) = @_;
	return IPC::Run::start([ psql_command($node) ], '<', \undef, '>', $output,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
}

sub wait_for_row
{
	my ($psql, $output, $condition) = @_;
	my @rows;

	until (@rows = grep { $condition->($_) } rows_of($$output))
	{
		$psql->pump;
	}
	return $rows[-1];
}

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
my $output = '';
my $psql   = start_measuring($standby, \$output);
wait_for_row($psql, \$output, sub { 1 });
write_wal($node, 6);
$row = wait_for_row($psql, \$output, sub { $_[0]->{wal} >= 6 });
cmp_ok($row->{wal}, '<=', 8, 'a standby: size.sql measures the WAL that is replayed');
is($row->{size}, size_for_mb($row->{wal} * MB, 1, 0.9), 'a standby: size.sql has the size for that WAL');
$psql->kill_kill;
$standby->stop;
$node->stop;

# ---- under load

$node = make_node('load', conf => "walsizer.enable = off\nmax_wal_size = 1GB\n");
$node->safe_psql('postgres', 'CREATE ROLE anybody LOGIN');
my $load = start_load($node, 2);
$output = '';
$psql   = start_measuring($node, \$output);
wait_for_row($psql, \$output, sub { $_[0]->{seconds} >= 36 || rows_of($output) > 13 });
my $demand = status($node)->{demand} / MB;
$row = (rows_of($output))[-1];
$psql->kill_kill;
cmp_ok($row->{wal}, '>=', 0.9 * $demand, 'under load: size.sql measures as much WAL as walsizer');
cmp_ok($row->{wal}, '<=', 1.25 * $demand, 'under load: size.sql measures at most a step more WAL');
cmp_ok($row->{largest}, '>=', $row->{wal}, 'under load: the largest WAL is at least that of the last step');

set_conf($node, "max_wal_size = $row->{roomy}MB\n");
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for_sample($node);
my $offset = log_offset($node);
my $before = status($node);
wait_for($node, "checkpoints_timed >= $before->{checkpoints_timed} + 2");
is(count_forced_in_log($node, $offset), 0, 'under load: no checkpoint is forced at that size');

# Half of it forces one: the load is not too small to show anything.
set_conf($node, 'max_wal_size = ' . int($row->{size} / 2) . "MB\n");
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for_sample($node);
$offset = log_offset($node);
wait_for_log_line($node, qr/checkpoint starting:/, $offset);
is(count_forced_in_log($node, $offset), 1, 'under load: a checkpoint is forced at half of that size');
stop_load($load);
$node->stop;

done_testing();
