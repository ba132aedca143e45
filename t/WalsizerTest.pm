
# What the tests of walsizer share: servers, WAL to order, and questions.
#
# Nothing here waits for luck: a wait has a condition, and ends with the test
# if the condition does not come true in PG_TEST_TIMEOUT_DEFAULT seconds.  A file
# that takes ten times that hangs: it fails, and says where.

package WalsizerTest;

use strict;
use warnings;

use Carp ();
use Exporter 'import';
use File::Basename qw(dirname);
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw(
  MB make_node start_with_options start_after_kill set_conf
  write_wal force_checkpoints need_a_raise force_one_checkpoint let_go_of_wal
  start_load stop_load make_pages start_dirtying
  try_to_ask start_asking status pid stop_worker history last_event act act_row adjust revert setting_mb
  wait_until wait_for wait_for_sample wait_for_worker wait_for_restart wait_for_nobody_in
  size_for_mb trigger_point_mb
  classic_size_mb
  log_offset log_count count_forced_in_log wait_for_log_line
  auto_conf note_is_removed state_file remember_peaks write_file build_preloaded
  small_volume resize_volume move_wal write_ballast
);

use constant MB => 1024 * 1024;

# A test hangs if it begins no new server, and nothing that it waits for comes true.
$SIG{ALRM} = sub { Carp::confess('this test hangs') };

sub not_hanging
{
	return alarm(10 * $PostgreSQL::Test::Utils::timeout_default);
}
not_hanging();

# Small segments and a small max_wal_size: a few megabytes of WAL force a
# checkpoint: the trigger point is 2 MB at first.
my $default_conf = <<'END';
shared_preload_libraries = 'walsizer'
checkpoint_timeout = 30s
checkpoint_completion_target = 0.9
max_wal_size = 4MB
min_wal_size = 2MB
walsizer.sample_interval = 100ms
autovacuum = off
log_statement = none
log_checkpoints = on
END

# One initdb for each combination of parameters; nodes are copies of it.
my %templates;

sub template
{
	my ($segsize, $streaming) = @_;
	my $name = "template_${segsize}" . ($streaming ? '_streaming' : '');

	if (!$templates{$name})
	{
		my $node = PostgreSQL::Test::Cluster->new($name);
		$node->init(
			extra            => [ '--wal-segsize', $segsize ],
			allows_streaming => $streaming);
		$node->backup_fs_cold('pristine');
		$templates{$name} = $node;
	}
	return $templates{$name};
}

# Does the server not preload the library, so that walsizer_start() starts the worker?
sub is_live
{
	my ($node) = @_;
	my $conf = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postgresql.conf');

	return $node->pg_version >= 17
	  && ($conf =~ /^shared_preload_libraries = '(.*)'$/mg)[-1] eq '';
}

