
# Planned loads, and what a larger size would not help against: a statement
# with its old value, WAL that a slot holds back, a checkpoint that takes longer
# than checkpoint_timeout.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();

use WalsizerTest;

my ($node, $status, $offset, $stderr);

# One statement that writes that many MB.
sub write_in_one_statement
{
	my ($node, $mb) = @_;
	$node->safe_psql('postgres',
		"DO \$\$ BEGIN FOR i IN 1 .. 4 * $mb LOOP PERFORM "
		  . "pg_logical_emit_message(true, 'walsizer', repeat('x', 262000)); "
		  . "END LOOP; END \$\$");
	return;
}

# ---- a checkpoint takes longer than checkpoint_timeout

# As if its files could not be synced: the checkpointer stops in the middle.  It is
# looked at again when the rest is done.  Pages to write and hardly any WAL after
# its beginning make a checkpoint that is paced, over most of checkpoint_timeout;
# most of the WAL comes before the pages, which a timed one must not write instead.
# A dry run leaves the size as it is, however many of them it takes.
my $slow = make_node('slow',
	conf => "walsizer.dry_run = on\nmax_wal_size = 64MB\n");
$slow->safe_psql('postgres', 'CREATE TABLE t AS SELECT n FROM generate_series(1, 20000) n');
my $checkpointer = $slow->safe_psql('postgres',
	"SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");

sub checkpoint_under_way
{
	return log_count($slow, qr/checkpoint starting:/) > log_count($slow, qr/checkpoint complete:/);
}

for (1 .. 10)
{
	my $forced = status($slow)->{checkpoints_forced};
	my $starts;

	$slow->safe_psql('postgres', 'CHECKPOINT');
	write_wal($slow, 24);
	$slow->safe_psql('postgres', 'UPDATE t SET n = n + 1');
	$starts = count_forced_in_log($slow);
	write_wal($slow, 1) until count_forced_in_log($slow) > $starts;
	wait_for($slow, "checkpoints_forced > $forced");
	isnt(status($slow)->{verdict_code}, 'slow_checkpoint',
		'a checkpoint that has only begun is not called slow');
	kill 'STOP', $checkpointer or die $!;
	last if checkpoint_under_way();
	kill 'CONT', $checkpointer or die $!;
}
ok(checkpoint_under_way(), 'the checkpoint is not complete when the checkpointer stops');

# ---- a planned load that is not ended early

# The second counts from the call on: a worker that comes too late does nothing.
sub boost_for_a_second
{
	my ($node, $mb) = @_;
	my $answer = '';

	for (1 .. 20)
	{
		$answer = act($node, "walsizer_boost('${mb}MB', '1 second')");
		last if $answer =~ /^raise /;
	}
	is($answer, "raise to $mb MB: applied", 'a planned load of a second: walsizer raises');
	return;
}

# Half the trigger point of 8 MB are two segments: a value comes back only where at most
# that much was written since the segment of the redo pointer began, and one more
# is begun by the record of a checkpoint that lies at its end.
my $expires = make_node('expires', conf => "walsizer.predict = off\nmax_wal_size = 8MB\n");
boost_for_a_second($expires, 100);

# ---- a planned load

# Without prediction, which would raise further at the speed of these writes, and
# without timed checkpoints, whose pace might.
$node = make_node('planned',
	live => 1,
	conf => "walsizer.predict = off\nmax_wal_size = 8MB\ncheckpoint_timeout = 1h\n", streaming => 1);
$offset = log_offset($node);
is_deeply(
	act_row($node, "walsizer_boost('200MB', '1 hour')"),
	{
		action     => 'raise',
		old_size   => 8 * MB,
		new_size   => 200 * MB,
		limited_by => undef,
		outcome    => 'applied',
		message    => undef,
		old_mb     => 8,
		new_mb     => 200,
	},
	'walsizer_boost() raises at once');
$status = status($node);
is($status->{max_wal_size}, 200 * MB, 'status: the planned size is in effect');
is($status->{boost_size}, 200 * MB, 'status: boost_size is the planned size');
like($node->safe_psql('postgres', 'SELECT walsizer_report()'),
	qr/^Planned load: at least 200 MB until \d{4}-[^;]*;\s+walsizer_boost_end\(\)\s+ends\s+it\.$/m,
	'report: it shows the planned load');
