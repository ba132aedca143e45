
# What t/030_manual.pl needs to read the manual, and to run its examples: blocks
# of a page, the server of the examples, and their outputs.

package WalsizerManual;

use strict;
use warnings;

use Exporter 'import';
use File::Path qw(rmtree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use WalsizerTest;

our @EXPORT = qw(
  blocks blocks_of prose
  comparable with_outputs
  enter_scene leave_scene
);

# ---- reading a page

# The fenced blocks of a page: { language, word, marks, line, indent, text }; and
# output, the block of text that follows a block of SQL with nothing in between.
sub blocks
{
	my ($text) = @_;
	my (@blocks, @marks, $block, $example);
	my $number = 0;

	foreach my $line (split /\n/, $text)
	{
		$number++;
		if ($block && $line =~ /^\s*```\s*$/)
		{
			push @blocks, $block;
			$example->{output} = $block if $example && $block->{language} eq 'text';
			$example = $block->{language} eq 'sql' ? $block : undef;
			($block, @marks) = ();
		}
		elsif ($block)
		{
			$block->{text} .= ($line =~ s/^$block->{indent}//r) . "\n";
		}
		elsif ($line =~ /^(\s*)```(\w+)\s*(.*?)\s*$/)
		{
			$block = { indent => $1, language => $2, word => $3,
				marks => [@marks], line => $number, text => '' };
		}
		elsif ($line =~ /^\s*<!-- test: (.*?) -->\s*$/) { push @marks, $1; }
		else
		{
			@marks = ();
			$example = undef if $line =~ /\S/;
		}
	}
	die "a block has no end" if $block;
	return @blocks;
}

sub blocks_of
{
	my ($text, $language) = @_;
	return grep { $_->{language} eq $language } blocks($text);
}

# A page without what is set as code, for headings and links.
sub prose
{
	my ($text) = @_;
	return ($text =~ s/^\s*```.*?^\s*```\s*$//gmsr) =~ s/^    .*$//gmr;
}

# ---- outputs

# What two outputs of an example have in common if nothing is wrong: columns,
# words, and where there is a value at all; but no numbers, times and units, no
# widths and line ends, which depend on them, and of rows that are alike only one.
sub comparable
{
	my ($output) = @_;
	my @lines;

	foreach my $line (split /\n/, $output)
	{
		$line =~ s/#[#|\] ]*/# /;    # a bar of walsizer_report()
		$line =~ s/\d+(?:[.:]\d+)*/N/g;
		$line =~ s/\bN (?:bytes|kB|MB|GB)\b/N B/g;
		$line =~ s/\(N rows?\)/(N rows)/;
		$line =~ s/-+/-/g;
		$line =~ s/\s+/ /g;
		$line =~ s/^ | $//g;
		push @lines, $line unless @lines && $lines[-1] eq $line;
	}
	return join ' ', @lines;
}

# The page with these outputs, by the line at which the block of output begins.
sub with_outputs
{
	my ($text, %output) = @_;
	my ($number, $indent, $replacing) = (0);
	my $page = '';

	foreach my $line (split /\n/, $text)
	{
		$number++;
		$replacing = 0 if $replacing && $line =~ /^\s*```/;
		$page .= "$line\n" unless $replacing;
		next unless defined $output{$number};
		($indent) = $line =~ /^(\s*)/;
		$page .= $output{$number} =~ s/^(?=.)/$indent/gmr;
		$replacing = 1;
	}
	return $page;
}

# ---- the scene

my $scene;
my @peaks;
my $entered = 0;
my %load_on;

# The server of the examples began with PostgreSQL's defaults and with
# walsizer.dry_run.  A load forced a checkpoint, dry run was turned off, and
# walsizer raised.  With a checkpoint_timeout of 30 s, which was soon over,
# forced_after is known.  Other hours are not waited for: the state file is told of their
# demand.  No WAL file is kept or filled beforehand: copies are cheap.
sub make_scene
{
	$scene = make_node('scene', segsize => 16, conf => <<'END');
checkpoint_timeout = 5min
max_wal_size = 1GB
min_wal_size = 1GB
wal_init_zero = off
wal_recycle = off
timezone = 'UTC'
walsizer.max = 2GB
walsizer.max_disk_percent = 90
walsizer.predict = off
walsizer.dry_run = on
END
	write_wal($scene, 610);
	wait_for($scene, 'checkpoints_forced > 0');
	adjust($scene);
	set_conf($scene, "walsizer.dry_run = off\n");
	adjust($scene);
	set_conf($scene, "checkpoint_timeout = 30s\n");
	$scene->poll_query_until('postgres',
		'SELECT forced_after IS NOT NULL FROM walsizer_history ORDER BY id DESC LIMIT 1')
	  or die 'walsizer does not say how many checkpoints were forced after its raise';

	my $most = last_event($scene)->{demand} / MB;
	@peaks = ($most, map { $_ * $most } 0.62, 0.17, 0.71);
	@peaks = map { int($_ * MB) / MB } @peaks;
	$scene->safe_psql('postgres', 'CHECKPOINT');
	$scene->stop;
	$scene->append_conf('postgresql.conf', <<'END');
checkpoint_timeout = 5min
wal_recycle = on
walsizer.predict = on
END
	$scene->backup_fs_cold('scene');
	rmtree($scene->data_dir);
	return;
}

# A server like that, in the middle of a checkpoint_timeout, under a light load.
# With longer intervals the recent rate is that of some seconds: it is not zero
# if the machine stalls for one.
sub enter_scene
{
	make_scene() unless $scene;
	my $node = PostgreSQL::Test::Cluster->new('page' . ++$entered);

	$node->init_from_backup($scene, 'scene');
	remember_peaks($node, @peaks);
	$node->start;
	wait_for_worker($node);
	write_wal($node, 90);
	$load_on{ $node->name } = start_load($node, 0.5);
	wait_for($node, 'time_to_forced > time_to_timed');
	set_conf($node, "walsizer.sample_interval = 1s\n");
	return $node;
}

sub leave_scene
{
	my ($node) = @_;

	stop_load(delete $load_on{ $node->name });
	$node->stop;
	$node->clean_node;
	return;
}

1;
