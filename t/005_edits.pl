
# An administrator sets max_wal_size, in ways that the server itself would
# let go without effect: an edit underneath walsizer's value, a pending edit, an
# edit while the server is down, the library taken away.  Nobody fights.
#
# 004_owner.pl has the plain cases: ALTER SYSTEM, RESET, revert, enable = off.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

# Cycles of an hour: nothing happens but what is asked for.
my $conf   = "walsizer.predict = off\ncheckpoint_timeout = 1h\n";
my $node   = make_node('node', conf => $conf);
my $reload = qr/received SIGHUP, reloading configuration files/;
my $left_alone = 'none: an administrator changed or restored the setting less than checkpoint_timeout or five minutes ago, whichever is shorter';
my ($raised, $event, $offset, $id, $stdout, $stderr);

# Have walsizer raise, from what is in effect, beginning with a restart: what
# was left alone before is no longer then.  Returns the new value in MB.
sub raise
{
	my ($what) = @_;
	my $old;

	$node->restart;
	wait_for_worker($node);
	$old = setting_mb($node);
	force_checkpoints($node, 3 * trigger_point_mb($old, 1, 0.9));
	# none is under way whose record would be demand of later
	$node->safe_psql('postgres', 'CHECKPOINT');
	like(adjust($node), qr/^raise .*: applied$/, "$what: walsizer raises");
	my $new = setting_mb($node);
	cmp_ok($new, '>', $old, "$what: the raise exceeds $old MB");
	wait_for($node, "set_by_walsizer = $new * 1048576");
	$id = last_event($node)->{id};
	$offset = log_offset($node);
	return $new;
}

# An edit of a file has taken effect, walsizer's line is gone, and that is all.
sub is_edited
{
	my ($what, $old, $new) = @_;

	wait_for($node, "max_wal_size = $new * 1048576 AND set_by_walsizer IS NULL");
	$event = last_event($node);
	is($event->{action}, 'external', "$what: walsizer notices the edit");
	is($event->{reason}, 'edited', "$what: the reason is an edit");
	is($event->{outcome}, 'applied', "$what: walsizer removes its value");
	is($event->{id}, $id + 1, "$what: walsizer needs one step");
	is($event->{old_mb}, $old, "$what: the event has the old value");
	is($event->{new_mb}, $new, "$what: the event has the new value");
	is(setting_mb($node), $new, "$what: the edit is in effect");
	is(status($node)->{original_size}, $new * MB, "$what: the original value is the administrator's");
	unlike(auto_conf($node), qr/max_wal_size/, "$what: no line in postgresql.auto.conf hides the edit");
	return;
}

sub is_left_alone
{
	my ($what) = @_;
	my $value = setting_mb($node);
	my $reloads = log_count($node, $reload, $offset);

	force_checkpoints($node, 2 * trigger_point_mb($value, 1, 0.9));
	is(adjust($node), $left_alone, "$what: walsizer does not raise under load") for 1 .. 2;
	is(setting_mb($node), $value, "$what: the administrator's value stays");
	is(log_count($node, $reload, $offset), $reloads, "$what: walsizer does not reload again");
	return;
}

# ---- postgresql.conf edited underneath, up, down, and away

$raised = raise('edited up');
$node->append_conf('postgresql.conf', 'max_wal_size = 50MB');
$node->reload;
is_edited('edited up', $raised, 50);
is_left_alone('edited up');
is(log_count($node, $reload, $offset), 2, 'edited up: the server reloads twice in all');
is(log_count($node, qr/LOG:  walsizer changed "max_wal_size" from $raised MB to 50 MB/, $offset),
	1, 'edited up: the change is logged once');

$node->append_conf('postgresql.conf', 'max_wal_size = 4MB');
$node->reload;
wait_for($node, 'max_wal_size = 4 * 1048576');
$raised = raise('edited down');
$node->append_conf('postgresql.conf', 'max_wal_size = 3MB');
$node->reload;
is_edited('edited down', $raised, 3);
is_left_alone('edited down');

