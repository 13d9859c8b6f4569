import dataclasses

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.augmentations.perturbation_description import PerturbationDescription
from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
from helm.benchmark.window_services.no_tokenizer_window_service import NoTokenizerWindowService

from helm_ext import plugin  # noqa: F401 - registers recorded deployments
from helm_ext.adaptation import rows as selection
from helm_ext.adaptation import wrap as adaptation
from helm_ext.errors import RecordedError, RunEntryError
from helm_ext.evalset import EXTRA_KEY, row_extra


def row(text="2+2?", options=("4",), correct=0, split="test", id="r1", **extra):
    references = [
        Reference(Output(option), [CORRECT_TAG] if index == correct else []) for index, option in enumerate(options)
    ]
    return Instance(Input(text), references, split=split, id=id, extra_data={EXTRA_KEY: extra})


def spec(deployment, method="generation", **fields):
    defaults = {"max_train_instances": 0, "num_outputs": 1, "temperature": 0.0, "model": deployment}
    return AdapterSpec(method=method, model_deployment=deployment, **{**defaults, **fields})


def adapt(adapter_spec, *rows):
    return AdapterFactory.get_adapter(adapter_spec, None).adapt(list(rows), parallelism=1)


def recorded_row(*states, status="ok", **kwargs):
    return row(recorded={"status": status, "states": list(states)}, **kwargs)


def answered(text, **state):
    return {"result": {"completions": [{"text": text}]}, **state}


def test_the_wrap_is_put_on_once():
    before = AdapterFactory.get_adapter
    adaptation.install()
    assert AdapterFactory.get_adapter is before


class TestLive:
    def test_a_foreign_instance_passes_untouched(self, live_deployment):
        foreign = Instance(Input("a"), [Reference(Output("b"), [CORRECT_TAG])], split="test", id="x")
        (state,) = adapt(spec(live_deployment, stop_sequences=["\n"]), foreign)
        assert state.instance is foreign
        assert state.output_mapping is None
        assert state.request.top_p == 1

    def test_decoding_parameters_reach_the_request(self, live_deployment):
        decoding = {"top_p": 0.9, "top_k_per_token": 40, "frequency_penalty": 0.5, "presence_penalty": -0.5}
        (state,) = adapt(spec(live_deployment, random="7"), row(decoding=decoding))
        assert {name: getattr(state.request, name) for name in decoding} == decoding
        assert state.request.random == "7"

    @pytest.mark.parametrize(("method", "extra", "expected"), [
        ("multiple_choice_joint", {}, (["\n"], 1, {"A": "3", "B": "4"}, 1)),
        ("multiple_choice_joint", {"decoding": {"num_completions": 3}}, (["\n"], 1, {"A": "3", "B": "4"}, 3)),
        ("generation", {}, (["\n"], 1, {"A": "3", "B": "4"}, 1)),
        # Nothing is changed where a given text is scored.
        ("multiple_choice_separate_original", {"decoding": {"top_p": 0.5}}, ([], 1, None, 1)),
    ])  # fmt: skip
    def test_what_helms_adapters_lose(self, live_deployment, method, extra, expected):
        adapter_spec = spec(live_deployment, method, stop_sequences=["\n"], reference_prefix="A. ", output_suffix="")
        states = adapt(adapter_spec, row(options=("3", "4"), correct=1, labels={"A": "3", "B": "4"}, **extra))
        assert [state.reference_index for state in states] == ([None] if expected[0] else [0, 1])
        request = states[0].request
        found = request.stop_sequences, request.top_p, states[0].output_mapping, request.num_completions
        assert found == expected

    def test_recordings_are_taken_off_and_rows_of_the_other_kind_left_out(self, live_deployment):
        states = adapt(
            spec(live_deployment),
            recorded_row(answered("4"), id="kept"),
            recorded_row(answered("4"), id="demonstration", only="recorded"),
        )
        assert [state.instance.id for state in states] == ["kept"]
        assert "recorded" not in row_extra(states[0].instance)

    def test_only_the_splits_that_are_evaluated(self, live_deployment):
        rows = [row(split=split, id=split) for split in ("test", "valid")]
        states = adapt(spec(live_deployment, eval_splits=["valid"]), *rows)
        assert [state.instance.id for state in states] == ["valid"]
        assert len(adapt(spec(live_deployment, eval_splits=[]), *rows)) == 2

    def test_fewer_rows_than_asked_for_are_a_warning(self, live_deployment, monkeypatch):
        said = []
        monkeypatch.setattr(selection, "hwarn", said.append)
        rows = [row(id="a"), row(id="b", only="recorded"), row(id="c", only="recorded"), row(split="train", id="t")]
        adapt(spec(live_deployment, max_eval_instances=3), *rows)
        (text,) = said
        assert text.startswith("1 of the 3 rows that HELM chose are evaluated, fewer than --max-eval-instances 3: the")
        adapt(spec(live_deployment, max_eval_instances=1), *rows)
        adapt(spec(live_deployment, max_eval_instances=None), *rows)
        adapt(spec(live_deployment, max_eval_instances=5), row(id="a"), row(id="b"))
        assert len(said) == 1

    def test_chat_is_refused_where_the_client_would_be_asked_an_empty_prompt(self, live_deployment):
        with pytest.raises(RunEntryError, match=r"SimpleClient ignores chat messages.*\n.*render=text"):
            adapt(spec(live_deployment, "chat"), row())