# make_node(name, ...): a server with walsizer preloaded and its extension
# created in the database postgres.
#
#   conf      => text, goes to the end of postgresql.conf
#   live      => 1: where the server can, the library is not preloaded, but the
#                worker started by walsizer_start(), also after a restart, by
#                wait_for_worker().  With WALSIZER_LIVE=1 in the environment all are
#   segsize   => WAL segment size in MB, 1 if not given
#   streaming => can have standbys
#   start     => 0: only make it
sub make_node
{
	my ($name, %opt) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	not_hanging();
	$node->init_from_backup(template($opt{segsize} // 1, $opt{streaming} // 0),
		'pristine');
	$node->append_conf('postgresql.conf', $default_conf);
	$node->append_conf('postgresql.conf', "shared_preload_libraries = ''")
	  if ($opt{live} // $ENV{WALSIZER_LIVE}) && $node->pg_version >= 17;
	$node->append_conf('postgresql.conf', $opt{conf}) if $opt{conf};
	if ($opt{start} // 1)
	{
		$node->start;
		$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
		wait_for_worker($node);
	}
	return $node;
}

# Start a server with options on its command line.
sub start_with_options
{
	my ($node, $options) = @_;
	my $name = $node->name;

	PostgreSQL::Test::Utils::system_or_bail('pg_ctl', '-w', '-D',
		$node->data_dir, '-l', $node->logfile, '-o',
		"--cluster-name=$name $options", 'start');
	$node->_update_pid(1);
	return;
}

# Start a server whose postmaster was killed.  Not before its last process is
# gone, and not with start(), which takes the file postmaster.pid for a server.
sub start_after_kill
{
	my ($node) = @_;
	my $name = $node->name;

	wait_until(
		"the server $name starts again",
		sub {
			return PostgreSQL::Test::Utils::system_log('pg_ctl', '-w', '-D',
				$node->data_dir, '-l', $node->logfile, '-o',
				"--cluster-name=$name", 'start') == 0;
		});
	$node->_update_pid(1);
	return;
}

# Append settings and have them take effect.
sub set_conf
{
	my ($node, $text) = @_;
	my ($name, $value);

	$node->append_conf('postgresql.conf', $text);
	$node->reload;
	while ($text =~ /^\s*([\w.]+)\s*=\s*'?([^'\n]*)'?/mg)
	{
		($name, $value) = ($1, $2);
		my $load = $name =~ /^walsizer/ && is_live($node);
		$node->poll_query_until('postgres',
			($load ? "LOAD 'walsizer'; " : '')
			  . 'SELECT NOT pending_restart AND sourceline IS NOT NULL AND '
			  . "current_setting('$name') = '$value' FROM pg_settings WHERE name = '$name'",
			$load ? "LOAD\nt" : 't')
		  or die "$name did not become $value";
	}
	return;
}

# ---- WAL

# Write that many MB of WAL in short statements: a statement that is running
# would keep the max_wal_size with which it began.
sub write_wal
{
	my ($node, $mb) = @_;
	my $statement =
	  "SELECT pg_logical_emit_message(true, 'walsizer', repeat('x', 262000));\n";

	$node->safe_psql('postgres', $statement x ($mb * 4));
	return;
}

# Write that much, enough to force a checkpoint, and see that it was noticed.
sub force_checkpoints
{
	my ($node, $mb) = @_;
	my $before = status($node)->{checkpoints_forced};

	write_wal($node, $mb);
	wait_for($node, "checkpoints_forced > $before");
	return;
}

# Bring about a load that needs a raise, and is over.
sub need_a_raise
{
	my ($node) = @_;

	force_checkpoints($node, 3 * trigger_point_mb(setting_mb($node), 1, 0.9));
	$node->safe_psql('postgres', 'CHECKPOINT');
	return;
}

# What is left of the segment that is being written, in bytes.
sub left_in_segment
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		"SELECT pg_size_bytes(setting) - (pg_current_wal_insert_lsn() - '0/0') % pg_size_bytes(setting) "
		  . "FROM pg_settings WHERE name = 'wal_segment_size'");
}

# Force exactly one: beginning with the redo pointer at the start of a segment,
# the trigger point holds one checkpoint and a little more.  The first CHECKPOINT
# keeps the switch of segments from forcing one, which needs room for its record:
# so near the end of a segment the switch would end the next one, too.  Each is
# to be seen for itself: two between two samples look like one of twice the
# distance.
sub force_one_checkpoint
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for_sample($node);
	if (left_in_segment($node) < 0.1 * MB)
	{
		write_wal($node, 0.25);
		$node->safe_psql('postgres', 'CHECKPOINT');
		wait_for_sample($node);
	}
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for_sample($node);
	force_checkpoints($node, status($node)->{trigger_point} / MB + 0.25);
	return;
}

# What was written so far is removed, or it is held back: known when two
# checkpoints were seen and their WAL was not needed any more.
sub let_go_of_wal
{
	my ($node) = @_;

	for (1 .. 2)
	{
		$node->safe_psql('postgres', 'CHECKPOINT');
		wait_for_sample($node);
		write_wal($node, 1);
	}
	return;
}

