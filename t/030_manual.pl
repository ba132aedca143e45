
# The manual is true: its examples run and have the outputs that are shown, its
# configurations load, its tables have the columns, settings and messages that
# there are, its links lead somewhere.  t/README.md says how blocks are marked.
#
# Each kind of check is first shown to fail where it has to.
#
# With WALSIZER_REFRESH_MANUAL=yes, outputs that are not right are written into the
# pages: see script/refresh-manual.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use CPAN::Meta::YAML;
use File::Basename qw(basename dirname);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerManual;
use WalsizerTest;

my $top   = "$FindBin::RealBin/..";
my @pages = ("$top/README.md", sort glob "$top/doc/*.md");
my %text  = map { $_ => slurp_file($_) } @pages;
my $servers = 0;

# ---- SQL

# What a mark says, or that the block is not for this version.
sub read_marks
{
	my ($node, @marks) = @_;
	my %mark = (skip => 0);

	foreach my $mark (@marks)
	{
		if    ($mark =~ /^error (.+)$/)    { $mark{error} = $1; }
		elsif ($mark =~ /^role (\w+)$/)    { $mark{role}  = $1; }
		elsif ($mark =~ /^first (.+)$/)    { push @{ $mark{first} }, $1; }
		elsif ($mark =~ /^from (\d+)$/)    { $mark{skip} ||= $node->pg_version < $1; }
		elsif ($mark =~ /^before (\d+)$/)  { $mark{skip} ||= $node->pg_version >= $1; }
		elsif ($mark !~ /^(?:anew|no output)$/) { die "not a mark: $mark" }
	}
	return %mark;
}

