
# walsizer-watch: the worker's decision, over an ordinary connection.
#
# Worker and watcher look at the same server at different moments, so what both
# measure differs by the WAL of one interval at most.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Spec ();
use File::Temp ();
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use List::Util qw(min);
use Test::More;
use WalsizerTest;

# the name of the connection is the program's
delete $ENV{PGAPPNAME};

# absolute, which 16 does not do: a host that begins with "/" is a directory
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $watches = 0;

# Run it to its end: exit status, standard output, standard error.
sub watch
{
	my (@args) = @_;
	my ($out, $err);

	IPC::Run::run([ 'walsizer-watch', @args ], '<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout(2 * $PostgreSQL::Test::Utils::timeout_default));
	return ($? >> 8, $out, $err);
}

# Until it has taken a sample that began after this call: the second one from now on.
sub wait_for_watch
{
	my ($node) = @_;
	my $sampled = q{SELECT max(query_start) FROM pg_stat_activity WHERE application_name = 'walsizer-watch'}
	  . q{ AND query LIKE 'SELECT pg_is_in_recovery()::int%' AND state = 'idle'};

	for (1 .. 2)
	{
		my $last = $node->safe_psql('postgres', $sampled);
		wait_until('the watch takes a sample',
			sub {
				my $now = $node->safe_psql('postgres', $sampled);
				return $now ne '' && $now ne $last;
			});
	}
	return;
}

# Start it on a server; returns what finish_watch() wants.
sub start_watch
{
	my ($node, @args) = @_;
	my %watch = (out => '', err => '');

	$watch{run} = IPC::Run::start(
		[ 'walsizer-watch', '--interval', '100ms', '-d', $node->connstr('postgres'), @args ],
		'<', \undef, '>', \$watch{out}, '2>', \$watch{err},
		IPC::Run::timeout(5 * $PostgreSQL::Test::Utils::timeout_default));
	wait_until('the watch has begun',
		sub {
			$watch{run}->pump_nb;
			return $node->safe_psql('postgres',
				"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'walsizer-watch' AND query <> '' AND state = 'idle'") > 0;
		});
	wait_for_watch($node);
	return \%watch;
}

sub finish_watch
{
	my ($watch, $signal) = @_;

	$watch->{run}->signal($signal) if $signal;
	$watch->{run}->finish;
	return ($? >> 8, $watch->{out}, $watch->{err});
}

sub decoded { return JSON::PP->new->decode($_[0]); }

# ---- the command line

my ($status, $out, $err) = watch('--help');
is($status, 0, '--help: the exit status is 0');
like($out, qr/^Usage: walsizer-watch/, '--help: the output is the usage');
is(join("\n", grep { length > 80 } split /\n/, $out), '', '--help: the output fits into 80 columns');
($status, $out, $err) = watch('--version');
is("$status $out", "0 walsizer-watch (walsizer) 1.0\n", '--version: the output has the version');

foreach my $case (
	[ '--max', '3x', qr/--max: "3x" is not a size/ ],
	[ '--max', '1MB', qr/--max: 1MB is outside the valid range \(2 \.\. \d+MB\)/ ],
	[ '--max', '32gb', qr/"32gb" is not a size/ ],
	[ '--interval', '5us', qr/outside the valid range/ ],
	[ '--duration', '1fortnight', qr/is not a time/ ],
	[ '--headroom', '5', qr/--headroom: 5 is outside the valid range \(1 \.\. 4\)/ ],
	[ '--headroom', 'nan', qr/is not a number/ ],
	[ '--pid', '1.5', qr/is not a whole number/ ],
	[ '--replay-rate', '-1', qr/is not a size/ ],
	[ '--frobnicate', 'x', qr/unrecognized option.*--help/s ],
	[ 'postgres', 'other', qr/too many arguments, the first is "other"/ ],
	[ '--replay=x', '--record=y', qr/cannot be combined/ ],
	[ '--replay=x', '--host=y', qr/--replay cannot be combined with a connection/ ],
	[ '--replay=x', '--prometheus=y', qr/cannot be combined/ ])
{
	my ($option, $value, $message) = @$case;

	($status, $out, $err) = watch($option, $value);
	is($status, 2, "$option $value: the exit status is 2");
	like($err, $message, "$option $value: the message says what is wrong");
}

# ---- servers that are none

($status, $out, $err) = watch('-h', 'no-such-host.invalid', '--duration', '1s');
is($status, 2, 'an unknown host is an error');
like($err, qr/^walsizer-watch: error: could not connect: .*no-such-host\.invalid/,
	'the error names the unknown host');
($status, $out, $err) = watch('-h', $dir, '-p', '1', '--duration', '1s');
is($status, 2, 'a socket that does not exist is an error');
like($err, qr/could not connect: .*No such file or directory/,
	'the error says that the socket does not exist');

# A server of another version, and one that does not answer.
sub fake_server
{
	my ($port, $version, $answer, $process) = @_;
	my $sockets = File::Temp->newdir(DIR => '/tmp');
	my $pid;

	socket(my $listener, Socket::PF_UNIX(), Socket::SOCK_STREAM(), 0) or die "socket: $!";
	bind($listener, Socket::sockaddr_un("$sockets/.s.PGSQL.$port")) or die "bind: $!";
	listen($listener, 5) or die "listen: $!";
	if (($pid = fork) == 0)
	{
		accept(my $client, $listener);
		sysread($client, my $startup, 1000);
		write_file("$sockets/asked", '');
		sleep 60 if !defined $version;
		my $parameter = "server_version\0$version\0";
		syswrite($client, 'R' . pack('NN', 8, 0) . 'S' . pack('N', 4 + length $parameter) . $parameter
			  . ($process ? 'K' . pack('N3', 12, $process, 1) : '')
			  . 'Z' . pack('N', 5) . 'I');
		sleep 60 if !$answer;
		sysread($client, my $statement, 1000);
		syswrite($client, $answer);
		POSIX::_exit(0);
	}
	return ($sockets, $pid);
}

require POSIX;
require Socket;
my ($sockets, $pid) = fake_server(1, '12.22');
($status, $out, $err) = watch('-h', "$sockets", '-p', '1', '-U', 'x');
is($status, 2, 'a server that is too old is an error');
like($err, qr/the server is PostgreSQL 12; version 13 or later is needed/,
	'the error names the version of the old server');
kill 'KILL', $pid;
waitpid $pid, 0;
($sockets, $pid) = fake_server(1, '18.0');
($status, $out, $err) = watch('-h', "$sockets", '-p', '1', '-U', 'x');
is($status, 2, 'a server that does not answer is an error');
like($err, qr/lost the connection: the server does not answer/,
	'the error says that the server does not answer');
kill 'KILL', $pid;
waitpid $pid, 0;
# The last words of the server come with the answer to a statement, not to the next one.
my $goodbye = "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
($sockets, $pid) = fake_server(1, '18.0', 'E' . pack('N', 4 + length $goodbye) . $goodbye);
($status, $out, $err) = watch('-h', "$sockets", '-p', '1', '-U', 'x');
is($status, 2, 'a server that ends the connection is an error');
is($err, "walsizer-watch: lost the connection: FATAL:  terminating connection due to administrator command\n",
	'the error has the last message of the server');
waitpid $pid, 0;

# A pooler names a process of its own; what is set would stay on its connection to the server.
my $column = "pg_backend_pid\0" . pack('NnNnNn', 0, 0, 23, 4, 0xffffffff, 0);
my $row = 'T' . pack('Nn', 6 + length $column, 1) . $column . 'D' . pack('NnN', 13, 1, 3) . '567'
  . 'C' . pack('N', 13) . "SELECT 1\0" . 'Z' . pack('N', 5) . 'I';
($sockets, $pid) = fake_server(1, '18.0', $row, 42);
($status, $out, $err) = watch('-h', "$sockets", '-p', '1', '-U', 'x');
is($status, 2, 'a connection pooler is an error');
is($err, "walsizer-watch: error: this is a connection pooler: connect to the server itself\n",
	'the error says that it is a connection pooler');
waitpid $pid, 0;

# Until it is connected, there is nothing that a signal could end in order.  Not
# SIGINT, which a shell has its background jobs ignore.
($sockets, $pid) = fake_server(1);
my $connecting = IPC::Run::start([ 'walsizer-watch', '-h', "$sockets", '-p', '1', '-U', 'x' ], '<', \undef,
	'>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
wait_until('it connects', sub { return -e "$sockets/asked" });
$connecting->signal('TERM');
eval { $connecting->finish };
is($? & 127, 15, 'a signal ends the client while it connects');
kill 'KILL', $pid;
waitpid $pid, 0;

# ---- both at once: the worker decides for a dry run, the watcher watches

# Trigger point 34 segments; a load needs time to fill it.
my $node = make_node('both', conf => <<'END');
max_wal_size = 64MB
checkpoint_timeout = 5min
walsizer.dry_run = on
log_statement = all
END

# The demands differ by the WAL of an interval, and by a segment.
sub same_decisions
{
	my ($what, $mb_per_second, $watch) = @_;
	my ($code, $json, $messages) = finish_watch($watch, 'INT');
	my $worker  = status($node);
	my @history = grep { $_->{action} eq 'raise' } history($node);
	my $said    = decoded($json);
	my @changes = grep { $_->{action} eq 'raise' } @{ $said->{changes} };
	my $apart   = 1 + $mb_per_second * 0.3;
	my ($demand) = sort { $b <=> $a } $worker->{demand}, $worker->{largest_demand} // 0;
	my $wanted   = ($worker->{wanted_size} - $said->{wanted_size}) / MB;

	note("$what: worker " . join(' ', map { "$_->{reason} $_->{new_mb}" } @history)
		  . '; watcher ' . join(' ', map { "$_->{reason} " . $_->{new_size} / MB } @changes));
	note("demand $demand $said->{demand}, wanted $worker->{wanted_size} $said->{wanted_size}");
	is($messages, '', "$what: the client reports nothing that it cannot see");
	cmp_ok(abs($wanted), '<=', int($apart * 1.2 * 1.9) + 2,
		"$what: the client and the worker want the same size");
	ok(@history > 0, "$what: the worker wants to raise");
	is($changes[0]{reason}, $history[0]{reason}, "$what: the client proposes a raise for the same reason");
	# a prediction within a burst depends on the moment of the sample
	cmp_ok(abs($changes[0]{new_size} / MB - $history[0]{new_mb}), '<=', int($apart * 1.2 * 1.9) + 2,
		"$what: the client proposes the same size")
	  unless $what =~ /burst/;
	is($code, 1, "$what: the exit status says that the size in effect is too small");
	return $said;
}

sub forget
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for_sample($node);
	# what was tried is not tried again for one checkpoint_timeout
	$node->restart;
	wait_for_worker($node);
	$node->safe_psql('postgres', 'SELECT walsizer_forget(); SELECT walsizer_reset_stats()');
	return;
}

my $watch = start_watch($node, '--json', '--record', "$dir/steady.trace", '--prometheus', "$dir/watch.prom");
my $load = start_load($node, 5, 100);
wait_for($node, 'checkpoints_forced >= 2');
stop_load($load);
wait_for_sample($node);
wait_for_watch($node);
my $said = same_decisions('steady load', 5, $watch);
my $worker = status($node);
is($said->{checkpoints_forced}, $worker->{checkpoints_forced},
	'the client counts the same forced checkpoints');
ok($said->{seconds_forced} > 0, 'the client counts the time of the forced checkpoints');
is($said->{max_wal_size}, 64 * MB, 'the client knows the value in effect');
is($said->{proposed_size}, $said->{wanted_size}, 'the client proposes what it wants if no limit applies');
is($said->{source}, 'configuration file', 'the client tells where the size is set');

# It never wrote, and took one statement for each sample.
my @statements = slurp_file($node->logfile) =~ /(?:statement|execute [^:]*): (.*)/g;
my @foreign = grep { !/^(SELECT|SET|CREATE EXTENSION|CHECKPOINT|WITH|BEGIN|COMMIT)/i } @statements;
is(join("\n", @foreign), '', 'the client sends only SELECT and SET');
ok($said->{samples} > 50, 'the client takes more than 50 samples');
# One that a signal ends may have sent the next one, so another is counted, once that
# session has ended.
$node->poll_query_until('postgres',
	"SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'walsizer-watch'")
  or die 'the session of the watch does not end';
my $offset = log_offset($node);
(undef, $out) = watch('-d', $node->connstr('postgres'), '--interval', '100ms', '--duration', '2s', '--json');
is(log_count($node, qr/execute sample: /, $offset), decoded($out)->{samples} + 1,
	'the client sends one statement for each sample, and one to find out what the server shows');

# The file for Prometheus.
my $metrics = slurp_file("$dir/watch.prom");
my @lines = split /\n/, $metrics;
is(join("\n", grep { !/^# TYPE (?:\w+ gauge|\w+_total counter)$|^walsizer_watch_\w+ -?\d+$/ } @lines),
	'', 'prometheus: the lines of the file are valid');
like($metrics, qr/^walsizer_watch_checkpoints_forced_total $said->{checkpoints_forced}$/m,
	'prometheus: the file has the forced checkpoints');
like($metrics, qr/^walsizer_watch_too_small 1$/m, 'prometheus: the file has the verdict');
is(join(' ', glob "$dir/watch.prom.*"), '', 'prometheus: no temporary file is left');

# A replay decides the same.
($status, $out, $err) = watch('--replay', "$dir/steady.trace", '--json');
is($status, 1, 'a replay of a value that is too small has the exit status 1');
is_deeply(decoded($out), $said, 'a replay says what the recording watch said');
my ($replayed, undef) = (decoded($out));
($status, $out) = watch('--replay', "$dir/steady.trace", '--json', '--max', '80MB', '--max-recovery-time', '1h');
is(decoded($out)->{limited_by}, 'max', 'limited by max: --max is the limit');
is(decoded($out)->{proposed_size}, 80 * MB, 'limited by max: the proposal is the limit');
($status, $out) = watch('--replay', "$dir/steady.trace", '--json', '--disk-limit', '90MB');
is(decoded($out)->{limited_by}, 'disk', 'limited by disk: --disk-limit is the limit');
is(decoded($out)->{proposed_size}, 90 * MB, 'limited by disk: the proposal is the limit');
($status, $out) = watch('--replay', "$dir/steady.trace", '--json', '--max-recovery-time', '2s', '--replay-rate', '36MB');
is(decoded($out)->{limited_by}, 'recovery',
	'limited by recovery: --max-recovery-time and --replay-rate are the limit');
is(decoded($out)->{proposed_size}, 72 * MB, 'limited by recovery: the proposal is the limit');
($status, $out) = watch('--replay', "$dir/steady.trace", '--json', '--headroom', '2');
cmp_ok(decoded($out)->{wanted_size}, '>', 1.5 * $said->{wanted_size}, 'more headroom takes a larger size');

# The page, for people.
($status, $out) = watch('--replay', "$dir/steady.trace");
is(join("\n", grep { length > 80 } split /\n/, $out), '', 'the page: it fits into 80 columns');
my $mb = $said->{proposed_size} / MB;
like($out, qr/^"max_wal_size" of 64 MB is too small: (?:at most )?$mb MB are needed\.\s+Set\s+it\s+to\s+$mb\s+MB\.$/m,
	'the page: it has the verdict and what to do');
like($out, qr/^Set           max_wal_size 64 MB \(configuration file\),/m,
	'the page: it has the value in effect and its source');
foreach my $line ("max_wal_size = '${mb}MB'", "ALTER SYSTEM SET max_wal_size = '${mb}MB';",
	"max_wal_size = $mb in the DB parameter group (unit: MB)", "flag max_wal_size=$mb",
	"server parameter max_wal_size = $mb", "max_wal_size=${mb}MB", "{max_wal_size: \"${mb}MB\"}")
{
	ok(index($out =~ s/\n {19}/ /gr, $line) >= 0, "the page: it has the line $line");
}
like($out, qr/walsizer would change max_wal_size from 64 MB to \d+ MB:/,
	'the page: it has a line for the change');
($status, $out) = watch('--replay', "$dir/steady.trace", '--quiet');
is("$status$out", '1', '--quiet prints nothing and keeps the status');

# Other loads.
forget();
$watch = start_watch($node, '--json');
write_wal($node, 60);
wait_for_sample($node);
wait_for_watch($node);
same_decisions('burst', 100, $watch);

forget();
$node->safe_psql('postgres', 'CREATE TABLE bulk (a int, b text)');
$watch = start_watch($node, '--json');
$node->safe_psql('postgres', "INSERT INTO bulk SELECT n, repeat('x', 200) FROM generate_series(1, 300000) n");
wait_for_sample($node);
wait_for_watch($node);
same_decisions('bulk load by burst', 100, $watch);

forget();
IPC::Run::run([ 'pgbench', '-i', '-q', '-s', '5', $node->connstr('postgres') ], '>', '/dev/null', '2>', '/dev/null');
$node->safe_psql('postgres', 'SELECT walsizer_forget()');
forget();
$watch = start_watch($node, '--json');
$load = IPC::Run::start([ 'pgbench', '-n', '-c', '2', '-R', '400', '-L', '100', '-T', '3600', $node->connstr('postgres') ],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');
wait_for($node, 'checkpoints_forced >= 1');
stop_load($load);
wait_for_sample($node);
wait_for_watch($node);
same_decisions('TPC-B', 5, $watch);

# ---- traces that are damaged

my $trace = slurp_file("$dir/steady.trace");
unlike($trace, qr/@{[ $node->host ]}|postgres|pgbench|emit_message/, 'a trace has nothing private in it');

sub replay_text
{
	my ($text, $form) = @_;

	write_file("$dir/damaged.trace", $text);
	return watch('--replay', "$dir/damaged.trace", $form // '--quiet');
}

is((replay_text($trace))[0], 1, 'an undamaged trace can be replayed');
foreach my $case (
	[ $trace =~ s/^wal (\d)/wal $1x/mr, qr/not a number of units/, 'no digit' ],
	[ $trace =~ s/trace 1/trace 2/r, qr/is a trace of version 2, this program reads version 1/, 'version' ],
	[ "hello\n", qr/is not a trace/, 'something else' ],
	[ '', qr/is not a trace/, 'nothing' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nwal 1\n", qr/line 4: it has not begun/, 'no beginning' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\nbegin primary 0 0\nwal x\n",
		qr/line 6: not a number of units/, 'no number' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 2048\nbegin primary 0 0\n",
		qr/line 4: not understood/, 'segments larger than any' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\nbegin primary 0 0\nwal 1099511627776\n",
		qr/line 6: not a number of units/, 'more WAL than any' ],
	[ "walsizer-trace 1\nset interval 0\nset start 5\n", qr/line 3: no interval, or no time of the start/, 'interval' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\nbegin primary -9223372036854775808 0\n",
		qr/line 5: not understood/, 'a time that has no absolute value' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1024\nset max_wal_size 64\nset timeout 30\n"
		. "begin primary 0 0\nwal 68719476736\n", qr/not a possible sample/, 'a position above any' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\nset max_wal_size 64\nset timeout 30\n"
		. "begin standby 0 0\nprimary 0\nwal 0/-68719476736*9\n", qr/not a possible sample/, 'a position below 0' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\nset max_wal_size 64\nset timeout 30\n"
		. "begin primary 0 0\nwal -1\n", qr/not a number of units/, 'WAL that runs backwards' ],
	[ "walsizer-trace 1\nset interval 1\nset start 5\nset segment 1\ncounters 1\n", qr/not understood/, 'a line that was cut' ],
	[ ($trace =~ s/^wal .*//msr) . "what\n", qr/not understood/, 'unknown line' ])
{
	my ($text, $message, $what) = @$case;

	($status, $out, $err) = replay_text($text);
	is($status, 2, "damaged trace, $what: the exit status is 2");
	like($err, $message, "damaged trace, $what: the error says what is wrong");
}
($status, $out, $err) = replay_text(substr($trace, 0, int(0.9 * length $trace)));
like($err, qr/ends too early; its complete lines are used/,
	'a trace that was cut is used as far as it goes, with a message');
is($status, 1, 'a trace that was cut still has a verdict');

# What is set on the command line has one place only; a cut trace needs no checksum.
write_file("$dir/damaged.trace", substr($trace =~ s/configuration file/command line/r, 0, int(0.9 * length $trace)));
($status, $out, $err) = watch('--replay', "$dir/damaged.trace");
like($out, qr/^Set           max_wal_size 64 MB \(command line\),/m, 'on the command line: the page says so');
like($out, qr/\n\nTo set it; nothing else has an effect:\n  command line     Where the server is started, make it -c max_wal_size=\d+MB,\n {19}or remove it so that walsizer can set it, and restart the\s+server\.\n\z/,
	'on the command line: the page has the only way to set it');
($status, $out, $err) = watch('--replay', "$dir/none.trace");
is($status, 2, 'a trace that does not exist is an error');
like($err, qr/could not open .*No such file/, 'the error says that the trace does not exist');

# Handwritten ones: peaks before the lookback, the end unseen, no sample at all.
my $head = "walsizer-trace 1\nset interval 60\nset start 864000\nset segment 1\nset max_wal_size 64\n"
  . "set completion_target 0.9\nset timeout 300\nbegin primary 0 0\nredo 0 0\n";
my $days = 'wal 0 6400*5' . ' 0*1440' x 9;
($status) = replay_text("$head$days\n");
is($status, 1, 'a replay remembers a peak of nine days before');
($status) = replay_text("${head}wal 0*60\n");
is($status, 0, 'an hour without WAL is enough for a verdict');
($status) = replay_text("${head}wal 0*60\ngap 61\n");
is($status, 2, 'an hour is not enough for a verdict if a longer time without samples follows');
# The checkpointer works already, and the position that forced the checkpoint comes later.
($status, $out) = replay_text($head =~ s/interval 60/interval 1/r
	  . "busy 0\nwal 0 100*21\nbusy 1\nwal 10 100\nredo 2112 21\nbusy 0\nwal 10*60\nend\n", '--json');
is(decoded($out)->{checkpoints_forced}, 1, 'a checkpoint is forced though the position is shown late');
($status, $out) = replay_text($head, '--json');
is(decoded($out)->{started_at}, 864000, 'the time without a sample is that of the start');

# ---- files that cannot be written

my @here = ('-d', $node->connstr('postgres'), '--interval', '100ms');
($status, $out, $err) = watch(@here, '--duration', '2s', '--record', '/dev/full');
is($status, 2, 'a full disk is an error');
like($err, qr{could not write "/dev/full": No space left on device}, 'the error says that no space is left');
($status, $out, $err) = watch(@here, '--duration', '2s', '--record', "$dir/steady.trace");
is($status, 2, 'a trace that exists already is an error');
like($err, qr/"[^"]*" exists already, and is not replaced/, 'the error says that the trace exists already');
is(slurp_file("$dir/steady.trace"), $trace, 'a trace that exists already is not replaced');
($status, $out, $err) = watch(@here, '--duration', '2s', '--record', "$dir/no/such");
is($status, 2, 'a trace in a directory that does not exist is an error');
like($err, qr/could not create .*No such file/, 'the error says that there is no such directory');
($status, $out, $err) = watch(@here, '--duration', '2s', '--prometheus', "$dir/no/such");
is($status, 2, 'a file for Prometheus in a directory that does not exist is an error');
like($err, qr/could not create .*No such file/,
	'the error says that there is no such directory for Prometheus');

# ---- roles

$node->safe_psql('postgres', 'CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE nobody LOGIN');
$node->safe_psql('postgres', 'CREATE ROLE watched LOGIN; REVOKE EXECUTE ON FUNCTION pg_control_checkpoint() FROM PUBLIC');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION pg_control_checkpoint() TO pg_monitor, nobody');
foreach my $case (
	[ 'monitor', qr/^$/ ],
	[ 'nobody', qr/^walsizer-watch: the server does not show all of its checkpoints: the role is not a member of pg_monitor; [^\n]*\n$/ ],
	[ 'watched', qr/^walsizer-watch: the server does not show all of its checkpoints: permission denied for function pg_control_checkpoint; [^\n]*\n$/ ])
{
	my ($role, $message) = @$case;

	# WAL since the last complete checkpoint counts as well: there is to be none
	$node->safe_psql('postgres', 'CHECKPOINT');
	$watch = start_watch($node, '--json', '-U', $role);
	write_wal($node, 30);
	force_checkpoints($node, 30);
	wait_for_watch($node);
	($status, $out, $err) = finish_watch($watch, 'INT');
	like($err, $message, "role $role: the client says what the role may not see");
	is($status, 1, "role $role: the verdict is that the size is too small");
	cmp_ok(abs(decoded($out)->{demand} / MB - 60), '<', 4, "role $role: the demand is right");
	ok(decoded($out)->{checkpoints_forced} > 0, "role $role: the client counts forced checkpoints");
}
$node->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC');
($status, $out, $err) = watch(@here, '-U', 'nobody', '--duration', '1s');
is($status, 2, 'a server that does not show its positions is an error');
like($err, qr/permission denied for function pg_current_wal_lsn/,
	'the error names the function that is not permitted');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION pg_current_wal_lsn() TO PUBLIC');
$node->safe_psql('postgres', 'CREATE ROLE barred NOLOGIN');
($status, $out, $err) = watch(@here, '-U', 'barred', '--duration', '1s');
is($status, 2, 'a role that may not log in is an error');
like($err, qr/could not connect: .*not permitted to log in/, 'the error says that the role may not log in');

# A role whose idle sessions end, sooner than the next sample comes.
$node->safe_psql('postgres', "ALTER ROLE monitor SET idle_session_timeout = '2s'");
($status, $out, $err) = watch('-d', $node->connstr('postgres'), '-U', 'monitor', '--interval', '3s', '--duration', '7s');
is($err, '', 'a short idle_session_timeout does not end the connection');
unlike($out, qr/to set/, 'the page of seven seconds does not say that there is nothing to set');

# ---- a restart under the watch

$watch = start_watch($node, '--json', '--record', "$dir/restart.trace", '--prometheus', "$dir/restart.prom");
write_wal($node, 20);
wait_for_sample($node);
wait_for_watch($node);
$node->stop('fast');
wait_until('the end of the connection is in the file',
	sub { return slurp_file("$dir/restart.prom") =~ /^walsizer_watch_connected 0$/m; });
$node->start;
wait_until('it is connected again',
	sub { $watch->{run}->pump_nb; return $watch->{err} =~ /connected again/; });
wait_for_watch($node);
write_wal($node, 20);
wait_for_sample($node);
wait_for_watch($node);
($status, $out, $err) = finish_watch($watch, 'TERM');
like($err, qr/^(?:FATAL: .*\n)?walsizer-watch: lost the connection: .*\n(?:.*\n)*?(?:walsizer-watch: could not connect: .*; trying again\n)?walsizer-watch: connected again after \d+ s\n$/,
	'the client survives a restart, and says so');
is(decoded($out)->{restarts}, 1, 'the client counts the restart');
cmp_ok(decoded($out)->{wal} / MB, '>=', 39, 'the client counts WAL from before and after the restart');
is_deeply(decoded((watch('--replay', "$dir/restart.trace", '--json'))[1]), decoded($out),
	'a replay across the restart says the same');

# The server is gone at the end.
$watch = start_watch($node, '--json', '--record', "$dir/gone.trace");
$node->stop('fast');
wait_until('it cannot connect', sub { $watch->{run}->pump_nb; return $watch->{err} =~ /could not connect/; });
($status, $out, $err) = finish_watch($watch, 'TERM');
cmp_ok(decoded($out)->{unseen_seconds}, '>=', 1, 'the time without a server at the end counts as unseen');
is_deeply(decoded((watch('--replay', "$dir/gone.trace", '--json'))[1]), decoded($out),
	'a replay says the same of the time without a server');
$node->start;
wait_for_worker($node);

# ---- an administrator follows the advice during the watch

my ($port, $host) = ($node->port, $node->host);
$watch = start_watch($node, '--json', '--prometheus', "$dir/change.prom");
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '80MB'");
$node->reload;
wait_for($node, "max_wal_size = 80 * 1048576");
wait_for_watch($node);
($status, $out, $err) = finish_watch($watch, 'TERM');
is_deeply([ map { "$_->{action} " . $_->{old_size} / MB . ' ' . $_->{new_size} / MB } @{ decoded($out)->{changes} } ],
	['external 64 80'], 'the client notices a change by an administrator');
like(slurp_file("$dir/change.prom"), qr/^walsizer_watch_connected 0$/m,
	'prometheus: the file says when the client has ended');
foreach my $string ("host=$host port=$port", "postgresql:///?host=$host&port=$port")
{
	delete local $ENV{PGDATABASE};
	($status, $out, $err) = watch('-d', $string, '--duration', '1s');
	is($err, '', "a connection string without a database is valid: $string");
}

# ---- a server on which all is well, for a whole checkpoint_timeout; and a standby

$node->stop;
my $primary = make_node('primary', streaming => 1, conf => "max_wal_size = 64MB\nwalsizer.dry_run = on\n");
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
wait_for_worker($standby);
($status, $out, $err) = watch('-d', $primary->connstr('postgres'), '--duration', '2s', '--interval', '100ms');
is($status, 2, 'two seconds are not enough for a verdict');
like($out, qr/^"max_wal_size" of \d+ MB has sufficed so far\. It takes one\s+"checkpoint_timeout"\s+to say more\.$/m,
	'the page says that it takes one checkpoint_timeout');
$primary->safe_psql('postgres', 'CREATE ROLE plain LOGIN');
$primary->wait_for_catchup('standby', 'replay', $primary->lsn('write'));
($status, $out, $err) = watch('-d', $standby->connstr('postgres'), '-U', 'plain', '--duration', '1s');
like($err, qr/the role is not a member of pg_monitor/,
	'the client says that the role may not see the position of the primary');
my ($quiet_status, $quiet_out);
foreach (1 .. 5)
{
	my $quiet = start_watch($primary, '--interval', '500ms', '--duration', '33s', '--json');

	unlink "$dir/standby.trace";
	$watch = start_watch($standby, '--interval', '500ms', '--duration', '33s', '--json', '--record', "$dir/standby.trace");
	# They know where the primary is with the next WAL that the standby receives.
	$primary->safe_psql('postgres', "SELECT pg_logical_emit_message(true, 'walsizer', 'first')");
	$primary->wait_for_catchup('standby', 'replay', $primary->lsn('write'));
	wait_for_watch($standby);
	wait_for_sample($standby);
	write_wal($primary, 20);
	($quiet_status, $quiet_out) = finish_watch($quiet);
	($status, $out, $err) = finish_watch($watch);
	# On a machine that stalls, they miss more than the three seconds to spare.
	my $seen = min(map { $_->{ended_at} - $_->{started_at} - $_->{unseen_seconds} }
		  map { decoded($_) } $quiet_out, $out);
	last if $seen > 30;
	note("$seen s seen");
}
is($quiet_status, 0, 'a size that suffices has the exit status 0');
is(decoded($quiet_out)->{verdict}, 'sufficient', 'the verdict is that the size suffices');
cmp_ok(abs(decoded($quiet_out)->{demand} / MB - 20), '<=', 2, 'the demand is the WAL that was written');
is("$status $err", '0 ', 'a size that suffices has the exit status 0 on a standby, too');
is(decoded($out)->{role}, 'standby', 'the client says that it is a standby');
# it wants less for a moment, when that WAL is no longer in the window and not yet learned
my $wanted = decoded($out)->{wanted_size};
wait_for($standby, "abs(wanted_size - $wanted) <= 4 * 1048576");
pass('the worker of the standby wants the same size');
like(slurp_file("$dir/standby.trace"), qr/^begin standby .*^primary \d+\n.*^wal \d+\/\d+/ms,
	'the trace of a standby has what it replayed and received');
is_deeply(decoded((watch('--replay', "$dir/standby.trace", '--json'))[1]), decoded($out),
	'a replay of the standby says the same');
($status, $out) = watch('-d', $standby->connstr('postgres'), '--duration', '2s', '--interval', '100ms');
like($out, qr/^Watched .*replayed\s+\(this\s+is\s+a\s+standby\)\.\n.*^Restartpoints .*would save: cannot tell: a\s+standby\s+writes\s+no\s+WAL$/ms,
	'the page says that it is of a standby, and that a longer timeout saves nothing there');

done_testing();
