from transect.base.tables import fit_table, shorten, table_lines


def test_columns_are_aligned_and_lines_do_not_end_in_blanks() -> None:
    rows = [("stream", "samples"), ("Imu", "1200"), ("Gnss/Pose", "7")]
    assert table_lines(rows, right={1}) == [
        "stream     samples",
        "Imu           1200",
        "Gnss/Pose        7",
    ]
    assert table_lines(rows)[2] == "Gnss/Pose  7"
    assert table_lines([("a", ""), ("long", "")]) == ["a", "long"]


ROWS = [("name", "samples", "note"), ("a very long name of a stream indeed", "12", "fine"), ("b", "3", "x")]


def test_without_a_width_a_table_is_whole() -> None:
    assert fit_table(ROWS, {1}).lines == table_lines(ROWS, {1})
    assert fit_table([]).lines == []


def test_long_text_is_shortened_in_the_middle_and_numbers_never() -> None:
    fitted = fit_table(ROWS, {1}, width=36)
    assert fitted.left_out == ()
    assert max(map(len, fitted.lines)) <= 36
    assert fitted.lines[1].startswith("a very")
    assert "…" in fitted.lines[1]
    assert fitted.lines[1].split()[-2:] == ["12", "fine"]


def test_the_least_important_columns_are_left_out_where_shortening_is_not_enough() -> None:
    assert fit_table(ROWS, {1}, width=26).left_out == ("note",)
    fitted = fit_table(ROWS, {1}, width=26, order=(0, 2))
    assert fitted.left_out == ("samples",)
    assert fitted.lines[0].split() == ["name", "note"]
    assert fit_table(ROWS, {1}, width=5).left_out == ("samples", "note")  # the first column stays


def test_prose_is_wrapped() -> None:
    rows = [("fault", "what"), ("dust", "puffs of dust drift by on the wind"), ("fog", "white")]
    assert fit_table(rows, width=24, prose=(1,)).lines == [
        "fault  what",
        "dust   puffs of dust",
        "       drift by on the",
        "       wind",
        "fog    white",
    ]


def test_a_text_is_shortened_to_a_length() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert len(shorten("abcdefghij", 6)) == 6
