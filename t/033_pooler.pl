
# walsizer-watch and PgBouncer: a pooler is refused, and its other clients notice
# nothing.
#
# What a client sets through a pooler stays on the connection to the server, where
# the next client finds it.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Temp ();
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'only before PostgreSQL 17: Debian trees of later ones have no pgbouncer' unless $program;

delete $ENV{PGAPPNAME};
my @modes = qw(session transaction statement);
my $timeout = $PostgreSQL::Test::Utils::timeout_default;
my $node = make_node('pooled', conf => "log_statement = all\n");
my $dir = File::Temp->newdir(DIR => '/tmp');

# One connection to the server for all clients of a mode.  A session of ours leaves
# it as it is, also in session mode.
my $target = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres user=' . getpwuid($<);
write_file("$dir/pgbouncer.ini", join "\n", '[databases]', (map { "$_ = $target pool_mode=$_" } @modes),
	'[pgbouncer]', 'listen_addr =', 'listen_port = 6432', "unix_socket_dir = $dir", 'auth_type = any',
	'default_pool_size = 1', 'server_reset_query =', '');
my $messages = '';
my $bouncer = IPC::Run::start([ $program, "$dir/pgbouncer.ini" ], '<', \undef, '&>', \$messages,
	IPC::Run::timeout(10 * $timeout));
wait_until('the pooler listens', sub { $bouncer->pump_nb; return -e "$dir/.s.PGSQL.6432"; });

# What an application sees through the pooler: the server's process, and its settings.
sub application
{
	my ($mode) = @_;
	my ($out, $err);

	IPC::Run::run([ 'psql', '-XAtq', '-h', "$dir", '-p', '6432', '-d', $mode,
			'-c', q{SELECT pg_backend_pid() || ' ' || string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings }
			  . q{WHERE name IN ('search_path', 'default_transaction_read_only', 'statement_timeout', 'jit', 'idle_session_timeout')} ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($timeout));
	return $out . $err;
}

foreach my $mode (@modes)
{
	my $before = application($mode);
	my $offset = log_offset($node);
	my ($out, $err);

	like($before, qr/^\d+ .*default_transaction_read_only=off .*search_path="\$user", public statement_timeout=0$/,
		"$mode mode: an application uses the pooler before the watcher");
	IPC::Run::run([ 'walsizer-watch', '-h', "$dir", '-p', '6432', '-d', $mode, '--duration', '5s' ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($timeout));
	is($? >> 8, 2, "$mode mode: the watcher ends with an error");
	is("$out$err", "walsizer-watch: error: this is a connection pooler: connect to the server itself\n",
		"$mode mode: the watcher says why");
	is(application($mode), $before, "$mode mode: the application finds the connection as it was");
	# the pooler itself sets the name of the application
	like(join("\n", grep { !/search_path|^SET application_name/ } slurp_file($node->logfile, $offset) =~ /statement: (.*)/g),
		qr/^SELECT pg_backend_pid\(\), [^\n;]*$/, "$mode mode: the watcher sets nothing");
}
$bouncer->signal('TERM');
$bouncer->finish;

done_testing();
