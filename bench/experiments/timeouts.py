"""What a longer checkpoint_timeout saves: predicted beside measured

Five loads, each at a steady rate on a server of its own, all at once: amounts of WAL are
compared, not times.  After some intervals of checkpoint_timeout = 30s, timeout.sql and
walsizer_timeout_advice say what longer ones would write.  Then follow intervals that are
really as long, each from one CHECKPOINT to its end.

timeout.sql needs PostgreSQL 16, so the default server of bench/run has the bounds alone."""

import concurrent.futures
import pathlib
import subprocess
import time

from harness import model
from harness.server import Failure

TIMEOUT = 30   # s
FACTORS = [2, 6]
BOUNDS = 10    # times 30 s: walsizer_timeout_advice has a row for 5 minutes
RATE = 120     # transactions a second

SETTINGS = {"checkpoint_timeout": f"{TIMEOUT}s", "max_wal_size": "8GB", "wal_keep_size": "8GB",
            "shared_buffers": "128MB", "synchronous_commit": "off", "autovacuum": "off"}

ROWS = ("SELECT n, 0 AS changes, repeat('x', 300) AS filler FROM generate_series(1, {}) n; "
        "ALTER TABLE pages ADD PRIMARY KEY (n); VACUUM (FREEZE) pages")
PAGES = "CREATE TABLE pages WITH (fillfactor = 60) AS " + ROWS
LOADS = {
    "uniform": (PAGES.format(100000),
                "\\set n random(1, 100000)\nUPDATE pages SET changes = changes + 1 WHERE n = :n;"),
    "small": (PAGES.format(3000),
              "\\set n random(1, 3000)\nUPDATE pages SET changes = changes + 1 WHERE n = :n;"),
    "recent rows": (PAGES.format(50000) + "; CREATE SEQUENCE added START 50001",
                    "INSERT INTO pages VALUES (nextval('added'), 0, repeat('x', 300));\n"
                    "\\set back random(1, 5000)\n"
                    "UPDATE pages SET changes = changes + 1 "
                    "WHERE n = (SELECT last_value FROM added) - :back;"),
    "append": ("CREATE TABLE log (at timestamptz, filler text)",
               "INSERT INTO log SELECT now(), repeat('y', 400) FROM generate_series(1, 3);"),
    "random UUIDs": ("CREATE TABLE ids (id uuid PRIMARY KEY); INSERT INTO ids "
                     "SELECT gen_random_uuid() FROM generate_series(1, 1000000); VACUUM (FREEZE) ids",
                     "INSERT INTO ids SELECT gen_random_uuid() FROM generate_series(1, 2);"),
}


def measure(bench):
    intervals = bench.pick(6, 6, 12)  # that are read
    for name in LOADS:
        place_of(name).mkdir()
    subject = bench.subjects[0]
    with bench.server(subject, SETTINGS):  # so that building and initdb come before
        pass
    with concurrent.futures.ThreadPoolExecutor(len(LOADS)) as pool:
        runs = list(pool.map(lambda name: one(bench, subject, name, intervals), LOADS))
    return {"timeout": TIMEOUT, "intervals": intervals, "rate": RATE, "runs": runs}


def place_of(name):
    return pathlib.Path(name.replace(" ", "_"))


