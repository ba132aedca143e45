
# WAL is about to fill its file system: walsizer requests a checkpoint, and the
# server lives.  Without that it ends with a PANIC, and does not start again.
#
# Each load continues until several times the volume was written.  For longer ones:
#
#     WALSIZER_FILLS=5 PROVE_TESTS="-v t/014_disk_full.pl" script/test

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

my $fills = 2 * ($ENV{WALSIZER_FILLS} // 1);
my $requested = qr/checkpoint starting: (?:immediate|fast) force$/;
my $said = qr/LOG:  WAL is about to fill the file system of "pg_wal", which holds at most \d+ MB of WAL$/;
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
	return try_to_ask($node, "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
		  . "ELSE pg_current_wal_lsn() END - '0/0') / 1048576");
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

# Does the verdict say that WAL is about to fill the volume, and that?
sub says
{
	my ($node, $what) = @_;

	return (try_to_ask($node,
		"SELECT verdict_code = 'disk_full' AND verdict ~ '$what' FROM walsizer_status") // '') eq 't';
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

# A checkpoint invalidates a slot that nothing has used for a second.
sub invalidate_slot
{
	my ($node) = @_;

	$node->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('idle', true)");
	wait_until(
		'the slot is invalidated',
		sub {
			$node->safe_psql('postgres', 'CHECKPOINT');
			return $node->safe_psql('postgres',
				"SELECT restart_lsn IS NOT NULL AND invalidation_reason = 'idle_timeout' FROM pg_replication_slots") eq 't';
		});
	return;
}

# ---- with, and without

# The worker or the checkpointer may stall for 5 seconds at any time before one of these
# loads fills its volume: walsizer requests a checkpoint when half as much can be removed
# as there is room for.

my $node = make_full('with', 13, 400);
my @off = (
	make_full('prevent', 14, 300, conf => "walsizer.prevent_disk_full = off\n"),
	make_full('enable', 15, 300, conf => "walsizer.enable = off\n"));
my @loads = (start_load($node, 30), start_dirtying($node, 10));
my $lives = 1;
$lives &&= lives_through($node, 400) foreach 1 .. $fills;
# a load that the machine starves needs fewer checkpoints
$lives &&= lives_through($node, 100) while $lives && status($node)->{checkpoints_disk_full} < 3;
ok($lives, 'with: the server writes several times the volume and lives');
my @requests = requests($node);
is(scalar(@requests), 1, 'with: the history has one event for a series of requests');
is("$requests[0]->{reason} $requests[0]->{outcome}", 'disk_full applied',
	'with: the event has the reason and the outcome');
cmp_ok(status($node)->{checkpoints_disk_full}, '>=', 3, 'with: the requested checkpoints are counted');
is(status($node)->{checkpoints_other}, 0,
	'with: the requested checkpoints are not counted as other checkpoints');
is(log_count($node, $said), 1, 'with: the log says once that WAL is about to fill the volume');
is(log_count($node, qr/DETAIL:  Room for \d+ MB of new WAL, which lasts \d+ s\. WAL now: [\d.]+ MB\/s; since the last checkpoint: \d+ MB of the \d+ MB that force one\./), 1,
	'with: the detail has the figures');
is(log_count($node, qr/HINT:  walsizer requests checkpoints\. Lower "max_wal_size" to at most \d+ MB, or enlarge the file system\./), 1,
	'with: the hint says what to do');
is(status($node)->{verdict_code}, 'disk_full', 'with: the verdict says that WAL is about to fill the volume');
is(setting_mb($node), 4096, 'with: max_wal_size stays');

# Other data leaves little free, and the server crashes.
stop_load($_) foreach @loads;
@loads = (start_load($node, 20), start_dirtying($node, 10));
write_ballast("$ENV{WALSIZER_SMALL_FS}/13", free_mb(13) - 50);
ok(lives_through($node, 250), 'other data: the server continues on the nearly full volume');
cmp_ok(free_mb(13), '<=', 50, 'other data: the volume is nearly full');
$node->stop('immediate');
stop_load($_) foreach @loads;
$node->start;
wait_for_worker($node);
@loads = (start_load($node, 20));
ok(lives_through($node, 250), 'crash: the server continues on the nearly full volume');
stop_load($_) foreach @loads;
$node->stop;

my $dry = make_full('dry_run', 13, 300, conf => "walsizer.dry_run = on\n");
@loads = (start_load($dry, 20), map { start_load($_, 40) } @off);
wait_for($dry, "verdict_code = 'disk_full'");
is(scalar(requests($dry)), 0, 'dry_run = on: the verdict says it, and the history has no request');
foreach my $off (@off, $dry)
{
	my $name = $off->name . ' = ' . ($off->name eq 'dry_run' ? 'on' : 'off');

	ok(!lives_through($off, 600), "$name: the server fills the volume");
	is(log_count($off, $said), 1, "$name: the log says that WAL is about to fill it");
	is(log_count($off, qr/HINT:  Run CHECKPOINT\. Lower "max_wal_size" to at most \d+ MB, or enlarge the file system\./), 1,
		"$name: the hint says what to do");
	is(log_count($off, $requested), 0, "$name: walsizer requests no checkpoint");
}
stop_load($_) foreach @loads;
$_->stop('immediate', fail_ok => 1) foreach @off, $dry;

# ---- other sizes of segments, a slot that keeps nothing, and another program that fills the volume

# From 18 on a slot can be invalidated without the loss of its position.
my $idle_timeout = $node->pg_version >= 18 ? "idle_replication_slot_timeout = '1s'\n" : '';
my @cases = (
	{ node => make_full('small', 13, 100, segsize => 1), rate => 8, mb => 250 },
	{ node => make_full('large', 14, 700, segsize => 64, streaming => 1,
			conf => $idle_timeout), rate => 60, mb => 900 },
	{ node => make_full('others', 15, 500), rate => 8, mb => 250 });
invalidate_slot($cases[1]->{node}) if $idle_timeout;
@loads = map { start_load($_->{node}, $_->{rate}) } @cases;
push @loads,
  IPC::Run::start(
	[
		'bash', '-c',
		'for n in {1..200}; do head -c 2M /dev/zero; sleep 0.1; done >"$0/others"',
		"$ENV{WALSIZER_SMALL_FS}/15"
	]);
foreach my $case (@cases)
{
	my $name = $case->{node}->name;

	ok(lives_through($case->{node}, $case->{mb}), "$name: the server does not fill the volume");
	cmp_ok(status($case->{node})->{checkpoints_disk_full}, '>=', 1, "$name: walsizer requests checkpoints");
}
stop_load($_) foreach @loads;
$_->{node}->stop('immediate') foreach @cases;

# ---- WAL that a checkpoint would not remove, and checkpoints that fail

my $slot = make_full('slot', 13, 250, streaming => 1);
my $archiver = make_full('archiver', 14, 250, streaming => 1, conf => "archive_mode = on\narchive_command = 'false'\n");
my $failing = make_full('failing', 15, 250);
$slot->safe_psql('postgres', "SELECT pg_create_physical_replication_slot('gone', true)");
chmod 0, $failing->data_dir . '/pg_xact/0000' or die "could not change the permissions: $!";
my %load = map { $_->name => start_load($_, 12) } $slot, $archiver, $failing;
# Nothing frees WAL here, so each load ends as soon as walsizer has noticed.  One that
# seems fast at first may fill the volume before much is held back.
my %noticed = (
	slot => sub { says($slot, '\. Replication slot "gone" holds back \d+ MB: ') },
	archiver => sub { says($archiver, '\. Archiving fails, last at .*, which holds back \d+ MB: ') },
	failing => sub { log_count($failing, $requested) });
wait_until(
	'walsizer notices that each volume is about to be full',
	sub {
		stop_load(delete $load{$_}) foreach grep { $noticed{$_}->() } keys %load;
		return !%load;
	});
pass('slot: the verdict names the slot');
pass('archiver: the verdict names the archiver');
# An archiver that has neither archived nor failed keeps WAL just as well.
$archiver->safe_psql('postgres', $_) foreach q{ALTER SYSTEM SET archive_command = ''}, 'SELECT pg_reload_conf()';
wait_until('the archiver gives up', sub { log_count($archiver, qr/archiving is not configured/) });
$archiver->safe_psql('postgres', q{SELECT pg_stat_reset_shared('archiver')});
my $suspended = start_load($archiver, 12);
wait_until('suspended: the verdict names what may hold back WAL', sub { says($archiver, '"wal_keep_size", the archiver') });
stop_load($suspended);
wait_for($failing, "verdict LIKE '%The checkpoint that walsizer requested has not helped yet: %'");
is(log_count($failing, $requested), 1, 'failing: walsizer requests no checkpoint after one that fails');
is(log_count($_, $requested), 0, $_->name . ': walsizer requests no checkpoint') foreach $slot, $archiver;
chmod 0600, $failing->data_dir . '/pg_xact/0000' or die "could not change the permissions: $!";
$_->stop('immediate') foreach $slot, $archiver, $failing;

# ---- a standby

# The primary, on another volume, makes the checkpoints that restartpoints need.
my $primary = make_node('primary', segsize => 16, streaming => 1,
	conf => "max_wal_size = 4GB\nmin_wal_size = 32MB\ncheckpoint_timeout = 30min\n");
my $standby = PostgreSQL::Test::Cluster->new('standby');
$primary->backup('copy');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->enable_streaming($primary);
move_wal($standby, small_volume(13, 300));
$standby->start;
wait_for_worker($standby);
write_file($primary->basedir . '/checkpoints.sql', "CHECKPOINT \\watch 0.5\n");
@loads = (start_load($primary, 15),
	IPC::Run::start([ 'psql', '-X', '-q', '-d', $primary->connstr('postgres'), '-f', $primary->basedir . '/checkpoints.sql' ],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null'));
ok(lives_through($standby, 450), 'standby: the server receives and replays more than the volume holds');
cmp_ok(status($standby)->{checkpoints_disk_full}, '>=', 1, 'standby: walsizer requests restartpoints');
stop_load($_) foreach @loads;
$standby->stop('immediate');
$primary->stop('immediate');

done_testing();
