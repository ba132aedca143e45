
# What outlives what: history, memory and ownership over the end of the
# worker, of the server, of the extension; and a server that starts whatever
# has become of the state file.
#
# Failures of other tuners that this file covers: 15, a worker that is asked
# to end never comes back.  (22, a crash of the worker is one of the whole
# server: that none happens is what all tests are for; see the last one here.)

use strict;
use warnings;
use File::Basename;
use FindBin;
use POSIX ();
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $conf = "walsizer.predict = off\ncheckpoint_timeout = 5min\n";
my $node = make_node('node', live => 1, conf => $conf);
my $file = $node->data_dir . '/pg_stat/walsizer.state';
my ($pid, $raised, $offset, $before, $status);

# All that is to be remembered, as text.  What came of a change is known after a
# checkpoint_timeout.
my $history = "SELECT to_jsonb(h) - 'forced_after' FROM walsizer_history h ORDER BY id";
sub memory
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		"$history;"
		  . 'SELECT original_size, set_by_walsizer FROM walsizer_status');
}

force_checkpoints($node, 8);
like(adjust($node), qr/^raise .*: applied$/, 'walsizer raises');
$raised = setting_mb($node);
wait_for($node, "set_by_walsizer = $raised * 1048576");

# ---- the worker

# It has no query to cancel.
$pid    = pid($node);
$offset = log_offset($node);
is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)"), 't', 'the worker can be canceled');
wait_for_sample($node);
is(pid($node), $pid, 'the worker ignores that it is canceled');
is(log_count($node, qr/(FATAL|ERROR):/, $offset), 0, 'a canceled worker logs no error');

# The next one has its memory, with what was learned up to that moment.
# (Demand becomes memory within a fraction of checkpoint_timeout.)
wait_for($node, '(SELECT max(demand) FROM walsizer_demand) >= 8 * 1048576');
$before = memory($node);
$pid    = pid($node);
$offset = log_offset($node);
$status = status($node);
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)"),
	't', 'the worker can be terminated');
wait_for_worker($node, $pid);
is(memory($node), $before, 'the worker comes back with its memory');
cmp_ok(status($node)->{checkpoints_forced}, '>=', $status->{checkpoints_forced},
	'the worker comes back with its counts');
cmp_ok($node->safe_psql('postgres', 'SELECT max(demand) FROM walsizer_demand'),
	'>=', 8 * MB, 'the worker comes back with the demand that it saw');
is(log_count($node, qr/(FATAL|ERROR):/, $offset), 0, 'the end of a worker logs no error');
like(adjust($node), qr/^none: /, 'the new worker answers');

# Nobody waits for ever for a worker that ends.
$pid = pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 10000)");
my ($result, $stdout, $stderr) = $node->psql('postgres', 'SELECT action FROM walsizer_adjust()');
like($stderr . $stdout, qr/ERROR:  the walsizer worker (is not running|ended before it answered).*HINT:/s,
	'a request without a worker is an error with a hint');
wait_for_worker($node, $pid);

# ---- the extension

$node->safe_psql('postgres', 'DROP EXTENSION walsizer');
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
is(memory($node), $before, 'DROP and CREATE EXTENSION keep the memory');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other',    'CREATE EXTENSION walsizer');
is($node->safe_psql('other', 'SELECT count(*) FROM walsizer_history'),
	1, 'the history is the same in every database');
$node->safe_psql('postgres', 'DROP DATABASE other WITH (FORCE)');

# ---- the server

$node->restart;
wait_for_worker($node);
is(memory($node), $before, 'a restart keeps the memory');
cmp_ok($node->safe_psql('postgres', 'SELECT max(demand) FROM walsizer_demand'),
	'>=', 8 * MB, 'a restart keeps the demand');

$node->stop('immediate');
$node->start;
wait_for_worker($node);
is(memory($node), $before, 'an immediate shutdown keeps the memory');

# kill -9 of the postmaster under load, right after a raise.
my $load = start_load($node, 5);
force_checkpoints($node, 30);
like(adjust($node), qr/^raise .*: applied$/, 'kill -9: walsizer raises before it');
$before = $node->safe_psql('postgres', $history);
$raised = setting_mb($node);
$node->kill9;
stop_load($load);
start_after_kill($node);
wait_for_worker($node);
is($node->safe_psql('postgres', $history),
	$before, 'kill -9: the history is intact');
$status = status($node);
is($status->{set_by_walsizer}, $raised * MB, "kill -9: the value is known as walsizer's");
is($status->{original_size}, 4 * MB, 'kill -9: the original value is known');
is(scalar(grep { $_->{action} eq 'external' } history($node)),
	0, 'kill -9: no administrator is suspected');
