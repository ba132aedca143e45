"""The server's arithmetic, written down a second time.

Not taken from walsizer: what it arrives at is judged with these."""

import math

MB = 1024 * 1024


def checkpoint_segments(size_mb, segment, target):
    """CheckPointSegments, as CalculateCheckpointSegments() in xlog.c has it."""
    return max(1, int((size_mb // (segment // MB)) / (1.0 + target)))


def trigger_point(size_mb, segment, target):
    """Bytes of WAL from the start of the redo pointer's segment that force a
    checkpoint."""
    return checkpoint_segments(size_mb, segment, target) * segment


def size_for(wal, segment, target):
    """The smallest max_wal_size (MB) that never forces a checkpoint for so
    many bytes of WAL between two redo pointers, wherever the first one lies."""
    needed = math.ceil(wal / segment) + 1
    size = max(2, math.floor(needed * (1.0 + target)))
    segment_mb = segment // MB
    while checkpoint_segments(size * segment_mb, segment, target) < needed:
        size += 1
    return size * segment_mb
