"""Where items are kept: the seam that the protocol asks (`Storage`), and what implements it."""

from negvec.storage.seam import Bounds, IdLists, Storage
from negvec.storage.vector import PrefixSumVector, Vector, seal

__all__ = ["Bounds", "IdLists", "PrefixSumVector", "Storage", "Vector", "seal"]
