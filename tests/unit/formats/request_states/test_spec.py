"""`adapter_spec`: HELM's fields and defaults, the method that is chosen, labels, scoring, prompts that double."""

from dataclasses import fields

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec, Substitution
from helm.benchmark.adaptation.adapters.multiple_choice_joint_adapter import MultipleChoiceJointAdapter
from request_states_files import answered, choice, codes, problems, reference, split_rows, state, write

from helm_ext.evalset import Scoring, row_extra
from helm_ext.formats.request_states import load
from helm_ext.formats.request_states.labels import _SERIES, shared_sequence

RIVERS = ["Nile", "Volga", "Rhine"]


def spec_of(tmp_path, spec, rows=None, **options):
    return load(
        write(tmp_path / "x.json", rows or [state(split="test"), state("?", split="train")], spec), **options
    ).adapter_spec


def rivers(count=3, options=RIVERS, **instance):
    return [
        choice(f"Where is {number}?", options, number % len(options), id=number, split="test", **instance)
        for number in range(count)
    ]


def labels(evalset):
    return [row_extra(instance).get("labels") for instance in evalset.instances]


def render(adapter_spec, instance, include_output=True):
    """The row as HELM's joint adapter renders it."""
    adapter = MultipleChoiceJointAdapter.__new__(MultipleChoiceJointAdapter)
    adapter.adapter_spec = adapter_spec
    return adapter.construct_example_prompt(instance, include_output, None)


class TestDefaults:
    def test_absent_means_helms_default_for_what_generation_uses(self, tmp_path):
        expected = AdapterSpec(
            method="generation", reference_prefix="", reference_suffix="", chain_of_thought_suffix="", num_outputs=1,
            temperature=0.0,
        )  # fmt: skip
        assert spec_of(tmp_path, {}) == expected

    def test_absent_means_helms_default_for_what_multiple_choice_uses(self, tmp_path):
        expected = AdapterSpec(
            method="multiple_choice_joint", chain_of_thought_suffix="", num_outputs=1, temperature=0.0,
            reference_prefix_characters=["A", "B", "C"], max_train_instances=0,
        )  # fmt: skip
        assert spec_of(tmp_path, {"max_train_instances": 0}, rivers()) == expected

    def test_null_is_empty(self, tmp_path):
        keys = [
            "instructions", "global_prefix", "global_suffix", "input_prefix", "input_suffix", "output_prefix", "output_suffix",
            "instance_prefix", "chain_of_thought_suffix",
        ]  # fmt: skip
        spec = spec_of(tmp_path, dict.fromkeys(keys))
        assert {getattr(spec, key) for key in keys} == {""}

    def test_every_field_is_passed_through(self, tmp_path):
        given = {
            "method": "generation",
            "global_prefix": "[", "global_suffix": "]", "instructions": "Answer.", "input_prefix": "Q: ", "input_suffix": "\n\n",
            "reference_prefix": "- ", "reference_suffix": ";", "chain_of_thought_prefix": "Because ", "chain_of_thought_suffix": "So ",
            "output_prefix": "A: ", "output_suffix": ".", "instance_prefix": "#", "max_train_instances": 3, "num_train_trials": 2,
            "num_trials": 2, "sample_train": False, "max_tokens": 7, "stop_sequences": ["\n"], "multi_label": True,
            "eval_splits": ["test"], "output_mapping_pattern": "(.)", "reference_prefix_characters": ["x", "y"],
            "random": "r", "num_outputs": 4, "temperature": 0.5,
        }  # fmt: skip
        spec = spec_of(tmp_path, given | {"substitutions": [{"source": "a", "target": "b"}]})
        for key, value in given.items():
            assert getattr(spec, key) == value, key
        assert spec.substitutions == [Substitution("a", "b")]

    def test_keys_of_helms_own_files_are_accepted_and_models_dropped(self, tmp_path):
        every = {field.name: getattr(AdapterSpec(), field.name) for field in fields(AdapterSpec)}
        every |= {"method": "generation", "model": "a/b", "model_deployment": "a/b", "image_generation_parameters": {}, "reeval_parameters": {}}  # fmt: skip
        spec = spec_of(tmp_path, every)
        assert (spec.model, spec.model_deployment, spec.max_eval_instances) == ("", "", None)
        assert (spec.num_outputs, spec.temperature) == (5, 1)


