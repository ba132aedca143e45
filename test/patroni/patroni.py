"""walsizer with Patroni: three nodes, etcd, switchover, failover, edit-config.

Speaks TAP.  Runs in an empty directory, against the server whose bin directory
is the argument, as a user who may run PostgreSQL:

    python3 patroni.py BINDIR

Nothing here waits for luck: a wait has a condition, and ends with the test if
the condition does not come true in time.  doc/where-it-runs.md tells what this
proves; a change here is a change there.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

MB = 1024 * 1024
NODES = ("n1", "n2", "n3")
WAIT = 600  # seconds, for what a slow machine takes at the most
RATE = 1.5  # MB of WAL per second
INTERVAL = 30  # checkpoint_timeout, the least that the server allows
NEEDED = 88  # what max_wal_size must be, MB, for INTERVAL * RATE, segments of 1MB

# A short loop, for the speed of the test.  A stalled machine is not to lose its
# leader, nor a replica that is behind its right to become one.
CONFIG = """
scope: walsizer
name: {name}
restapi:
  listen: 127.0.0.1:{rest}
  connect_address: 127.0.0.1:{rest}
etcd3:
  hosts: 127.0.0.1:2379
bootstrap:
  dcs:
    ttl: 40
    failsafe_mode: true
    loop_wait: 1
    retry_timeout: 15
    maximum_lag_on_failover: 1073741824
    postgresql:
      use_pg_rewind: true
      parameters:
        shared_preload_libraries: walsizer
        checkpoint_timeout: {interval}s
        max_wal_size: 4MB
        min_wal_size: 2MB
        wal_log_hints: 'on'
        wal_keep_size: 2GB
        fsync: 'off'
        log_checkpoints: 'on'
        walsizer.sample_interval: 200ms
        walsizer.enable: 'off'
  initdb:
    - encoding: UTF8
    - wal-segsize: '1'
    - no-sync
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {dir}/data
  bin_dir: {bindir}
  pgpass: {dir}/pgpass
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: postgres}}
    rewind: {{username: postgres}}
  basebackup:
    - no-sync
    - checkpoint: fast
  parameters:
    unix_socket_directories: '{dir}'
    logging_collector: 'on'
    log_directory: '{dir}'
    log_filename: server.log
"""


class Tap:
    number = 0
    failed = 0

    def ok(self, good, what, why=""):
        self.number += 1
        print(f"{'ok' if good else 'not ok'} {self.number} - {what}", flush=True)
        if not good:
            self.failed += 1
            print(f"# {why}", flush=True)

    def equal(self, got, expected, what):
        self.ok(got == expected, what, f"got {got!r}, expected {expected!r}")

    def at_least(self, got, least, what):
        self.ok(got is not None and got >= least, what, f"got {got!r}, expected at least {least!r}")

    def note(self, text):
        print(f"# {time.monotonic() - BEGIN:5.1f} s  {text}", flush=True)


BEGIN = time.monotonic()
TAP = Tap()
BINDIR = pathlib.Path(sys.argv[1])
HERE = pathlib.Path.cwd()
PROCESSES = []


def start(command, log, **options):
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, **options)
    PROCESSES.append(process)
    return process


def wait_for(what, condition):
    """The first true value of the condition."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    TAP.ok(False, f"this came true: {what}", "it did not")
    raise TimeoutError(what)


