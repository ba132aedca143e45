"""What gcov counted in a source file, for torture-coverage and coverage."""

import json
import pathlib
import subprocess


def lines_of(directory, notes, name):
    """line: [times it ran, branches, branches taken], of the source file of that name, from
    the notes of its object, a path relative to the directory in which gcov runs."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                           str(notes)],
                          cwd=directory, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    lines = {}
    for file in json.loads(done.stdout)["files"]:
        if pathlib.Path(file["file"]).name != name:
            continue
        for line in file["lines"]:
            counted = lines.setdefault(line["line_number"], [0, 0, 0])
            counted[0] += line["count"]
            counted[1] += len(line["branches"])
            counted[2] += sum(branch["count"] > 0 for branch in line["branches"])
    return lines
