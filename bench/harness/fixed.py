"""A fixed number of transactions, and what WAL they cost."""

import time

from harness import model, tps, watch

CLIENTS = 8


def measure(bench, subject, settings, scale, transactions, rate=None):
    """pgbench TPC-B, so many transactions, at a rate or as fast as it goes, on a server
    of its own."""
    with bench.server(subject, settings, scale) as server:
        # the tables in the cache, and the start's own writing over
        server.psql("SELECT count(*) FROM pgbench_accounts")
        time.sleep(2)
        series = watch.Series(server)
        before = wal_statistics(server)
        series.start()
        with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", "--protocol=prepared",
                         f"--transactions={transactions // CLIENTS}",
                         *([f"--rate={rate}"] if rate else [])) as pgbench:
            rows = pgbench.wait()
        series.stop()
        after = wal_statistics(server)
        checkpoints, changes = watch.read_log(server.log, series.rows[0][0])
        history = (server.rows("walsizer_history ORDER BY id")
                   if subject.library == "walsizer" else [])
    began, first, _, start_mb = series.rows[0]
    return {"settings": server.settings, "transactions": transactions,
            "seconds": round(transactions / pgbench.mean, 1),
            "tps": [row[1] for row in rows],
            "wal_mb": (after["lsn"] - before["lsn"]) / model.MB,
            "fpi": after["wal_fpi"] - before["wal_fpi"],
            "fpi_mb": ((after["wal_fpi_bytes"] - before["wal_fpi_bytes"]) / model.MB
                       if after.get("wal_fpi_bytes") is not None else None),
            "series": [(round(at - began, 2), (lsn - first) // 1024, mb)
                       for at, lsn, _, mb in series.rows],
            "checkpoints": [{**vars(c), "at": round(c.at - began, 2)} for c in checkpoints],
            "changes": [(round(at - began, 2), mb) for at, mb in changes],
            "start_mb": start_mb, "final_mb": series.rows[-1][3], "history": history}


def wal_statistics(server):
    """Of the whole server; 19 has the bytes of page images, too.  Sessions report
    when they end, and pgbench's have."""
    server.psql("SELECT pg_stat_force_next_flush()")
    row = server.rows("pg_stat_wal")[0]
    row["lsn"] = int(server.value("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"))
    return row


def count(run, cause):
    return sum(c["cause"] == cause for c in run["checkpoints"])


def gap(run):
    """Seconds between two checkpoints; None with fewer than two."""
    starts = [c["at"] for c in run["checkpoints"]]
    return (starts[-1] - starts[0]) / (len(starts) - 1) if len(starts) > 1 else None


def size(run):
    return (f"{run['start_mb']} MB" if run["start_mb"] == run["final_mb"]
            else f"{run['start_mb']} -> {run['final_mb']} MB")


HEADING = ["run", "WAL, MB", "kB / transaction", "page images", "checkpoints: forced", "timed",
           "seconds between", "max_wal_size", "tps"]


def cells(run):
    between = gap(run)
    images = f"{run['fpi']}" + (f" ({run['fpi_mb']:.0f} MB)" if run["fpi_mb"] is not None else "")
    return [run["run"], f"{run['wal_mb']:.0f}",
            f"{1024 * run['wal_mb'] / run['transactions']:.1f}", images, count(run, "forced"), count(run, "timed"),
            f"{between:.1f}" if between else "-", size(run),
            f"{run['transactions'] / run['seconds']:.0f}"]
