"""Loads that force checkpoints, and limits to what walsizer lets through.

Each load is a function below; what it must show stands beside it."""

import json
import os
import pathlib
import shutil
import sys
import threading
import time
from types import SimpleNamespace

from harness import measure, model, pairs, results, server as servers
from harness.limits import Limit, at_most, none

PACED = 0.8  # of checkpoint_completion_target: paced by time, not hurried
LOADS = {}


class Load:
    def __init__(self, function, start, limits, scale=0, tables="", walsizer=None):
        self.function = function
        self.name = function.__name__
        self.start = start          # max_wal_size
        self.limits = limits        # of a Measured: list of Limits
        self.scale = scale          # of pgbench's tables, made beforehand
        self.tables = tables        # other tables
        self.walsizer = walsizer or {}

    def settings_for(self, subject):
        return self.walsizer if subject.library == "walsizer" else {}

    def prepare(self, server):
        if self.tables:
            server.psql(self.tables)


def load(**options):
    def keep(function):
        LOADS[function.__name__] = Load(function, **options)
        return function
    return keep


def ratio_between(measured, least, most):
    ratio = measured.ratio
    return Limit(f"final size {least:g} to {most:g} x what the clean load needs",
                 "not known" if ratio is None else f"{ratio:.2f} ({measured.final_mb} MB, "
                 f"needed {measured.needed_mb} MB by {measured.demand_from})",
                 ratio is not None and least <= ratio <= most)


def little_cpu(measured):
    share = measured.worker_cpu
    return Limit("worker below 0.1 % of a core",
                 "not known" if share is None else f"{100 * share:.3f} %",
                 share is not None and share < 0.001)


#
# TPC-B, as fast as it goes
#

def tpcb_limits(m):
    return [at_most("forced", m.forced, 1),
            at_most("raises", m.raises, 6),
            ratio_between(m, 0, 1.5)]


@load(start="128MB", scale=50, limits=tpcb_limits)
def tpcb(run):
    """pgbench TPC-B, 8 clients, 4 minutes."""
    pgbench(run, "tpcb", 240, clients=8)


def reactive_limits(m):
    return [Limit("a raise", m.raises, m.raises > 0),
            none("forced from 2 s after the first raise took effect", m.forced_after),
            at_most("raises", m.raises, 3),
            ratio_between(m, 1.0, 1.5)]


@load(start="128MB", scale=50, limits=reactive_limits, walsizer={"walsizer.predict": "off"})
def tpcb_reactive(run):
    """The same without prediction: the classic rule alone."""
    pgbench(run, "tpcb", 240, clients=8)


@load(start="128MB", scale=50, limits=tpcb_limits)
def stats_reset(run):
    """The same while the checkpointer's statistics are reset every 20 s."""
    what = "checkpointer" if server_major(run.server) >= 17 else "bgwriter"
    resets = Every(20, lambda: run.server.psql(f"SELECT pg_stat_reset_shared('{what}')"))
    with resets:
        pgbench(run, "tpcb", 240, clients=8)
    run.notes["resets"] = resets.times


#
# Loads in bulk
#

def bulk_init_limits(m):
    first = [c.write for c in m.forced_in("load 1")]
    least = PACED * measure.TARGET * measure.TIMEOUT
    return [at_most("forced", m.forced, 4),
            none("forced in the second load", len(m.forced_in("load 2"))),
            Limit(f"forced in the first load written for at least {least:.1f} s",
                  first or "none forced",
                  all(write is not None and write >= least for write in first))]


@load(start="256MB", limits=bulk_init_limits)
def bulk_init(run):
    """pgbench -i at scale 200, twice: mostly one COPY, which keeps the
    max_wal_size with which it began."""
    for number in (1, 2):
        with run.phase(f"load {number}"):
            run.server.pgbench("--initialize", "--quiet", f"--scale={scaled(run, 200)}")
        # long enough for a timed checkpoint to end
        with run.phase(f"pause {number}"):
            run.sleep(75)


def bursts_limits(m):
    return [at_most("forced in the first burst", len(m.forced_in("burst 1")), 1),
            none("forced afterwards", m.forced - len(m.forced_in("burst 1"))),
            none("lowering", m.lowers)]


# about 140 bytes of WAL for each row, so 28 MB/s at 200 statements a second
BURST_ROWS = 1000
BURST_RATE = 200
BURST_SCRIPT = f"""INSERT INTO bulk SELECT i, repeat('x', 80)
FROM generate_series(1, {BURST_ROWS}) i;
"""


@load(start="128MB", limits=bursts_limits,
      tables="CREATE TABLE bulk (id int, filler text)")
