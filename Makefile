# walsizer: sizes max_wal_size so that checkpoints are timed, not forced by WAL volume

MODULE_big = walsizer
OBJS = \
	walsizer.o \
	policy/arithmetic.o \
	policy/demand.o \
	policy/lastresort.o \
	policy/limits.o \
	policy/names.o \
	policy/observe.o \
	policy/owner.o \
	policy/recovery.o \
	policy/rules.o \
	policy/step.o \
	policy/verdict.o \
	policy/whatif.o \
	server/act.o \
	server/config.o \
	server/sample.o \
	server/settings.o \
	server/shmem.o \
	server/start.o \
	server/statefile.o \
	server/statetext.o \
	server/worker.o \
	sqlapi/functions.o \
	sqlapi/views.o
PGFILEDESC = "walsizer - sizes max_wal_size so that checkpoints are timed, not forced"

EXTENSION = walsizer
DATA = walsizer--1.0.sql

# A server of its own: the library must be preloaded, and nobody's running
# server is to be touched by "make installcheck".
REGRESS = walsizer
REGRESS_OPTS = --temp-instance=./tmp_regress \
	--temp-config=$(CURDIR)/test/regress.conf
TAP_TESTS = 1

EXTRA_CLEAN = tmp_regress manual

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
include dist.mk

# The client program, which has a Makefile of its own: PGXS builds a module or a
# program, not both.  WATCH=no leaves it out, for packages that have it apart.
ifneq ($(WATCH),no)
all: watch-all
install: watch-install
uninstall: watch-uninstall
clean: watch-clean
endif
.PHONY: watch-all watch-install watch-uninstall watch-clean
watch-all watch-install watch-uninstall watch-clean: watch-%:
	$(MAKE) -C watch $* CC='$(CC)' CFLAGS='$(CFLAGS)' LDFLAGS='$(LDFLAGS)' COPT= \
		PG_CONFIG='$(PG_CONFIG)' DESTDIR='$(DESTDIR)' bindir='$(bindir)' mandir='$(mandir)'
# two of them must not build at a time, as in "make -j install"
watch-install: watch-all

# The policy knows no server: its tests are ordinary programs.
.PHONY: check-unit check-coverage check-fuzz
check-unit check-coverage check-fuzz:
	$(MAKE) -C test $@

clean: clean-test
.PHONY: clean-test
clean-test:
	$(MAKE) -C test clean
