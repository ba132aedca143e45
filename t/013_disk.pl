
# The volume that holds pg_wal is small: walsizer stays within its share of it,
# whatever else happens there, and the server lives.
#
# Failure of other tuners that this file covers: 2, a raise that fills the
# volume, and PANIC: could not write to file "pg_wal/xlogtemp".
#
# A load that would fill the volume is repeated as often as WALSIZER_FILLS in the
# environment says:
#
#     WALSIZER_FILLS=20 script/test 15 t/013_disk.pl

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my $fills = $ENV{WALSIZER_FILLS} // 1;
my ($node, $offset, $status, $event, $raised);
my $volumes = 1;

# With walsizer.max_disk_percent = 50, which is its default.
sub half_mb
{
	my ($mb) = @_;
	return int($mb / 2 / 16) * 16;
}

# A statement of its own for each piece: a running one keeps its max_wal_size.
# That is a soft limit: a checkpointer that gets no processor time keeps it from
# nothing.  So do not begin before it holds, which is at once as a rule.
sub write_fast
{
	my ($node, $mb) = @_;
	$node->poll_query_until('postgres', <<'END') or die 'WAL exceeds max_wal_size';
SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) <= pg_size_bytes(current_setting('max_wal_size'))
FROM pg_control_checkpoint()
END
	$node->safe_psql('postgres',
		"SELECT count(pg_logical_emit_message(true, 'walsizer', repeat('x', 1048000))) FROM generate_series(1, 8);\n"
		  x ($mb / 8));
	return;
}

# ---- a load that would fill the volume

my $volume = small_volume(1, 487);
$node = make_node('fill', segsize => 16, start => 0, conf => <<'END');
max_wal_size = 64MB
min_wal_size = 32MB
END
move_wal($node, $volume);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);

# The volume holds pg_wal and nothing else: half of it may be claimed.
is(status($node)->{disk_limit}, half_mb(487) * MB,
	'the limit is half of the volume that really holds pg_wal');
is(status($node)->{limited_by}, undef, 'the limit does not apply yet');

# Transactions whose effect can be checked afterwards.
$node->safe_psql('postgres', <<'END');
CREATE TABLE sums (fill int, n int, line text);
CREATE FUNCTION checksum(f int) RETURNS text LANGUAGE sql AS
  'SELECT count(*) || '' '' || md5(string_agg(line, '','' ORDER BY n)) FROM sums WHERE fill = f';
END

# What is in effect, five times a second, until it is ended.
sub start_watch
{
	my ($node, $file) = @_;

	write_file("$file.sql",
		"SELECT max_wal_size FROM walsizer_status \\watch 0.2\n");
	return IPC::Run::start(
		[
			'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'),
			'-f', "$file.sql"
		],
		'<', \undef, '>', $file, '2>', '/dev/null');
}

# What is never to be exceeded.  A segment that was renamed while the directory
# was read is missed.
my $most = (half_mb(487) + 16) * MB;

# Those samples where more is in effect.
sub too_large
{
	my ($text) = @_;
	my @samples = $text =~ /^\d+$/mg;

	return (scalar(@samples), grep { $_ > $most } @samples);
}

my %expected;
my $watched = $node->basedir . '/watched';
my $watch   = start_watch($node, $watched);
$offset = log_offset($node);
foreach my $fill (1 .. $fills)
{
	for my $n (1 .. 24)
	{
		$node->safe_psql('postgres',
			"INSERT INTO sums SELECT $fill, $n, md5('$fill $n')");
		write_fast($node, 80);
	}

	# As many rows as were committed, and each of them, after a crash too.
	$expected{$fill} = $node->safe_psql('postgres',
		"SELECT 24 || ' ' || md5(string_agg(md5('$fill ' || n), ',' ORDER BY n)) FROM generate_series(1, 24) n"
	);
	is($node->safe_psql('postgres', "SELECT checksum($fill)"),
		$expected{$fill}, "fill $fill: no transaction is lost");
}
stop_load($watch);
my ($samples, @too_large) = too_large(slurp_file($watched));
cmp_ok($samples, '>=', 3, 'the test has samples of the value in effect');
is(join(' ', @too_large), '', "the value in effect is within the limit in each of $samples samples");
cmp_ok($node->safe_psql('postgres', "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1048576"),
	'>', 1900 * $fills, 'the load writes several times the size of the volume');
