
# Versions: all files agree on it, the interface of 1.0 is what it was when it was
# released, the objects of an updated extension are those of a new one, and a library of
# another version than the SQL objects gives an error and no harm.

use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;

use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use WalsizerTest;

my $top = "$FindBin::RealBin/..";

# ---- META.json has the version, and says whether it is released

my $meta = JSON::PP::decode_json(slurp_file("$top/META.json"));
my %version_in = (
	'walsizer.control' => qr/^default_version = '(.*)'$/m,
	'Makefile' => qr/^DATA = .*--(\S+)\.sql$/m,
	'debian/changelog' => qr/\Awalsizer \((\S+)-\d+\)/,
	'rpm/walsizer.spec' => qr/^Version: +(\S+)$/m,
	'CHANGELOG.md' => qr/^## (\S+)/m,
	'server/compat.h' => qr/^#define WALSIZER_VERSION\s+"(.*)"$/m,
	'watch/watch.h' => qr/^#define WATCH_VERSION\s+"(.*)"$/m,
	'watch/walsizer-watch.1' => qr/^\.TH .*"walsizer (\S+)"/m);

like($meta->{version}, qr/^\d+\.\d+\.\d+$/, 'META.json has a semantic version');
foreach my $file (sort keys %version_in)
{
	my ($version) = slurp_file("$top/$file") =~ $version_in{$file};
	like($meta->{version}, qr/^\Q$version\E(?:\.\d+)?$/, "$file has the version of META.json");
}
# two releases must not share memory that is laid out differently
like(slurp_file("$top/server/compat.h"), qr/^#define WALSIZER_VERSION\s+"\Q$meta->{version}\E"$/m, 'the name of shared memory has the whole version');
is(!!($meta->{release_status} eq 'stable'), !!(slurp_file("$top/$_->[0]") !~ $_->[1]), "$_->[0] agrees on whether it is released")
  foreach ['CHANGELOG.md', qr/\(unreleased\)/], ['debian/changelog', qr/\A.* UNRELEASED;/],
  ['README.md', qr/is not released/], ['SECURITY.md', qr/no release yet/];

# What PGXN requires.
ok($meta->{$_}, "META.json has $_") foreach qw(name version abstract maintainer license provides meta-spec);
my $provided = $meta->{provides}{walsizer};
is($provided->{version}, $meta->{version}, 'META.json has the same version twice');
ok(-e "$top/$provided->{$_}", "META.json names an existing $_") foreach qw(file docfile);

# ---- upgrades

my $node = make_node('upgrade');

wait_for_worker($node);
$node->safe_psql('postgres', 'DROP EXTENSION walsizer');

# All members of the extension, with definition, owner and privileges.
my $members = <<'END';
SELECT pg_describe_object(d.classid, d.objid, 0),
       CASE d.classid WHEN 'pg_proc'::regclass THEN pg_get_functiondef(d.objid)
                      WHEN 'pg_class'::regclass THEN pg_get_viewdef(d.objid) END,
       obj_description(d.objid, (SELECT relname FROM pg_class WHERE oid = d.classid)),
       (SELECT string_agg(col_description(d.objid, attnum), ' ' ORDER BY attnum) FROM pg_attribute
        WHERE d.classid = 'pg_class'::regclass AND attrelid = d.objid AND attnum > 0),
       coalesce(p.proacl::text, c.relacl::text)
FROM pg_depend d
     LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
     LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'walsizer')
ORDER BY 1
END

sub members_of
{
	my ($create) = @_;
	return $node->safe_psql('postgres', "BEGIN; $create; $members; ROLLBACK");
}

