"""Where items are kept: the seam that the protocol asks (`Storage`), and what implements it."""

from negvec.storage.live import Changes, LiveIndex
from negvec.storage.seam import Bounds, IdLists, Storage
from negvec.storage.snapshot import Snapshot
from negvec.storage.vector import PrefixSumVector, Vector, seal

__all__ = ["Bounds", "Changes", "IdLists", "LiveIndex", "PrefixSumVector", "Snapshot", "Storage", "Vector", "seal"]
