
# pg_upgrade with walsizer loaded on both sides, from the version to itself: the
# extension comes along, the servers that pg_upgrade starts have no worker, and
# what walsizer knew of the old server stays there.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Spec;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $conf = "walsizer.predict = off\ncheckpoint_timeout = 5min\nlog_min_messages = debug1\n";
my $registered = qr/registering background worker "walsizer"/;
my $old = make_node('old', conf => $conf);

force_checkpoints($old, 8);
like(adjust($old), qr/^raise .*: applied$/, 'the old server raises');
cmp_ok(log_count($old, $registered), '>', 0, 'the log shows that the old server has a worker');
$old->safe_psql('postgres', 'CREATE VIEW mine AS SELECT max_wal_size FROM walsizer_status');
$old->stop;

# Not a copy of the same template, but a cluster of its own.
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init(extra => [ '--wal-segsize', '1' ]);
$new->append_conf('postgresql.conf', slurp_file($old->data_dir . '/postgresql.conf') =~ s/.*^(?=shared_preload)//msr);

# It leaves a script in the directory in which it runs.
my $bindir = $old->config_data('--bindir');
my ($tmp, $from, $to) =
  map { File::Spec->rel2abs($_) } ($PostgreSQL::Test::Utils::tmp_check, $old->data_dir, $new->data_dir);
my $output = '';
ok(IPC::Run::run(
		[
			'pg_upgrade', '--no-sync', '--retain',
			'--old-datadir' => $from,      '--new-datadir' => $to,
			'--old-bindir'  => $bindir,    '--new-bindir'  => $bindir,
			'--old-port'    => $old->port, '--new-port'    => $new->port,
			'--socketdir'   => $new->host
		],
		'>&', \$output, init => sub { chdir $tmp or die $! }),
	'pg_upgrade succeeds') or diag($output);

my ($log) = glob $new->data_dir . '/pg_upgrade_output.d/*/log/pg_upgrade_server.log';
like(slurp_file($log), qr/DEBUG:  loaded library "walsizer"/, 'the servers of pg_upgrade load the library');
unlike(slurp_file($log), $registered, 'no server of pg_upgrade has a worker of walsizer');

$new->start;
wait_for_worker($new);
is($new->safe_psql('postgres', 'SELECT max_wal_size / 1048576 FROM mine'),
	4, 'the extension and a view on it are upgraded, and the value is not');
is($new->safe_psql('postgres', 'SELECT count(*) FROM walsizer_history'), 0, 'the history is not upgraded');
is(status($new)->{original_size}, 4 * MB, 'the value in effect is the administrator\'s');
$new->stop;

done_testing();
