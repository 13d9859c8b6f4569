"""tools/mutants.py: its modules, what it reads from mutmut and from the page of mutants that change nothing."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from mutants import (  # noqa: E402
    TESTS,
    choose_modules,
    choose_tests,
    find_tests,
    function_of,
    read_equivalent,
    to_change,
)


def test_names():
    assert function_of("helm_ext.a.b.x_f__mutmut_12") == "helm_ext.a.b.f"
    assert function_of("helm_ext.a.x__private__mutmut_1") == "helm_ext.a._private"
    assert function_of("helm_ext.a.xǁReaderǁread_x__mutmut_3") == "helm_ext.a.Reader.read_x"
    assert function_of("helm_ext.a.x_x_axis__mutmut_3") == "helm_ext.a.x_axis"


def test_every_module_and_its_tests_are_there():
    for module in TESTS:
        assert (ROOT / "src/helm_ext" / f"{module}.py").is_file(), module
        assert find_tests(module)
    assert choose_modules(["scoring/likelihood*", "*/hub/records"]) == [
        "formats/innodata/hub/records",
        "scoring/likelihood",
    ]
    with pytest.raises(SystemExit, match="no module of TESTS in tools/mutants.py has the name 'scoring/none'"):
        choose_modules(["scoring/none"])


@pytest.mark.parametrize("room", ["parsing", "scoring", "scoring/scores", "formats/innodata/hub"])
def test_no_module_of_these_rooms_is_forgotten(room):
    with_functions = {
        f"{room}/{path.stem}"
        for path in (ROOT / "src/helm_ext" / room).glob("*.py")
        if "\n    return" in path.read_text()
    }
    assert {module for module in with_functions if not module.endswith("__init__")} <= set(TESTS)


def test_functions_have_the_tests_that_ran_them_and_all_where_that_was_perhaps_on_import():
    hits = {
        "helm_ext.a.b.x_early": {"one"}, "helm_ext.a.b.xǁReaderǁread": {"two"}, "helm_ext.a.b.x_both": {"one", "two"},
        "helm_ext.a.x_b": {"one"}, "helm_ext.a.b.c.x_other": {"two"},
    }  # fmt: skip
    assert choose_tests("a/b", hits, ["one", "two", "three"]) == {
        "helm_ext.a.b.x_early": {"one", "two", "three"},
        "helm_ext.a.b.xǁReaderǁread": {"two"},
        "helm_ext.a.b.x_both": {"one", "two", "three"},
    }


def test_a_change_is_found_on_the_page():
    diff = (
        "# a: survived\n--- src/a.py\n+++ src/a.py\n@@ -1,3 +1,3 @@\n def f(x):\n-    return x `or` 1\n+    return x\n"
    )
    change = to_change("helm_ext.a.x_f__mutmut_1", diff)
    assert change == ("helm_ext.a.f", "return x `or` 1", "return x")
    page = "# Title\n\n## `helm_ext.a.f`\n\n- `` return x `or` 1 `` → `` return x ``: x is never empty.\n"
    assert read_equivalent(page) == {change}
    assert read_equivalent(page.replace(": x is never empty.", "")) == set()  # no reason, no item


def test_the_page_can_be_read():
    page = (ROOT / "tests/mutants.md").read_text(encoding="utf-8")
    assert len(read_equivalent(page)) == page.count("\n- ") > 0
