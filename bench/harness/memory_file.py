"""A full state file: what walsizer has after years, in a second.

Written as policy/memory.c says, and read by walsizer with all its suspicion:
what it does not like it sets aside, and the history is empty."""

import time

EVENTS = 1024
HOURS = 31 * 24 + 1


def fill(server):
    """A full history and a peak for each hour of a month.  The server must be
    stopped, and walsizer must have saved its memory when it was."""
    path = server.data / "pg_stat" / "walsizer.state"
    *heading, state = path.read_text(encoding="utf-8").splitlines()[:3]
    # its last field is the number of the last event
    state = " ".join([*state.split()[:-1], str(EVENTS)])
    text = "\n".join([*heading, state, *peaks(), *events()]) + "\n"
    lines = text.count("\n")
    path.write_text(f"{text}end {lines} {checksum(text.encode()):x}\n", encoding="utf-8")


def peaks():
    """Small ones: nothing is to be raised for them."""
    hour = int(time.time()) // 3600
    for ago in range(HOURS - 1, -1, -1):
        yield f"peak {hour - ago} {1_000_000 + ago} 30000"


def events():
    """An adjustment each hour: number, time (microseconds since 2000), action,
    reason, limit, outcome, sizes, demand, rate, forced, requested, timed, timeout,
    target, standby, forced afterwards, message."""
    now = int((time.time() - 946_684_800) * 1e6)
    for number in range(1, EVENTS + 1):
        at = now - (EVENTS - number) * 3_600_000_000
        action = 1 + number % 2
        yield (f"event {number} {at} {action} 4 0 1 {64 + number} {80 + number} {80 + number} "
               f"{number * 1000} 1000000 1 2 3 30000 900000 0 0 ")


def checksum(text):
    """FNV-1a."""
    value = 0xcbf29ce484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value
