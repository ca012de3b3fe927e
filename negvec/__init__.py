"""negvec: set reconciliation over Negentropy Protocol V1, vectorized with NumPy.

>>> import negvec
>>> ours = negvec.seal([1, 2], ["aa" * 32, "bb" * 32])
>>> theirs = negvec.seal([2, 3], ["bb" * 32, "cc" * 32])
>>> initiator, responder = negvec.Negentropy(ours), negvec.Negentropy(theirs)
>>> step = initiator.reconcile(responder.reconcile(initiator.initiate()).message)
>>> step.message is None, step.have.tobytes().hex() == "aa" * 32, step.need.tobytes().hex() == "cc" * 32
(True, True, True)
"""

import importlib
import sys
from types import ModuleType

from negvec.errors import DamagedStorage, ProtocolError, SealError, UnsupportedVersion
from negvec.items import ITEM
from negvec.protocol import AdaptivePolicy, Negentropy, ReferencePolicy, Step, reconcile
from negvec.storage import LiveIndex, PrefixSumVector, Storage, Vector, seal
from negvec.storage import open_file as open
from negvec.threads import set_threads

if sys.byteorder != "little":
    raise ImportError(
        "negvec reads ids as little-endian words in place; this machine is big-endian, which it does not support"
    )

__version__ = "0.1.0"

__all__ = [
    "ITEM",
    "AdaptivePolicy",
    "DamagedStorage",
    "LiveIndex",
    "Negentropy",
    "PrefixSumVector",
    "ProtocolError",
    "ReferencePolicy",
    "SealError",
    "Step",
    "Storage",
    "UnsupportedVersion",
    "Vector",
    "open",
    "reconcile",
    "seal",
    "set_threads",
]

_MODULES = ("client", "costs", "nip77", "plot", "relay", "trace", "workloads")  # imported when they are first asked for


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
