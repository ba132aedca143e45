"""What walsizer costs, and how fast it is

- Transactions per second of a server with the library against one without.
- Processor time and wake-ups of the worker, on an idle and on a busy server.
- Memory.
- The time from a decision until all other sessions see the new value.
- The time of each view with a full history, alone and among 500 connections."""

import contextlib
import math
import pathlib
import re
import statistics
import sys
import time

from harness import memory_file, server as servers, tps, turns, watch
from harness.limits import Limit, at_least, at_most
from harness.pairs import interval

SCALE = 10  # of pgbench's tables, which are to stay in memory
# so many clients that the processor is never idle
LOAD = ["--client=16", "--jobs=2", "--protocol=prepared", "--builtin=simple-update"]
LEAST = 0.99  # of the tps without the library
ROUNDS = 3  # of pairs, at most
SECONDS = 1  # of a run; many short ones differ less than few long ones
# Nothing is to be sized while the cost is measured, and the processor is to be what
# there is too little of: nothing waits for the disk, also because a wait would go
# on while the server is frozen, and no autovacuum comes in somebody's turn.
UNSIZED = {"checkpoint_timeout": "1h", "max_wal_size": "16GB", "shared_buffers": "512MB",
           "fsync": "off", "wal_init_zero": "off", "autovacuum": "off"}
CROWD = 500  # connections
SOME = 20
BOOST = 2048  # MB, the first of the sizes asked for

VIEWS = ["walsizer_status", "walsizer_history", "walsizer_demand", "walsizer_advice",
         "walsizer_timeout_advice",
         "walsizer_stats", "walsizer_instructions", "walsizer_related_settings",
         "walsizer_report()"]


def measure(bench):
    data = {"pairs": {}, "worker": {}}
    for subject in bench.subjects:
        bench.say(f"tps with and without {subject.name}")
        shares = []
        data["pairs"][subject.name] = pairs(bench, subject, shares)
        bench.say(f"an idle server with {subject.name}")
        data["worker"][subject.name] = [mean_share("busy", shares), idle(bench, subject)]
    for subject in bench.subjects:
        if subject.library == "walsizer":
            data |= speed(bench, subject)
    return data


#
# Transactions per second
#

class Pair:
    """A run without the library and one with it at the same time, in both
    arrangements: no two servers are quite alike, and so each had the library once."""

    def __init__(self, first, second):
        self.plain, self.loaded = zip(first, second)
        self.ratio = round(math.sqrt(math.prod(self.loaded) / math.prod(self.plain)), 5)


def pairs(bench, subject, shares):
    """So many, and as many again, twice at most, while noise leaves it open whether
    the limit is kept."""
    number = bench.repeated(20, 40, 200)
    found = []
    for _ in range(ROUNDS):
        found += round_of_pairs(bench, subject, shares, number)
        if not is_open([pair.ratio for pair in found]):
            break
    return found


def is_open(ratios):
    """Below the limit, but by no more than chance may explain."""
    return statistics.median(ratios) < LEAST <= interval(ratios).high


def round_of_pairs(bench, subject, shares, number):
    runs = [list(runs_of(bench, [subject, bench.plain], number, shares)),
            list(runs_of(bench, [bench.plain, subject], number, shares))]
    for first, second in zip(*runs):
        yield Pair(first, second)


def runs_of(bench, who, number, shares):
    """Transactions per second without and with the library, so many times."""
    with contextlib.ExitStack() as stack:
        both = {one: stack.enter_context(server_in(bench, place, one, UNSIZED, SCALE))
                for place, one in zip(("first", "second"), who)}
        for one, server in both.items():
            with watched(server, one, shares):
                server.pgbench(f"--time={bench.pick(5, 10, 30)}", "--no-vacuum", *LOAD)
        for turn in range(number):
            order = who if turn % 2 == 0 else who[::-1]
            rates = dict(zip(order, turns.tps_of_both(*(both[one] for one in order),
                                                      SECONDS, LOAD)))
            plain, = [rate for one, rate in rates.items() if not one.library]
            loaded, = [rate for one, rate in rates.items() if one.library]
            print(f"  {plain:.0f} tps without, {loaded:.0f} with: {loaded / plain:.4f}",
                  file=sys.stderr, flush=True)
            yield plain, loaded


def server_in(bench, place, subject, settings, scale=0):
    pathlib.Path(place).mkdir(exist_ok=True)
    return bench.server(subject, settings, scale, place)


#
# The worker
#

@contextlib.contextmanager
def watched(server, subject, shares):
    """What the worker of a library does meanwhile, if it has one."""
    pid = server.worker(subject.library) if subject.library else None
    worker = watch.Worker(pid) if pid else None
    yield
    if worker:
        shares.append(worker.share())


def mean_share(when, shares):
    known = [share for share in shares if share[0] is not None]
    if not known:
        return {"when": when, "cpu": None, "wakeups": None}
    return {"when": when, "cpu": statistics.fmean(cpu for cpu, _ in known),
            "wakeups": statistics.fmean(wakeups for _, wakeups in known)}


