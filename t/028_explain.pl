
# What explains: the report is a page of 80 columns that names the cause, the
# other settings are named when, and only when, they are one, and what the
# advice says of a size holds on a real server.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $node;

sub report
{
	return $node->safe_psql('postgres', "SET intervalstyle = 'iso_8601'; SELECT walsizer_report()");
}

# No line is too wide or shows an interval in ISO 8601; all else is for the caller.
sub good_page
{
	my ($what) = @_;
	my $page = report();

	is(join("\n", grep { length > 80 || /\bPT\d/ } split /\n/, $page), '',
		"$what: no line of the report is too wide or hard to read");
	return $page =~ s/\n(?=\S)/ /gr;
}

sub proposal
{
	my ($setting) = @_;

	return $node->safe_psql('postgres', "SELECT proposal FROM walsizer_related_settings WHERE setting = '$setting'");
}

sub related_settings
{
	return $node->safe_psql('postgres',
		"SELECT string_agg(setting, ' ' ORDER BY setting) FROM walsizer_related_settings "
		  . "WHERE value = current_setting(setting)");
}

# Set a setting of the server, see it named, and set it as proposed.
sub names_and_is_content
{
	my ($setting, $value) = @_;

	set_conf($node, "$setting = $value\n");
	my $now = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	wait_for($node, "sampled_at > '$now'");
	like(related_settings(), qr/\b$setting\b/, "$setting = $value: the setting is named");
	like(good_page("$setting = $value"), qr/Consider $setting = \S+ instead of \S+: \w/,
		"$setting = $value: the report proposes another value");
	my $proposal = proposal($setting);
	$node->append_conf('postgresql.conf', "$setting = $proposal\n");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT count(*) = 0 FROM walsizer_related_settings WHERE setting = '$setting'")
	  or fail("$setting = $proposal: the setting is not named with the proposed value");
	pass("$setting = $proposal: the setting is not named with the proposed value");
	return;
}

# ---- the report, state by state

# Room enough that CREATE EXTENSION is no load.
$node = make_node('explained', conf => "walsizer.dry_run = on\nmax_wal_size = 64MB\ncheckpoint_timeout = 300s\n");
like(good_page('quiet'), qr/^walsizer on this primary: dry run "max_wal_size" of 64 MB has sufficed so far\. It takes one "checkpoint_timeout" to say more\.\n.*max_wal_size is 64 MB and not set by walsizer\..*No changes are recorded\./s,
	'quiet: the report says that the value has sufficed so far');
force_checkpoints($node, 50);
adjust($node);
wait_for($node, '(SELECT max(demand) FROM walsizer_demand) > 45 * 1048576');
my $verdict = good_page('dry run');
like($verdict, qr/^walsizer on this primary: dry run "max_wal_size" of 64 MB is too small: (?:at most )?\d+ MB are needed\. Turn off "walsizer\.dry_run" to have walsizer raise it\.$/m,
	'dry run: the verdict is on line 2, and says what to turn off');
is($verdict =~ s/\s+/ /gr =~ /\Q@{[ status($node)->{verdict} ]}/, 1,
	'dry run: the report has the verdict of the status');
like(good_page('dry run'), qr/Last changes:\s.*raise 64 MB -> \d+ MB, dry run/s,
	'dry run: the report says what walsizer would do');
