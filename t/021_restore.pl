
# A server that starts with a value of walsizer's that its disk has no room for:
# a clone whose pg_wal is on a smaller volume, a server whose disk was filled while
# it was down.  No worker runs before a recovery is consistent, so the original value
# must be in effect from the start on.  Nothing changes where there is room.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use File::Spec;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);
use WalsizerTest;

plan skip_all => 'needs file systems of its own' unless $ENV{WALSIZER_SMALL_FS};

my $original = 8;    # MB, in postgresql.conf
my $small    = 60;   # MB of a volume that has no room for what walsizer sets
my $conf     = <<"END";
max_wal_size = ${original}MB
walsizer.predict = off
checkpoint_timeout = 1h
END
my $no_space = qr/No space left on device/;
my $restored =
  qr/LOG:  walsizer restored the original "max_wal_size" of $original MB, because the file system of "pg_wal" has no room for \d+ MB/;
my ($before, $raised, $offset, $status, $event);

# Raised by walsizer, to more than a small volume has, in as many steps as a volume
# of its own takes.  Returns the size in MB.
sub raise
{
	my ($node) = @_;

	for (1 .. 10)
	{
		force_checkpoints($node, 75);
		like(adjust($node), qr/^raise .*: applied$/, $node->name . ': walsizer raises');
		last if setting_mb($node) > 100;
	}
	return setting_mb($node);
}

# ---- the source, and a backup during which it writes more than the volume has

my $source = make_node('source', streaming => 1, start => 0,
	conf => $conf . "archive_mode = on\nmax_wal_senders = 10\nwal_keep_size = 1GB\n");
my $archive = File::Spec->rel2abs($source->archive_dir);
mkdir $archive or -d $archive or die "could not make $archive: $!";
$source->append_conf('postgresql.conf', "archive_command = 'cp %p $archive/%f'\n");
$source->start;
$source->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($source);
$raised = raise($source);
cmp_ok($raised, '>', 2 * $small, 'the raise exceeds the small volumes');
$before = auto_conf($source);
like($before, qr/^walsizer\.last_written = '${raised}MB instead of ${original}MB'$/m,
	'a note in the backup says whose value it has');

# The backup is over when the session is told so.
my $over   = $source->basedir . '/over';
my $script = $source->basedir . '/backup.sql';
write_file($script, <<"END");
SELECT 'started' FROM pg_backup_start('backup', true);
\\! while [ ! -e $over ]; do sleep 0.1; done
SELECT 'stopped' FROM pg_backup_stop(false);
END
my $stdout = '';
my $backup = IPC::Run::start(
	[ 'psql', '-X', '-A', '-t', '-q', '-d', $source->connstr('postgres'), '-f', $script ],
	'<', \undef, '>', \$stdout);
wait_until('the backup has begun', sub { $backup->pump_nb; return $stdout =~ /started/ });

# What pg_backup_stop() would give in the end.
my $label = $source->safe_psql('postgres', <<'END');
SELECT format(E'START WAL LOCATION: %s (file %s)\nCHECKPOINT LOCATION: %s\nBACKUP METHOD: streamed\n'
  'BACKUP FROM: primary\nSTART TIME: %s\nLABEL: backup\nSTART TIMELINE: 1\n',
  redo_lsn, pg_walfile_name(redo_lsn), checkpoint_lsn, now())
FROM pg_control_checkpoint()
END
my $copy = $source->backup_dir . '/open';
# the archiver renames files, which cp would miss
wait_until('all is archived', sub { !(() = glob $source->data_dir . '/pg_wal/archive_status/*.ready') });
system_or_bail('cp', '-a', $source->data_dir, $copy);
unlink "$copy/postmaster.pid";
system_or_bail('find', "$copy/pg_wal", '-type', 'f', '-delete');
write_file("$copy/backup_label", "$label\n");

# A clone; its pg_wal is on that volume, or beside the data if there is none.
sub make_clone
{
	my ($name, $volume, $conf, %how) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($source, 'open', %how);
	$node->append_conf('postgresql.conf', "archive_mode = off\nwal_keep_size = 0\n$conf");
	move_wal($node, small_volume($volume, $small)) if $volume;
	return $node;
}

sub segments
{
	my ($node) = @_;
	return scalar grep { /\/[0-9A-F]{24}$/ } glob $node->data_dir . '/pg_wal/*';
}

