"""Between numpy and Arrow: nulls are NaN, empty lists keep their width, and pandas is left asleep."""

import subprocess
import sys

import numpy as np
import pyarrow as pa

from transect.recording import arrow


def test_nulls_are_nan_also_in_a_slice_of_whole_numbers():
    table = pa.table({"n": pa.array([1, None, 3, 4, None, 6] * 3)}).slice(4, 9)
    np.testing.assert_array_equal(arrow.numbers(table, "n"), [np.nan, 6, 1, np.nan, 3, 4, np.nan, 6, 1])


def test_a_list_column_without_rows_keeps_its_width():
    table = arrow.table(np.zeros(0, np.int64), {"joints": np.zeros((0, 7))})
    assert arrow.numbers(table, "joints").shape == (0, 7)


def test_missing_values_do_not_wake_pandas():
    code = (
        "import sys\n"
        "from transect.recording.text.delimited import CsvLayout, read_csv\n"
        "from transect.recording import arrow\n"
        "csv = read_csv(b't,x\\n1.5,\\n2.5,3\\n', CsvLayout(('t', 'x'), {'t': 10**9}), 'a.csv')\n"
        "assert arrow.numbers(csv.table, 'x').tolist()[1] == 3\n"
        "print('pandas' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "False"


def test_readers_of_arrow_hold_no_memory_of_python() -> None:
    data = bytes(range(200)) * 100
    count = sys.getrefcount(data)
    reader = arrow.reader_of(data)
    assert sys.getrefcount(data) == count
    assert reader.read() == data
    assert arrow.reader_of(b"").read() == b""
