"""What helm-run says of a live run while it runs, what it costs, and the limits that stop it."""

import re

import pytest
from openai_server import answer_chat
from processes import command, only_run, run_folders, stat_means
from served_runs import ENTRY, make_folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly("src/helm_ext/clients", "src/helm_ext/running", "tests/openai_server.py"),
]

ROWS = 60


@pytest.fixture
def folder(tmp_path, server):
    make_folder(tmp_path, server, rows=ROWS)
    (tmp_path / "prod_env" / "prices.yaml").write_text("local/tiny: {in: 1000, out: 10000, cached: 100}\n")
    return tmp_path


def run(folder, *options, check=True, fresh=False, **env):
    return command(
        folder, "helm-run", "--suite", "s", "-m", "1000", "--runner-class-name", "helm_ext.running.StreamingRunner",
        "-n", "4", *options, "--run-entries", ENTRY, check=check, env=env, fresh=fresh,
    )  # fmt: skip


def tokens_of(server, rows=None):
    """Return the tokens that the server counted: 3 out for each request."""
    usages = [answer_chat(body)["usage"] for _, body in server.asked[:rows]]
    return sum(usage["prompt_tokens"] for usage in usages), sum(usage["completion_tokens"] for usage in usages)


def test_the_log_says_what_is_asked_what_it_costs_and_how_far_it_is(folder, server):
    done = run(folder, fresh=True)
    tokens_in, tokens_out = tokens_of(server)
    assert (len(server.asked), tokens_out) == (ROWS, 3 * ROWS)
    cost = f"{(tokens_in * 1000 + tokens_out * 10000) / 1e6:,.2f}"
    assert f"local/tiny: {ROWS} requests, tokens: " in done.stdout
    assert f"at most {5 * ROWS} out; cost: " in done.stdout
    lines = [line for line in done.stderr.splitlines() if " of 60 rows" in line]
    assert lines[0] == f"0 of {ROWS} rows, cost 0"
    assert re.fullmatch(
        rf"60 of 60 rows, [\d,.]+/s, {tokens_in:,} tokens in, {tokens_out} out, cost {re.escape(cost)}, in \d+ s",
        lines[-1],
    )
    again = run(folder)
    assert len(server.asked) == ROWS
    assert any(line.startswith("60 of 60 rows, 60 cached, cost 0, in ") for line in again.stderr.splitlines())


@pytest.mark.parametrize("name", ["HELM_EXT_MAX_COST", "HELM_EXT_MAX_TOKENS"])
def test_a_limit_stops_the_run_and_a_second_start_goes_on(folder, server, name):
    limit = {"HELM_EXT_MAX_COST": "0.5", "HELM_EXT_MAX_TOKENS": "80"}[name]
    stopped = run(folder, check=False, **{name: limit})
    assert stopped.returncode != 0
    assert re.search(r"^adapter_spec:.*: stopped: .* and the limit is (0\.5|80) ", stopped.stderr, re.MULTILINE)
    asked = len(server.asked)
    met = next(
        rows
        for rows in range(1, ROWS)
        for tokens in [tokens_of(server, rows)]
        if (tokens[0] * 1000 + tokens[1] * 10000) / 1e6 >= 0.5 or (name.endswith("TOKENS") and sum(tokens) >= 80)
    )
    assert met <= asked <= met + 4  # those in flight
    assert not run_folders(folder)
    run(folder)
    assert len(server.asked) == ROWS  # what was answered is in the cache
    assert stat_means(only_run(folder))["num_instances"] == ROWS


def test_a_limit_is_that_of_all_runs(folder, server):
    second = folder / "more.jsonl"
    second.write_text((folder / "questions.jsonl").read_text().replace("Question", "Another question"))
    stopped = command(
        folder, "helm-run", "--suite", "s", "-m", "1000", "--runner-class-name", "helm_ext.running.StreamingRunner",
        "-n", "1", "--run-entries", ENTRY, ENTRY.replace("questions", "more"), check=False,
        env={"HELM_EXT_MAX_TOKENS": "80"},
    )  # fmt: skip
    assert stopped.returncode != 0
    assert not any("Another" in str(body) for _, body in server.asked)
