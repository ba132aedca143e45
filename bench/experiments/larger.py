"""Transactions per second through a forced checkpoint, with data three times as
large as shared_buffers.

As experiment dip otherwise: pages are read and written all the time, and not by
checkpoints alone."""

from experiments import dip


def measure(bench):
    return dip.measure_variant(bench, dip.LARGER, bench.repeated(1, 1, 3))


tables = dip.tables
limits = dip.limits
PLOTS = {"larger": dip.draw}