def idle(bench, subject):
    with bench.server(subject, {}) as server:
        servers.settle()
        shares = []
        with watched(server, subject, shares):
            time.sleep(bench.pick(15, 60, 300))
        return mean_share("idle", shares)


#
# How fast it is
#

def speed(bench, subject):
    """Of a server with a full history: it is written to disk with each change."""
    settings = {"checkpoint_timeout": "30s", "max_wal_size": "64MB",
                "max_connections": CROWD + 50}
    with server_in(bench, "full", subject, settings, SCALE) as server:
        server.stop()
        memory_file.fill(server)
        server.start()
        servers.settle()  # the worker reads it when it starts
        filled = int(server.value("SELECT count(*) FROM walsizer_history"))
        if filled != memory_file.EVENTS:
            raise servers.Failure(f"{filled} rows of history instead of {memory_file.EVENTS}")
        server.psql(LOOK)
        data = {"memory": {"shared": shared_memory(server)}, "reach": [], "views": []}
        bench.say("the time of the views, alone")
        data["views"] += views(bench, server, "alone")
        bench.say("the time until other sessions see a raise")
        # first under load, while 64MB is still too little
        data["reach"].append(reach_under_load(bench, server))
        data["reach"].append(reach_of_boosts(bench, server, SOME, 0.02))
        with watching(server, CROWD, 0.2):
            bench.say(f"the same with {CROWD} connections")
            data["reach"].append(reach_of_boosts(bench, server, CROWD))
            data["views"] += views(bench, server, f"{CROWD} connections")
        data["memory"]["worker"] = private_memory(server)
    return data


def shared_memory(server):
    return int(server.value("SELECT sum(allocated_size) FROM pg_shmem_allocations "
                            "WHERE name LIKE '%walsizer%'"))


def private_memory(server):
    """What the worker has for itself, bytes."""
    status = pathlib.Path(f"/proc/{server.worker('walsizer')}/status").read_text(encoding="ascii")
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.M)[1]) * 1024


#
# From a decision to all other sessions
#

LOOK = """
CREATE UNLOGGED TABLE seen (size bigint, pid int, at timestamptz);
CREATE FUNCTION look() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('max_wal_size') IS DISTINCT FROM current_setting('look.last', true) THEN
        INSERT INTO seen VALUES (pg_size_bytes(current_setting('max_wal_size')),
                                 pg_backend_pid(), clock_timestamp());
        PERFORM set_config('look.last', current_setting('max_wal_size'), false);
    END IF;
END $$;
"""

# for each raise and each session: seconds from the one to the other
SAW = """
SELECT h.id, extract(epoch FROM min(s.at) - h.changed_at)
FROM walsizer_history h JOIN seen s ON s.size >= h.new_size AND s.at >= h.changed_at
WHERE h.action = 'raise' AND h.outcome = 'applied' AND h.id > {after}
GROUP BY h.id, h.changed_at, s.pid
"""


@contextlib.contextmanager
def watching(server, sessions, pause):
    """Sessions that look at max_wal_size, pause and look again."""
    server.psql("TRUNCATE seen")
    pathlib.Path("look.sql").write_text(
        f"SELECT look();\n\\sleep {round(1000 * pause)} ms\n", encoding="ascii")
    with tps.Pgbench(server, f"--client={sessions}", "--file=look.sql", "--time=7200") as pgbench:
        end = time.monotonic() + 60
        while int(server.value("SELECT count(DISTINCT pid) FROM seen")) < sessions:
            if time.monotonic() > end:
                raise servers.Failure(f"{sessions} sessions could not be had: {pgbench.output}")
            time.sleep(0.2)
        yield


def seen_since(server, after, what, sessions):
    rows = server.psql(SAW.format(after=after))
    delays = {}
    for number, delay in rows:
        delays.setdefault(number, []).append(float(delay))
    if not delays:
        raise servers.Failure(f"nothing was raised: {what}")
    return {"what": what, "sessions": sessions, "raises": len(delays),
            "all_saw": all(len(seen) == sessions for seen in delays.values()),
            "median": statistics.median([x for seen in delays.values() for x in seen]),
            "last": [max(seen) for seen in delays.values()]}


def last_id(server):
    return int(server.value("SELECT max(id) FROM walsizer_history"))


def reach_under_load(bench, server):
    """Raises that pgbench makes necessary, as fast as it goes."""
    after = last_id(server)
    with watching(server, SOME, 0.02):
        server.pgbench(f"--time={bench.pick(12, 30, 60)}", "--no-vacuum", *LOAD)
        return seen_since(server, after, "raises under load", SOME)


def reach_of_boosts(bench, server, sessions, pause=None):
    """Raises that are asked for, each a bit larger than the last."""
    after = last_id(server)
    with watching(server, sessions, pause) if pause else contextlib.nullcontext():
        for number in range(bench.pick(6, 20, 40)):
            size = BOOST + 16 * number + sessions
            server.psql(f"SELECT walsizer_boost('{size}MB', '1 hour')")
            time.sleep(1)
        return seen_since(server, after, "raises that were asked for", sessions)