class CountingWindow(NoTokenizerWindowService):
    """A window of so many characters."""

    def __init__(self, size):
        self.size = size

    def fits_within_context_window(self, text, expected_completion_token_length=0):
        return len(text) + expected_completion_token_length <= self.size

    def truncate_from_right(self, text, expected_completion_token_length=0):
        return text[: self.size - expected_completion_token_length]


class TestPromptOfOurOwn:
    PLAIN = {"input_prefix": "", "input_suffix": "", "output_prefix": "", "output_suffix": "", "instance_prefix": ""}
    PROMPT = ["HEAD\n", "demo one\n", "demo two\n", "question "]  # 5, 9, 9, 9 characters
    SEPARATE, LONG = "multiple_choice_separate_original", (" a", " longest")

    def adapt(self, deployment, window, method="generation", max_tokens=5, options=("4",), prompt=PROMPT):
        adapter = AdapterFactory.get_adapter(spec(deployment, method, max_tokens=max_tokens, **self.PLAIN), None)
        adapter.adapter.window_service = window
        return adapter.adapt([row("question ", options, prompt=prompt)], parallelism=1)

    # HELM itself strips the end of the output prefix, never of the input: the final space stays.
    @pytest.mark.parametrize(("size", "method", "options", "prompts"), [
        (5 + 9 + 9 + 9 + 5, "generation", ("4",), ["HEAD\ndemo one\ndemo two\nquestion "]),
        (5 + 9 + 9 + 9 + 5 - 1, "generation", ("4",), ["HEAD\ndemo two\nquestion "]),
        (5 + 9 + 5 - 1, "generation", ("4",), None),  # left out, not cut
        (5 + 9 * 3 + 8 + 5, SEPARATE, LONG, [f"HEAD\ndemo one\ndemo two\nquestion {one}" for one in LONG]),
        (5 + 9 * 3 + 8 + 5 - 1, SEPARATE, LONG, [f"HEAD\ndemo two\nquestion {one}" for one in LONG]),
        (5 + 9 + 8 + 5 - 1, SEPARATE, LONG, None),  # one option too long: the whole row
    ])  # fmt: skip
    def test_demonstrations_go_from_the_front_until_all_options_fit(
        self, live_deployment, size, method, options, prompts
    ):
        states = self.adapt(live_deployment, CountingWindow(size), method, options=options)
        assert len(states) == len(options)
        assert {state.instance.input.text for state in states} == {"question "}
        if prompts is None:
            assert [row_extra(state.instance)["left_out"] for state in states] == ["too_long"] * len(states)
            assert {state.request.model_deployment for state in states} == {"recorded/left-out"}
            assert states[0].request.result.completions[0].text == ""
        else:
            assert [state.request.prompt for state in states] == prompts
            assert [state.num_train_instances for state in states] == [prompts[0].count("demo")] * len(states)
            assert not any("left_out" in row_extra(state.instance) for state in states)

    def test_the_option_with_most_tokens_must_fit_not_the_one_with_most_characters(self, live_deployment):
        """CJK: fewer characters, more tokens."""

        class Bytes(CountingWindow):
            def fits_within_context_window(self, text, expected_completion_token_length=0):
                return len(text.encode()) + expected_completion_token_length <= self.size

        options = (" four", "你好啊")  # 5 characters, 5 bytes; 3 characters, 9 bytes
        prompt = ["", *self.PROMPT[1:]]
        states = self.adapt(live_deployment, Bytes(9 + 9 + 9), self.SEPARATE, 0, options, prompt)
        assert [state.num_train_instances for state in states] == [1, 1]
        assert not any("left_out" in row_extra(state.instance) for state in states)

    def test_an_answer_is_not_that_to_a_question_which_data_augmentation_makes(self):
        """Perturbed rows of a file have answers of their own."""
        asked = recorded_row(answered("yes"))
        changed = {"input": Input("QUESTION"), "perturbation": PerturbationDescription("upper")}
        with pytest.raises(RunEntryError, match=r"data_augmentation=.*never asked"):
            adapt(spec("recorded/m"), asked, dataclasses.replace(asked, **changed))
        of_file = dataclasses.replace(recorded_row(answered("YES")), **changed)
        states = adapt(spec("recorded/m"), asked, of_file)
        assert [state.request.result.completions[0].text for state in states] == ["yes", "YES"]

    def test_data_augmentation_changes_the_question_that_is_asked(self, live_deployment):
        perturbed = dataclasses.replace(
            row("QUESTION ", prompt=["HEAD\n", "demo\n", "question "]), perturbation=PerturbationDescription("upper")
        )
        (state,) = adapt(spec(live_deployment, **self.PLAIN), perturbed)
        assert state.request.prompt == "HEAD\ndemo\nQUESTION "

    @pytest.mark.parametrize(("method", "fields", "said"), [
        ("generation", {"max_train_instances": 5}, r"max_train_instances=5: .*\n.*fewshot=N"),
        ("multiple_choice_separate_original", {"num_outputs": 3}, r"num_outputs=3: nothing is sampled"),
    ])  # fmt: skip
    def test_what_such_a_prompt_cannot_have(self, live_deployment, method, fields, said):
        with pytest.raises(RunEntryError, match=said):
            adapt(spec(live_deployment, method, **fields), row(prompt=["", "q"]))
        if method == "generation":
            (state,) = adapt(spec(live_deployment, num_outputs=3), row(prompt=["", "q"]))
            assert state.request.num_completions == 3