# To the value that is in effect.
$raised = raise('edited to the same');
$node->append_conf('postgresql.conf', "max_wal_size = ${raised}MB");
$node->reload;
is_edited('edited to the same', $raised, $raised);
is(log_count($node, qr/LOG:  an administrator took over "max_wal_size" of $raised MB/, $offset), 1,
	'edited to the same: the log says that an administrator took over the value');
$node->append_conf('postgresql.conf', 'max_wal_size = 3MB');
$node->reload;
wait_for($node, 'max_wal_size = 3 * 1048576');

# In a file that is included.
$raised = raise('included');
mkdir $node->data_dir . '/conf.d' or die $!;
write_file($node->data_dir . '/conf.d/size.conf', "max_wal_size = 6MB\n");
$node->append_conf('postgresql.conf', "include_dir 'conf.d'");
$node->reload;
is_edited('included', $raised, 6);

# An edit of anything else is none of walsizer's.
$raised = raise('other edits');
$node->append_conf('postgresql.conf', "work_mem = 5MB\nmax_wal_size = 6MB");
$node->reload;
adjust($node) for 1 .. 2;
is(setting_mb($node), $raised, 'other edits: the raise stays');
is(last_event($node)->{id}, $id, 'other edits: nothing is recorded');

# While the server is down.
$node->stop;
write_file($node->data_dir . '/conf.d/size.conf', "");
$node->append_conf('postgresql.conf', 'max_wal_size = 7MB');
$node->start;
wait_for_worker($node);
is_edited('while the server was down', $raised, 7);

# The same without walsizer's memory, as in a copy without it: the note tells what
# the files said.
$raised = raise('without memory');
$node->stop;
unlink $node->data_dir . '/pg_stat/walsizer.state' or die $!;
$id = 0;
$node->append_conf('postgresql.conf', 'max_wal_size = 8MB');
$node->start;
wait_for_worker($node);
is_edited('without memory', $raised, 8);
$node->append_conf('postgresql.conf', 'max_wal_size = 7MB');
$node->reload;
wait_for($node, 'max_wal_size = 7 * 1048576');

# An edit that makes no sense, or a file with errors, changes nothing.
$raised = raise('nonsense');
$node->append_conf('postgresql.conf', 'max_connections = = 3');
$node->reload;
wait_for_log_line($node, qr/syntax error in file/, $offset);
adjust($node) for 1 .. 2;
is(setting_mb($node), $raised, 'a file with errors: the raise stays');
is(last_event($node)->{id}, $id, 'a file with errors: nothing is recorded');
$node->adjust_conf('postgresql.conf', 'max_connections', '20');

# Neither does an edit that the server refuses to reload with the rest, nor a value
# with which it would not start: walsizer's line continues to hide it.
foreach my $bad ("max_wal_size = 50MB\nno_such_setting = 1", "max_wal_size = '8 GiB'", 'max_wal_size = 1MB')
{
	my $conf = slurp_file($node->data_dir . '/postgresql.conf');
	my $what = $bad =~ s/\n.*//sr;

	$node->append_conf('postgresql.conf', $bad);
	$offset = log_offset($node);
	$node->reload;
	wait_for_log_line($node, $reload, $offset);
	adjust($node) for 1 .. 2;
	is(setting_mb($node), $raised, "$what: the raise stays");
	like(auto_conf($node), qr/^max_wal_size = '${raised}MB'$/m, "$what: walsizer's line stays");
	if ($bad !~ /no_such_setting/)
	{
		$node->restart;
		wait_for_worker($node);
		adjust($node) for 1 .. 2;
		is(setting_mb($node), $raised, "$what: the server starts with the raise");
	}
	write_file($node->data_dir . '/postgresql.conf', $conf);
}

