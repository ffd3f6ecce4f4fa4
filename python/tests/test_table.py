"""Rows, and what they look like."""

import pytest

import hloc

ROWS = hloc.Table(
    [{"kernel": "a<b", "us": 1.5, "grid": (1, 2)}, {"kernel": "c", "us": 10, "more": None}], {"device": "h100"}
)


def test_columns_and_text():
    assert ROWS.columns == ["kernel", "us", "grid", "more"] and ROWS.about["device"] == "h100"
    assert str(ROWS).splitlines()[0].split() == ["kernel", "us", "grid", "more"]
    assert str(ROWS).splitlines()[2] == "c        10"
    assert str(hloc.Table()) == "(nothing)"


def test_html_is_escaped():
    shown = ROWS._repr_html_()
    assert "<td>a&lt;b</td>" in shown and shown.count("<tr>") == 3 and "<th>more</th>" in shown


def test_data_frames():
    pytest.importorskip("pandas")
    frame = ROWS.to_pandas()
    assert list(frame.columns) == ROWS.columns and frame["us"].sum() == 11.5 and len(frame) == 2


def test_pages_do_not_escape_their_frame():
    page = hloc.Page('<p title="x">&</p></iframe><script>')
    shown = page._repr_html_()
    assert shown.count("<iframe") == 1 and "</iframe><script>" not in shown and 'sandbox="allow-scripts"' in shown