sub compare_updates
{
	my ($what) = @_;
	my $new = members_of('CREATE EXTENSION walsizer');
	my @old = split /\n/, $node->safe_psql('postgres',
		"SELECT v.version FROM pg_available_extension_versions v
		   JOIN pg_available_extensions e ON e.name = v.name
		 WHERE v.name = 'walsizer' AND v.version <> e.default_version");

	like($new, qr/function walsizer_get_status/, "$what: a new extension has its objects");
	foreach my $version (@old)
	{
		is(members_of("CREATE EXTENSION walsizer VERSION '$version'; ALTER EXTENSION walsizer UPDATE"),
			$new, "$what: an extension that is updated from $version has the same objects");
	}
	return scalar @old;
}

compare_updates('as installed');

# ---- the interface of 1.0: sql/catalogue-1.0.txt, which does not change any more

my $interface = <<'END';
WITH member AS (
  SELECT classid, objid FROM pg_depend
   WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
     AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'walsizer')
), line (text) AS (
  SELECT format('function %s(%s) returns %s, volatile %s, strict %s, parallel %s, definer %s%s',
           proname, pg_get_function_arguments(oid), pg_get_function_result(oid),
           provolatile, proisstrict, proparallel, prosecdef, ', symbol ' || CASE WHEN probin IS NOT NULL THEN prosrc END)
    FROM member JOIN pg_proc ON classid = 'pg_proc'::regclass AND oid = objid
  UNION ALL
  SELECT format('column %s.%s, number %s, %s', relname, attname, attnum, format_type(atttypid, atttypmod))
    FROM member JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
    JOIN pg_attribute ON attrelid = c.oid AND attnum > 0
  UNION ALL
  SELECT format('grant %s on %s to %s', privilege_type, name, coalesce(nullif(grantee, 0)::regrole::text, 'PUBLIC'))
    FROM (SELECT proname, proowner, coalesce(proacl, acldefault('f', proowner))
            FROM member JOIN pg_proc ON classid = 'pg_proc'::regclass AND oid = objid
           UNION ALL
          SELECT relname, relowner, coalesce(relacl, acldefault('r', relowner))
            FROM member JOIN pg_class ON classid = 'pg_class'::regclass AND oid = objid) AS o (name, owner, acl),
         aclexplode(acl)
   WHERE grantee <> owner
  UNION ALL
  SELECT concat('setting ', name, ', ', vartype, ', unit ' || unit, ', default ', quote_literal(boot_val),
           ', from ' || min_val || ' to ' || max_val, ', values ' || enumvals::text, ', context ', context)
    FROM pg_settings WHERE name LIKE 'walsizer.%'
)
SELECT text FROM line ORDER BY text COLLATE "C"
END

# The lines that 1.0 has not, and those that it should have and that are missing.
sub differences
{
	my ($create) = @_;
	my %released = map { $_ => 1 } split /\n/, slurp_file("$top/sql/catalogue-1.0.txt");
	my @found = split /\n/, $node->safe_psql('postgres', "BEGIN; $create; $interface; ROLLBACK");
	my @added = grep { !delete $released{$_} } @found;

	return join("\n", (map { "+$_" } @added), (map { "-$_" } sort keys %released));
}

is(differences("CREATE EXTENSION walsizer VERSION '1.0'"), '', 'the interface of 1.0 is that of sql/catalogue-1.0.txt');
is(differences("CREATE EXTENSION walsizer VERSION '1.0'; GRANT SELECT ON walsizer_status TO PUBLIC"),
	'+grant SELECT on walsizer_status to PUBLIC', 'a difference is noticed');

