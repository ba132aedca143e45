"""Bulk loading: seconds, forced checkpoints and WAL of each phase

pgbench -i, COPY, CREATE INDEX, INSERT ... SELECT, UPDATE and pg_restore, one after
the other on a server that does nothing else, from max_wal_size = 256MB and from
1GB: on the plain server, with walsizer (and each --preload), at a static size that
is large enough, there also with old WAL files to reuse, and with wal_writer_delay =
10ms on the plain server and with walsizer.

The load is over before the first timed checkpoint.  Rounds add up over several
runs: see --add."""

import functools
import os
import pathlib
import time

from harness import limits as judge, model, pairs, plots, server as servers, watch

TIMEOUT = "5min"  # checkpoint_timeout, the server's default
LARGE = "16GB"
DELAY = "10ms"    # wal_writer_delay; the default is 200ms
OLD = 320         # segments of 16 MB to reuse, more than the load fills
SETTLING = 2      # s, from the start of a server to that of the load

REUSING = "old files"
# what comes after the name of a series that varies another: in words, and its hatching
VARIANTS = {DELAY: (f"wal_writer_delay = {DELAY}", "//"),
            REUSING: ("old WAL files to reuse", "..")}

# max_wal_size in the beginning, and what walsizer may leave of the forced checkpoints
# without it.  A statement keeps the size with which it began, so two or three are
# forced at any size, and without walsizer there are fewer from a larger one.
SHARE = {"256MB": 0.15, "1GB": 0.25}

# each a phase: its name, and its statements
STATEMENTS = [
    ("COPY", ["CREATE TABLE copied (LIKE pgbench_accounts)", "COPY copied FROM '{file}'"]),
    ("CREATE INDEX", ["CREATE INDEX ON copied (aid)", "CREATE INDEX ON copied (bid, aid)",
                      "CREATE INDEX ON copied (abalance, aid)"]),
    ("INSERT ... SELECT", ["CREATE TABLE inserted (LIKE pgbench_accounts)",
                           "INSERT INTO inserted SELECT * FROM copied"]),
    # every other row, and so each page
    ("UPDATE", ["UPDATE copied SET abalance = abalance + 1 WHERE aid % 2 = 0"]),
]
PHASES = ["pgbench -i", *(name for name, _ in STATEMENTS), "pg_restore -j2"]
ALL = "all phases"


def measure(bench):
    scale = max(1, round(bench.pick(20, 50, 50) * bench.options.time_factor))
    conditions = {"scale": scale, "timeout": TIMEOUT, "large": LARGE, "delay": DELAY}
    data = bench.continue_data(conditions)
    chosen = bench.chosen(bench.pick(["256MB"], list(SHARE), list(SHARE)), SHARE)
    files = prepare(bench, scale)
    for _ in range(bench.repeated(1, 1, 5)):
        for start in chosen:
            pairs.measure_round(bench, data, series(bench, start),
                                lambda each: one(bench, each, scale, files), start=start)
            yield data


def series(bench, start):
    settings = {"max_wal_size": start, "checkpoint_timeout": TIMEOUT}
    usual = [pairs.Series("plain", bench.plain, settings),
             *(pairs.Series(subject.name, subject, settings) for subject in bench.subjects)]
    quick_writer = [each._replace(name=f"{each.name} {DELAY}",
                                  settings={**settings, "wal_writer_delay": DELAY})
                    for each in usual if each.name in ("plain", "walsizer")]
    static = pairs.Series("static", bench.plain, {**settings, "max_wal_size": LARGE})
    # min_wal_size keeps the files
    reusing = static._replace(name=f"static {REUSING}",
                              settings={**static.settings, "min_wal_size": f"{OLD * 16}MB"})
    return [*usual, static, reusing, *quick_writer]


