"""Where items are kept: the seam that the protocol asks (`Storage`), and what implements it."""

from negvec.storage.changing import Changes
from negvec.storage.live import LiveIndex
from negvec.storage.mapped import MappedVector, open_file
from negvec.storage.prefix_sum import PrefixSumVector, seal
from negvec.storage.seam import Bounds, IdLists, Storage
from negvec.storage.snapshot import Snapshot
from negvec.storage.vector import Vector
from negvec.storage.window import Window, Windowed

__all__ = [
    "Bounds",
    "Changes",
    "IdLists",
    "LiveIndex",
    "MappedVector",
    "PrefixSumVector",
    "Snapshot",
    "Storage",
    "Vector",
    "Window",
    "Windowed",
    "open_file",
    "seal",
]
