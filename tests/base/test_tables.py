from transect.base.tables import table_lines


def test_columns_are_aligned_and_lines_do_not_end_in_blanks() -> None:
    rows = [("stream", "samples"), ("Imu", "1200"), ("Gnss/Pose", "7")]
    assert table_lines(rows, right={1}) == [
        "stream     samples",
        "Imu           1200",
        "Gnss/Pose        7",
    ]
    assert table_lines(rows)[2] == "Gnss/Pose  7"
    assert table_lines([("a", ""), ("long", "")]) == ["a", "long"]
