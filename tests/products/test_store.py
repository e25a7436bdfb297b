"""What every store does, be it a GeoPackage or a PostGIS database."""

from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.products.conftest import NewStore
from tests.products.samples import MARULAN, NS_PER_S, T0_NS, made_from, make

from transect.errors import UsageError
from transect.products import (
    Area,
    DeletedError,
    Payload,
    Place,
    Product,
    ProductQuery,
    ProductStore,
    RetentionPolicy,
    StoreError,
)
from transect.products.place import MARS


def ids(products: list[Product]) -> list[str]:
    return [product.id for product in products]


def test_a_product_is_read_back_as_it_was_put(store: ProductStore) -> None:
    product, data = make()
    identifier = store.put(product, data)
    assert store.get(identifier) == product
    assert store.get(identifier[:8]) == product
    assert store.content(identifier) == data


def test_a_payload_of_any_size_is_read_back_byte_by_byte(store: ProductStore, tmp_path: Path) -> None:
    for size in (0, 4096, 4097, 9_000_000):
        data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        product, _ = make(content=data)
        file = tmp_path / "payload"
        file.write_bytes(data)
        assert store.content(store.put(product, file)) == data


def test_bytes_that_are_not_the_products_are_refused(store: ProductStore, tmp_path: Path) -> None:
    product, data = make(content=b"x" * 5000)
    file = tmp_path / "other"
    file.write_bytes(data + b"y")
    for content in (data + b"y", file):
        with pytest.raises(StoreError, match="not"):
            store.put(product, content)
    assert store.find() == []


def test_the_same_product_twice_is_one(store: ProductStore) -> None:
    product, data = make()
    assert store.put(product, data) == store.put(product, data)
    assert len(store.find()) == 1
    assert [event.what for event in store.history(product.id)] == ["put"]


def test_products_that_differ_in_anything_are_two(store: ProductStore) -> None:
    changes = [
        {},
        {"robot": "weeder"},
        {"frame": "Origin"},
        {"quality": {}},
        {"t1_ns": T0_NS + 31 * NS_PER_S},
    ]
    items = [make(**change) for change in changes]
    assert len(set(store.put_many(items))) == len(changes)


def test_one_that_cannot_be_put_keeps_all_of_its_batch_out(store: ProductStore) -> None:
    wrong, _ = make(1, content=b"x" * 5000)
    with pytest.raises(StoreError):
        store.put_many([make(0), (wrong, b"y" * 5000)])
    assert store.find() == []


def test_products_are_found_by_what_they_say(store: ProductStore) -> None:
    plain = store.put(*make(0))
    said = {"kind": "Trajectory", "robot": "weeder", "mission": "spring", "frame": "Origin", "name": "path"}
    other = store.put(*make(1, **said))
    for name, value in said.items():
        assert ids(store.find(ProductQuery(**{name: value}))) == [other]
    assert ids(store.find()) == [other, plain]
    assert store.find(ProductQuery(kind="Cloud")) == []


def test_intervals_of_time_begin_with_their_start_and_end_before_their_end(store: ProductStore) -> None:
    identifier = store.put(*make(0))  # from T0 to T0 + 30 s, both included
    for start, end, found in (
        (T0_NS + 30 * NS_PER_S, T0_NS + 40 * NS_PER_S, True),
        (T0_NS + 30 * NS_PER_S + 1, T0_NS + 40 * NS_PER_S, False),
        (T0_NS - NS_PER_S, T0_NS, False),
        (T0_NS - NS_PER_S, T0_NS + 1, True),
        (T0_NS + NS_PER_S, T0_NS + 2 * NS_PER_S, True),
    ):
        assert ids(store.find(ProductQuery(time=(start, end)))) == [identifier] * found
    assert store.find(ProductQuery(time=(T0_NS, T0_NS + NS_PER_S), clock="device")) == []


def test_the_newest_come_first_and_latest_limits_their_number(store: ProductStore) -> None:
    numbers = [2, 0, 3, 1]
    known = {number: store.put(*make(number)) for number in numbers}
    timeless = store.put(*make(9, t0_ns=None, t1_ns=None))
    assert ids(store.find()) == [known[3], known[2], known[1], known[0], timeless]
    assert ids(store.find(ProductQuery(latest=2))) == [known[3], known[2]]
    near = Area(0, 0, 30, 30, MARULAN.crs)
    assert ids(store.find(ProductQuery(area=near, latest=1))) == [known[1]]


def test_quality_asks_for_a_judgement(store: ProductStore) -> None:
    good = store.put(*make(0, quality={"score": 0.9}))
    store.put(*make(1, quality={"score": 0.2}))
    store.put(*make(2, quality={}))
    assert ids(store.find(ProductQuery(min_quality=0.9))) == [good]


