
# Hours of changing loads on a primary and its standby, beside an administrator
# who reloads, sets things, backs up and promotes.  Once a minute it notes what
# the worker of the primary holds and what the server logs and does; in the end
# these must be flat.
#
# WALSIZER_HOURS says how long (3; fractions are allowed), WALSIZER_SEED which
# course of events.  A line of JSON for each minute goes to soak.jsonl in the
# directory of the logs.
#
# What ~/carried holds of an earlier run is gone on with: the data directory of
# its primary, and what was noted.  Both are left there for the next one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../../t";

use JSON::PP ();
use List::Util qw(first);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);
use WalsizerTest;

use constant MINUTE => 60;
use constant SETTLED => 10;    # minutes until a worker holds what it will hold

my $hours = $ENV{WALSIZER_HOURS} // 3;
my $seed = $ENV{WALSIZER_SEED} // int(rand(1 << 30));
srand($seed);
diag("seed $seed, $hours hours");

my $end = time + 3600 * $hours;
my $series = "$PostgreSQL::Test::Utils::log_path/soak.jsonl";
my $carried = "$ENV{HOME}/carried";
my $json = JSON::PP->new->canonical;

# What all runs noted: minutes, and the names of loads and events.
my $noted = { runs => 0, nodes => 0, minutes => [], loads => 0, events => {} };
$noted = $json->decode(slurp_file("$carried/noted")) if -e "$carried/noted";
$noted->{runs}++;

my $primary = -d "$carried/data" ? bring_back() : make_primary();
my $standby = make_standby($primary);

sub next_name { return 'soak' . ++$noted->{nodes} }

sub make_primary
{
	my $node = make_node(next_name(), segsize => 16, streaming => 1, conf => <<'END');
max_wal_size = 128MB
min_wal_size = 80MB
shared_buffers = 128MB
autovacuum = on
walsizer.sample_interval = 1s
walsizer.max = 2GB
max_wal_senders = 5
END
	command_ok([ 'pgbench', '-q', '-i', '-s', '20', $node->connstr('postgres') ], 'data');
	return $node;
}

# A server that was stopped is as good as its backup.
sub bring_back
{
	my $node = PostgreSQL::Test::Cluster->new(next_name());

	mkdir $node->backup_dir;
	rename("$carried/data", $node->backup_dir . '/carried') or die "$carried/data: $!";
	$node->init_from_backup($node, 'carried');
	$node->start;
	wait_for_worker($node);
	return $node;
}

sub make_standby
{
	my ($of) = @_;
	my $node = PostgreSQL::Test::Cluster->new(next_name());

	$of->backup($node->name);
	$node->init_from_backup($of, $node->name, has_streaming => 1);
	$node->start;
	wait_for_worker($node);
	return $node;
}

# ---- loads, of one to four minutes each