is(last_event($node)->{action}, 'raise', 'history: the action is a raise');
is(last_event($node)->{reason}, 'boost', 'history: the reason is the planned load');
write_in_one_statement($node, 80);
is(count_forced_in_log($node, $offset), 0,
	'a statement that starts after walsizer_boost() forces no checkpoint');

# The load for which it was made.
$node->safe_psql('postgres', 'CHECKPOINT');
$offset = log_offset($node);
my $before = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->command_ok([ 'pgbench', '-i', '-q', '-s', '4', $node->connstr('postgres') ],
	'pgbench creates its tables');
cmp_ok($node->safe_psql('postgres', "SELECT pg_current_wal_insert_lsn() - '$before'"),
	'>', 5 * trigger_point_mb(8, 1, 0.9) * MB, 'pgbench writes much more WAL than the original value allows');
is(count_forced_in_log($node, $offset), 0, 'a planned load forces no checkpoint');

# Over a crash and a restart; a second call replaces the first.
$node->stop('immediate');
$node->start;
wait_for_worker($node);
is(status($node)->{boost_size}, 200 * MB, 'a crash does not end the planned load');
is(setting_mb($node), 200, 'a crash leaves the planned size in effect');
is(act($node, "walsizer_boost('240MB', '2 hours')"), 'raise to 240 MB: applied',
	'a second call of walsizer_boost() enlarges the planned load');
is($node->safe_psql('postgres',
		"SELECT boost_until > now() + interval '90 min' FROM walsizer_status"),
	't', 'a second call of walsizer_boost() prolongs the planned load');

# A limit is smaller: as far as it goes, and a message.
set_conf($node, "walsizer.max = 300MB");
is(act($node, "walsizer_boost('2GB', '1 hour')"),
	'raise to 300 MB, limited by max: applied: the limit is 300 MB', 'limited: the answer names the limit');
is(setting_mb($node), 300, 'limited: the raise goes as far as the limit');
wait_for($node, "action = 'none'");
$status = status($node);
is("$status->{state}, $status->{limited_by}, $status->{reason}", 'limited, max, boost',
	'limited: the status shows the limit and the reason');
is($status->{verdict}, '"max_wal_size" of 300 MB is too small: 2048 MB are needed, and "walsizer.max" allows 300 MB. '
	  . 'Raise "walsizer.max" to 2048 MB, or accept forced checkpoints.',
	'limited: the verdict names the limit and what to do');
is(log_count($node, qr/ is too small: /), 0, 'limited: the log does not speak of demand');

# checkpoint_timeout is an hour.
set_conf($node, "walsizer.max = 320MB");
wait_for($node, 'max_wal_size = 320 * 1048576');
is(last_event($node)->{reason}, 'boost', 'limited: walsizer raises at once when walsizer.max rises');

# Back by itself, in one step, when no window contains the load any more.
set_conf($node, 'checkpoint_timeout = 30s');
$node->safe_psql('postgres', 'SELECT walsizer_boost_end()');
is(status($node)->{boost_size}, undef, 'walsizer_boost_end() ends the planned load');
wait_for($node, 'max_wal_size = original_size');
is(setting_mb($node), 8, 'the original value is restored after a planned load');
is(last_event($node)->{reason}, 'boost_over', 'history: the reason is that the planned load is over');
is(last_event($node)->{old_mb}, 320, 'history: the size falls in one step');

# An administrator's change is left alone for a while, but not if more is asked for then.
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '12MB'");
$node->reload;
is(act($node, "walsizer_boost('100MB', '1 hour')"), 'raise to 100 MB: applied',
	"a planned load right after an administrator's change is accepted");
is(status($node)->{original_size}, 12 * MB,
	"an administrator's change right before a planned load is noticed");
revert($node);
is(setting_mb($node), 12, "walsizer_revert() restores the administrator's value");
is(status($node)->{boost_size}, undef, 'walsizer_revert() ends the planned load');

# Also where nothing had come of it yet: a crash does not bring it back.
set_conf($node, 'walsizer.dry_run = on');
is(act($node, "walsizer_boost('100MB', '1 hour')"), 'raise to 100 MB: dry run',
	'a planned load is not applied in a dry run');
revert($node);
$node->stop('immediate');
$node->append_conf('postgresql.conf', 'walsizer.dry_run = off');
$node->start;
wait_for_worker($node);
is(status($node)->{boost_size}, undef, 'a crash does not bring back a planned load that was ended');

