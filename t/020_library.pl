
# The worker runs in the library that was preloaded: wherever that is, whatever
# else has its name, and whatever becomes of the file while the server runs.
#
# The copy at $libdir, which all tests share, is left alone: dynamic_library_path
# leads elsewhere where it must not be found.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Spec;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $installed;

# A directory of a node; its name may be relative to the test's.
sub directory
{
	my ($node, $name) = @_;
	my $dir = File::Spec->rel2abs($node->basedir) . "/$name";

	make_path($dir);
	return $dir;
}

# The same with a copy of the library.
sub directory_with_copy
{
	my $dir = directory(@_);
	my ($file) = glob "$installed/walsizer.*";
	copy($file, $dir) or die "could not copy $file to $dir: $!";
	return $dir;
}

sub library
{
	my ($dir) = @_;
	my ($file) = glob "$dir/walsizer.*";
	return $file;
}

# A server that preloads the library by this name.
sub start_server
{
	my ($name, $preload, $path) = @_;
	my $node = make_node($name, start => 0, conf => <<"END");
shared_preload_libraries = '$preload'
dynamic_library_path = '$path'
log_min_messages = debug1
walsizer.enable = off
END
	$node->start;
	return $node;
}

# The worker that watches, other than the one with that pid.
sub wait_for_watching
{
	my ($node, $not_this_pid) = @_;
	$not_this_pid //= 0;

	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'walsizer' "
		  . "AND wait_event_type = 'Extension' AND pid <> $not_this_pid")
	  or return 0;
	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsizer'");
}

# The worker is ended, and another one watches.
sub comes_back
{
	my ($node, $pid) = @_;

	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	return wait_for_watching($node, $pid);
}

my $crash = qr/terminated by signal|could not access file|could not find function|(ERROR|FATAL|PANIC):/;
my ($node, $pid, $offset, $stderr, $other);

# ---- the usual way

$node = make_node('usual');
$installed = $node->config_data('--pkglibdir');
ok(wait_for_watching($node), 'by name: the worker watches');
is(log_count($node, $crash), 0, 'by name: the log has no complaint');
$node->stop;

# ---- preloaded by its path

my $dir = directory_with_copy($node, 'elsewhere');
$node = start_server('by_path', "$dir/walsizer", '$libdir');
ok(wait_for_watching($node), 'by path, another copy is at $libdir: the worker watches');
is(log_count($node, $crash), 0, 'by path: the log has no complaint');

# The functions are not the server's business, but those who create them.
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
SKIP:
{
	skip 'needs PostgreSQL 16 or later', 1 if $node->pg_version < 16;
	$node->psql('postgres', 'SELECT * FROM walsizer_status', stderr => \$stderr);
	like($stderr,
		qr/ERROR:  walsizer must be loaded via "shared_preload_libraries"\nHINT:  .* names another file than "\$libdir\/walsizer"/,
		'by path: the error of the SQL functions of the other copy says what is wrong');
}
$node->stop;

$node = start_server('only_copy', "$dir/walsizer", directory($node, 'nothing'));
ok(wait_for_watching($node), 'by path, no other copy is to be found: the worker watches');
is(log_count($node, $crash), 0, 'by path, no other copy is to be found: the log has no complaint');
$node->stop;

# ---- found through dynamic_library_path

$node = start_server('by_search', 'walsizer', "$dir:\$libdir");
ok($pid = wait_for_watching($node), 'searched: the worker watches');
SKIP:
{
	skip 'needs PostgreSQL 18 or later', 1 if $node->pg_version < 18;
	$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
	wait_for_worker($node);
	is(status($node)->{pid}, $pid, 'searched: the SQL functions use the same copy');
}

# A package upgrade puts another file into its place: one that cannot be loaded,
# so that it would be seen if the server tried.
$offset = log_offset($node);
write_file(library($dir), 'not a library');
ok($pid = comes_back($node, $pid), 'replaced: the worker comes back in the copy in memory');

# It is removed, and another directory is searched.
unlink library($dir) or die "could not remove the library: $!";
$other = directory_with_copy($node, 'other');
set_conf($node, "dynamic_library_path = '$other'\n");
ok(comes_back($node, $pid), 'removed, another one is found: the worker comes back in the copy in memory');
is(log_count($node, $crash, $offset), 0, 'replaced and removed: the log has no complaint');
$node->stop;

# ---- a path that does not fit

# The name of a worker's library had at most 95 bytes; as many as a path since.
SKIP:
{
	skip 'only before PostgreSQL 17', 7 unless $node->pg_version < 17;

	my $long = directory_with_copy($node, 'x' x 96);
	$node = start_server('long', "$long/walsizer", '$libdir');
	wait_for_log_line($node, qr/unregistering background worker "walsizer"/, 0);
	is(log_count($node, qr/LOG:  the walsizer worker ends, because it has loaded another library than the server has preloaded/),
		1, 'a long path, another copy: the log says so once');
	is(log_count($node, qr/DETAIL:  The worker looked for its library as "walsizer"/), 1,
		'a long path, another copy: a detail has the name');
	is(log_count($node, qr/HINT:  Set "shared_preload_libraries" to a name/), 1,
		'a long path, another copy: a hint says what to set');
	is(log_count($node, $crash), 0, 'a long path, another copy: the log has no other complaint');
	is($node->safe_psql('postgres',
			"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsizer'"),
		0, 'a long path, another copy: there is no worker');
	$node->stop;

	$node = start_server('long_only', "$long/walsizer", $long);
	ok(wait_for_watching($node), 'a long path that is searched: the worker watches');
	is(log_count($node, $crash), 0, 'a long path that is searched: the log has no complaint');
	$node->stop;
}

done_testing();
