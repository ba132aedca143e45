"""Results: one JSON file for each measurement, a Markdown table for people."""

import datetime
import json
import os
import pathlib
import platform
import re


def machine():
    """What the numbers depend on.  The load says whether it was busy."""
    cpu = memory = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="ascii") as file:
        memory = f"{int(file.readline().split()[1]) // 1024} MB"
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "memory": memory,
            "kernel": platform.release().split("-")[0], "load_average": os.getloadavg()}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def write(name, content, directory="results"):
    """Lists of plain values go on one line: a series is one row a second.

    Written beside and renamed: who copies it meanwhile has the old or the new."""
    place = pathlib.Path(directory)
    place.mkdir(exist_ok=True)
    path, unfinished = place / f"{name}.json", place.parent / f"{name}.json.new"
    text = json.dumps(content, indent=1, default=vars)
    text = re.sub(r"\[\n\s+([^\[\]{}]*?)\n\s+\]",
                  lambda match: "[" + re.sub(r"\n\s+", " ", match[1]) + "]", text)
    unfinished.write_text(text + "\n", encoding="utf-8")
    return unfinished.rename(path)


def table(heading, rows):
    """Markdown."""
    texts = [[str(cell) for cell in row] for row in [heading, *rows]]
    width = [max(len(row[i]) for row in texts) for i in range(len(heading))]
    lines = ["| " + " | ".join(cell.ljust(width[i]) for i, cell in enumerate(row)) + " |"
             for row in texts]
    lines.insert(1, "|" + "|".join("-" * (n + 2) for n in width) + "|")
    return "\n".join(lines)