def test_a_question_is_not_asked_without_its_options(live_deployment):
    """A table of outputs holds a question and its options apart, and not the prompt that showed both."""
    options = {"labels": {"A": "3", "B": "4"}, "recorded": {"status": "ok", "states": []}}
    with pytest.raises(
        RunEntryError, match=r"asked without the options of 1 row \(for example .*\n.*columns of outputs"
    ):
        adapt(spec(live_deployment), row("2+2?", **options))
    for question, instructions in (("2+2? A. 3 B. 4", ""), ("2+2?", "A is 3, B is 4.")):
        assert len(adapt(spec(live_deployment, instructions=instructions), row(question, **options))) == 1


class TestNothingToEvaluate:
    """HELM would finish such a run as if all were well."""

    @pytest.mark.parametrize(("rows", "fields"), [
        ([row(split="train")], {}),
        ([row(split="train"), row(only="live", split="valid")], {"eval_splits": ["test"]}),
        ([recorded_row(answered("4"), split="test")], {"eval_splits": ["valid"]}),
    ])  # fmt: skip
    @pytest.mark.parametrize("kind", ["live", "recorded"])
    def test_is_an_error(self, live_deployment, rows, fields, kind):
        deployment = live_deployment if kind == "live" else "recorded/x"
        splits = " or ".join(fields.get("eval_splits", ["valid", "test"]))
        said = rf"no row to evaluate: none of {len(rows)} rows is of split {splits} and takes part in a {kind} run"
        with pytest.raises(RunEntryError, match=said):
            adapt(spec(deployment, max_eval_instances=10, **fields), *rows)

    def test_helm_was_told_to_skip_the_instances(self, live_deployment):
        assert adapt(spec(live_deployment)) == []
        assert adapt(spec("recorded/x")) == []


