
# WAL is about to fill its file system: walsizer requests a checkpoint, and the
# server lives.  Without that it ends with a PANIC, and does not start again.
#
# Each load goes on until several times the volume was written.  For longer ones:
#
#     WALSIZER_FILLS=5 PROVE_TESTS="-v t/041_disk_full.pl" script/test

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use List::Util qw(sum);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my $fills = 3 * ($ENV{WALSIZER_FILLS} // 1);
my $requested = qr/checkpoint starting: (?:immediate|fast) force$/;
my $said = qr/LOG:  WAL is about to fill the file system of "pg_wal", which has room for \d+ MB of WAL$/;
my $panic = qr/PANIC:|No space left on device/;

# A server whose pg_wal has a volume of that size, and whose max_wal_size, the
# administrator's, is larger.
sub make_full
{
	my ($name, $number, $mb, %opt) = @_;
	my $segsize = $opt{segsize} // 16;
	my $node = make_node($name, %opt, start => 0, segsize => $segsize,
		conf => 'min_wal_size = ' . 2 * $segsize . "MB\n" . <<"END" . ($opt{conf} // ''));
max_wal_size = 4GB
checkpoint_timeout = 30min
walsizer.sample_interval = 500ms
END
	move_wal($node, small_volume($number, $mb));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
	make_pages($node);
	wait_for_worker($node);
	return $node;
}

sub written_mb
{
	my ($node) = @_;
	return try_to_ask($node, "SELECT (pg_current_wal_lsn() - '0/0') / 1048576");
}

# Has the load written that much more?  False if the server ended first.
sub lives_through
{
	my ($node, $mb) = @_;
	my $until = written_mb($node) + $mb;
	my $lives;

	wait_until(
		"$mb MB are written, or the server ends",
		sub {
			my $written = written_mb($node);

			$lives = log_count($node, $panic) == 0;
			return !$lives || (defined $written && $written >= $until);
		});
	return $lives;
}

sub free_mb
{
	my ($number) = @_;
	my ($out) = run_command([ 'df', '--block-size=1M', '--output=avail', "$ENV{WALSIZER_SMALL_FS}/$number" ]);

	return ($out =~ /(\d+)\s*$/)[0];
}

sub requests
{
	my ($node) = @_;
	return grep { $_->{action} eq 'checkpoint' } history($node);
}

# ---- with, and without

my $node = make_full('with', 9, 400);
my @off = (
	make_full('prevent', 10, 300, conf => "walsizer.prevent_disk_full = off\n"),
	make_full('enable', 11, 300, conf => "walsizer.enable = off\n"));
my @loads = map { (start_load($_, 40), start_dirtying($_, 10)) } $node;
ok(lives_through($node, $fills * 400), 'with: the server writes several times the volume');
my @requests = requests($node);
is(scalar(@requests), 1, 'with: the history has one row for a series');
is("$requests[0]->{reason} $requests[0]->{outcome}", 'disk_full applied', 'with: of this reason');
cmp_ok(status($node)->{checkpoints_disk_full}, '>=', 3, 'with: the requests are counted');
is(status($node)->{checkpoints_other}, 0, 'with: as nothing else');
is(log_count($node, $said), 1, 'with: one line in the log');
is(log_count($node, qr/DETAIL:  Room for \d+ MB of new WAL, which lasts \d+ s\. WAL now: [\d.]+ MB\/s; since the last checkpoint: \d+ MB of the \d+ MB that force one\./), 1,
	'with: its figures');
is(log_count($node, qr/HINT:  walsizer requests checkpoints\. Lower "max_wal_size" to at most \d+ MB, or enlarge the file system\./), 1,
	'with: and a hint');
is(status($node)->{verdict_code}, 'disk_full', 'with: the verdict');
is(setting_mb($node), 4096, 'with: the value stays');

# Other data leaves little free, and the server crashes.
write_ballast("$ENV{WALSIZER_SMALL_FS}/9", free_mb(9) - 50);
ok(lives_through($node, 400), 'other data: the server continues on the nearly full volume');
cmp_ok(free_mb(9), '<=', 50, 'other data: which it is');
$node->stop('immediate');
stop_load($_) foreach @loads;
$node->start;
wait_for_worker($node);
@loads = (start_load($node, 40));
ok(lives_through($node, 800), 'crash: the server continues on the nearly full volume');
stop_load($_) foreach @loads;
$node->stop;

@loads = map { start_load($_, 40) } @off;
foreach my $off (@off)
{
	my $name = $off->name;

	ok(!lives_through($off, 600), "$name = off: the server ends");
	is(log_count($off, $said), 1, "$name = off: which is said");
	is(log_count($off, qr/HINT:  Run CHECKPOINT\. Lower "max_wal_size" to at most \d+ MB, or enlarge the file system\./), 1,
		"$name = off: with a hint");
	is(log_count($off, $requested), 0, "$name = off: and nothing is requested");
}
stop_load($_) foreach @loads;
$_->stop('immediate', fail_ok => 1) foreach @off;

done_testing();
