"""Keep a result, find it by place, follow it to its files, and make it again byte by byte.

The drive is simulated. The commands are ``transect run ... --store mission.gpkg`` and ``transect products``.
"""

from pathlib import Path

import numpy as np

import transect
from transect.products import Area, ProductQuery, open_store
from transect.products.reproduction import reproduce
from transect.products.run_products import keep_run
from transect.simulation.day import WorldOptions, simulate, write_day

write_day(simulate("rosario", WorldOptions(5.0, seed=1, streams=("Odometry", "Imu", "Gps/*"))), Path("drive"))
rec = transect.open("drive")
transect.run("PoseFusion", rec, out="fused")

with open_store("mission.gpkg") as store:  # one file, which QGIS opens; or postgresql://...
    keep_run(store, Path("fused"), mission="spring")
    for product in store.find():
        print(f"{product.id[:8]}  {product.kind:14}  {product.name}")

    # By kind, time, place and quality: here within 100 m of the first fix.
    fix = rec["Gps/Fix"].at("+0s").value
    lat, lon = np.degrees([fix.latitude, fix.longitude])
    near = Area(lon - 0.001, lat - 0.001, lon + 0.001, lat + 0.001)
    [pose] = store.find(ProductQuery(kind="Pose", mission="spring", area=near))
    assert not store.find(ProductQuery(kind="Pose", area=Area(0, 0, 1, 1))), "nobody was there"

    # What it was made from, down to the files with their hashes.
    [made_by] = store.lineage(pose.id).parents
    for file in made_by.product.provenance.sources:
        print(f"{file.sha256[:12]}  {file.path}")

    # The same inputs, the same program: the same bytes.
    again = reproduce(store, pose.id)
    print("identical" if again.identical else again.difference)
    assert again.identical