def bursts(run):
    """20 s of bulk inserts every 90 s, four times.  At a fixed rate: the load
    is to be the same on every machine."""
    four_bursts(run, BURST_RATE)


@load(start="128MB", limits=bursts_limits,
      tables="CREATE TABLE bulk (id int, filler text)")
def bursts_at_full_speed(run):
    """The same as fast as the machine goes."""
    four_bursts(run, None)


def four_bursts(run, rate):
    pathlib.Path("burst.sql").write_text(BURST_SCRIPT, encoding="ascii")
    for number in (1, 2, 3, 4):
        began = time.time()
        pgbench(run, f"burst {number}", 20, clients=4, rate=rate, script="burst.sql")
        with run.phase(f"pause {number}"):
            time.sleep(max(0, began + run.seconds(90) - time.time()))


#
# Loads of a given rate
#

def steps_limits(m):
    return [at_most("forced", m.forced, 1)]


@load(start="128MB", scale=50, limits=steps_limits)
def tps_steps(run):
    """pgbench at 100, 200, 400 and 800 tps, a minute each."""
    for rate in (100, 200, 400, 800):
        pgbench(run, f"{rate} tps", 60, clients=8, rate=rate)


def return_limits(m):
    return [none("forced at the return", len(m.forced_in("return"))),
            none("lowering in between", m.lowers)]


@load(start="128MB", scale=50, limits=return_limits)
def lull(run):
    """800 tps, 20, and 800 again, 2 minutes each."""
    pgbench(run, "first", 120, clients=8, rate=800)
    pgbench(run, "lull", 120, clients=8, rate=20)
    pgbench(run, "return", 120, clients=8, rate=800)


def just_above_limits(m):
    return [at_most("forced", m.forced, 1)]


@load(start="32MB", limits=just_above_limits)
def just_above(run):
    """1.2 x what 32MB can hold, evenly, for ten times checkpoint_timeout."""
    trigger = model.trigger_point(32, measure.SEGMENT, measure.TARGET)
    write_wal(run, 1.2 * trigger / measure.TIMEOUT, 10 * measure.TIMEOUT)


#
# Nothing to do
#

def unchanged_limits(m):
    return [Limit("max_wal_size as it was", f"{m.start_mb} -> {m.final_mb} MB",
                  not m.changes and m.final_mb == m.start_mb),
            none("adjustments recorded", len(m.history))]


@load(start="128MB", limits=unchanged_limits, tables="CREATE TABLE drop_in_the_ocean (id int)")
def manual(run):
    """Nearly idle, with a CHECKPOINT every 5 s for two minutes."""
    with run.phase("checkpoints"), Every(5, lambda: run.server.psql(
            "INSERT INTO drop_in_the_ocean VALUES (1); CHECKPOINT")):
        run.sleep(120)


@load(start="128MB", limits=unchanged_limits)
def idle(run):
    """Nothing at all for three minutes, for the worker's own cost."""
    with run.phase("idle"):
        run.sleep(180)


#
# What the loads are made of
#

def pgbench(run, phase, seconds, clients, rate=None, script=None):
    options = [f"--client={clients}", "--jobs=2", f"--time={run.seconds(seconds)}",
               "--protocol=prepared", "--no-vacuum"]
    options += [f"--rate={rate}"] if rate else []
    options += [f"--file={script}"] if script else []
    with run.phase(phase):
        out = run.server.pgbench(*options)
    for line in out.splitlines():
        if line.startswith("tps = "):
            run.notes[f"tps, {phase}"] = float(line.split()[2])


def write_wal(run, rate, seconds):
    """WAL at a rate (bytes per second), in four messages a second."""
    session = run.server.session()
    piece = int(rate / 4)
    began = time.time()
    with run.phase("messages"):
        for number in range(4 * run.seconds(seconds)):
            session.row(f"SELECT pg_logical_emit_message(true, '', repeat('x', {piece}))")
            time.sleep(max(0, began + (number + 1) / 4 - time.time()))


def scaled(run, scale):
    return max(1, round(scale * run.time_factor))


def server_major(server):
    return int(server.value("SHOW server_version_num")) // 10000


class Every:
    """Calls a function again and again while a with statement lasts."""

    def __init__(self, seconds, function):
        self.seconds, self.function = seconds, function
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.times = 0
        self.trouble = None

    def _work(self):
        while not self.done.wait(self.seconds):
            try:
                self.function()
                self.times += 1
            except servers.Failure as failure:
                self.trouble = failure
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.done.set()
        self.thread.join(timeout=60)
        if self.trouble and kind is None:
            raise self.trouble


