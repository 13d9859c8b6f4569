"""The normal form that every format is lowered to, and the contract between a format and HELM's pipeline.

A format module reads a file and returns one `EvalSet`: HELM's own `Instance`s and `AdapterSpec`, and how to score.
What a single row needs and `AdapterSpec` cannot say rides in `Instance.extra_data["helm_ext"]`, a `RowExtra`. It
survives HELM's instance cache, Slurm and multi-GPU workers, and is visible in `scenario_state.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from typing_extensions import NotRequired

if TYPE_CHECKING:
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.scenarios.scenario import Instance

    from helm_ext.errors import Problem

DIGEST_LENGTH = 12
"""Of a SHA-256 this many hex digits stand in run names, scenario arguments and messages."""

DECODING_NUMBERS = ("temperature", "max_tokens")
"""Decoding parameters for which HELM's AdapterSpec must have a number, also where nobody knows it."""

MEDIA_KEY = "question_media"
"""The key of `Instance.extra_data` under which imported rows keep what tells their images and files from others."""

EXTRA_KEY = "helm_ext"
"""The key of ours in `Instance.extra_data`."""


class Decoding(TypedDict, total=False):
    """Request fields (HELM's names) that HELM's AdapterSpec does not have. Only what the file sets."""

    top_p: float
    top_k_per_token: int
    frequency_penalty: float
    presence_penalty: float
    num_completions: int
    """Where HELM's adapter would not ask for `AdapterSpec.num_outputs` completions: joint multiple choice."""


class Likelihood(TypedDict):
    """What a model made of one option: no text, but how likely it is after the question."""

    text: str
    """The option as it was scored, without what stands between question and answer."""
    logprob: float
    """Sum of the log-probabilities of its tokens, in nats."""
    greedy: NotRequired[bool | None]
    """Whether the model would have written just this."""
    alone: NotRequired[float | None]
    """Its log-probability without the question (`acc_mutual_info`)."""


class RecordedState(TypedDict, total=False):
    """One request that was made earlier, and what came back. All keys but `result` only where the file has them."""

    result: dict[str, Any]
    """HELM's RequestResult as JSON; what the file lacks is absent, never invented."""
    request: dict[str, Any]
    """HELM's Request as JSON, without the result: what was really sent (prompt, messages, temperature, ...)."""
    reference_index: int
    request_mode: str
    train_trial_index: int
    output_mapping: dict[str, str]
    num_train_instances: int
    prompt_truncated: bool


LeftOut = Literal["not_run", "failed", "unscored", "too_long"]
"""Why a row has no score. `not_run`: nothing usable is recorded (absent, empty, a placeholder); `failed`: `success` is
false; `unscored`: an answer is there, and no score can be made of it, as its source says; `too_long`: the question does
not fit the window."""
Status = Literal["ok", LeftOut]
STATUSES: tuple[Status, ...] = get_args(Status)
"""By their codes, in columns of rows."""


class Recorded(TypedDict):
    """What is recorded for one instance."""

    status: Status
    states: list[RecordedState]
    """One for generation and joint multiple choice; one per reference (and mode, and trial) otherwise. [] if not ok."""
    requests: NotRequired[list[int]]
    """Where not all of the method's requests are recorded: [recorded, those about options with log-probabilities;
    needed]."""
    skip: NotRequired[bool]
    """True when `missing=skip` was asked for and the status is not ok: leave the row out of the score and count it."""


class Judged(TypedDict):
    """Who judged the recorded answers by one criterion. Stands in the run's spec, in the arguments of its metric."""

    judges: list[str]
    """Models, in order of their names."""
    scale: Any
    """`Judgement.scale`, as JSON."""


class RunScoring(TypedDict):
    """How a run scores its rows: what its `scenario_state.json` says, so that it can be scored again alike."""

    class_name: str
    """Of its metric."""
    args: dict[str, Any]
    """Of its metric."""
    main_metric: str
    unmeasured: list[str]
    """Keys of HELM's request states that nobody recorded: what stands there is HELM's default."""


FACTS_OF_ROWS = frozenset({"attributes", "judged", "source"})
"""Arguments of a metric that are about the rows of a run, and not about how they are scored."""