# A steady load of short statements, in MB of WAL per second; 0: as fast as it
# goes.  What a machine that stalls cannot do in time, in ms, is left out: made up for
# at full speed, it would be a burst that nobody can foresee.
sub start_load
{
	my ($node, $mb_per_second, $in_time) = @_;
	my $script = $node->basedir . '/load.sql';

	PostgreSQL::Test::Utils::append_to_file($script,
		"SELECT pg_logical_emit_message(true, 'walsizer', repeat('x', 104000));\n")
	  unless -e $script;
	return IPC::Run::start(
		[
			'pgbench',                         '--no-vacuum',
			'--client=1',                      '--time=3600',
			$mb_per_second
			? ('--rate=' . (10 * $mb_per_second), '--latency-limit=' . ($in_time // 1000))
			: (),
			"--file=$script", $node->connstr('postgres')
		],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null');
}

# A table for start_dirtying(): a row on each page.
sub make_pages
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'END');
CREATE TABLE pages WITH (fillfactor = 10) AS
  SELECT n, 0 AS changes, repeat('x', 600) AS filler FROM generate_series(1, 4000) n;
ALTER TABLE pages ADD PRIMARY KEY (n);
END
	return;
}

# Beside start_load(), and ended by stop_load(): one dirty page for each of its
# statements.  Without pages to write a checkpoint is over at once, and WAL fills only
# half of max_wal_size; a load that dirties some has it filled.  With few pages, a load
# that is starved dirties as many.
sub start_dirtying
{
	my ($node, $mb_per_second, $pages) = @_;
	my $script = $node->basedir . '/pages.sql';

	$pages //= 4000;
	write_file($script,
		"\\set n random(1, $pages)\nUPDATE pages SET changes = changes + 1 WHERE n = :n;\n");
	return IPC::Run::start(
		[
			'pgbench',                         '--no-vacuum',
			'--client=1',                      '--time=3600',
			'--rate=' . (10 * $mb_per_second), '--latency-limit=1000',
			"--file=$script",                  $node->connstr('postgres')
		],
		'<', \undef, '>', '/dev/null', '2>', '/dev/null');
}

sub stop_load
{
	my ($load) = @_;

	$load->signal('TERM');
	eval { $load->finish };
	return;
}

# The smallest max_wal_size, in MB, with which that much WAL (bytes) never
# forces a checkpoint; written down anew here, from the server's own rule.
sub size_for_mb
{
	my ($bytes, $segsize, $target) = @_;
	my $needed = int(($bytes + $segsize * MB - 1) / ($segsize * MB)) + 1;
	my $mb     = 2 * $segsize;

	$mb += $segsize while trigger_point_mb($mb, $segsize, $target) < $needed * $segsize;
	return $mb;
}

# The size that the classic rule must choose by the figures of its event.
# With several forced checkpoints in the window, the page images that each of
# them caused are the headroom.
sub classic_size_mb
{
	my ($event, $segsize) = @_;
	my $headroom = $event->{checkpoints_forced} > 1 ? 1 : 1.2;

	return size_for_mb($headroom * $event->{demand}, $segsize, 0.9);
}

# WAL, in MB, that forces a checkpoint.
sub trigger_point_mb
{
	my ($mb, $segsize, $target) = @_;
	my $segments = int(int($mb / $segsize) / (1 + $target));

	return ($segments < 1 ? 1 : $segments) * $segsize;
}

# ---- questions

sub rows
{
	my ($node, $sql) = @_;
	my $json = $node->safe_psql('postgres',
		"SELECT coalesce(json_agg(r), '[]') FROM ($sql) r");

	return @{ JSON::PP->new->decode($json) };
}

# Ask a server that may be about to crash; undef if it does not answer.  Nothing is
# written to psql, which may end before it reads that.
sub try_to_ask
{
	my ($node, $sql) = @_;
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ],
		'<', \undef, '>', \$out, '2>', \$err)
	  or return undef;
	chomp $out;
	return $out;
}

# Ask without waiting for the answer, which may never come.
sub start_asking
{
	my ($node, $sql, $out, $err) = @_;

	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ],
		'<', \undef, '>', $out // '/dev/null', '2>', $err // '/dev/null');
}

# The rows of walsizer_status and walsizer_stats as one.
sub status
{
	my ($node) = @_;
	my ($row) = rows($node, 'SELECT * FROM walsizer_status, walsizer_stats');

	return $row;
}

# The pid of the worker.
sub pid
{
	my ($node) = @_;
	return status($node)->{pid};
}

# Stop the worker where it waits, not where it may hold a lock.  Returns its pid.
sub stop_worker
{
	my ($node) = @_;
	my $pid = pid($node);

	wait_until(
		'the worker is stopped',
		sub {
			kill 'STOP', $pid or die $!;
			return 1 if $node->safe_psql('postgres',
				"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") eq 't';
			kill 'CONT', $pid or die $!;
			return 0;
		});
	return $pid;
}

# All events, oldest first, sizes in MB, with the time as seconds since 1970.
# What the status shows already is in it: recorded before the next sample.
sub history
{
	my ($node) = @_;
	my $seen = status($node)->{sampled_at};

	wait_for($node, "pid IS NULL OR sampled_at > '$seen'") if $seen;
	return rows($node,
		'SELECT *, old_size / 1048576 AS old_mb, new_size / 1048576 AS new_mb, '
		  . 'wanted_size / 1048576 AS wanted_mb, extract(epoch FROM changed_at)::float8 AS epoch '
		  . 'FROM walsizer_history ORDER BY id');
}

