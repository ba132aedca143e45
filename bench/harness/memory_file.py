"""A full state file: what walsizer has after years, in a second.

Written as server/statetext.c says, and read by walsizer with all its suspicion:
what it does not like it sets aside, and the history is empty."""

import re
import time

EVENTS = 1024
HOURS = 31 * 24 + 1


def fill(server):
    """A full history and a peak for each hour of a month.  The server must be
    stopped, and walsizer must have saved its memory when it was."""
    path = server.data / "pg_stat" / "walsizer.state"
    heading, state = path.read_text(encoding="utf-8").splitlines()[:2]
    state = re.sub(r" last_event \d+", f" last_event {EVENTS}", state)
    text = "\n".join([heading, state, *peaks(), *events()]) + "\n"
    lines = text.count("\n")
    path.write_text(f"{text}end {lines} {checksum(text.encode()):x}\n", encoding="utf-8")


def peaks():
    """Small ones: nothing is to be raised for them."""
    hour = int(time.time()) // 3600
    for ago in range(HOURS - 1, -1, -1):
        yield f"peak hour {hour - ago} demand {1_000_000 + ago} timeout_ms 30000"


def events():
    """An adjustment each hour; times are microseconds since 2000."""
    now = int((time.time() - 946_684_800) * 1e6)
    for number in range(1, EVENTS + 1):
        at = now - (EVENTS - number) * 3_600_000_000
        action = "lower" if number % 2 else "raise"
        yield (f"event number {number} at {at} action {action} reason predicted limited_by none "
               f"outcome applied old_mb {64 + number} wanted_mb {80 + number} new_mb {80 + number} "
               f"demand {number * 1000} rate 1000000 forced 1 requested 2 timed 3 timeout_ms 30000 "
               f"completion_target_millionths 900000 standby 0 forced_after 0 message ")


def checksum(text):
    """FNV-1a."""
    value = 0xcbf29ce484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value