# Streaming ones follow the source from the start on.
my $standby = make_clone('standby', 9, '', has_streaming => 1);
my $warm    = make_clone('warm', 10, "hot_standby = off\n", has_streaming => 1);
my $large   = make_clone('large', 0, '', has_streaming => 1);
foreach my $node ($standby, $warm, $large)
{
	# it is not reachable yet, or never, and is to be known by its own name
	delete local $ENV{PGAPPNAME};
	$node->append_conf('postgresql.conf', "log_min_messages = debug1\n");
	write_file($node->logfile, '');
	system_or_bail('pg_ctl', '--no-wait', '-D', $node->data_dir, '-l', $node->logfile,
		'-o', '--cluster-name=' . $node->name, 'start');
	wait_for_log_line($node, qr/redo starts at/, 0);
	$node->_update_pid(1);
}

# The source has checkpoints all the time, which a standby can use for its
# restartpoints if it asks for them.  The standbys keep up with the source, which
# waits ten seconds at most for the checkpointer of one on a busy machine.
my $keep_up = 1;
my $most    = 0;     # MB in pg_wal of the standby
foreach my $n (1 .. 20)
{
	write_wal($source, 8);
	$source->safe_psql('postgres', 'CHECKPOINT');
	my $lsn = $source->lsn('write');
	$keep_up &&= $source->poll_query_until('postgres',
		"SELECT count(*) = 3 FROM pg_stat_replication WHERE replay_lsn >= '$lsn'");
	my $n_segments = segments($standby);
	$most = $n_segments if $n_segments > $most;
	foreach (1 .. 100)
	{
		last if segments($standby) <= 40 && segments($warm) <= 40;
		usleep(100_000);
	}
}
ok($keep_up, 'streaming: all standbys keep up');
note("most in pg_wal of the standby: $most MB of $small MB, "
	  . log_count($standby, $no_space) . ' times no space');
$source->safe_psql('postgres', 'CREATE TABLE last AS SELECT 42 AS answer');
write_file($over, '');
$backup->finish;
like($stdout, qr/stopped/, 'more is written during the backup than the small volume has');

# ---- archive recovery

# The end of the backup has waited for the archive.  Not faster than a checkpointer
# can be on a busy machine, for which a file waits ten seconds at most.
my $pitr    = make_clone('pitr', 11, <<"END");
restore_command = 'for i in \$(seq 500); do [ \$(ls pg_wal | wc -l) -gt 40 ] || break; sleep 0.02; done; sleep 0.02; cp $archive/%f %p'
END
$pitr->set_recovery_mode;
ok($pitr->start(fail_ok => 1), 'archive recovery: the server starts');
SKIP:
{
	skip 'the server did not start', 1 unless $pitr->{_pid};
	$pitr->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
	  or die 'the recovery does not end';
	is($pitr->safe_psql('postgres', 'SELECT answer FROM last'), 42,
		'archive recovery: the recovery reaches its end');
	is(log_count($pitr, $no_space), 0, 'archive recovery: the volume is never full');
}
is(log_count($pitr, $restored), 1, 'archive recovery: the log says once that the original value is restored');
like(slurp_file($pitr->logfile), qr/DETAIL:  The file system has \d+ MB of WAL and \d+ MB of free space\./, 'archive recovery: the detail has the figures');
wait_for_worker($pitr);
note_is_removed($pitr, 'archive recovery');
unlike(auto_conf($pitr), qr/^(max_wal_size|walsizer)/m, "archive recovery: walsizer's lines are removed");
$status = status($pitr);
is($status->{max_wal_size}, $original * MB, 'archive recovery: the original value is in effect');
is($status->{original_size},   $original * MB, "archive recovery: the original value is the administrator's");
is($status->{set_by_walsizer},     undef,          "archive recovery: no value is walsizer's");
$event = last_event($pitr);
is($event->{action}, 'lower', 'archive recovery: the history has a lowering');
is($event->{limited_by},  'disk',  'archive recovery: the limit is the disk');
is($event->{old_mb}, $raised, 'archive recovery: the event has the value of the source');
is($event->{new_mb}, $original, 'archive recovery: the event has the original value');
is($event->{message}, 'at the start of the server',
	'archive recovery: the message says that it was at the start of the server');

# A reload, a crash and a restart leave it at that, and say nothing more.
$offset = log_offset($pitr);
$pitr->reload;
wait_for_log_line($pitr, qr/received SIGHUP/, $offset);
wait_for_sample($pitr);
is(setting_mb($pitr), $original, 'archive recovery: the original value is in effect after a reload');
$pitr->stop('immediate');
$pitr->start;
wait_for_worker($pitr);
is(setting_mb($pitr), $original, 'archive recovery: the original value is in effect after a crash');
is(log_count($pitr, qr/walsizer restored|an administrator changed/, $offset), 0,
	'archive recovery: no administrator is suspected');
