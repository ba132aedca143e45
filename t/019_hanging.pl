
# The worker does not come back from a call, as when the volume of pg_wal does not
# answer: the server continues, walsizer's functions give up in time, and walsizer
# continues where it was.
#
# Nobody can have a file system hang here without rights that a test has not.  A
# worker that is stopped by a signal looks the same to everybody else: it handles
# no interrupt.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

my $node   = make_node('node', conf => "walsizer.predict = off\n");
my $pid    = pid($node);
my $offset = log_offset($node);
my ($status, $began, $stderr, $queued);

$status = status($node);

stop_worker($node);

# The server does all that it is there for.
write_wal($node, 4);
$node->safe_psql('postgres', 'CHECKPOINT; CREATE TABLE t AS SELECT 1; DROP TABLE t');
pass('no answer: statements and checkpoints do not wait for walsizer');

$began = time;
my $session = start_asking($node, "SELECT walsizer_boost('100MB', '1 hour')", undef, \$stderr);
my $wait_event = $node->pg_version < 17 ? 'Extension' : 'WalsizerAnswer';
ok($node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT walsizer_boost%' AND wait_event = '$wait_event'"),
	"no answer: a function that asks the worker waits for it as $wait_event");
my $second = start_asking($node, 'SELECT walsizer_adjust()', undef, \$queued);
ok($node->poll_query_until('postgres',
		"SELECT array_agg(granted ORDER BY granted) = '{f,t}' FROM pg_locks WHERE locktype = 'userlock' AND objid = 0"),
	'no answer: a second session waits for a lock that pg_locks shows');
my (undef, undef, $impatient) = $node->psql('postgres', "SET lock_timeout = '1s'; SELECT walsizer_adjust()");
like($impatient, qr/ERROR:  canceling statement due to lock timeout/,
	'no answer: a session that waits for the lock obeys lock_timeout');
$session->finish;
$second->finish;
like($queued, qr/ERROR:  the walsizer worker has not answered within 30 seconds/,
	'no answer: the second session gives up after 30 seconds');
like($stderr, qr/ERROR:  the walsizer worker has not answered within 30 seconds\nHINT:/,
	'no answer: the first session gives up, with a hint');
cmp_ok(time - $began, '>=', 29, 'no answer: a session waits for 30 seconds');
is($node->safe_psql('postgres', "SELECT now() - sampled_at > interval '25 s' FROM walsizer_stats"),
	't', 'no answer: walsizer_stats has the time of the last sample');
is(setting_mb($node), 4, 'no answer: max_wal_size stays');
$node->psql('postgres', "SET statement_timeout = '1s'; SELECT walsizer_boost('200MB', '1 hour')", stderr => \$stderr);
like($stderr, qr/canceling statement due to statement timeout/,
	'no answer: a session that waits can be canceled');
my $cancelled = $stderr;

kill 'CONT', $pid or die $!;
wait_for_worker($node);
wait_for($node, "sampled_at > now() - interval '5 s'");
is(pid($node), $pid, 'the worker continues when the server resumes it');
is(scalar(grep { $_->{reason} eq 'boost' } history($node)), 0,
	'the worker does not raise for a request that was given up');
is(status($node)->{boost_size}, undef, 'the worker does not plan a load for a request that was given up');
force_checkpoints($node, 12);
adjust($node);	# unless the end of an interval came first
my $event = last_event($node);
is("$event->{action}, $event->{outcome}", 'raise, applied', 'the worker raises after it has hung');
is(status($node)->{original_size}, $status->{original_size}, 'the worker still knows the original value');

# The postmaster does not reload, so the worker waits in the middle of a request.
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ s/\n.*//sr;
$node->psql('postgres', <<"END", stderr => \$stderr, on_error_stop => 0);
SET statement_timeout = '7s';
\\! kill -STOP $postmaster
SELECT walsizer_boost('300MB', '1 hour');
\\! kill -CONT $postmaster
END
like($stderr, qr/ERROR:  canceling statement due to statement timeout\nDETAIL:  The worker had begun to carry out the request, and completes it\./,
	'canceled after the worker began: the error says that the worker completes the request');
wait_for($node, 'max_wal_size = 300 * 1048576');
is(status($node)->{boost_size}, 300 * MB,
	'canceled after the worker began: the worker completes the request');
unlike($cancelled, qr/DETAIL/, 'canceled before the worker began: the error has no detail');

# What a worker has not begun before it ends, no other worker does.
stop_worker($node);
$session = start_asking($node, "SELECT walsizer_boost('100MB', '1 hour')", undef, \$stderr);
$node->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT walsizer_boost%' AND wait_event = '$wait_event'")
  or die 'nobody asks';
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
kill 'CONT', $pid or die $!;
$session->finish;
like($stderr, qr/ERROR:  the walsizer worker ended before it answered\nHINT:/,
	'the worker ends: the session that waits gets an error with a hint');
wait_for_worker($node, $pid);
is(status($node)->{boost_size}, 300 * MB, 'the worker ends: the next worker does not carry out the request');

is(log_count($node, qr/(FATAL|PANIC):/, $offset), 0, 'the log has no fatal error');
$node->stop;

done_testing();
