"""A process that puts and prunes without end, and says what it did: the tests kill it, or let several write.

Run as ``python -I -S writer.py SOURCE STORE NAME COUNT``; it needs the standard library and SOURCE alone.
"""

import sys

sys.path.insert(0, sys.argv[1])

from transect.products import Area, Payload, Place, Product, RetentionPolicy, open_store


def main(address: str, name: str, count: int) -> None:
    store = open_store(address)
    print("ready", flush=True)
    for number in range(count):
        data = f"{name} {number} ".encode() * (1000 if number % 2 else 1)
        place = Place.of_box(Area(number, 0, number + 1, 1, "site:yard"))
        product = Product(
            "DEM", Payload.of(data, "tif"), name, t0_ns=number, t1_ns=number, place=place, clock="index"
        )
        print("put", store.put(product, data), flush=True)
        if number % 10 == 9 and name == "pruned":
            print("pruning", flush=True)
            for gone in store.prune(RetentionPolicy(keep_latest=5)):
                print("gone", gone.id, flush=True)


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3], int(sys.argv[4]))