# Nor does walsizer_revert() uncover such a value.
my $saved = slurp_file($node->data_dir . '/postgresql.conf');
$node->append_conf('postgresql.conf', 'max_wal_size = 1MB');
$node->restart;
wait_for_worker($node);
my $original = status($node)->{original_size} / MB;
like(revert($node), qr/^revert to $original MB: applied/,
	'revert, nonsense underneath: the original value is restored');
like(auto_conf($node), qr/^max_wal_size = '${original}MB'$/m,
	'revert, nonsense underneath: a line with the original value hides the edit');
note_is_removed($node, 'revert, nonsense underneath');
$node->restart;
wait_for_worker($node);
is(setting_mb($node), $original, 'revert, nonsense underneath: the server starts with the original value');
write_file($node->data_dir . '/postgresql.conf', $saved);
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->reload;

# ---- edited, but walsizer's value cannot make way

$raised = raise('forbidden');
$node->append_conf('postgresql.conf', 'max_wal_size = 45MB');
chmod 0400, $node->data_dir . '/postgresql.auto.conf' or die $!;
$node->reload;
wait_for($node, "(SELECT outcome FROM walsizer_history ORDER BY id DESC LIMIT 1) = 'forbidden'");
is(status($node)->{outcome}, 'forbidden', 'forbidden: the status shows the outcome');
like(act($node, "walsizer_boost('200MB', '1 hour')"), qr/^revert to 45 MB: forbidden: ".*" is not writable$/,
	'forbidden: walsizer_boost() says what walsizer cannot do');
adjust($node) for 1 .. 2;
is(status($node)->{boost_size}, 200 * MB, 'forbidden: the planned load is remembered');
is( $node->safe_psql('postgres',
		"SELECT instruction FROM walsizer_instructions WHERE place = 'postgresql.auto.conf'"),
	"max_wal_size = '200MB'", 'forbidden: the instructions take the planned load into account');
like(act($node, 'walsizer_boost_end()'), qr/^revert to 45 MB: forbidden: ".*" is not writable$/,
	'forbidden: walsizer_boost_end() says what walsizer cannot do');
is(setting_mb($node), $raised, 'forbidden: max_wal_size stays');
$id = last_event($node)->{id};
chmod 0600, $node->data_dir . '/postgresql.auto.conf' or die $!;
adjust($node);
is_edited('forbidden', $raised, 45);
write_file($node->data_dir . '/postgresql.conf', $saved);
$node->reload;

# ---- edited, but not reloaded: walsizer's own reload makes it count

$node->restart;
wait_for_worker($node);
revert($node);
$node->restart;
wait_for_worker($node);
is(setting_mb($node), 7, 'pending: the value before the edit is in effect');
$node->append_conf('postgresql.conf', "max_wal_size = 40MB\nwork_mem = 6MB");
force_checkpoints($node, 12);
$id = last_event($node)->{id} + 1;
$offset = log_offset($node);
like(adjust($node), qr/^raise .*: applied$/, 'pending: walsizer raises');
$raised = (history($node))[$id - 1]{new_mb};
is_edited('pending', $raised, 40);
is($node->safe_psql('postgres', 'SHOW work_mem'), '6MB',
	'pending: the reload also applies the other setting of the edit');
is_left_alone('pending');

# ---- edited, but not reloaded, and walsizer reloads nothing: it does not count yet

$raised = raise('not reloaded');
set_conf($node, 'walsizer.dry_run = on');
wait_for_sample($node);		# nor does what a late reload would take with it
$node->append_conf('postgresql.conf', 'max_wal_size = 41MB');
force_checkpoints($node, 2 * trigger_point_mb($raised, 1, 0.9));
like(adjust($node), qr/^raise .*: dry run\b/, 'not reloaded: walsizer says what it would do in a dry run');
like(adjust($node), qr/^raise .*: dry run$/, 'not reloaded: another dry run says the same');
is(setting_mb($node), $raised, 'not reloaded: max_wal_size stays in a dry run');
$id = last_event($node)->{id};
my $pid = pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
wait_for($node, "pid <> $pid AND (SELECT max(id) FROM walsizer_history) > $id");
adjust($node) for 1 .. 2;
is(setting_mb($node), $raised, 'not reloaded: max_wal_size stays when a new worker starts');
is(last_event($node)->{outcome}, 'dry run', 'not reloaded: a new worker says what it would do in a dry run');
$node->reload;
wait_for_sample($node);
$id++;
set_conf($node, 'walsizer.dry_run = off');
adjust($node);
is_edited('not reloaded', $raised, 41);

