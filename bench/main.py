"""Reads the command line and runs one experiment.  bench/run starts this in a
private directory that holds the sources in src."""

import argparse
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# pylint: disable=wrong-import-position
from harness import experiment  # noqa: E402
from harness.experiment import Subject  # noqa: E402
from harness.server import DEBIAN_PG_CONFIG, Failure  # noqa: E402

# Reads the options itself; what all others are is said in
# experiments/__init__.py.
OWN_MAIN = ["loads"]


class AddSubject(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        if option_string == "--without":
            namespace.beside.append(Subject("plain", None))
        else:
            namespace.beside.append(Subject(values, values))


class AddGuc(argparse.Action):
    """Belongs to the library named before it, or to every server if there is
    none."""

    def __call__(self, parser, namespace, values, option_string=None):
        name, equals, value = values.partition("=")
        if not equals:
            parser.error(f"--guc takes NAME=VALUE, not {values}")
        gucs = namespace.beside[-1].gucs if namespace.beside else namespace.gucs
        gucs[name] = value


def read_options():
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Runs an experiment on real servers.",
        epilog="--output DIR is where the results go (default: bench/output).")
    parser.add_argument("experiment", choices=[*OWN_MAIN, *experiment.APART, *experiment.NAMES, "all"],
                        help=f"all: all but {', '.join(experiment.APART + OWN_MAIN)}")
    parser.add_argument("--quick", dest="mode", action="store_const", const="quick",
                        help="short: to see that it works, and roughly what comes out")
    parser.add_argument("--full", dest="mode", action="store_const", const="full",
                        help="long, with more repetitions and sizes")
    parser.add_argument("--add", action="store_true",
                        help="add rounds to the results that are there, of an experiment that is "
                             "measured in rounds")
    parser.add_argument("--only", metavar="NAME,...",
                        help="not all loads, sizes of defaults, starts of bulk, loads of sweep or "
                             "writer, or experiments of all")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="repetitions")
    parser.add_argument("--without", nargs=0, action=AddSubject,
                        help="measure the plain server too")
    parser.add_argument("--preload", metavar="LIBRARY", action=AddSubject,
                        help="measure another installed extension too")
    parser.add_argument("--guc", metavar="NAME=VALUE", action=AddGuc,
                        help="a setting, of the library named just before or of all servers")
    parser.add_argument("--no-walsizer", action="store_true",
                        help="measure only what --without and --preload name")
    parser.add_argument("--pg-config", metavar="PATH", default=DEBIAN_PG_CONFIG,
                        help="of another version of the server, as Debian installs it")
    parser.add_argument("--keep-logs", action="store_true",
                        help="put the servers' logs beside the results")
    parser.add_argument("--time-factor", type=float, default=1.0, metavar="F",
                        help="shorter or longer loads, for trying out; the limits hold for 1")
    parser.add_argument("--command", default="", help=argparse.SUPPRESS)
    parser.add_argument("--revision", default="unknown", help=argparse.SUPPRESS)
    parser.add_argument("--slow-volume", help=argparse.SUPPRESS)
    parser.add_argument("--no-slow-volume", default="", help=argparse.SUPPRESS)
    parser.set_defaults(beside=[], gucs={}, mode="normal")
    return parser, parser.parse_args()


def chosen(options, parser):
    """The experiments to run."""
    # the plain server is part of each
    options.subjects = [one for one in options.subjects if one.library]
    if options.experiment != "all":
        return [options.experiment]
    names = options.only.split(",") if options.only else experiment.NAMES
    unknown = [name for name in names if name not in experiment.NAMES]
    if unknown:
        parser.error(f"no such experiment: {', '.join(unknown)}")
    return names


def main():
    parser, options = read_options()
    options.subjects = list(options.beside)
    if not options.no_walsizer:
        options.subjects.insert(0, Subject("walsizer", "walsizer"))
    if not options.subjects:
        parser.error("--no-walsizer without --without or --preload leaves nothing")
    # so that servers are stopped in order
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.experiment in OWN_MAIN:
            return experiment.load(options.experiment).main(options, parser)
        return experiment.main(options, chosen(options, parser))
    except Failure as failure:
        print(f"bench/run: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
