"""Replies of each price source: right names, types and units, invented values. One entry a source.

``pages`` are the bodies in the order in which they are asked for, ``rows`` what must come out: (provider, GPUs,
billing, USD per GPU-hour). ``price`` says where the first row's price lies, so that tests can bend it.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

Row = tuple[str, int, str, float]


@dataclass(frozen=True)
class Sample:
    source: str
    body: Any  # what parse() takes
    rows: tuple[Row, ...]
    gpu: str  # the id that the first row must get
    price: tuple[Any, ...]  # path to a price that decides every row
    renamed: tuple[Any, ...]  # path to a field without which nothing can be read
    dropped: tuple[str, ...] = field(default=())  # reasons that must be counted


def zipped(text: str, name: str = "aws.csv") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return out.getvalue()


def azure_item(**changes: Any) -> dict[str, Any]:
    item = {"currencyCode": "USD", "retailPrice": 7.1, "unitPrice": 7.1, "armRegionName": "eastus",
            "meterId": "m-1", "meterName": "NC40ads H100 v5", "productName": "Virtual Machines NCads H100 v5 Series",
            "skuName": "NC40ads H100 v5", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour",
            "type": "Consumption", "isPrimaryMeterRegion": True, "armSkuName": "Standard_NC40ads_H100_v5 "}  # fmt: skip
    return {**item, **changes}


AZURE_PAGE = {
    "BillingCurrency": "USD", "Count": 6, "NextPageLink": None,
    "Items": [
        azure_item(savingsPlan=[{"unitPrice": 4.1, "term": "3 Years"}, {"unitPrice": 5.2, "term": "1 Year"}]),
        azure_item(skuName="NC40ads H100 v5 Spot", retailPrice=1.3),
        azure_item(type="Reservation", reservationTerm="1 Year", retailPrice=39420.0),
        azure_item(productName="Virtual Machines NCads H100 v5 Series Windows", retailPrice=8.94),
        azure_item(skuName="NC40ads H100 v5 Low Priority", retailPrice=1.4),
        azure_item(armSkuName="Standard_D2s_v5", retailPrice=0.1),
    ],
}  # fmt: skip
OCI = {"items": [
    {"partNumber": "B1", "displayName": "Compute - GPU - H100", "metricName": "GPU Per Hour",
     "currencyCodeLocalizations": [{"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": 10.0}]}]},
    {"partNumber": "B2", "displayName": "Compute - Standard - E5", "metricName": "OCPU Per Hour",
     "currencyCodeLocalizations": []},
]}  # fmt: skip
RUNPOD = {"data": {"gpuTypes": [
    {"id": "NVIDIA H100 80GB HBM3", "displayName": "H100 SXM", "memoryInGb": 80, "securePrice": 3.1,
     "communityPrice": 2.6, "secureSpotPrice": 1.9, "communitySpotPrice": 0, "oneYearPrice": None,
     "lowestPrice": {"stockStatus": "Low"}},
    {"id": "AMD Instinct MI300X OAM", "displayName": "MI300X", "memoryInGb": 192, "securePrice": 2.4,
     "communityPrice": 0, "secureSpotPrice": None, "communitySpotPrice": None, "oneYearPrice": None,
     "lowestPrice": {"stockStatus": None}},
]}}  # fmt: skip


def vast_offer(usd: float, **changes: Any) -> dict[str, Any]:
    offer = {"id": 1, "gpu_name": "H100 SXM", "num_gpus": 8, "gpu_frac": 1.0, "gpu_ram": 81559, "dph_total": usd,
             "min_bid": usd / 2, "reliability2": 0.993, "verification": "verified", "rentable": True, "rented": False,
             "geolocation": "Texas, US"}  # fmt: skip
    return {**offer, **changes}


# Asks of 16, 20, 24 and 32 USD for eight: the lower quartile is 19 USD, 2.375 a GPU; half of it as a bid.
VAST = {"offers": [vast_offer(16.0), vast_offer(20.0), vast_offer(24.0), vast_offer(32.0),
                   vast_offer(1.0, reliability2=0.5), vast_offer(1.0, rented=True)]}  # fmt: skip
VERDA = [
    {"instance_type": "8H100.80S.176V", "price_per_hour": "24.00", "spot_price": "12.80", "currency": "usd",
     "gpu": {"description": "8x H100 SXM5 80GB", "number_of_gpus": 8}, "gpu_memory": {"size_in_gigabytes": 640},
     "memory": {"size_in_gigabytes": 1480}, "name": "H100 SXM5 80GB"},
    {"instance_type": "CPU.4V", "price_per_hour": "0.05", "currency": "usd", "gpu": {"number_of_gpus": 0},
     "gpu_memory": {"size_in_gigabytes": 0}, "memory": {"size_in_gigabytes": 16}, "name": "CPU"},
]  # fmt: skip


def vultr_plan(**changes: Any) -> dict[str, Any]:
    plan = {"id": "vcg-l40s-16c-180g-48vram", "vcpu_count": 16, "ram": 184320, "hourly_cost": 1.65,
            "hourly_cost_preemptible": 0.82, "gpu_vram_gb": 48, "gpu_type": "NVIDIA_L40S", "deploy_ondemand": True,
            "deploy_preemptible": True, "locations": ["ewr"]}  # fmt: skip
    return {**plan, **changes}


VULTR = {"plans": [vultr_plan(), vultr_plan(gpu_vram_gb=2), vultr_plan(locations=[]), vultr_plan(gpu_type="")],
         "meta": {"total": 4, "links": {"next": "", "prev": ""}}}  # fmt: skip
LINODE = {"data": [
    {"id": "g2-gpu-rtx4000a1-s", "label": "RTX4000 Ada x1 Small", "gpus": 1, "vcpus": 4, "memory": 16384,
     "price": {"hourly": 0.52, "monthly": 350}},
    {"id": "g6-nanode-1", "label": "Nanode 1GB", "gpus": 0, "vcpus": 1, "memory": 1024, "price": {"hourly": 0.0075}},
], "page": 1, "pages": 1}  # fmt: skip
THUNDER = {"pricing": {"a100xl": 1.09, "h100": 1.89, "disk_gb": 0.0002}}
LAMBDA = {"data": {
    "gpu_8x_h100_sxm5": {
        "instance_type": {"name": "gpu_8x_h100_sxm5", "gpu_description": "H100 (80 GB SXM5)",
                          "price_cents_per_hour": 3200, "specs": {"vcpus": 208, "memory_gib": 1800, "gpus": 8}},
        "regions_with_capacity_available": [{"name": "us-east-1"}, {"name": "us-west-3"}]},
    "gpu_1x_gh200": {
        "instance_type": {"name": "gpu_1x_gh200", "gpu_description": "GH200 (96 GB)", "price_cents_per_hour": 230,
                          "specs": {"vcpus": 64, "memory_gib": 432, "gpus": 1}},
        "regions_with_capacity_available": []},
}}  # fmt: skip
DIGITALOCEAN = {"sizes": [
    {"slug": "gpu-h100x8-640gb", "memory": 1966080, "vcpus": 160, "price_hourly": 23.9, "regions": ["nyc2"],
     "available": True, "gpu_info": {"count": 8, "vram": {"amount": 640, "unit": "gib"}, "model": "nvidia_h100"}},
    {"slug": "gpu-mi300x1-192gb", "memory": 245760, "vcpus": 20, "price_hourly": 1.99, "regions": [],
     "available": True, "gpu_info": {"count": 1, "vram": {"amount": 192, "unit": "gib"}, "model": "amd_mi300x"}},
    {"slug": "s-1vcpu-1gb", "memory": 1024, "vcpus": 1, "price_hourly": 0.009, "regions": ["nyc1"], "available": True},
], "links": {}, "meta": {"total": 3}}  # fmt: skip
HYPERSTACK = {
    "pricebook": [{"id": 11, "name": "H100-80G-PCIe", "value": 1.95}, {"id": 12, "name": "SSD", "value": 0.0001}],
    "flavors": {"status": True, "data": [{"gpu": "H100-80G-PCIe", "region_name": "CANADA-1", "flavors": [
        {"name": "n3-H100x8", "cpu": 252, "ram": 1440.0, "gpu": "H100-80G-PCIe", "gpu_count": 8,
         "stock_available": True},
        {"name": "n3-H100x1", "cpu": 28, "ram": 180.0, "gpu": "H100-80G-PCIe", "gpu_count": 1,
         "stock_available": False}]}]},
}  # fmt: skip
SHADEFORM = {"instance_types": [
    {"cloud": "hyperstack", "shade_instance_type": "H100_sxm5x8", "hourly_price": 1960,
     "configuration": {"memory_in_gb": 1800, "vcpus": 192, "num_gpus": 8, "gpu_type": "H100", "interconnect": "sxm5",
                       "vram_per_gpu_in_gb": 80},
     "availability": [{"region": "canada-1", "available": True}, {"region": "us-1", "available": False}]},
    {"cloud": "nobody", "shade_instance_type": "H100", "hourly_price": 200,
     "configuration": {"memory_in_gb": 180, "vcpus": 24, "num_gpus": 1, "gpu_type": "H100", "interconnect": "pcie",
                       "vram_per_gpu_in_gb": 80}, "availability": [{"region": "x", "available": True}]},
]}  # fmt: skip
PRIME = {"items": [
    {"cloudId": "gpu_8x_h100", "gpuType": "H100_80GB", "socket": "SXM5", "provider": "lambdalabs",
     "region": "united_states", "gpuCount": 8, "gpuMemory": 80, "stockStatus": "Available", "isSpot": False,
     "prices": {"onDemand": 25.6, "communityPrice": None, "currency": "USD"}},
    {"cloudId": "gone", "gpuType": "H100_80GB", "socket": "PCIe", "provider": "lambdalabs", "region": "x",
     "gpuCount": 1, "gpuMemory": 80, "stockStatus": "Unavailable", "isSpot": False,
     "prices": {"onDemand": 2.0, "communityPrice": None, "currency": "USD"}},
], "totalCount": 2}  # fmt: skip
# 2.30 for the card + 8 x 0.003 + 32 x 0.002 + 100 x 0.00005 = 2.393.
TENSORDOCK = {"data": {"locations": [{"city": "Chubbuck", "country": "United States", "gpus": [
    {"v0Name": "h100-sxm5-80gb", "displayName": "NVIDIA H100 SXM5 80GB", "max_count": 8, "price_per_hr": 2.3,
     "pricing": {"per_vcpu_hr": 0.003, "per_gb_ram_hr": 0.002, "per_gb_storage_hr": 0.00005}},
    {"v0Name": "rtx4090-pcie-24gb", "displayName": "NVIDIA GeForce RTX 4090 PCIe 24GB", "max_count": 0,
     "price_per_hr": 0.35, "pricing": {"per_vcpu_hr": 0.003, "per_gb_ram_hr": 0.002, "per_gb_storage_hr": 0.00005}},
]}]}}  # fmt: skip
# 38,400 cents for one node of 8 and 24 hours: 384 / 24 / 8 = 2.00.
SFCOMPUTE = [{"object": "quote", "quote": {"price": 38400, "quantity": 1, "instance_type": "h100i",
                                           "start_at": "2026-12-01T00:00:00Z", "end_at": "2026-12-02T00:00:00Z"}},
             {"object": "quote", "quote": None}]  # fmt: skip


def gcp_sku(description: str, usd: str, nanos: int, unit: str = "h") -> dict[str, Any]:
    return {"skuId": description[:4], "description": description,
            "category": {"resourceGroup": "GPU", "usageType": "OnDemand"}, "serviceRegions": ["us-central1"],
            "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": [
                {"unitPrice": {"currencyCode": "USD", "units": usd, "nanos": nanos}}]}}]}  # fmt: skip


# a2-ultragpu-1g: 3.90 + 12 vCPU x 0.03 + 170 GiB x 0.004 = 4.94; the tests use an 8-GPU machine below.
GCP = {"skus": [gcp_sku("Nvidia Tesla A100 80GB GPU running in Americas", "3", 900_000_000),
                gcp_sku("A2 Instance Core running in Americas", "0", 30_000_000),
                gcp_sku("A2 Instance Ram running in Americas", "0", 4_000_000, "GiBy.h"),
                gcp_sku("N2 Instance Core running in Americas", "0", 31_000_000)], "nextPageToken": ""}  # fmt: skip


def aws_product(usd: str = "57.0000000000", kind: str = "p5.48xlarge") -> str:
    sku = "AAAA1111BBBB2222"

    def dimension(unit: str, value: str) -> dict[str, Any]:
        return {"unit": unit, "pricePerUnit": {"USD": value}}

    reserved = {"termAttributes": {"LeaseContractLength": "1yr", "OfferingClass": "standard",
                                   "PurchaseOption": "Partial Upfront"},
                "priceDimensions": {"1": dimension("Hrs", "18.0"), "2": dimension("Quantity", "157680")}}  # fmt: skip
    return json.dumps({
        "product": {"sku": sku, "attributes": {"instanceType": kind, "regionCode": "us-east-1",
                                               "operatingSystem": "Linux"}},
        "terms": {"OnDemand": {f"{sku}.J": {"priceDimensions": {"x": dimension("Hrs", usd)}}},
                  "Reserved": {f"{sku}.H": reserved}},
    })  # fmt: skip


AWS_QUERY = {"FormatVersion": "aws_v1", "PriceList": [aws_product(), aws_product("0.0000000000")], "NextToken": None}
BULK_HEADER = (
    "SKU|OfferTermCode|RateCode|TermType|PriceDescription|EffectiveDate|Unit|PricePerUnit|Currency|Region Code"
    "|Instance Type|vCPU|Memory|Operating System|Tenancy|CapacityStatus|Pre Installed S/W|MarketOption"
)
BULK_NAMES = BULK_HEADER.split("|")


def bulk_line(**changes: str) -> str:
    values = dict(zip(BULK_NAMES, ("AAAA", "JRTC", "A.J.6", "OnDemand", "per hour", "2026-11-01", "Hrs",
                                    "57.0000000000", "USD", "us-east-1", "p5.48xlarge", "192", "2048 GiB", "Linux",
                                    "Shared", "Used", "NA", "OnDemand"), strict=True))  # fmt: skip
    return ",".join(f'"{value}"' for value in {**values, **changes}.values()) + "\n"


AWS_BULK = ['"FormatVersion","v1.0"\n', '"Disclaimer","x"\n', ",".join(f'"{name}"' for name in BULK_NAMES) + "\n",
            bulk_line(), bulk_line(**{"Operating System": "Windows"}),
            bulk_line(**{"Instance Type": "m5.large"})]  # fmt: skip
SPOT_XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>
<spotPriceHistorySet>
<item><instanceType>p5.48xlarge</instanceType><spotPrice>16.000000</spotPrice>
<availabilityZone>us-east-1a</availabilityZone></item>
<item><instanceType>p5.48xlarge</instanceType><spotPrice>24.000000</spotPrice>
<availabilityZone>us-east-1c</availabilityZone></item>
<item><instanceType>p5.48xlarge</instanceType><spotPrice>55.040000</spotPrice>
<availabilityZone>us-east-1d</availabilityZone></item>
</spotPriceHistorySet><nextToken/></DescribeSpotPriceHistoryResponse>"""
GPUHUNT_CSV = """instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags
p5.48xlarge,us-east-1,57.0,192,2048.0,8,H100,80.0,False,,nvidia,
p5.48xlarge,us-east-1,17.6,192,2048.0,8,H100,80.0,True,,nvidia,
m5.large,us-east-1,0.096,2,8.0,0,,,False,,,
"""
SKYPILOT_CSV = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Zone
p5.48xlarge,H100,8.0,192.0,2048.0,"{'Gpus': []}",57.0,17.6,us-east-1,use1-az6
p5.48xlarge,H100,8.0,192.0,2048.0,"{'Gpus': []}",57.0,55.04,us-east-1,use1-az4
p5e.48xlarge,H200,8.0,192.0,2048.0,"{'Gpus': []}",,,us-east-1,use1-az4
m5.large,,,2.0,8.0,,0.096,0.04,us-east-1,use1-az6
"""

SAMPLES = (
    Sample("live-azure", [AZURE_PAGE],
           (("azure", 1, "on_demand", 7.1), ("azure", 1, "reserved_3y", 4.1), ("azure", 1, "reserved_1y", 5.2),
            ("azure", 1, "spot", 1.3), ("azure", 1, "reserved_1y", 4.5)),
           "H100-NVL", (0, "Items", ..., "retailPrice"), (0, "Items", ..., "productName"),
           ("Windows, dedicated, low priority or test", "not a GPU machine that we hold")),
    Sample("live-oci", OCI, (("oci", 8, "on_demand", 10.0),), "H100-SXM5",
           ("items", ..., "currencyCodeLocalizations", ..., "prices", ..., "value"), ("items", ..., "displayName"),
           ("not a GPU-hour",)),
    Sample("live-runpod", RUNPOD,
           (("runpod", 1, "secure", 3.1), ("runpod", 1, "community", 2.6), ("runpod", 1, "spot", 1.9)), "H100-SXM5",
           ("data", "gpuTypes", 0, "securePrice"), ("data", "gpuTypes", ..., "displayName"), ("sold out",)),
    Sample("live-vast", VAST, (("vastai", 1, "community", 2.375), ("vastai", 1, "spot", 1.1875)), "H100-SXM5",
           ("offers", ..., "dph_total"), ("offers", ..., "gpu_name"),
           ("taken", "host not reliable or not verified")),
    Sample("live-verda", VERDA, (("verda", 8, "on_demand", 3.0), ("verda", 8, "spot", 1.6)), "H100-SXM5",
           (0, "price_per_hour"), (..., "gpu"), ("no GPU",)),
    Sample("live-vultr", [VULTR], (("vultr", 1, "on_demand", 1.65), ("vultr", 1, "spot", 0.82)), "L40S",
           (0, "plans", ..., "hourly_cost"), (0, "plans", ..., "gpu_vram_gb"), ("a slice of a GPU", "sold out")),
    Sample("live-linode", [LINODE], (("akamai", 1, "on_demand", 0.52),), "RTX-4000-Ada",
           (0, "data", 0, "price", "hourly"), (0, "data", ..., "gpus"), ("no GPU",)),
    Sample("live-thunder", THUNDER,
           (("thundercompute", 1, "on_demand", 1.09), ("thundercompute", 1, "on_demand", 1.89)),
           "A100-SXM4-80GB", ("pricing", "a100xl"), ("pricing",), ("not a card",)),
    Sample("live-lambda", LAMBDA, (("lambda", 8, "on_demand", 4.0), ("lambda", 8, "on_demand", 4.0)), "H100-SXM5",
           ("data", "gpu_8x_h100_sxm5", "instance_type", "price_cents_per_hour"),
           ("data", ..., "regions_with_capacity_available"), ("sold out",)),
    Sample("live-digitalocean", [DIGITALOCEAN], (("digitalocean", 8, "on_demand", 2.9875),), "H100-SXM5",
           (0, "sizes", 0, "price_hourly"), (0, "sizes", ..., "gpu_info"), ("sold out", "no GPU")),
    Sample("live-hyperstack", HYPERSTACK, (("hyperstack", 8, "on_demand", 1.95),), "H100-PCIe",
           ("pricebook", 0, "value"), ("flavors", "data", ..., "flavors", ..., "gpu_count"), ("sold out",)),
    Sample("live-shadeform", SHADEFORM, (("hyperstack", 8, "on_demand", 2.45),), "H100-SXM5",
           ("instance_types", 0, "hourly_price"), ("instance_types", ..., "configuration"),
           ("not a provider that we hold",)),
    Sample("live-primeintellect", [PRIME], (("lambda", 8, "on_demand", 3.2),), "H100-SXM5",
           (0, "items", 0, "prices", "onDemand"), (0, "items", ..., "stockStatus"), ("sold out",)),
    Sample("live-tensordock", TENSORDOCK, (("tensordock", 1, "on_demand", 2.393),), "H100-SXM5",
           ("data", "locations", 0, "gpus", 0, "price_per_hr"), ("data", "locations", ..., "gpus", ..., "max_count"),
           ("sold out",)),
    Sample("live-sfcompute", SFCOMPUTE, (("sfcompute", 8, "on_demand", 2.0),), "H100-SXM5",
           (0, "quote", "price"), (..., "quote"), ("sold out",)),
    Sample("live-gcp", [GCP], (), "A100-SXM4-80GB", (0, "skus", 0, "pricingInfo", 0, "pricingExpression",
                                                     "tieredRates", 0, "unitPrice", "units"),
           (0, "skus", ..., "category"), ("not a part of a GPU machine",)),
    Sample("live-aws", [AWS_QUERY], (("aws", 8, "on_demand", 7.125), ("aws", 8, "reserved_1y", 4.5)), "H100-SXM5",
           (), (0, "PriceList"), ("price zero: an unused reservation or a capacity block",)),
)  # fmt: skip