# ---- edited, and reverted in the same moment: that is one change, which succeeds

$raised = raise('edited and reverted');
$node->append_conf('postgresql.conf', 'max_wal_size = 8MB');
# The worker meets both at once, whichever is there first: it is stopped.
$pid = stop_worker($node);
my $session = start_asking($node, 'SELECT pg_reload_conf(), walsizer_revert()', \$stdout, \$stderr);
$node->poll_query_until('postgres', <<'END') or die 'walsizer_revert() does not wait';
SELECT count(*) = 1 FROM pg_stat_activity
WHERE query LIKE '%walsizer_revert%' AND pid <> pg_backend_pid()
  AND wait_event_type = 'Extension'
END
wait_for_log_line($node, $reload, $offset);
kill 'CONT', $pid or die $!;
$session->finish;
chomp $stdout;
like($stdout, qr/^t\|\(\w+,\d+,8388608,,applied,/, 'edited and reverted: the edit is in effect');
unlike($stdout . $stderr, qr/was not set by walsizer|ERROR/,
	'edited and reverted: the session gets no error');
is(last_event($node)->{id}, $id + 1, 'edited and reverted: the history has one event');
is(last_event($node)->{outcome}, 'applied', 'edited and reverted: the change is applied');

# ---- with a value of ALTER SYSTEM in between, an edit has no effect anyway

$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '5MB'");
$node->reload;
wait_for($node, 'max_wal_size = 5 * 1048576');
$raised = raise('ALTER SYSTEM');
$node->append_conf('postgresql.conf', 'max_wal_size = 41MB');
$node->reload;
adjust($node) for 1 .. 2;
is(setting_mb($node), $raised, 'ALTER SYSTEM: an edit of postgresql.conf does not change the raise');
like(revert($node), qr/^revert to 5 MB: applied/, 'ALTER SYSTEM: walsizer_revert() restores its value');
like(auto_conf($node), qr/^max_wal_size = '5MB'$/m,
	'ALTER SYSTEM: the restored value is in postgresql.auto.conf again');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->reload;
wait_for($node, 'max_wal_size = 41 * 1048576');
is(last_event($node)->{action}, 'external',
	'ALTER SYSTEM: the edit takes effect when an administrator resets the value');

# ---- while walsizer is switched off

$node->append_conf('postgresql.conf', 'max_wal_size = 4MB');
$node->reload;
wait_for($node, 'max_wal_size = 4 * 1048576');
$raised = raise('switched off');
set_conf($node, 'walsizer.enable = off');
$id = last_event($node)->{id};
my $untouched = auto_conf($node);
$node->append_conf('postgresql.conf', 'max_wal_size = 9MB');
$node->reload;
wait_for($node, "reason = 'edit_hidden'");
adjust($node) for 1 .. 2;
is(setting_mb($node), $raised, 'switched off: the raise stays');
is(auto_conf($node), $untouched, 'switched off: postgresql.auto.conf stays');
is(last_event($node)->{id}, $id, 'switched off: nothing is recorded');
set_conf($node, 'walsizer.dry_run = on');
set_conf($node, 'walsizer.enable = on');
wait_for($node, "(SELECT max(id) FROM walsizer_history) > $id");
$event = last_event($node);
is($event->{reason}, 'edited', 'dry run: walsizer notices the edit');
is($event->{outcome}, 'dry run', 'dry run: walsizer says that it would remove its value');
is($event->{new_mb}, 9, 'dry run: the event has the edited value');
is(setting_mb($node), $raised, 'dry run: the raise stays');
is(auto_conf($node), $untouched, 'dry run: postgresql.auto.conf stays');
$id = $event->{id};
is($node->safe_psql('postgres', q(SELECT string_agg(place, ' ') FROM walsizer_instructions)),
	'SQL', 'dry run: the instructions name no place that has no effect');
set_conf($node, 'walsizer.dry_run = off');
is_edited('switched on', $raised, 9);
set_conf($node, 'walsizer.enable = off');
# the log does not say that walsizer leaves it alone only for a time
$offset = log_offset($node);
$node->append_conf('postgresql.conf', 'max_wal_size = 4MB');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '5MB'");
$node->reload;
wait_for($node, 'original_size = 5 * 1048576');
is(last_event($node)->{action}, 'external', 'switched off: walsizer notices changes');
wait_for_log_line($node, qr/DETAIL:  walsizer takes this as the original value\.$/, $offset);
# the directory as the server names it: the test's own path of it may be relative
my $included = $node->safe_psql('postgres', 'SHOW data_directory') . '/included.conf';
write_file($included, "max_wal_size = 6MB\n");
$node->append_conf('postgresql.conf', "include 'included.conf'");
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->reload;
wait_for($node, 'original_size = 6 * 1048576');
is($node->safe_psql('postgres', q(SELECT string_agg(place, ' ' ORDER BY place COLLATE "C") FROM walsizer_instructions)),
	"$included SQL", 'included: the instructions name the file that counts');
write_file($included, '');
$node->safe_psql('postgres', "ALTER SYSTEM SET max_wal_size = '5MB'");
$node->reload;
wait_for($node, 'original_size = 5 * 1048576');
force_checkpoints($node, 6);
is(adjust($node), 'none: walsizer.enable is off', 'switched off: walsizer does not raise');
is(setting_mb($node), 5, "switched off: the administrator's value stays");
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
set_conf($node, 'walsizer.enable = on');
wait_for($node, 'original_size = 4 * 1048576');

# ---- the library is taken away, its line left behind

$raised = raise('library gone');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->start;
is(setting_mb($node), $raised, 'library gone: the value that walsizer set stays');
$node->psql('postgres', 'SELECT state FROM walsizer_status', stdout => \$stdout, stderr => \$stderr);
like("$stdout$stderr", qr/^not running$|walsizer must be loaded via "shared_preload_libraries"/,
	'library gone: walsizer_status says so, or fails with an error that does');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET max_wal_size');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET walsizer.last_written');
unlike(auto_conf($node), qr/^(max_wal_size|walsizer)/m, 'library gone: ALTER SYSTEM RESET removes the lines');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('max_wal_size') = '4MB'")
  or die 'max_wal_size stays';
pass('library gone: ALTER SYSTEM RESET restores the original value');
$node->safe_psql('postgres', 'DROP EXTENSION walsizer');

# And back again: what it remembers is not what is there now.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'walsizer'");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
wait_for_worker($node);
$event = last_event($node);
is($event->{action}, 'external', 'library back: walsizer notices the change');
is($event->{old_mb}, $raised, 'library back: the event has the value that walsizer had set');
is($event->{new_mb}, 4, "library back: the event has the administrator's value");
is(setting_mb($node), 4, "library back: the administrator's value stays");

# The server was never told more than it had to be, and no step went wrong.
is(join(' ', grep { !/^(?:applied|none|dry run)$/ } map { $_->{outcome} } history($node)),
	join(' ', ('forbidden') x (1 + 4)), 'all changes are applied but for the five that the file forbids');
is(log_count($node, qr/(ERROR|FATAL|PANIC):  (?!walsizer must be|terminating)/, 0), 0,
	'the log has no error');
$node->stop;

done_testing();
