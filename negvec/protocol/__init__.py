"""The protocol: messages in, messages out, no input or output of its own."""

from negvec.protocol.adaptive import AdaptivePolicy
from negvec.protocol.drive import Result, drive, reconcile
from negvec.protocol.negentropy import Negentropy, Step
from negvec.protocol.policy import PacingPolicy, ReferencePolicy, SplitPolicy

__all__ = [
    "AdaptivePolicy",
    "Negentropy",
    "PacingPolicy",
    "ReferencePolicy",
    "Result",
    "SplitPolicy",
    "Step",
    "drive",
    "reconcile",
]