class Node:
    def __init__(self, number):
        self.name = f"n{number}"
        self.dir = HERE / self.name
        self.port = 5440 + number
        self.dir.mkdir()
        self.config = self.dir / "patroni.yml"
        self.config.write_text(CONFIG.format(
            name=self.name, rest=8000 + number, port=self.port, dir=self.dir,
            bindir=BINDIR, interval=INTERVAL))
        self.process = None

    def start(self):
        self.process = start(["/usr/bin/patroni", str(self.config)], self.dir / "patroni.log")

    def query(self, sql):
        """The rows as text, or None if the server does not answer."""
        done = subprocess.run(
            [BINDIR / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port),
             "-U", "postgres", "-d", "postgres", "-c", sql],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def status(self):
        return self.row("walsizer_status")

    def row(self, relation):
        """The one row of a relation, empty if the server does not answer."""
        row = self.query(f"SELECT row_to_json(r) FROM {relation} r")
        return json.loads(row) if row else {}

    def last_event(self):
        return self.row("(SELECT * FROM walsizer_history ORDER BY id DESC LIMIT 1)")

    def size(self):
        value = self.query("SELECT pg_size_bytes(current_setting('max_wal_size')) / 1048576")
        return int(value) if value else None

    def source(self):
        return self.query("SELECT regexp_replace(sourcefile, '.*/', '') FROM pg_settings"
                          " WHERE name = 'max_wal_size'")

    def auto_conf(self):
        text = (self.dir / "data" / "postgresql.auto.conf").read_text()
        return [line for line in text.splitlines() if line.startswith("max_wal_size")]

    def log(self):
        return (self.dir / "server.log").read_text(errors="replace")

    def forced_in_log(self):
        return sum("checkpoint starting:" in line and " wal" in line.split("starting:")[1]
                   for line in self.log().splitlines())

    def kill(self):
        """As if the machine had lost its power."""
        self.process.kill()
        self.process.wait()
        pid = int((self.dir / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)


def patronictl(*arguments):
    done = subprocess.run(["/usr/bin/patronictl", "-c", str(NODE["n1"].config), *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    (HERE / "patronictl.log").open("a").write(
        f"patronictl {' '.join(arguments)}\n{done.stdout}{done.stderr}\n")
    return done


def members():
    done = patronictl("list", "-f", "json")
    try:
        return {m["Member"]: m for m in json.loads(done.stdout)}
    except json.JSONDecodeError:
        return {}


def leader():
    for name, member in members().items():
        if member["Role"] == "Leader" and member["State"] == "running":
            if NODE[name].query("SELECT pg_is_in_recovery()") == "f":
                return NODE[name]
    return None


def replicas(number):
    found = [NODE[name] for name, member in members().items()
             if member["Role"] == "Replica" and member["State"] in ("running", "streaming")
             and NODE[name].query("SELECT count(*) FROM pg_stat_wal_receiver") == "1"]
    return found if len(found) == number else None


def replicas_streaming(number):
    return wait_for(f"{number} replicas stream", lambda: replicas(number))


def start_load(node):
    script = HERE / "load.sql"
    script.write_text("SELECT pg_logical_emit_message(true, 'walsizer', repeat('x', 104000));\n")
    return start([BINDIR / "pgbench", "-n", "-c", "1", "-T", "3600", "-R", str(10 * RATE),
                  "-L", "1000", "-f", str(script), "-h", "127.0.0.1", "-p", str(node.port), "-U", "postgres",
                  "postgres"], HERE / "load.log")


def stop_load(load):
    load.terminate()
    load.wait()


def watch(node, seconds, what):
    """No checkpoint may be forced for so long, under load."""
    before = node.forced_in_log()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.5)
    TAP.equal(node.forced_in_log() - before, 0, f"{what}: no checkpoint is forced in {seconds} s")
    wait_for(f"{what}: under load",
             lambda: node.row("walsizer_stats").get("demand", 0) >= 0.5 * RATE * INTERVAL * MB)


def edit_config(*settings):
    parameters = [word for setting in settings for word in ("-p", setting)]
    what = f"edit-config: {', '.join(settings)}"
    wait_for(what, lambda: patronictl(
        "edit-config", *parameters, "--force", "--quiet", "walsizer").returncode == 0)
    TAP.ok(True, what)


def everywhere(what, condition):
    wait_for(what, lambda: all(condition(n) for n in NODE.values()))


def test_leader_and_standbys():
    for node in NODE.values():
        node.start()
    first = wait_for("there is a leader", leader)
    replicas_streaming(2)
    TAP.note(f"three nodes are up, {first.name} leads")
    first.query("CREATE EXTENSION walsizer")
    wait_for("the extension is everywhere", lambda: all(n.status() for n in NODE.values()))
    TAP.equal([n.size() for n in NODE.values()], [4, 4, 4], "all begin with Patroni's value")
    everywhere("walsizer has looked", lambda n: n.status().get("role"))
    TAP.equal(sorted(n.status()["role"] for n in NODE.values()),
              ["primary", "standby", "standby"], "walsizer runs on each node")

    edit_config("walsizer.enable=on")
    everywhere("walsizer is switched on", lambda n: n.status().get("state") == "active")
    TAP.ok(True, "edit-config: switches walsizer on")
    load = start_load(first)
    wait_for("the leader is sized", lambda: (first.size() or 0) >= NEEDED)
    TAP.note(f"{first.name} is sized: {first.size()} MB")
    TAP.equal(first.source(), "postgresql.auto.conf", "the leader raises, by ALTER SYSTEM")
    TAP.equal(first.status()["original_size"], 4 * MB, "from the value that Patroni gave it")
    for node in replicas_streaming(2):
        wait_for(f"{node.name} is sized", lambda node=node: (node.size() or 0) >= NEEDED)
        wait_for(f"{node.name} says so", node.last_event)
        TAP.equal(node.last_event()["role"], "standby", "a replica raises for itself")
    for node in NODE.values():
        # Patroni's connection is closed for a moment when it reconnects
        instruction = wait_for(f"{node.name}: Patroni is recognized", lambda node=node: node.query(
            "SELECT max(instruction) FROM walsizer_instructions HAVING string_agg(place, ', ') = 'Patroni'"))
        TAP.ok(instruction.startswith("patronictl edit-config -p max_wal_size="),
               f"{node.name}: the instruction is the command with which this test sets it, too")
    TAP.note("all are sized: " + ", ".join(f"{n.name} {n.size()} MB" for n in NODE.values()))
    return first, load


def test_switchover(old, load):
    new = replicas_streaming(2)[0]
    size = new.size()

    def switched_over():
        # refused while Patroni finds a member not ready; another member takes over
        # if the candidate does not answer in time
        now = leader()
        if now not in (None, new):
            patronictl("switchover", "--master", now.name, "--candidate", new.name, "--force",
                       "walsizer")
        return now is new

    wait_for(f"{new.name} leads", switched_over)
    stop_load(load)
    load = start_load(new)
    TAP.note(f"switchover from {old.name} to {new.name}")
    TAP.at_least(new.size(), size, "switchover: the new leader begins with the size it had")
    watch(new, 2 * INTERVAL + 2, "switchover")
    TAP.at_least(new.size(), NEEDED, "switchover: the size stays")
    replicas_streaming(2)
    wait_for("walsizer runs there", lambda: old.status().get("role") == "standby")
    TAP.equal(old.status()["role"], "standby", "switchover: the old leader follows")
    TAP.at_least(old.size(), NEEDED, "switchover: with its size")
    return new, load


def test_failover(old, load):
    old.kill()
    new = wait_for("another one leads", lambda: [n for n in [leader()] if n not in (None, old)])[0]
    stop_load(load)
    load = start_load(new)
    TAP.note(f"failover from {old.name} to {new.name}")
    TAP.at_least(new.size(), NEEDED, "failover: the new leader begins with a fitting size")
    watch(new, 2 * INTERVAL + 2, "failover")
    old.start()
    replicas_streaming(2)
    TAP.note(f"{old.name} is back")
    wait_for("walsizer runs there", lambda: old.status().get("role") == "standby")
    TAP.at_least(old.size(), NEEDED, "failover: the old leader follows, with a fitting size")
    wait_for("the value is known as walsizer's", lambda: old.query(
        "SELECT set_by_walsizer = pg_size_bytes(current_setting('max_wal_size')) FROM walsizer_status") == "t")
    TAP.ok(True, "failover: and knows that the value is walsizer's")
    return new, load


def test_edit_config(lead):
    # smaller than the load needs, with the limit that forbids to raise it again
    edit_config("max_wal_size=6MB", "walsizer.max=6MB")
    everywhere("6MB is in effect", lambda n: n.size() == 6)
    everywhere("walsizer says so", lambda n: n.last_event().get("new_size") == 6 * MB)
    for node in NODE.values():
        event = node.last_event()
        TAP.equal((event.get("action"), event.get("reason"), event.get("new_size")),
                  ("external", "edited", 6 * MB),
                  f"edit-config, {node.name}: walsizer gives way, and says so")
        TAP.equal(node.auto_conf(), [], f"edit-config, {node.name}: its line is gone")
        TAP.equal(node.source(), "postgresql.conf", f"edit-config, {node.name}: Patroni's counts")
    everywhere("walsizer wants a raise, which walsizer.max forbids", lambda n: n.query(
        "SELECT action = 'none' AND reason IN ('forced', 'predicted', 'primary') AND limited_by = 'max'"
        " FROM walsizer_status") == "t")
    TAP.equal([n.size() for n in NODE.values()], [6, 6, 6], "edit-config: the value stays, as walsizer.max says")
    TAP.note("edit-config to 6MB")

    edit_config("max_wal_size=150MB")
    everywhere("150MB is in effect", lambda n: n.size() == 150)
    everywhere("walsizer says so", lambda n: (
        n.last_event().get("action"), n.last_event().get("new_size")) == ("external", 150 * MB))
    TAP.ok(True, "edit-config: a larger value counts as well, in spite of walsizer.max")
    TAP.note("edit-config to 150MB")

    # What an administrator's ALTER SYSTEM does to edit-config, without walsizer's doing.
    hand = [n for n in NODE.values() if n is not lead][0]
    hand.query("ALTER SYSTEM SET max_wal_size = '200MB'")
    hand.query("SELECT pg_reload_conf()")
    wait_for("200MB is in effect", lambda: hand.size() == 200)
    others = [n for n in NODE.values() if n is not hand]
    edit_config("max_wal_size=160MB")
    for node in others:
        wait_for("160MB is in effect", lambda node=node: node.size() == 160)
    TAP.equal(hand.size(), 200, "ALTER SYSTEM by hand: hides what edit-config says, there only")
    TAP.equal(hand.auto_conf(), ["max_wal_size = '200MB'"],
              "ALTER SYSTEM by hand: neither Patroni nor walsizer touches it")
    seen = wait_for("three members", lambda: [m for m in [members()] if len(m) == 3])[0]
    TAP.equal([m.get("Pending restart") for m in seen.values()], [None] * 3,
              "ALTER SYSTEM by hand: Patroni has no complaint")
    loaded = hand.query("SELECT pg_conf_load_time()")
    wait_for("patronictl reload", lambda: patronictl("reload", "--force", "walsizer").returncode == 0)
    wait_for("the reload", lambda: hand.query("SELECT pg_conf_load_time()") != loaded)
    TAP.equal(hand.size(), 200, "ALTER SYSTEM by hand: patronictl reload changes nothing")
    hand.query("ALTER SYSTEM RESET max_wal_size")
    hand.query("SELECT pg_reload_conf()")
    wait_for("160MB is in effect", lambda: hand.size() == 160)
    TAP.ok(True, "ALTER SYSTEM by hand: RESET makes edit-config's value count")


def main():
    start(["/usr/bin/etcd", "--data-dir", str(HERE / "etcd"), "--unsafe-no-fsync",
           "--listen-client-urls", "http://127.0.0.1:2379",
           "--advertise-client-urls", "http://127.0.0.1:2379",
           "--listen-peer-urls", "http://127.0.0.1:2380"], HERE / "etcd.log")
    lead, load = test_leader_and_standbys()
    lead, load = test_switchover(lead, load)
    lead, load = test_failover(lead, load)
    test_edit_config(lead)
    stop_load(load)
    for node in NODE.values():
        TAP.ok("PANIC" not in node.log(), f"{node.name}: alive")


def stop_all():
    for process in reversed(PROCESSES):
        if process.poll() is None:
            process.terminate()
    for process in reversed(PROCESSES):
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()


NODE = {f"n{number}": Node(number) for number in (1, 2, 3)}
try:
    main()
    print(f"1..{TAP.number}")
finally:
    stop_all()
sys.exit(1 if TAP.failed else 0)