def prepare(bench, scale):
    """What COPY and pg_restore read, made once: a file, and a directory.  Two
    partitions, so that two jobs have something to do."""
    place = pathlib.Path("bulk").resolve()
    place.mkdir(exist_ok=True)
    files = {"file": place / "copied", "dump": place / "dump"}
    if files["dump"].exists():
        return files
    bench.say("preparing")
    with bench.server(bench.plain, {"max_wal_size": LARGE, "fsync": "off"}) as server:
        server.pgbench("--initialize", "--quiet", f"--scale={scale}", "--partitions=2")
        server.psql(f"COPY (SELECT * FROM pgbench_accounts) TO '{files['file']}'")
        servers.run("pg_dump", [*server.client("pg_dump"), "--format=directory", "--jobs=2",
                                f"--file={files['dump']}", "postgres"])
    return files


def one(bench, each, scale, files):
    """One server, once."""
    with bench.server(each.subject, each.settings) as server:
        for database in ("bulk", "restored"):
            server.psql(f"CREATE DATABASE {database}")
        if parts(each.name)[1] == REUSING:
            leave_old_files(server)
        os.sync()
        time.sleep(SETTLING)
        phases = load(server, scale, files)
        final = int(server.value("SELECT pg_size_bytes(current_setting('max_wal_size')) / 1048576"))
        history = (server.rows("walsizer_history ORDER BY id")
                   if each.subject.library == "walsizer" else [])
        began, ended = phases[0]["began"], phases[-1]["ended"]
        checkpoints, changes = watch.read_log(server.log, began)
    within = [c for c in checkpoints if c.at <= ended]
    for part in phases:
        inside = [c for c in within if part["began"] <= c.at < part["ended"]]
        part.update({cause: sum(c.cause == cause for c in inside) for cause in ("forced", "timed")})
        part["seconds"] = round(part["ended"] - part["began"], 2)
        part["began"], part["ended"] = (round(part[when] - began, 2)
                                        for when in ("began", "ended"))
    return {"phases": phases, "final_mb": final,
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in within],
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "history": history, "settings": server.settings}


def leave_old_files(server):
    """What an earlier load of this size leaves: files that a checkpoint has made ready
    for reuse."""
    server.psql(f"""DO $$ BEGIN FOR i IN 1 .. {OLD} LOOP
        PERFORM pg_logical_emit_message(false, '', ''); PERFORM pg_switch_wal();
        END LOOP; END $$""")
    server.psql("CHECKPOINT")


def load(server, scale, files):
    """Each phase begins where the one before it ended."""
    phases, edges = [], [edge(server)]

    def phase(name, function):
        function()
        edges.append(edge(server))
        (began, before), (ended, after) = edges[-2:]
        phases.append({"name": name, "began": began, "ended": ended,
                       "wal_mb": round((after - before) / model.MB, 1)})

    phase("pgbench -i", lambda: server.pgbench("--initialize", "--quiet", f"--scale={scale}",
                                               database="bulk"))
    for name, statements in STATEMENTS:
        # pylint: disable-next=cell-var-from-loop
        phase(name, lambda: [server.psql(statement.format(file=files["file"]), "bulk")
                             for statement in statements])
    phase("pg_restore -j2",
          lambda: servers.run("pg_restore", [*server.client("pg_restore"), "--jobs=2",
                                             "--dbname=restored", files["dump"]]))
    return phases


def edge(server):
    return time.time(), int(server.value("SELECT pg_current_wal_insert_lsn() - '0/0'"))


#
# What comes of it
#

def of(what, phase):
    """A figure of a run: of one phase, or the sum of all."""
    return lambda run: sum(part[what] for part in run["phases"] if phase in (ALL, part["name"]))


def figures(what, digits, needed=pairs.AMOUNT):
    """One for each phase, named like it."""
    return [pairs.Figure(phase, of(what, phase), digits, needed) for phase in [ALL, *PHASES]]


SECONDS = figures("seconds", 1, pairs.RATE)
FORCED = figures("forced", 0)
WAL = figures("wal_mb", 0)
SHOWN = [pairs.Figure("seconds", of("seconds", ALL), 1),
         pairs.Figure("forced", of("forced", ALL), 0),
         pairs.Figure("timed", of("timed", ALL), 0),
         pairs.Figure("WAL, MB", of("wal_mb", ALL), 0),
         pairs.Figure("max_wal_size at the end, MB", lambda run: run["final_mb"], 0)]