def one(bench, subject, name, intervals):
    setup, load = LOADS[name]
    place = place_of(name)
    script = place / "load.sql"
    script.write_text(load + "\n", encoding="utf-8")
    with bench.server(subject, SETTINGS, place=place) as server:
        for statement in setup.split("; "):
            server.psql(statement)
        has_script = server.value("SELECT count(*) FROM pg_available_extensions WHERE name = "
                                  "'pg_walinspect' AND default_version <> '1.0'") == "1"
        if has_script:
            server.psql("CREATE EXTENSION pg_walinspect")
        factors = FACTORS if bench.mode == "quick" else [*FACTORS, BOUNDS]
        # the first intervals have the start, and the last is seen when its checkpoint completes
        seconds = TIMEOUT * (intervals + 3)
        longest = seconds + TIMEOUT * sum(factors) + 60
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(server.pgbench, "--no-vacuum", "--client=2", f"--rate={RATE}",
                        f"--time={longest}", f"--file={script}")
            time.sleep(seconds)
            bench.say(f"{name}: predicting")
            predicted = script_rows(server, bench, intervals) if has_script else {}
            advice = server.rows("walsizer_timeout_advice WHERE checkpoint_timeout = '5 min'")[0]
            demand = int(server.value("SELECT demand FROM walsizer_stats"))
            measured = {factor: long_interval(server, factor) for factor in factors}
            server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE application_name = 'pgbench'")
    return {"name": name, "predicted": predicted, "advice": advice, "demand": demand,
            "measured": measured}


def script_rows(server, bench, intervals):
    """What timeout.sql says of each factor: bytes in an interval, or why it cannot tell."""
    command = [*server.client("psql"), "--no-psqlrc", "--dbname=postgres", "--pset=format=unaligned",
               f"--set=intervals={intervals}", f"--file={bench.sources / 'timeout.sql'}"]
    rows = [line.split("|") for line in run_text(command).splitlines() if line.count("|") == 5][1:]
    found = {}
    for factor, (_, hourly, _, _, _, remark) in zip([1, 2, 3, 6, 12], rows):
        found[factor] = remark or (float(hourly.removesuffix(" MB")) * model.MB
                                   * factor * TIMEOUT / 3600)
    return found


def run_text(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"timeout.sql: {done.stderr}")
    return done.stdout


def long_interval(server, factor):
    """WAL from a CHECKPOINT to this many timeouts later, in bytes; the timer is out of the way."""
    server.psql("ALTER SYSTEM SET checkpoint_timeout = '1h'")
    server.psql("SELECT pg_reload_conf()")
    position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
    server.psql("CHECKPOINT")
    began = time.monotonic()
    before = int(server.value("SELECT (redo_lsn - '0/0')::bigint FROM pg_control_checkpoint()"))
    time.sleep(max(0, factor * TIMEOUT - (time.monotonic() - began)))
    return int(server.value(position)) - before


#
# What comes of it
#

def tables(data):
    yield (f"Intervals of {data['timeout']} s, of which {data['intervals']} were read; "
           f"{data['rate']} transactions a second. MB of WAL in an interval that is longer by "
           "the factor in the column times, as timeout.sql predicts and as measured.",
           ["load", "times", "as now", "predicted", "measured", "error"],
           [row for run in data["runs"] for row in script_table(run)])
    yield ("Part of the WAL saved, in percent, with an interval ten times as long: the bounds of "
           "walsizer_timeout_advice, and what was measured.",
           ["load", "at least", "at most", "measured", "basis"],
           [bounds_row(run) for run in data["runs"] if str(BOUNDS) in run["measured"]])


def now(run):
    """Bytes of an interval before."""
    return run["predicted"].get("1", run["demand"])


def script_table(run):
    for factor in map(str, FACTORS):
        measured, said = run["measured"][factor], run["predicted"].get(factor, "-")
        usual = now(run) * int(factor)
        known = not isinstance(said, str)
        yield [run["name"], factor, mb(usual), mb(said) if known else said, mb(measured),
               f"{100 * (said / measured - 1):+.1f} %" if known else "-"]


def bounds_row(run):
    advice = run["advice"]
    saved = 1 - run["measured"][str(BOUNDS)] / (BOUNDS * now(run))
    known = advice["wal_saved_least"] is not None
    return [run["name"], *(f"{100 * advice[which]:z.0f}" if known else "-"
                           for which in ("wal_saved_least", "wal_saved_most")),
            f"{100 * saved:z.0f}", advice["basis"]]


def mb(amount):
    return f"{amount / model.MB:.1f}"


def limits(_):
    """How near a prediction is depends on the load; the table says."""
    return []


PLOTS = {}
