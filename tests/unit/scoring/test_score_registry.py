"""The registry of scores: every name is called, on values worked out by hand or by HELM's own function."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from helm.benchmark.metrics import evaluate_reference_metrics as helms
from helm.benchmark.metrics.metric import MetricMetadata

from helm_ext.scoring import registry
from helm_ext.scoring.registry import LIST_SCORES, find_unnamable, get_scores, main_stat
from helm_ext.scoring.score import Score, StatInfo, describe_count
from helm_ext.scoring.scores import kola, likelihoods, lists, refusal, ultraeval
from helm_ext.scoring.scores.helm import get_score

# (gold, prediction, value), counted by hand.
TEXTS = {
    "normalized_exact_match": [("Paris", " paris.", 1), ("3.5", "35", 0)],
    # 2 common words, 2 wanted and 3 said.
    "normalized_f1": [("New York", "New York City", 0.8), ("Oslo", "Rome", 0)],
    # without "the" and the full stop: 2 common words, "yes" twice alike; 3 wanted, 2 said.
    "squad_f1": [("The yes, yes: no", "Yes. Yes", 0.8), ("the", "?", 1), ("", "Oslo", 0)],
    "value_exact_match": [("100 metres", "100.0 metres", 1), ("100 metres", "100 feet", 0)],
    **{
        f"expected_{place}{variant}": [("Blue whale", said, 1), ("Blue whale", "A shark", 0)]
        for place, said in [("exact", "Blue whale"), ("prefix", "Blue whale it is"), ("contains", "The Blue whale is")]
        for variant in ("", "_cased", "_punct", "_strict")
    },
    "expected_f1": [("New York", "New York City", 0.8)],
    "expected_rouge_l": [("a b c d", "a c d", 6 / 7)],  # the longest common subsequence has 3 words
    "expected_bleu": [("the cat sat on the mat", "the cat sat on the mat", 1), ("yes", "no", 0)],
    "expected_chrf": [("kitten", "kitten", 1), ("kitten", "zzz", 0)],
}
ELSEWHERE = {score.name for module in (kola, likelihoods, lists, refusal, ultraeval) for score in module.SCORES}
"""Tried in test_kola, test_likelihood, test_lists, test_refusals and test_ultraeval_scores."""
NEEDS_AN_EXTRA = {
    name for name in get_scores() if name.startswith("chinese_") or name in {"cider", "bleu_1", "bleu_4"}
} | {"wer_score", "mer_score", "wip_score", "cer_score"}
"""HELM downloads data or needs another package for these: what is called is the function of that name."""


def test_every_name_is_tried():
    helms = {name for name, score in get_scores().items() if score.kind == "helm" or score.refused}
    assert set(get_scores()) == {*TEXTS, *helms} | ELSEWHERE - set(LIST_SCORES)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_scores_of_texts(name):
    score = get_scores()[name]
    for gold, prediction, value in TEXTS[name]:
        assert score.function(gold, prediction) == pytest.approx(value)


@pytest.mark.parametrize("name", [score.name for score in likelihoods.SCORES])
def test_scores_of_likelihoods_are_for_rows_that_have_any(name):
    assert name in find_unnamable(name)[0]
    assert find_unnamable(name, has_likelihoods=True) is None


HELMS = sorted(n for n, s in get_scores().items() if s.kind == "helm" and not s.refused and n not in NEEDS_AN_EXTRA)


@pytest.mark.parametrize("name", HELMS)
def test_helms_scores_are_helms(name):
    function = {"math_equiv": "is_equiv", "math_equiv_chain_of_thought": "is_equiv_chain_of_thought"}.get(name, name)
    if name.startswith("rouge"):
        expected = helms.get_rouge_function(name.replace("_l", "_L").replace("_", ""))
    else:
        expected = getattr(helms, function)
    values = [("12", "12"), ("The answer is 15.", "the answer is 15 eggs"), ("a and b", "It is b and a."), ("x", "y")]
    for gold, prediction in values:
        assert get_score(name)(gold, prediction) == pytest.approx(expected(gold, prediction))


def test_every_stat_says_what_it_is():
    for output_format in ("string", "list"):
        for name, score in get_scores(output_format).items():
            assert score.name == name
            assert all(stat.description.endswith(".") for stat in score.stats), name


def test_what_reports_show_of_a_stat_and_of_a_count():
    shown = StatInfo("tone", "Tone", "How kind.", "T", None, "style").to_metadata()
    assert shown == MetricMetadata("tone", "Tone", "T", "How kind.", None, "style")
    count = describe_count("num_capped", "# capped", "Rows.").to_metadata()
    assert count == MetricMetadata("num_capped", "# capped", None, "Rows.", True, "general_information")


class TestNames:
    def test_what_can_be_named_has_no_objection(self):
        scores = get_scores().items()
        unnamable = [
            n for n, s in scores if find_unnamable(n, has_likelihoods=True, has_tokenizer=True) and not s.refused
        ]
        assert unnamable == []

    def test_a_score_may_say_why_it_cannot_be_had(self):
        assert find_unnamable("pass") == ('"pass" cannot be measured here: it needs test cases', "")
        message, _ = find_unnamable("ultraeval_function_execution")
        assert "it runs the code that the model writes" in message

    def test_lists_have_an_exact_match_of_their_own(self):
        assert get_scores()["exact_match"].kind == "helm"
        assert get_scores("list")["exact_match"].kind == "list"
        assert find_unnamable("list_f1", "list") is None
        assert find_unnamable("list_f1") == ('unknown metric "list_f1"', 'list_f1 is for "output_format": "list"')

    def test_hints(self):
        assert find_unnamable("expected_f")[1].startswith("did you mean 'expected_f1'")
        assert find_unnamable("zzz", examples="for example this")[1] == "for example this"


TWO = Score(
    name="polite",
    function=lambda gold, prediction: {"polite_low": 0.0, "polite_high": 1.0},  # noqa: ARG005
    several=(StatInfo("polite_low", "Polite, at least", "x"), StatInfo("polite_high", "Polite, at most", "x")),
)


class TestSeveralStats:
    def test_the_first_one_is_the_main_one(self):
        assert TWO.main_stat == "polite_low"
        assert TWO.to_stats(TWO.function("", "")) == {"polite_low": 0, "polite_high": 1}

    def test_a_function_that_gives_others_is_an_error(self):
        with pytest.raises(ValueError, match="score polite: the function gave polite; its stats are polite_low, poli"):
            TWO.to_stats(1.0)

    def test_the_main_metric_is_its_main_stat(self, monkeypatch):
        monkeypatch.setattr(registry, "_tables", lambda: ({"polite": TWO},) * 2)
        assert main_stat("polite") == "polite_low"
        assert main_stat("elsewhere") == "elsewhere"


class Entry(EntryPoint):
    """An installed package's entry point; `loaded` is what its module holds."""

    loaded = {}

    @property
    def dist(self):
        return type("Distribution", (), {"name": self.value.split(".")[0]})()

    def load(self):
        made = self.loaded[self.value]
        if isinstance(made, Exception):
            raise made
        return made


