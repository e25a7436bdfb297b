"""HTML by construction: text from logs stays text."""

import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from transect.view.report.markup import data_block, join, number, tag


class Seen(HTMLParser):
    """What a browser makes of a piece: its elements, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)> & ' \u202e"


def test_hostile_text_is_text_in_content_and_in_attributes():
    seen = Seen(tag("p", HOSTILE, [HOSTILE, None], title=HOSTILE, hidden=True, lang=None))
    shown = HOSTILE.replace("\u202e", "\ufffd")
    assert seen.elements == ["p"]
    assert seen.text == 2 * shown
    assert seen.attributes == [("title", shown), ("hidden", None)]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_makes_an_element_or_an_attribute(content, value):
    seen = Seen(tag("b", content, data_x=value))
    assert seen.elements == ["b"]
    assert [name for name, _ in seen.attributes] == ["data-x"]


@given(st.text(max_size=60))
def test_data_cannot_end_their_element_and_are_unchanged(text):
    block = data_block("data", {"name": text, "end": "</script><script>"})
    found = re.fullmatch(r'<script type="application/json" id="data">([^<]*)</script>', block, re.DOTALL)
    assert found
    back = json.loads(found[1])
    assert back["end"] == "</script><script>"
    assert len(back["name"]) == len(text)


def test_what_is_markup_already_is_not_escaped_again():
    assert tag("ul", join(tag("li", "a < b"), "c")) == "<ul><li>a &lt; b</li>c</ul>"
    assert tag("img", src="data:x", alt="") == '<img src="data:x" alt="">'


def test_coordinates_are_short():
    assert [number(v) for v in (1.0, -0.001, 2.5, 1234.567, 0.0, 100.0)] == [
        "1", "0", "2.5", "1234.57", "0", "100"
    ]  # fmt: skip
