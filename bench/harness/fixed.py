"""A fixed number of transactions, and what WAL they cost."""

import time

from harness import model, tps, watch

CLIENTS = 8


def measure(bench, subject, settings, scale, transactions):
    """pgbench TPC-B, so many transactions as fast as it goes, on a server of its own."""
    with bench.server(subject, settings, scale) as server:
        # the tables in the cache, and the start's own writing over
        server.psql("SELECT count(*) FROM pgbench_accounts")
        time.sleep(2)
        series = watch.Series(server)
        before = wal_statistics(server)
        series.start()
        with tps.Pgbench(server, f"--client={CLIENTS}", "--jobs=2", "--protocol=prepared",
                         f"--transactions={transactions // CLIENTS}") as pgbench:
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
