"""Links, collectives and layouts: how many bytes a step moves, how long that takes, and how to place the work."""

from tools.network.fabric import Fabric, fabric_for

__all__ = ["Fabric", "fabric_for"]
