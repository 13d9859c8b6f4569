"""Requests, results and golds joined: what is an answer, what is none, and what is refused."""

import csv
import json

import pytest
from openai_batches import request, result, write, write_batch

from helm_ext.errors import DatasetError
from helm_ext.evalset import row_extra
from helm_ext.formats import detect, files_in
from helm_ext.formats.openai_batch.format import FORMAT

ASKED = [request("a", "1+1?"), request("b", "2+2?"), request("c", "3+3?")]
GOLDS = {"a": ["2", "two"], "b": "4", "c": 6}


def load(folder, results, requests=ASKED, golds=GOLDS, **arguments):
    return FORMAT.load(**write_batch(folder, requests, results, golds), **arguments)


def recorded(evalset):
    """Return status and texts of each row."""
    rows = {instance.id: row_extra(instance)["recorded"] for instance in evalset.instances}
    return {
        id_: (row["status"], *(one["text"] for state in row["states"] for one in state["result"]["completions"]))
        for id_, row in rows.items()
    }


def statuses(evalset):
    return [status for status, *_ in recorded(evalset).values()]


def golds(evalset):
    return [[one.output.text for one in instance.references if one.is_correct] for instance in evalset.instances]


def refused(folder, results, requests=ASKED, golds=GOLDS, **arguments):
    """Return (code, message) of what keeps a batch from being read."""
    with pytest.raises(DatasetError) as caught:
        load(folder, results, requests, golds, **arguments)
    return [(str(problem.code), str(problem)) for problem in caught.value.problems if problem.severity == "error"]


ANSWERS = [result("a", "2"), result("b", "4"), result("c", "6")]


