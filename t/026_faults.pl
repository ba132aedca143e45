
# The operating system has errors: the disk is full or broken, a file may not be
# read, there is no memory.  Each call of walsizer's that can fail does so here.
# The server lives, what was in effect stays in effect, the message names the
# file and the error, nothing is left behind, and walsizer works as soon as the
# calls do.
#
# A library that is preloaded into the server has the calls fail (t/faults.c).

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use Cwd qw(abs_path);
use Errno qw(EACCES EIO EMFILE ENOMEM ENOSPC ESRCH);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();
use WalsizerTest;

use constant { ANY_PROCESS => -1, ALWAYS => 2**31 - 1 };

# The server has another working directory, and may be given a relative one.
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir());
my $with_malloc = qx(pg_config --cflags) !~ /-fsanitize=address/;
my $shim = build_preloaded($dir, 'faults', $with_malloc ? '-DWITH_MALLOC' : ());

# struct Fault in t/faults.c, but for its first member, the pid
my $format = 'l4 Z16 Z64';
$ENV{WALSIZER_FAULTS} = "$dir/fault";
write_file($ENV{WALSIZER_FAULTS}, pack("l $format", 0, (0) x 4, '', ''));

sub write_at
{
	my ($offset, $bytes) = @_;

	open(my $file, '+<:raw', $ENV{WALSIZER_FAULTS}) or die $!;
	sysseek($file, $offset, 0);
	syswrite($file, $bytes) == length $bytes or die $!;
	close($file);
	return;
}

