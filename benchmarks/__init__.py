"""The asv suite: one module for each kind of work, and in `runs` what they work on.

Sets have 20,000 items, so that a whole `asv run` takes minutes; NEGVEC_BENCH_N=1000000 makes them as large as the
figures that the field quotes. Every benchmark checks its result before it is timed.
"""
