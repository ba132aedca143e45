# "make dist": the archive for PGXN, and what packages are built from.  It
# holds what is committed, and takes name and version from META.json.

DIST_NAME = $(shell sed -n 's/^   "name": "\(.*\)",/\1/p' META.json)
DIST_VERSION = $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)

.PHONY: dist
dist:
	git archive --format zip --prefix=$(DIST_NAME)-$(DIST_VERSION)/ \
		--output $(DIST_NAME)-$(DIST_VERSION).zip HEAD

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