#
# The experiment
#

HEADING = ["load", "preloaded", "forced: before", "within 2 s", "after the first raise", "timed",
           "raises", "lowers", "max_wal_size", "needed", "ratio", "paced", "worker CPU", "verdict"]


def judge(load_, subject, measured):
    """The limits are walsizer's: others are measured, not judged."""
    if subject.library != "walsizer":
        return []
    return load_.limits(measured) + [little_cpu(measured)]


def row(name, preloaded, m, limits):
    verdict = "-" if not limits else "PASS" if all(x.kept for x in limits) else "FAIL"
    return [name, preloaded or "plain", m.forced_before, m.forced_within, m.forced_after, m.timed,
            m.raises, m.lowers, f"{m.start_mb} -> {m.final_mb} MB",
            f"{m.needed_mb} MB" if m.needed_mb else "-",
            f"{m.ratio:.2f}" if m.ratio else "-",
            f"{100 * m.paced:.0f} %" if m.paced is not None else "-",
            f"{100 * m.worker_cpu:.3f} %" if m.worker_cpu is not None else "-", verdict]


def pages(contents):
    """Markdown, from what is in the results' files: the table, the verdicts, and when, of
    what and where each load was measured."""
    runs = [(content, run, [Limit(**limit) for limit in run["limits"]])
            for content in contents for run in content["runs"]]
    yield "## loads: Loads that force checkpoints\n"
    yield results.table(HEADING, [
        row(content["load"], content["preloaded"], SimpleNamespace(**run["measured"]), limits)
        for content, run, limits in runs]) + "\n"
    yield from (f"    {content['load']:20} {limit}"
                for content, _, limits in runs for limit in limits)
    yield "\n" + results.table(
        ["load", "begun", "walsizer", "server", "machine", "load average after", "command"],
        [[content["load"], run["begun"], content["revision"], content["server"],
          pairs.describe(content["machine"]), f"{run['load_average'][0]:.1f}",
          f"`{content['command']}`"] for content, run, _ in runs]) + "\n"


def in_order(contents):
    """As the loads are listed, walsizer first."""
    return sorted(contents, key=lambda content: (
        list(LOADS).index(content["load"]), content["preloaded"] != "walsizer",
        content["preloaded"] or ""))


def show(contents, directory):
    text = "\n".join(pages(in_order(contents)))
    print(text, flush=True)
    (pathlib.Path(directory) / "loads.md").write_text(text, encoding="utf-8")


def chosen(options, parser):
    names = options.only.split(",") if options.only else list(LOADS)
    unknown = [name for name in names if name not in LOADS]
    if unknown:
        parser.error(f"no such load: {', '.join(unknown)} (have {', '.join(LOADS)})")
    return [LOADS[name] for name in names]


def keep_log(name):
    pathlib.Path("results").mkdir(exist_ok=True)
    shutil.copy("server.log", f"results/{name}.log")


def one(options, installation, load_, subject):
    """All repetitions of one load with one subject: the content of its results file."""
    name = f"loads.{load_.name}.{subject.name}"
    content = {"experiment": "loads", "load": load_.name, "what": load_.function.__doc__,
               "preloaded": subject.library, "command": options.command,
               "revision": options.revision, "server": installation.version(),
               "machine": results.machine(), "repetitions": options.repeat,
               "time_factor": options.time_factor, "runs": []}
    for number in range(options.repeat):
        print(f"{load_.name} with {subject.name} ...", file=sys.stderr, flush=True)
        begun = results.now()
        measured = measure.measure(installation, load_, subject, options.gucs,
                                   options.time_factor)
        limits = judge(load_, subject, measured)
        for limit in limits:
            print(f"{load_.name:20} {limit}", file=sys.stderr, flush=True)
        content["runs"].append({"begun": begun, "ended": results.now(),
                                "load_average": os.getloadavg(), "limits": limits,
                                "measured": measured})
        path = results.write(name, content)
        if options.keep_logs:
            keep_log(f"{name}.{number + 1}" if options.repeat > 1 else name)
    return json.loads(path.read_text(encoding="utf-8"))


def main(options, parser):
    loads = chosen(options, parser)
    print("building ...", file=sys.stderr, flush=True)
    installation = servers.Installation(".", options.pg_config).build("src", options.subjects)
    contents = [one(options, installation, load_, subject)
                for load_ in loads for subject in options.subjects]
    show(contents, "results")
    return 0 if all(limit["kept"] for content in contents for run in content["runs"]
                    for limit in run["limits"]) else 1
