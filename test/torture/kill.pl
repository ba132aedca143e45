
# Kills processes at random moments of changes: the worker, the session that
# asked, the checkpointer or the postmaster, each with SIGKILL.  Afterwards the
# value is walsizer's, with all that it must know of it, or an administrator's,
# with nothing of walsizer's beside it.
#
# WALSIZER_KILLS says how many (500), WALSIZER_SEED which moments.  t/024_steps.pl
# does each step of each change in turn; this does what nobody thought of.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/../../t";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use WalsizerTest;

use constant ORIGINAL => 4;           # MB
use constant LINES => 40;             # of walsizer in the log, for each kill

my $kills = $ENV{WALSIZER_KILLS} // 500;
my $seed = $ENV{WALSIZER_SEED} // int(rand(1 << 30));
srand($seed);
diag("seed $seed");

# An interval without end: nothing happens but what is asked for.
my $node = make_node('kill', conf => <<'END');
walsizer.predict = off
checkpoint_timeout = 1h
restart_after_crash = on
END

# The value that an administrator set last, in MB.
my $administrators = ORIGINAL;

my $duration;

sub sql { return try_to_ask($node, @_) }

# What may be under way when somebody dies.
my @requests = (
	sub { return sprintf q{SELECT walsizer_boost('%dMB', '1 hour')}, 16 + int rand 200 },
	sub { return sprintf q{SELECT walsizer_boost('%dMB', '1 hour')}, 16 + int rand 200 },
	sub { return 'SELECT walsizer_boost_end()' },
	sub { return 'SELECT walsizer_revert()' },
	sub { return 'SELECT walsizer_adjust()' },
);

# Name => how to do it.  Each returns when the server is to be waited for.
my %victims = (
	worker       => sub { kill 'KILL', $_[0]->{worker} },
	checkpointer => sub { kill 'KILL', $_[0]->{checkpointer} },
	session      => sub { $_[0]->{request}->kill_kill(grace => 0) },
	postmaster   => sub { kill 'KILL', $node->{_pid}; start_after_kill($node) },
);
my %killed = map { $_ => 0 } keys %victims;

# An administrator's change, which is complete before anybody is killed.
sub change_as_administrator
{
	my $mb = ORIGINAL + int rand 8;

	sql("ALTER SYSTEM SET max_wal_size = '${mb}MB'") // die 'ALTER SYSTEM failed';
	sql('SELECT pg_reload_conf()');
	wait_for($node, "max_wal_size = $mb * 1048576 AND set_by_walsizer IS NULL");
	$administrators = $mb;

	# a change is left alone until the worker has started twice
	for (1 .. 2)
	{
		$node->restart;
		wait_for_worker($node);
	}
	return;
}

sub kill_one
{
	my ($victim) = @_;
	my $worker = pid($node);
	my $request = $requests[ rand @requests ]->();
	my %pids = (worker => $worker);

	$pids{checkpointer} = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
	$pids{request} = start_asking($node, $request);
	usleep(int rand 2e6 * $duration);
	$victims{$victim}->(\%pids);
	eval { $pids{request}->finish };
	$killed{$victim}++;
	wait_until('the server comes back', sub { return defined sql('SELECT 1') });
	wait_for_worker($node, $victim eq 'session' ? undef : $worker);
	return $request;
}

# What the files say of max_wal_size: walsizer's note, and the value.
sub in_files
{
	my $text = auto_conf($node);
	my @values = $text =~ /^max_wal_size = '(\d+)MB'$/mg;
	my @notes = $text =~ /^walsizer\.\w+ = '(.*)'$/mg;

	return (\@values, \@notes);
}

# Whose is the value?  Empty if it is clear, else what is wrong.
sub what_is_unclear
{
	# what was written and not reloaded counts from now on
	sql('SELECT pg_reload_conf()');
	wait_for_sample($node);
	sql('SELECT walsizer_adjust()');

	my $status = status($node);
	my ($values, $notes) = in_files();
	my $mb = $status->{max_wal_size} / MB;
	my $own = defined $status->{set_by_walsizer} ? $status->{set_by_walsizer} / MB : undef;

	return 'more than one line of max_wal_size' if @$values > 1;
	return 'more than one note' if @$notes > 1;
	if (defined $own)
	{
		return "walsizer owns $own MB, and $mb MB are in effect" if $own != $mb;
		return "walsizer owns $own MB, the file has @$values" if "@$values" ne "$own";
		return "the note is @$notes" if "@$notes" !~ /^${own}MB instead of ${administrators}MB\b/;
		return 'the original value is ' . $status->{original_size} / MB
		  if $status->{original_size} != $administrators * MB;
	}
	else
	{
		return "an administrator set $administrators MB, and $mb MB are in effect"
		  if $mb != $administrators;
		return "the file has @$values" if @$values && $values->[0] != $administrators;
		# before an administrator's line it says nothing of that
		return "nobody owns the note @$notes"
		  if "@$notes" =~ /instead of/ && auto_conf($node) !~ /^walsizer\.last_written.*\nmax_wal_size = /m;
	}
	return '';
}

# A change that is recorded twice.
sub recorded_twice
{
	my $before = '';

	foreach my $event (grep { $_->{outcome} eq 'applied' } history($node))
	{
		my $change = join ' ', map { $event->{$_} // '' } qw(action reason old_mb new_mb);
		return $change if $change eq $before;
		$before = $change;
	}
	return '';
}

# How long a request takes, in seconds, when nobody is killed.
my $begun = time;
sql($_->()) // die 'a request failed' foreach @requests;
$duration = (time - $begun) / @requests;

my $offset = log_offset($node);
my $applied = 0;
my $last = 0;
my @victims = sort keys %victims;

for my $n (1 .. $kills)
{
	my $victim = $victims[ rand @victims ];

	WalsizerTest::not_hanging();
	change_as_administrator() if rand() < 0.1;
	my $request = kill_one($victim);
	my $what = "$n: $victim killed during $request";
	my $unclear = what_is_unclear();
	my $twice = recorded_twice();
	my $lines = log_count($node, qr/walsizer/, $offset);
	my @events = grep { $_->{outcome} eq 'applied' && $_->{id} > $last } history($node);

	$applied += @events;
	$last = $events[-1]->{id} if @events;
	ok($unclear eq '' && $twice eq '' && $lines <= LINES, $what)
	  or diag("$unclear; recorded twice: $twice; $lines lines of walsizer in the log\n", auto_conf($node));
	$offset = log_offset($node);
}

cmp_ok($applied, '>', $kills / 5, "changes were made ($applied)");
diag("kill: $kills kills (" . join(', ', map { "$_ $killed{$_}" } @victims) . "), $applied changes applied, seed $seed");
$node->stop;

done_testing();
