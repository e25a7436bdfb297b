"""Stores of both kinds for the tests that hold for each."""

from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path

import pytest
from tests.products.servers import running_server

from transect.products import ProductStore, open_store

NewStore = Callable[[], ProductStore]


@pytest.fixture(scope="package")
def server() -> Generator[str]:
    """The address of a PostgreSQL server, `{}` for the database."""
    with running_server() as address:
        yield address


@pytest.fixture(params=["geopackage", "postgis"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[NewStore]:
    """Make empty stores of one kind; what is left open is closed."""
    stores: list[ProductStore] = []
    numbers = count()

    def make() -> ProductStore:
        if request.param == "geopackage":
            address = str(tmp_path / f"store{next(numbers)}.gpkg")
        else:
            import psycopg

            server = request.getfixturevalue("server")
            name = f"store{next(numbers)}_{abs(hash(tmp_path)) % 10**9}"
            with psycopg.connect(server.format("postgres"), autocommit=True) as db:
                db.execute(f"CREATE DATABASE {name} TEMPLATE template1".encode())
            address = server.format(name)
        stores.append(open_store(address))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def store(new_store: NewStore) -> ProductStore:
    """An empty store."""
    return new_store()
