
# Every outcome that applying a value can have really occurs here.
#
# In each case of trouble the worker lives on, says so once in the log and in
# the status however often it tries, and recovers by itself when the trouble
# is gone.  The cases of trouble run side by side on servers of their own,
# because the next attempt "by itself" comes after a checkpoint_timeout.
#
# Failures of other tuners that this file covers (numbers as in the manual's
# page on failures): 5, a value that cannot take effect is written for ever;
# 6, an error while writing ends the worker; 18, trouble with the history
# keeps a written value from being applied; 19, read-only transactions.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

# With these, only walsizer_adjust() raises, so that each attempt is
# one that the test knows of; for as long as the interval lasts.
my $classic = "walsizer.predict = off\n";
my $asked   = $classic . "checkpoint_timeout = 5min\n";
my $reload  = qr/received SIGHUP, reloading configuration files/;
my $could   = qr/LOG:  walsizer could not change "max_wal_size"/;
my (@cases, $node, $offset, $pid);

# ---- applied, with default_transaction_read_only, and no history on disk

$node = make_node('applied', conf => $asked . "default_transaction_read_only = on\n", start => 0);
$node->start;
$node->safe_psql('postgres',
	'SET default_transaction_read_only = off; CREATE EXTENSION walsizer');
wait_for_worker($node);
$pid = pid($node);
wait_for_log_line($node, qr/walsizer started/, 0);
is(log_count($node, qr/LOG:  walsizer started: active, "max_wal_size" 4 MB, limit \d+ MB$/), 1,
	'the log says that walsizer has started');

# a directory where the state file is written first: it cannot be saved
mkdir $node->data_dir . '/pg_stat/walsizer.state.tmp' or die $!;
$offset = log_offset($node);
force_checkpoints($node, 8);
like(adjust($node), qr/^raise .*: applied$/,
	'neither default_transaction_read_only nor a state file that cannot be written prevents a raise');
