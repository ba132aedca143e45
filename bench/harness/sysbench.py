"""sysbench, as Debian has it: oltp_write_only, and what it got done in each second."""

import re

from harness import server as servers

SECOND = re.compile(r"^\[ \d+s \] thds: \d+ tps: ([\d.]+)", re.M)


def command(server, tables, rows):
    return ["sysbench", "oltp_write_only", "--db-driver=pgsql", f"--pgsql-host={server.work}",
            "--pgsql-user=postgres", "--pgsql-db=postgres", f"--tables={tables}",
            f"--table-size={rows}"]


def prepare(server, tables, rows):
    servers.run("sysbench's tables", [*command(server, tables, rows), "prepare"])


def run(server, tables, rows, threads, seconds):
    """Transactions of each second; the last may be missing."""
    out = servers.run("sysbench", [*command(server, tables, rows), f"--threads={threads}",
                                   f"--time={seconds}", "--report-interval=1", "run"])
    found = [float(tps) for tps in SECOND.findall(out)]
    if len(found) < seconds - 2:
        raise servers.Failure(f"sysbench reported {len(found)} of {seconds} seconds\n{out[-2000:]}")
    return found
