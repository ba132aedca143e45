"""Servers: installed, started, asked, stopped.  All in the current directory."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import time

DEBIAN_PG_CONFIG = "/usr/lib/postgresql/15/bin/pg_config"
SETTLING = 5  # seconds from the start of a server to that of the load


class Failure(Exception):
    """A command of an experiment did not do what it should."""


def run(what, command, **options):
    """Run a command in silence; what it said is shown if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"failed: {what}\n{done.stdout[-4000:]}")
    return done.stdout


class Installation:
    """A copy of Debian's server with the extension in it.

    PostgreSQL finds its files relative to its programs, so a copy is a server
    of its own, and Debian's stays as it is.  A rival that the reader has
    installed in Debian's is copied with it."""

    def __init__(self, work, pg_config):
        self.work = pathlib.Path(work).resolve()
        self.pg_config = pg_config
        self.bin = None

    def build(self, sources, subjects):
        """Build walsizer into the copy, and see that all there is to preload is in it."""
        self._copy()
        config = self.bin / "pg_config"
        run("building walsizer", ["make", "-C", sources, "--no-print-directory", "-j2",
                                  f"PG_CONFIG={config}", "with_llvm=no", "install"])
        for subject in subjects:
            if subject.library and not self._library(subject.library).exists():
                raise Failure(f"{subject.library}.so is not in {self._debian('--pkglibdir')}: "
                              "install it there")
        return self

    def _copy(self):
        for what in ("--bindir", "--pkglibdir", "--sharedir"):
            shutil.copytree(self._debian(what), self._place(what), symlinks=True,
                            dirs_exist_ok=True)
        for what in ("--includedir", "--libdir"):
            place = self._place(what)
            place.parent.mkdir(parents=True, exist_ok=True)
            # the library directory may have come with the copies above
            if not place.exists():
                place.symlink_to(self._debian(what))
        self.bin = self._place("--bindir")

    def _debian(self, what):
        return run("asking pg_config", [self.pg_config, what]).strip()

    def _place(self, what):
        return self.work / "server" / pathlib.Path(self._debian(what)).relative_to("/usr")

    def version(self):
        return run("asking for the version", [self.bin / "postgres", "--version"]).strip()

    def checksum(self, library):
        """SHA-256 of a library: rivals have no other version that all of them tell."""
        return hashlib.sha256(self._library(library).read_bytes()).hexdigest()

    def _library(self, library):
        return self._place("--pkglibdir") / f"{library}.so"


# What all experiments share.  The socket lies beside the data; no TCP.
BASE = {
    "listen_addresses": "''",
    "log_checkpoints": "on",
    "log_line_prefix": "'%m [%p] '",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "shared_buffers": "256MB",
    "max_connections": "50",
}


class Server:
    """One cluster, running for as long as a with statement lasts."""

    def __init__(self, installation, work, settings):
        self.bin = installation.bin
        self.work = pathlib.Path(work).resolve()
        self.data = self.work / "data"
        self.log = self.work / "server.log"
        self.settings = settings
        self.sessions = []

    def create(self, template):
        """From a template: making the tables takes longer than the copy."""
        remove(self.data)
        self.log.unlink(missing_ok=True)
        run("copying the data", ["cp", "-a", "--reflink=auto", template, self.data])
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            for name, value in {**BASE, **self.settings}.items():
                conf.write(f"{name} = {value}\n")
            conf.write(f"unix_socket_directories = '{self.work}'\n")
        return self

    def __enter__(self):
        self.start()
        return self

    def start(self):
        try:
            run("starting a server", [self.bin / "pg_ctl", "start", "--wait", "--silent",
                                      "--timeout=120", f"--pgdata={self.data}",
                                      f"--log={self.log}"])
        except Failure as failure:
            # what is wrong, a library that is not there say, is in the log
            raise Failure(f"{failure}{self.log.read_text()[-2000:]}") from None

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for session in self.sessions:
            session.close()
        self.sessions = []
        run("stopping a server", [self.bin / "pg_ctl", "stop", "--wait", "--silent",
                                  "--timeout=300", "--mode=fast", f"--pgdata={self.data}"])

    def client(self, program):
        return [str(self.bin / program), f"--host={self.work}", "--username=postgres"]

    def psql(self, statement, database="postgres"):
        """The rows of a statement, each a list of texts."""
        out = run(f"query: {statement}",
                  [*self.client("psql"), "--no-psqlrc", "--quiet", "--tuples-only",
                   "--no-align", "--set=ON_ERROR_STOP=1", f"--dbname={database}",
                   f"--command={statement}"])
        return [line.split("|") for line in out.splitlines()]

    def value(self, statement):
        return self.psql(statement)[0][0]

    def rows(self, relation):
        """All of a relation, a dictionary for each row, texts as they are."""
        text = self.value("SELECT coalesce(json_agg(to_json(r)), '[]') "
                          f"FROM (SELECT * FROM {relation}) r")
        return json.loads(text)

    def pgbench(self, *options, database="postgres", **popen):
        """Runs pgbench to its end and returns its output."""
        return run("pgbench", [*self.client("pgbench"), *options, database], **popen)

    def session(self):
        session = Session([*self.client("psql"), "--dbname=postgres"])
        self.sessions.append(session)
        return session

    def worker(self, library):
        """Process id of a library's background worker, or None."""
        rows = self.psql("SELECT pid FROM pg_stat_activity "
                         f"WHERE backend_type LIKE '%{library}%' ORDER BY pid LIMIT 1")
        return int(rows[0][0]) if rows else None


class Session:
    """A connection that stays: one statement in, its one row out."""

    def __init__(self, command):
        self.psql = subprocess.Popen(
            ["stdbuf", "-oL", *command, "--no-psqlrc", "--quiet", "--tuples-only",
             "--no-align", "--set=ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def row(self, statement):
        self.psql.stdin.write(statement + ";\n")
        self.psql.stdin.flush()
        line = self.psql.stdout.readline()
        if not line:
            raise Failure(f"a session ended at: {statement}")
        return line.rstrip("\n").split("|")

    def close(self):
        self.psql.stdin.close()
        self.psql.wait(timeout=60)


def remove(directory):
    if os.path.exists(directory):
        shutil.rmtree(directory)


def make_template(installation, work, scale):
    """A stopped cluster with pgbench's tables, made with plenty of room for
    WAL: the load comes later.  None for scale 0."""
    template = pathlib.Path(work).resolve() / f"template-{scale}"
    if template.exists():
        return template
    empty = pathlib.Path(work).resolve() / "template-0"
    if not empty.exists():
        run("creating a server",
            [installation.bin / "initdb", "--no-sync", "--auth=trust", "--username=postgres",
             "--encoding=UTF8", "--no-locale", empty])
    if scale > 0:
        server = Server(installation, work, {"max_wal_size": "16GB",
                                             "checkpoint_timeout": "1h", "fsync": "off"})
        with server.create(empty):
            server.pgbench("--initialize", "--quiet", f"--scale={scale}")
            server.psql("CHECKPOINT")
        server.data.rename(template)
        # the settings of this server are not those of the next
        shutil.copy(empty / "postgresql.conf", template / "postgresql.conf")
    return template


def settle():
    time.sleep(SETTLING)