# Days over the end of daylight saving time, which a zone of our own has in a week.
my $today = (gmtime)[7];
my $zone  = sprintf('XST0XDT,J%d,J%d', ($today - 60) % 365 + 1, ($today + 7) % 365 + 1);
is($node->safe_psql('postgres', "SET TimeZone = '$zone'; SELECT outcome FROM walsizer_boost('100MB', '31 days')"),
	'applied', 'a planned load may last 31 days of the calendar');
is($node->safe_psql('postgres',
		"SELECT boost_until - now() > interval '744 hours 30 min' FROM walsizer_status"),
	't', 'a day of the calendar may have 25 hours');
revert($node);

# What is asked for is recorded each time, even if it fails as the last time; and
# a revert that fails does not end the planned load.
is(act($node, "walsizer_boost('100MB', '1 hour')"), 'raise to 100 MB: applied',
	'not writable: the first planned load is applied');
my $events = () = history($node);
my $auto_conf = $node->data_dir . '/postgresql.auto.conf';
$offset = log_offset($node);
chmod 0400, $auto_conf or die $!;
like(act($node, "walsizer_boost('200MB', '1 hour')"), qr/^raise to 200 MB: forbidden: /,
	'not writable: a planned load is forbidden');
like(act($node, "walsizer_boost('300MB', '1 hour')"), qr/^raise to 300 MB: forbidden: /,
	'not writable: a larger planned load is forbidden');
like(adjust($node), qr/^raise to 300 MB: forbidden: /,
	'not writable: a raise that the rules want is forbidden');
like(revert($node), qr/^revert to 12 MB: forbidden: /, 'not writable: walsizer_revert() is forbidden');
is(scalar(my @now = history($node)), $events + 4, 'not writable: the history has each attempt');
is(log_count($node, qr/LOG:  walsizer could not change "max_wal_size" .* is not writable/, $offset),
	4, 'not writable: the log has each attempt');
is(status($node)->{boost_size}, 300 * MB, 'not writable: the planned load does not end');
chmod 0600, $auto_conf or die $!;
like(revert($node), qr/^revert to 12 MB: applied/,
	'writable again: walsizer_revert() restores the original value');
is(status($node)->{boost_size}, undef, 'writable again: walsizer_revert() ends the planned load');

# Bad input.
my %errors = (
	"'1MB', '1 hour'"     => qr/size must be between 2 MB and/,
	"'nonsense', '1 hour'" => qr/invalid size/,
	"NULL, '1 hour'"      => qr/size must not be null/,
	"'8GB', NULL"         => qr/duration must not be null/,
	"'8GB', '-1 hour'"    => qr/duration must be positive and at most 31 days/,
	"'8GB', '31 days 3 hours'" => qr/duration must be positive and at most 31 days/,
	"'8GB', '1 year'"     => qr/duration must be positive and at most 31 days/);
foreach my $arguments (sort keys %errors)
{
	(undef, undef, $stderr) =
	  $node->psql('postgres', "SELECT walsizer_boost($arguments)");
	like($stderr, $errors{$arguments}, "error: walsizer_boost($arguments) says what is wrong");
}
set_conf($node, 'walsizer.enable = off');
(undef, undef, $stderr) =
  $node->psql('postgres', "SELECT walsizer_boost('1GB', '1 hour')");
like($stderr, qr/"walsizer.enable" is off.*HINT/s,
	'error: walsizer_boost() says that walsizer is switched off');
is(setting_mb($node), 12, 'max_wal_size stays while walsizer is switched off');

# The worker waits a second for the server's signal.  If that second passes, and the
# answer is another, the machine may have stalled: ask once more, but not each time.
my $stalls = 8;
sub in_time
{
	my ($expected, $ask) = @_;
	my $began  = Time::HiRes::time();
	my $answer = $ask->();

	return $answer =~ $expected || Time::HiRes::time() - $began < 1 || $stalls-- <= 0 ?
	  $answer : in_time($expected, $ask);
}

# A session that changes a setting, reloads and asks: its request may be faster
# than the server's signal to the worker.
sub in_one_session
{
	my ($setting, $mb) = @_;
	my $sql = "ALTER SYSTEM SET $setting;\nSELECT pg_reload_conf();\n"
	  . "SELECT new_size / 1048576, limited_by, outcome FROM walsizer_boost('${mb}MB', '1 hour')";

	return in_time(qr/^t\n$mb\|\|applied$/, sub { return ($node->psql('postgres', $sql))[1] });
}
is(in_one_session('walsizer.enable = on', 100), "t\n100||applied",
	'in one session: a load can be planned right after walsizer is turned on');
