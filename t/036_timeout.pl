
# timeout.sql: what it says that a longer checkpoint_timeout would save is what
# is saved when checkpoints are really as far apart, it says when it cannot tell,
# and it leaves nothing behind.
#
# An interval here is a number of transactions, and CHECKPOINT ends it: amounts of
# WAL are compared, which do not depend on how busy the machine is.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);
use WalsizerTest;

my $script = "$FindBin::RealBin/../timeout.sql";
my @base   = (
	conf => "walsizer.enable = off\ncheckpoint_timeout = 1h\nmax_wal_size = 4GB\n"
	  . "wal_keep_size = 1GB\nsynchronous_commit = off\n");
my $seed = 0;

# psql's output, its errors and its exit status; commands before and after the script
sub run_script
{
	my ($node, $user, $options, $before, $after) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run(
		[
			'psql', '-X', '-P', 'format=unaligned', '-d',
			$node->connstr('postgres') . ($user ? " user=$user" : ''),
			@$options, (map { ('-c', $_) } @{ $before // [] }),
			'-f', $script, (map { ('-c', $_) } @{ $after // [] })
		],
		'<', \undef, '>', \$out, '2>', \$err);
	return ($out, $err, $? >> 8);
}

# Both tables, as lists of rows.
sub timeout_sql
{
	my ($node, $user, @options) = @_;
	my ($out, $err, $status) = run_script($node, $user, \@options);
	my @tables;

	is("$status $err", '0 ', 'timeout.sql has no error');
	foreach my $line (split /\n/, $out)
	{
		my @fields = split /\|/, $line, -1;

		push @tables, [] if $fields[0] eq 'checkpoint every' || $fields[0] eq 'relation';
		push @{ $tables[-1] }, \@fields if @fields > 1;
	}
	shift @$_ foreach @tables;
	return ($out, @tables);
}

# What is saved with so many times the distance of checkpoints, in percent.
my @factors = (1, 2, 3, 6, 12);

sub saved_by_factor
{
	my ($rows) = @_;
	return map { $factors[$_] => $rows->[$_][2] =~ s/ %//r } 0 .. $#factors;
}

sub refuses
{
	my ($node, $user, $error, $what) = @_;
	my ($out, $err, $status) = run_script($node, $user, []);

	is("$out$status", '3', "$what: nothing is printed");
	like($err, qr/ERROR:  $error/, "$what: the error says why");
	return;
}

# A load: so many transactions of a pgbench script.
sub pgbench
{
	my ($node, $name, $text) = @_;
	my $file = $node->basedir . "/$name.sql";

	write_file($file, $text);
	return sub {
		PostgreSQL::Test::Utils::system_or_bail('pgbench', '--no-vacuum', '--client=2',
			'--transactions=400', '--random-seed=' . ++$seed, "--file=$file",
			$node->connstr('postgres'));
	};
}

# An interval: so many times the load, and CHECKPOINT, not before that time.  The
# checkpoint's time is that of the next commit, if that is written out: otherwise
# the script has it in whole seconds.  Returns the interval's WAL and that time.
sub interval
{
	my ($node, $load, $units, $earliest) = @_;
	my $position = "SELECT pg_current_wal_insert_lsn() - '0/0'";
	my $before   = $node->safe_psql('postgres', $position);

	$load->() foreach 1 .. $units;
	usleep(100_000) while time < ($earliest // 0);
	my $wal = $node->safe_psql('postgres', $position) - $before;
	my $end = $node->safe_psql('postgres', <<'END_SQL');
CHECKPOINT;
SET synchronous_commit = on;
SELECT extract(epoch FROM clock_timestamp()) FROM pg_logical_emit_message(true, 'walsizer', 'begins');
END_SQL
	return ($wal, $end);
}

# The mean WAL of so many intervals.  To the script, those are alike that differ by
# at most a second, so each lasts 3 seconds or a little longer.  After one that is
# late, begin anew: it reads the newest ones.
sub mean_interval
{
	my ($node, $load, $intervals) = @_;
	my ($sum, $n) = (0, 0);
	my ($wal, $begin) = interval($node, $load, 1);

	while ($n < $intervals)
	{
		($wal, my $end) = interval($node, $load, 1, $begin + 3);
		($sum, $n) = $end < $begin + 3.9 ? ($sum + $wal, $n + 1) : (0, 0);
		$begin = $end;
	}
	return $sum / $intervals;
}

# Run an interval so many times as long, and compare it with what was said.
sub compare
{
	my ($node, $load, $each, $rows, $factor) = @_;
	my %saved     = saved_by_factor($rows);
	my $predicted = $factor * $each * (1 - ($saved{$factor} || 0) / 100);
	my ($measured) = interval($node, $load, $factor);
	my $error     = 100 * ($predicted / $measured - 1);

	note sprintf '%d times as long: predicted %.0f, measured %.0f (%+.1f %%)', $factor, $predicted,
	  $measured, $error;
	cmp_ok(abs($error), '<', 5, "an interval $factor times as long has as much WAL, within 5 %");
	return $saved{$factor};
}

my $node = make_node('tool', @base);

if ($node->pg_version < 16)
{
	refuses($node, '', 'timeout.sql needs PostgreSQL 16 or later; this is 15', 'an older server');
	done_testing();
	exit;
}
refuses($node, '', 'timeout.sql needs the extension pg_walinspect', 'without the extension');

SKIP:
{
	skip 'needs PostgreSQL 17 or later: the server here has no pg_walinspect', 1
	  unless $node->safe_psql('postgres',
		"SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_walinspect'");

	# ---- what it needs

	write_wal($node, 2);
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');	# written out
	my ($out, $err, $status) = run_script($node, '', [ '-v', 'most=1MB' ],
		[ 'BEGIN', 'CREATE EXTENSION pg_walinspect' ], ['ROLLBACK']);
	is("$status $err", '0 ', 'the script works with the extension for the session');
	like($out, qr/^cannot tell: pg_wal does not have the WAL between two checkpoints/m,
		'the script says that there is too little WAL');
	is( $node->safe_psql('postgres',
			"SELECT count(*) FROM pg_extension WHERE extname = 'pg_walinspect'"),
		0, 'the extension is not installed afterwards');

	$node->safe_psql('postgres',
		'CREATE SCHEMA "Look at"; CREATE EXTENSION pg_walinspect SCHEMA "Look at";'
		  . 'GRANT USAGE ON SCHEMA "Look at" TO PUBLIC;'
		  . 'CREATE ROLE nobody LOGIN; CREATE ROLE reader LOGIN IN ROLE pg_monitor, pg_read_server_files');
	refuses($node, 'nobody', 'timeout.sql needs a superuser, or a member of pg_monitor', 'without rights');

	# ---- a steady load: each page is changed again and again

	$node->safe_psql('postgres', <<'END_SQL');
CREATE TABLE pages WITH (fillfactor = 60) AS
  SELECT n, 0 AS changes, repeat('x', 300) AS filler FROM generate_series(1, 30000) n;
ALTER TABLE pages ADD PRIMARY KEY (n);
VACUUM pages;
END_SQL
	my $load = pgbench($node, 'uniform',
		"\\set n random(1, 30000)\nUPDATE pages SET changes = changes + 1 WHERE n = :n;\n");
	interval($node, $load, 6);
	my $each     = mean_interval($node, $load, 12);
	my $position = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	my ($printed, $rows, $relations) = timeout_sql($node, 'reader');
	is($node->safe_psql('postgres', "SELECT pg_current_wal_insert_lsn() - '$position' < 1000000"),
		't', 'the script writes no WAL');
	like($printed, qr/^Read \d+ MB of WAL: 12 intervals between checkpoints/m,
		'the script finds twelve intervals');
	compare($node, $load, $each, $rows, $_) foreach 2, 3, 6;
	cmp_ok(compare($node, $load, $each, $rows, 12), '>', 50,
		'an interval 12 times as long saves more than half of the WAL');
	is("$relations->[0][0] $relations->[0][1]", 'pages table',
		'the script names the relation with most images');
	cmp_ok($relations->[0][4] =~ s/ %//r, '>', 90, 'that relation has nearly all images');

	# its size lets that much WAL pass
	my ($size) = $rows->[0][4] =~ /^(\d+) MB$/;
	cmp_ok(trigger_point_mb($size, 1, 0.9) * MB, '>', 1.1 * $each, 'max_wal_size has room for an interval');

	# ---- each time new pages, which are changed in the next interval, and an index

	# hint bits, which are logged as well, are set late after asynchronous commits
	set_conf($node, "synchronous_commit = on\n");
	$node->safe_psql('postgres', 'CREATE TABLE growing (unit int, n int, filler text) WITH (fillfactor = 50);'
		  . 'CREATE TABLE still AS SELECT * FROM pages');
	$node->safe_psql('postgres', 'VACUUM (FREEZE) still');
	my $unit = 0;
	$load = sub {
		$node->safe_psql('postgres', 'INSERT INTO growing SELECT ' . ++$unit
			  . ", 0, repeat('y', 400) FROM generate_series(1, 2000)");
		$node->safe_psql('postgres', 'UPDATE growing SET n = 1 WHERE unit = ' . ($unit - 1));
		$node->safe_psql('postgres', 'CREATE INDEX again ON still (n, changes); DROP INDEX again');
	};
	interval($node, $load, 2);
	$each = mean_interval($node, $load, 6);
	($printed, $rows) = timeout_sql($node, '', '-v', 'intervals=6');
	like($rows->[4][5], qr/^cannot tell: 12 intervals are needed/,
		'the script says how many intervals it needs');
	cmp_ok(compare($node, $load, $each, $rows, 2), '>', 10,
		'an interval twice as long saves WAL, although new pages have no image');
	compare($node, $load, $each, $rows, 3);

	set_conf($node, "synchronous_commit = off\n");

	# ---- a load that changes

	$node->safe_psql('postgres', 'CREATE TABLE ids (id uuid PRIMARY KEY)');
	mean_interval($node, pgbench($node, 'uuid', "INSERT INTO ids SELECT gen_random_uuid() FROM generate_series(1, 20);\n"), 3);
	($printed, $rows, $relations) = timeout_sql($node, '', '-v', 'intervals=3', '-v', 'relations=1');
	is($rows->[0][5], '', 'a growing load: the script has no complaint about the present interval');
	like($rows->[1][5], qr/^cannot tell: the images change by \d+ % over the intervals/,
		'a growing load: the script cannot tell about longer intervals');
	is(join('|', map { "@$_[0, 1]" } @$relations), 'ids_pkey btree index',
		'a growing load: a random index has most of the images');

	set_conf($node, "full_page_writes = off\n");
	refuses($node, '', 'full_page_writes is off', 'without images');
	$node->stop;

	# ---- a standby

	my $primary = make_node('primary', streaming => 1, @base);
	$primary->safe_psql('postgres', 'CREATE EXTENSION pg_walinspect');
	$primary->backup('backup');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;
	refuses($standby, '', 'timeout.sql must be run on the primary', 'a standby');
	$standby->stop;
	$primary->stop;
}

done_testing();
