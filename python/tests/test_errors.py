"""What the program says, as exceptions."""

import pickle

import pytest

import hloc
from hloc.errors import error_for, parse_diagnostics

from conftest import ADD

UNDEFINED = "HloModule m\nENTRY e {\n p = f32[4] parameter(0)\n ROOT r = f32[4] add(p, q)\n t = f32[4] add(p, s)\n}\n"


def test_an_input_error_has_its_place_and_all_diagnostics():
    with pytest.raises(hloc.InputError) as raised:
        hloc.compile(UNDEFINED)
    error = raised.value
    assert (error.exit_code, error.kind, error.file, error.line, error.column) == (
        1,
        "undefined-name",
        "<stdin>",
        4,
        25,
    )
    assert error.message == "instruction `q` is not defined before this use"
    assert [(one.line, one.column) for one in error.diagnostics] == [(4, 25), (5, 20)]
    assert "ROOT r = f32[4] add(p, q)\n" in str(error) and "`s` is not defined" in str(error)


def test_a_file_is_named(tmp_path):
    path = tmp_path / "bad.hlo"
    path.write_text(UNDEFINED)
    for what in (path, str(path)):
        with pytest.raises(hloc.InputError) as raised:
            hloc.compile(what)
        assert raised.value.file == str(path)


def test_a_missing_file_is_an_input_error():
    with pytest.raises(hloc.InputError, match="cannot read `no/such.hlo`") as raised:
        hloc.compile("no/such.hlo")
    assert raised.value.kind == "unreadable-file" and raised.value.line is None


def test_notes_have_messages():
    text = ADD.replace("q = f32[64]", "q = f32[63]")
    with pytest.raises(hloc.InputError) as raised:
        hloc.compile(text)
    assert raised.value.first.notes[0].message.startswith("rule `binary_c1`")


def test_unknown_options_are_the_programs_to_refuse():
    with pytest.raises(hloc.OptionError, match="unknown option `--no-such`") as raised:
        hloc.compile(ADD, no_such=3)
    assert raised.value.kind == "bad-usage" and raised.value.exit_code == 2
    with pytest.raises(hloc.OptionError, match="does not take `f64`"):
        hloc.compile(ADD, f32_dots="f64")


def test_options_of_the_package_are_refused():
    for name in ("output", "manifest", "diagnostics"):
        with pytest.raises(hloc.OptionError, match=f"`{name}`"):
            hloc.compile(ADD, **{name: "x"})


def test_what_is_unsupported_says_so():
    text = ADD.replace("add(p, q)", 'custom-call(p, q), custom_call_target="nobody"')
    with pytest.raises(hloc.Unsupported) as raised:
        hloc.compile(text)
    assert raised.value.exit_code == 3 and raised.value.line == 5


def test_classes_by_exit_code():
    kinds = {1: hloc.InputError, 2: hloc.OptionError, 3: hloc.Unsupported, 4: hloc.Defect, 5: hloc.Undecided}
    for code, kind in {**kinds, 70: hloc.InternalError, -11: hloc.InternalError}.items():
        error = error_for(code, [], "said")
        assert type(error) is kind and error.exit_code == code and str(error) == "said"
    assert issubclass(hloc.Defect, AssertionError) and not issubclass(hloc.Undecided, AssertionError)


def test_differences_are_disagreements():
    row = '{"severity":"error","kind":"result-mismatch","exit_code":4,"message":"differs","notes":[]}\n'
    assert type(error_for(4, parse_diagnostics(row)[0])) is hloc.Disagreement
    assert type(error_for(4, parse_diagnostics(row.replace("result-mismatch", "kernel-finding"))[0])) is hloc.Defect


def test_other_lines_are_no_diagnostics():
    found, rest = parse_diagnostics('{"severity": broken\n{"a":1}\nhello\n')
    assert not found and rest == '{"severity": broken\n{"a":1}\nhello\n'


def test_exceptions_travel_between_processes():
    with pytest.raises(hloc.InputError) as raised:
        hloc.compile(UNDEFINED)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is hloc.InputError and copy.line == 4 and copy.exit_code == 1
    assert str(copy) == str(raised.value) and copy.diagnostics == raised.value.diagnostics