like(report(), qr/needed \(\| is 64 MB, in\s+effect;\s+the\s+limit\s+is\s+far\s+off,\s+at/,
	'dry run: the chart leaves out a limit that is far off');
like(report(), qr/^  \d{4}-\d\d-\d\d \d\d:\d\d  [# ]*\|[# ]* \d+ MB$/m,
	'dry run: the chart has a bar for this hour');

set_conf($node, "walsizer.enable = off\n");
like(status($node)->{verdict}, qr/^"max_wal_size" of 64 MB is too small: (?:at most )?\d+ MB are needed\. Turn on "walsizer\.enable" to have walsizer raise it, or set it yourself\.$/,
	'disabled: the verdict says that the value is too small, and what to turn on');
set_conf($node, "walsizer.enable = on\nwalsizer.dry_run = off\nwalsizer.max = 80MB\n");
adjust($node);
like(good_page('limited'), qr/max_wal_size is 80 MB, set by walsizer; the original value is 64 MB\..*The limit is 80 MB \(max\)\./s,
	'limited: the report names the limit');

like(status($node)->{verdict}, qr/ of 80 MB is too small: ((?:at most )?\d+) MB are needed.*\. Raise "walsizer\.max" to \g1 MB, or accept forced checkpoints\.$/,
	'limited: the verdict says what helps');
like(report(), qr/in\s+effect;\s+\]\s+the\s+limit,\s+80\s+MB\):/, 'limited: the chart has the limit');
like(report(), qr/^  \d{4}-.*  [# ]*\|\][# ]* \d+ MB$/m,
	'limited: the limit is next to the value in effect, which is the same');

chmod 0400, $node->data_dir . '/postgresql.auto.conf';
set_conf($node, "walsizer.max = 1GB\n");
adjust($node);
like(good_page('blocked'), qr/^walsizer on this primary: blocked "max_wal_size" of 80 MB is too small: (?:at most )?\d+ MB are needed\. walsizer cannot raise it: "postgresql.auto.conf" is not writable\. See walsizer_instructions\./,
	'blocked: the verdict says why');

# An administrator follows the instructions: then there is nothing to do, and no
# limit to name.
my $file = $node->data_dir . '/postgresql.auto.conf';
write_file("$file.new", slurp_file($file) =~ s/^max_wal_size = .*$/max_wal_size = '800MB'/mr);
chmod 0400, "$file.new";
rename "$file.new", $file or die $!;
$node->reload;
wait_for($node, 'original_size = 800 * 1048576');
like(good_page('followed'), qr/^walsizer on this primary: blocked "max_wal_size" of 800 MB has sufficed so far\./,
	'followed: the report asks for nothing when the instructions were followed');
set_conf($node, "walsizer.max = 80MB\n");
wait_for($node, 'size_limit = 80 * 1048576 AND wanted_size > size_limit');
is(status($node)->{limited_by}, 'max', 'a limit below the value of the administrator keeps walsizer from any change');
my $exceeds = '"max_wal_size" of 800 MB exceeds "walsizer.max", so walsizer does not change it\.';
like(status($node)->{verdict}, qr/^$exceeds Raise "walsizer\.max" to (?:at most )?\d+ MB, unless that is intended\.$/,
	"the verdict says that the administrator's value is above the limit");
is(proposal('max_wal_size'), '', 'no max_wal_size is proposed that is too small');
wait_for_log_line($node, qr/LOG:  "max_wal_size" of 800 MB exceeds "walsizer\.max"/, 0);
set_conf($node, "walsizer.max = 790MB\n");
wait_for($node, 'size_limit = 790 * 1048576 AND wanted_size <= size_limit');
like(status($node)->{verdict}, qr/^$exceeds Lower it, or raise "walsizer\.max", unless that is intended\.$/,
	"the verdict says that the administrator's value may be lower");
is(proposal('max_wal_size'), '790MB', 'the limit is proposed for max_wal_size');
chmod 0600, $node->data_dir . '/postgresql.auto.conf';
$node->stop;

# ---- other settings

$node = make_node('related', conf => <<'END');
walsizer.enable = off
checkpoint_timeout = 300s
max_wal_size = 2GB
min_wal_size = 256MB
wal_compression = on
wal_writer_delay = 10ms
wal_buffers = 64kB
END
is(related_settings(), '', 'no other setting is named if the settings are good');
unlike(report(), qr/Consider/, 'the report proposes nothing if the settings are good');
write_wal($node, 20);
names_and_is_content('checkpoint_timeout',           '4min');

# Nothing is proposed that the limits forbid, nor with a size that exceeds them.
foreach my $case ([ 100, '5min', '100MB' ], [ 30, '', '' ])
{
	my ($limit, $proposal, $size) = @$case;

	set_conf($node, "checkpoint_timeout = 4min\nmin_wal_size = 32MB\nwalsizer.max = ${limit}MB\n");
	wait_for($node, "size_limit = $limit * 1048576");
	is(proposal('checkpoint_timeout'), $proposal,
		"a limit of $limit MB: checkpoint_timeout is proposed no longer than the limit allows");
	is(proposal('min_wal_size'), '', "a limit of $limit MB: no min_wal_size is proposed that exceeds it");
	is(proposal('max_wal_size'), $size, "a limit of $limit MB: it is proposed for max_wal_size if it suffices");
}
set_conf($node, "min_wal_size = 256MB\nwalsizer.max = 16GB\n");
wait_for($node, 'size_limit > 2048 * 1048576::bigint');
is(proposal('checkpoint_timeout'), '15min', 'a longer checkpoint_timeout is proposed');
set_conf($node, "full_page_writes = off\n");
is(proposal('checkpoint_timeout'), '', 'without full-page images, no longer checkpoint_timeout is proposed');
set_conf($node, "full_page_writes = on\n");
names_and_is_content('checkpoint_completion_target', '0.5');
set_conf($node, "checkpoint_timeout = 1d\n");
unlike(related_settings(), qr/checkpoint_completion_target/,
	'no checkpoint_completion_target above 0.9 is proposed');
set_conf($node, "checkpoint_timeout = 15min\ncheckpoint_completion_target = 0.9\n");
names_and_is_content('min_wal_size',                 '32MB');
names_and_is_content('min_wal_size',                 '3GB');
names_and_is_content('log_checkpoints',              'off');

# A bulk load, in one of the hours that are remembered.
set_conf($node, "min_wal_size = 256MB\n");
is(related_settings(), '', 'a steady load needs no larger min_wal_size');
$node->stop;
remember_peaks($node, (10) x 8, 1100, (10) x 12);
$node->start;
wait_for($node, 'largest_demand = 1100 * 1048576');
is(related_settings(), 'min_wal_size', 'a bulk load needs a larger min_wal_size');
is($node->safe_psql('postgres', 'SELECT proposal FROM walsizer_related_settings'), '1100MB',
	'the proposed min_wal_size holds the bulk load');
like(good_page('bulk load'), qr/Consider min_wal_size = 1100MB instead of 256MB: .*bulk load/, 'the report explains the proposal');
set_conf($node, "min_wal_size = 1100MB\n");
is(related_settings(), '', 'a proposal that was followed is not repeated');
set_conf($node, "max_wal_size = 4GB\n");
wait_for_sample($node);
is(status($node)->{verdict_code}, 'so_far', 'what was measured with a shorter checkpoint_timeout does not tell that the value suffices');

# A row of each page: little else than the pages is logged.  A session leaves its
# statistics when it gets to it.
set_conf($node, "wal_compression = off\n");
$node->safe_psql('postgres', <<'END');
CREATE TABLE pages (a integer) WITH (fillfactor = 90);
INSERT INTO pages SELECT generate_series(1, 100000);
CHECKPOINT;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_shared('wal');
UPDATE pages SET a = -a WHERE a % 100 = 0;
SELECT pg_stat_force_next_flush();
END
names_and_is_content('wal_compression', 'off');
set_conf($node, "wal_writer_delay = 200ms\n");
$node->safe_psql('postgres', <<'END');
SELECT pg_stat_reset_shared('wal');
INSERT INTO pages VALUES (0);
SELECT pg_stat_force_next_flush();
END
unlike(related_settings(), qr/wal_writer_delay/, 'a little WAL never fills wal_buffers');
$node->safe_psql('postgres', <<'END');
CREATE TABLE bulk (a integer);
INSERT INTO bulk SELECT generate_series(1, 500000);
SELECT pg_stat_force_next_flush();
END
set_conf($node, "archive_timeout = 1h\n");
unlike(related_settings(), qr/wal_writer_delay/, 'padding may have filled wal_buffers');
set_conf($node, "archive_timeout = 0\n");
names_and_is_content('wal_writer_delay', '200ms');

# A longer checkpoint_timeout, at most three times the value in effect, if it saves 15 %
# and no limit forbids it.  The figures are not waited for, but put in their place.
sub advise_timeouts
{
	my (@rows) = @_;

	$node->safe_psql('postgres', 'CREATE OR REPLACE VIEW walsizer_timeout_advice AS SELECT * FROM (VALUES '
		  . join(', ', map { "($_)" } @rows)
		  . ') AS v (checkpoint_timeout, label, wal_saved_least, wal_saved_most, wal_saved, compared_with,'
		  . ' needed_size, recovery_time, limited_by, basis)');
	return proposal('checkpoint_timeout');
}
sub advised
{
	my ($timeout, $least, $limit) = @_;
	return "interval '$timeout', NULL::text, $least\::float8, 0.456::float8, NULL::float8, NULL::interval, "
	  . "5000000000::bigint, interval '3 min', $limit\::text, 'bounds'::text";
}
is(advise_timeouts(advised('30 min', 0.2, 'NULL'), advised('60 min', 0.4, 'NULL')), '30min',
	'a longer checkpoint_timeout: the next step is proposed');
like(report() =~ s/\s+/ /gr, qr/Consider checkpoint_timeout = 30min instead of 15min: With a checkpoint every 30 minutes, the same load would write 20 to 46 % less WAL, .* max_wal_size of 4768 MB\. Crash recovery would take up to 00:03:00 instead of /,
	'a longer checkpoint_timeout: the report says what it would mean');
is(advise_timeouts(advised('30 min', 0.149, 'NULL')), '',
	'a longer checkpoint_timeout: it is not proposed if it saves little');
is(advise_timeouts(advised('30 min', 0.2, "'disk'")), '',
	'a longer checkpoint_timeout: it is not proposed beyond a limit');
is(advise_timeouts(advised('15 min', 0.2, 'NULL'), advised('5 min', 0.2, 'NULL')), '',
	'a longer checkpoint_timeout: no value is proposed that is not longer');
is(advise_timeouts(advised('45 min', 0.2, 'NULL')), '45min',
	'a longer checkpoint_timeout: three times the value in effect may be proposed');
unlike(report(), qr/Since checkpoint_timeout/,
	'the report compares nothing if checkpoint_timeout was not changed');
advise_timeouts("interval '15 min', 'in effect'::text, 0.2::float8, 0.456::float8, 0.333::float8, interval '5 min', "
	  . "NULL::bigint, NULL::interval, NULL::text, 'measured'::text");
like(report() =~ s/\s+/ /gr, qr/Since checkpoint_timeout is 00:15:00 instead of 00:05:00, a record takes 33 % less WAL; 20 to 46 % were expected\./,
	'the report compares what a longer checkpoint_timeout saved with what was expected');
$node->stop;

$node = make_node('no_room', conf => "max_worker_processes = 0\n", start => 0);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
is(related_settings(), '', 'no room: no setting is proposed before there is a sample');
like(good_page('no room'), qr/^walsizer on this server: not running the walsizer worker is not running\. walsizer_start\(\) starts it, or says why it cannot\./s,
	'no room: the report says that the worker is not running');
$node->stop;

# ---- the advice

# The same load, with the sizes that were advised: the smallest that is said to
# suffice has no checkpoint forced, one that is said not to has.
$node = make_node('advised', conf => "walsizer.enable = off\nmax_wal_size = 16MB\ncheckpoint_timeout = 300s\n");
write_wal($node, 40);
wait_for($node, '(SELECT max(demand) FROM walsizer_demand) > 35 * 1048576');

my $peak = "SELECT size / 1048576 FROM walsizer_advice WHERE forced_fraction %s AND checkpoint_every_at_peak %s ORDER BY size";
my $timeout = "(SELECT current_setting('checkpoint_timeout')::interval)";
my ($enough) = split /\n/, $node->safe_psql('postgres', sprintf($peak, '= 0', "= $timeout"));
my @too_small = split /\n/, $node->safe_psql('postgres', sprintf($peak, '> 0', "< $timeout"));
my $demand = status($node)->{demand} / MB;

cmp_ok($enough, '>=', size_for_mb($demand * MB, 1, 0.9),
	'the size that is said to suffice is enough for the demand');
cmp_ok($too_small[-1], '<', $enough, 'a size that is said to be too small is less than one that suffices');
foreach my $size ($enough, $too_small[-1])
{
	set_conf($node, "max_wal_size = ${size}MB\n");
	$node->safe_psql('postgres', 'CHECKPOINT');
	my $offset = log_offset($node);
	write_wal($node, 40);
	if ($size == $enough)
	{
		is(count_forced_in_log($node, $offset), 0, "$size MB, said to suffice: no checkpoint is forced");
	}
	else
	{
		ok(wait_for_log_line($node, qr/checkpoint starting:.* wal\b/, $offset),
			"$size MB, said not to suffice: a checkpoint is forced");
	}
}
sub judged_wrongly
{
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM walsizer_advice WHERE (limited_by IS NULL) <> (size <= (SELECT size_limit FROM walsizer_stats))"
	);
}
is(judged_wrongly(), 0, 'exactly the sizes beyond the limit are limited');
$node->safe_psql('postgres', "ALTER SYSTEM SET walsizer.max = '20MB'");
$node->reload;
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM walsizer_advice WHERE limited_by = 'max'")
  or die 'nothing is forbidden';