class TestDecoding:
    PARAMETERS = {
        "temperature": 0.7, "top_p": 0.9, "top_k": 40, "frequency_penalty": 0.1, "presence_penalty": 0, "num_outputs": 3, "seed": 7,
    }  # fmt: skip

    def test_what_adapter_spec_has_and_what_rides_on_the_row(self, tmp_path):
        evalset = load(write(tmp_path / "x.json", split_rows(4, train=2), {"decoding_parameters": self.PARAMETERS}))
        spec = evalset.adapter_spec
        assert (spec.temperature, spec.num_outputs, spec.random) == (0.7, 3, "7")
        decoding = [row_extra(instance).get("decoding") for instance in evalset.instances]
        expected = {"top_p": 0.9, "top_k_per_token": 40, "frequency_penalty": 0.1, "presence_penalty": 0}
        assert decoding == [None, None, expected, expected]

    def test_equal_values_in_both_places(self, tmp_path):
        spec = spec_of(
            tmp_path, {"temperature": 1, "decoding_parameters": {"temperature": 1.0, "seed": 3}, "random": "3"}
        )
        assert (spec.temperature, spec.random) == (1.0, "3")


class TestOutputsOfJointMultipleChoice:
    """HELM's joint adapter asks for one completion, whatever num_outputs is."""

    ROWS = [choice("a?", ["Nile", "Volga"]), choice("b?", ["Po", "Rhine"], correct=1)]

    @pytest.mark.parametrize(
        "spec",
        [{"num_outputs": 3}, {"decoding_parameters": {"num_outputs": 3, "top_p": 0.5}, "max_train_instances": 0}],
    )
    def test_they_are_asked_for(self, tmp_path, spec):
        evalset = load(write(tmp_path / "x.json", self.ROWS, {"max_train_instances": 0, **spec}))
        assert evalset.adapter_spec.method == "multiple_choice_joint"
        assert evalset.adapter_spec.num_outputs == 3
        wanted = {"num_completions": 3} | ({"top_p": 0.5} if "decoding_parameters" in spec else {})
        assert [row_extra(one)["decoding"] for one in evalset.instances] == [wanted, wanted]

    def test_where_helm_does_it_or_nothing_is_said(self, tmp_path):
        for spec in ({"num_outputs": 3, "method": "generation"}, {}, {"num_outputs": 1}):
            evalset = load(write(tmp_path / "x.json", self.ROWS, {"max_train_instances": 0, **spec}))
            assert not any("decoding" in row_extra(one) for one in evalset.instances)

    def test_helms_own_file_is_asked_again_as_helm_did(self, tmp_path):
        rows = [{**row, "train_trial_index": 0, "output_mapping": {"A": "Nile", "B": "Volga"}} for row in self.ROWS[:1]]
        spec = {"num_outputs": 5, "method": "multiple_choice_joint", "max_train_instances": 0}
        (instance,) = load(write(tmp_path / "x.json", rows, spec)).instances
        assert "decoding" not in row_extra(instance)