sub last_event
{
	my ($node) = @_;
	my @events = history($node);

	return @events ? $events[-1] : {};
}

# The row that a function returns that acts, sizes in MB, too.
sub act_row
{
	my ($node, $call) = @_;
	my @rows = rows($node,
		"SELECT *, old_size / 1048576 AS old_mb, new_size / 1048576 AS new_mb FROM $call");

	die "$call returned " . @rows . ' rows' if @rows != 1;
	return $rows[0];
}

# The same as text: "raise to 8 MB, limited by max: applied", followed by ": " and
# the message if there is one; or "none: " and the message.
sub act
{
	my $row = act_row(@_);
	my $text = $row->{action};

	$text .= " to $row->{new_mb} MB" if $row->{action} ne 'none';
	$text .= ", limited by $row->{limited_by}" if defined $row->{limited_by};
	$text .= ": $row->{outcome}" if $row->{action} ne 'none' || $row->{outcome} ne 'none';
	$text .= ": $row->{message}" if defined $row->{message};
	return $text;
}

sub adjust
{
	my ($node) = @_;
	return act($node, 'walsizer_adjust()');
}

sub revert
{
	my ($node) = @_;
	return act($node, 'walsizer_revert()');
}

# max_wal_size as a new session sees it, in MB.
sub setting_mb
{
	my ($node, $name) = @_;
	$name //= 'max_wal_size';
	return $node->safe_psql('postgres',
		"SELECT pg_size_bytes(current_setting('$name')) / 1048576");
}

# Wait until a condition comes true.
sub wait_until
{
	my ($what, $condition) = @_;

	not_hanging();
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $condition->();
		Time::HiRes::usleep(100_000);
	}
	die "this did not come true: $what";
}