def compared(rounds):
    """The sizes with each other, and each delay with the usual one."""
    found = pairs.names_of(rounds)
    sizes = [name for name in found if not name.startswith("plain") and not is_quick(name)]
    return ([(name, "plain") for name in sizes]
            + [(name, "static") for name in sizes if name != "static"]
            + [(name, parts(name)[0]) for name in found if is_quick(name)])


def is_quick(name):
    return parts(name)[1] == DELAY


def parts(name):
    """Of a series: the name without its variant, and the variant or None."""
    for variant in VARIANTS:
        if name.endswith(f" {variant}"):
            return name.removesuffix(f" {variant}"), variant
    return name, None


def of_sizes(rounds):
    return [pair for pair in compared(rounds) if not is_quick(pair[0])]


def label(start, name):
    kind, variant = parts(name)
    size = (f" {LARGE}" if kind == "static" else
            f", {start}" if kind == "plain" else f", from {start}")
    return kind + size + (f", {VARIANTS[variant][0]}" if variant else "")


def tables(data):
    conditions = data["conditions"]
    for start in SHARE:
        rounds = pairs.rounds_of(data, start=start)
        if not rounds:
            continue
        of_start = functools.partial(label, start)
        yield from pairs.tables(
            f"From {start}, scale {conditions['scale']}, checkpoint_timeout = "
            f"{conditions['timeout']}", rounds, SHOWN, label=of_start)
        for what, of_phases, compares in (("seconds", SECONDS, compared(rounds)),
                                          ("forced checkpoints", FORCED, of_sizes(rounds)),
                                          ("WAL, MB", WAL, of_sizes(rounds))):
            yield from pairs.tables(f"From {start}, {what} of each phase", rounds, of_phases,
                                    compares, label=of_start)
    yield pairs.machines(data["rounds"], "start")


def limits(data):
    kept = []
    for start, most in SHARE.items():
        rounds = pairs.rounds_of(data, start=start)
        # a share of nothing shows nothing
        if (pairs.ratios(rounds, FORCED[0], "walsizer", "plain")
                and pairs.median(rounds, FORCED[0], "plain") > 0):
            share = pairs.median_ratio(rounds, FORCED[0], "walsizer", "plain")
            kept.append(judge.at_most(f"from {start}: forced, share of those without, median,",
                                      round(share, 3), most))
    return kept


#
# The plot
#

def draw(figure, theme, data):
    """For each start, forced checkpoints and seconds of each phase, medians; one below
    the other, to be read on a phone."""
    starts = [start for start in SHARE if pairs.rounds_of(data, start=start)]
    figure.set_size_inches(6.5, 1 + 5.5 * len(starts))
    panels = figure.subplots(2 * len(starts), 1)
    for number, start in enumerate(starts):
        rounds = pairs.rounds_of(data, start=start)
        pair = panels[2 * number:2 * number + 2]
        for panel, what, of_phases in zip(pair, ("forced checkpoints", "seconds"),
                                          (FORCED, SECONDS)):
            bars(panel, theme, start, rounds, of_phases[1:])
            panel.set_title(f"From {start}: {what}, median", loc="left")
        plots.legend_below(pair[1], 0.42)


def bars(panel, theme, start, rounds, of_phases):
    shown = pairs.series_of(rounds)
    width = 0.84 / len(shown)
    for number, name in enumerate(shown):
        places = [place + (number - (len(shown) - 1) / 2) * width for place in range(len(PHASES))]
        kind, variant = parts(name)
        kind = {"plain": "small", "static": "large"}.get(kind, kind)
        panel.bar(places, [pairs.median(rounds, one_, name) for one_ in of_phases], width * 0.92,
                  color=theme.colour(kind), alpha=0.55 if variant else 1,
                  hatch=VARIANTS[variant][1] if variant else None, edgecolor=theme.page,
                  label=label(start, name))
    panel.set_xticks(range(len(PHASES)), PHASES, rotation=20, ha="right")
    panel.set_ylim(bottom=0)
    panel.grid(False, axis="x")


PLOTS = {"bulk": draw}