class TestMethod:
    def method(self, tmp_path, rows, spec=None, **options):
        return load(write(tmp_path / "x.json", rows, spec), **options).adapter_spec.method

    def test_rows_with_options_or_some_without(self, tmp_path):
        assert self.method(tmp_path, rivers()) == "multiple_choice_joint"
        assert self.method(tmp_path, [*rivers(), state(id="s")]) == "generation"

    def test_options_in_some_texts_only(self, tmp_path):
        rows = [*rivers(), choice("A. Nile\nB. Volga\nC. Rhine", RIVERS, id="x")]
        assert self.method(tmp_path, rows) == "multiple_choice_joint"

    @pytest.mark.parametrize(
        ("text", "is_there"),
        [
            ("Which? A. Nile B. Volga", True),
            ("Which? (A) Nile (B) Volga", True),
            ("Which? A) - Nile\nB) - Volga", True),  # four characters between a label and its option
            ("Which? A. --- Nile\nB. --- Volga", False),  # too far from it, and the line holds more
            ("Which?\n- Nile\n* Volga", True),
            ("Which?\nNile\nVolga", True),
            ("Which? Nile\nVolga", False),
            ("Which? A. Nile", False),
            ("Which? A. Nile B. the Volga", False),
            ("Which? A. Nile or Volga", False),
            ("Which? B. Nile A. Volga", False),
            ("Is Nile more than Volga? A. Nile B. Volga", True),  # the second time it stands behind its label
        ],
    )
    def test_options_in_the_text_are_not_shown_again(self, tmp_path, text, is_there):
        method = self.method(tmp_path, [choice(text, ["Nile", "Volga"])], {"max_train_instances": 0})
        assert method == ("generation" if is_there else "multiple_choice_joint")

    def test_labels_that_differ_choose_generation_and_say_that_options_are_hidden(self, tmp_path):
        rows = [
            choice("a?", RIVERS, answer_mapping={"A": 0, "B": 1, "C": 2}),
            choice("b?", RIVERS, answer_mapping={"1": 0, "2": 1, "3": 2}),
        ]
        path = write(tmp_path / "x.jsonl", rows)
        assert load(path).adapter_spec.method == "generation"
        (warning,) = [problem for problem in problems(path) if problem.code == "options-not-shown"]
        assert str(warning) == (
            f'{path}:2: instance.input.text: method generation is used: the rows\' labels differ: ["A", "B", "C"] and '
            '["1", "2", "3"]\n'
            "  hint: a model that is asked live is not shown the options: write them into input.text"
        )

    def test_the_file_and_the_argument_decide(self, tmp_path):
        spec = {"method": "generation", "max_train_instances": 0}
        assert self.method(tmp_path, rivers(), spec) == "generation"
        assert self.method(tmp_path, rivers(), spec, method="multiple_choice_joint") == "multiple_choice_joint"
        for name in ("multiple_choice_separate_original", "multiple_choice_separate_calibrated"):
            spec = {"method": name, "reference_prefix": None, "max_train_instances": 0}
            evalset = load(write(tmp_path / "x.json", rivers(), spec))
            assert (evalset.adapter_spec.method, labels(evalset)) == (name, [None] * 3)
            assert evalset.scoring == Scoring(metrics=("exact_match",), main_metric="exact_match")


class TestEmptyPrefix:
    def test_with_a_mapping_completions_are_read_and_nothing_is_rendered(self, tmp_path):
        rows, spec = rivers(answer_mapping={"A": 0, "B": 1, "C": 2}), {"reference_prefix": None}
        assert codes(write(tmp_path / "x.json", rows, spec), "error") == ["too-few-rows"]
        path = write(tmp_path / "x.json", rows, {**spec, "max_train_instances": 0})
        assert load(path).adapter_spec.method == "generation"
        assert "options-not-shown" in codes(path)