# Wait until a condition on the rows of walsizer_status and walsizer_stats is true.  The
# server may be down.
sub wait_for
{
	my ($node, $condition) = @_;

	my $sql = "SELECT coalesce(($condition), false) FROM walsizer_status, walsizer_stats";

	eval { wait_until($condition, sub { (try_to_ask($node, $sql) // '') eq 't' }) }
	  or die $@ . JSON::PP->new->canonical->pretty->encode(status($node));
	return;
}

# Wait until the worker has looked at the server as it is now.  The first sample
# that is newer may have been under way already.
sub wait_for_sample
{
	my ($node) = @_;

	for (1 .. 2)
	{
		my $now = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
		wait_for($node, "sampled_at > '$now'");
	}
	return;
}

# Wait until the sessions in a database are gone; a client may end before its
# session does.
sub wait_for_nobody_in
{
	my ($node, $db, $asked_in) = @_;

	$node->poll_query_until($asked_in,
		"SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = '$db'")
	  or die "the sessions in $db do not end";
	return;
}

# Wait until the worker is there and has looked at the server.  One that was
# started live is started again, unless it is to come back by itself.
sub wait_for_worker
{
	my ($node, $not_this_pid) = @_;

	$node->safe_psql('postgres', 'SELECT walsizer_start()')
	  if is_live($node) && !$not_this_pid;
	my $other = $not_this_pid ? "AND pid <> $not_this_pid" : '';

	wait_for($node,
		"pid IS NOT NULL $other AND sampled_at >= "
		  . "(SELECT backend_start FROM pg_stat_activity a WHERE a.pid = walsizer_status.pid)");
	return;
}

# ---- files

sub log_offset
{
	my ($node) = @_;
	return -s $node->logfile // 0;
}

# Number of lines in the server's log that match, from an offset on.  A server
# that stops as soon as a client is gone may log that it ends the connection.
sub log_count
{
	my ($node, $regexp, $offset) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset // 0);
	my @lines = grep { !/FATAL:  terminating connection due to administrator command/ } split(/\n/, $log);

	return scalar(grep { /$regexp/ } @lines);
}

# The server is up again after a process was killed, with another worker.
sub wait_for_restart
{
	my ($node, $pid) = @_;

	wait_until('the server comes back', sub { return defined try_to_ask($node, 'SELECT 1') });
	wait_for_worker($node, $pid);
	return;
}

sub wait_for_log_line
{
	my ($node, $regexp, $offset) = @_;

	return wait_until("the server's log has $regexp",
		sub { return log_count($node, $regexp, $offset) > 0 });
}

# What the server itself says of checkpoints forced by WAL volume.
sub count_forced_in_log
{
	my ($node, $offset) = @_;
	return log_count($node, qr/checkpoint starting:.* wal\b/, $offset);
}

sub auto_conf
{
	my ($node) = @_;
	return PostgreSQL::Test::Utils::slurp_file(
		$node->data_dir . '/postgresql.auto.conf');
}

# Once the worker has seen in effect what its note tells it removes the note.
sub note_is_removed
{
	my ($node, $what) = @_;

	wait_until("the note is removed ($what)", sub { return auto_conf($node) !~ /walsizer\.last_written/ });
	unlike(auto_conf($node), qr/walsizer\.last_written/, "$what: no note is left");
	return;
}

# The text of a state file, with a valid last line, from the lines before it.
sub state_file
{
	my ($text) = @_;
	my $lines = () = $text =~ /\n/g;
	my $sum;
	{
		use integer;
		$sum = -3750763034362895579;
		foreach my $byte (unpack 'C*', $text)
		{
			$sum ^= $byte;
			$sum *= 1099511627776 + 435;
		}
	}
	return $text . sprintf("end %d %x\n", $lines, $sum);
}

# Have the state file of a server that is down remember these hourly peaks, in MB, and
# no others: of the last hour, of the one before, ...
sub remember_peaks
{
	my ($node, @peaks) = @_;
	my $file = $node->data_dir . '/pg_stat/walsizer.state';
	my $text = PostgreSQL::Test::Utils::slurp_file($file) =~ s/^(?:peak|end) .*\n//mgr;
	my $hour = int(time / 3600);
	my $lines = '';

	$lines = 'peak hour ' . --$hour . ' demand ' . $_ * MB . " timeout_ms 300000\n" . $lines
	  foreach @peaks;
	$text =~ s/^(state .*\n)/$1$lines/m;
	write_file($file, state_file($text));
	return;
}

# Replace a file, whatever it is now.  In one step: where it is missing for a moment,
# walsizer may write its own in between.
sub write_file
{
	my ($file, $text) = @_;

	open(my $handle, '>:raw', "$file.new") or die "could not write $file: $!";
	print $handle $text;
	close $handle             or die "could not write $file: $!";
	rename "$file.new", $file or die "could not write $file: $!";
	return;
}

# A library to preload into servers, made in a directory from t/NAME.c; its path.
sub build_preloaded
{
	my ($dir, $name, @flags) = @_;
	my $library = "$dir/$name.so";

	PostgreSQL::Test::Utils::system_or_bail('cc', '-shared', '-fPIC', '-D_GNU_SOURCE', @flags,
		'-o', $library, dirname(__FILE__) . "/$name.c", '-ldl');
	return $library;
}

# ---- volumes (see script/lib/enter)

# An empty volume of that many MB; returns its directory.
sub small_volume
{
	my ($number, $mb) = @_;
	my $dir = "$ENV{WALSIZER_SMALL_FS}/$number";

	PostgreSQL::Test::Utils::system_or_bail('find', $dir, '-mindepth', '1', '-delete');
	resize_volume($number, $mb);
	return $dir;
}

sub resize_volume
{
	my ($number, $mb) = @_;

	open(my $pipe, '+<', "$ENV{WALSIZER_SMALL_FS}/resize") or die "could not open the pipe: $!";
	syswrite($pipe, "$number ${mb}m\n") or die "could not write to the pipe: $!";
	close $pipe;
	wait_until(
		"volume $number has $mb MB",
		sub {
			my ($out) = PostgreSQL::Test::Utils::run_command(
				[ 'df', '--block-size=1M', '--output=size', "$ENV{WALSIZER_SMALL_FS}/$number" ]);
			return $out =~ /^\s*$mb\s*$/m;
		});
	return;
}

# Have a server that is down keep its pg_wal there.
sub move_wal
{
	my ($node, $dir) = @_;
	my $from = $node->data_dir . '/pg_wal';

	PostgreSQL::Test::Utils::system_or_bail('cp', '-a', $from, "$dir/pg_wal");
	PostgreSQL::Test::Utils::system_or_bail('rm', '-r', $from);
	symlink "$dir/pg_wal", $from or die "could not link pg_wal: $!";
	return;
}

# Something else takes that many MB of a volume.
sub write_ballast
{
	my ($dir, $mb) = @_;

	PostgreSQL::Test::Utils::system_or_bail('fallocate', '--length', "${mb}MiB",
		"$dir/ballast");
	return;
}

1;
