# "make dist": the archives for PGXN and for packages, of what is committed.  Name
# and version are those of META.json.  The bytes depend on the commit alone, not on
# the time zone and the settings of who makes them.

DIST_NAME = $(shell sed -n 's/^   "name": "\(.*\)",/\1/p' META.json)
DIST_VERSION = $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)
DIST_DIR = .

.PHONY: dist
dist:
	for format in zip tar.gz; do \
		TZ=UTC git -c tar.umask=022 archive --format $$format --prefix=$(DIST_NAME)-$(DIST_VERSION)/ \
			--output '$(DIST_DIR)/$(DIST_NAME)-$(DIST_VERSION)'.$$format HEAD || exit 1; \
	done

# "make -f dist.mk manual": the directory manual, as packages carry it.  It has
# all that its pages link to, which t/030_manual.pl and script/test-packages check.
MANUAL = manual

.PHONY: manual
manual:
	rm -rf '$(MANUAL)'
	mkdir '$(MANUAL)'
	cp -r --parents README.md CONTRIBUTING.md SECURITY.md LICENSE walsizer.conf size.sql timeout.sql \
		doc monitoring t/README.md test/README.md test/torture/results.md test/sim/README.md \
		bench/README.md bench/results/*.md bench/results/*.svg '$(MANUAL)'