class TestMapping:
    EXPECTED = {"A": "Nile", "B": "Volga", "C": "Rhine"}

    def load(self, tmp_path, row=None, spec=None):
        rows = [choice("a?", RIVERS, **(row or {}))]
        return load(write(tmp_path / "x.json", rows, {"max_train_instances": 0, **(spec or {})}))

    @pytest.mark.parametrize("key", ["answer_mapping", "output_mapping"])
    @pytest.mark.parametrize(
        "mapping",
        [{"A": 0, "B": 1, "C": 2}, {"A": "Nile", "B": "Volga", "C": "Rhine"}, {"A": " Nile\n", "B": "Volga", "C": 2}],
    )
    def test_both_names_all_places_both_forms(self, tmp_path, key, mapping):
        on_state = {**choice("a?", RIVERS), key: mapping}
        for evalset in (
            self.load(tmp_path, {key: mapping}),
            self.load(tmp_path, None, {key: mapping}),
            load(write(tmp_path / "y.json", [on_state])),
        ):
            assert labels(evalset) == [self.EXPECTED]

    def test_the_nearest_wins(self, tmp_path):
        near, far, farthest = (
            {"A": order[0], "B": order[1], "C": order[2]} for order in ([2, 1, 0], [1, 0, 2], [0, 1, 2])
        )
        row = {**choice("a?", RIVERS, answer_mapping=far), "output_mapping": near}
        spec = {"answer_mapping": farthest, "max_train_instances": 0, "method": "generation"}
        assert labels(load(write(tmp_path / "x.json", [row], spec))) == [{"A": "Rhine", "B": "Volga", "C": "Nile"}]
        assert labels(self.load(tmp_path, {"answer_mapping": far}, spec)) == [{"A": "Volga", "B": "Nile", "C": "Rhine"}]

    def test_joint_shows_the_options_in_the_order_of_their_labels(self, tmp_path):
        evalset = self.load(tmp_path, {"answer_mapping": {"A": "Rhine", "B": "Nile", "C": "Volga"}, "references": [reference("Nile", correct=True), reference("Volga", kept=1), reference("Rhine")]})  # fmt: skip
        (instance,) = evalset.instances
        assert evalset.adapter_spec.method == "multiple_choice_joint"
        assert render(evalset.adapter_spec, instance) == "Input: a?\nA. Rhine\nB. Nile\nC. Volga\nOutput: B\n"
        assert labels(evalset) == [{"A": "Rhine", "B": "Nile", "C": "Volga"}]
        assert row_extra(instance)["data"] == {"references": {"1": {"kept": 1}}}

    def test_the_files_mapping_may_be_longer_than_a_row(self, tmp_path):
        rows = [choice("a?", RIVERS), choice("b?", RIVERS[:2])]
        spec = {"answer_mapping": {"A": 0, "B": 1, "C": 2}, "max_train_instances": 0}
        evalset = load(write(tmp_path / "x.json", rows, spec))
        assert labels(evalset) == [self.EXPECTED, {"A": "Nile", "B": "Volga"}]

    def test_a_mapping_makes_a_row_multiple_choice(self, tmp_path):
        row = {**answered(state("a?", "Nile"), "A"), "answer_mapping": {"A": "Nile"}}
        evalset = load(write(tmp_path / "x.json", [row]))
        assert labels(evalset) == [{"A": "Nile"}]
        assert evalset.adapter_spec.method == "generation"

    def test_labels_of_the_file(self, tmp_path):
        spec = {"reference_prefix_characters": ["x", "yy", "z"], "max_train_instances": 0}
        evalset = self.load(tmp_path, None, spec)
        assert labels(evalset) == [{"x": "Nile", "yy": "Volga", "z": "Rhine"}]
        assert (
            render(evalset.adapter_spec, evalset.instances[0]) == "Input: a?\nx. Nile\nyy. Volga\nz. Rhine\nOutput: x\n"
        )


