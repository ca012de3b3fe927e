"""Syncing a store with a relay: NIP-77 to find what each lacks, NIP-01 to bring it over.

It needs the extra `negvec[relay]`. `sync` is what `negvec sync` runs.
"""

from negvec.client.report import Report
from negvec.client.sync import DIRECTIONS, SyncError, sync

__all__ = ["DIRECTIONS", "Report", "SyncError", "sync"]