is(log_count($node, qr/PANIC|No space left/, $offset), 0, 'the file system is never full');

wait_for($node, "limited_by = 'disk' AND set_by_walsizer IS NOT NULL");
$status = status($node);
cmp_ok($status->{set_by_walsizer}, '>', 64 * MB, 'walsizer raises');
cmp_ok($status->{set_by_walsizer}, '<=', $most, 'walsizer raises no further than the limit allows');
cmp_ok($status->{wanted_size}, '>', $status->{size_limit}, 'walsizer wants more than the limit');
is($status->{size_limit}, $status->{disk_limit}, 'the disk is the limit that applies');
is(scalar(grep { $_->{limited_by} eq 'disk' } grep { $_->{limited_by} } history($node)),
	scalar(grep { $_->{limited_by} } history($node)), 'the history names no other limit');

# Forced checkpoints that the limit makes unavoidable.
my $limited =
  qr/LOG:  "max_wal_size" of \d+ MB is too small: (?:at most )?\d+ MB are needed, and "walsizer.max_disk_percent" allows \d+ MB/;
# One raise claims a part of what is free; the next comes when that is filled.
for (1 .. 200)
{
	last if log_count($node, $limited, $offset) > 0;
	write_fast($node, 80);
}
wait_for_log_line($node, $limited, $offset);
is(log_count($node, $limited, $offset), 1, 'the log names the limit once');
my ($needed, $hint) = slurp_file($node->logfile, $offset) =~
  /is too small: ((?:at most )?\d+) MB are needed, .*\n.*DETAIL:  .*\n.*HINT:  (.*)/;
like($hint, $needed =~ s/\D+//r > 487 ? qr/^Enlarge the file system of "pg_wal": it holds at most \d+ MB of WAL\.$/ :
	  qr/^Raise "walsizer.max_disk_percent" so that it allows $needed MB, or enlarge/,
	"the hint does not ask for more than there is ($needed MB)");

# Crash, recover on the same volume, and nothing is lost.
$node->stop('immediate');
$node->start;
wait_for_worker($node);
is($node->safe_psql('postgres', "SELECT checksum($_)"),
	$expected{$_}, "fill $_: no transaction is lost in a crash")
  foreach 1 .. $fills;

# ---- the volume grows

# A checkpoint is to remove what is old, and not to keep it for later.
set_conf($node, 'wal_recycle = off');
resize_volume(1, 1200);
wait_for($node, 'disk_limit >= ' . (half_mb(1200) - 96) * MB);
wait_for($node, "limited_by IS NULL OR limited_by <> 'disk' OR disk_limit > 400 * 1048576");
for (1 .. 12)
{
	write_fast($node, 80);
	last if setting_mb($node) > half_mb(487);
}
wait_for($node, 'set_by_walsizer > ' . half_mb(487) * MB);
cmp_ok(setting_mb($node), '<=', half_mb(1200) + 16,
	'walsizer raises within the new limit when the volume grows');

# ---- data eats the volume

# In steps, as data does: at each of them the volume has room for what
# max_wal_size allows then, when a checkpoint has removed the rest.
$raised = setting_mb($node);
foreach my $left (900, 600, 400)
{
	$node->safe_psql('postgres', 'CHECKPOINT');
	write_ballast($volume, 1200 - $left);
	wait_for($node, 'max_wal_size <= 1.25 * disk_limit AND disk_limit <= ' . half_mb($left + 32) * MB);
}
$event = last_event($node);
is($event->{action}, 'lower', 'data fills the volume: walsizer lowers');
is($event->{reason}, 'limit_fell', 'data fills the volume: the reason is that the limit fell');
is($event->{limited_by}, 'disk', 'data fills the volume: the limit is the disk');
cmp_ok(setting_mb($node), '<', $raised, 'data fills the volume: the value in effect is below the raise');