class TestRendering:
    """What HELM's own joint adapter makes of the AdapterSpec."""

    @pytest.mark.parametrize(
        ("prefix", "mapping", "lines"),
        [
            ("A. ", None, ["A. Nile", "B. Volga", "C. Rhine"]),
            ("(a) ", None, ["(a) Nile", "(b) Volga", "(c) Rhine"]),
            ("1) ", None, ["1) Nile", "2) Volga", "3) Rhine"]),
            ("甲、", None, ["甲、Nile", "乙、Volga", "丙、Rhine"]),
            ("А. ", None, ["А. Nile", "Б. Volga", "В. Rhine"]),
            ("가. ", None, ["가. Nile", "나. Volga", "다. Rhine"]),
            ("①", None, ["①Nile", "②Volga", "③Rhine"]),
            ("Ａ：", None, ["Ａ：Nile", "Ｂ：Volga", "Ｃ：Rhine"]),
            ("क. ", None, ["क. Nile", "ख. Volga", "ग. Rhine"]),
            ("9. ", None, ["9. Nile", "10. Volga", "11. Rhine"]),
            ("Y. ", None, ["Y. Nile", "Z. Volga", "AA. Rhine"]),
            ("ア. ", None, ["ア. Nile", "イ. Volga", "ウ. Rhine"]),
            ("- (A) ", None, ["- (A) Nile", "- (B) Volga", "- (C) Rhine"]),
            ("A. an Apple ", None, ["A. an Apple Nile", "B. an Apple Volga", "C. an Apple Rhine"]),  # HELM: both A
            ("10) ", {"10": 0, "2": 1, "1": 2}, ["10) Nile", "2) Volga", "1) Rhine"]),
            ("[x] ", {"[x]": 0, "[y]": 1, "[z]": 2}, ["[x] Nile", "[y] Volga", "[z] Rhine"]),
            ("B. ", {"A": 0, "B": 1, "C": 2}, ["A. Nile", "B. Volga", "C. Rhine"]),
            ("A. Answer: ", None, ["A. Answer: Nile", "B. Answer: Volga", "C. Answer: Rhine"]),
            ("A. ", {"甲": 0, "乙": 1, "丙": 2}, ["甲. Nile", "乙. Volga", "丙. Rhine"]),
            ("yes: ", {"yes": 0, "no": 1, "both": 2}, ["yes: Nile", "no: Volga", "both: Rhine"]),
            ("★ ", {"★": 0, "☆": 1, "✦": 2}, ["★ Nile", "☆ Volga", "✦ Rhine"]),
        ],
    )
    def test_labels(self, tmp_path, prefix, mapping, lines):
        row = choice("a?", RIVERS, 1, **({"answer_mapping": mapping} if mapping else {}))
        evalset = load(write(tmp_path / "x.json", [row], {"reference_prefix": prefix, "max_train_instances": 0}))
        wanted = {text: label for label, text in row_extra(evalset.instances[0])["labels"].items()}["Volga"]
        assert evalset.adapter_spec.method == "multiple_choice_joint"
        assert render(evalset.adapter_spec, evalset.instances[0]) == (
            "Input: a?\n" + "".join(f"{line}\n" for line in lines) + f"Output: {wanted}\n"
        )

    def test_more_than_26_options(self, tmp_path):
        options = [f"option {number}" for number in range(30)]
        evalset = load(write(tmp_path / "x.json", [choice("a?", options, 27)]))
        text = render(evalset.adapter_spec, evalset.instances[0])
        assert "\nZ. option 25\nAA. option 26\nAB. option 27\n" in text
        assert text.endswith("Output: AB\n")

    @pytest.mark.parametrize("prefix", ["Answer A. ", "Option A: "])
    def test_text_before_the_label(self, tmp_path, prefix):
        live = write(tmp_path / "x.json", rivers(), {"reference_prefix": prefix, "max_train_instances": 0})
        evalset = load(live)
        assert evalset.adapter_spec.method == "generation"
        assert labels(evalset)[0] == {"A": "Nile", "B": "Volga", "C": "Rhine"}
        assert "options-not-shown" in codes(live)


class TestChainOfThought:
    SPEC = {"max_train_instances": 1, "chain_of_thought_prefix": "Think: ", "chain_of_thought_suffix": "\nSo: "}

    def test_generation(self, tmp_path):
        rows = [
            state(split="train", chain_of_thought="It is liquid."),
            state("b?", split="test", chain_of_thought="Hm."),
        ]
        evalset = load(write(tmp_path / "x.json", rows, self.SPEC))
        train, test = evalset.instances
        assert train.references[0].output.text == "Think: It is liquid.\nSo: mercury"
        assert test.references[0].output.text == "mercury"
        assert test.extra_data["chain_of_thought"] == "Hm."
        assert evalset.adapter_spec.chain_of_thought_suffix == "\nSo: "

    def test_only_the_answer_that_is_shown_gets_it(self, tmp_path):
        row = state(split="train", chain_of_thought="Why.", references=[reference(x, correct=True) for x in "xyz"])
        rows = [row, state("b?", split="test")]
        evalset = load(write(tmp_path / "x.json", rows, {"max_train_instances": 1}))
        assert [r.output.text for r in evalset.instances[0].references] == ["Why.\nx", "y", "z"]

    def test_multiple_choice(self, tmp_path):
        rows = [choice("a?", RIVERS, split="train", chain_of_thought="Egypt."), choice("b?", RIVERS, split="test")]
        evalset = load(write(tmp_path / "x.json", rows, self.SPEC))
        assert evalset.adapter_spec.method == "multiple_choice_joint_chain_of_thought"
        assert evalset.adapter_spec.chain_of_thought_prefix == "Think: "
        assert evalset.instances[0].extra_data["chain_of_thought"] == "Egypt."
        assert evalset.instances[0].references[0].output.text == "Nile"

    def test_an_argument_that_does_not_render_it(self, tmp_path):
        rows = [choice("a?", RIVERS, split="train", chain_of_thought="Egypt."), choice("b?", RIVERS, split="test")]
        path = write(tmp_path / "x.jsonl", rows, self.SPEC)
        assert load(path, method="multiple_choice_joint").adapter_spec.method == "multiple_choice_joint"

    def test_not_differentiated(self, tmp_path):
        rows = [state(f"{n}?", id=n, chain_of_thought="Why.") for n in range(102)]
        path = write(tmp_path / "x.json", rows, {"max_train_instances": 1})
        assert codes(path) == ["not-differentiated"]
        train = [instance for instance in load(path).instances if instance.split == "train"]
        assert [instance.references[0].output.text for instance in train] == ["Why.\nmercury"]


