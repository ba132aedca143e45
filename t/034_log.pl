
# walsizer-watch --log: what the log of a server tells, without the server.
#
# test/logs has logs that people posted: their numbers are kept, everything
# personal is replaced.

use strict;
use warnings;
use Encode qw(decode);
use FindBin;
use lib $FindBin::RealBin;

use File::Spec ();
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

delete $ENV{PGAPPNAME};
my $top  = "$FindBin::RealBin/..";
my $dir  = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $logs = "$top/test/logs";

# Run it on a log: exit status, standard output, standard error.
sub watch_log
{
	my (@args) = @_;
	my ($out, $err);
	my $in = ref $args[0] ? ${ shift @args } : '';

	IPC::Run::run([ 'walsizer-watch', '--log', @args ], '<', \$in, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return ($? >> 8, $out, $err);
}

# The same as JSON, of a text.
sub judge
{
	my ($text, @args) = @_;
	my ($status, $out, $err) = watch_log(\$text, '--json', @args, '-');

	return $out eq '' ? { status => $status, error => $err } : { status => $status, %{ decoded($out) } };
}

sub decoded { return JSON::PP->new->decode($_[0]); }

# ---- posted logs

# name, exit status, forced, timed, max_wal_size, checkpoint_timeout, demand from and to in MB, sizes
foreach my $case (
	[ '01-course-pg16-1GB-30s', 1, 8, 13, 1024, 30,  690, 710, 2000, 2100 ],
	[ '02-container-pg16-storm', 1, 4, 0, 1024, 300, 1779, 2200, 3500, 5200 ],
	[ '03-idle-pg16-lsn',       0, 0, 3,  1024, 300, 0.7, 1,   64,   64 ],
	[ '04-idle-pg15-k8s',       0, 0, 7,  1024, 300, 0.02, 0.1, 32,  64 ],
	[ '05-restart-30min',       0, 0, 1,  1248, 1800, 630, 633, 1500, 1510 ],
	[ '06-bulkload-pg13',       1, 3, 0,  1024, 300, 1056, 1600, 2000, 3700 ],
	[ '08-syslog-96',           2, 0, 1,  1024, 600, 170, 172, 400,  440 ],
	[ '09-compose-idle',        0, 0, 2,  1024, 300, 0.01, 0.1, 32,  64 ],
	[ '10-cri-managed',         2, 1, 0,  1024, 300, 1.5, 2,   64,   64 ],
	[ '11-operator-json',       2, 0, 0,  1024, 300, 0.01, 0.1, 32,  64 ],
	[ '12-compose-light',       0, 0, 2,  1024, 300, 0.3, 0.5, 32,   64 ])
{
	my ($name, $status, $forced, $timed, $mb, $timeout, $least, $most, $from, $to) = @$case;
	my ($code, $out) = watch_log('--json', "$logs/$name.log");
	my $said = decoded($out);

	is("$code $said->{checkpoints_forced} $said->{checkpoints_timed} " . $said->{max_wal_size} / MB
		  . " $said->{checkpoint_timeout}", "$status $forced $timed $mb $timeout",
		"$name: status, forced, timed, max_wal_size and checkpoint_timeout are right");
	cmp_ok($said->{demand} / MB, '>=', $least, "$name: the demand is at least $least MB");
	cmp_ok($said->{demand} / MB, '<=', $most,  "$name: the demand is at most $most MB");
	cmp_ok($said->{wanted_size} / MB, '>=', $from, "$name: the wanted size is at least $from MB");
	cmp_ok($said->{wanted_size} / MB, '<=', $to,   "$name: the wanted size is at most $to MB");
	cmp_ok($said->{demand_at_least}, '<=', $said->{demand}, "$name: the range of the demand begins below it");
	cmp_ok($said->{demand_at_most} // 'inf', '>=', $said->{demand},
		"$name: the range of the demand ends above it");
}

my ($status, $out, $err) = watch_log('--json', glob "$logs/02*");
is(decoded($out)->{demand_at_most}, undef, 'a storm shorter than checkpoint_timeout has no upper bound');
is_deeply(decoded($out)->{assumed}, [ 'checkpoint_timeout', 'checkpoint_completion_target' ],
	'a storm shorter than checkpoint_timeout: the client says what it assumes');
($status, $out) = watch_log(glob "$logs/02*");
like($out, qr/^Demand        at least 1780 MB of WAL within checkpoint_timeout, which needs a\n\s+max_wal_size of at least 3440 MB$/m,
	'the page: it has only a lower bound');
like($out, qr/^max_wal_size of 1024 MB is too small: at least 4848 MB are needed\./,
	'the page: the verdict has the lower bound');
like($out, qr/^Assumed       --checkpoint-timeout/m, 'the page: it says what is assumed');
($status, $out) = watch_log(glob "$logs/07*");
is($status, 2, 'warnings alone are not enough for a verdict');
like($out, qr/^max_wal_size was too small: WAL volume forced checkpoints \(7\).*,\s+with\s+--max-wal-size\.$/ms,
	'the client says that warnings need --max-wal-size');
($status, $out) = watch_log('--json', '--max-wal-size', '1GB', glob "$logs/07*");
is($status, 1, 'warnings are enough for a verdict with --max-wal-size');
is(decoded($out)->{checkpoints_forced}, 7, 'each warning counts as a forced checkpoint');
cmp_ok(decoded($out)->{demand_at_most}, '>', 1.2 * decoded($out)->{demand_at_least},
	'warnings lead to a wide range of demand');
cmp_ok(decoded($out)->{wanted_size}, '>', decoded($out)->{needed_size_at_least},
	'warnings lead to a size within the range');

# ---- warnings beside complete checkpoints

# A complete checkpoint of so many MB that took so many seconds, with its redo pointer, in MB, if given.
sub complete
{
	my ($mb, $took, $redo) = @_;
	my $text = sprintf 'checkpoint complete: wrote %d buffers (5.5%%); 0 WAL file(s) added, 0 removed, %d recycled; '
	  . 'write=%.3f s, sync=0.100 s, total=%.3f s; sync files=9, longest=0.010 s, average=0.002 s; distance=%d kB, estimate=%d kB',
	  50 * $mb, $mb / 16, $took - 0.5, $took, 1024 * $mb, 1024 * $mb;

	$text .= sprintf '; lsn=0/%X, redo lsn=0/%X', ($redo + $took) * MB, $redo * MB if defined $redo;
	return $text;
}

# Seconds as a time of day.
sub at { return sprintf '%02d:%02d:%02d', $_[0] / 3600, $_[0] / 60 % 60, $_[0] % 60; }

# Messages, each with its time of day.
sub lines
{
	return join '', map { "2025-02-03 $_->[0].000 UTC [77] LOG:  $_->[1]\n" } @_;
}

my $frequent = 'checkpoints are occurring too frequently (21 seconds apart)';
my @quiet = map { ([ "09:0$_:00", 'checkpoint starting: time' ], [ "09:0$_:20", complete(20, 20) ]) } 2, 7;
my $warned = lines([ '02:10:21', $frequent ], [ '02:10:42', $frequent ], @quiet);
is(judge(lines(@quiet))->{status}, 0, 'two quiet checkpoints: the size suffices');
is(judge($warned)->{status}, 2, 'a log that had only warnings at first: it cannot be told');
my $then_raised = lines([ '02:10:21', $frequent ], [ '02:11:00', 'parameter "max_wal_size" changed to "4GB"' ], @quiet);
is(judge($then_raised)->{status}, 0,
	'a log that had only warnings before a raise: the size suffices now');
like((watch_log(\$then_raised, '-'))[1],
	qr/^Before        forced checkpoints that are not in the log: 1\. max_wal_size was\s+too small$/m,
	'a log that had only warnings before a raise: the page says that the size before was too small');
like((watch_log(\$warned, '-'))[1], qr/^max_wal_size was too small: WAL volume forced checkpoints \(2\).* or only\s+the\s+warnings,\s+with\s+--max-wal-size\./s,
	'a log that had only warnings at first: the page says that the size was too small');

# grep "too frequently\|complete" has no starts
my $grep = lines([ '09:00:00', complete(528, 20) ],
	map { ([ "09:00:${_}1", $frequent ], [ "09:00:${_}9", complete(528, 8) ]) } 0 .. 5);
is(join(' ', map { judge($grep)->{$_} } qw(checkpoints_forced checkpoints_other warnings)), '7 0 0',
	'a warning tells that WAL forced a checkpoint, where the log has no start of it');

# grep "too frequently\|starting", or terminals that cut off what is longer
my @cut = map { ([ "09:0$_:21", $frequent ], [ "09:0$_:21", 'checkpoint starting: wal' ]) } 0 .. 4;
is(judge(lines(@cut), '--max-wal-size', '1GB')->{checkpoints_forced}, 5, 'a warning and its start are one checkpoint');

# grep starting
my @starts = map { [ "09:$_:00", 'checkpoint starting: time' ] } 10 .. 20;
like((watch_log(\lines(@starts), '-'))[1], qr/^Too little: whole lines "checkpoint complete" in the log: 0\..* WAL\s+volume forced none/s,
	'the page: starts alone tell that none was forced');
like((watch_log(\lines(@starts, map { [ "09:$_:00", 'checkpoint starting: wal' ] } 30, 31), '-'))[1], qr/^max_wal_size was too small: WAL volume forced checkpoints \(2\).*"checkpoint\s+complete"\s+of\s+each,\s+logged\s+when\s+it\s+ends\.$/ms,
	'the page: starts alone tell that some were forced');

# The last one is being written.
my $unended = lines(@quiet, [ '09:11:00', 'checkpoint starting: wal' ]);
is(judge($unended, '--max-wal-size', '1GB')->{verdict}, 'unknown', 'a forced checkpoint that is not complete: it is not said that the size suffices');
like((watch_log(\$unended, '-'))[1], qr/^max_wal_size was too small: WAL volume forced checkpoints \(1\).*\s+logged\s+when\s+it\s+ends\.$/ms,
	'the page: a forced checkpoint that is not complete tells that the size was too small');

# Of warnings alone, a longer log of the same load tells the same.
my @alone = map { my $from = $_; map { [ at(3600 + 65 * $from + $_), $frequent ] } 21, 43 } 0 .. 299;
is(judge(lines(@alone), '--max-wal-size', '1GB')->{demand_at_most},
	judge(lines(@alone[ 0 .. 59 ]), '--max-wal-size', '1GB')->{demand_at_most},
	'warnings alone: what is not known of earlier gaps does not add up');

# A checkpoint each second, and each warned of.
my $hurried = judge(lines(map { my $at = at(3600 + $_); ([ $at, $frequent ], [ $at, 'checkpoint starting: wal' ], [ $at, complete(32, 0.9) ]) } 0 .. 900));
is("$hurried->{checkpoint_timeout} " . int($hurried->{demand} / MB / 320), '300 30', 'a storm within the resolution of a log keeps its times');

# ---- sizes

my $text;
my @large = map { ([ "10:$_:00", 'checkpoint starting: time' ], [ '10:' . ($_ + 13) . ':29', complete(12000, 809) ]) } 10, 25, 40;
like((watch_log(\(my $timed = lines(@large)), '--max-wal-size', '32GB', '-'))[1], qr/^"max_wal_size" of 32768 MB is large enough/,
	'a size beyond what walsizer.max would be is judged like any other');
like((watch_log(\(my $forced = lines(@large) =~ s/: time/: wal/gr), '--max-wal-size', '4GB', '-'))[1],
	qr/^"max_wal_size" of 4096 MB is too small: (2\d{4}) MB are needed\. Set it to \g1 MB\.$/m,
	'the size to set is the one that is needed, also beyond that');
is(judge(lines([ '09:00:00', 'parameter "max_wal_size" changed to "8 GB"' ], @quiet))->{max_wal_size}, 8192 * MB,
	'a value may have a space before its unit');
is(judge(lines([ '09:00:00', "param\xc3\xa8tre \xc2\xab max_wal_size \xc2\xbb modifi\xc3\xa9 par \xc2\xab 8GB \xc2\xbb" ], @quiet))->{max_wal_size}, 8192 * MB,
	'a value may have a space before its quotation mark');
foreach ([ max_wal_size => '8GB', 1024 * MB ], [ checkpoint_timeout => '15min', 300 ], [ checkpoint_completion_target => '0.5', 0.9 ])
{
	my ($name, $value, $default) = @$_;
	my $reset = judge(lines([ '08:00:00', "parameter \"$name\" changed to \"$value\"" ], [ '08:30:00', "parameter \"$name\" removed from configuration file, reset to default" ], @quiet));

	is("$reset->{$name} " . grep({ $_ eq $name } @{ $reset->{assumed} }), "$default 0", "$name that was removed from the configuration file has its default");
}
is(judge(lines(@quiet) =~ s/\[77\]/[77]: user: , db: , host: /gr)->{checkpoints_timed}, 2,
	'a prefix may have fields that are empty');

# max_wal_size changes, and the log does not say so.
my @small = map { ([ "08:$_:00", 'checkpoint starting: wal' ], [ "08:$_:45", complete(528, 45) ]) } 10 .. 14;
my @raised = map { ([ "09:$_:00", 'checkpoint starting: wal' ], [ '09:' . ($_ + 1) . ':30', complete(2144, 90) ]) } 12, 14, 16;
is(judge(lines(@small, @raised))->{max_wal_size}, 4096 * MB,
	'the trigger point of the last forced checkpoints tells max_wal_size');
my $unseen = judge(lines(@small, map { ([ "09:$_:00", 'checkpoint starting: time' ], [ '09:' . ($_ + 4) . ':29', complete(1600, 269) ]) } 10, 15, 20));
cmp_ok($unseen->{max_wal_size}, '>', 3000 * MB, 'a timed checkpoint past the trigger point tells that max_wal_size was raised');
is("$unseen->{verdict} @{ $unseen->{assumed} }", 'unknown max_wal_size', 'a size that was raised without a word is assumed, and not judged');

# It was raised, or reset, just now.
my @now = ([ '08:14:50', 'parameter "max_wal_size" changed to "8GB"' ]);
my $now_raised = judge(lines(@small, @now), '--checkpoint-timeout', '3min');
is("$now_raised->{verdict} " . $now_raised->{max_wal_size} / MB . " $now_raised->{source}", 'sufficient 8192 changed at the end',
	'a size that the last line sets is compared with the demand before');
like((watch_log(\lines(@small, @now, [ '08:15:00', 'checkpoint starting: wal' ], [ '08:15:45', complete(528, 45) ]), '-'))[1],
	qr/^Too little since the settings were changed\. The load before needs up to \d+ MB\.$/m,
	'the page: a checkpoint that was due is not taken for one of the new size');
$now[0][1] = 'Parameter »max_wal_size« wurde aus Konfigurationsdatei entfernt, auf Standardwert zurückgesetzt';
is(judge(lines(@small, @now), '--checkpoint-timeout', '3min', '--completion-target', '0.5')->{source}, 'changed at the end', 'a setting that is reset has its default');

# So was checkpoint_timeout: the load before needs more now.
my @timed = map { ([ "08:$_:00", 'checkpoint starting: time' ], [ '08:' . ($_ + 4) . ':30', complete(600, 270) ]) } 10, 15, 20, 25, 30, 35;
my @longer = ([ '08:39:50', 'parameter "checkpoint_timeout" changed to "20min"' ]);
my $now_longer = judge(lines(@timed, @longer), '--max-wal-size', '2GB');
is(join(' ', map { $now_longer->{$_} } qw(verdict checkpoint_timeout)) . ' ' . $now_longer->{demand} / MB . " @{ $now_longer->{assumed} }",
	'too small 1200 2400 ', 'a checkpoint_timeout that the last line sets is that of the demand before');
my @quieter = map { ([ "09:$_:00", 'checkpoint starting: time' ], [ '09:' . ($_ + 18) . ':00', complete(300, 1080) ]) } '00', 20, 40;
like((watch_log(\lines(@timed, @longer, @quieter), '--max-wal-size', '2GB', '-'))[1],
	qr/ is large enough: .*\. The load before\s+the settings were changed needs up to 45\d\d MB: set as much/s,
	'the page: what the load before a longer checkpoint_timeout needs with that');
like((watch_log(\lines(@timed, @longer, [ '08:40:00', 'checkpoint starting: time' ], [ '08:44:30', complete(600, 270) ]), '-'))[1],
	qr/^Too little since the settings were changed\. The load before needs up to 45\d\d\s+MB\.\n.* max_wal_size = \d+\s+MB\s+\(assumed\)\s+suffices/s,
	'the page: a size before that is assumed is said to be');

# A restart has changed it, for WAL forced a checkpoint later than it would have: not one that came after an idle time.
my @apart = map { ([ "09:$_:00", 'checkpoint starting: wal' ], [ '09:' . ($_ + 1) . ':30', complete(2144, 90) ]) } '00', 17, 34, 51;
is(join(' ', @{ judge(lines(@timed, @apart), '--completion-target', '0.9')->{assumed} }), 'checkpoint_timeout',
	'forced checkpoints that are further apart than checkpoint_timeout: it is assumed');
is(join(' ', @{ judge(lines(@timed, $apart[0], $apart[1], [ '09:05:00', 'checkpoint starting: time' ], [ '09:05:01', complete(1, 1) ],
	@apart[ 2, 3 ]), '--completion-target', '0.9')->{assumed} }), '', 'one after an idle time does not contradict it');

# Two timed ones, each past the trigger point if checkpoint_completion_target were 0.9.
is(judge(lines(map { ([ "10:$_:00", 'checkpoint starting: time' ], [ '10:' . ($_ + 2) . ':15', complete(600, 135) ]) } 10, 15), '--max-wal-size', '1GB')->{verdict},
	'unknown', 'a checkpoint_completion_target that is assumed does not make a size too small');
# A CHECKPOINT each minute: how much a timeout has of this WAL depends on the timeout.
my @asked = map { ([ "10:$_:00", 'checkpoint starting: immediate force wait' ], [ "10:$_:05", complete(300, 5) ]) } 10 .. 20;
my @sized = ('--max-wal-size', '1GB', '--completion-target', '0.9');
is(judge(lines(@asked), @sized)->{verdict}, 'unknown', 'a checkpoint_timeout that is assumed does not make a size too small');
is(judge(lines(@asked), @sized, '--checkpoint-timeout', '5min')->{verdict}, 'too small', 'one that is given does');

# With whole seconds, and without starts, it does not show at once which of them waited.
my @storm = map { [ "08:0$_:00", complete($_ == 1 ? 528 : 700, 59.4) ] } 1 .. 6;
is(judge(lines(map { [ $_->[0], $_->[1] =~ s/complete:/complete: wal:/r ] } @storm))->{max_wal_size}, 1024 * MB,
	'checkpoints that waited for the one before do not tell max_wal_size');
my @waited = map { ([ "08:$_:00", 'checkpoint starting: wal' ], [ "08:$_:59", complete($_ < 15 ? 528 : 700, 59.7) ]) } 10 .. 20;
is(judge(lines(@waited))->{max_wal_size}, 1024 * MB,
	'a checkpoint that waited may begin in the next second');

# One forced checkpoint, for which the checkpointer came a segment late, is no sign of a target of 0.5.
is(judge(lines([ '07:00:00', 'checkpoint starting: wal' ], [ '07:00:30', complete(270 * 16, 30) =~ s/distance=\d+/distance=4415917/r ]) . lines(@quiet))->{checkpoint_completion_target}, 0.9,
	'a size that is a little rounder with 0.5 does not tell checkpoint_completion_target');

# A write each hour, and one load.
my @hours = map { ([ sprintf('%02d:02:10', $_), 'checkpoint starting: time' ], [ sprintf('%02d:02:18', $_), complete(1, 8) ]) } 1 .. 20;
is(judge(lines(@hours, [ '20:07:10', 'checkpoint starting: time' ], [ '20:11:40', complete(300, 270) ]))->{checkpoint_timeout}, 300, 'writes far apart do not tell checkpoint_timeout');

# The log does not tell the size, nor that it is the demand.
my @unknown = map { ([ "10:$_:00", 'checkpoint starting: time' ], [ '10:' . ($_ + 4) . ':30', complete(1600, 270) ]) } 10, 15, 20;
like((watch_log(\($text = lines(@unknown)), '-'))[1], qr/^"max_wal_size", which the log does not tell, is large enough: about\s+\d+\s+MB\s+are\s+needed\./,
	'the page: a size that is assumed is not called large enough');
@unknown = map {
	my $redo = 100 + 700 * $_;
	my $lsn = $redo + ($_ % 2 ? 600 : 100);

	([ sprintf('10:%02d:00', 10 + 5 * $_), 'checkpoint starting: time' ],
		[ sprintf('10:%02d:30', 14 + 5 * $_), complete(700, 270, $redo) =~ s/lsn=0\/\w+/sprintf 'lsn=0\/%X', $lsn * MB/er ])
} 0 .. 4;
like((watch_log(\($text = lines(@unknown)), '-'))[1], qr/^The log does not tell all settings: about \d+ MB suffice if checkpoint_timeout\s+is 5 min 0 s\..*--checkpoint-timeout\.\n.* max_wal_size \d+ MB \(assumed\)/s,
	'the page: no size is called too small that the log does not tell');
is(judge($text)->{source}, 'assumed', 'a size that is assumed is not said to be in effect');

# grep complete
like((watch_log(\lines(map { [ "08:${_}0:00", complete(20 + $_, 40) ] } 1 .. 5), '-'))[1], qr/ or also the\s+lines "checkpoint starting"\.\n.* 1 for other or unknown reasons/s,
	'the page: without starts, it says what would tell the causes');

# Warned by nobody: without starts, the distance tells the cause, to a segment.
is(judge(lines(map { [ "08:0$_:00", complete(528, 40) =~ s/distance=540672/distance=540649/r ] } 1 .. 6), '--max-wal-size', '1GB', '--checkpoint-timeout', '5min')->{checkpoints_forced},
	6, 'a distance just below the trigger point is that of a forced checkpoint');

# The server pauses between pages, so that a checkpoint of few pages takes as long.
my @few = map { ([ "08:$_:00", 'checkpoint starting: time' ], [ '08:' . ($_ + 2) . ':41', complete(400, 161) =~ s/wrote \d+/wrote 1605/r ]) } 10, 15, 20, 25;
my $few = judge(lines(@few), '--max-wal-size', '1GB');
is("$few->{checkpoint_completion_target} @{ $few->{assumed} }", '0.9 checkpoint_completion_target', 'a checkpoint of few pages does not tell checkpoint_completion_target');

# Checkpoints that take longer than the timeout.
my @slow = map { ([ "07:$_:00", 'checkpoint starting: time' ], [ '07:' . ($_ + 4) . ':00', complete(1200, 240) ]) } 10, 15, 20;
foreach my $from (25 * 60 + 7 * 3600, map { 25 * 60 + 7 * 3600 + 470 * $_ } 1 .. 4)
{
	push @slow, map { [ at($_->[0]), $_->[1] ] }
	  [ $from, 'checkpoint starting: time' ], [ $from + 470, complete($from % 3600 == 1500 ? 1200 : 1880, 470) =~ s/write=\S+/write=269.500/r ];
}
my $slow = judge(lines(@slow), '--max-wal-size', '8GB');
is("$slow->{checkpoint_timeout} " . int($slow->{demand} / MB), '300 1200', 'slow checkpoints do not tell checkpoint_timeout');

# Three quiet ones, then one that keeps the next waiting past the trigger point.
my @idle = map { ([ "09:$_:00", 'checkpoint starting: time' ], [ "09:$_:09", complete(20, 9) =~ s/wrote \d+/wrote 9000/r ]) } '00', '05', 10;
my @late = ([ '09:15:00', 'checkpoint starting: time' ], [ '09:22:00', complete(20, 420) ], [ '09:22:00', 'checkpoint starting: wal' ], [ '09:32:00', complete(3000, 600) ]);
is(judge(lines(@idle, @late))->{status}, 2, 'a forced checkpoint, and a size that is assumed: it cannot be told that it suffices');
my @waits = ([ '09:00:00', 'checkpoint starting: time' ], [ '09:07:00', complete(20, 420) ], map { ([ "09:$_->[0]:00", 'checkpoint starting: wal' ], [ "09:$_->[1]:00", complete(3000, 180) ]) } [ '07', 10 ], [ 10, 13 ]);
like((watch_log(\lines(@waits), '-'))[1], qr/^"max_wal_size", which the log does not tell, is too small: about\s+\d+\s+MB\s+are\s+needed\./,
	'the page: no size that is assumed is said to be in effect');
my @slower = map { [ at(9 * 3600 + 960 * $_), $_ ] } 1 .. 4;
my $slower = judge(lines(@idle[ 0 .. 3 ], map { ([ $_->[0], 'checkpoint starting: ' . ($_->[1] == 1 ? 'time' : 'wal') ], [ at(9 * 3600 + 960 * ($_->[1] + 1)), complete($_->[1] == 1 ? 20 : 4800, 960) ]) } @slower),
	'--max-wal-size', '4GB', '--checkpoint-timeout', '5min');
is(int($slower->{demand} / MB), 1500, 'the WAL of an interval that a slow checkpoint made long is of all of it');

# The last checkpoint before a change of checkpoint_timeout is paced by both.
my $ten = judge(lines([ '08:59:00', 'parameter "checkpoint_timeout" changed to "10min"' ],
		map({ ([ "09:$_:00", 'checkpoint starting: time' ], [ '09:' . ($_ + 5) . ':00', complete(20, 300) =~ s/wrote \d+/wrote 8000/r ]) } 10, 20, 30, 40),
		[ '09:46:40', 'checkpoint starting: wal' ], [ '09:46:55', complete(672, 15) ]));
is("$ten->{checkpoint_timeout} $ten->{checkpoint_completion_target} " . $ten->{max_wal_size} / MB, '600 0.5 1024',
	'checkpoint_completion_target is a part of the checkpoint_timeout that the log tells');
my @half = map { my ($from, $took) = @$_; ([ at(9 * 3600 + $from), 'checkpoint starting: time' ], [ at(9 * 3600 + $from + $took), complete(300, $took) ]) }
  [ 0, 150 ], [ 300, 150 ], [ 600, 150 ], [ 900, 240 ], [ 1500, 300 ], [ 2100, 300 ], [ 2700, 300 ];
is(judge(lines(@half[ 0 .. 6 ], [ '09:16:00', 'parameter "checkpoint_timeout" changed to "10min"' ], @half[ 7 .. 13 ]))->{checkpoint_completion_target}, 0.5,
	'a checkpoint that a new checkpoint_timeout slows down does not tell checkpoint_completion_target');

# ---- restarts, crashes, promotions

my @hourly = map { ([ "10:$_:00", 'checkpoint starting: time' ], [ '10:' . ($_ + 4) . ':30', complete(300, 270, 20 * $_ * 3) ]) } 10, 15, 20;
my $ready = 'database system is ready to accept connections';
my $promoted = judge(lines([ '10:05:00', 'checkpoint starting: force' ], [ '10:05:01', $ready ], [ '10:09:30', complete(300, 270, 300) ], @hourly), '--max-wal-size', '1GB');
is("$promoted->{verdict} $promoted->{restarts} $promoted->{missing} " . int($promoted->{demand} / MB), 'sufficient 0 0 300',
	'a promotion is no restart, and its checkpoint ends an interval like any other');
# The distance of the first checkpoint is from the last restartpoint, which may be long ago.
my $replayed = complete(300, 270) =~ s/checkpoint/restartpoint/r;
$promoted = judge(lines([ '09:50:00', 'restartpoint starting: time' ], [ '09:54:30', $replayed ],
		[ '10:05:00', 'checkpoint starting: force' ], [ '10:05:01', $ready ], [ '10:09:30', complete(900, 270, 300) ], @hourly), '--max-wal-size', '1GB');
is("$promoted->{verdict} $promoted->{restarts} $promoted->{missing} " . int($promoted->{demand} / MB), 'sufficient 0 0 300',
	'what was written before a promotion is no demand');
is(int(judge(lines([ '10:05:00', 'checkpoint starting: force' ], [ '10:09:30', complete(900, 270, 300) ], @hourly), '--max-wal-size', '1GB')->{demand} / MB), 300,
	'a log that begins with a promotion: what was written before is no demand');
is(int(judge(lines([ '10:05:00', 'checkpoint starting: force' ], [ '10:05:00', $ready ], [ '10:09:30', complete(900, 270, 300) ], @hourly), '--max-wal-size', '1GB')->{demand} / MB), 300,
	'a server that is ready in the same second: what was written before its promotion is no demand');
# So is what a backup has that is restored after the server was stopped.
my @restored = ([ '10:05:00', 'checkpoint starting: end-of-recovery immediate wait' ], [ '10:05:02', complete(900, 1, 300) ], [ '10:05:02', $ready ]);
is(int(judge(lines([ '09:50:00', 'checkpoint starting: shutdown immediate' ], [ '09:50:01', complete(20, 1) ], @restored, @hourly), '--max-wal-size', '1GB')->{demand} / MB - 1), 300,
	'what a restored backup replays is no demand');
my $beside = judge(join('', lines(@hourly), lines([ '10:17:00', $replayed ]) =~ s/\[77\]/[78]/r), '--max-wal-size', '1GB');
is(int($beside->{wal} / MB), 900, 'a standby in the same log changes nothing');
# So is that of a recovery with which a log begins.
my $recovered = judge(lines([ '10:05:00', 'checkpoint starting: end-of-recovery immediate wait' ], [ '10:05:02', complete(900, 1, 300) ], [ '10:05:02', $ready ], @hourly), '--max-wal-size', '1GB');
is("$recovered->{verdict} " . int($recovered->{demand} / MB - 1), 'sufficient 300', 'what was written before a crash that the log does not have is no demand');
my @before = map { ([ "09:$_:00", 'checkpoint starting: time' ], [ '09:' . ($_ + 4) . ':30', complete(300, 270) ]) } 40, 45, 50;
my $crashed = judge(lines(@before, [ '09:55:00', 'checkpoint starting: time' ], [ '09:58:20', 'checkpoint starting: end-of-recovery immediate wait' ],
		[ '09:58:21', complete(500, 1) ], [ '09:58:21', $ready ], map { [ $_->[0] =~ s/^10:1(\d):00/10:0$1:21/r =~ s/^10:1(\d):30/10:0$1:51/r, $_->[1] =~ s/; lsn.*//r ] } @hourly[ 2, 3 ]),
	'--max-wal-size', '900MB');
is("$crashed->{restarts} $crashed->{missing} " . int($crashed->{demand} / MB), '1 0 300', 'a crash while a checkpoint is written: the WAL since the one before is that of all the time since');
cmp_ok($crashed->{demand_at_most} / MB, '>=', 300, 'a crash while a checkpoint is written: the range of the demand has it');
my @in_forced = ([ '09:59:00', 'checkpoint starting: wal' ], [ '09:59:20', complete(528, 20) ], [ '10:00:00', 'checkpoint starting: wal' ]);
is(judge(lines(@in_forced, @restored, @hourly), '--max-wal-size', '8GB')->{verdict}, 'sufficient', 'a crash in a forced checkpoint does not prevent a verdict');
my $down = judge(lines(@before, [ '09:55:00', 'checkpoint starting: time' ], [ '11:05:00', 'checkpoint starting: end-of-recovery immediate wait' ], [ '11:05:01', complete(500, 1) ], [ '11:05:01', $ready ],
		map { [ $_->[0] =~ s/^10/11/r, $_->[1] =~ s/; lsn.*//r ] } @hourly), '--max-wal-size', '800MB');
is("$down->{verdict} " . int($down->{demand} / MB), 'sufficient 300', 'the time that a crashed server was down is no idle time');
is(judge(lines(@hourly, [ '10:25:00', 'checkpoint starting: time' ], [ '10:25:00', complete(20, 0.6) ], [ '10:25:00', 'checkpoint starting: shutdown immediate' ], [ '10:25:00', complete(1, 0.5) ]))->{checkpoints_other}, 1,
	'two checkpoints that start in the same second are two');
# grep has taken the line that says that the server is ready, and a container gives the same numbers again
my @pids = map { my $n = $_; map { [ $_->[0] =~ s/^10/1$n/r, $_->[1] ] } @hourly[ 0 .. 3 ] } 0 .. 2;
my $pids = join '', map { lines(@pids[ 4 * $_ .. 4 * $_ + 3 ], [ "1$_:30:00", 'checkpoint starting: shutdown immediate' ], [ "1$_:30:00", complete(1, 0.6) ]) =~ s/\[77\]/$_ == 1 ? '[150]' : '[29]'/ger } 0 .. 2;
is(judge($pids, '--max-wal-size', '1GB')->{checkpoints_timed}, 6, 'a process ID that comes back after a shutdown is of the same server');
my $stopped = judge(lines(@before[ 0 .. 3 ], [ '09:50:00', 'checkpoint starting: shutdown immediate' ],
		[ '09:50:01', complete(20, 1) =~ s/estimate=\d+/estimate=278528/r ], @hourly));
is("$stopped->{restarts} $stopped->{missing}", '1 0', 'a restart shows in the checkpoint before it');
# It may change a setting, which no message tells.
my @restart = ([ '08:55:00', 'checkpoint starting: shutdown immediate' ], [ '08:55:01', complete(10, 1) ], [ '08:56:00', $ready ]);
my @set = ([ '08:00:00', 'parameter "max_wal_size" changed to "16GB"' ], map { ([ "08:$_:00", 'checkpoint starting: time' ], [ '08:' . ($_ + 4) . ':30', complete(300, 270) ]) } 10, 15, 20);
my $lower = judge(lines(@set, @restart, map { ([ "09:$_:00", 'checkpoint starting: wal' ], [ "09:$_:45", complete(528, 45) ]) } 10 .. 20));
is("$lower->{verdict} " . $lower->{max_wal_size} / MB, 'too small 1024', 'a size that a restart lowered shows in the checkpoints after it');
my $higher = judge(lines(map({ [ $_->[0], $_->[1] =~ s/16GB/1GB/r ] } @set), @restart, map { ([ "09:$_:00", 'checkpoint starting: time' ], [ '09:' . ($_ + 4) . ':30', complete(700, 270) ]) } 10, 15, 20));
is("$higher->{verdict} @{ $higher->{assumed} }", 'sufficient max_wal_size', 'a size that a restart raised is not known any more');
is(judge(lines(@set, @restart, map { [ $_->[0] =~ s/^08/09/r, $_->[1] ] } @set[ 1 .. 6 ]))->{max_wal_size}, 16384 * MB, 'a size that nothing contradicts stays known');
like((watch_log(\lines(@set, @restart, @hourly), '-'))[1], qr/Restarts: 1 \(the log does not tell whether one changed a setting\)\./, 'the page: a restart may have changed a setting');

# From 16 on, with positions, as its languages have them.
my $positions = judge(lines(@hourly), '--max-wal-size', '1GB');
foreach my $names ('LSN, Redo-LSN', 'lsn, lsn de redo', 'lsn, lsn redo', 'lsn, redo-lsn', "lsn, \xe5\x86\x8d\xe7\x94\x9flsn")
{
	my ($lsn, $redo) = split /, /, $names;

	is_deeply(judge(lines(@hourly) =~ s/lsn=(\S+), redo lsn=/$lsn=$1, $redo=/gr, '--max-wal-size', '1GB'), $positions, "positions are read as $names");
}
is_deeply(judge(lines(@hourly) =~ s/LOG:/DZIENNIK:/gr, '--max-wal-size', '1GB'), $positions, 'the level may be Polish');
foreach my $translated ("punkty kontrolne wyst\xc4\x99puj\xc4\x85 zbyt cz\xc4\x99sto (co 21 sekund)", "pontos de controle est\xc3\xa3o ocorrendo frequentemente (21 segundos)")
{
	is(judge($warned =~ s/\Q$frequent\E/$translated/gr)->{warnings}, 2, "a warning is read: $translated");
}
# runit's svlogd, a long name of a pod, and a time that only the line has
is_deeply(judge(lines(@hourly) =~ s/^(\S+) (\S+) UTC /$1_$2 /gmr, '--max-wal-size', '1GB'), $positions, 'date and time may have an underscore between them');
is_deeply(judge(lines(@hourly) =~ s/^(.*)$/'[pod\/' . 'x' x 100 . '] ' . JSON::PP->new->encode({ log => $1 })/gemr, '--max-wal-size', '1GB'), $positions, 'a prefix of JSON may be long');
is_deeply(judge(JSON::PP->new->encode([ map { { message => $_, eventTime => 1 } } split /\n/, lines(@hourly) ]), '--max-wal-size', '1GB'), $positions, 'JSON in one line may have the time in the message only');

# Lines that a terminal has cut off.  The first would have as many numbers as one before 18.
my $later = complete(528, 20) =~ s/(?=; \d WAL)/, wrote 3 SLRU buffers/r;
foreach my $end ('distance=540672 kB,', 'estimate=5406')
{
	like(judge(lines([ '09:00:00', $later =~ s/\Q$end\E\K.*//r ]))->{error}, qr/no line about checkpoints/,
		"a line that is cut off after $end is not read");
}
is(judge(lines([ '09:00:00', 'parameter "max_wal_size" changed to "4' ], @quiet))->{max_wal_size}, 1024 * MB,
	'a value that is cut off is not read');

($status, $out) = watch_log(glob "$logs/10*");
like($out, qr/^max_wal_size was too small: WAL volume forced checkpoints \(1\)/m,
	'10-cri-managed: the page says that a checkpoint was forced');
($status, $out) = watch_log(glob "$logs/11*");
like($out, qr/^Too little: whole lines "checkpoint complete" in the log: 1\./m,
	'11-operator-json: the page says that there are too few checkpoints');
($status, $out) = watch_log(glob "$logs/01*");
is(join("\n", grep { length > 80 } split /\n/, $out), '', 'the page: it fits into 80 columns');
like($out, qr/^Demand        about 699 MB of WAL within checkpoint_timeout \(579 MB to 1056\s+MB\)/m,
	'the page: it has the range of the demand');
like($out, qr/^Log           checkpoints from 2025-02-03 11:41 to 2025-02-03 11:50/m,
	'the page: it has times as in the log');
($status, $out) = watch_log('--json', '--year', '2016', glob "$logs/08*");
is(decoded($out)->{started_at}, 1465272002, '--year is the year of the times in syslog');
($status, $out) = watch_log('--json', glob "$logs/08*");
my (undef, undef, $hour, $day, $month) = gmtime decoded($out)->{started_at};
is("$month $day $hour", '5 7 4', 'the year of the times in syslog is this one without --year');
(undef, undef, undef, undef, my $this_month, my $this_year) = gmtime;
(undef, undef, undef, undef, undef, my $year) = gmtime judge("Dec  7 04:00:00 db1 postgres[77]: LOG:  checkpoint starting: time\nDec  7 04:04:00 db1 postgres[77]: LOG:  " . complete(9, 240) . "\n")->{started_at};
is($year, $this_month == 11 ? $this_year : $this_year - 1, 'a month to come is that of the year before');
($status, $out) = watch_log('--json', '--checkpoint-timeout', '20min', '--completion-target', '0.5',
	'--segment-size', '64MB', '--max-wal-size', '8GB', glob "$logs/01*");
is(join(' ', map { decoded($out)->{$_} } qw(checkpoint_timeout checkpoint_completion_target wal_segment_size max_wal_size)),
	join(' ', 1200, 0.5, 64 * MB, 8192 * MB), 'values that are given are not inferred');

# ---- one log in all formats

# Three timed checkpoints, one forced, one asked for; max_wal_size changes before the last two.
sub clock
{
	my ($s, $ms) = (@_, 500);
	return '2025-02-03 ' . at($s) . sprintf '.%03d UTC', $ms;
}
our @events;
foreach ([ 1000, 'time', 200 ], [ 1300, 'time', 210 ], [ 1500, 'wal', 528 ], [ 1800, 'time', 100 ],
	[ 2100, 'time', 300 ], [ 2150, 'immediate force wait', 9 ])
{
	my ($at, $flags, $mb) = @$_;

	push @events, map { [ $at - 30, 1, "parameter \"$_" ] } 'checkpoint_completion_target" changed to "0.9"', 'max_wal_size" changed to "4GB"'
	  if $at == 2100;
	push @events, [ $at, 77, "checkpoint starting: $flags" ];
	push @events, [ $at + 20, 77, complete($mb, 20) ];
}
# the estimate is at least nine tenths of the one before
my $estimate = 0;
foreach (@events)
{
	next if $_->[2] !~ /distance=(\d+)/;
	$estimate = $1 > $estimate ? $1 : int(0.9 * $estimate + 0.1 * $1);
	$_->[2] =~ s/estimate=\d+/estimate=$estimate/;
}
# csvlog and jsonlog number the messages of each process
my %numbers;
sub text_of
{
	my ($format) = @_;

	%numbers = ();
	return join '', map { $numbers{$_->[1]}++; $format->(@$_, clock($_->[0])) } @events;
}
sub doubled { return $_[0] =~ s/"/""/gr; }
sub escaped { return $_[0] =~ s/(["\\])/\\$1/gr; }
my %formats = (
	'%m [%p]' => sub { "$_[3] [$_[1]] LOG:  $_[2]\n" },
	'%t [%p]: [%l-1] user=%u,db=%d' => sub { ($_[3] =~ s/\.500//r) . " [$_[1]]: [3-1] user=,db= LOG:  $_[2]\n" },
	'RDS'     => sub { "$_[3]::\@:[$_[1]]:LOG:  $_[2]\n" },
	'%n'      => sub { (1738540800 + $_[0]) . ".500 [$_[1]] LOG:  $_[2]\n" },
	'verbose' => sub { "$_[3] [$_[1]] LOG:  00000: $_[2]\n$_[3] [$_[1]] LOCATION:  LogCheckpointEnd, xlog.c:1\n" },
	'syslog'  => sub { sprintf "Feb  3 %s db1 postgres[%d]: [7-1] LOG:  %s\n", $_[3] =~ /([\d:]{8})/, $_[1], $_[2] },
	'journald' => sub { sprintf "Feb 03 %s db1 postgres[%d]: %s [%d] LOG:  %s\n", $_[3] =~ /([\d:]{8})/, $_[1], $_[3], $_[1], $_[2] },
	'compose' => sub { "db-1  | $_[3] [$_[1]] LOG:  $_[2]\n" },
	'CRI'     => sub { '2025-02-03T' . ($_[3] =~ /([\d:.]{12})/)[0] . "123456+00:00 stderr F [$_[1]] LOG:  $_[2]\n" },
	'csvlog'  => sub { "$_[3],,,$_[1],,67a0,$numbers{$_[1]},,2025-02-03 00:00:00 UTC,,0,LOG,00000,\"" . doubled($_[2]) . '",,,,,,,,,"","checkpointer",,0' . "\n" },
	'jsonlog' => sub { "{\"timestamp\":\"$_[3]\",\"pid\":$_[1],\"session_id\":\"67a0\",\"line_num\":$numbers{$_[1]},\"error_severity\":\"LOG\",\"message\":\"" . escaped($_[2]) . "\",\"backend_type\":\"checkpointer\",\"query_id\":0}\n" },
	'docker'  => sub { '{"log":"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . "\\n\",\"stream\":\"stderr\",\"time\":\"2025-02-03T09:00:00.1Z\"}\n" },
	'cloud'   => sub { '{"insertId":"x","resource":{"labels":{"a":"b"}},"textPayload":"' . escaped("$_[3] [$_[1]]: [5-1] db=,user= LOG:  $_[2]") . "\",\"timestamp\":\"2025-02-03T09:00:00.1Z\"}\n" },
	'operator' => sub { "{\"level\":\"info\",\"ts\":\"2025-02-03T09:00:00.1Z\",\"msg\":\"record\",\"record\":{\"log_time\":\"$_[3]\",\"process_id\":\"$_[1]\",\"error_severity\":\"LOG\",\"message\":\"" . escaped($_[2]) . "\",\"backend_type\":\"checkpointer\"}}\n" },
	# prefixes that people set, what passes a line on, and how people post it
	'logfmt'   => sub { "level=info msg=\"$_[3] [$_[1]] LOG:  " . escaped($_[2]) . "\"\n" },
	'an export' => sub { my $line = "$_[3] [$_[1]] LOG:  $_[2]"; 'a1,' . ($line =~ /[",]/ ? '"' . doubled($line) . '"' : $line) . ",INFO\n" },
	'a browser' => sub { "$_[3]\302\240[$_[1]] LOG:\302\240 $_[2]\n" },
	'Markdown' => sub { "`$_[3] [$_[1]] LOG:  $_[2]`\n" },
	'a table'  => sub { "| $_[3] [$_[1]] LOG:  $_[2] |\n" },
	'psql'     => sub { " $_[3] [$_[1]] LOG:  $_[2]                +\n" },
	'<%m>'     => sub { "< $_[3] >LOG:  $_[2]\n" },
	'Azure'    => sub { "$_[3]-67a0." . sprintf('%x', $_[1]) . "-LOG:  $_[2]\n" },
	'%m with an offset' => sub { ($_[3] =~ s/ UTC/ +0530/r) . " [$_[1]] LOG:  $_[2]\n" },
	'%m and %s' => sub { "$_[3] 2025-02-01 00:00:00 UTC [$_[1]]: LOG:  $_[2]\n" },
	'one space' => sub { "$_[3] [$_[1]]: [5-1] user=,db= LOG: $_[2]\n" },
	'CRLF'     => sub { "$_[3] [$_[1]] LOG:  $_[2]\r\n" },
	'colours'  => sub { "\e[36mdb-1  | \e[0m$_[3] [$_[1]] LOG:  $_[2]\n" },
	'docker -t' => sub { '2025-02-03T' . ($_[3] =~ /([\d:.]{12})/)[0] . "123456Z $_[3] [$_[1]] LOG:  $_[2]\n" },
	'syslog with a priority' => sub { sprintf "<134>Feb  3 %s db1 postgres[%d]: [7-1] LOG:  %s\n", $_[3] =~ /([\d:]{8})/, $_[1], $_[2] },
	'RFC 5424' => sub { "<134>1 2025-02-03T" . ($_[3] =~ /([\d:.]{12})/)[0] . "Z db1 postgres $_[1] - - [7-1] LOG:  $_[2]\n" },
	'short-iso' => sub { '2025-02-03T' . ($_[3] =~ /([\d:]{8})/)[0] . "+0000 db1 postgres[$_[1]]: [7-1] LOG:  $_[2]\n" },
	'short-precise' => sub { 'Feb 03 ' . ($_[3] =~ /([\d:.]{12})/)[0] . "123 db1 postgres[$_[1]]: [7-1] LOG:  $_[2]\n" },
	'journalctl -o json' => sub { '{"MESSAGE":"' . escaped("[7-1] LOG:  $_[2]") . '","__REALTIME_TIMESTAMP":"' . (1738540800 + $_[0]) . "500000\",\"_PID\":\"$_[1]\"}\n" },
	'seconds in JSON' => sub { '{"date":' . (1738540800 + $_[0]) . '.500,"log":"' . escaped("LOG:  $_[2]") . "\"}\n" },
	'nanoseconds in JSON' => sub { '{"line":"' . escaped("[$_[1]] LOG:  $_[2]") . '","timestamp":"' . (1738540800 + $_[0]) . "500000000\"}\n" },
	'Azure JSON' => sub { "{\"properties\":{\"timestamp\":\"$_[3]\",\"processId\":$_[1],\"errorLevel\":\"LOG\",\"message\":\"" . escaped("$_[3]-67a0.4d-LOG:  $_[2]") . "\"}}\n" },
	'parsed by an agent, received later' => sub { '{"jsonPayload":{"level":"LOG","message":"' . escaped($_[2]) . "\",\"tid\":$_[1]},\"timestamp\":\"2025-02-03T" . ($_[3] =~ /([\d:.]{12})/)[0] . "Z\",\"receiveTimestamp\":\"2025-02-03T23:00:00.5Z\"}\n" },
	'parsed by an agent' => sub { '{"jsonPayload":{"level":"LOG","message":"' . escaped($_[2]) . "\",\"tid\":$_[1]},\"severity\":\"INFO\",\"timestamp\":\"2025-02-03T" . ($_[3] =~ /([\d:.]{12})/)[0] . "Z\"}\n" },
	'event_message' => sub { '{"event_message":"' . escaped($_[2]) . '","metadata":[{"parsed":[{"backend_type":"checkpointer","error_severity":"LOG","process_id":' . $_[1] . '}]}],"timestamp":' . (1738540800 + $_[0]) . "500000}\n" },
	'indented JSON' => sub { "  {\n    \"message\": \"" . escaped("$_[3]::\@:[$_[1]]:LOG:  $_[2]") . "\",\n    \"timestamp\": 1738540800\n  },\n" },
	'CSV'      => sub { '2025-02-03T09:00:00.1Z,db1,"' . doubled("$_[3] [$_[1]] LOG:  $_[2]") . "\",INFO\n" },
	'Splunk'   => sub { '{"preview":false,"result":{"_raw":"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . '","_time":"2025-02-03 00:00:00"}}' . "\n" },
	'Insights' => sub { '[{"field":"@timestamp","value":"2025-02-03 00:00:00"},{"field":"@message","value":"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . '"}]' . "\n" },
	'Insights console' => sub { '{"@timestamp":"2025-02-03 00:00:00.100","@message":"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . "\"}\n" },
	'labels'   => sub { '{"log":"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . '","labels":[{"name":"team","value":"DB: core"}],"time":"2025-02-03T09:00:00.1Z"}' . "\n" },
	'GELF'     => sub { '{"version":"1.1","host":"db1","short_message":"' . escaped("[$_[1]] LOG:  $_[2]") . '","timestamp":' . (1738540800 + $_[0]) . ".500,\"level\":6}\n" },
	'Elastic'  => sub { '{"@timestamp":"2025-02-03T' . ($_[3] =~ /([\d:.]{12})/)[0] . 'Z","log.level":["LOG"],"message":["' . escaped($_[2]) . "\"],\"process.pid\":[$_[1]]}\n" },
	'columns'  => sub { "build\t3\t2025-02-03T09:00:00.1Z $_[3] [$_[1]] LOG:  $_[2]\n" },
	'a window' => sub { "│ $_[3] [$_[1]] LOG:  $_[2]  │\n" },
	'jq'       => sub { "{\n  \"timestamp\": \"$_[3]\",\n  \"pid\": $_[1],\n  \"line_num\": $numbers{$_[1]},\n  \"error_severity\": \"LOG\",\n  \"message\": \"" . escaped($_[2]) . "\",\n  \"query_id\": 0\n}\n" },
	'jq of texts' => sub { '"' . escaped("$_[3] [$_[1]] LOG:  $_[2]") . "\"\n" },
	'json-pretty' => sub { "{\n\t\"__REALTIME_TIMESTAMP\" : \"" . (1738540800 + $_[0]) . "500000\",\n\t\"_PID\" : \"$_[1]\",\n\t\"MESSAGE\" : \"" . escaped("[7-1] LOG:  $_[2]") . "\"\n}\n" },
	'AWS text' => sub { "EVENTS\t1738541800505\t$_[3]::\@:[$_[1]]:LOG:  $_[2]\t1738541800500\n" },
	'%m,%u,%d,%p,' => sub { "$_[3],postgres,postgres,$_[1],LOG:  $_[2]\n" },
	'YAML'     => sub { "textPayload: '$_[3] [$_[1]]: [5-1] db=,user= LOG:  $_[2]'\n" },
);
$formats{'csvlog through grep'} = sub { '/var/log/postgresql/db-1.csv:' . $formats{csvlog}->(@_) };
$formats{'csvlog with each field quoted'} = sub { '"' . join('","', map { s/^"(.*)"\z/$1/r } $formats{csvlog}->(@_) =~ /("(?:[^"]|"")*"|[^,\n]*)[,\n]/g) . "\"\n" };
$formats{'syslog through grep'} = sub { '/var/log/messages-20250203:' . $formats{syslog}->(@_) };
my @figures = qw(status verdict checkpoints checkpoints_forced checkpoints_timed checkpoints_other max_wal_size checkpoint_timeout
	demand demand_at_least demand_at_most wanted_size missing restarts);
sub figures { my ($said) = @_; return join ' ', map { $said->{$_} // 'null' } @figures; }
my $plain = judge(text_of($formats{'%m [%p]'}));
is(figures($plain), join(' ', 0, 'sufficient', 6, 0, 1, 1, 4096 * MB, 300, 300 * MB, 300 * MB, 309 * MB, 736 * MB, 0, 0),
	'the last stretch has the figures since max_wal_size changed');
is_deeply([ map { [ $_->{max_wal_size} / MB, $_->{verdict} ] } @{ $plain->{stretches} } ], [ [ 1024, 'too small' ] ],
	'the stretch before has the old max_wal_size and its own verdict');
(undef, $out) = watch_log(\text_of($formats{'%m [%p]'}), '-');
like($out, qr/^Before        from 2025-02-03 00:16 to 2025-02-03 00:30: max_wal_size = 1024\s+MB\s+is\s+too\s+small,\s+demand\s+about \d+ MB,\s+which\s+needs\s+\d+\s+MB$/m,
	'the page has the stretch before, and what it needed');
(undef, $out) = watch_log(\(text_of($formats{'%m [%p]'}) =~ s/4GB/1040MB/r), '-');
like($out, qr/ is large enough: .*\. The load before\s+the settings were changed needs up to (\d+) MB: .*which\s+needs\s+\g1\s+MB$/ms,
	'the verdict says that more was needed before than is set now');
is(figures(judge("\t  {\n\t    \"Plan\": {\n\t      \"Node Type\": \"Result\"\n" . text_of($formats{'%m [%p]'}))), figures($plain),
	'the figures are the same if the log begins in a message that has JSON');
foreach my $name (sort keys %formats)
{
	my @year = $name =~ /^s.*(?:log|precise)/ ? ('--year', 2025) : ();

	is(figures(judge(text_of($formats{$name}), @year)), figures($plain),
		"the figures are the same in the format $name");
}
$text = text_of($formats{'%m [%p]'});

# A prefix without a process, but with a number in its place.
my $line = 0;
is(figures(judge(join '', map { $line++; s/\[\d+\]/[$line]/r } split /^/, $text)), figures($plain),
	'line numbers in place of process IDs do not change the figures');

# What timed checkpoints show of checkpoint_completion_target counts more than a round size, unless WAL paced them.
sub wrote
{
	my ($s, $text) = @_;
	return $text =~ s/write=[\d.]+/sprintf 'write=%.3f', $s/er;
}
sub settings { return join ' ', $_[0]->{max_wal_size} / MB, @{ $_[0] }{qw(checkpoint_completion_target checkpoint_timeout)}, @{ $_[0]->{assumed} }; }
foreach my $case ([ 0.9, 672, '1280 0.9 300' ], [ 0.5, 528, '800 0.5 300' ])
{
	my ($target, $mb, $expected) = @$case;
	my @shown = map { ([ "10:$_:00", 'checkpoint starting: time' ], [ '10:' . ($_ + 4) . ':50', wrote(300 * $target, complete(300, 290)) ]) } 10, 15, 20, 25;
	is(settings(judge(lines(@shown, [ '10:29:55', 'checkpoint starting: wal' ], [ '10:31:00', complete($mb, 65) ]))), $expected,
		"a target of $target that timed checkpoints show is not replaced for a rounder size");
}
my @paced = map { ([ "1$_:00:00", 'checkpoint starting: time' ], [ "1$_:02:30", wrote(150, complete(200, 150)) ],
		[ "1$_:02:50", 'checkpoint starting: wal' ], [ "1$_:05:00", complete(528, 130) ],
		[ "1$_:07:50", 'checkpoint starting: time' ], [ "1$_:08:00", complete(300, 10) ]) } 0 .. 3;
is(settings(judge(lines(@paced), '--max-wal-size', '1GB', '--checkpoint-timeout', '5min')), '1024 0.9 300 checkpoint_completion_target',
	'timed checkpoints that WAL paced do not tell checkpoint_completion_target');
is(settings(judge(lines([ '10:00:00', 'checkpoint starting: wal' ], [ '10:04:40', complete(3000, 280) ]))) =~ s/ .*? max/ max/r,
	'5750 max_wal_size checkpoint_timeout checkpoint_completion_target', 'one forced checkpoint, which may have waited, does not tell max_wal_size');
my $unknown = join '', map { lines([ at(3620 + 300 * $_), complete(128, 20, 1024 + 128 * $_) ]) } 0 .. 5;
is(judge($unknown, '--checkpoint-timeout', '15min')->{verdict}, 'unknown', 'checkpoints of unknown cause that come too soon to be timed prevent a verdict on an assumed size');

# An idle server skips timed checkpoints, so the time before the first forced one tells nothing; nor do two far apart.
my @import = map { ([ at(32400 + 53 * $_), 'checkpoint starting: wal' ], [ at(32445 + 53 * $_), complete(528, 45) ]) } 0 .. 20;
my @night  = map { ([ "0$_:00:00", 'checkpoint starting: time' ], [ "0$_:00:04", complete(5, 4) ]) } 1, 8;
is(judge(lines(@night[ 0, 1 ], @import))->{checkpoint_timeout}, 300, 'an idle night before an import is not checkpoint_timeout');
is(judge(lines(@night, @import))->{checkpoint_timeout}, 300, 'an idle night between two timed checkpoints is not checkpoint_timeout');

my @rare = map { ([ $_ . ':00', 'checkpoint starting: time' ], [ $_ . ':20', complete(20, 20) ]) } '10:10', '11:05', '12:45';
is(judge(lines([ '10:05:00', 'checkpoint starting: wal' ], [ '10:05:30', complete(528, 30) ], @rare))->{checkpoint_timeout}, 300,
	'two idle times are not checkpoint_timeout if one is no multiple of the other');

# Nothing but CHECKPOINT on an idle server, and the timer.
my $idle = judge($text =~ s/starting: wal/starting: time/r =~ s/(distance|estimate)=\d+/$1=0/gr);
is("$idle->{status} $idle->{checkpoints_timed} $idle->{demand}", '0 1 0',
	'a server that writes nothing has no demand');

# The newest line first, as consoles show them, and journalctl -r.
foreach my $name ('%m [%p]', '%t [%p]: [%l-1] user=%u,db=%d', 'syslog', 'cloud')
{
	my $newest_first = join '', reverse split /^/, text_of($formats{$name});

	is(figures(judge($newest_first, $name eq 'syslog' ? ('--year', 2025) : ())), figures($plain),
		"the figures are the same with the newest line first, in the format $name");
}

# All objects in one line, as an interface returns them, more than a megabyte.
foreach my $name ('jsonlog', 'docker', 'cloud', 'operator', 'event_message')
{
	my $filler = '{"message":"' . 'x' x 2000 . '","time":"2025-02-03 00:00:00 UTC"}';
	my @objects = ((split /\n/, text_of($formats{$name})), ($filler) x 600);

	is(figures(judge('{"hits":[' . join(', ', @objects) . "]}\n")), figures($plain),
		"the figures are the same with all objects in one line, in the format $name");
}

# An array with a line for each member.
foreach my $name ('jq', 'json-pretty')
{
	my $array = "[\n" . (text_of($formats{$name}) =~ s/\}\n\{/},\n{/gr) . "]\n";

	is(figures(judge($array)), figures($plain), "the figures are the same in an array, in the format $name");
}

# A record of csvlog that was cut off.
my @csv = split /^/, text_of($formats{csvlog});
splice @csv, 4, 0, clock(1310) . ',"x","y",5,,67a0,5,,2025-02-03 00:00:00 UTC,,0,ERROR,42601,"syntax' . "\n";
is(figures(judge(join '', @csv)), figures($plain), 'csvlog: what follows a record that was cut off counts');

# Rotated files, in any order; the same lines twice, in whole seconds, too; an empty file.
my @lines = split /^/, $text;
write_file("$dir/a.log", join '', @lines[ 7 .. $#lines ]);
write_file("$dir/b.log", join '', @lines[ 0 .. 6 ]);
write_file("$dir/c.csv", text_of($formats{csvlog}));
write_file("$dir/seconds.log", text_of($formats{'%t [%p]: [%l-1] user=%u,db=%d'}));
write_file("$dir/empty.log", '');
foreach my $files ([ 'a.log', 'b.log' ], [ 'b.log', 'a.log' ], [ 'c.csv', 'a.log', 'empty.log', 'b.log' ], [ 'c.csv', 'seconds.log' ])
{
	($status, $out) = watch_log('--json', map { "$dir/$_" } @$files);
	is(figures({ %{ decoded($out) }, status => $status }), figures($plain), "the figures are the same with the files @$files");
}

# Text has the time of a clock that may be one second behind for a moment.
write_file("$dir/seconds.log", slurp_file("$dir/seconds.log") =~ s/ 00:30:20 (?=UTC .*complete)/ 00:30:19 /r);
write_file("$dir/c.csv", slurp_file("$dir/c.csv") =~ s/ 00:30:20\.500(?=.*complete)/ 00:30:20.002/r);
is(figures(judge(slurp_file("$dir/c.csv") . slurp_file("$dir/seconds.log"))), figures($plain), 'the clock of text may be behind');

# Checkpoints as fast as they can be, all of the same size, are as many as there are.
my $fast = join '', map { clock(36_000 + int(237 * $_ / 1000), 237 * $_ % 1000) . ' [77] LOG:  ' . complete(528, 0.6) . "\n" } 0 .. 2000;
is(judge($fast)->{checkpoints}, 2001, 'four checkpoints a second are not taken for one');

# Translated: the numbers stand in the same order.
my %languages = (
	German => sub {
		$_[0] =~ s/checkpoint starting:/Checkpoint beginnt:/r =~ s/parameter "(\w+)" changed to "(.*)"/Parameter »$1« auf »$2« gesetzt/r
		  =~ s/checkpoint complete: wrote (\d+) buffers \((.*?)\); (\d+).*?, (\d+).*?, (\d+).*?; write=(\d+)\.(\d+) s, sync=(\d+)\.(\d+) s, total=(\d+)\.(\d+) s.*?distance=(\d+) kB, estimate=(\d+) kB/Checkpoint komplett: $1 Puffer geschrieben ($2); $3 WAL-Datei(en) hinzugefügt, $4 entfernt, $5 wiederverwendet; Schreiben=$6,$7 s, Sync=$8,$9 s, gesamt=$10,$11 s; sync. Dateien=9, längste=0,010 s, Durchschnitt=0.002 s; Entfernung=$12 kB, Schätzung=$13 kB/r
	},
	Russian => sub {
		$_[0] =~ s/LOG:/СООБЩЕНИЕ:/r =~ s/parameter ("\w+") changed to/параметр $1 принял значение/r =~ s/checkpoint starting:/начата контрольная точка:/r
		  =~ s/checkpoint complete: wrote (\d+) buffers \((.*?)\); (\d+).*?, (\d+).*?, (\d+).*?; write=(\S+) s, sync=(\S+) s, total=(\S+) s.*?distance=(\d+) kB, estimate=(\d+) kB/контрольная точка завершена: записано буферов: $1 ($2); добавлено файлов WAL $3, удалено: $4, переработано: $5; запись=$6 сек., синхр.=$7 сек., всего=$8 сек.; синхронизировано_файлов=9, самая_долгая_синхр.=0.010 сек., средняя=0.002 сек.; расстояние=$9 КБ, ожидалось=$10 КБ/r
	});
foreach my $language (sort keys %languages)
{
	my $translated = join '', map { $languages{$language}->($_) } @lines;

	is(figures(judge($translated)), figures($plain), "the figures are the same in $language");
	is(figures(judge(join '', map { JSON::PP->new->ascii->encode({ log => decode('UTF-8', $_) }) . "\n" } split /^/, $translated)),
		figures($plain), "the figures are the same in $language, with escapes in JSON");
}

# Later servers: positions, SLRU buffers (18), flags again and "fast" (19).
my @later = map { my $line = $_; $line =~ s/buffers \(0\.1%\);/buffers (0.1%), wrote 3 SLRU buffers;/; $line } @lines;
is(figures(judge(join '', @later)), figures($plain), 'SLRU buffers do not change the figures');
my $flags = '';
@later = map {
	my $line = s/immediate/fast/r;
	$flags = $1 if $line =~ /starting: (.*)/;
	$line =~ s/complete: wrote/complete: $flags: wrote/;
	$line;
} @later;
is(figures(judge(join '', @later)), figures($plain), 'flags in both lines do not change the figures');
is(figures(judge(join '', grep { !/starting/ } @later)), figures($plain),
	'flags only in the last line do not change the figures');

# ---- what is missing, or not ours

my @pairs = grep { /checkpoint/ } @lines;
is(judge(join '', @pairs[ 0 .. 1, 6 .. 9 ])->{missing}, 1, 'missing checkpoints are noticed');
is(judge(join '', @pairs[ 0 .. 3 ], @pairs[ 5 .. 11 ])->{missing}, 0, 'a missing start is not counted as a missing checkpoint');

# Of a steady load, estimates do not tell.
my $steady = $events[5][2] =~ s/(distance|estimate)=\d+/$1=540672/gr;
my @steady = map { [ 1000 + 100 * $_, 77, 'checkpoint starting: wal' ], [ 1020 + 100 * $_, 77, $steady ] } 0 .. 7;
foreach my $case ([ 'csvlog', 1 ], [ 'jsonlog', 1 ], [ '%m [%p]', 0 ])
{
	my ($name, $missing) = @$case;
	my @text = do { local @events = @steady; split /(?<=\n)/, text_of($formats{$name}) };

	splice @text, 6, 4;
	is(judge(join '', @text)->{missing}, $missing,
		"$name: missing lines are noticed only if lines are numbered");
}
like(judge(join '', grep { !/checkpoint/ } @lines)->{error}, qr/the log has no line about checkpoints/,
	'a log without checkpoints is an error');
like(judge($text, '--pid', 1)->{error}, qr/is --pid, if given, that of the checkpointer/,
	'a process that wrote no checkpoint is not blamed on the format');
foreach my $case ([ 'zcat -f', "\037\213" ], [ 'xzcat -f', "\3757zXZ" ], [ 'zstdcat -f', "(\265/\375" ], [ 'bzcat -f', 'BZh' ],
	[ 'iconv -f UTF-16 -t UTF-8', "\377\376" ])
{
	my ($program, $begin) = @$case;

	like(judge("$text$begin\0\n")->{error}, qr/the log is not text: use "$program FILE/, "$program: what is no text is an error, also after text");
}
like(judge(join '', map { s/checkpoint complete/restartpoint complete/r } grep { /complete/ } @lines)->{error},
	qr/only restartpoints.*primary/, 'the log of a standby is an error');
my $other = join '', map { s/\[77\]/[88]/r } @lines;
my $mixed = join '', sort split /^/, $text . ($other =~ s/00\.500/01.500/gr);
like(judge($mixed)->{error}, qr/of several servers, two of their checkpointers are 77 and 88: choose one with --pid$/m,
	'a log of two servers is an error');
# Containers give all checkpointers the same number, and an hour comes twice in autumn.
my ($first, $second) = map { my $from = $_; lines(map { ([ at(36000 + $from + 300 * $_), 'checkpoint starting: time' ], [ at(36000 + $from + 300 * $_ + 270), complete(200, 270) ]) } 0 .. 3) } 0, 130;
like(judge(join '', sort split /^/, $first . $second)->{error}, qr/two checkpoints overlap, at 2025-02-03 10:02:10: .* read each server, or each part, by itself$/m,
	'checkpoints of two servers at a time are an error');
# A primary and its standby may have the same process ID, too, or the log none.
my @forced = map { ([ at(36000 + 60 * $_), 'checkpoint starting: wal' ], [ at(36050 + 60 * $_), complete(528, 50) ]) } 0 .. 9;
my @replayed = map { [ at(36055 + 120 * $_), complete(1056, 5) =~ s/checkpoint/restartpoint/r ] } 0 .. 4;
foreach my $pid ('[77] ', '')
{
	my ($alone, $both) = map { judge(join('', sort split /^/, lines(@$_)) =~ s/\[77\] /$pid/gr) } \@forced, [ @forced, @replayed ];

	is(join(' ', map { $both->{$_} } qw(max_wal_size demand wal restartpoints)), join(' ', map({ $alone->{$_} } qw(max_wal_size demand wal)), 5),
		"restartpoints of a standby change nothing, with prefix \"$pid\"");
}

# Before a switchover, the old primary's last checkpoint; after it, the WAL since a restartpoint.
my @old = (map({ ([ at(36000 + 300 * $_), 'checkpoint starting: time' ], [ at(36270 + 300 * $_), complete(200, 270) ]) } 0 .. 5),
	[ at(37790), 'checkpoint starting: shutdown immediate' ], [ at(37791), complete(190, 1) ]);
my @new = (map({ [ at(36275 + 300 * $_), complete(200, 270) =~ s/checkpoint/restartpoint/r ] } 0 .. 4),
	[ at(37795), 'checkpoint starting: force' ], [ at(37800), complete(900, 5) ],
	map({ ([ at(38095 + 300 * $_), 'checkpoint starting: time' ], [ at(38365 + 300 * $_), complete(200, 270) ]) } 0 .. 3));
my $switched = judge(lines(@old) . (lines(@new) =~ s/\[77\]/[99]/gr), '--max-wal-size', '1GB');
is(join(' ', map { $switched->{$_} } qw(status demand)), '0 ' . 200 * MB, 'the WAL of a standby before its promotion is no demand');

my $one = judge($mixed, '--pid', '77', '--max-wal-size', '4GB');
is("$one->{checkpoints} $one->{missing}", '6 0', '--pid chooses one of two servers');

$one = judge($mixed, '--pid', '77');
is("@{ $one->{assumed} }", 'max_wal_size checkpoint_timeout checkpoint_completion_target', 'which server has other settings is not known');

# Hostile: what statements, names, other fields and other processes say.
my $fake = "checkpoint complete: wrote 1 buffers (0.1%); 0 WAL file(s) added, 0 removed, 9 recycled; write=1.000 s, "
  . "sync=0.001 s, total=1.000 s; sync files=9, longest=0.010 s, average=0.002 s; distance=99999999 kB, estimate=99999999 kB";
my $now = clock(1700);
my @hostile = (
	"$now [5] LOG:  statement: SELECT 'LOG:  $fake'\n",
	"$now [5] LOG:  statement: SELECT 1 --:  checkpoint starting: wal\n",
	"$now [5] LOG:  $fake now\n",
	"$now [5] LOG:  statement: SELECT '\n\t$now [5] LOG:  $fake\n\tLOG:  $fake'\n",
	"$now [5] ERROR:  $fake\n$now [5] STATEMENT:  $fake\n$now [5] DETAIL:  $fake\n$now [5] CATALOG:  $fake\n",
	"$now [5] LOG:  checkpoint starting: wal ERROR:  syntax error\n",
	"$now [5] client backend LOG:  $fake\n",
	"$now [5] LOG:  parameter \"max_wal_size\" changed to \"1MB\" ERROR:  syntax error\n",
	"2025-02-03T00:28:20.1Z stderr F \t$now [5] LOG:  $fake\n",
	"build\t3\t2025-02-03T00:28:20.1Z \t$now [5] LOG:  $fake\n",
	"Feb  3 00:28:20 db1 postgres[5]: [7-2] #011LOG:  $fake\n",
	"$now,\"x\",\"y\",5,,67a0,5,,2025-02-03 00:00:00 UTC,,0,ERROR,42601,\"syntax error\",,,,,,\"SELECT '\n$now,,,5,,67a0,5,,2025-02-03 00:00:00 UTC,,0,LOG,00000,\"\"$fake\"\"\n$now [5] LOG:  $fake\n'\",,,\"\",\"client backend\",,0\n",
	"$now,\"x\",\"y\",5,,67a0,5,,2025-02-03 00:00:00 UTC,,0,LOG,00000,\"$fake\",,,,,,,,,\"\",\"client backend\",,0\n",
	"$now,\"x\",\"y\",5,,67a0,5,,2025-02-03 00:00:00 UTC,,0,LOG,00000,\"SELECT '.csv:$now,,,5,,67a0,5,,,,,LOG,00000,$fake'\",,,,,,,,,\"\",\"client backend\",,0\n",
	"{\"timestamp\":\"$now\",\"pid\":5,\"error_severity\":\"LOG\",\"message\":\"$fake\",\"backend_type\":\"client backend\"}\n",
	"{\"timestamp\":\"$now\",\"pid\":5,\"error_severity\":\"ERROR\",\"message\":\"x\",\"statement\":\"$now [5] LOG:  $fake\"}\n",
	"{\"timestamp\":\"$now\",\"log\":\"\\t$now [5] LOG:  $fake\"}\n",
	"$now [5] LOG:  statement: SELECT '{\"timestamp\":\"$now\",\"pid\":77,\"error_severity\":\"LOG\",\"message\":\"$fake\"}'\n",
	"$now [5] LOG:  statement: SELECT '\n\t{\"timestamp\":\"$now\",\"pid\":77,\"error_severity\":\"LOG\",\"message\":\"$fake\"}\n\t\"textPayload\": \"$now [77] LOG:  $fake\"'\n",
	"2025-02-03T00:28:20.1Z stderr F \t{\"timestamp\":\"$now\",\"pid\":77,\"error_severity\":\"LOG\",\"message\":\"$fake\"}\n",
	"Feb  3 00:28:20 db1 postgres[5]: [7-2] #011{\"timestamp\":\"$now\",\"pid\":77,\"error_severity\":\"LOG\",\"message\":\"$fake\"}\n",
	"$now [5] LOG:  execute checkpoint: SELECT 1%2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,99999999,99999999\n",
	"$now [5] LOG:  execute checkpoint: \n",
	"$now [5] LOG: statement: SELECT 'LOG: $fake\n", "$now [5] ERROR: $fake\n", "$now [5] ERROR: x LOG: $fake\n",
	"{\"timestamp\":\"$now\",\"level\":\"LOG\",\"backend_type\":\"client backend\",\"message\":\"$fake\"}\n",
	"{\"timestamp\":\"$now\",\"errorLevel\":\"LOG\",\"message\":\"duration: 1.0 ms  statement: SELECT 'LOG:  $fake\"}\n",
	"{\"timestamp\":\"$now\",\"errorLevel\":\"ERROR\",\"message\":\"$now [5] ERROR:  $fake\"}\n",
	"{\"log\":\"{\\\"log\\\":\\\"{\\\\\\\"log\\\\\\\":\n{{{{[[[\"\"\"\\u12\n",
	"$now [77] LOG:  $fake\0\n", "\0\0\xff\xfe\n", "LOG:  $fake\n", "[5] LOG:  $fake\n",
	"$now [5] LOG:  " . ('x' x 300_000) . ":  $fake\n",
	"9999-99-99 99:99:99 UTC [77] LOG:  $fake\n",
	"$now [77] LOG:  checkpoint complete: wrote 99999999999999999999 buffers (0.1%)\n");
foreach my $i (0 .. $#hostile)
{
	my @with = @lines;

	splice @with, 7, 0, $hostile[$i];
	is(figures(judge(join '', @with)), figures($plain), "hostile lines do not count: $i");
}

is(judge(join '', "$now [5] LOG:  statement: SELECT * FROM checkpoints WHERE id IN (28)\n", @lines)->{warnings}, 0,
	'a statement about checkpoints is no warning');

# ---- the command line, and a trace

foreach my $case (
	[ [], qr/--log needs files/ ],
	[ [ '--replay', 'x', 'y' ], qr/--log cannot be combined/ ],
	[ [ '--duration', '1s', 'y' ], qr/--log cannot be combined/ ],
	[ [ '--segment-size', '3MB', 'y' ], qr/no power of two/ ],
	[ ["$dir/none"], qr/could not open .*No such file/ ])
{
	($status, $out, $err) = watch_log(@{ $case->[0] });
	is($status, 2, "--log @{ $case->[0] }: the exit status is 2");
	like($err, $case->[1], "--log @{ $case->[0] }: the message says what is wrong");
}
IPC::Run::run([ 'walsizer-watch', '--max-wal-size', '1GB' ], '<', \undef, '>', \$out, '2>', \$err);
like($err, qr/needs --log/, 'an option for logs without --log is an error');
($status, $out, $err) = watch_log('--quiet', '--record', "$dir/log.trace", glob "$logs/01*");
is("$status$out$err", '1', 'a log can be recorded as a trace');
unlike(slurp_file("$dir/log.trace"), qr/LOG|checkpoint|postgres/, 'the trace has nothing else of the log');
IPC::Run::run([ 'walsizer-watch', '--replay', "$dir/log.trace", '--json' ], '>', \$out, '2>', \$err);
cmp_ok(abs(decoded($out)->{demand} / MB - 698), '<', 10, 'a replay finds the same demand');
cmp_ok(decoded($out)->{checkpoints_forced}, '>=', 7, 'a replay finds the forced checkpoints, by their distances');
is($err, '', 'a replay of that trace has no complaint');
($status, $out, $err) = watch_log('--quiet', '--record', "$dir/log.trace", glob "$logs/01*");
like($err, qr/exists already, and is not replaced/, 'a trace that exists is not replaced by that of a log');
write_file("$dir/changed.log", $text);
watch_log('--quiet', '--record', "$dir/changed.trace", "$dir/changed.log");
IPC::Run::run([ 'walsizer-watch', '--replay', "$dir/changed.trace", '--json' ], '>', \$out, '2>', \$err);
is(join(' ', map { decoded($out)->{$_} } qw(restarts max_wal_size)), '1 ' . 4096 * MB, 'the trace of a log has each of its stretches');

($status) = watch_log('--quiet', '--record', "$dir/idle.trace", glob "$logs/03*");
my ($longest) = sort { $b <=> $a } slurp_file("$dir/idle.trace") =~ /^wal 0\*(\d+)/mg;
cmp_ok($longest * 2.5, '<=', 300, 'equal samples are written every five minutes');

# ---- a server: the watch and three logs of the same load

# Half a segment is two seconds of the load: a checkpointer may be as late.  All of it
# is within a checkpoint_timeout, however slow the machine.
my $node = make_node('logs', segsize => 16, conf => <<'END');
checkpoint_timeout = 2min
max_wal_size = 64MB
min_wal_size = 32MB
walsizer.dry_run = on
logging_collector = on
log_destination = 'stderr,csvlog,jsonlog'
log_filename = 'server.log'
log_line_prefix = '%m [%p] %q%u@%d '
log_min_messages = warning
END
my ($watched, $complaints) = ('', '');
my $watch = IPC::Run::start([ 'walsizer-watch', '--interval', '100ms', '--json', '-d', $node->connstr('postgres') ],
	'<', \undef, '>', \$watched, '2>', \$complaints, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
wait_until('the watch has begun',
	sub { $watch->pump_nb; $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'walsizer-watch' AND query LIKE 'SELECT pg_is_in_recovery()%'") > 0 });
$node->safe_psql('postgres', 'CHECKPOINT');
my $before = status($node)->{checkpoints_forced};
# slow enough for the watch to tell one checkpoint from the next
my $load = start_load($node, 4);
wait_for($node, "checkpoints_forced >= $before + 3");
stop_load($load);
# a checkpoint may be under way: its end is to be seen before the last one
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for_sample($node);
my $end = $node->safe_psql('postgres', 'SELECT max(query_start) FROM pg_stat_activity WHERE application_name = $$walsizer-watch$$');
wait_until('the watch saw the last checkpoint',
	sub { $watch->pump_nb; $node->safe_psql('postgres', "SELECT max(query_start) > '$end' FROM pg_stat_activity WHERE application_name = 'walsizer-watch'") eq 't' });
$watch->signal('INT');
$watch->finish;
my $live = decoded($watched);
$node->stop('fast');
my $log_dir = $node->data_dir . '/log';
my %of;
foreach my $file ('server.log', 'server.csv', 'server.json')
{
	my $said = judge(slurp_file("$log_dir/$file"), '--segment-size', '16MB', '--checkpoint-timeout', '2min');

	$of{$file} = figures($said);
	note("$file: $of{$file}; watched: $live->{checkpoints_forced} $live->{checkpoints_other} $live->{demand}");
	is($said->{checkpoints_forced}, $live->{checkpoints_forced},
		"$file: the client counts as many forced checkpoints");
	is($said->{max_wal_size}, 64 * MB, "$file: max_wal_size is inferred");
	cmp_ok(abs($said->{demand_at_least} - $live->{demand}), '<=', 0.2 * $live->{demand},
		"$file: the client finds the same demand");
	cmp_ok(abs($said->{needed_size_at_least} - $live->{needed_size}), '<=', 0.2 * $live->{needed_size},
		"$file: the client finds the same size");
}
is($of{'server.csv'}, $of{'server.log'}, 'csvlog says the same as stderr');
is($of{'server.json'}, $of{'server.log'}, 'jsonlog says the same as stderr');

done_testing();
