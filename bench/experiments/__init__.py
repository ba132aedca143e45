"""One module for each experiment; its name on the command line is the module's.

`loads` reads the command line itself (main).  Of all others
harness/experiment.py asks this:

    __doc__         the first line is the title of the table and of the page

    measure(bench)  measures on real servers and returns a dictionary of plain
                    things, which goes to NAME.json under "data".  What bench (a
                    harness.experiment.Bench) offers is listed there; briefly:
                    bench.pick(quick, normal, full) for sizes and durations,
                    bench.subjects for what to compare with the plain server
                    (walsizer first, unless --no-walsizer, then each --preload),
                    bench.server(...) for a server with one of them.

The rest is computed from the results alone, so that bench/report can do it again:
data is what measure() returned, after its way through JSON (keys are texts,
tuples are lists).  data may lack walsizer.

    tables(data)    [(caption, heading, rows), ...], printed as Markdown
    limits(data)    [harness.limits.Limit, ...]: what walsizer must show.  Empty
                    if walsizer was not measured; others are never judged
    PLOTS           {name: draw}.  draw(figure, theme, data) draws on an empty
                    matplotlib Figure with the colours of a harness.plots.Theme;
                    it is called once for light and once for dark and written to
                    name.svg and name-dark.svg
"""