class TestDoubledPrompts:
    SPEC = {"input_prefix": "Q: ", "output_prefix": "A: "}

    def rows(self, *texts):
        return [
            state("Demo?", split="train", id="d"),
            *[state(text, split="test", id=n) for n, text in enumerate(texts)],
        ]

    def test_they_are_warned_of(self, tmp_path):
        path = write(tmp_path / "x.jsonl", self.rows("Q: Who?\nA: ", "Q: Why?"), self.SPEC | {"max_train_instances": 1})
        assert [str(p).split("\n")[0] for p in problems(path)] == [
            f"{path}:3: instance.input.text: 2 of 3 inputs begin with the input_prefix already, so the prompt has it twice",
            f"{path}:3: instance.input.text: 1 of 3 inputs end with the output_prefix already, so the prompt has it twice",
        ]
        assert load(path).adapter_spec.input_prefix == "Q: "

    def test_without_demonstrations_the_text_is_given_as_it_is(self, tmp_path):
        rows = [state(f"Q: 1+{n}?\nA: {n}\nQ: 2+{n}?\nA: ", id=n) for n in range(2)]
        path = write(tmp_path / "x.json", rows, self.SPEC | {"max_train_instances": 0})
        spec = load(path).adapter_spec
        assert (spec.input_prefix, spec.input_suffix, spec.output_prefix) == ("", "", "")
        assert "doubled-prompt" not in codes(path)

    def test_only_one_of_the_two(self, tmp_path):
        spec = self.SPEC | {"max_train_instances": 0}
        made = load(write(tmp_path / "x.json", [state("Q: Who?"), state("Q: Why?")], spec)).adapter_spec
        assert (made.input_prefix, made.input_suffix, made.output_prefix) == ("", "\n", "A: ")
        made = load(write(tmp_path / "x.json", [state("Who?\nA: ")], spec)).adapter_spec
        assert (made.input_prefix, made.input_suffix, made.output_prefix) == ("Q: ", "", "")


