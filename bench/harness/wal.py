"""What follows from sampled WAL positions: rows of (time, LSN, ..., max_wal_size), in
order.  Times in seconds, LSNs in bytes, sizes in MB; between two rows WAL is written
evenly."""

import bisect

from harness import model


def lsn_at(rows, at):
    """None outside of the rows."""
    i = bisect.bisect_right(rows, at, key=lambda row: row[0])
    if not 0 < i < len(rows):
        return None
    (before, lsn, *_), (after, lsn_after, *_) = rows[i - 1:i + 1]
    return lsn + (lsn_after - lsn) * (at - before) / (after - before)


def time_of(rows, lsn):
    """When WAL came to a position; None if it did not."""
    i = bisect.bisect_left(rows, lsn, key=lambda row: row[1])
    if i == len(rows):
        return None
    if i == 0:
        return rows[0][0]
    (before, low, *_), (after, high, *_) = rows[i - 1:i + 1]
    return before + (after - before) * (lsn - low) / (high - low)


def size_at(rows, at):
    """max_wal_size, of the last row until then."""
    return rows[max(0, bisect.bisect_right(rows, at, key=lambda row: row[0]) - 1)][-1]


def trailing(rows, seconds):
    """(time, WAL in so many seconds before it), for all rows that have as many before."""
    for at, lsn, *_ in rows:
        before = lsn_at(rows, at - seconds)
        if before is not None:
            yield at, lsn - before


def leading(rows, seconds):
    """(time, WAL in so many seconds after it), likewise."""
    for at, lsn, *_ in rows:
        after = lsn_at(rows, at + seconds)
        if after is not None:
            yield at, after - lsn


def largest_window(rows, seconds):
    """The most WAL in so many seconds, wherever they lie: that is where they begin or end
    at a row.  0 if there are not so many."""
    return max((wal for windows in (trailing, leading) for _, wal in windows(rows, seconds)),
               default=0)


def checkpoints(rows, size, segment, target, timeout):
    """(time, cause) of the checkpoints that the same WAL would have started at a constant
    max_wal_size, after one at the first row."""
    began, redo = rows[0][:2]
    found = []
    while True:
        limit = redo // segment * segment + model.trigger_point(size, segment, target)
        at, cause = time_of(rows, limit), "forced"
        if at is None or at > began + timeout:
            at, cause = began + timeout, "timed"
        redo = limit if cause == "forced" else lsn_at(rows, at)
        if redo is None:
            return found
        began = at
        found.append((at, cause))


def saw_tooth(rows, starts, began, ended):
    """(second from began, MB of WAL since the last checkpoint began, max_wal_size), for each
    row, and just before and just after each checkpoint began.  The log tells when one begins
    as soon as it does; the control file only when the checkpoint has ended."""
    starts = [at for at in starts if lsn_at(rows, at) is not None]
    moments = [(at, at) for at in [began, *(row[0] for row in rows), ended]]
    for before, at in zip(starts, starts[1:]):
        moments += [(at, before), (at, at)]
    found = []
    for at, since in sorted(moments):
        since = max((start for start in starts if start <= since), default=None)
        lsn = lsn_at(rows, at)
        if began <= at <= ended and None not in (since, lsn):
            found.append((round(at - began, 2), round((lsn - lsn_at(rows, since)) / model.MB, 1),
                          size_at(rows, at)))
    return found
