
# walsizer_timeout_advice on a server: it says nothing before it knows, what it says
# then is what the load does, and what was said is kept when checkpoint_timeout changes.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use List::Util qw(first);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $node = make_node('advice', conf => "max_wal_size = 1GB\nwalsizer.max = 1GB\nsynchronous_commit = off\n");

sub advice
{
	my ($timeout) = @_;
	my @names = qw(label least most saved compared_with size basis);
	my %row;

	@row{@names} = split /\|/, $node->safe_psql('postgres', <<"END_SQL"), -1;
SELECT label, wal_saved_least, wal_saved_most, wal_saved, compared_with, needed_size, basis
  FROM walsizer_timeout_advice WHERE checkpoint_timeout = '$timeout'
END_SQL
	return \%row;
}

is(advice('30 s')->{label}, 'in effect', 'the value in effect has a row');
is_deeply(advice('15 min'),
	{ basis => 'cannot tell: fewer than three timed checkpoints in a row', map { $_ => '' }
		  qw(label least most saved compared_with size) },
	'nothing is said before three timed checkpoints');

# The watch sees all that the worker sees.
my ($page, $complaints) = ('', '');
my $watch = IPC::Run::start([ 'walsizer-watch', '-d', $node->connstr('postgres') ], '<', \undef, '>', \$page, '2>', \$complaints,
	IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity
	WHERE query LIKE '%pg_is_in_recovery()%' AND pid <> pg_backend_pid()")
  or die 'the watch does not begin';

# 1500 pages, which a steady load changes again and again.  An interval in which the
# machine starves it counts for twelve intervals, which is twice the time of a poll.
make_pages($node);
my $load = start_dirtying($node, 30, 1500);
my $knows = "SELECT basis = 'bounds' FROM walsizer_timeout_advice WHERE checkpoint_timeout = '15 min'";
first { $node->poll_query_until('postgres', $knows) } 1 .. 3
  or die 'it never knows';
my $row = advice('15 min');
my ($images, $bytes) = split /\|/, $node->safe_psql('postgres', 'SELECT wal_fpi, wal_bytes FROM pg_stat_wal');
note "least $row->{least}, most $row->{most}; $images images in $bytes bytes";
cmp_ok($row->{least}, '<=', $row->{most}, 'the least saving is at most the greatest');
cmp_ok($row->{most}, '>', 0.3, 'much may be saved, because most of the WAL is images');
cmp_ok($row->{most}, '<', 1, 'not all WAL can be saved');
cmp_ok($row->{size}, '>', 0, 'a longer interval has the size that it needs');
is(advice('30 s')->{basis}, 'measured', 'the row of the value in effect is measured');
is(advice('30 s')->{$_}, 0, "the value in effect saves nothing: $_") foreach qw(least most);

# An interval more, so that the watch, too, has three.
my $timed = status($node)->{checkpoints_timed};
wait_for($node, "checkpoints_timed > $timed AND 'bounds' =
  (SELECT basis FROM walsizer_timeout_advice WHERE checkpoint_timeout = '15 min')");
$row = advice('15 min');
$watch->signal('INT');
$watch->finish;
is($complaints, '', 'the watch misses nothing');
like($page, qr/^Timeout       What a longer checkpoint_timeout would save: \d+ to \d+ % of the WAL\s+with\s+5\s+min\./m,
	'the page of the watch says what a longer value saves');
my ($least, $most, $mb) = $page =~ /(\d+)\s+to\s+(\d+)\s+%\s+of\s+the\s+WAL\s+with\s+15\s+min\.\s+It\s+needs\s+a\s+max_wal_size\s+of\s+(\d+)\s+MB/;
note "worker: $row->{least} $row->{most} $row->{size}, watch: $least $most $mb";
cmp_ok(abs($least - 100 * $row->{least}), '<=', 10, 'the page says the same least saving as the view');
cmp_ok(abs($most - 100 * $row->{most}), '<=', 10, 'the page says the same most saving as the view');
cmp_ok(abs($mb * 1048576 - $row->{size}), '<=', 0.3 * $row->{size}, 'the page says about the same size as the view');

# What was said of a value is in its row when it is set.
my $said = advice('5 min');
set_conf($node, "checkpoint_timeout = 5min\n");
$node->poll_query_until('postgres',
	"SELECT label = 'in effect' FROM walsizer_timeout_advice WHERE checkpoint_timeout = '5 min'")
  or die 'the value does not take effect';
$row = advice('5 min');
is($row->{compared_with}, '00:00:30', 'a new value is compared with the value before');
cmp_ok(abs($row->{$_} - $said->{$_}), '<', 0.05,
	"a new value keeps what was said of it: $_") foreach qw(least most);
is($row->{saved}, '', 'a new value does not know at once what it saves');
stop_load($load);

$node->safe_psql('postgres', 'SELECT walsizer_forget()');
is(advice('5 min')->{compared_with}, '', 'walsizer_forget() forgets the comparison');
$node->stop;

done_testing();
