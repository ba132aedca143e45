"""Reads the command line and runs one experiment.  bench/run starts this in a
private directory that holds the sources in src."""

import argparse
import importlib
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# pylint: disable=wrong-import-position
from harness.server import Failure  # noqa: E402

EXPERIMENTS = ["loads", "recovery"]


class Subject:
    """What is preloaded, and the settings that go with it."""

    def __init__(self, name, library):
        self.name = name
        self.library = library
        self.gucs = {}


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
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--only", metavar="LOAD,...", help="not all loads of the experiment")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="repetitions")
    parser.add_argument("--without", nargs=0, action=AddSubject,
                        help="measure the plain server too")
    parser.add_argument("--preload", metavar="LIBRARY", action=AddSubject,
                        help="measure another installed extension too")
    parser.add_argument("--guc", metavar="NAME=VALUE", action=AddGuc,
                        help="a setting, of the library named just before or of all servers")
    parser.add_argument("--no-walsizer", action="store_true",
                        help="measure only what --without and --preload name")
    parser.add_argument("--keep-logs", action="store_true",
                        help="put the servers' logs beside the results")
    parser.add_argument("--time-factor", type=float, default=1.0, metavar="F",
                        help="shorter or longer loads, for trying out; the limits hold for 1")
    parser.add_argument("--command", default="", help=argparse.SUPPRESS)
    parser.add_argument("--revision", default="unknown", help=argparse.SUPPRESS)
    parser.set_defaults(beside=[], gucs={})
    return parser, parser.parse_args()


def main():
    parser, options = read_options()
    options.subjects = list(options.beside)
    if not options.no_walsizer:
        options.subjects.insert(0, Subject("walsizer", "walsizer"))
    if not options.subjects:
        parser.error("--no-walsizer without --without or --preload leaves nothing")
    # so that servers are stopped in order
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    experiment = importlib.import_module(f"experiments.{options.experiment}")
    try:
        return experiment.main(options, parser)
    except Failure as failure:
        print(f"bench/run: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