def test_areas_include_their_edges_exactly(store: ProductStore) -> None:
    identifier = store.put(*make(0))  # 0 to 10 m
    inch = 1e-9  # far below the resolution of an index of float32
    for area, found in (
        ((10, 0, 20, 5), True), ((10 + inch, 0, 20, 5), False), ((-5, -5, 0, 0), True),
        ((-5, -5, -inch, 0), False), ((2, 2, 3, 3), True), ((-100, 10 + inch, 100, 11), False),
    ):  # fmt: skip
        assert ids(store.find(ProductQuery(area=Area(*area, crs=MARULAN.crs)))) == [identifier] * found


def test_coordinate_systems_do_not_mix(store: ProductStore) -> None:
    here = store.put(*make(0))
    mars = store.put(*make(0, place=Place("Point", ((5.0, 5.0),), MARS)))
    elsewhere = store.put(*make(0, place=Place("Point", ((5.0, 5.0),), "site:etna")))
    for crs, identifier in ((MARULAN.crs, here), (MARS, mars), ("site:etna", elsewhere)):
        assert ids(store.find(ProductQuery(area=Area(0, 0, 10, 10, crs)))) == [identifier]
    assert store.find(ProductQuery(area=Area(0, 0, 10, 10))) == []


def test_longitude_and_latitude_find_what_lies_in_a_site(store: ProductStore) -> None:
    near = store.put(*make(0))
    store.put(*make(50))  # a kilometre to the east
    world = store.put(*make(0, place=Place("Point", ((149.9, -34.6),))))
    eight_metres = 8 / 111_000
    area = Area(149.9 - eight_metres, -34.6 - eight_metres, 149.9 + eight_metres, -34.6 + eight_metres)
    assert sorted(ids(store.find(ProductQuery(area=area)))) == sorted([near, world])
    assert store.find(ProductQuery(area=Area(10, 10, 11, 11))) == []


coordinates = st.floats(-1e6, 1e6)
boxes = st.tuples(coordinates, coordinates, coordinates, coordinates)
missions = count()


def area_of(box: tuple[float, ...]) -> Area:
    (x0, x1), (y0, y1) = sorted(box[:2]), sorted(box[2:])
    return Area(x0, y0, x1, y1, "site:plain")


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([(0.0, 0.0, -5e-324, -5e-324)], (0.0, 0.0, -1.0, -5e-324))
@given(st.lists(boxes, min_size=1, max_size=4), boxes)
def test_what_is_found_in_an_area_is_what_meets_it(
    store: ProductStore, lying: list[tuple[float, ...]], asked: tuple[float, ...]
) -> None:
    mission = str(next(missions))
    items = [make(n, mission=mission, place=Place.of_box(area_of(box))) for n, box in enumerate(lying)]
    store.put_many(items)
    expected = {p.id for p, _ in items if p.place and p.place.box.meets(area_of(asked))}
    assert set(ids(store.find(ProductQuery(mission=mission, area=area_of(asked))))) == expected


def test_a_deleted_product_says_why_and_its_history_stays(store: ProductStore) -> None:
    product, data = make(content=b"z" * 5000)
    identifier = store.put(product, data)
    store.delete(identifier, "wrong calibration")
    with pytest.raises(DeletedError, match="deleted") as error:
        store.get(identifier)
    assert "wrong calibration" in error.value.why
    assert [event.what for event in store.history(identifier[:10])] == ["put", "delete"]
    assert store.find() == []
    assert store.verify().orphans == ()
    store.put(product, data)
    assert store.content(identifier) == data


def test_deleting_needs_a_reason(store: ProductStore) -> None:
    identifier = store.put(*make())
    with pytest.raises(UsageError, match="reason"):
        store.delete(identifier, " ")
    assert store.get(identifier)


def test_a_payload_that_another_product_has_stays(store: ProductStore) -> None:
    data = b"w" * 5000
    first, second = store.put(*make(0, content=data)), store.put(*make(1, content=data))
    store.delete(first, "old")
    assert store.content(second) == data


def test_lineage_leads_down_to_what_was_deleted_or_never_there(store: ProductStore) -> None:
    run = store.put(*make(0, kind="Run"))
    cloud = store.put(*made_from(run, "f" * 64, number=1, kind="Cloud"))
    dem = store.put(*made_from(cloud, number=2))
    store.delete(run, "cleaning")
    lineage = store.lineage(dem)
    [below] = lineage.parents
    assert (lineage.id, below.id) == (dem, cloud)
    assert {parent.id: parent.note.split(" at ")[0] for parent in below.parents} == {
        run: "deleted",
        "f" * 64: "not in this store",
    }
    assert store.children(run) == [cloud]


def test_unknown_and_ambiguous_names_are_explained(store: ProductStore) -> None:
    store.put(*make())
    with pytest.raises(StoreError, match="there is no product"):
        store.get("0" * 64)
    with pytest.raises(UsageError, match="too short"):
        store.get("0")