#
# Views
#

def views(bench, server, among):
    for view in VIEWS:
        times = times_of(server, f"SELECT * FROM {view}", bench.pick(30, 100, 300))
        yield {"view": view, "among": among,
               "rows": int(server.value(f"SELECT count(*) FROM {view}")),
               "median": statistics.median(times), "longest": max(times)}


def times_of(server, statement, times):
    """ms of each of so many calls, all rows sent to the client."""
    pathlib.Path("view.sql").write_text(statement + ";\n", encoding="ascii")
    server.pgbench("--client=1", f"--transactions={times}", "--no-vacuum", *tps.LOGGED,
                   "--file=view.sql")
    return [time for _, time in tps.latencies()]


#
# The report
#

def median_ratio(some):
    return statistics.median(pair["ratio"] for pair in some)


def pair_row(name, some):
    ratios = [pair["ratio"] for pair in some]
    low, high, _ = interval(ratios)
    plain = statistics.median(rate for pair in some for rate in pair["plain"])
    loaded = statistics.median(rate for pair in some for rate in pair["loaded"])
    return [name, len(some), f"{plain:.0f}", f"{loaded:.0f}", f"{median_ratio(some):.4f}",
            f"{low:.4f} to {high:.4f}", f"{min(ratios):.3f} to {max(ratios):.3f}"]


def share_row(name, share):
    if share["cpu"] is None:
        return [name, share["when"], "no worker", "-"]
    return [name, share["when"], f"{100 * share['cpu']:.4f} %", f"{share['wakeups']:.2f}"]


def ms(seconds):
    return f"{1000 * seconds:.0f}"


def tables(data):
    yield ("Transactions per second; in each pair either server had the library once",
           ["preloaded", "pairs", "tps without", "tps with", "median ratio", "95 % interval of it",
            "all ratios"],
           [pair_row(name, some) for name, some in data["pairs"].items()])
    yield ("Background worker",
           ["preloaded", "server", "of one core", "wake-ups per second"],
           [share_row(name, share) for name, some in data["worker"].items() for share in some])
    if "memory" not in data:
        return
    yield ("Memory, kB", ["shared", "the worker's own"],
           [[data["memory"]["shared"] // 1024, data["memory"]["worker"] // 1024]])
    yield ("From a decision until other sessions see it, ms",
           ["what", "sessions", "raises", "median of all sessions", "last session, median",
            "last session, longest"],
           [[x["what"], x["sessions"], x["raises"], ms(x["median"]),
             ms(statistics.median(x["last"])), ms(max(x["last"]))] for x in data["reach"]])
    crowded = {x["view"]: x for x in data["views"] if x["among"] != "alone"}
    yield ("Views with a full history, ms",
           ["view", "rows", "median", "longest", f"median, {CROWD} connections", "longest"],
           [[x["view"], x["rows"], f"{x['median']:.2f}", f"{x['longest']:.1f}",
             f"{crowded[x['view']]['median']:.2f}", f"{crowded[x['view']]['longest']:.1f}"]
            for x in data["views"] if x["among"] == "alone"])


def limits(data):
    if "walsizer" not in data["pairs"]:
        return []
    shares = {share["when"]: share["cpu"] for share in data["worker"]["walsizer"]}
    slowest = max(delay for reach in data["reach"] for delay in reach["last"])
    ratio = round(median_ratio(data["pairs"]["walsizer"]), 4)
    return [at_least("median ratio of tps", ratio, LEAST),
            Limit("worker of an idle server below 0.1 % of a core",
                  f"{100 * shares['idle']:.4f} %", shares["idle"] < 0.001),
            Limit("shared memory below 1 MB", f"{data['memory']['shared'] / 1024:.0f} kB",
                  data["memory"]["shared"] < 1024 * 1024),
            at_most("seconds until the last session saw a raise", round(slowest, 3), 1),
            Limit("all sessions saw all raises", "yes" if all_saw(data) else "no", all_saw(data))]


def all_saw(data):
    return all(reach["all_saw"] for reach in data["reach"])


def draw(figure, theme, data):
    """Ratios of all pairs, sorted."""
    axes = figure.subplots()
    for name, some in data["pairs"].items():
        ratios = sorted(pair["ratio"] for pair in some)
        axes.plot(range(1, len(ratios) + 1), ratios, "o", color=theme.colour(name),
                  label=f"{name}: median {statistics.median(ratios):.4f}")
        axes.axhline(statistics.median(ratios), color=theme.colour(name))
    axes.axhline(1, color=theme.text, linestyle=":", linewidth=1)
    axes.set_xlabel("pair, sorted")
    axes.set_ylabel("tps with the library / without")
    axes.legend()


PLOTS = {"cost": draw}