is(scalar(grep { $_->{message} // '' eq 'at the start of the server' } history($pitr)),
	1, 'archive recovery: the history has one event of the start');
$pitr->stop;

# ---- streaming

# Never consistent until the backup was over: no worker had run.
foreach my $node ($standby, $warm)
{
	my $name = $node->name;

	is(log_count($node, $no_space), 0, "$name: the volume is never full");
	is(log_count($node, $restored), 1, "$name: the original value is restored, once");
	$source->wait_for_catchup($name, 'replay', $source->lsn('write'));
	pass("$name: it follows the source");
}
wait_for_worker($standby);
is(status($standby)->{original_size}, $original * MB, 'standby: the original value is known');
is(scalar(grep { $_->{action} eq 'external' } history($standby)), 0, 'standby: no administrator is suspected');
$warm->promote;
wait_for_worker($warm);
is(scalar(grep { $_->{action} eq 'external' } history($warm)), 0, 'warm: no administrator is suspected');
is((grep { ($_->{message} // '') eq 'at the start of the server' } history($warm))[0]{old_mb},
	$raised, 'warm: the history has the event of the start after promotion');

# With room for it, nothing is touched.
wait_for_worker($large);
is(auto_conf($large), $before, 'large: postgresql.auto.conf is that of the source');
is(setting_mb($large), $raised, 'large: the value is that of the source');
is(log_count($large, qr/restore the original|restored the original/), 0,
	'large: the log has no restored value');
$_->stop('immediate') foreach $standby, $warm, $large, $source;

# ---- no clone: a disk that was filled while the server was down

my $volume = small_volume(12, 400);
my $node = make_node('filled', start => 0, conf => $conf . "walsizer.max_disk_percent = 85\n");
move_wal($node, $volume);
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '10MB'");
$node->safe_psql('postgres', "ALTER SYSTEM SET work_mem = '5MB'");
$node->reload;
wait_for($node, "original_size = 10 * 1048576");
$node->restart;
wait_for_worker($node);
$raised = raise($node);
$node->stop;
$before = auto_conf($node);

# Most of a volume is not too much.
resize_volume(12, $raised + 40);
$node->start;
is(setting_mb($node), $raised, 'filled: the value stays if the volume has room for it');
is(auto_conf($node), $before, 'filled: postgresql.auto.conf stays if the volume has room for the value');
$node->stop;

# Questions are no start.
resize_volume(12, 90);
command_like([ 'postgres', '-D', $node->data_dir, '-C', 'shared_memory_size' ],
	qr/^\d+$/, 'filled: postgres -C shows a setting');
is(auto_conf($node), $before, 'filled: postgres -C changes nothing');

# Nor is it done against an administrator's word.
$offset = log_offset($node);
$node->append_conf('postgresql.conf', "walsizer.dry_run = on\n");
$node->start;
is(auto_conf($node), $before, 'dry run: postgresql.auto.conf stays');
is(log_count($node, qr/LOG:  walsizer would restore the original "max_wal_size" of 10 MB, because .* has no room for $raised MB/, $offset),
	1, 'dry run: the log says what walsizer would do');
$node->stop;
$node->append_conf('postgresql.conf', "walsizer.dry_run = off\n");

# A file that may not be written.
my $file = $node->data_dir . '/postgresql.auto.conf';
$offset = log_offset($node);
chmod 0400, $file or die "could not change the permissions of $file: $!";
$node->start;
wait_for_worker($node);
is(auto_conf($node), $before, 'read-only: the file stays as it is');
is(setting_mb($node), 10, 'read-only: the original value is in effect all the same');
is(log_count($node, qr/LOG:  walsizer restored the original "max_wal_size" of 10 MB until the next reload, because/, $offset),
	1, 'read-only: the log says so once');
is(log_count($node, qr/DETAIL:  .* keeps the larger value: "postgresql.auto.conf" is not writable\./, $offset),
	1, 'read-only: the log has the reason');
is(status($node)->{original_size}, 10 * MB, 'read-only: the original value is known');
chmod 0600, $file or die "could not change the permissions of $file: $!";
$node->reload;
wait_for($node, 'max_wal_size <= disk_limit AND set_by_walsizer > 10 * 1048576');
is(scalar(grep { $_->{action} eq 'external' && $_->{old_mb} > 8 } history($node)),
	0, "read-only: the value that a reload brings back is known as walsizer's");
$node->stop;

write_file($file, $before);
chmod 0400, $file or die "could not change the permissions of $file: $!";
$node->start;
wait_for_worker($node);
chmod 0600, $file or die "could not change the permissions of $file: $!";
like(revert($node), qr/^revert to 10 MB: applied/, 'read-only: walsizer_revert() replaces the value that a reload would bring back');
like(auto_conf($node), qr/^max_wal_size = '10MB'$/m, 'read-only: the file has the original value');
$node->stop;

# An ALTER SYSTEM of the administrator's was there before: it is there again.
write_file($file, $before);
$offset = log_offset($node);
$node->start;
wait_for_worker($node);
is(log_count($node, qr/LOG:  walsizer restored the original "max_wal_size" of 10 MB, because/, $offset), 1,
	'ALTER SYSTEM: the original value is restored');
like(auto_conf($node), qr/^max_wal_size = '10MB'$/m, 'ALTER SYSTEM: the original value has its line again');
like(auto_conf($node), qr/^work_mem = '5MB'$/m, 'ALTER SYSTEM: the other lines stay');
note_is_removed($node, 'ALTER SYSTEM');
is($node->safe_psql('postgres',
		"SELECT source || ' ' || (sourcefile LIKE '%postgresql.auto.conf') FROM pg_settings WHERE name = 'max_wal_size'"),
	'configuration file true', 'ALTER SYSTEM: postgresql.auto.conf is the source of the value');

# ---- the start that restores it has no worker, and the next one has

$node->stop;
resize_volume(12, 400);
$node->start;
wait_for_worker($node);
$raised = raise($node);
act($node, "walsizer_boost('${raised}MB', '1 hour')");
my $last_id = last_event($node)->{id};
$node->stop;
resize_volume(12, 90);
$offset = log_offset($node);
$node->append_conf('postgresql.conf', 'max_worker_processes = 0');
$node->start;
is($node->safe_psql('postgres', 'SHOW max_wal_size'), '10MB', 'no worker: the original value is in effect');
like(auto_conf($node), qr/^walsizer\.last_written = '10MB restored for lack of room, was ${raised}MB by ALTER SYSTEM'$/m,
	'no worker: the note says that the original value was restored');
$node->restart;
is(log_count($node, qr/LOG:  walsizer restored the original "max_wal_size" of 10 MB, because/, $offset), 1,
	'no worker: the original value is restored once');
$node->adjust_conf('postgresql.conf', 'max_worker_processes', '8');
$node->restart;
wait_for_worker($node);
wait_for_sample($node);
is(scalar(grep { $_->{action} eq 'external' } grep { $_->{id} > $last_id } history($node)), 0,
	'no worker: no administrator is suspected when a worker starts');
($event) = grep { ($_->{message} // '') eq 'at the start of the server' && $_->{id} > $last_id } history($node);
is($event->{old_mb}, $raised, 'no worker: the first worker records the value before the start');
is($event->{new_mb}, 10, 'no worker: the first worker records the original value');
cmp_ok(status($node)->{boost_size}, '==', $raised * MB, 'no worker: the planned load does not end');
is(log_count($node, qr/LOG:  walsizer changed "max_wal_size" from $raised MB to 10 MB/, $offset), 1,
	'no worker: the first worker logs the change');
# The planned load has raised again at once, as far as the disk allows.
wait_for($node, 'max_wal_size <= disk_limit AND set_by_walsizer > 10 * 1048576');
like(auto_conf($node), qr/^walsizer\.last_written = '\d+MB instead of 10MB by ALTER SYSTEM'$/m,
	'no worker: a new note replaces the one about the start');
is(log_count($node, qr/PANIC/), 0, 'filled: the server does not panic');
$node->stop;

# ---- a disk that is full when the server restarts after a crash, with an error in its configuration

resize_volume(12, 400);
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;
wait_for_worker($node);
wait_for($node, "set_by_walsizer >= $raised * 1048576");    # for the planned load
$last_id = last_event($node)->{id};
my $stopped = pid($node);
kill 'STOP', $stopped;    # it would lower the size first
write_ballast($volume, 290);
$node->append_conf('postgresql.conf', "this is no setting\n");
$offset = log_offset($node);
kill 'KILL', $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
wait_for_log_line($node, qr/LOG:  walsizer restored the original "max_wal_size" of 10 MB, because/, $offset);
wait_for_restart($node, $stopped);
is(setting_mb($node), 10, 'crash: the original value is in effect, although the configuration has an error');
wait_for($node, "(SELECT max(id) FROM walsizer_history) > $last_id");
is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT changed_at < lag(changed_at) OVER (ORDER BY id) AS earlier FROM walsizer_history) AS e WHERE earlier'),
	0, 'crash: the history has the order of time');
$node->stop;

done_testing();
