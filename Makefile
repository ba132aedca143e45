# walsizer: sizes max_wal_size so that checkpoints are timed, not forced by WAL volume

MODULE_big = walsizer
OBJS = \
	walsizer.o \
	$(patsubst %.c,%.o,$(sort $(wildcard $(addsuffix /*.c,policy server sqlapi))))
PGFILEDESC = "walsizer - sizes max_wal_size so that checkpoints are timed, not forced"

EXTENSION = walsizer
DATA = walsizer--1.0.sql

# A server of its own: the library must be preloaded, and nobody's running
# server is to be touched by "make installcheck".
REGRESS = walsizer
REGRESS_OPTS = --temp-instance=./tmp_regress \
	--temp-config=$(CURDIR)/test/regress.conf
TAP_TESTS = 1

EXTRA_CLEAN = tmp_regress

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
include dist.mk

# The policy knows no server: its tests are ordinary programs.
.PHONY: check-unit check-fuzz
check-unit check-fuzz:
	$(MAKE) -C test $@

clean: clean-test
.PHONY: clean-test
clean-test:
	$(MAKE) -C test clean
