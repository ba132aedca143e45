"""What walsizer must show, and whether it did."""


class Limit:
    """One thing that walsizer must show."""

    def __init__(self, what, measured, kept):
        self.what = what
        self.measured = measured
        self.kept = bool(kept)

    def __str__(self):
        verdict = "PASS" if self.kept else "FAIL"
        return f"{verdict}  {self.what}: {self.measured}"


def at_most(what, measured, most):
    return Limit(f"{what} at most {most:g}", measured, measured <= most)


def at_least(what, measured, least):
    return Limit(f"{what} at least {least:g}", measured, measured >= least)


def none(what, measured):
    return Limit(f"no {what}", measured, measured == 0)
