"""Transactions per second through a forced checkpoint, with data three times as
large as shared_buffers.

As experiment dip otherwise: pages are read and written all the time, and not by
checkpoints alone."""

from experiments import dip


def measure(bench):
    yield from dip.measure_variant(bench, dip.LARGER)


tables = dip.tables
limits = dip.limits
PLOTS = {"larger": dip.draw}