class TestRecorded:
    def test_a_method_that_asks_about_each_option(self):
        incomplete = [
            row(id=name, options=("3", "4"), recorded={"status": "not_run", "states": [], "requests": [found, 2]})
            for name, found in (("a", 0), ("b", 1))
        ]
        adapter_spec = spec("recorded/x", "multiple_choice_separate_original")
        said = (
            r"2 of 2 rows have completions that multiple_choice_separate_original cannot be scored with: it needs one "
            r"request per option, with log-probabilities of tokens that end with it; row a has 0 of 2\n.*method=generation"
        )
        with pytest.raises(RecordedError, match=said):
            adapt(adapter_spec, *incomplete)
        with pytest.raises(
            RecordedError, match=r"1 of 2 rows have .* row b has 1 of 2\n.*; missing=skip scores the rest"
        ):
            adapt(adapter_spec, recorded_row(answered("x", reference_index=0)), incomplete[1])

    def test_states_are_rebuilt_as_they_were_recorded(self):
        ignored = {"model": "a/b", "model_deployment": "c/d", "zzz": 1, "top_p": None}
        recorded_request = {"prompt": "Q: 2+2?\nA:", "temperature": 0.7, "num_completions": 2, **ignored}
        state = answered("4", request=recorded_request, num_train_instances=3, prompt_truncated=True)
        (rebuilt,) = adapt(spec("recorded/x", stop_sequences=["\n"]), recorded_row(state))
        assert rebuilt.request.prompt == "Q: 2+2?\nA:"
        assert (rebuilt.request.temperature, rebuilt.request.num_completions) == (0.7, 2)
        assert rebuilt.request.stop_sequences == ["\n"]
        assert (rebuilt.request.model_deployment, rebuilt.request.top_p) == ("recorded/x", 1)
        assert (rebuilt.num_train_instances, rebuilt.prompt_truncated) == (3, True)
        assert rebuilt.request.result.completions[0].text == "4"
        assert "recorded" not in row_extra(rebuilt.instance)
        (rebuilt,) = adapt(spec("recorded/x", global_prefix="[NLG]"), recorded_row(answered("4")))
        assert rebuilt.request.prompt == ""  # one that was not recorded is not made up

    def test_separate_requests_share_one_instance(self):
        states = [answered("x 3", reference_index=0, request_mode="original")]
        states += [answered("x 4", reference_index=1, request_mode="original")]
        rebuilt = adapt(
            spec("recorded/x", "multiple_choice_separate_original"), recorded_row(*states, options=("3", "4"))
        )
        assert [state.reference_index for state in rebuilt] == [0, 1]
        assert rebuilt[0].instance is rebuilt[1].instance

    def test_train_rows_and_live_copies_take_no_part(self):
        states = adapt(
            spec("recorded/x"),
            row(split="train", id="train"),
            row(only="live", id="demo"),
            recorded_row(answered("4"), id="kept", only="recorded"),
        )
        assert [state.instance.id for state in states] == ["kept"]

    def test_missing_rows_are_an_error_that_counts_and_names_them(self):
        rows = [recorded_row(answered("4"), id="ok")]
        rows += [recorded_row(status="not_run", id=f"n{i}") for i in range(6)] + [recorded_row(status="failed", id="f")]
        with pytest.raises(RecordedError) as caught:
            adapt(spec("recorded/x"), *rows)
        assert str(caught.value) == (
            "7 of 8 rows cannot be scored: 6 not run, 1 failed (n0, n1, n2, n3, n4, ... (2 more))\n"
            "  hint: missing=skip scores the rest and reports how many were left out"
        )
        with pytest.raises(RecordedError, match=r"^2 of 3 rows cannot be scored: 2 not run \(n0, n1\)\n"):
            adapt(spec("recorded/x"), *rows[:3])

    def test_skipped_rows_are_kept_and_marked(self):
        skipped = row(recorded={"status": "failed", "states": [], "skip": True}, id="f")
        skipped.extra_data["mine"] = 1
        ok, left_out = adapt(spec("recorded/x"), recorded_row(answered("4"), id="ok"), skipped)
        assert left_out.instance.extra_data["mine"] == 1
        assert "left_out" not in row_extra(ok.instance)
        assert row_extra(left_out.instance)["left_out"] == "failed"

    @pytest.mark.parametrize(("rows", "method", "said"), [
        ([row(id="a"), row(id="b")], "generation", "recorded/x: none of the 2 rows holds a recorded completion"),
        ([Instance(Input("a"), [], split="test")], "generation", "recorded/x needs a dataset that holds completi"),
        ([recorded_row(answered("4"))], "language_modeling", "language_modeling cannot be re-scored"),
    ])  # fmt: skip
    def test_what_is_no_recording(self, rows, method, said):
        with pytest.raises(RecordedError, match=said):
            adapt(spec("recorded/x", method), *rows)

    def test_trials_that_metrics_would_not_look_at_are_an_error(self):
        states = [answered("4", train_trial_index=0), answered("5", train_trial_index=1)]
        said = (
            "the file holds 2 training trials, and this run is for 1\n  hint: set .*num_train_trials to 2 .* with -t 2"
        )
        with pytest.raises(RecordedError, match=said):
            adapt(spec("recorded/x"), recorded_row(*states))
        assert len(adapt(spec("recorded/x", num_train_trials=2), recorded_row(*states))) == 2


def test_the_adapter_looks_like_the_one_it_decorates(live_deployment):
    adapter = AdapterFactory.get_adapter(spec(live_deployment), None)
    assert adapter.window_service is adapter.adapter.window_service
    with pytest.raises(AttributeError):
        adapter.no_such_thing
    assert dataclasses.is_dataclass(adapter.adapter_spec)
