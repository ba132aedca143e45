"""Runs experiments of the kind that experiments/__init__.py describes: measures,
writes NAME.json, prints the tables, draws the plots, judges."""

import contextlib
import importlib
import inspect
import json
import os
import pathlib
import sys
import time

from harness import plots, results, server as servers, storage

# In this order in "all".
NAMES = ["dip", "bulk", "small", "slow", "sweep", "cost", "watch", "fleet"]

# Not part of "all": of the dip one is enough, the server alone is measured, or the others
# only judge walsizer.  One round of defaults takes longer than all others.
APART = ["larger", "defaults", "statement", "recovery", "restart", "writer", "day", "timeouts",
         "full", "failover", "failover_bursts"]
MODES = ["quick", "normal", "full"]

QUICK = ("**This is a quick run**: it shows that the experiment works, and roughly what comes out. "
         "It is shorter and smaller, and measured less often, than a figure needs that stands.")


class Subject:
    """What is preloaded, and the settings that go with it."""

    def __init__(self, name, library):
        self.name = name
        self.library = library
        self.gucs = {}


class Bench:
    """What an experiment is given."""

    plain = Subject("plain", None)  # the server without any library

    def __init__(self, options, name):
        self.options = options
        self.name = name
        self.mode = options.mode           # "quick", "normal" or "full"
        self.subjects = options.subjects   # walsizer, and what --preload names
        self.without = any(not one.library for one in options.beside)  # --without
        self.gucs = options.gucs           # --guc, of every server
        self.repeat = options.repeat       # --repeat, 1 unless given
        self.repetitions = options.repeat  # of the measurement, as repeated() finds
        self.servers = []                  # the different servers that were started
        self.earlier = None                # data of the rounds that --add adds to
        self.storage = storage.Storage(options.slow_volume, options.no_slow_volume)
        self.sources = pathlib.Path("src")
        self._installation = None

    @property
    def installation(self):
        """A private copy of the server, with walsizer built into it, made when
        first asked for."""
        if self._installation is None:
            self._installation = getattr(self.options, "installation", None)
        if self._installation is None:
            self.say("building")
            self._installation = servers.Installation(".", self.options.pg_config).build(
                "src", self.subjects)
            self.options.installation = self._installation
        return self._installation

    def pick(self, quick, normal, full):
        return {"quick": quick, "normal": normal, "full": full}[self.mode]

    def seconds(self, quick, normal, full):
        """A duration of the mode, scaled by --time-factor, for trying out."""
        return max(1, round(self.pick(quick, normal, full) * self.options.time_factor))

    def repeated(self, quick, normal, full):
        """So many times the measurement is to be made in the mode, with --repeat."""
        self.repetitions = self.pick(quick, normal, full) * self.repeat
        return self.repetitions

    def say(self, what):
        print(f"{self.name}: {what} ...", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def server(self, subject, settings, scale=0, place="."):
        """A running server with a subject (or self.plain) preloaded, with pgbench's
        tables of a scale (0: none) and in a directory; stopped at the end.

            with bench.server(subject, {"max_wal_size": "128MB"}, scale=20) as server:
        """
        template = servers.make_template(self.installation, ".", scale)
        settings = {**settings, **self.gucs, **subject.gucs}
        if subject.library:
            settings["shared_preload_libraries"] = f"'{subject.library}'"
        self._note({"preloaded": subject.name, "scale": scale,
                    "settings": {**servers.BASE, **settings}})
        server = servers.Server(self.installation, place, settings).create(template)
        with server:
            if subject.library == "walsizer":
                server.psql("CREATE EXTENSION walsizer")
            try:
                yield server
            finally:
                if self.options.keep_logs:
                    keep_log(server, self.name)

    def chosen(self, usual, possible):
        """Names of parts of an experiment: those of --only, or the usual ones.  Of "all"
        --only names experiments."""
        if not self.options.only or self.options.experiment == "all":
            return usual
        names = self.options.only.split(",")
        for name in names:
            if name not in possible:
                raise servers.Failure(f"no {name} in {self.name}, only {', '.join(possible)}")
        return names

    def continue_data(self, conditions):
        """The data to which an experiment in rounds adds: those of earlier runs with
        --add, if they were measured under the same conditions, else new ones."""
        conditions = {"mode": self.mode, "gucs": self.gucs, **conditions}
        if self.earlier is None:
            return {"conditions": conditions, "rounds": []}
        for name, value in conditions.items():
            before = self.earlier["conditions"].get(name)
            if before != value:
                raise servers.Failure(f"the earlier rounds have {name} {before}, not {value}")
        return self.earlier

    def _note(self, server):
        if server not in self.servers:
            self.servers.append(server)


def keep_log(server, name):
    directory = pathlib.Path("results")
    directory.mkdir(exist_ok=True)
    number = len(list(directory.glob(f"{name}.*.log"))) + 1
    (directory / f"{name}.{number}.log").write_bytes(server.log.read_bytes())


def load(name):
    return importlib.import_module(f"experiments.{name}")


def title(module):
    return module.__doc__.split("\n\n")[0].replace("\n", " ").rstrip(".")


def in_rounds(module):
    return inspect.isgeneratorfunction(module.measure)


def is_outdated(content):
    """Whether results are of the time before their experiment was measured in rounds."""
    return in_rounds(load(content["experiment"])) and "rounds" not in content["data"]


def run(options, name):
    """One experiment, from the measurement to the verdict.  After each round, where
    it is measured in rounds, what there is so far is written."""
    module = load(name)
    bench = Bench(options, name)
    content = {"experiment": name, "title": title(module), "mode": options.mode,
               "command": options.command,
               "revision": options.revision, "machine": results.machine(),
               "gucs": options.gucs,
               "subjects": [vars(subject) for subject in options.subjects],
               "begun": results.now()}
    began = time.monotonic()
    if in_rounds(module):
        bench.earlier = earlier_data(options, name)
        several = module.measure(bench)
    elif options.add:
        raise servers.Failure("--add is for experiments that are measured in rounds")
    else:
        several = [module.measure(bench)]
    for data in several:
        content["ended"] = results.now()
        content["repetitions"] = bench.repetitions
        content["seconds"] = round(time.monotonic() - began)
        content["load_average_after"] = os.getloadavg()
        finish(content, bench, module, data)
    return all(limit.kept for limit in content["limits"])


def finish(content, bench, module, data):
    """Complete the content of a results file, write it, and show it."""
    if bench.options.__dict__.get("installation"):
        content["server"] = bench.installation.version()
        content["servers"] = bench.servers
        content["libraries"] = {subject.library: bench.installation.checksum(subject.library)
                                for subject in bench.subjects}
    # what JSON makes of it, so that bench/report sees the same
    data = json.loads(json.dumps(data, default=vars))
    content.update({"limits": module.limits(data), "data": data})
    results.write(bench.name, content)
    show(content, "results")


def earlier_data(options, name):
    """Of the results that are there, which bench/run has laid beside; None if there
    are none, or if they are to be replaced."""
    path = pathlib.Path("earlier") / f"{name}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    if options.add:
        if "rounds" not in data:
            raise servers.Failure("the earlier results were not measured in rounds")
        return data
    print(f"{name}: the earlier results will be replaced; --add would add to them",
          file=sys.stderr, flush=True)
    return None


def show(content, directory):
    """Tables and plots from the content of a results file."""
    name, data = content["experiment"], content["data"]
    module = load(name)
    text = "\n".join(pages(module, content, module.limits(data), data))
    print(text, flush=True)
    (pathlib.Path(directory) / f"{name}.md").write_text(text, encoding="utf-8")
    plots.draw_all(module.PLOTS, data, directory)


def pages(module, content, limits, data):
    """Markdown: what was measured, how, and the verdict."""
    yield f"## {content['experiment']}: {content['title']}\n"
    if content["mode"] == "quick":
        yield f"{QUICK}\n"
    for caption, heading, rows in module.tables(data):
        if caption:
            yield f"{caption}\n"
        yield results.table(heading, rows) + "\n"
    yield from (f"    {limit}" for limit in limits)
    machine = content["machine"]
    # of rounds the tables have it
    last = "Last measured" if "rounds" in data else "Measured"
    yield (f"\n{last} {content['begun']} by `{content['command']}` ({content['seconds']} s), "
           f"{content.get('server', 'no server')}, {machine['cores']} cores, {machine['memory']}, "
           f"load average before {machine['load_average'][0]:.1f}, walsizer "
           f"{content['revision']}.\n")


def main(options, names):
    """Exit status: 0 if all limits were kept, 1 if not, 2 if a measurement failed."""
    status = 0
    for name in names:
        try:
            kept = run(options, name)
        except servers.Failure as failure:
            print(f"bench/run: {name}: {failure}", file=sys.stderr, flush=True)
            status = 2
            continue
        if not kept:
            status = max(status, 1)
    return status