class TestJoining:
    def test_results_come_in_any_order_and_rows_in_that_of_the_requests(self, tmp_path):
        evalset = load(tmp_path, [result("c", "6"), result("a", "2"), result("b", "5")])
        assert recorded(evalset) == {"a": ("ok", "2"), "b": ("ok", "5"), "c": ("ok", "6")}
        assert golds(evalset) == [["2", "two"], ["4"], ["6"]]
        assert evalset.instances[0].input.messages == [{"role": "user", "content": "1+1?"}]

    def test_what_did_not_run_what_failed_and_what_is_in_neither_file(self, tmp_path):
        errors = [
            {"custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "too late"}},
            {"custom_id": "c", "response": {"status_code": 400, "body": {"error": {"message": "bad"}}}, "error": None},
        ]
        requests = [*ASKED, request("d", "4+4?")]
        write(tmp_path / "errors.jsonl", errors)
        evalset = load(tmp_path, [result("a", "2")], requests, {**GOLDS, "d": "8"})
        assert statuses(evalset) == ["ok", "not_run", "failed", "not_run"]
        counts = [evalset.counts[key] for key in ("lines", "read", "recorded", "not_run", "failed")]
        assert counts == [4, 4, 1, 2, 1]
        # The same where no gold is known of them.
        assert statuses(load(tmp_path, [result("a", "2")], requests, {"a": "2"})) == statuses(evalset)

    def test_a_repeated_result_counts_once_if_it_is_the_same(self, tmp_path):
        assert load(tmp_path, [*ANSWERS, result("a", "2")]).counts["duplicates"] == 1
        ((code, message),) = refused(tmp_path, [*ANSWERS, result("a", "3")])
        assert (code, "out.jsonl:4" in message, "out.jsonl:1" in message) == ("two-results", True, True)

    def test_a_result_of_another_batch(self, tmp_path):
        ((code, message),) = refused(tmp_path, [result("a", "2"), result("z", "4")])
        assert (code, "out.jsonl:2" in message) == ("unknown-id", True)

    @pytest.mark.parametrize(("other", "code"), [
        (request("a", "5+5?"), "repeated-id"), (request("d", "5+5?", model="acme-2"), "several-models"),
        (request("d", url="/v1/completions", prompt="5+5"), "several-kinds"),
        (request("d", url="/v1/embeddings", input="5+5"), "shape"),
        (request("d", "5+5?", messages=[{"role": "user", "content": [{"type": "image_url"}]}]), "shape"),
        (request("d", "5+5?", messages=[{"role": "tool", "content": "5"}]), "no-text"),
        ({**request("d", "5+5?"), "method": "GET"}, "shape"),
    ])  # fmt: skip
    def test_requests_that_are_refused_with_their_line(self, tmp_path, other, code):
        ((found, message),) = refused(tmp_path, [result("a", "2")], [*ASKED, other])
        assert found == code
        assert "in.jsonl:4" in message

    def test_two_files_of_results_that_differ_are_not_mixed(self, tmp_path):
        write(tmp_path / "older.jsonl", [result("a", "3"), result("b", "4"), result("c", "6")])
        assert refused(tmp_path, ANSWERS)[0][0] == "two-results"
        named = load(tmp_path, ANSWERS, output=[str(tmp_path / "older.jsonl")])
        assert recorded(named)["a"] == ("ok", "3")

    def test_a_file_of_results_finds_its_requests_and_its_errors(self, tmp_path):
        arguments = write_batch(tmp_path, ASKED, [result("a", "2"), result("b", "4")], GOLDS)
        write(tmp_path / "failed.jsonl", [{"custom_id": "c", "response": {"status_code": 500}, "error": None}])
        evalset = FORMAT.load(path=str(tmp_path / "out.jsonl"), gold=arguments["gold"])
        assert statuses(evalset) == ["ok", "ok", "failed"]
        assert detect(tmp_path / "out.jsonl") is detect(tmp_path / "in.jsonl") is FORMAT

    def test_the_digest_is_of_all_files(self, tmp_path):
        digests = {
            load(tmp_path, ANSWERS).digest,
            load(tmp_path, [*ANSWERS[:2], result("c", "7")]).digest,
            load(tmp_path, ANSWERS, golds={**GOLDS, "c": 7}).digest,
            load(tmp_path, ANSWERS, [*ASKED[:2], request("c", "3 + 3?")]).digest,
        }
        assert len(digests) == 4


def responses(*items, status="completed", **more):
    return {"object": "response", "model": "acme-1-x", "status": status, "output": list(items), **more}


def choice(index, text, **more):
    return {"index": index, "message": {"role": "assistant", "content": text, **more}, "finish_reason": "stop"}


def echoed(text, tokens, values, offsets):
    logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": offsets}
    return {"choices": [{"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "stop"}]}


PARTS = [{"type": "output_text", "text": "Tw"}, {"type": "output_text", "text": "o"}]
REASONING = {"type": "reasoning", "summary": []}
ECHO = {"url": "/v1/completions", "echo": True, "logprobs": 1, "max_tokens": 5}
RESPONSES = {"url": "/v1/responses", "input": "1+1?"}


@pytest.mark.parametrize(("asked", "body", "found", "counts"), [
    ({"n": 2}, {"choices": [choice(1, "3"), choice(0, "2")]}, ("ok", "2", "3"), {"read": 1}),
    ({}, {"choices": [choice(0, None, refusal="I can't.")]}, ("ok", "I can't."), {"refused": 1}),
    (RESPONSES, responses(REASONING, {"type": "message", "content": PARTS}), ("ok", "Two"), {}),
    (RESPONSES, responses(REASONING, status="incomplete", incomplete_details={"reason": "max_output_tokens"}), ("ok", ""), {"cut": 1}),
    (RESPONSES, responses({"type": "message", "content": "2"}), ("failed",), {}),
    (RESPONSES, responses({"type": "message", "content": ["2"]}), ("failed",), {}),
    # The server writes the prompt's tab as a space: the texts differ, the offsets do not.
    ({**ECHO, "prompt": "1+1\t="}, echoed("1+1 = 2", ["1+1", " =", " 2"], [None, -1, -0.5], [0, 3, 5]), ("ok", " 2"), {}),
    # vLLM counts the token that begins a prompt into the offsets, and leaves it out of the text.
    ({**ECHO, "prompt": "1+1 ="}, echoed("1+1 = two", ["<s>", "1+1", " =", " two"], [None, -2, -1, -0.5], [0, 3, 6, 8]), ("ok", " two"), {}),
])  # fmt: skip
def test_what_is_the_answer_of_a_reply(tmp_path, asked, body, found, counts):
    texts = () if "url" in asked else ("1+1?",)
    sound = {"choices": [choice(0, "4"), choice(1, "5")][: asked.get("n", 1)]}
    if asked.get("url") == "/v1/responses":
        sound = responses({"type": "message", "content": PARTS})
    elif asked.get("echo"):
        sound = echoed(f"{asked['prompt']} x", [asked["prompt"], " x"], [None, -1], [0, len(asked["prompt"])])
    requests = [request(each, *texts, **asked) for each in "ab"]
    evalset = load(tmp_path, [result("a", body=body), result("b", body=sound)], requests, {"a": "2", "b": "4"})
    assert recorded(evalset)["a"] == found
    assert {key: evalset.counts[key] for key in counts} == ({**counts, "read": 2} if "read" in counts else counts)


def test_cut_answers_filtered_ones_and_calls_of_tools_are_counted_by_row(tmp_path):
    call = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    answers = [
        result("a", "2", "3", finish="length"),
        result("b", "", finish="content_filter"),
        result("c", None, finish="tool_calls", tool_calls=call),
        result("d", "4", tool_calls=call),  # beside an answer
        result("e", None, function_call={"name": "f", "arguments": "{}"}),
    ]
    requests = [request("a", "1+1?", n=2), *(request(each, "?") for each in "bcde")]
    evalset = load(tmp_path, answers, requests)
    assert [evalset.counts[key] for key in ("read", "cut", "filtered", "tool_calls")] == [5, 1, 1, 2]
    assert list(recorded(evalset).values()) == [("ok", "2", "3"), ("ok", ""), ("ok", ""), *[("unscored",)] * 2]


def test_what_was_asked_and_of_whom(tmp_path):
    parts = [{"type": "text", "text": "1+"}, {"type": "text", "text": "1?"}]
    evalset = load(
        tmp_path, [result("a", "2")], [request("a", messages=[{"role": "user", "content": parts}])], {"a": "2"}
    )
    assert evalset.instances[0].input.messages == [{"role": "user", "content": "1+1?"}]
    assert evalset.source.model == "acme-1"
    assert evalset.source.settings == {"answered_by": ["acme-1-2025-01-01"]}  # the dated model
    asked = request("a", **RESPONSES, instructions="Be terse.")
    answer = result("a", body=responses({"type": "message", "content": PARTS}))
    evalset = load(tmp_path, [answer], [asked], {"a": "2"})
    assert [message["role"] for message in evalset.instances[0].input.messages] == ["system", "user"]


def test_the_older_form_of_vllm_has_the_body_for_its_response(tmp_path):
    older = {**result("a", "2"), "response": result("a", "2")["response"]["body"]}
    failed = {"custom_id": "b", "response": {"status_code": 400, "body": None}, "error": "no stream mode"}
    too_long = {**failed, "custom_id": "c", "error": {"error": {"message": "too long", "code": 400}}}
    assert statuses(load(tmp_path, [older, failed, too_long])) == ["ok", "failed", "failed"]


def test_that_the_first_of_several_answers_counts_is_said_unless_it_was_chosen(tmp_path):
    asked = [request("a", "1+1?", n=2)]
    answered = [result("a", body={"model": "m", "choices": [choice(0, "2"), choice(1, "3")]})]
    for given, expected in (({}, ["first"]), ({"completions": "first"}, []), ({"completions": "mean"}, [])):
        found = load(tmp_path, answered, asked, {"a": "2"}, **given).warnings
        assert [one.code for one in found if one.code == "first"] == expected
        assert all(one.severity == "note" for one in found if one.code == "first")


class TestGolds:
    def load(self, folder, name, text, **arguments):
        (folder / name).write_text(text)
        made = write_batch(folder, ASKED, ANSWERS, GOLDS)
        return FORMAT.load(path=made["path"], gold=str(folder / name), **arguments)

    @pytest.mark.parametrize(("name", "text"), [
        ("g.json", json.dumps([{"custom_id": id_, "gold": gold} for id_, gold in zip("abc", "246", strict=True)])),
        ("g.jsonl", "".join(f'{{"custom_id": "{id_}", "gold": {n}}}\n' for id_, n in zip("abc", "246", strict=True))),
        ("g.csv", "custom_id,answer\na,2\nb,4\nc,6\n"),
        ("g.tsv", "level\tcustom_id\tgold\n1\ta\t2\n1\tb\t4\n2\tc\t6\n"),
    ])  # fmt: skip
    def test_tables(self, tmp_path, name, text):
        assert golds(self.load(tmp_path, name, text)) == [["2"], ["4"], ["6"]]

    def test_the_column_of_golds_may_be_named(self, tmp_path):
        text = "custom_id,question,answer\na,1+1,2\nb,2+2,4\nc,3+3,6\n"
        assert golds(self.load(tmp_path, "g.csv", text, gold_column="answer")) == [["2"], ["4"], ["6"]]
        for given, said in (({}, "gold_column=NAME"), ({"gold_column": "anwser"}, "did you mean 'answer'")):
            with pytest.raises(DatasetError, match=said):
                self.load(tmp_path, "g.csv", text, **given)

    def test_without_golds_there_is_nothing_to_compare_with(self, tmp_path):
        arguments = write_batch(tmp_path, ASKED, ANSWERS, GOLDS)
        with pytest.raises(DatasetError, match="gold=FILE"):
            FORMAT.load(path=arguments["path"])

    def test_a_row_without_a_gold_is_unscored_and_counted(self, tmp_path):
        assert load(tmp_path, ANSWERS, golds={"a": "2", "b": "4"}).counts["unscored"] == 1

    def test_an_id_that_stands_there_twice(self, tmp_path):
        with pytest.raises(DatasetError, match=r"g\.csv:3: .*line 2 already"):
            self.load(tmp_path, "g.csv", "custom_id,gold\na,2\na,3\n")
        with pytest.raises(DatasetError, match=r"g\.csv:4: .*line 2 already"):  # where the rows begin
            self.load(tmp_path, "g.csv", 'custom_id,gold\na,"2\n3"\na,"3\n4"\n')

    def cells(self, folder, *cells, **arguments):
        """Golds of CSV, where a list of accepted answers is spelt as text."""
        with (folder / "cells.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("custom_id", "gold"), *zip("abc", cells, strict=False)])
        return golds(self.load(folder, "g.csv", (folder / "cells.csv").read_text(), **arguments))

    @pytest.mark.parametrize(("cells", "arguments", "expected"), [
        (('["2", "two"]', '["4", "four"]', "6"), {}, [["2", "two"], ["4", "four"], ["6"]]),
        (('["2", "two"]', "['4', 'four']", "6"), {"gold_kind": "list"}, [["2", "two"], ["4", "four"], ["6"]]),
        (("[sic]", "4", "[6]"), {}, [["[sic]"], ["4"], ["[6]"]]),
        (("[2]", "[4]", "[6]"), {"gold_kind": "list"}, [["2"], ["4"], ["6"]]),
        (("[2]", "[4]", "[6]"), {"gold_kind": "text"}, [["[2]"], ["[4]"], ["[6]"]]),
    ])  # fmt: skip
    def test_lists_in_cells_are_accepted_answers(self, tmp_path, cells, arguments, expected):
        assert self.cells(tmp_path, *cells, **arguments) == expected

    @pytest.mark.parametrize(("cells", "said"), [
        ("[2] [4] [6]".split(), "gold_kind=list"), (["2", "['4', 'four']", "6"], r"g\.csv:3: .*\n.*gold_kind=list"), (["2", "['4' 'four']", "6"], r"g\.csv:3: .*numpy"),
    ])  # fmt: skip
    def test_lists_that_could_be_something_else_are_refused(self, tmp_path, cells, said):
        with pytest.raises(DatasetError, match=said):
            self.cells(tmp_path, *cells)


class TestOptions:
    """Requests about options, scored by the log-probabilities of their tokens."""

    def option(self, custom_id, head, words, values, *, begins=False):
        """A request about an option of these words, and its result. `begins`: a token of vLLM's begins them."""
        text = "".join(words)
        asked = request(custom_id, url="/v1/completions", prompt=head + text, echo=True, logprobs=1, max_tokens=0)
        tokens = [*(["<|begin|>"] if begins else []), head, *words]
        offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
        known = [None, *[-9.0] * (len(tokens) - 1 - len(words)), *values]
        logprobs = {"tokens": tokens, "token_logprobs": known, "text_offset": offsets}
        choice = {"index": 0, "text": head + text, "logprobs": logprobs, "finish_reason": "length"}
        return asked, result(custom_id, body={"model": "acme-1", "choices": [choice]})

    def load(self, folder, golds, made=None, **arguments):
        questions = {
            "1+1?": ((" two",), (" three",)), "Who?": ((" New", " Tom"), (" New", " Ann")), "Where?": ((" here",), (" there",)),
        }  # fmt: skip
        made = made or [
            self.option(f"q{n}#{at}", f"Question: {question}\nAnswer:", words, [-0.5 - at] * len(words))
            for n, (question, options) in enumerate(questions.items(), 1)
            for at, words in enumerate(options)
        ]
        requests, results = zip(*made, strict=True)
        return FORMAT.load(
            **write_batch(folder, requests, [one for one in reversed(results) if one], golds), **arguments
        )

    def test_one_row_for_each_question_with_the_sums_of_its_options(self, tmp_path):
        evalset = self.load(tmp_path, {"q1": 0, "q2": 0, "q3": 1})
        assert [instance.id for instance in evalset.instances] == ["q1", "q2", "q3"]
        assert [instance.input.text for instance in evalset.instances] == [
            "Question: 1+1?\nAnswer:", "Question: Who?\nAnswer:", "Question: Where?\nAnswer:",
        ]  # fmt: skip
        # "New" is part of both options of q2, because most questions' options begin after "Answer:"
        assert [[one.output.text for one in each.references] for each in evalset.instances] == [
            ["two", "three"], ["New Tom", "New Ann"], ["here", "there"],
        ]  # fmt: skip
        sums = [[one["logprob"] for one in row_extra(each)["likelihoods"]] for each in evalset.instances]
        assert sums == [[-0.5, -1.5], [-1.0, -3.0], [-0.5, -1.5]]
        assert (evalset.counts["lines"], evalset.counts["read"]) == (6, 3)

    def test_golds_may_be_texts(self, tmp_path):
        texts = {"q1": "two", "q2": "New Ann", "q3": "there"}
        assert golds(self.load(tmp_path, texts)) == [[text] for text in texts.values()]

    def test_positions_that_may_count_from_0_or_1_are_asked_about(self, tmp_path):
        with pytest.raises(DatasetError, match="index_base"):
            self.load(tmp_path, {"q1": 1, "q2": 1, "q3": 1})
        evalset = self.load(tmp_path, {"q1": 1, "q2": 1, "q3": 1}, index_base=1)
        assert golds(evalset) == [["two"], ["New Tom"], ["here"]]

    def test_an_option_without_an_answer_leaves_its_question_out(self, tmp_path):
        made = [
            self.option(f"q{n}#{at}", f"{n}?", text, [-1.0]) for n in (1, 2) for at, text in enumerate(([" x"], [" y"]))
        ]
        made[-1] = (made[-1][0], None)
        assert self.load(tmp_path, {"q1": 0, "q2": 0}, made).counts["not_run"] == 1

    @pytest.mark.parametrize(("ids", "said"), [
        (["q"], "no number at the end"),
        ([f"q#{at}" for at in range(27)], "q: 27 options, and there are letters for 26"),
    ])  # fmt: skip
    def test_ids_that_do_not_say_which_option(self, tmp_path, ids, said):
        with pytest.raises(DatasetError, match=said):
            self.load(tmp_path, {"q": 0}, [self.option(id_, "1+1?", [f" {id_}"], [-1.0]) for id_ in ids])

    def test_the_token_that_vllm_counts_into_offsets_does_not_move_where_an_option_begins(self, tmp_path):
        made = [
            self.option(f"q#{at}", "It is:", [f" {word}"], [-0.5 - at], begins=True)
            for at, word in enumerate(("Oslo", "Rome"))
        ]
        (instance,) = self.load(tmp_path, {"q": "Oslo"}, made).instances
        assert [one["logprob"] for one in row_extra(instance)["likelihoods"]] == [-0.5, -1.5]


def test_all_lines_that_are_wrong_are_said_at_once(tmp_path):
    arguments = write_batch(tmp_path, ASKED, [result("a", "2")], GOLDS)
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write('{"custom_id": 4, "response": null, "error": null}\n[]\nnot JSON\n')
    problems, _ = FORMAT.check(**arguments)
    assert [(problem.location.line, problem.severity) for problem in problems] == [(at, "error") for at in (2, 3, 4)]


def test_json_of_requests_alone_is_refused(tmp_path):
    write(tmp_path / "in.jsonl", ASKED)
    (tmp_path / "gold.json").write_text(json.dumps(GOLDS))
    with pytest.raises(DatasetError, match="no file beside it holds their results"):
        FORMAT.load(path=str(tmp_path / "in.jsonl"), gold=str(tmp_path / "gold.json"))


def test_the_datasets_of_a_folder_are_its_requests(tmp_path):
    """Results are read with the requests that they answer; those of which the requests are elsewhere, by themselves."""
    folder = tmp_path / "batches"
    folder.mkdir()
    for name, ids in (("one", "ab"), ("two", "cd")):
        write(folder / f"{name}_input.jsonl", [request(each, "?") for each in ids])
        write(folder / f"{name}_output.jsonl", [result(each, "!") for each in ids[::-1]])
    write(folder / "two_errors.jsonl", [result("c", "!")])
    write(folder / "three_output.jsonl", [result("e", "!")])
    assert [path.name for path in files_in(folder)] == ["one_input.jsonl", "three_output.jsonl", "two_input.jsonl"]
    (folder / "one_input.jsonl").unlink()
    assert "one_output.jsonl" in {path.name for path in files_in(folder)}
    assert files_in(folder / "two_output.jsonl") == [folder / "two_output.jsonl"]
