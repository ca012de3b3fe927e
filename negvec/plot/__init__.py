"""Pictures of reconciliations, drawn with matplotlib (the extra `negvec[plot]`).

>>> import negvec.workloads
>>> from negvec import plot
>>> from negvec.trace import Trace
>>> ours, theirs = (negvec.seal(*side) for side in negvec.workloads.pair("clustered", 5000))
>>> trace = Trace()
>>> _ = negvec.reconcile(ours, theirs, watch=trace)
>>> figure = plot.range_tree(trace)  # figure.savefig("tree.svg"), or the last line of a notebook's cell

Each function gives a matplotlib Figure of its own and leaves pyplot's state alone. Colours are those of Okabe and Ito
(Color Universal Design, 2008), which people of all kinds of colour vision tell apart; lines differ in their marks, too.
"""

try:
    import matplotlib as _  # noqa: F401
except ImportError as error:
    raise ImportError("pictures are drawn with matplotlib: pip install 'negvec[plot]'") from error

from negvec.plot.lines import fingerprint_costs, policy_costs
from negvec.plot.rounds import bytes_by_round
from negvec.plot.tree import range_tree

__all__ = ["bytes_by_round", "fingerprint_costs", "policy_costs", "range_tree"]
