"""How fast a training job runs: FLOPs per token, achieved fractions of peak, tokens per second, MFU."""

from tools.throughput.efficiency import SoftwareClass, software_of
from tools.throughput.flops import token_flops
from tools.throughput.model import Throughput, compute_seconds, estimate_throughput

__all__ = ["SoftwareClass", "Throughput", "compute_seconds", "estimate_throughput", "software_of", "token_flops"]
