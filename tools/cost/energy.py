"""Energy and carbon of a run, from the cards' design power."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.types import Gpu

LOAD = 0.8  # of design power during training: 60-90 % in published node measurements, depending on utilisation
HOST_WATTS_PER_WATT = 0.8  # host, network and fans beside the cards: DGX H100 10.2 kW for 8 x 700 W (NVIDIA)
PUE = 1.54  # industry mean 2025 (Uptime Institute survey)
GRID_KG_PER_KWH = 0.37  # mean of the United States grid (EPA eGRID2022); France about 0.05, Poland about 0.7


@dataclass(frozen=True, slots=True)
class Energy:
    """At the meter of the building."""

    watts_per_gpu: float
    kwh: float
    kg_co2e: float


def energy(
    gpu: Gpu, gpu_hours: float, pue: float = PUE, grid_kg_per_kwh: float = GRID_KG_PER_KWH, load: float = LOAD
) -> Energy | None:
    """Watts a GPU, kWh and kg CO2e at the building's meter: GPU-hours x design power x load x (1 + host share) x PUE
    (sources beside the constants). ``load`` is a share, 0 to 1. None where a card's design power is not known.
    """
    if not gpu.tdp_watts:
        return None
    watts = gpu.tdp_watts * load * (1 + HOST_WATTS_PER_WATT) * pue
    kwh = watts * gpu_hours / 1000.0
    return Energy(watts, kwh, kwh * grid_kg_per_kwh)