like(revert($node), qr/^revert to 4 MB: applied/, 'kill -9: walsizer_revert() restores the original value');

# ---- walsizer_forget()

my $last_id = last_event($node)->{id};
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
is(scalar(history($node)), 0, 'forget: the history is empty');
cmp_ok($node->safe_psql('postgres', 'SELECT coalesce(max(demand), 0) FROM walsizer_demand'),
	'<', MB, 'forget: only demand since the call is known');
$node->restart;
wait_for_worker($node);
is(scalar(history($node)), 0, 'forget: the history is empty after a restart');
force_checkpoints($node, 8);
like(adjust($node), qr/^raise .*: applied$/, 'forget: walsizer raises for new demand');
my $id = last_event($node)->{id};
cmp_ok($id, '>', $last_id, 'forget: IDs continue after a restart');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
force_checkpoints($node, 3 * trigger_point_mb(setting_mb($node), 1, 0.9));
like(adjust($node), qr/^raise .*: applied$/, 'forget: walsizer raises again after a second call');
is(last_event($node)->{id}, $id + 1, 'forget: IDs continue after a second call');
is(scalar(history($node)), 1, 'forget: the history has only the events since the call');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
wait_for($node, "set_by_walsizer > 4 * 1048576");
is(status($node)->{original_size}, 4 * MB, 'forget: the original value is still known');

# ---- the state file

# Starts with this, and is as good as new except for what it has forgotten.
sub starts_with
{
	my ($what, $reason) = @_;

	$offset = log_offset($node);
	$node->start;
	wait_for_worker($node);
	is(scalar(history($node)), 0, "$what: the history is empty");
	is(log_count($node, qr/LOG:  walsizer starts with an empty memory/, $offset),
		1, "$what: the empty memory is logged once");
	is(log_count($node, $reason, $offset), 1, "$what: the log has the reason");
	is(log_count($node, qr/(FATAL|ERROR|PANIC):/, $offset), 0, "$what: the log has no error");
	ok(-e "$file.bad", "$what: the file is set aside");
	is(adjust($node), 'none: the value in effect suffices', "$what: the worker answers");
	$status = status($node);
	is($status->{set_by_walsizer}, $status->{max_wal_size}, "$what: the value is known as walsizer's");
	is($status->{original_size}, 4 * MB, "$what: the original value is known");
	$node->stop;
	ok(-f $file, "$what: a new file is written");
	return;
}

$node->stop;
my $good = slurp_file($file);
$good =~ s/^end .*\n\z//m;
is(state_file($good), slurp_file($file), 'the test writes the format of the state file');

# Files that were written elsewhere are believed if they fit.
my $time = 800000000 * 1000000;
my ($last) = $good =~ /^state .* last_event (\d+)$/m;
my $event =
    "event number $last at $time action raise reason forced limited_by none outcome applied "
  . 'old_mb 4 wanted_mb 20 new_mb 20 demand 12000000 rate 1000000 forced 3 requested 4 timed 5 '
  . "timeout_ms 30000 completion_target_millionths 900000 forced_after -1 message with a message\n";
write_file($file, state_file($good . $event));
$node->start;
wait_for_worker($node);
is(scalar(history($node)), 1, 'a good file is read');
is(last_event($node)->{message}, 'with a message', 'a good file is read to its end');
is(join(' ', @{ last_event($node) }{qw(checkpoints_forced num_requested num_timed)}), '3 4 5', 'the record that is cut off keeps its counts');
$node->stop;

# Nor does a newer version set the memory aside, or the history with it.
write_file(
	$file,
	state_file(
		($good =~ s/^state /state mode fast /mr) . "volume name pg_wal\n"
		  . ($event =~ s/action raise/action dance depth 3/r)));
$offset = log_offset($node);
$node->start;
wait_for_worker($node);
is(join(' ', @{ last_event($node) }{qw(action message)}), 'unknown with a message', 'a file with unknown fields is read');
is(status($node)->{original_size}, 4 * MB, 'a file with unknown fields is read with what is known');
is(log_count($node, qr/empty memory/, $offset), 0, 'a file with unknown fields is not set aside');
$node->stop;

my ($newer, $foreign) = ($good, $good);
$newer   =~ s/^walsizer 1$/walsizer 2/m;
$foreign =~ s/ system_identifier \K(\d+)/$1 ^ 1/e;

