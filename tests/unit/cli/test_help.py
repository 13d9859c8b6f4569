"""The list of commands is written without importing them."""

import pytest

from helm_ext import cli


@pytest.mark.parametrize("name", cli._COMMANDS)
def test_each_line_of_the_list_is_how_the_help_of_the_command_begins(name):
    assert " ".join(cli._load(name).help.split()).startswith(cli._COMMANDS[name][1])
