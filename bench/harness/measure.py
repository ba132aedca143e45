"""One measurement: a server, a load, and what came of it."""

import time

from harness import model, server as servers, watch

TIMEOUT = 30  # checkpoint_timeout, s
TARGET = 0.9  # checkpoint_completion_target, the server's default
SEGMENT = 16 * model.MB
ENOUGH_BUFFERS = 1000  # fewer are written before time could pace them
REACHING = 2  # seconds that a raise may take to reach all sessions


class Run:
    """What a load is given: the server, and a way to name its parts."""

    def __init__(self, server, time_factor):
        self.server = server
        self.time_factor = time_factor
        self.phases = []
        self.notes = {}

    def seconds(self, seconds):
        return max(1, round(seconds * self.time_factor))

    def phase(self, name):
        return Phase(self, name)

    def sleep(self, seconds):
        time.sleep(self.seconds(seconds))


class Phase:
    def __init__(self, run, name):
        self.run, self.name, self.began = run, name, None

    def __enter__(self):
        self.began = time.time()

    def __exit__(self, *_):
        self.run.phases.append((self.name, self.began, time.time()))


class Measured:
    """The figures of one run.  Everything in it goes to the results."""

    def __init__(self, run, series, log, history, start_mb):
        self.checkpoints, self.changes = log
        self.phases = run.phases
        self.notes = run.notes
        self.history = history
        self.series = series.rows
        self.start_mb = start_mb
        self.final_mb = self.series[-1][3]
        self.wal_mb = (self.series[-1][1] - self.series[0][1]) // model.MB
        self.seconds = round(self.series[-1][0] - self.series[0][0])

        sizes = [start_mb] + [size for _, size in self.changes]
        self.raises = sum(new > old for old, new in zip(sizes, sizes[1:]))
        self.lowers = sum(new < old for old, new in zip(sizes, sizes[1:]))
        self.raises_recorded = sum(row["action"] == "raise" for row in history)
        self.lowers_recorded = sum(row["action"] == "lower" for row in history)
        self._place_forced()
        self._find_demand(series)
        self._find_pace(series)
        self.worker_cpu = self.worker_wakeups = None

    def _place_forced(self):
        """Forced checkpoints before the first raise was in effect, while it
        reached all sessions, and after."""
        raised = [at for (at, new), old in zip(self.changes, [self.start_mb] + [
            size for _, size in self.changes]) if new > old]
        first = raised[0] if raised else float("inf")
        starts = [c.at for c in self.checkpoints if c.cause == "forced"]
        self.first_raise = raised[0] if raised else None
        self.forced = len(starts)
        self.timed = sum(c.cause == "timed" for c in self.checkpoints)
        self.other = sum(c.cause == "other" for c in self.checkpoints)
        self.forced_before = sum(at < first for at in starts)
        self.forced_within = sum(first <= at < first + REACHING for at in starts)
        self.forced_after = sum(at >= first + REACHING for at in starts)

    def _find_demand(self, series):
        """W of the clean load: the most WAL between two timed redo pointers of
        which the first came after the last change; the log has the distance to
        the kB.  Where no two such came, the largest trailing window.  What is
        written while nobody acts on forced checkpoints is no clean load."""
        since = self.changes[-1][0] if self.changes else 0
        clean = [new.distance for old, new in zip(self.checkpoints, self.checkpoints[1:])
                 if old.cause == new.cause == "timed" and old.at >= since and new.distance]
        self.demand_from = "timed redo pointers" if clean else "trailing windows"
        self.demand = max(clean) if clean else series.largest_window(TIMEOUT, since)
        known = self.demand > 0 and (self.changes or not self.forced)
        self.needed_mb = model.size_for(self.demand, SEGMENT, TARGET) if known else None
        self.ratio = self.final_mb / self.needed_mb if self.needed_mb else None
        self.window_demand = series.largest_window(TIMEOUT, 0)

    def _size_at(self, at):
        return [self.start_mb, *(size for moment, size in self.changes if moment <= at)][-1]

    def _find_pace(self, series):
        """For each timed checkpoint that had enough to write, the share of its
        writing that time paced, and the smallest after the last change."""
        for checkpoint in self.checkpoints:
            if checkpoint.cause == "timed" and (checkpoint.buffers or 0) >= ENOUGH_BUFFERS:
                checkpoint.paced = paced_by_time(checkpoint, series, self._size_at)
        since = self.changes[-1][0] if self.changes else 0
        shares = [c.paced for c in self.checkpoints if c.paced is not None and c.at >= since]
        self.paced = min(shares, default=None)

    def forced_in(self, name):
        """Forced checkpoints that began in the phases whose name so begins."""
        return [c for c in self.checkpoints if c.cause == "forced" and any(
            phase.startswith(name) and began <= c.at <= ended
            for phase, began, ended in self.phases)]


def paced_by_time(checkpoint, series, size_at):
    """The server (IsCheckpointOnSchedule) writes until its progress has caught
    up with time and with WAL, whichever is ahead: follow both, and add up what
    each of them asked for."""
    started = series.lsn_at(checkpoint.at)
    progress = by_time = 0.0
    for quarter in range(1, int(4 * TARGET * TIMEOUT) + 1):
        elapsed = quarter / 4
        lsn = series.lsn_at(checkpoint.at + elapsed)
        if started is None or lsn is None:
            return None
        trigger = model.trigger_point(size_at(checkpoint.at + elapsed), SEGMENT, TARGET)
        time_gone, wal = elapsed / TIMEOUT, (lsn - started) / trigger
        asked = min(TARGET, max(progress, time_gone, wal))
        if time_gone >= wal:
            by_time += asked - progress
        progress = asked
    return round(by_time / progress, 3)


def measure(installation, load, subject, gucs, time_factor=1.0):
    """Start a server, put the load on it, and say what it did."""
    template = servers.make_template(installation, ".", load.scale)
    settings = {"checkpoint_timeout": f"{TIMEOUT}s", "max_wal_size": load.start,
                **load.settings_for(subject), **gucs, **subject.gucs}
    if subject.library:
        settings["shared_preload_libraries"] = f"'{subject.library}'"
    server = servers.Server(installation, ".", settings).create(template)
    began = time.time()
    with server:
        walsizer = subject.library == "walsizer"
        if walsizer:
            server.psql("CREATE EXTENSION walsizer")
        load.prepare(server)
        servers.settle()
        series = watch.Series(server)
        pid = server.worker(subject.library) if subject.library else None
        worker = watch.Worker(pid) if pid else None
        run = Run(server, time_factor)
        series.start()
        load.function(run)
        share = worker.share() if worker else (None, None)
        history = server.rows("walsizer_history ORDER BY id") if walsizer else []
        status = server.rows("walsizer_status, walsizer_stats") if walsizer else []
        series.stop()
        version = server.value("SELECT version()")
        shown = dict(server.psql("SELECT name, setting || coalesce(unit, '') FROM pg_settings "
                                 "WHERE source = 'configuration file' ORDER BY name"))
        # the checkpoint of the shutdown is none of the load's
        log = watch.read_log(server.log, began)
    start_mb = series.rows[0][3]
    result = Measured(run, series, log, history, start_mb)
    result.worker_cpu, result.worker_wakeups = share
    result.status = status
    result.version = version
    result.settings = shown
    return result
