# "make dist": the archive for PGXN, and what packages are built from.  It
# holds what is committed, and takes name and version from META.json.

DIST_NAME = $(shell sed -n 's/^   "name": "\(.*\)",/\1/p' META.json)
DIST_VERSION = $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)

.PHONY: dist
dist:
	git archive --format zip --prefix=$(DIST_NAME)-$(DIST_VERSION)/ \
		--output $(DIST_NAME)-$(DIST_VERSION).zip HEAD