# Nothing of what was there before walsizer is taken.
$node->safe_psql('postgres', 'CHECKPOINT');
write_ballast($volume, 1200 - 300);
wait_for($node, 'max_wal_size <= 1.25 * disk_limit AND disk_limit <= ' . half_mb(332) * MB);
set_conf($node, 'walsizer.max_disk_percent = 10');
wait_for($node, "disk_limit < 64 * 1048576 AND max_wal_size = 64 * 1048576");
adjust($node);
is(setting_mb($node), 64, 'data fills the volume: max_wal_size is never below the original value');
is(log_count($node, qr/PANIC|No space left/, $offset), 0,
	'data fills the volume: the file system is never full');
unlink "$volume/ballast";
set_conf($node, 'walsizer.max_disk_percent = 50');
wait_for($node, 'disk_limit > 500 * 1048576');
pass('space that becomes free raises the limit');

# The server does not list pg_wal to write into it, and continues.
my $limit = status($node)->{disk_limit};
my $wal   = $node->data_dir . '/pg_wal';
chmod 0300, $wal or die "could not change the permissions of $wal: $!";
write_ballast($volume, 300);
wait_for($node, 'disk_limit IS NULL');
pass('the disk limit is not known if pg_wal cannot be read');
my $size = setting_mb($node);
like(act($node, "walsizer_boost('480MB', '1 hour')"),
	qr/^raise to 480 MB: failed: the free space for "pg_wal" could not be determined$/,
	'walsizer raises nothing without a known limit');
is(setting_mb($node), $size, 'max_wal_size stays without a known limit');
$node->safe_psql('postgres', 'SELECT walsizer_boost_end()');
chmod 0700, $wal or die "could not change the permissions of $wal: $!";
wait_for($node, "disk_limit < $limit - 100 * 1048576");
$node->stop;

# ---- the disk is looked at before each raise

# What fills the volume between two samples counts.
$volume = small_volume(1, 300);
$node = make_node('late', start => 0,
	conf => "walsizer.sample_interval = 10s\ncheckpoint_timeout = 30min\n");
move_wal($node, $volume);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for($node, 'disk_limit >= 140 * 1048576');
write_ballast($volume, 260);
# The next sample is to see a load of seconds.  A small raise may come first, which
# goes as far as one step may.
wait_for_sample($node);
my $load = start_load($node, 2);
$node->poll_query_until('postgres',
	"SELECT count(*) > 0 FROM walsizer_history WHERE limited_by = 'disk' AND wanted_size > 20 * 1048576")
  or die 'the disk limits nothing';