sub pgbench
{
	my (@options) = @_;
	return IPC::Run::start([ 'pgbench', '-n', '-T', '3600', @options, $primary->connstr('postgres') ],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null');
}

my @loads = (
	[ 'idle'      => sub { return } ],
	[ 'tpcb slow' => sub { return pgbench('-c', 4, '-R', 100) } ],
	[ 'tpcb'      => sub { return pgbench('-c', 4, '-R', 800) } ],
	[ 'WAL'       => sub { return start_load($primary, 1 + int rand 30) } ],
	[
		'bulk' => sub {
			$primary->safe_psql('postgres',
				'DROP TABLE IF EXISTS bulk; CREATE TABLE bulk AS SELECT * FROM pgbench_accounts; CREATE INDEX ON bulk (aid)');
			return;
		}
	]);

# ---- what others do, with the number of times an hour

my @events = (
	[ 30 => 'reload', sub { $primary->reload } ],
	[
		20 => 'ALTER SYSTEM of another setting',
		sub {
			$primary->safe_psql('postgres', 'ALTER SYSTEM SET work_mem = ' . (4096 + int rand 1000));
			$primary->reload;
		}
	],
	[
		2 => 'ALTER SYSTEM of max_wal_size',
		sub {
			$primary->safe_psql('postgres', q{ALTER SYSTEM SET max_wal_size = '} . (128 + int rand 128) . q{MB'});
			$primary->reload;
		}
	],
	[ 20 => 'CHECKPOINT', sub { $primary->safe_psql('postgres', 'CHECKPOINT') } ],
	[ 4 => 'planned load', sub { $primary->safe_psql('postgres', q{SELECT walsizer_boost('700MB', '2 minutes')}) } ],
	[ 4 => 'questions', sub { $primary->safe_psql('postgres', 'SELECT walsizer_report(); TABLE walsizer_advice') } ],
	[ 1 => 'restart', sub { $primary->restart; wait_for_worker($primary) } ],
	[ 1 => 'promotion', \&promote ]);
$noted->{events}{ $_->[1] } //= 0 foreach @events;

sub promote
{
	$primary->stop;
	$standby->promote;
	$primary->clean_node;
	$primary = $standby;
	wait_for($primary, "role = 'primary'");
	$standby = make_standby($primary);
	return;
}

# ---- what is noted

my ($log_read, $log_of) = (0, '');

sub note_minute
{
	my ($minute, $load) = @_;
	my $pid = pid($primary);
	my $status = status($primary);

	$log_read = 0 if $log_of ne $primary->name;
	$log_of = $primary->name;
	my $log = slurp_file($primary->logfile, $log_read);
	$log_read += length $log;
	my %row = (
		minute => $minute, load => $load, worker => $pid, node => $primary->name,
		resident_kb => (slurp_file("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m)[0],
		anonymous_kb => (slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m)[0],
		descriptors => scalar(@{ [ glob "/proc/$pid/fd/*" ] }),
		max_wal_size_mb => $status->{max_wal_size} / MB,
		forced => $status->{checkpoints_forced},
		forced_old_value => $status->{checkpoints_forced_old_value},
		timed => $status->{checkpoints_timed},
		lines => scalar(() = $log =~ /LOG:.*walsizer/g),
		reloads => scalar(() = $log =~ /received SIGHUP/g),
		complaints => scalar(() = $log =~ /(?:WARNING|ERROR|FATAL|PANIC):.*walsizer/g),
		crashes => scalar(() = $log =~ /was terminated by signal/g));
	append_to_file($series, $json->encode(\%row) . "\n");
	push @{ $noted->{minutes} }, \%row;
	return;
}

# ---- the course of events

my ($running, $load);
my $change_at = 0;
for (my $minute = 0; time < $end; $minute++)
{
	my $next = time + MINUTE;

	WalsizerTest::not_hanging();
	if ($minute >= $change_at)
	{
		stop_load($running) if $running;
		my $chosen = $loads[ rand @loads ];
		$load = $chosen->[0];
		$noted->{loads}++;
		$running = $chosen->[1]->();
		$change_at = $minute + 1 + int rand 4;
	}
	foreach my $event (@events)
	{
		my ($an_hour, $name, $do) = @$event;
		next if rand() >= $an_hour / 60;
		if ($name eq 'promotion' || $name eq 'restart')
		{
			stop_load($running) if $running;
			$running = undef;
			$change_at = $minute + 1;
		}
		$do->();
		$noted->{events}{$name}++;
	}
	note_minute($minute, $load);
	my $rest = $next - time;
	sleep($rest) if $rest > 0;
}
stop_load($running) if $running;

# ---- what must be flat: for each worker, from when it had settled

# The minute of a worker's first change of the size, which takes memory that the worker
# keeps for the next.  The first minute has the line of its start.
sub first_change
{
	my (@minutes) = @_;
	return (first { $minutes[$_]{lines} > 0 } 1 .. $#minutes) // 0;
}

my @rows = @{ $noted->{minutes} };
my %of_worker;
push @{ $of_worker{"$_->{node} $_->{worker}"} }, $_ foreach @rows;
foreach my $worker (sort keys %of_worker)
{
	my @settled = @{ $of_worker{$worker} };
	splice @settled, 0, SETTLED + first_change(@settled);
	next unless @settled > SETTLED;
	my ($first, $last) = @settled[ 0, -1 ];
	cmp_ok($last->{anonymous_kb}, '<=', $first->{anonymous_kb} + 256,
		"the worker does not grow ($first->{anonymous_kb}, $last->{anonymous_kb} kB in " . @settled . ' minutes)');
	cmp_ok($last->{descriptors}, '<=', $first->{descriptors}, 'nor does it open more files');
}

sub sum { my ($name) = @_; my $sum = 0; $sum += $_->{$name} foreach @rows; return $sum }

my $minutes = @rows;
my %happened = %{ $noted->{events} };
is(sum('complaints'), 0, 'no warning or error speaks of walsizer');
is(sum('crashes'), 0, 'no process crashed');
cmp_ok(sum('lines') / $minutes * 60, '<', 120, 'few lines of walsizer in an hour');
diag(sprintf 'soak: %d minutes%s, %d loads, %s; %d lines of walsizer, %d reloads; the worker held %d to %d kB and %d to %d descriptors',
	$minutes, $noted->{runs} > 1 ? " in $noted->{runs} runs" : '', $noted->{loads}, join(', ', map { "$happened{$_} x $_" } sort keys %happened),
	sum('lines'), sum('reloads'),
	(sort { $a <=> $b } map { $_->{anonymous_kb} } @rows)[ 0, -1 ],
	(sort { $a <=> $b } map { $_->{descriptors} } @rows)[ 0, -1 ]);
$primary->stop;
$standby->stop;

if (-d $carried)
{
	rename($primary->data_dir, "$carried/data") or die "$carried/data: $!";
	write_file("$carried/noted", $json->encode($noted));
}

done_testing();
