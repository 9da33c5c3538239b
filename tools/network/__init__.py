"""Links, collectives and layouts: how many bytes a step moves, how long that takes, and how to place the work."""

from tools.network.fabric import Fabric, fabric_for
from tools.network.model import Communication, communication, pipeline_bubble

__all__ = ["Communication", "Fabric", "communication", "fabric_for", "pipeline_bubble"]