# Run a block as an administrator would; the status, what psql prints, and its
# errors.
sub run_sql
{
	my ($node, $block, $role) = @_;
	my ($stdout, $stderr);
	my @interactive = qw(-P format=aligned -P tuples_only=off -v QUIET=off);

	my $code = $node->psql('postgres', $block->{text}, stdout => \$stdout, stderr => \$stderr,
		extra_params => [ @interactive, $role ? ('-U', $role) : () ]);
	return ($code, $stdout, $stderr =~ s/^psql:<stdin>:\d+: //gmr);
}

# Run a block; what is wrong with it, or nothing.  Keeps what it printed.
sub complaint_of_sql
{
	my ($node, $block) = @_;
	my %mark = read_marks($node, @{ $block->{marks} });

	return '' if $mark{skip};
	$node->safe_psql('postgres', $_) foreach @{ $mark{first} };
	my ($code, $stdout, $stderr) = run_sql($node, $block, $mark{role});
	$block->{printed} = ("$stdout\n$stderr" =~ s/\h+$//gmr) =~ s/\n*\z/\n/r;
	$block->{printed} =~ s/^\n+//;
	if (defined $mark{error})
	{
		return index($stderr, $mark{error}) >= 0 ? '' : "no such error: $stderr";
	}
	return $code == 0 && $stderr !~ /ERROR|FATAL/ ? '' : "status $code: $stderr";
}

# Does the output that is shown differ from what the block has printed?
sub is_stale
{
	my ($block) = @_;
	return $block->{output} && defined $block->{printed}
	  && comparable($block->{output}{text}) ne comparable($block->{printed});
}

# Is there no output, although there are figures of walsizer's to show?
sub lacks_output
{
	my ($block) = @_;
	return $block->{text} =~ /\bFROM walsizer_/ && !$block->{output}
	  && !grep { $_ eq 'no output' } @{ $block->{marks} };
}

sub sql_block
{
	my ($sql, @marks) = @_;
	return { language => 'sql', text => $sql, marks => \@marks, line => 0 };
}

my $node = enter_scene();
is(complaint_of_sql($node, sql_block('SELECT 1;')), '', 'a right example has no complaint');
like(complaint_of_sql($node, sql_block('SELECT state FROM walsizer_state;')),
	qr/walsizer_state" does not exist/, 'a wrong example would be noticed');
like(complaint_of_sql($node, sql_block("SELECT 1;\nSELECT walsizer_bost();\nSELECT 1;")),
	qr/walsizer_bost/, 'a wrong statement in the middle of a block would be noticed');
like(complaint_of_sql($node, sql_block('SELECT 1;', 'error no such thing')),
	qr/no such error/, 'an error that does not come would be noticed');

# An example whose output is right for the server, on a page of its own; then
# the same page with something changed in the output.
my $example = <<'END';
Look:

```sql
SELECT action, outcome, pg_size_pretty(new_size) AS new, message FROM walsizer_history;
SELECT reason, explanation, boost_size FROM walsizer_status;
```

```text
END
my ($shown) = blocks($example . "```\n");
complaint_of_sql($node, $shown);
my $right = $example . $shown->{printed} . "```\n\nAnd so on.\n";

sub is_stale_if
{
	my ($changed) = @_;
	my ($block) = blocks($changed);

	die 'nothing was changed' if $changed eq $right;
	complaint_of_sql($node, $block);
	return is_stale($block);
}

ok(!is_stale_if($right =~ s/(\d+) MB/9$1 MB/r), 'an output may have other numbers');
ok(!is_stale_if($right =~ s/^-+\+-+/---+---/mr), 'an output may have other widths');
ok(is_stale_if($right =~ s/\boutcome\b(?=\s*\|)/result /r), 'a column with another name would be noticed');
ok(is_stale_if($right =~ s/^(\s*)action\s*\|/$1/mr), 'a column that is gone would be noticed');
ok(is_stale_if($right =~ s/value in effect suffices/value suffices/r), 'another message would be noticed');
ok(is_stale_if($right =~ s/\|\n\(/| 1 MB\n(/r), 'a value where there is none would be noticed');
ok(is_stale_if($right =~ s/^ raise.*\n//gmr), 'an output without its rows would be noticed');
ok(is_stale_if($example . "```\n"), 'an output that is empty would be noticed');
my ($silent) = blocks($example =~ s/^```text\n//mr);
ok(lacks_output($silent), 'an output that is missing would be noticed');
my $stale = $right =~ s/suffices/is fine/r;
my ($old) = blocks($stale);
is(with_outputs($stale, $old->{output}{line} => $shown->{printed}), $right,
	'a page gets an output, and keeps all else');
leave_scene($node);

my $refresh = ($ENV{WALSIZER_REFRESH_MANUAL} // '') eq 'yes';
my $outputs = 0;
foreach my $page (@pages)
{
	my @blocks = blocks_of($text{$page}, 'sql');
	my $name   = basename($page) eq 'README.md' ? $page =~ s/^\Q$top\E\///r : basename($page);
	my %fresh;

	next unless @blocks;
	$node = enter_scene();
	foreach my $block (@blocks)
	{
		if (grep { $_ eq 'anew' } @{ $block->{marks} })
		{
			leave_scene($node);
			$node = enter_scene();
		}
		is(complaint_of_sql($node, $block), '',
			"$name, line $block->{line}: the example runs as the page says");
		next unless $block->{output} && defined $block->{printed};
		$outputs++;
		if ($refresh)
		{
			$fresh{ $block->{output}{line} } = $block->{printed} if is_stale($block);
			next;
		}
		is(comparable($block->{output}{text}), comparable($block->{printed}),
			"$name, line $block->{line}: the output is right")
		  or diag("It is now:\n$block->{printed}");
	}
	if ($name eq 'install.md')
	{
		is(setting_mb($node), 1024, 'removed: the original value is in effect');
		note_is_removed($node, 'removed');
		unlike(auto_conf($node), qr/max_wal_size|walsizer/, "removed: walsizer's lines are removed");
	}
	leave_scene($node);
	write_file($page, with_outputs($text{$page}, %fresh)) if %fresh;
}
cmp_ok($outputs, '>=', 1, 'examples have outputs');

# ---- configurations

# Name and value of each line of a configuration.
sub settings_of
{
	my ($text) = @_;
	return $text =~ /^\s*([\w.]+)\s*=\s*('[^']*'|[^\s#]+)/mg;
}

# Start a server with this configuration; what is wrong with it, or nothing.
# Leaves the server running if nothing is.
sub complaint_of_conf
{
	my ($text) = @_;
	my %setting = settings_of($text);

	return 'it sets nothing' unless %setting;
	$node = make_node('conf' . ++$servers, start => 0, conf => "include 'manual.conf'\n");
	append_to_file($node->data_dir . '/manual.conf', $text);
	return 'the server does not start' unless $node->start(fail_ok => 1);
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS walsizer');

	my @missing = grep {
		$node->safe_psql('postgres',
			"SELECT count(*) FROM pg_settings WHERE name = '$_' AND sourcefile LIKE '%/manual.conf'") == 0
	} sort keys %setting;
	my $errors = $node->safe_psql('postgres',
		"SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL");
	return '' unless @missing || $errors;
	$node->stop;
	return "not in effect: @missing; errors: $errors";
}

# The settings that a manifest of Kubernetes or Patroni has, as a configuration.
sub conf_of_yaml
{
	my ($text) = @_;
	my @todo = @{ CPAN::Meta::YAML->read_string($text) };
	my $conf = '';

	while (my $map = shift @todo)
	{
		next unless ref $map eq 'HASH';
		push @todo, values %$map;
		$conf .= "shared_preload_libraries = '@{ $map->{shared_preload_libraries} }'\n"
		  if $map->{shared_preload_libraries};
		my %setting = ref $map->{parameters} eq 'HASH' ? %{ $map->{parameters} } : ();
		$conf .= "$_ = '$setting{$_}'\n" foreach sort keys %setting;
	}
	return $conf;
}

isnt(complaint_of_conf("walsizer.mx = 4GB\n"), '', 'a setting that does not exist would be noticed');
isnt(complaint_of_conf("walsizer.max = 4XB\n"), '', 'an invalid value of a setting would be noticed');
isnt(complaint_of_conf(conf_of_yaml("spec:\n  parameters:\n    walsizer.mox: 4GB\n")), '',
	'a setting of a manifest that does not exist would be noticed');

foreach my $page (@pages)
{
	foreach my $block (blocks($text{$page}))
	{
		my $conf = $block->{text};

		next unless $block->{language} =~ /^(ini|yaml)$/;
		$conf = conf_of_yaml($conf) if $1 eq 'yaml';
		next if $1 eq 'yaml' && $conf eq '';
		is(complaint_of_conf($conf), '', basename($page) .
			", line $block->{line}: the configuration is valid");
		$node->stop;
	}
}

# The sample sets nothing as it is: it would replace a list of libraries that is
# there.  What is commented out must be the defaults.
my $sample = slurp_file("$top/walsizer.conf");
is(complaint_of_conf($sample), 'it sets nothing', 'walsizer.conf sets nothing as it is');
is(complaint_of_conf($sample =~ s/^#(?=walsizer|shared_preload)//gmr), '',
	'walsizer.conf is valid with all settings');
is($node->safe_psql('postgres',
		"SELECT string_agg(name, ' ') FROM pg_settings WHERE name LIKE 'walsizer.%' AND "
		  . "(setting <> boot_val OR sourcefile IS NULL)"),
	'', 'walsizer.conf has all settings, with their defaults');

# ---- tables against the server

# The names in the first list after a heading: "* `name`, `name`: meaning".
sub columns_in
{
	my ($text, $object) = @_;
	my ($section) = $text =~ /^## \Q$object\E\n(.*?)(?=^## |\z)/ms or return '';
	my ($list) = $section =~ /^(\* .*?)\n\n/ms or return '';

	return join ' ', map { /`(\w+)`/g } $list =~ /^\* ((?:`\w+`(?:, )?)+): /mg;
}

my $views = $text{"$top/doc/views.md"};

my %columns = map { $_->[0] => $_->[1] } map { [ split / /, $_, 2 ] } split /;/, $node->safe_psql('postgres',
	"SELECT string_agg(c, ';') FROM (SELECT relname || ' ' || string_agg(attname, ' ' ORDER BY attnum) "
	  . "FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
	  . "WHERE relname LIKE 'walsizer%' AND relkind = 'v' AND attnum > 0 GROUP BY relname) AS v (c)");
my @acting = qw(walsizer_adjust walsizer_revert walsizer_boost walsizer_boost_end);
my $returned = $node->safe_psql('postgres',
	"SELECT DISTINCT string_agg(name, ' ' ORDER BY n) "
	  . "FROM pg_proc, unnest(proargnames, proargmodes) WITH ORDINALITY AS a (name, mode, n) "
	  . "WHERE proname IN ('" . join("', '", @acting) . "') AND mode = 'o' GROUP BY proname");
$columns{'Functions that act'} = $returned;

cmp_ok(scalar(keys %columns), '==', 9, 'there are eight views and the row that functions return');
foreach my $object (sort keys %columns)
{
	my $columns = $columns{$object};

	is(columns_in($views, $object), $columns, "views.md has the columns of $object");
	isnt(columns_in($views =~ s/^\* `\w+`(?:, |: )/* /gmr, $object), $columns,
		"a column of $object that is missing would be noticed");
}

# The functions behind the views are for no one to call.
my @members = ((grep { /^walsizer/ } keys %columns), split /\n/, $node->safe_psql('postgres',
	"SELECT DISTINCT proname FROM pg_proc WHERE proname LIKE 'walsizer%' AND proname NOT LIKE 'walsizer\\_get\\_%' ORDER BY 1"));
is(join(' ', grep { $text{"$top/doc/views.md"} !~ /\b$_\b/ } @members), '', 'all views and functions are in views.md');

my $settings = $node->safe_psql('postgres',
	"SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE name LIKE 'walsizer.%'");
is(join(' ', sort $text{"$top/doc/settings.md"} =~ /^### (walsizer\.\w+)$/mg), $settings,
	'settings.md has all settings');
my %default = $text{"$top/doc/settings.md"} =~ /^### (walsizer\.\w+)\n\nDefault: `(.+?)`/mg;
is(join(' ', sort keys %default), $settings, 'each setting has a default in settings.md');
$node->stop;
is(complaint_of_conf(join '', map { "$_ = '$default{$_}'\n" } sort keys %default), '',
	'the default values are valid');
is($node->safe_psql('postgres',
		"SELECT string_agg(name, ' ') FROM pg_settings WHERE name LIKE 'walsizer.%' AND setting <> boot_val"),
	'', 'the default values are true');
$node->stop;

# ---- messages

# All that the C code may say: its string constants of at least two words, and
# each name of policy/names.c and of what is returned as a text.  Details and
# hints, which are whole sentences, explain themselves.
sub messages_of
{
	my ($source, $all) = @_;
	my %message;

	$source =~ s{/\*.*?\*/}{}gs;
	$source =~ s/^#.*$//mg;
	$source =~ s/^const WalsizerInstruction .*?^\};//msg;    # the rows of walsizer_instructions
	$source =~ s/\bPG_AUTOCONF_FILENAME\b/"postgresql.auto.conf"/g;
	while ($source =~ /(return\s+)?((?:"(?:[^"\\]|\\.)*"\s*)+)/g)
	{
		my ($returned, $constants) = ($1, $2);
		my $message = join '', $constants =~ /"((?:[^"\\]|\\.)*)"/g;

		next if $message =~ /^ |\. ?$|\\n|'%lldMB'/;	# a part, a sentence, a line
		$message =~ s/\\"/"/g;
		$message =~ s/\$d(?=\$)//g;		# "at most", or nothing
		$message =~ s/%(?:lld|[dsm])|\$\w/.../g;
		next if $message =~ /%\S/;
		next unless $all || $returned || $message =~ /[a-z]{2}.* .*[a-z]{2}/;
		$message{$message} = 1 if $message =~ /[a-z]{2}/;
	}
	return sort keys %message;
}

sub missing_messages
{
	my ($page, @messages) = @_;
	return grep { index($page, "`$_`") < 0 } @messages;
}

my $troubleshooting = $text{"$top/doc/troubleshooting.md"};
my @messages;
foreach my $file (map { glob "$top/$_/*.[ch]" } qw(policy server sqlapi))
{
	my $source = slurp_file($file);

	$source =~ s{^const WalsizerInstruction .*?^\};}{}ms;	# what to write where explains itself
	push @messages, messages_of($source, $file =~ /\b(?:names|verdict)\.c$/);
}
# a memory context, settings; where a rate comes from and what a size is, see views.md; a part
@messages = grep { !/^(walsizer pass|walsizer\.\w+|configured|in effect|at most )$/ } @messages;

cmp_ok(scalar(@messages), '>=', 80, 'the test finds the messages in the sources');
is(join("\n", missing_messages($troubleshooting, @messages)), '',
	'each message has its place in troubleshooting.md');
is(join("\n", missing_messages($troubleshooting, messages_of('errmsg("out of %d " /* of */ "luck: %m")', 0))),
	'out of ... luck: ...', 'a message without a place would be noticed');

# The other way: the manual has no message that walsizer does not have.
sub unknown_messages
{
	my ($page, @known) = @_;
	my %known = map { $_ => 1 } @known;
	my @said;

	foreach my $heading ('Actions and reasons', 'Verdicts', 'Log messages')
	{
		my ($section) = $page =~ /^(## $heading\n.*?)(?=^## )/ms;

		push @said, $section =~ /^\* ((?:`[^`]+`(?: \*)?(?:, )?)+)/mg;
	}
	return grep { !$known{$_} } map { /`(.*?)`/g } @said;
}

is(join("\n", unknown_messages($troubleshooting, @messages)), '',
	'troubleshooting.md has only messages that the sources have');
is(join("\n", unknown_messages($troubleshooting, grep { !/^(?:not a valid line|sufficient)$/ } @messages)),
	"sufficient\nnot a valid line", 'a message that is gone would be noticed');

# ---- messages of walsizer-watch

# What it says and ends with; a text of another function takes its place in "...".
sub watch_messages_of
{
	my ($source) = @_;
	my %message;

	$source =~ s{/\*.*?\*/}{}gs;
	while ($source =~ /\b(?:watch_die|watch_complain|snprintf)\((?:why, size, )?((?:"(?:[^"\\]|\\.)*"\s*)+)/g)
	{
		my $message = join '', $1 =~ /"((?:[^"\\]|\\.)*)"/g;

		$message =~ s/\\"/"/g;
		$message =~ s/%(?:lld|\.\*s|g|[ds])(?:MB|ms)?/.../g;
		$message =~ s/\(\.\.\. \.\. \.\.\.\)/(...)/;
		$message{$message} = 1 if $message =~ /[a-z]{2}/;
	}
	return sort keys %message;
}

my @watch_messages = map { watch_messages_of(slurp_file($_)) } glob "$top/watch/*.c";
my $man    = slurp_file("$top/watch/walsizer-watch.1") =~ s/\\&//gr =~ s/\\-/-/gr;
my ($said) = $man =~ /^(\.SH MESSAGES\n.*?)^\.SH/ms;
my @said   = $said =~ /^\.TP\n(.*)$/mg;
my $before = $text{"$top/doc/before-you-install.md"};

sub missing_in_man
{
	my (@messages) = @_;
	my %said = map { $_ => 1 } @said;

	return grep { !$said{$_} } @messages;
}

cmp_ok(scalar(@watch_messages), '>=', 30, 'the test finds the messages of walsizer-watch');
is(join("\n", missing_in_man(@watch_messages)), '', 'each message has its place in walsizer-watch.1');
is(join("\n", missing_in_man(watch_messages_of('watch_die("no %s \"%s\"" /* of */ " at all", a, b)'))),
	'no ... "..." at all', 'a message without a place in walsizer-watch.1 would be noticed');
my %known_to_watch = map { $_ => 1 } @watch_messages, 'the server does not answer', '"..." is damaged in line ...: ...';
is(join("\n", grep { !$known_to_watch{$_} } @said), '',
	'the manual page has only messages that the client has');

# A page is what it prints; a line "..." of the example stands for lines that are left out.
sub is_excerpt
{
	my ($example, $printed) = @_;
	my $pattern = join '', map { $_ eq '...' ? '(?:.*\n)*?' : quotemeta($_) . '\n' } split /\n/, $example;

	return $printed =~ /\A$pattern\z/;
}

ok(is_excerpt("a\n...\nz\n", "a\nb\nc\nz\n"), 'lines may be left out');
ok(!is_excerpt("a\n...\nz\n", "a\nb\nc\n"), 'a line that is not printed would be noticed');
ok(!is_excerpt("a\nz\n", "a\nb\nz\n"), 'a line that is left out silently would be noticed');

# The examples are what it prints for a trace and a log of the tests.
foreach my $example ([ 'watch', '--replay', "$top/test/sim/traces/pgbench.trace" ],
	[ 'log', '--log', "$top/test/logs/01-course-pg16-1GB-30s.log" ])
{
	local $ENV{TZ} = 'UTC';
	my ($word, @arguments) = @$example;
	my ($shown)   = map { $_->{text} } grep { $_->{word} eq $word } blocks_of($before, 'text');
	my ($printed) = PostgreSQL::Test::Utils::run_command([ 'walsizer-watch', @arguments ]);

	ok(is_excerpt($shown, "$printed\n"), "the page of $word is what walsizer-watch prints")
	  or diag("It prints:\n$printed");
}

# So is the example of a trace.
my ($trace) = slurp_file("$top/test/sim/README.md") =~ /^((?:    .*\n)+)/m;
my $trace_file = PostgreSQL::Test::Utils::tempdir . '/example.trace';
append_to_file($trace_file, $trace =~ s/^    //mgr);
my (undef, $complaint) = PostgreSQL::Test::Utils::run_command([ 'walsizer-watch', '--replay', $trace_file, '--json' ]);
is($complaint, '', 'the example of a trace is a valid trace');

# Its options are in its manual page, and the other way round.
my ($help) = PostgreSQL::Test::Utils::run_command([ 'walsizer-watch', '--help' ]);
my %option = map { $_ => 1 } $help =~ /(--[a-z-]+)/g;
is(join(' ', grep { $man !~ /\Q$_\E\b/ } sort keys %option), '', 'all options are in the manual page');
is(join(' ', grep { !$option{$_} } $man =~ /^\.(?:BR?|BR \S+ ", ") (--[a-z-]+)/mg), '',
	'the manual page has only options that exist');

# ---- links

# What check-links says of the pages below a directory, or nothing if all is well.
sub broken_links
{
	my ($directory) = @_;
	my ($found, $error) =
	  PostgreSQL::Test::Utils::run_command([ "$top/script/lib/check-links", $directory ]);

	return "$found$error" =~ /\A[1-9]\d* links in \d+ pages, 0 broken\z/ ? '' : "$found$error";
}

my $pages = PostgreSQL::Test::Utils::tempdir_short . '/pages';
mkdir $pages;
append_to_file("$pages/a.md", "# On `a`\n\n[b](b.md), [again](b.md#b-and-c-1), [all](../pages)\n");
append_to_file("$pages/b.md", "## B and c\n\n## [B](a.md) and c\n\n[a](a.md#on-a) <img src=\"b.md\">\n");
is(broken_links($pages), '', 'links that lead somewhere are no complaint');
append_to_file("$pages/c.md", '[a](no.md) [b](b.md#no) [c](#d) [d](/etc/passwd) [e](..) [f](https:no)'
	  . " [g](https://example.org/) [h](b.md) <img src=\"no.svg\">\n[i]: no\n");
is(broken_links($pages),
	join('', map { "c.md: $_\n" } 'no.md', 'b.md#no', '#d', '/etc/passwd', '..', 'https:no', 'no', 'no.svg')
	  . '16 links in 3 pages, 8 broken',
	'a broken link would be noticed');
mkdir "$pages/none";
is(broken_links("$pages/none"), '0 links in 0 pages, 0 broken', 'a directory without a link would be noticed');

# All Markdown of the project, and what packages carry of it.
is(broken_links($top), '', 'no link of any Markdown file is broken');
my $manual = PostgreSQL::Test::Utils::tempdir_short . '/manual';
PostgreSQL::Test::Utils::system_or_bail('make', '-s', '-C', $top, '-f', 'dist.mk', 'manual',
	"MANUAL=$manual");
is(broken_links($manual), '', 'no link of the manual in packages is broken');

my $index = $text{"$top/README.md"};
is(join(' ', grep { $_ ne 'README.md' && $index !~ /\((?:doc\/)?\Q$_\E\)/ } map { basename($_) } @pages),
	'', 'the README has a link to each page');

# ---- nothing escapes

# Where the commands of a page are run; see the scripts themselves.  The page on
# benchmarks says how its figures came about.
my %run_by = ('install.md' => 'debian|install|purge|aside', 'monitoring.md' => '', 'where-it-runs.md' => '');
foreach my $page (@pages)
{
	my $name  = basename($page);
	my $words = $run_by{$name};
	my @lost  = grep {
		$_->{language} eq 'sh'
		  ? !defined $words || $_->{word} !~ /^(?:$words)$/
		  : $_->{language} !~ /^(sql|ini|yaml|text)$/
	} blocks($text{$page});

	is(join(' ', map { $_->{line} } @lost), '', "all examples of $name are tested somewhere")
	  unless $name eq 'benchmarks.md';
	# the README shows a choice of them
	is(join(' ', map { $_->{line} } grep { lacks_output($_) } blocks_of($text{$page}, 'sql')), '',
		"all figures of $name are shown")
	  unless $page eq "$top/README.md";
	is(join("\n", $text{$page} =~ /^    (?:SELECT|ALTER SYSTEM|CREATE|DROP|SHOW|SET) .*;$/mg), '',
		"all SQL of $name is in blocks that the test runs");
}

done_testing();