# From here on these calls of a process fail, of files whose path ends with that.
sub arm
{
	my ($pid, $fault) = @_;

	write_at(4, pack($format, $fault->{error} // 0, $fault->{skip} // 0,
		$fault->{times} // ALWAYS, 0, $fault->{call}, $fault->{path} // ''));
	write_at(0, pack('l', $pid));
	return;
}

# How many calls have failed.
sub hits { return (unpack("l $format", slurp_file($ENV{WALSIZER_FAULTS})))[4] }

sub disarm
{
	write_at(0, pack('l', 0));
	return hits();
}

# Cycles of an hour: nothing happens but what is asked for.
my $node = make_node('faults',
	conf  => "walsizer.predict = off\ncheckpoint_timeout = 1h\nfsync = on\n",
	start => 0);
my $data = $node->data_dir;
my $state_file = "$data/pg_stat/walsizer.state";

sub start
{
	local $ENV{LD_PRELOAD} = $shim;
	$node->start;
	return;
}

start();
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);
my $pid = pid($node);
my $offset = log_offset($node);

sub restart
{
	$node->stop;
	start();
	wait_for_worker($node);
	$pid = pid($node);
	return;
}

# ---- a change of postgresql.auto.conf

my @changes = (
	{
		name    => 'the temporary file cannot be created',
		call    => 'open',
		error   => EACCES,
		path    => 'postgresql.auto.conf.tmp',
		message => 'could not open file "postgresql.auto.conf.tmp": Permission denied',
	},
	{
		name    => 'the disk is full',
		call    => 'write',
		error   => ENOSPC,
		path    => 'postgresql.auto.conf.tmp',
		message => 'could not write file "postgresql.auto.conf.tmp": No space left on device',
	},
	{
		name    => 'the disk is nearly full',
		call    => 'write',
		path    => 'postgresql.auto.conf.tmp',
		message => 'could not write file "postgresql.auto.conf.tmp": No space left on device',
	},
	{
		name    => 'the temporary file cannot be closed',
		call    => 'close',
		error   => EIO,
		path    => 'postgresql.auto.conf.tmp',
		times   => 1,
		message => 'could not close file "postgresql.auto.conf.tmp": Input/output error',
	},
	{
		name    => 'the temporary file cannot be synchronized',
		call    => 'fsync',
		error   => EIO,
		path    => 'postgresql.auto.conf.tmp',
		message => 'could not replace file "postgresql.auto.conf": Input/output error',
	},
	{
		name    => 'the file cannot be synchronized',
		call    => 'fsync',
		error   => EIO,
		path    => 'postgresql.auto.conf',
		message => 'could not replace file "postgresql.auto.conf": Input/output error',
	},
	{
		name    => 'the file cannot be replaced',
		call    => 'rename',
		error   => EACCES,
		path    => 'postgresql.auto.conf',
		message => 'could not replace file "postgresql.auto.conf": Permission denied',
	},
	{
		name    => 'the new file cannot be synchronized',
		call    => 'fsync',
		error   => EIO,
		path    => 'postgresql.auto.conf',
		skip    => 1,
		replaced => 1,
		message => 'could not replace file "postgresql.auto.conf": Input/output error',
	},
	{
		name    => 'the directory cannot be synchronized',
		call    => 'fsync',
		error   => EIO,
		path    => '/pgdata',
		replaced => 1,
		message => 'could not replace file "postgresql.auto.conf": Input/output error',
	},
	{
		name    => 'the file cannot be opened',
		call    => 'fopen',
		error   => EACCES,
		path    => 'postgresql.auto.conf',
		message => 'could not parse contents of file "postgresql.auto.conf"',
	},
	{
		name    => 'the file is not writable',
		call    => 'access',
		error   => EACCES,
		path    => 'postgresql.auto.conf',
		outcome => 'forbidden',
		message => '"postgresql.auto.conf" is not writable',
	},
	{
		name    => 'the postmaster cannot be signaled',
		call    => 'kill',
		error   => ESRCH,
		outcome => 'refused',
		replaced => 1,
		message => 'the server has not reloaded its configuration',
	});

# A change that fails, and the same when it can be made again.
sub change
{
	my ($what, $fault, $before, $after, $try) = @_;
	my $text = auto_conf($node);
	my $outcome = $fault->{outcome} // 'failed';

	arm($pid, $fault);
	my $done = $try->();
	cmp_ok(disarm(), '>', 0, "$what: the call fails");
	like($done, qr/: \Q$outcome: $fault->{message}\E$/, "$what: the message says why");
	is(setting_mb($node), $before, "$what: max_wal_size stays");
	if ($fault->{replaced})
	{
		isnt(auto_conf($node), $text, "$what: postgresql.auto.conf has been replaced");
	}
	else
	{
		is(auto_conf($node), $text, "$what: postgresql.auto.conf stays");
	}
	ok(!-e "$data/postgresql.auto.conf.tmp", "$what: no temporary file is left");
	like($try->(), qr/: applied\b/, "$what: the next attempt is applied");
	is(status($node)->{outcome}, undef, "$what: the status shows no failed attempt");
	is(pid($node), $pid, "$what: the worker is the same");
	$after->();
	return;
}

foreach my $fault (@changes)
{
	my $raised;

	need_a_raise($node);
	change(
		"raise, $fault->{name}",
		$fault, 4,
		sub { $raised = setting_mb($node); cmp_ok($raised, '>', 4,
		"raise, $fault->{name}: max_wal_size rises in the end") },
		sub { return adjust($node) });
	change(
		"revert, $fault->{name}",
		$fault, $raised,
		sub { is(setting_mb($node), 4, "revert, $fault->{name}: the original value is restored in the end") },
		sub { return revert($node) });
	note_is_removed($node, "revert, $fault->{name}");
	unlike(auto_conf($node), qr/max_wal_size|walsizer/,
		"revert, $fault->{name}: walsizer's lines are removed");
	restart();	# what was reverted is left alone for a while
}

# A return that failed when the file had been replaced: any reload completes it.
need_a_raise($node);
adjust($node);
arm($pid, { call => 'fsync', error => EIO, path => '/pgdata' });
like(revert($node), qr/: failed: /, 'revert, replaced and failed: the answer says that it failed');
cmp_ok(disarm(), '>', 0, 'revert, replaced and failed: the call fails');
$node->reload;
wait_for($node, 'max_wal_size = 4 * 1048576 AND set_by_walsizer IS NULL');
is(last_event($node)->{action}, 'revert', 'revert, replaced and failed: the history has no other change');
restart();

# What cannot be looked at is no obstacle.
need_a_raise($node);
arm($pid, { call => 'lstat', error => EIO, path => 'postgresql.auto.conf' });
like(adjust($node), qr/^raise .*: applied$/, 'no information about the file: walsizer raises');
cmp_ok(disarm(), '>', 0, 'no information about the file: the call fails');
revert($node);
note_is_removed($node, 'no information about the file');
restart();

# ---- the state file is written

my @saves = (
	[ 'open',   EACCES, '.tmp', qr/could not open file "[^"]*\.tmp": Permission denied/ ],
	[ 'write',  ENOSPC, '.tmp', qr/could not write file "[^"]*\.tmp": No space left on device/ ],
	[ 'write',  0,      '.tmp', qr/could not write file "[^"]*\.tmp": No space left on device/ ],
	[ 'close',  EIO,    '.tmp', qr/could not close file "[^"]*\.tmp": Input\/output error/ ],
	[ 'fsync',  EIO,    '.tmp', qr/could not replace file "[^"]*\.state": Input\/output error/ ],
	[ 'rename', EACCES, '',     qr/could not replace file "[^"]*\.state": Permission denied/ ]);

# Which file it is, and when it was written: the next one may get its inode again.
sub version
{
	return join ' ', (Time::HiRes::stat($state_file))[ 1, 9 ];
}

# As long as the calls fail: the worker tries again whenever it can.
foreach my $save (@saves)
{
	my ($call, $error, $end, $message) = @$save;
	my $what = "state file, $call" . ($error ? '' : ' of less');
	my $before = log_offset($node);
	my $version = version();

	arm($pid, { call => $call, error => $error, path => "walsizer.state$end" });
	$node->safe_psql('postgres', 'SELECT walsizer_forget()') for 1 .. 2;
	cmp_ok(hits(), '>=', 2, "$what: the call fails");
	is(log_count($node, qr/LOG:  could not write walsizer's state file: $message/, $before),
		1, "$what: the failure is logged once");
	is(version(), $version, "$what: the file stays as it was");
	ok(!-e "$state_file.tmp", "$what: no temporary file is left");
	disarm();
	$node->safe_psql('postgres', 'SELECT walsizer_forget()');
	isnt(version(), $version, "$what: the file is written as soon as it can be");
}
is(pid($node), $pid, 'the state file: no failure ends the worker');

# ---- the state file is read, when the server starts

# An error that may pass forgets nothing: the file is read when it can be, and until
# then it stays as it is.
my @loads = (
	[ 'open',  EIO,    'Input\/output error' ],
	[ 'open',  EMFILE, 'Too many open files' ],
	[ 'open',  EACCES, 'Permission denied' ],
	[ 'read',  EIO,    'Input\/output error' ]);

sub memory
{
	return $node->safe_psql('postgres',
		'SELECT * FROM walsizer_history ORDER BY id; SELECT boost_size, original_size, set_by_walsizer FROM walsizer_status');
}

like(act($node, "walsizer_boost('100MB', '1 hour')"), qr/^raise to 100 MB: applied/,
	'a planned load is applied before the file cannot be read');
foreach my $load (@loads)
{
	my ($call, $error, $message) = @$load;
	my $what = "state file, $call at the start fails with $error";
	my $before = log_offset($node);
	my $known = memory();

	$node->stop;
	my $inode = (stat $state_file)[1];
	arm(ANY_PROCESS, { call => $call, error => $error, path => 'walsizer.state' });
	start();
	wait_for_worker($node);
	wait_for_sample($node);
	is(scalar(history($node)), 0, "$what: the history is empty");
	is(status($node)->{original_size}, 4 * MB, "$what: the original value is known");
	cmp_ok(disarm(), '>', 1, "$what: the worker tries again");
	wait_for($node, 'boost_size IS NOT NULL');
	is(memory(), $known, "$what: nothing is forgotten when the file is read");
	is(log_count($node, qr/LOG:  could not read walsizer's state file "[^"]*\.state": $message$/, $before),
		1, "$what: the failure is logged once");
	is((stat $state_file)[1], $inode, "$what: the file is not replaced");
	ok(!-e "$state_file.bad", "$what: the file is not set aside");
}

# What was done meanwhile follows what the file has.
revert($node);
my @events = history($node);
$node->stop;
arm(ANY_PROCESS, { call => 'open', error => EIO, path => 'walsizer.state' });
start();
wait_for_worker($node);
need_a_raise($node);
like(adjust($node), qr/^raise .*: applied$/, 'state file, not read yet: walsizer raises');
is(last_event($node)->{id}, 1, 'state file, not read yet: the raise is recorded');
disarm();
wait_until('the file is read', sub { return history($node) > 1 });
is(last_event($node)->{id}, $events[-1]{id} + 1,
	'state file, read: the raise follows the events of the file');
is(last_event($node)->{action}, 'raise', 'state file, read: the last event is the raise');
is(scalar(history($node)), @events + 1, 'state file, read: the events of the file are there');
is(status($node)->{set_by_walsizer}, setting_mb($node) * MB, "state file, read: the value is walsizer's");
revert($node);
restart();
is(scalar(history($node)), @events + 2,
	'state file, read: the file has the events from before and after it was read');

# A file that is of no use, and stays where it is.
$node->stop;
write_file($state_file, "nonsense\n");
$offset = log_offset($node);
arm(ANY_PROCESS, { call => 'rename', error => EACCES, path => 'walsizer.state.bad' });
start();
wait_for_worker($node);
cmp_ok(disarm(), '>', 0, 'useless state file: it cannot be renamed');
like(slurp_file($node->logfile, $offset),
	qr/walsizer starts with an empty memory.*\n.*DETAIL:  Line 1: [^\n]*\.\n/,
	'useless state file: the log says so');
unlike(slurp_file($node->logfile, $offset), qr/was renamed/,
	'useless state file: the log does not say that it was renamed');
$pid = pid($node);

# ---- the volume of pg_wal

# What was last known of it counts.
foreach my $fault ([ 'statvfs', EIO ], [ 'opendir', EACCES ], [ 'readdir', EIO ], [ 'statfs', EIO ])
{
	my ($call, $error) = @$fault;
	my $what = "volume, $call";
	my $limit = status($node)->{disk_limit};

	$offset = log_offset($node);
	cmp_ok($limit, '>', 0, "$what: the disk limit is known before");
	need_a_raise($node);
	# more in a row, of the worker's own looks, and it does not count any more
	arm($pid, { call => $call, error => $error, path => 'pg_wal', times => 4 });
	like(adjust($node), qr/^raise .*: applied$/, "$what: walsizer raises");
	cmp_ok(disarm(), '>', 0, "$what: the call fails");
	cmp_ok(status($node)->{disk_limit}, '>', $limit / 2, "$what: the disk limit is still known");
	is(pid($node), $pid, "$what: the worker is the same");
	is(log_count($node, qr/LOG:  could not determine the free space for "pg_wal": /, $offset),
		$call eq 'statfs' ? 0 : 1, "$what: the failure is logged once, unless it is harmless");
	revert($node);
	restart();
}

# If it was never known, nothing is raised until it is.
$node->stop;
$node->append_conf('postgresql.conf', 'checkpoint_timeout = 30s');
$offset = log_offset($node);
arm(ANY_PROCESS, { call => 'statvfs', error => EIO, path => 'pg_wal' });
start();
wait_for_worker($node);
$pid = pid($node);
need_a_raise($node);
like(adjust($node), qr/^raise .*: failed: the free space for "pg_wal" could not be determined$/,
	'volume, never read: walsizer does not raise') for 1 .. 2;
is(setting_mb($node), 4, 'volume, never read: max_wal_size stays');
is(status($node)->{disk_limit}, undef, 'volume, never read: the disk limit is not known');
cmp_ok(disarm(), '>', 1, 'volume, never read: the worker tries again');
is(log_count($node, qr/LOG:  could not determine the free space for "pg_wal": Input\/output error$/, $offset),
	1, 'volume, never read: the failure is logged once');
is(status($node)->{state}, 'blocked', 'volume, never read: walsizer is blocked');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
wait_for($node, "state = 'active'");
pass('volume, never read: walsizer is active when nothing has to be raised');
need_a_raise($node);
adjust($node);                 # unless the end of a cycle came before
cmp_ok(setting_mb($node), '>', 4, 'volume, never read: walsizer raises as soon as the limit is known');
revert($node);
$node->append_conf('postgresql.conf', 'checkpoint_timeout = 1h');
restart();

# ---- the worker ends, and is started again

sub wait_for_another_worker
{
	wait_until('another worker', sub { my $now = pid($node) // ''; return $now ne '' && $now != $pid });
	wait_for_worker($node);
	$pid = pid($node);
	return;
}

need_a_raise($node);
adjust($node);
my $own = status($node)->{set_by_walsizer};
$offset = log_offset($node);
arm(ANY_PROCESS, { call => 'open', error => EIO, path => 'global/pg_control', times => 1 });
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_for_log_line($node, qr/ERROR:  could not open file "[^"]*pg_control" for reading: Input\/output error/,
	$offset);
disarm();
wait_for_another_worker();
is(status($node)->{set_by_walsizer}, $own, 'the control file cannot be read: the next worker continues');

SKIP:
{
	my ($stdout, $stderr);

	last SKIP if !$with_malloc;
	arm($pid, { call => 'malloc', error => ENOMEM, times => 1 });
	$node->psql('postgres', 'SELECT walsizer_forget()', stderr => \$stderr);
	is(disarm(), 1, 'no memory: one call fails');
	like($stderr, qr/ERROR:  the walsizer worker ended before it answered\nHINT:/,
		'no memory: the session that waits gets an error with a hint');
	is(log_count($node, qr/ERROR:  out of memory/, $offset), 1, 'no memory: the log has the error');
	wait_for_another_worker();
	is(status($node)->{set_by_walsizer}, $own, 'no memory: the next worker continues');
}

is(log_count($node, qr/(FATAL|PANIC):/), 0, 'the log has no fatal error');
like(revert($node), qr/: applied\b/, 'what walsizer changed can be reverted');
$node->stop;

done_testing();