def test_pruning_keeps_the_latest_and_what_others_were_made_from(store: ProductStore) -> None:
    old, middle, new = (store.put(*make(number)) for number in range(3))
    child = store.put(*made_from(old, number=7, kind="Report"))
    policy = RetentionPolicy(kinds=("DEM",), keep_latest=1)
    assert ids(store.prune(policy, dry_run=True)) == [middle]
    assert len(store.find()) == 4
    assert ids(store.prune(policy)) == [middle]
    assert sorted(ids(store.find())) == sorted([old, new, child])
    assert store.history(middle)[-1].what == "prune"


def test_pruning_by_age_and_quality(store: ProductStore) -> None:
    bad = store.put(*make(0, quality={"score": 0.1}))
    store.put(*make(1))
    store.put(*make(5, quality={"score": 0.1}))
    assert ids(store.prune(RetentionPolicy(before_ns=T0_NS + 200 * NS_PER_S, below=0.3))) == [bad]
    with pytest.raises(UsageError, match="everything"):
        RetentionPolicy()


def test_two_robots_stores_merge(new_store: NewStore) -> None:
    mine, theirs = new_store(), new_store()
    both = mine.put(*make(0))
    theirs.put(*make(0))
    unwanted = mine.put(*make(1))
    theirs.put(*make(1))
    mine.delete(unwanted, "a shadow")
    added = theirs.put(*make(2, content=b"v" * 5000, robot="weeder"))
    merged = mine.merge(theirs)
    assert (merged.added, merged.known, merged.deleted, merged.damaged) == (
        (added,),
        (both,),
        (unwanted,),
        (),
    )
    assert mine.content(added) == b"v" * 5000
    assert mine.history(added)[0].what == "merge"
    assert mine.merge(theirs).added == ()


def test_changes_are_told_in_order_and_waited_for(new_store: NewStore) -> None:
    store = new_store()
    first = store.put(*make(0))
    seen = store.changes()[-1].number
    second = store.put(*make(1))
    store.delete(first, "old")
    assert [(event.what, event.id) for event in store.changes(seen)] == [("put", second), ("delete", first)]
    assert store.wait(10.0)
    while store.wait(0.0):
        pass
    assert not store.wait(0.01)


def test_verify_reads_every_product(store: ProductStore) -> None:
    store.put_many([make(0), make(1, content=b"u" * 5000)])
    found = store.verify()
    assert (found.products, found.problems, found.orphans) == (2, (), ())


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": ""}, {"t1_ns": None}, {"t0_ns": T0_NS + 99 * NS_PER_S}, {"quality": {"score": 1.5}},
        {"quality": {"rmse": float("nan")}},
    ],
)  # fmt: skip
def test_a_product_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        make(**changes)


def test_a_payload_name_never_becomes_a_path() -> None:
    with pytest.raises(UsageError):
        Payload("a" * 64, 1, "../../etc/passwd")
    with pytest.raises(UsageError):
        Payload("../x", 1, "tif")


def count_documents(store: ProductStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by an id with each product that is read from a store."""
    read: list[str] = []
    plain = store.look_up

    def counted(identifier: str) -> Product | None:
        read.append(identifier)
        return plain(identifier)

    monkeypatch.setattr(store, "look_up", counted)
    return read


def test_the_lineage_of_a_long_chain_reads_each_product_once(
    store: ProductStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than Python's stack."""
    chain, items = [make()[0].id], [make()]
    for number in range(1500):
        items.append(made_from(chain[-1], name=f"step {number}"))
        chain.append(items[-1][0].id)
    store.put_many(items)
    read = count_documents(store, monkeypatch)
    lineage = store.lineage(chain[-1])
    assert sorted(read) == sorted(chain)
    assert [each.id for each in lineage.ancestors] == chain[::-1]
    assert [depth for depth, _, _ in lineage.walk()] == list(range(1501))
    removed = store.prune(RetentionPolicy(keep_latest=0), dry_run=True)
    assert {product.id for product in removed} == set(chain)


def test_the_lineage_of_diamonds_is_as_long_as_their_products_are_many(
    store: ProductStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2**30 ways lead from the last product to the first."""
    items, last = [make()], make()[0].id
    for number in range(30):
        sides = [made_from(last, name=f"{side} {number}") for side in ("left", "right")]
        items += [*sides, made_from(*(product.id for product, _ in sides), name=f"both {number}")]
        last = items[-1][0].id
    store.put_many(items)
    read = count_documents(store, monkeypatch)
    lineage = store.lineage(last)
    assert len(read) == len(items) == len(lineage.ancestors) == 91
    assert sum(1 for _ in lineage.walk()) == 1 + sum(len(p.provenance.parents) for p, _ in items)
    left, right = lineage.parents
    assert left.parents[0] is right.parents[0]
