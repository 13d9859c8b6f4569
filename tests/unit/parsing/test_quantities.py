"""Numbers with units as values; which unit is how large is from the SI brochure."""

from __future__ import annotations

import pytest

from helm_ext.parsing import read_label
from helm_ext.parsing.options import spell_as_options


@pytest.mark.parametrize(
    ("option", "same", "others"),
    [
        ("48 J", ["48J", "48 joules", "0.048 kJ", "48.0 J"], ["48 kJ", "48 mJ", "48", "48 jobs", "480 J"]),
        ("5 mW", ["5mW", "5 milliwatts", "0.005 W"], ["5 MW", "5 W"]),
        ("5 m", ["500 cm", "5 metres", "5.0 m"], ["5 M", "5 mm", "5 min"]),
        ("10 m/s", ["36 km/h", "10 meters per second", "10m/s"], ["10 m", "10 m/s^2", "10 s/m"]),
        ("2.5 m", ["2,5 m", "250 cm"], ["25 m"]),
        ("12000", ["12,000", "12000.0", "1.2 × 10^4"], ["12,0000", "12.000.0", "x12,000", "12000^2"]),
        ("37 °C", ["37°C", "37 degrees Celsius"], ["37 °F", "37"]),
        ("2 hPa", ["200 Pa", "2 hectopascals", "0.2 kPa"], ["2 Pa", "2 h"]),
        ("5 mSv", ["0.005 Sv", "5 millisieverts"], ["5 Sv", "5 MSv", "5 mS"]),
        ("50%", ["50 %", "50 percent"], ["50", "0.5"]),
    ],
)
def test_a_quantity_is_spelled_as_the_option_of_its_value(option, same, others):
    assert {spell_as_options(text, {"A": option, "B": "red"}) for text in same} == {option}
    assert [spell_as_options(text, {"A": option}) for text in others] == others


def test_options_of_one_value_stay_apart():
    lengths = {"A": "5 m", "B": "500 cm", "C": "5 km"}
    assert [read_label(text, lengths) for text in ("5 m", "500 cm", "5m", "5000 m")] == ["A", "B", None, "C"]