class KeptExtra(TypedDict, total=False):
    """Keys of `RowExtra` that hold for a row when what its run wrote is scored again."""

    id: Any
    """The row's original id, where HELM's had to be made unique or a string."""
    data: dict[str, Any]
    """Keys of the row that the format does not know, kept as they are."""
    gold: str | list[str]
    """The accepted answers as the row has them, beside `data`: one text and a list of one text are not the same to
    some scores (`Score.row_function`). Absent: the correct references."""
    labels: dict[str, str]
    """Answer mapping, label to option text, in order. Completions are read as one of these labels."""
    score: dict[str, float]
    """Option text to number, where options are worth a number instead of right or wrong (UltraEval)."""
    likelihoods: list[Likelihood]
    """Log-probabilities of the options, in the order of the references: the row was recorded so, and not by a text."""
    attributes: dict[str, str]
    """The row's values of `EvalSet.attributes`, the dataset's own included."""
    cluster: str
    """What the row belongs to, where rows are not independent: a passage, a conversation."""
    source_scores: dict[str, float]
    """The source's own scores of the row, by the names of their stats (`Source.stat_name`)."""
    source_unscored: list[str]
    """The names of those that the source could not give: a judgement that it could not read."""
    judgements: list[dict[str, Any]]
    """What models and people said of the row's recorded answers (`helm_ext.judging.judgement.Judgement`)."""
    scoring: RunScoring
    """In what a run writes: on its first row alone."""
    left_out: LeftOut
    """Set by `adaptation` on rows that a run cannot score. Metrics leave them out and count them."""


class RowExtra(KeptExtra, total=False):
    """The value under `extra_data["helm_ext"]`. Every key is optional; an absent key means HELM's own behaviour."""

    only: Literal["live", "recorded"]
    """The row takes part only in runs of this kind. Default: both."""
    decoding: Decoding
    """Overrides of the request, beyond AdapterSpec."""
    prompt: list[str]
    """A prompt that HELM's adapters cannot express: [head, demonstration, ..., question]. Joined as it stands,
    demonstrations dropped from the front until it fits the window (UltraEval)."""
    recorded: Recorded
    """Completions recorded earlier. Taken out again before HELM writes anything, so no second copy is on disk."""
    position: int
    """The row's place in the file, where `adaptation.rows` moves rows. Taken out again with the recording."""


def row_extra(instance: Instance) -> RowExtra:
    """Return the instance's RowExtra, or an empty one for instances that are not ours."""
    extra_data = instance.extra_data
    return (extra_data.get(EXTRA_KEY) if extra_data else None) or {}  # type: ignore[return-value]


PLACES = ("references", "state", "input", "instance")
"""Under which `RowExtra.data` holds a row's unknown keys where the format has several places for them."""


def row_data(instance: Instance) -> dict[str, Any]:
    """Return the row's own keys, wherever in its file they stood; those in `extra_data` win, then the instance's."""
    return flatten_data(row_extra(instance).get("data", {}), instance.extra_data or {})