def load_user_scores(**loaded):
    Entry.loaded = {f"{name}.scores": made for name, made in loaded.items()}
    entries = [Entry(name, f"{name}.scores", registry.ENTRY_POINTS) for name in loaded]
    return registry._load_user_scores(entries, {"exact_match": "helm-ext"})


MINE = Score(name="mine", function=lambda gold, prediction: float(gold == prediction), description="Mine.")


class TestOtherPackages:
    def test_one_score_or_several(self):
        other = Score(name="other", function=MINE.function)
        assert load_user_scores(one=MINE, two=(other,)) == [MINE, other]

    def test_what_cannot_be_loaded_is_one_warning_and_the_rest_is_there(self):
        with pytest.warns(
            UserWarning, match=r"scores 'bad' of bad \(bad\.scores\) cannot be used: ImportError: no"
        ) as seen:
            assert load_user_scores(bad=ImportError("no such thing"), good=MINE) == [MINE]
        assert len(seen) == 1

    def test_what_is_no_score_is_not_used(self):
        with pytest.warns(UserWarning, match="'strange' of strange .* TypeError: int is no .*Score"):
            assert load_user_scores(strange=[7]) == []

    def test_a_name_that_is_taken_is_refused_and_both_are_named(self):
        taken = Score(name="exact_match", function=MINE.function)
        with pytest.warns(UserWarning, match="score 'exact_match' of greedy is not used: helm-ext has that name"):
            assert load_user_scores(greedy=[taken, MINE]) == [MINE]
        with pytest.warns(UserWarning, match="score 'mine' of second is not used: first has that name"):
            assert load_user_scores(first=MINE, second=MINE) == [MINE]


def test_names_are_had_without_helm_and_tokenizers():
    code = (
        "import sys; from helm_ext.scoring.registry import get_scores; get_scores();"
        "print([m for m in ('helm', 'sacrebleu', 'nltk', 'numpy', 'scipy', 'rouge_score') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout  # noqa: S603
    assert printed.strip() == "[]"


def test_another_package_is_found_by_its_entry_point(tmp_path):
    info = tmp_path / "vowels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vowels\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[helm_ext.scores]\nvowels = vowels:VOWELS\n")
    (tmp_path / "vowels.py").write_text(
        "from helm_ext.scoring.score import Score\n"
        "VOWELS = Score(name='same_vowels', function=lambda gold, prediction: 1.0, description='The vowels are equal.')\n"
    )
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r}); from helm_ext.scoring.registry import get_scores;"
        "print(get_scores()['same_vowels'].description)"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout  # noqa: S603
    assert printed.strip() == "The vowels are equal."


def test_bleu_without_nltks_data_is_an_error_when_the_run_is_planned(tmp_path, monkeypatch):
    from nltk import tokenize
    from request_states_files import errors, state, write

    def word_tokenize(_text):
        raise LookupError

    monkeypatch.setattr(tokenize, "word_tokenize", word_tokenize)
    monkeypatch.setattr("helm.benchmark.metrics.nltk_helper.install_nltk_resources", lambda: None)
    path = write(tmp_path / "x.json", [state()], scoring={"metrics": ["bleu_4"]})
    (found,) = errors(path)
    assert "scoring.metrics: bleu_1 and bleu_4 need NLTK's data punkt_tab" in found
    assert "hint: `python -m nltk.downloader punkt_tab`" in found
    assert errors(write(tmp_path / "x.json", [state()], scoring={"metrics": ["rouge_l"]})) == []