class TestScoring:
    def test_where_the_next_question_would_begin(self, tmp_path):
        spec = {
            "instance_prefix": "\n\n",
            "input_prefix": "Q: ",
            "stop_sequences": ["\n", "###"],
            "max_train_instances": 0,
        }
        assert self.scoring(tmp_path, rivers(), spec).next_question == ("\n\nQ: ", "###")
        assert self.scoring(tmp_path, rivers(), spec).to_args()["next_question"] == ["\n\nQ: ", "###"]
        assert self.scoring(tmp_path, rivers(), spec | {"input_prefix": " "}).next_question == ("###",)
        assert self.scoring(tmp_path, [state()], spec).next_question == ()

    def scoring(self, tmp_path, rows=None, spec=None, scoring=None, **options):
        top = {"scoring": scoring} if scoring is not None else {}
        return load(write(tmp_path / "x.json", rows or [state()], spec, **top), **options).scoring

    def test_defaults(self, tmp_path):
        names = (
            "normalized_exact_match exact_match quasi_exact_match prefix_exact_match quasi_prefix_exact_match f1_score"
        )
        assert self.scoring(tmp_path) == Scoring(metrics=(*names.split(),), main_metric="normalized_exact_match")
        assert self.scoring(tmp_path, rivers()) == Scoring(
            metrics=("exact_match", "quasi_exact_match"), main_metric="exact_match", next_question=("\nInput: ",)
        )
        shown = [choice("A. Nile\nB. Volga\nC. Rhine", RIVERS)]
        assert self.scoring(tmp_path, shown).main_metric == "exact_match"
        listed = Scoring(
            metrics=("exact_match", "set_exact_match", "list_f1"), main_metric="set_exact_match", output_format="list"
        )
        assert self.scoring(tmp_path, spec={"ouput_format": "list", "max_train_instances": 0}) == listed
        assert self.scoring(tmp_path, output_format="list") == listed

    def test_the_file_says(self, tmp_path):
        given = {"main_metric": "rouge_l", "extract": "is (.*)", "strip": True, "lower": True}
        made = self.scoring(tmp_path, scoring={"metrics": ["rouge_l", "exact_match"], **given})
        assert made == Scoring(metrics=("rouge_l", "exact_match"), **given)

    def test_arguments_win(self, tmp_path):
        given = {"metrics": ["rouge_l"], "extract": "is (.*)", "strip": True}
        made = self.scoring(tmp_path, scoring=given, metrics=["f1_score"], extract="so (.*)", strip=False, lower=True)
        assert made == Scoring(
            metrics=("f1_score",), main_metric="f1_score", extract="so (.*)", strip=False, lower=True
        )

    def test_the_best_of_several_outputs(self, tmp_path):
        made = self.scoring(tmp_path, spec={"num_outputs": 3, "max_train_instances": 0}, main_metric="f1_score@3")
        assert made.main_metric == "f1_score@3"

    def test_the_keys_of_lists(self, tmp_path):
        keys = {"separator": "\n", "extract_all": "<(.*?)>", "extract_references": True, "drop_duplicates": True}
        made = self.scoring(tmp_path, spec={"output_format": "list", "max_train_instances": 0}, scoring=keys)
        assert {key: getattr(made, key) for key in keys} == keys
        spec = {"max_train_instances": 0}
        assert self.scoring(tmp_path, spec=spec, output_format="list", separator="|").separator == "|"

    def stops(self, tmp_path, *golds, stops=("<stop>", "\n"), scoring=None, **options):
        rows = [state(f"{number}?", gold) for number, gold in enumerate(golds)]
        path = write(
            tmp_path / "x.json", rows, {"stop_sequences": list(stops), "max_train_instances": 0}, scoring=scoring or {}
        )
        found = [problem for problem in problems(path, **options) if problem.code == "stop-in-reference"]
        return load(path, **options).scoring.cut_at, found

    def test_more_behind_a_stop_sequence_is_cut_only_when_the_file_says_so(self, tmp_path):
        golds = ("Ob <stop> or Irtysh", "Po")
        cut_at, (warning,) = self.stops(tmp_path, *golds)
        assert (cut_at, warning.hint) == ((), "cut_at_stop=true cuts references and predictions there")
        assert self.stops(tmp_path, *golds, scoring={"cut_at_stop": True})[0] == ("<stop>", "\n")
        assert self.stops(tmp_path, "Po<stop>", cut_at_stop=False)[0] == ()


def test_one_sequence_of_labels_for_all_rows():
    assert shared_sequence([("A", "B"), ("A", "B", "C")]) == ("A", "B", "C")
    assert shared_sequence([("C", "A", "B"), ("A", "B")]) == ("A", "B", "C")  # in the order of the labels
    assert shared_sequence([("2", "10", "1"), ("1",)]) == ("1", "2", "10")
    assert shared_sequence([("b", "a"), ("b",)]) == ("b", "a")


def test_no_series_of_labels_repeats_itself():
    assert all(len(set(series)) == len(series) for series in _SERIES)