stop_load($load);
($event) = grep { ($_->{limited_by} // '') eq 'disk' && $_->{wanted_mb} > 20 } history($node);
is($event->{reason}, 'predicted', 'before a raise: the reason is a prediction');
is(scalar(grep { $_->{new_mb} > 20 } history($node)), 0,
	'before a raise: walsizer looks at the volume, which limits the raise');
$node->stop;

# ---- walsizer.min is above what the disk allows

# That setting is for what demand asks for: a volume that fills up comes first.
$volume = small_volume(1, 400);
$node = make_node('min', start => 0, conf => "walsizer.min = 300MB\n");
move_wal($node, $volume);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);
make_pages($node);
my @loads = (start_load($node, 20), start_dirtying($node, 20));
wait_for($node, "set_by_walsizer >= 100 * 1048576 AND limited_by = 'disk'");
stop_load($_) foreach @loads;
$raised = setting_mb($node);
cmp_ok($raised, '<', 300, 'walsizer.min: the disk keeps the raise below it');
$node->safe_psql('postgres', 'CHECKPOINT');
write_ballast($volume, 400 - $raised - 30);
wait_for($node, "max_wal_size < 0.8 * $raised * 1048576 AND max_wal_size <= 1.25 * disk_limit");
$event = last_event($node);
is($event->{action}, 'lower', 'walsizer.min: walsizer lowers when other data grows');
is($event->{limited_by}, 'disk', 'walsizer.min: the limit is the disk');
is(log_count($node, qr/PANIC|No space left/), 0, 'walsizer.min: the file system is never full');
$node->stop;

# ---- WAL that is held back is none of max_wal_size's

# What a checkpoint leaves is taken for held back when the next one is complete.
my @cases = (
	{
		name => 'slot',
		hold => sub {
			$_[0]->safe_psql('postgres',
				"SELECT pg_create_physical_replication_slot('gone', true)");
		},
		verdict => qr/ MB of WAL are held back, .* Replication slot "gone" holds back \d+ MB: /,
		release => sub {
			$_[0]->safe_psql('postgres', "SELECT pg_drop_replication_slot('gone')");
			wait_for($_[0], "verdict LIKE '%If none does, the next checkpoint removes it.'");
			$_[0]->safe_psql('postgres', 'CHECKPOINT');
			wait_for($_[0], "verdict_code <> 'held_back'");
		},
	},
	{
		name => 'archiver',
		conf => "archive_mode = on\narchive_command = 'false'\n",
		verdict => qr/ MB of WAL are held back, .* Archiving fails, last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*, which holds back \d+ MB: /,
	},
	{
		name => 'wal_keep_size',
		conf => "wal_keep_size = 300MB\n",
		verdict => qr/ is too small: (?:at most )?\d+ MB are needed\. Turn on "walsizer.enable"/,
	});

foreach my $case (@cases)
{
		$node = $case->{node} = make_node(
		$case->{name},
		start     => 0,
		streaming => 1,
		conf      => "max_wal_size = 20MB\nwalsizer.enable = off\n" . ($case->{conf} // ''));
	move_wal($node, small_volume(++$volumes, 400));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
	$case->{hold}->($node) if $case->{hold};
	write_fast($node, 200);
	let_go_of_wal($node);
}

foreach my $case (@cases)
{
	my $name = $case->{name};
	my $held;

	$node = $case->{node};
	$held = $node->safe_psql('postgres', 'SELECT sum(size) / 1048576 FROM pg_ls_waldir()');
	cmp_ok($held, '>=', 200, "$name: WAL is held back");

	# All of pg_wal and what is free is the volume; what is held is not ours.
	wait_for($node, 'disk_limit <= ' . (400 - 200) / 2 * MB);
	cmp_ok(status($node)->{disk_limit}, '>=', (400 - $held) / 2 * MB - MB,
		"$name: the disk limit leaves out the WAL that is held back, and no other");
	like(status($node)->{verdict}, $case->{verdict},
		"$name: the verdict names what holds WAL back, unless it is a setting");
	is(log_count($node, qr/LOG:  \d+ MB of WAL are held back, which "max_wal_size" does not limit$/),
		$name eq 'wal_keep_size' ? 0 : 1, "$name: the log says so once, unless it is a setting");
	$case->{release}->($node) if $case->{release};
	$node->stop('immediate');
}

# ---- an administrator's value that exceeds the volume

$node = make_node('too_large', start => 0, segsize => 16, conf => "max_wal_size = 4GB\nmin_wal_size = 32MB\n");
move_wal($node, small_volume(1, 640));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for($node, "verdict_code = 'no_room'");
like(status($node)->{verdict},
	qr/^"max_wal_size" of 4096 MB exceeds the file system of "pg_wal", which holds at most \d+ MB of WAL\. Lower it to at most \d+ MB, or enlarge the file system\.$/,
	'too large: the verdict says so');
wait_for_log_line($node, qr/HINT:  Lower it to at most/, 0);
is(log_count($node, qr/LOG:  "max_wal_size" of 4096 MB exceeds the file system/), 1,
	'too large: the log says so');
is(log_count($node, qr/HINT:  Lower it to at most \d+ MB, or enlarge the file system\./), 1,
	'too large: the log has a hint');
is($node->safe_psql('postgres',
		"SELECT string_agg(setting || (proposal = (SELECT size_limit / 1048576 FROM walsizer_stats) || 'MB')::text, ' ') "
		  . "FROM walsizer_related_settings WHERE setting LIKE '%_wal_size'"),
	'max_wal_sizetrue', 'too large: the limit is proposed for max_wal_size, and nothing for min_wal_size');
is(setting_mb($node), 4096, 'too large: walsizer does not lower max_wal_size');
$node->stop;

done_testing();