# The mechanism, with a version that does not exist yet, found in a directory
# of the test's own; then with a mistake in one of its scripts.
SKIP:
{
	skip 'needs PostgreSQL 18 or later', 6 if $node->pg_version < 18;

	my $dir   = PostgreSQL::Test::Utils::tempdir . '/extension';
	my $old   = slurp_file("$top/walsizer--1.0.sql");
	my $added = <<'END';
CREATE FUNCTION walsizer_added() RETURNS integer LANGUAGE sql AS 'SELECT 1';
REVOKE ALL ON FUNCTION walsizer_added() FROM PUBLIC;
COMMENT ON FUNCTION walsizer_added() IS 'added';
END
	mkdir $dir;
	write_file("$dir/walsizer.control",
		slurp_file("$top/walsizer.control") =~ s/default_version = '.*'/default_version = '1.1'/r);
	write_file("$dir/walsizer--1.0.sql", $old);
	write_file("$dir/walsizer--1.0--1.1.sql", $added);
	write_file("$dir/walsizer--1.1.sql", $old . $added);
	set_conf($node, "extension_control_path = '" . ($dir =~ s/\/extension$//r) . "'\n");

	is(compare_updates('with a newer version'), 1, 'there is a version to update from');
	like(differences("CREATE EXTENSION walsizer VERSION '1.0'; ALTER EXTENSION walsizer UPDATE"),
		qr/\A\+function walsizer_added\(\)[^\n]*\z/, 'the update keeps the interface of 1.0, and adds to it');

	write_file("$dir/walsizer--1.1.sql", $old . $added =~ s/^REVOKE.*$//mr);
	isnt(members_of("CREATE EXTENSION walsizer VERSION '1.0'; ALTER EXTENSION walsizer UPDATE"),
		members_of('CREATE EXTENSION walsizer'), 'a forgotten privilege is noticed');
	is($node->safe_psql('postgres',
			"BEGIN; CREATE EXTENSION walsizer VERSION '1.0'; SELECT state FROM walsizer_status; ROLLBACK"),
		'active', 'the older objects work');
}

# The functions that return rows, declared by mistake with more columns and with
# fewer.  Without a row there is no error: see that each has one.
$node->safe_psql('postgres', 'CREATE EXTENSION walsizer');
write_wal($node, 8);
wait_for($node, 'EXISTS (SELECT FROM walsizer_history) AND EXISTS (SELECT FROM walsizer_demand)');
foreach my $function (qw(walsizer_get_status walsizer_get_stats walsizer_get_history walsizer_get_demand
	walsizer_get_advice walsizer_get_timeout_advice walsizer_adjust walsizer_revert walsizer_boost_end))
{
	my $columns = $node->safe_psql('postgres',
		"SELECT string_agg(format('OUT %I %s', name, format_type(type, NULL)), ', ' ORDER BY n)
		   FROM pg_proc, unnest(proargnames, proallargtypes) WITH ORDINALITY AS a (name, type, n)
		  WHERE proname = '$function'");
	my ($set, $symbol) = split /\|/, $node->safe_psql('postgres',
		"SELECT CASE WHEN proretset THEN 'SETOF' ELSE '' END, prosrc FROM pg_proc WHERE proname = '$function'");

	my @others = ("$columns, OUT added text, OUT more text");

	# with a single column it would be no row
	push @others, $columns =~ s/, OUT \w+ [\w ]+$//r if $columns =~ /,.*,/;
	foreach my $other (@others)
	{
		my ($code, $stdout, $stderr) = $node->psql('postgres', <<END);
CREATE FUNCTION another($other) RETURNS $set record
AS '\$libdir/walsizer', '$symbol' LANGUAGE C;
SELECT * FROM another();
END
		like($stderr, qr/ERROR:  function returns \d+ columns, but is declared with \d+$/m,
			"$function with other columns is an error");
		$node->safe_psql('postgres', 'DROP FUNCTION another');
	}
}

# The objects of a newer version, before the restart that brings its library.
my ($code, $stdout, $stderr) = $node->psql('postgres', <<'END');
CREATE FUNCTION newer(OUT state text) AS '$libdir/walsizer', 'walsizer_get_status_9_9' LANGUAGE C;
END
like($stderr, qr/ERROR:  could not find function "walsizer_get_status_9_9"/,
	'a function of a newer version is an error');
is(status($node)->{state}, 'active', 'the worker is still active');

$node->stop;
done_testing();
