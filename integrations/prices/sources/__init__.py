"""Every live price source, in the order in which they are shown. A new one: write its module, add it here.

Not here, for want of a price API: CoreWeave and Crusoe (pages only; their dated rows are in the snapshot) and Nebius
(a gRPC calculator; its prices come through the published catalogues).
"""

from __future__ import annotations

from integrations.prices.source import PriceSource
from integrations.prices.sources import (
    aws_list,
    aws_spot,
    azure,
    digitalocean,
    gcp,
    gpuhunt_files,
    hyperstack,
    lambda_cloud,
    linode,
    oci,
    primeintellect,
    runpod,
    sfcompute,
    shadeform,
    skypilot_files,
    tensordock,
    thunder,
    vast,
    verda,
    vultr,
)

SOURCES: tuple[PriceSource, ...] = (
    azure.SOURCE,
    oci.SOURCE,
    gpuhunt_files.SOURCE,
    runpod.SOURCE,
    vast.SOURCE,
    verda.SOURCE,
    vultr.SOURCE,
    linode.SOURCE,
    thunder.SOURCE,
    aws_list.SOURCE,
    aws_spot.SOURCE,
    gcp.SOURCE,
    lambda_cloud.SOURCE,
    digitalocean.SOURCE,
    hyperstack.SOURCE,
    shadeform.SOURCE,
    primeintellect.SOURCE,
    tensordock.SOURCE,
    sfcompute.SOURCE,
    skypilot_files.SOURCE,
    aws_list.BULK,
)
