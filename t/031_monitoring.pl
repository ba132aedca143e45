
# The queries of monitoring/ run for a member of pg_monitor and give the
# columns that their files promise, whatever the version of the server.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use CPAN::Meta::YAML;
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $dir  = "$FindBin::RealBin/../monitoring";
my $node = make_node('monitored', conf => "max_wal_size = 64MB\n");

wait_for_worker($node);
write_wal($node, 1);
$node->safe_psql('postgres', 'SELECT walsizer_adjust()');
$node->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor');

sub rows
{
	my ($sql) = @_;
	$sql =~ s/;\s*$//;
	my ($code, $stdout, $stderr) = $node->psql('postgres',
		"SELECT coalesce(json_agg(r), '[]') FROM ($sql) AS r",
		extra_params => [ '-U', 'monitor' ]);

	diag($stderr) if $code != 0;
	return $code == 0 ? JSON::PP::decode_json($stdout) : [];
}

# What both exporters ask for: { query => [ columns ] }
sub exported
{
	my ($name, $sql, @columns) = @_;
	my $rows = rows($sql);

	ok(@$rows > 0, "$name has rows");
	is(join(' ', sort keys %{ $rows->[0] // {} }), join(' ', sort @columns), "$name has its columns");
	return $rows;
}

my $file = CPAN::Meta::YAML->read("$dir/postgres-exporter.yaml")->[0];
my %query;
my %rows;

foreach my $name (sort keys %$file)
{
	my @columns = map { keys %$_ } @{ $file->{$name}{metrics} };

	$query{$name} = { sql => $file->{$name}{query}, columns => join(' ', sort @columns) };
	$rows{$name} = exported($name, $file->{$name}{query}, @columns);
}

is($rows{walsizer}[0]{worker_running}, 1, 'the metrics tell that the worker is running');
is($rows{walsizer}[0]{standby}, 0, 'the metrics tell that it is a primary');
is($rows{walsizer}[0]{max_wal_size_bytes}, 64 * MB, 'max_wal_size is in bytes');
cmp_ok($rows{walsizer}[0]{time_to_timed_seconds}, '<=', 30,
	'the time until a timed checkpoint is in seconds');
is($rows{walsizer}[0]{$_}, 'NaN',
	"a limit that does not exist is not a number: $_")
  foreach qw(recovery_limit_bytes max_recovery_time_seconds);
is(join(' ', map { $_->{state} } grep { $_->{active} } @{ $rows{walsizer_state} }),
	'active', 'one state is active');
is(scalar(grep { $_->{active} } @{ $rows{walsizer_reason} }), 1, 'one reason is active');
is(join(' ', map { $_->{reason} } @{ $rows{walsizer_reason} }),
	join(' ', slurp_file("$FindBin::RealBin/../policy/names.c") =~ /\[WALSIZER_BECAUSE_\w+\] = \{"(\w+)"/g),
	'the metrics have all reasons that walsizer gives');
is(scalar(grep { $_->{active} } @{ $rows{walsizer_verdict} }), 1, 'one verdict is active');
is(join(' ', sort map { $_->{verdict} } @{ $rows{walsizer_verdict} }),
	join(' ', sort { $a cmp $b } slurp_file("$FindBin::RealBin/../policy/verdict.c") =~ /\{\s*"([a-z_]+)",/g),
	'the metrics have all verdicts that walsizer gives');
is(scalar(grep { $_->{active} } @{ $rows{walsizer_limit} }, @{ $rows{walsizer_outcome} }),
	0, 'no limit and no outcome is active');
is(join(' ', map { $_->{cause} } @{ $rows{walsizer_checkpoints} }),
	'forced forced_old_value timed other disk_full', 'checkpoints are counted by cause');
is(join(' ', map { $_->{cause} } @{ $rows{walsizer_server_checkpoints} }),
	'requested timed', 'the checkpoints that the server counts are counted by cause');

# The other exporter has the same queries.
my $job = CPAN::Meta::YAML->read("$dir/sql-exporter.yaml")->[0]{jobs}[0];
foreach my $other (@{ $job->{queries} })
{
	my $columns = join(' ', sort @{ $other->{values} }, @{ $other->{labels} // [] });

	is($other->{query}, $query{ $other->{name} }{sql},
		"the other exporter has the same query $other->{name}");
	is($columns, $query{ $other->{name} }{columns},
		"the other exporter has the same columns of $other->{name}");
}
is(scalar(@{ $job->{queries} }), scalar(keys %query), 'the other exporter has no other queries');

# An adjustment for the second metric of pgwatch to show.
set_conf($node, "walsizer.dry_run = on\n");
write_wal($node, 60);
$node->safe_psql('postgres', 'SELECT walsizer_adjust()');

my $pgwatch = CPAN::Meta::YAML->read("$dir/pgwatch.yaml")->[0];
foreach my $name (sort keys %{ $pgwatch->{metrics} })
{
	my $metric = $pgwatch->{metrics}{$name};
	my $rows   = rows($metric->{sqls}{15});

	ok(@$rows > 0, "pgwatch's $name has rows");
	like($rows->[0]{epoch_ns}, qr/^\d{19}$/, 'pgwatch has a time in nanoseconds');
	ok((!grep { $_ ne '*' && !exists $rows->[0]{$_} } @{ $metric->{gauges} }), 'pgwatch has its gauges');
	ok(exists $pgwatch->{presets}{walsizer}{metrics}{$name}, 'the preset of pgwatch has the metric');
}

$node->stop;
done_testing();