def flatten_data(data: dict[str, Any], extra_data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `row_data` does, of a row's unknown keys and HELM's `extra_data`."""
    if has_places(data):
        data = {key: value for place in PLACES[1:] for key, value in data.get(place, {}).items()}
    return data | {key: value for key, value in extra_data.items() if key != EXTRA_KEY}


def has_places(data: Mapping[str, Any]) -> bool:
    """Whether a row's own keys are held by the places where they stood."""
    return all(key in PLACES and isinstance(value, dict) for key, value in data.items())


@dataclass(frozen=True)
class Scoring:
    """How completions become scores. Becomes the arguments of `helm_ext.scoring.metrics.EvalSetMetric`."""

    metrics: tuple[str, ...] = ("exact_match", "quasi_exact_match")
    """Names of `helm_ext.scoring.registry`: HELM's or ours."""
    main_metric: str = "exact_match"
    """The stat on the leaderboard: one of `metrics`, or a score of the source (`Source.scores`)."""
    own_metric: str | None = None
    """Where the main metric is the source's: our stat that stands beside it, and its scores are compared with; "" where
    nothing is measured here. None: the main metric."""
    output_format: Literal["string", "list"] = "string"
    extract: str | None = None
    """Regular expression applied to each prediction: first group of the last match. Where it matches nothing, the row
    is unmapped: its score is 0, and it is counted."""
    strip: bool = False
    lower: bool = False
    """Predictions and references are lower-cased."""
    separator: str = ";"
    """What stands between the segments of a list."""
    extract_all: str | None = None
    """Regular expression each match of which is a segment of a list; several groups make a tuple."""
    extract_references: bool = False
    """Whether `extract` and `extract_all` apply to references too (`extract` where it matches)."""
    drop_duplicates: bool = False
    """Whether a segment that is repeated in a list counts once."""
    cut_at: tuple[str, ...] = ()
    """Stop sequences at which predictions and references are cut (`parsing.StopCensus` decides)."""
    label_reading: Literal["forgiving", "exact"] = "forgiving"
    """How a completion of a multiple-choice row is read as a label: `helm_ext.parsing.read_label`, or HELM's own rule
    (the stripped completion equals the label), which HELM's own `scenario_state.json` files are re-scored with."""

    thinking: Literal["move", "keep"] = "move"
    """Whether what a model thinks is moved out of a completion's text before anything reads it, into `thinking`, or
    stays a part of the answer (`helm_ext.scoring.answers`)."""
    score_tokenizer: str | None = None
    """The folder or name of a tokenizer, for scores that count tokens (`helm_ext.scoring.registry`)."""
    completions: str = "first"
    """How the scores of several completions of a row become its score: a name of `helm_ext.scoring.reducers`."""
    next_question: Sequence[str] = ()
    """What the file's next question would begin with (`helm_ext.parsing.find_question_starts`). The completion of a
    multiple-choice row is read up to there: base models go on with a question of their own."""

    def to_args(self) -> dict[str, Any]:
        """Return the JSON arguments that differ from the defaults, `metrics` always."""
        default = asdict(Scoring())
        mine = asdict(self)
        args = {key: value for key, value in mine.items() if key == "metrics" or value != default[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in args.items()}


@dataclass(slots=True)
class SourceScore:
    """What a source reports of one of its scores, over all rows."""

    mean: float | None = None
    """As it is reported; None where there is no report."""
    lower_is_better: bool | None = False
    """None: nobody says, as of a spread."""
    no_mean: str = ""
    """Why what is reported is no mean of the rows' scores; "" where it is one. No row has such a score: it is shown as
    it is reported, and there is no interval of it."""
    bounds: tuple[float, float] | None = None
    """The least and the greatest value that a row may have; None where nobody says."""


@dataclass(kw_only=True)
class Source:
    """Where rows come from. Stands in the run's spec, in the arguments of its metric."""

    tool: str
    """The format's name: the source's scores are stats named `TOOL_SCORE`."""
    version: str = ""
    model: str = ""
    """As the source spells it."""
    task: str = ""
    """Name of the dataset."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Shots, decoding parameters and the like, as the source spells them. JSON."""
    scores: dict[str, SourceScore] = field(default_factory=dict)
    """Every name that occurs in a row's scores of the source, and those of what it reports of all rows together."""
    main: str = ""
    """Name of the score that the source itself is headed by: the main metric, unless the run entry names another. ""
    where it has none. Known when the last row was read, as `scores` and `counts` are."""
    main_reason: str = ""
    """Why that one, in words, where there are others: "the first of metric_list"."""
    counts: dict[str, int] = field(default_factory=dict)
    """What the importer counts beyond the rows themselves: `lines`, `duplicates`, `edited`, ... Complete when the last
    row was read."""
    notes: Sequence[str] = ()
    """What a reader of the score must know, in words: "8 of 5,000 rows are in the log". Become warnings."""
    beside: Sequence[str] = ()
    """The names of files that nobody named: they were found beside the one that was. Become a note."""

    def stat_name(self, score: str) -> str:
        """Return the name of the stat that holds the source's own score: `lm_eval_exact_match`.

        lm-eval's filter "none" is no filter, and is left out.
        """
        return f"{self.tool}_{score.removesuffix(',none')}"

    def name_scores(self, scores: Mapping[str, float | None]) -> RowExtra:
        """Return a row's scores by the names of their stats; None is one that the source could not give."""
        stats = {self.stat_name(name): value for name, value in scores.items()}
        given = {name: value for name, value in stats.items() if value is not None}
        named: RowExtra = {"source_scores": given} if given else {}
        if unscored := [name for name in stats if name not in given]:
            named["source_unscored"] = unscored
        return named

    def find_stat(self, name: str) -> str | None:
        """Return the stat of the score that goes by this name: the stat's own, or the source's, also without "none".

        HELM splits run entries at commas; there a name with one is written with `%2C`.
        """
        name = name.replace("%2C", ",")
        known = [(score, self.stat_name(score)) for score in self.scores]
        return next((stat for score, stat in known if name in (stat, score, score.removesuffix(",none"))), None)

    def to_args(self) -> dict[str, Any]:
        """Return what stands in the run's spec: all but the notes, as JSON."""
        scores = {
            name: {
                "stat": self.stat_name(name),
                "mean": score.mean,
                "lower_is_better": score.lower_is_better,
                **({"no_mean": score.no_mean} if score.no_mean else {}),
                **({"bounds": list(score.bounds)} if score.bounds else {}),
            }
            for name, score in self.scores.items()
        }
        said = {"version": self.version, "model": self.model, "task": self.task}
        return {
            "tool": self.tool,
            **{key: value for key, value in said.items() if value},
            **({"settings": dict(self.settings)} if self.settings else {}),
            **({"main": self.stat_name(self.main), "main_reason": self.main_reason} if self.main_reason else {}),
            "scores": scores,
            "counts": dict(self.counts),
        }


@dataclass(frozen=True)
class ScoredRows:
    """How many rows a run scores: fewer in live runs, where some are demonstrations or beyond the file's own cap."""

    live: int
    recorded: int


@dataclass(frozen=True)
class Places:
    """Where the instances of an EvalSet stand in their file, for messages about them."""

    path: str
    positions: Sequence[int]
    """Of each instance: its line, from 1; in a document its position in the list `listed_in`, from 0."""
    listed_in: str = ""
    """A document's key of the list of rows; "" for files with a row on each line."""


@dataclass(frozen=True)
class EvalSet:
    """A dataset, ready for HELM.

    `instances` holds train and eval instances with unique ids; `adapter_spec` has no model and no
    `max_eval_instances` (HELM would let it beat `-m`; caps are applied to `instances`).
    """

    name: str
    """Short name: stem of the file, dataset or task name."""
    format: str
    """`adapter_spec`, `ultraeval` or `innodata`."""
    digest: str
    """SHA-256 of the bytes that were read, lower-case hex, all 64 digits."""
    question_digest: str = field(default="", kw_only=True)
    """SHA-256 of what is asked and what is right, recorded completions aside: two models' recordings of one dataset
    agree in it, and are reported in one column. "" where `digest` says it."""
    instances: Sequence[Instance]
    adapter_spec: AdapterSpec
    scoring: Scoring
    display_name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    """Names under which HELM's pages show the dataset. Only shown: facts have fields of their own."""
    details: object | None = None
    """The format's own facts: a dataclass of its package (UltraEval's `TaskFacts`), read by its run spec function."""
    warnings: tuple[Problem, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    """What was counted on the way: `rows`, `train`, `eval`, `recorded`, `not_run`, `failed`, ..."""

    scored_rows: ScoredRows | None = None
    """Where live and recorded runs of these questions do not score the same rows. Reports say so: both stand in one
    column."""

    source: Source | None = None
    """Where the completions come from, for files that another tool wrote."""

    recorded_decoding: Mapping[str, float | None] = field(default_factory=dict)
    """Of `DECODING_NUMBERS` those of recorded completions, where they are not those of `adapter_spec`: HELM's class
    must have numbers there. None: not recorded."""

    places: Places | None = None
    """Where the instances come from, where the format knows it."""

    judged: Mapping[str, Judged] = field(default_factory=dict)
    """By criterion, who judged what is recorded."""

    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What a report may group the rows by: attribute name to the values that occur (`severity` to `high`, `low`)."""

    def splits(self) -> set[str | None]:
        """Return the splits that there are."""
        from helm_ext.evalset.rows import StoredRows

        if isinstance(self.instances, StoredRows):
            return set(self.instances.find_splits())
        return {instance.split for instance in self.instances}

    def count_rows(self, kind: Literal["recorded", "live"]) -> dict[str, int]:
        """Return how many rows of each split a run of this kind evaluates, where no cap takes any away."""
        from helm.benchmark.scenarios.scenario import EVAL_SPLITS

        from helm_ext.evalset.rows import StoredRows

        if isinstance(self.instances, StoredRows):
            found = self.instances.count_splits(kind)
        else:
            rows = self.instances
            found = Counter(str(row.split) for row in rows if row_extra(row).get("only", kind) == kind)
        return {split: found[split] for split in self.adapter_spec.eval_splits or EVAL_SPLITS if found[split]}

    def has_options(self) -> bool:
        """Whether there is a row whose completion is read as one of its options."""
        from helm_ext.evalset.rows import StoredRows

        if isinstance(self.instances, StoredRows):
            return self.instances.has_labels
        return any("labels" in row_extra(instance) for instance in self.instances)

    @property
    def short_digest(self) -> str:
        """The first digits: what stands in run names and scenario arguments."""
        return self.digest[:DIGEST_LENGTH]