my $good_with_event = state_file($good . $event);
my %files           = (
	'newer'      => [ state_file($newer . $event),   qr/another version of walsizer/ ],
	'foreign'    => [ state_file($foreign . $event), qr/belongs to another database system/ ],
	'truncated'  => [ $good . $event,                qr/Line \d+: cut short/ ],
	'cut'        => [ substr($good_with_event, 0, 70), qr/Line \d+: cut short/ ],
	'empty'      => [ '',                            qr/not a walsizer state file/ ],
	'binary'     => [ pack('C*', map { $_ % 256 } 1 .. 5000), qr/not a walsizer state file/ ],
	'bad number' => [
		state_file($good . ($event =~ s/ number \d+/ number x/r)), qr/Line \d+: not a valid line/
	],
	'before the first release' => [
		state_file("walsizer 1\nsystem 1\nstate 1024 0 2768 1024 0 1 2 1024 1 0 0 0 0 0 0 7\n"),
		qr/Line 2: not a valid line/
	],
);
($files{'one byte'}[0] = $good_with_event) =~ s/12000000/12000001/;
$files{'one byte'}[1] = qr/wrong number of lines or checksum/;

foreach my $what (sort keys %files)
{
	unlink "$file.bad";
	write_file($file, $files{$what}[0]);
	starts_with($what, $files{$what}[1]);
	is(slurp_file("$file.bad"), $files{$what}[0], "$what: the file that is set aside is unchanged");
}

unlink "$file.bad";
write_file($file, '');
truncate $file, 100 * MB or die $!;
starts_with('oversized', qr/not a walsizer state file/);

unlink "$file.bad";
unlink $file;
mkdir $file or die $!;
starts_with('directory', qr/not a walsizer state file/);

# A pipe, which nobody opens at the other end.
rmdir "$file.bad" or die $!;
unlink $file;
POSIX::mkfifo($file, 0600) or die $!;
starts_with('pipe', qr/not a walsizer state file/);

# What was set aside stays.
unlink "$file.bad" or die $!;
foreach my $name ("$file.bad", "$file.bad.1", "$file.bad.2")
{
	write_file($file, "nonsense, later $name\n");
	$node->start;
	wait_for_worker($node);
	$node->stop;
	is(slurp_file($name), "nonsense, later $name\n", 'the file is set aside as ' . ($name =~ s/.*state//r));
}
is(slurp_file("$file.bad"), "nonsense, later $file.bad\n", 'a file that is set aside overwrites no earlier one');

# A file that may not be read now is not damaged: it is neither moved nor written over.
write_file($file, $good_with_event);
chmod 0, $file or die $!;
$offset = log_offset($node);
$node->start;
wait_for_worker($node);
wait_for_sample($node);
is(scalar(history($node)), 0, 'unreadable: the history is empty');
is(adjust($node), 'none: the value in effect suffices', 'unreadable: the worker answers');
$status = status($node);
is($status->{set_by_walsizer}, $status->{max_wal_size}, "unreadable: the value is known as walsizer's");
is(log_count($node, qr/LOG:  could not read walsizer's state file "[^"]*": Permission denied$/, $offset),
	1, 'unreadable: the error is logged once');
$node->stop;
chmod 0600, $file or die $!;
is(slurp_file($file), $good_with_event, 'unreadable: the file stays as it was');
$node->start;
wait_for_worker($node);
is(last_event($node)->{message}, 'with a message', 'unreadable: the file is read as soon as it is readable');

# What ends meanwhile does not come back with the file.
$node->safe_psql('postgres', q{SELECT walsizer_boost('2GB', '1 hour')});
foreach my $case (
	[ 'walsizer_revert()', sub { status($node)->{boost_size} }, undef ],
	[ 'walsizer_forget()', sub { scalar(history($node)) }, 0 ])
{
	my ($ends, $left, $expected) = @$case;

	$node->stop;
	chmod 0, $file or die $!;
	$node->start;
	wait_for_worker($node);
	$node->safe_psql('postgres', "SELECT $ends");
	chmod 0600, $file or die $!;
	wait_for_sample($node);
	is($left->(), $expected, "unreadable: what ends with $ends does not come back");
}
$node->stop;

# A file that cannot even be moved away, nor replaced: no memory, but no harm.
write_file($file, "nonsense\n");
chmod 0500, dirname($file) or die $!;
$offset = log_offset($node);
$node->start;
wait_for_worker($node);
force_checkpoints($node, 3 * trigger_point_mb(setting_mb($node), 1, 0.9));
like(adjust($node), qr/^raise .*: applied$/, 'immovable: walsizer works without a file');
is(log_count($node, qr/(FATAL|ERROR|PANIC):/, $offset), 0, 'immovable: the log has no error');
adjust($node);
chmod 0700, dirname($file) or die $!;
$node->restart;
wait_for_worker($node);
cmp_ok(scalar(history($node)), '>', 0, 'immovable: the file is written as soon as it can be replaced');

# The last words: the server never went down by itself.
is(log_count($node, qr/was terminated by signal|crash of another server process/),
	0, 'no process has crashed');
$node->stop;

done_testing();
