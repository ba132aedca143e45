"""Plots, for a light page and for a dark one, as SVG and PNG."""

import pathlib

WIDTH, HEIGHT = 9, 4.5  # inches; at 100 dpi about the width of a README


class Theme:
    """Colours: of the page, and one for each kind of series, the same in all
    plots.  The background is transparent in neither: a viewer may have any."""

    def __init__(self, name, page, text, grid, **series):
        self.name, self.page, self.text, self.grid = name, page, text, grid
        self.series = series
        self.more = ["#b07aa1", "#9c755f", "#76b7b2", "#edc948"]

    def colour(self, name):
        """By the name of a series: "small", "large", "walsizer", or any other,
        which gets a colour of its own."""
        if name not in self.series:
            used = len([one for one in self.series if one not in KNOWN])
            self.series[name] = self.more[used % len(self.more)]
        return self.series[name]


KNOWN = ("small", "large", "walsizer", "plain")


def themes():
    return [Theme("light", "#ffffff", "#1f2328", "#d1d9e0", small="#d1242f", large="#57606a",
                  walsizer="#0969da", plain="#57606a"),
            Theme("dark", "#0d1117", "#e6edf3", "#3d444d", small="#ff7b72", large="#9ea7b3",
                  walsizer="#58a6ff", plain="#9ea7b3")]


def settings(theme):
    return {"figure.facecolor": theme.page, "axes.facecolor": theme.page,
            "savefig.facecolor": theme.page, "text.color": theme.text,
            "axes.labelcolor": theme.text, "axes.edgecolor": theme.grid,
            "xtick.color": theme.text, "ytick.color": theme.text,
            "axes.grid": True, "grid.color": theme.grid, "grid.linewidth": 0.6,
            "axes.spines.top": False, "axes.spines.right": False,
            "legend.frameon": False, "legend.labelcolor": theme.text,
            "font.size": 10, "axes.titlesize": 11, "axes.axisbelow": True,
            "lines.linewidth": 1.6, "svg.hashsalt": "walsizer", "svg.fonttype": "path"}


def legend_below(panel, distance):
    """Not over what is drawn: below the panel, by this part of its height."""
    panel.legend(loc="upper left", bbox_to_anchor=(0, -distance), ncols=2, fontsize=9,
                 borderaxespad=0)


def draw_all(drawings, data, directory):
    """Each as NAME.svg and NAME-dark.svg."""
    if not drawings:
        return
    # only here: what draws nothing does without matplotlib
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib.figure import Figure  # pylint: disable=import-outside-toplevel
    place = pathlib.Path(directory)
    place.mkdir(exist_ok=True)
    for name, draw in drawings.items():
        for theme in themes():
            with matplotlib.rc_context(settings(theme)):
                figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
                draw(figure, theme, data)
                stem = name if theme.name == "light" else f"{name}-{theme.name}"
                # no date in the files: the same results give the same files
                figure.savefig(place / f"{stem}.svg", metadata={"Date": None})