cmp_ok(setting_mb($node), '>', 4, 'the new value is in effect');
is(log_count($node, qr/could not write walsizer's state file/, $offset),
	1, 'trouble with the state file is logged once, however often it is written');
is(last_event($node)->{outcome}, 'applied', 'the raise is in the history');
is(log_count($node, qr/LOG:  walsizer changed "max_wal_size" from 4 MB to \d+ MB/, $offset),
	1, 'a raise is logged');
is(pid($node), $pid, 'the worker continues after it has logged the raise');
rmdir $node->data_dir . '/pg_stat/walsizer.state.tmp' or die $!;
$node->restart;
wait_for_worker($node);
is(log_count($node, qr/LOG:  walsizer stopped$/), 1, 'the log says that walsizer has stopped');
is(last_event($node)->{outcome},
	'applied', 'the raise is saved as soon as the file can be written');
$node->stop;

# ---- dry run

$node = make_node('dry_run', live => 1, conf => $asked . "walsizer.dry_run = on\n");
$offset = log_offset($node);
force_checkpoints($node, 8);
like(adjust($node), qr/^raise .*: dry run\b/, 'dry run: walsizer says what it would do');
is(status($node)->{state}, 'dry run', 'dry run: the state is "dry run"');
is(status($node)->{outcome}, undef, 'dry run: the status shows no failed attempt');
is(setting_mb($node), 4, 'dry run: max_wal_size stays');
unlike(auto_conf($node), qr/max_wal_size/, 'dry run: postgresql.auto.conf stays');
is(log_count($node, $reload, $offset), 0, 'dry run: the server reloads nothing');
adjust($node) for 1 .. 3;
is(log_count($node, qr/LOG:  walsizer would change "max_wal_size"/, $offset),
	1, 'dry run: the decision is logged once');
is(scalar(grep { $_->{outcome} eq 'dry run' } history($node)), 1,
	'dry run: the decision is recorded once');
chmod 0400, $node->data_dir . '/postgresql.auto.conf' or die $!;
like(status($node)->{verdict}, qr/ is too small: .* walsizer cannot raise it: .* is not writable\./,
	'dry run: the verdict names what would prevent the raise');
chmod 0600, $node->data_dir . '/postgresql.auto.conf' or die $!;
set_conf($node, 'walsizer.dry_run = off');
like(adjust($node), qr/^raise .*: applied$/, 'dry run: after it is turned off, a raise is applied');
is(last_event($node)->{old_mb}, 4, 'dry run: the raise after it starts at the value in effect');
$node->stop;

# What a dry run did not do need not wait.  There is only one size to raise to.
$node = make_node('dry_run_ends',
	conf => "walsizer.dry_run = on\nwalsizer.max = 8MB\ncheckpoint_timeout = 5min\n");
{
	my $load = start_load($node, 2);

	wait_for($node, "EXISTS (SELECT FROM walsizer_history WHERE outcome = 'dry run')");
	set_conf($node, 'walsizer.dry_run = off');
	wait_for($node, 'set_by_walsizer = 8 * 1048576');
	pass('dry run: a load that continues is served as soon as dry run is turned off');
	stop_load($load);
}
$node->stop;

# ---- trouble

# A lowering that is not possible, and for which there is room only just after each
# checkpoint: at the end of a cycle there seems to be nothing to do.  Judged below.
my $lowering = make_node('lowering', live => 1, conf => $asked);
force_checkpoints($lowering, 60);
like(adjust($lowering), qr/^raise .*: applied$/, 'a lowering: walsizer raises first');
set_conf($lowering, 'checkpoint_timeout = 30s');
chmod 0400, $lowering->data_dir . '/postgresql.auto.conf' or die $!;
my $lowering_offset = log_offset($lowering);
my $lowering_load = start_load($lowering, 0.5);
set_conf($lowering, 'walsizer.max = 8MB');
wait_for($lowering, "outcome = 'forbidden'");
my $lowering_timed = $lowering->safe_psql('postgres', 'SELECT checkpoints_timed FROM walsizer_stats');

# Nobody knows of a large demand any more: it comes down, to walsizer.min.  Judged
# below.
my $forgetful = make_node('forgetful', conf => $asked . "walsizer.min = 6MB\n");
force_checkpoints($forgetful, 60);
like(adjust($forgetful), qr/^raise .*: applied$/, 'forgotten: walsizer raises first');
set_conf($forgetful, 'checkpoint_timeout = 30s');
$forgetful->safe_psql('postgres', 'SELECT walsizer_forget()');

# What to do by hand: the size that walsizer wants, in words that can be pasted, and
# only where it has an effect.  It may want another a moment later.
my %way = (
	'SQL'                 => "ALTER SYSTEM SET max_wal_size = 'NMB'; SELECT pg_reload_conf();",
	'postgresql.conf'     => "max_wal_size = 'NMB'",
	'command line'        => 'Where the server is started, make it -c max_wal_size=NMB, or remove it so that walsizer can set it, and restart the server.',
	'configuration files' => 'Correct the error that the server log names, then: SELECT pg_reload_conf();');
my %ways = (
	forbidden  => ['postgresql.conf'],
	failed     => [ 'SQL', 'postgresql.conf' ],
	overridden => ['command line'],
	refused    => ['configuration files']);

sub instructions_fit
{
	my ($node, $name, $outcome) = @_;
	my ($wanted, $all, $size);

	wait_until(
		"$name: walsizer wants the size that is in the instructions",
		sub {
			($wanted, $all) = split /\|/, $node->safe_psql('postgres', <<'END'), 2;
SELECT (SELECT wanted_size / 1048576 FROM walsizer_status),
  string_agg(place || ': ' || instruction, '|' ORDER BY place COLLATE "C") FROM walsizer_instructions
END
			($size) = $all =~ /(\d+)MB/;
			return $outcome eq 'refused' || $size <= $wanted;
		});
	is($all =~ s/\d+MB/NMB/gr, join('|', map { "$_: $way{$_}" } @{ $ways{$outcome} }),
		"$name: the instructions are those that have an effect");
	return if $outcome eq 'refused';
	cmp_ok($size, '>', 4, "$name: the instructions name a size that exceeds the value in effect");
	cmp_ok($size, '<=', $wanted, "$name: the instructions name no larger size than walsizer wants");
	like(status($node)->{verdict}, qr/ is too small: .* walsizer cannot raise it: .*\. See walsizer_instructions\.$/,
		"$name: the verdict refers to walsizer_instructions");
	return;
}

# Each case: how to make trouble and how to end it, both while the server runs
# unless there are options for it.
sub auto_conf_file { return $_[0]->data_dir . '/postgresql.auto.conf' }

push @cases,
  {
	name    => 'read_only',
	outcome => 'forbidden',
	message => qr/"postgresql.auto.conf" is not writable/,
	make    => sub { chmod 0400, auto_conf_file($_[0]) or die $! },
	end     => sub { chmod 0600, auto_conf_file($_[0]) or die $! },
  },
  {
	name    => 'symbolic_link',
	outcome => 'forbidden',
	message => qr/"postgresql.auto.conf" is a symbolic link/,
	make    => sub {
		my $file = auto_conf_file($_[0]);
		rename $file, "$file.elsewhere" or die $!;
		symlink 'postgresql.auto.conf.elsewhere', $file or die $!;
	},
	end => sub {
		my $file = auto_conf_file($_[0]);
		rename "$file.elsewhere", $file or die $!;
	},
  },
  {
	name    => 'include',
	outcome => 'forbidden',
	message => qr/"postgresql.auto.conf" includes other files/,
	make    => sub {
		my $file = auto_conf_file($_[0]);
		write_file($_[0]->data_dir . '/more.conf', "work_mem = 5MB\n");
		write_file($file, slurp_file($file) . " Include_If_Exists = 'more.conf'\n");
	},
	end => sub {
		my $file = auto_conf_file($_[0]);
		like(slurp_file($file), qr/^ Include_If_Exists = 'more.conf'$/m,
			'include: the line in postgresql.auto.conf stays');
		write_file($file, slurp_file($file) =~ s/^ Include.*\n//mr);
	},
  },
  {
	name    => 'temporary_is_directory',
	outcome => 'failed',
	message => qr/could not open file "postgresql.auto.conf.tmp"/,
	make    => sub { mkdir auto_conf_file($_[0]) . '.tmp' or die $! },
	end     => sub { rmdir auto_conf_file($_[0]) . '.tmp' or die $! },
  },
  {
	name    => 'unparsable',
	outcome => 'failed',
	message => qr/could not parse contents of file "postgresql.auto.conf"/,
	make => sub { write_file(auto_conf_file($_[0]), "max_wal_size = = =\n") },
	end     => sub { write_file(auto_conf_file($_[0]), "# fixed\n") },
  },
  {
	name    => 'overridden',
	outcome => 'overridden',
	message => qr/.*command line/,
	options => '-c max_wal_size=4MB',
  },
  {
	name    => 'refused',
	outcome => 'refused',
	message => qr/an error in the configuration files/,
	make => sub { $_[0]->append_conf('postgresql.conf', "no_such_setting = 1") },
	end  => sub { $_[0]->adjust_conf('postgresql.conf', 'no_such_setting', undef) },
	retries => 1,
  };
push @cases,
  {
	name    => 'alter_system_off',
	outcome => 'forbidden',
	message => qr/"allow_alter_system" is off/,
	make    => sub { set_conf($_[0], 'allow_alter_system = off') },
	end     => sub { set_conf($_[0], 'allow_alter_system = on') },
  }
  if $node->pg_version >= 17;

foreach my $case (@cases)
{
	my $name = $case->{name};

	# Predict only from a restart on: CREATE EXTENSION wrote WAL, too.
	$node = $case->{node} = make_node($name, conf => $classic);
	$node->stop;
	$node->append_conf('postgresql.conf', 'walsizer.predict = on');
	$case->{options} ? start_with_options($node, $case->{options}) : $node->start;
	wait_for_worker($node);
	$case->{pid} = pid($node);
	$case->{make}->($node) if $case->{make};

	$case->{offset} = $offset = log_offset($node);
	$case->{since}  = time;
	$case->{load}   = start_load($node, 2);
	wait_for($node, 'outcome IS NOT NULL AND EXISTS (SELECT FROM walsizer_history)');

	my $status = status($node);
	is($status->{outcome}, $case->{outcome}, "$name: the status shows the outcome");
	like($status->{message}, $case->{message}, "$name: the status shows the message");
	is($status->{state}, 'blocked', "$name: walsizer is blocked");
	is($status->{max_wal_size}, 4 * MB, "$name: the old value is in effect");
	is($status->{set_by_walsizer}, undef, "$name: the value is not walsizer's");

	# However often it is tried, no more is said or recorded than what was asked for.
	wait_for($node, "checkpoints_forced > 0 AND demand > 4 * 1048576");
	like(adjust($node), qr/^raise to \d+ MB.*: $case->{outcome}: $case->{message}/,
		"$name: another attempt has the same outcome")
	  for 1 .. 3;
	instructions_fit($node, $name, $case->{outcome});
	my @events = history($node);
	is(scalar(@events), 1 + 3, "$name: the failure is recorded once by itself, and for each request");
	is($events[0]{outcome}, $case->{outcome}, "$name: the event has the outcome");
	like($events[0]{message}, $case->{message}, "$name: the event has the message");
	is(log_count($node, $could, $offset), 1 + 3, "$name: the failure is logged as often as it is recorded");
	is(setting_mb($node), 4, "$name: max_wal_size stays");
}

# Meanwhile, one case of its own: a refused value takes effect with whatever
# reload or restart comes after the files were fixed.
foreach my $way ('reload', 'restart')
{
	$node = make_node("refused_then_$way", conf => $asked);
	$pid  = pid($node);
	$node->append_conf('postgresql.conf', "max_connections = = 5");
	$offset = log_offset($node);
	force_checkpoints($node, 8);
	like(adjust($node), qr/^raise .*: refused\b/,
		"refused, $way: the server refuses files with a syntax error");
	$node->adjust_conf('postgresql.conf', 'max_connections', '20');
	$node->$way;
	wait_for_worker($node);
	wait_for($node, "outcome IS NULL AND set_by_walsizer > 4 * 1048576");
	my $event = last_event($node);
	is($event->{outcome}, 'applied', "refused, $way: the value is applied when the files are fixed");
	is($event->{message}, 'took effect with a later reload or a restart',
		"refused, $way: the message says when the value took effect");
	is(scalar(history($node)), 2, "refused, $way: the history has the attempt and its success");
	is($event->{old_mb}, 4, "refused, $way: the event has the old value");
	is($event->{new_mb}, setting_mb($node), "refused, $way: the event has the new value");
	is(log_count($node, qr/walsizer changed "max_wal_size" from 4 MB/, $offset),
		1, "refused, $way: the change is logged once");
	is(pid($node), $pid, "refused, $way: the worker is the same") if $way eq 'reload';
	$node->stop;
}

# The server does not get to the reload in time: here the postmaster sleeps, which
# does not keep connected sessions from working.  One raise reaches walsizer.max:
# another one, far enough not to wait, would take effect in place of the late one.
{
	$node = make_node('late', conf => "walsizer.enable = off\nwalsizer.max = 8MB\ncheckpoint_timeout = 5min\n");
	$pid  = pid($node);
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;
	my $load = start_load($node, 2);
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%pg_logical_emit_message%' AND pid <> pg_backend_pid()");
	$node->append_conf('postgresql.conf', 'walsizer.enable = on');
	$offset = log_offset($node);
	kill 'STOP', $postmaster or die $!;
	kill 'HUP',  $pid        or die $!;
	eval { wait_for_log_line($node, $could, $offset) };
	kill 'CONT', $postmaster or die $!;
	like(slurp_file($node->logfile, $offset), qr/: the server has not reloaded its configuration$/m,
		'late: the log says that the server has not reloaded');
	wait_for($node, "outcome IS NULL AND set_by_walsizer > 4 * 1048576");
	stop_load($load);
	ok((grep { $_->{message} eq 'took effect with a later reload or a restart' } history($node)),
		'late: the value takes effect when the server reloads');
	is(log_count($node, qr/an administrator changed "max_wal_size"/, $offset), 0,
		'late: walsizer recognizes the value as its own');
	is(pid($node), $pid, 'late: the worker is the same');
	$node->stop;
}

# ---- the end of trouble

foreach my $case (@cases)
{
	my $name = $case->{name};

	$node   = $case->{node};
	$offset = $case->{offset};
	is(log_count($node, $could, $offset), 1 + 3, "$name: the failure is logged no more often");
	is(log_count($node, qr/(ERROR|FATAL|PANIC):/, $offset), 0, "$name: the log has no error");
	is(pid($node), $case->{pid}, "$name: the worker is the same");

	# Where trouble shows only after the reload, that is tried again, but not
	# at each sample: once by itself, three times as asked, and then once in
	# a checkpoint_timeout.
	my $most = $case->{retries} ? 5 + int((time - $case->{since}) / 30) : 0;
	cmp_ok(log_count($node, $reload, $offset), '<=', $most,
		"$name: the server reloads at most $most times");
	unlike(auto_conf($node), qr/^max_wal_size = '?\d/m, "$name: walsizer writes no max_wal_size")
	  unless $case->{retries};

	if ($case->{options})
	{
		stop_load($case->{load});
		$node->stop;
		$node->start;
		wait_for_worker($node);
		$case->{pid}  = pid($node);
		$case->{load} = start_load($node, 2);
	}
	$case->{end}->($node) if $case->{end};
}

foreach my $case (@cases)
{
	my $name = $case->{name};

	# Nobody asks for anything now.
	$node = $case->{node};
	wait_for($node, "outcome IS NULL AND set_by_walsizer > 4 * 1048576");
	stop_load($case->{load});
	is(last_event($node)->{outcome}, 'applied', "$name: the raise is applied when the trouble is over");
	is(status($node)->{state}, 'active', "$name: walsizer is active again");
	wait_for($node, "set_by_walsizer = pg_size_bytes(current_setting('max_wal_size'))");
	pass("$name: the value that walsizer set is in effect");
	is(pid($node), $case->{pid}, "$name: the worker that raises is the same");
	$node->stop;
}

wait_for($forgetful, 'max_wal_size = 6 * 1048576');
is(last_event($forgetful)->{action}, 'lower', 'forgotten: walsizer lowers to walsizer.min');
is(last_event($forgetful)->{reason}, 'demand_fell', 'forgotten: the reason is that demand fell');
is(last_event($forgetful)->{outcome}, 'applied', 'forgotten: the lowering is applied');
$forgetful->stop;

# The lowering was tried again and again, but that is said once.
wait_for($lowering, "checkpoints_timed >= $lowering_timed + 4");
is(log_count($lowering, $could, $lowering_offset), 1, 'a lowering: the failure is logged once');
is(scalar(grep { $_->{outcome} eq 'forbidden' } history($lowering)), 1,
	'a lowering: the failure is recorded once');
is(status($lowering)->{state}, 'blocked', 'a lowering: walsizer is blocked all the time');
chmod 0600, $lowering->data_dir . '/postgresql.auto.conf' or die $!;
wait_for($lowering, 'max_wal_size = 8 * 1048576 AND outcome IS NULL');
pass('a lowering: it is applied as soon as it is possible');
stop_load($lowering_load);
$lowering->stop;

SKIP:
{
	skip 'needs PostgreSQL 17 or later', 1 unless $node->pg_version >= 17;
	is(scalar(grep { $_->{name} eq 'alter_system_off' } @cases),
		1, 'allow_alter_system is among the tested cases');
}

done_testing();