is(in_one_session("walsizer.max = '400MB'", 350), "t\n350||applied",
	'in one session: a load can be planned right after the limit is raised');
foreach my $mb (14, 16, 18)
{
	is(in_one_session("max_wal_size = '${mb}MB'", 100), "t\n100||applied",
		"in one session, $mb MB: a load can be planned right after the change");
	$status = status($node);
	is($status->{original_size}, $mb * MB,
		"in one session, $mb MB: the original value is that of the change");
	is($status->{boost_size}, 100 * MB, "in one session, $mb MB: the change does not end the planned load");
	like(revert($node), qr/^revert to $mb MB: applied/,
		"in one session, $mb MB: walsizer_revert() restores the value of the change");
}

# The same with an edit of postgresql.conf.
my $file = $node->data_dir . '/postgresql.conf';
my $is_off = qr/"walsizer.enable" is off/;
sub edited_in_one_session
{
	my ($edit, $expected, $name) = @_;
	my $sql = "\\! $edit\nSELECT pg_reload_conf();\nSELECT walsizer_boost('100MB', '1 hour')";

	like(in_time($expected, sub { return ($node->psql('postgres', $sql))[2] }), $expected, $name);
	return;
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET walsizer.enable');
foreach my $round (1 .. 10)
{
	edited_in_one_session("echo walsizer.enable = off >>$file", $is_off,
		"edited in one session, $round: walsizer_boost() knows that walsizer is off");
	edited_in_one_session("echo walsizer.enable = on >>$file", qr/^$/,
		"edited in one session, $round: walsizer_boost() knows that walsizer is on");
}

# A file that was written long before it came into its place, and a signal that comes
# after the request.
sub move_into_place
{
	my ($line) = @_;

	return "kill -STOP $node->{_pid}; (sleep 0.3; kill -CONT $node->{_pid}) & "
	  . "cp $file $file.new; echo $line >>$file.new; touch -d '1 day ago' $file.new; mv $file.new $file";
}
edited_in_one_session(move_into_place('walsizer.enable = off'), $is_off,
	'moved into place in one session: walsizer_boost() knows that walsizer is off');
edited_in_one_session(move_into_place('walsizer.enable = on'), qr/^$/,
	'moved into place in one session: walsizer_boost() knows that walsizer is on');
revert($node);

# What was written and not reloaded is waited for once, whenever it was written.
sub seconds_for_20
{
	my $began = Time::HiRes::time();

	$node->safe_psql('postgres', 'SELECT walsizer_adjust() FROM generate_series(1, 20)');
	return Time::HiRes::time() - $began;
}
$node->safe_psql('postgres', "ALTER SYSTEM SET work_mem = '5MB'");
cmp_ok(seconds_for_20(), '<', 15, 'not reloaded: 20 calls do not wait a second each');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET work_mem');
$node->reload;
utime(undef, time + 86400, $node->data_dir . '/postgresql.auto.conf') or die $!;
cmp_ok(seconds_for_20(), '<', 15, 'written in the future: 20 calls do not wait a second each');
my $asked = $node;

# ---- what was not ended has ended, and the next one while the server was down

wait_for($expires, 'boost_size IS NULL AND max_wal_size = original_size');
is(setting_mb($expires), 8, 'the original value comes back by itself after a planned load');
is(last_event($expires)->{reason}, 'boost_over', 'the history says that the planned load is over');

# Meanwhile checkpoint_timeout has passed.
$asked->poll_query_until('postgres',
	"SELECT forced_after = 0 FROM walsizer_history WHERE action = 'external' AND new_size = 18 * 1048576")
  or die 'the change to 18 MB was not followed up';
is( $asked->safe_psql('postgres',
		"SELECT count(*) FROM walsizer_history WHERE action = 'revert' AND forced_after IS NOT NULL"),
	0, 'forced_after belongs to changes, not to the return to the original value');
$asked->stop;
boost_for_a_second($expires, 90);
my $until = time + 2;
$expires->stop('immediate');

# ---- a statement keeps the value with which it began

# Without buffers to speak of, the statement writes its WAL itself, and not the
# WAL writer, which knows the new value: the process that fills a segment asks
# for the checkpoint.
$node = make_node('old_value', conf => "wal_buffers = 64kB\n");
my $long = IPC::Run::start(
	[
		'psql', '-X', '-d', $node->connstr('postgres'), '-c',
		"SET application_name = 'long'; ",
		'-c',
		"DO \$\$ BEGIN FOR i IN 1 .. 4000 LOOP PERFORM "
		  . "pg_logical_emit_message(true, 'walsizer', repeat('x', 262000)); "
		  . "PERFORM pg_sleep(0.05); END LOOP; END \$\$"
	],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'long' AND query LIKE 'DO%'");
$node->safe_psql('postgres', "SELECT walsizer_boost('1GB', '1 hour')");
wait_for($node, 'checkpoints_forced_old_value > 0');
$status = status($node);
is($status->{verdict}, 'a statement that began before "max_wal_size" was raised forces checkpoints. '
	  . 'Wait for its end; call walsizer_boost() before the next one.', 'a statement with the old value: the verdict says so');
wait_for_log_line($node, qr/HINT:  Wait for its end;/, 0);
is(log_count($node, qr/LOG:  a statement that began before /), 1, 'a statement with the old value: the log says so once');
is($status->{limited_by}, undef, 'a statement with the old value: the status names no limit');
my $report = $node->safe_psql('postgres', 'SELECT walsizer_report()');
like($report, qr/^walsizer on this primary: active\na\s+statement\s+that\s+began\s+before/, 'a statement with the old value: the report says so on its second line');
is(scalar(grep { length > 80 } split /\n/, $report), 0,
	'a statement with the old value: the report has at most 80 columns');
$node->safe_psql('postgres',
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'long'");
eval { $long->finish };
$node->stop;

# ---- the load that was over before the server was up again

Time::HiRes::usleep(100_000) until time > $until;
$expires->start;
wait_for_worker($expires);
is(status($expires)->{boost_size}, undef, 'over during a crash: the status has no planned load');
wait_for($expires, 'max_wal_size = original_size');
is(setting_mb($expires), 8, 'over during a crash: the original value comes back by itself');
$expires->stop;

# ---- the checkpoint of the beginning

# In a dry run, what to turn on comes first.
set_conf($slow, 'walsizer.dry_run = off');
wait_for($slow, "verdict_code = 'slow_checkpoint'");
like(status($slow)->{verdict}, qr/^a checkpoint takes longer than "checkpoint_timeout"\. Raise that, or use faster storage;/,
	'a slow checkpoint: the verdict says so');
is($slow->safe_psql('postgres', 'SELECT recovery_time_max >= recovery_time_now FROM walsizer_stats'), 't',
	'a slow checkpoint: the longest recovery is not shorter than one now');
kill 'CONT', $checkpointer or die $!;
$slow->safe_psql('postgres', 'CHECKPOINT');
wait_for($slow, "verdict_code <> 'slow_checkpoint'");
pass('a slow checkpoint: the verdict is over when the checkpoint is');
$slow->stop;

# ---- a slot holds WAL back

$node = make_node('slot', conf => "walsizer.enable = off\n", streaming => 1);
$node->safe_psql('postgres',
	"SELECT pg_create_physical_replication_slot('forgotten', true)");
write_wal($node, 12);
let_go_of_wal($node);
wait_for($node, "verdict_code = 'held_back'");
wait_for($node, 'wal_held_back >= 8 * 1048576');
like(status($node)->{verdict},
	qr/^\d+ MB of WAL are held back, .*\. Replication slot "forgotten" holds back \d+ MB: have its consumer catch up, or drop it\.$/,
	'a slot holds WAL back: the verdict names it');
wait_for_log_line($node, qr/HINT:  Replication slot "forgotten" holds back/, 0);
is(log_count($node, qr/LOG:  \d+ MB of WAL are held back/), 1, 'a slot holds WAL back: the log says so once');
pass('a slot holds WAL back: the statistics say how much');
$node->safe_psql('postgres', "SELECT pg_drop_replication_slot('forgotten')");
write_wal($node, 1);
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, "verdict_code <> 'held_back'");
pass('a slot holds WAL back: the verdict is over when the slot is dropped');
cmp_ok(status($node)->{wal_held_back}, '<', 8 * MB,
	'a slot holds WAL back: the statistics no longer count it when the slot is dropped');
$node->stop;

done_testing();