is($node->safe_psql('postgres', "SELECT count(*) FROM walsizer_advice WHERE limited_by = 'max' AND size <= 20 * 1048576"),
	0, 'no limited size is within walsizer.max');
wait_for($node, 'size_limit = 20 * 1048576');
is(judged_wrongly(), 0, 'exactly the sizes beyond walsizer.max are limited');
$node->stop;

# ---- a runaway writer: WAL without end, of the same few pages

$node = make_node('runaway', conf => "max_wal_size = 64MB\nwalsizer.max = 64MB\n");
$node->safe_psql('postgres', <<'END');
CREATE TABLE few (filler text) WITH (fillfactor = 10);
INSERT INTO few SELECT repeat('x', 960) FROM generate_series(1, 20);
CREATE TABLE many (filler text);
END

# Bulk loads write as many pages as they log.
$node->safe_psql('postgres', "INSERT INTO many SELECT repeat('x', 960) FROM generate_series(1, 50000)") for 1 .. 3;
wait_for($node, 'checkpoints_forced > 1');
wait_for_sample($node);
isnt(status($node)->{verdict_code}, 'few_pages', 'bulk load: the verdict does not speak of few pages');

my $script = $node->basedir . '/runaway.sql';
write_file($script, "UPDATE few SET filler = repeat(md5(random()::text), 30);\n");
my $load = IPC::Run::start(
	[
		'pgbench', '--no-vacuum', '--client=1', '--time=3600', '--rate=400', '--latency-limit=1000',
		"--file=$script", $node->connstr('postgres')
	],
	'<', \undef, '>', '/dev/null', '2>', '/dev/null');
wait_for($node, "verdict_code = 'few_pages'");
like(status($node)->{verdict},
	qr/^the same few pages are changed over and over: (\d+) MB of WAL between two checkpoints, for which (\d+) pages were written\. Look for the statement by "wal_bytes" /,
	'runaway writer: the verdict says so, with both figures');
wait_for_log_line($node, qr/HINT:  Look for the statement by "wal_bytes" in pg_stat_statements; a larger size helps little\.$/, 0);
stop_load($load);
is(log_count($node, qr/LOG:  the same few pages are changed over and over/), 1,
	'runaway writer: the log says so once');
$node->stop;

done_testing();
