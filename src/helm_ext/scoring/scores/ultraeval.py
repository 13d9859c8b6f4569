"""UltraEval's metrics for generated answers, by upstream's names and rules (upstream's folder `metrics/`).

Upstream's names are also HELM's, with other rules (`exact_match`, `f1_score`), so every score here is called
`ultraeval_<upstream's name>`; `score_name` translates. All compare the *postprocessed* completion with each accepted
answer, and the best counts, except where upstream looks at all accepted answers at once, or at the row itself: those
have a `row_function`. It gets the accepted answers as the task has them: one text, or a list, which upstream's
`gaokaobench_match` and `qa_match` tell apart.


ROUGE is that of the package `rouge-chinese` 1.0.3, which upstream calls. It differs from other ROUGEs: n-grams are
counted once, however often they occur; sentences end at Chinese full stops, question and exclamation marks, which
therefore also end a word; there is no stemming; and 1e-8 stands in the divisor of the F1.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helm_ext.errors import DatasetIntegrityError, RunEntryError
from helm_ext.scoring.score import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PREFIX = "ultraeval_"

EXECUTING = frozenset({f"{PREFIX}function_execution"})
"""Scores that run what the model wrote. Refused unless the user allows it."""

BLEU_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""sacrebleu's tokenizers that need neither a download nor another package."""


ROUGE_PARTS = {"f": "F1", "p": "precision", "r": "recall"}
ROUGE_ARGUMENTS: Mapping[str, Sequence[str]] = {
    "tokenizer": BLEU_TOKENIZERS,
    "index": tuple(ROUGE_PARTS),
    "n_gram": ("1", "2", "l"),
}

_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "bleu": {"tokenizer": BLEU_TOKENIZERS[0]},
    "rouge": {"tokenizer": BLEU_TOKENIZERS[0], "index": "f", "n_gram": "1"},
}
"""The arguments that upstream's metrics take, and what each is where a config does not say."""


def score_name(upstream: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Return our name for a metric of upstream's config, `{"type": upstream, **arguments}`.

    >>> score_name("exact_match")
    'ultraeval_exact_match'
    >>> score_name("bleu", {"tokenizer": "zh"}), score_name("rouge", {"n_gram": "l"})
    ('ultraeval_bleu_zh', 'ultraeval_rouge_l')
    """
    given = arguments or {}
    name = upstream.lower()
    changed = [
        str(given[key]) for key, default in _DEFAULTS.get(name, {}).items() if given.get(key, default) != default
    ]
    return "_".join([f"{PREFIX}{name}", *changed])


def exact_match(gold: str, prediction: str) -> float:
    """Return 1.0 if both are equal once every space (U+0020) is removed; a prediction of white space is never right."""
    return float(bool(prediction.strip()) and prediction.replace(" ", "") == gold.replace(" ", ""))


def prefix_match(gold: str, prediction: str) -> float:
    """Return 1.0 if the prediction begins with the gold answer, both stripped."""
    return float(prediction.strip().startswith(gold.strip()))


def in_match(gold: str, prediction: str) -> float:
    """Return 1.0 if the prediction, in lower case and stripped, is the gold answer as it stands."""
    return float(prediction.lower().strip() == gold)


def f1_score(gold: str, prediction: str) -> float:
    """Return the F1 of the words (split at white space), with multiplicity and without normalisation."""
    predicted, wanted = prediction.split(), gold.split()
    common = sum((Counter(predicted) & Counter(wanted)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def qa_match(row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
    """Return 1.0 if the first option label of the first line is gold, or the text begins with the right option.

    A label is "(A)" or "A", with or without a full stop, for as many letters as the row has options; a prediction
    without one has the label "". The right option is the first one worth 1; the question may stand before it. A list
    of golds is never equal to a label, as upstream.
    """
    options: Mapping[str, Any] = row.get("target_scores") or {}
    text = prediction.strip()
    if _first_label(text, len(options)) == golds:
        return 1.0
    question = row.get("question")
    if isinstance(question, str):
        text = text.removeprefix(question.strip()).strip()
    right = next((option for option, worth in options.items() if worth == 1), None)
    return float(right is not None and text.startswith(right.strip()))


def _first_label(prediction: str, count: int) -> str:
    """Return the first word of the first line that is one of "(A)", "(B)", ..., as "(A)"; "" if there is none."""
    labels = {f"({chr(ord('A') + index)})" for index in range(count)}
    for word in prediction.strip().split("\n")[0].split(" "):
        bare = word.removesuffix(".")
        for candidate in (bare, f"({bare})"):
            if candidate in labels:
                return candidate
    return ""


def gaokaobench_match(_row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
    """Return the share of the parts of `golds` (its letters, or the items of a list) that the prediction has in place.

    A prediction "X[SEP]Y" holds two readings of one completion: X counts if it has as many letters as there are parts,
    else Y, cut to as many.
    """
    if "[SEP]" in prediction:
        first, second = prediction.split("[SEP]", maxsplit=1)
        prediction = first if len(first) == len(golds) else second[: len(golds)]
    return sum(a == b for a, b in zip(golds, prediction, strict=False)) / len(golds) if golds else 0.0


def _as_list(golds: Sequence[str]) -> Sequence[str]:
    """One accepted answer is a text."""
    return (golds,) if isinstance(golds, str) else golds


def chrf(_row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
    """Return sacrebleu's chrF, 0 to 100, of one sentence over several references at once, as upstream hands them."""
    import sacrebleu

    return float(sacrebleu.corpus_chrf([prediction], [[gold] for gold in _as_list(golds)]).score)


def _make_bleu(tokenizer: str) -> Score:
    def bleu(_row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
        import sacrebleu

        references = [[gold] for gold in _as_list(golds)]
        return float(sacrebleu.corpus_bleu([prediction], references, tokenize=tokenizer).score)

    return Score(
        name=score_name("bleu", {"tokenizer": tokenizer}),
        display_name="BLEU (UltraEval)" if tokenizer == "13a" else f"BLEU (UltraEval, {tokenizer})",
        description=f"sacrebleu's BLEU of one answer, 0 to 100, tokenizer {tokenizer}, all references at once.",
        row_function=bleu,
        bounds=_PERCENT,
    )


_SENTENCE_ENDS = (
    (re.compile(r"([。！？?])([^”’])"), r"\1\n\2"),
    (re.compile(r"(\.{6})([^”’])"), r"\1\n\2"),
    (re.compile(r"(…{2})([^”’])"), r"\1\n\2"),
    (re.compile(r"([。！？?][”’])([^，。！？?])"), r"\1\n\2"),
)
"""A closing quotation mark belongs to the sentence before it. In this order, each on what the one before made."""

_EPSILON = 1e-8
_PERCENT = (0.0, 100.0)


def _rouge(reference: str, hypothesis: str, kind: str) -> dict[str, float]:
    """Return precision `p`, recall `r` and F1 `f`, from 0 to 1; `kind` is "1", "2" or "l". 0 where a text is empty."""
    from rapidfuzz.distance import LCSseq

    wanted, found = _split_words(reference), _split_words(hypothesis)
    if not wanted or not found:
        return {"p": 0.0, "r": 0.0, "f": 0.0}
    if kind == "l":
        common, size_wanted, size_found = LCSseq.similarity(wanted, found), len(wanted), len(found)
    else:
        grams_wanted, grams_found = _grams(wanted, int(kind)), _grams(found, int(kind))
        common, size_wanted, size_found = len(grams_wanted & grams_found), len(grams_wanted), len(grams_found)
    precision = common / size_found if size_found else 0.0
    recall = common / size_wanted if size_wanted else 0.0
    return {"p": precision, "r": recall, "f": 2.0 * (precision * recall / (precision + recall + _EPSILON))}


def _split_words(text: str) -> list[str]:
    """Return the words of all sentences; a sentence of white space alone is one empty word."""
    for pattern, replacement in _SENTENCE_ENDS:
        text = pattern.sub(replacement, text)
    return [
        word for sentence in text.rstrip().split("\n") if sentence for word in " ".join(sentence.split()).split(" ")
    ]


def _grams(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def make_rouge(tokenizer: str = BLEU_TOKENIZERS[0], index: str = "f1", n_gram: str = "1") -> Score:
    """Return upstream's `rouge` with its arguments: of each, the first letter counts. Raises RunEntryError for others.

    Only the first of several accepted answers is looked at, as upstream does.
    """
    chosen = {"tokenizer": tokenizer, "index": str(index)[:1].lower(), "n_gram": str(n_gram)[:1].lower()}
    for key, known in ROUGE_ARGUMENTS.items():
        if chosen[key] not in known:
            hint = f"one of {', '.join(known)}"
            raise RunEntryError(f"metric rouge: {key} {chosen[key]!r} is not available\n  hint: {hint}")
    kind, part = chosen["n_gram"], chosen["index"]

    def rouge(_row: Mapping[str, Any], golds: Sequence[str], prediction: str) -> float:
        tokenize = _tokenizer(tokenizer)
        return 100.0 * _rouge(tokenize(_as_list(golds)[0]), tokenize(prediction), kind)[part]

    return Score(
        name=score_name("rouge", {"tokenizer": tokenizer, "index": part, "n_gram": kind}),
        display_name=f"ROUGE-{kind.upper()} (UltraEval)",
        description=f"ROUGE-{kind.upper()} {ROUGE_PARTS[part]} of one answer, 0 to 100, tokenizer {tokenizer}.",
        row_function=rouge,
        bounds=_PERCENT,
    )


@functools.cache
def _tokenizer(name: str) -> Callable[[str], str]:
    from sacrebleu.metrics.bleu import _get_tokenizer

    tokenizer: Callable[[str], str] = _get_tokenizer(name)()
    return tokenizer


# ---- Code that a model wrote, for `function_execution` (HumanEval, MBPP)
#
# The program runs in a process of its own: isolated mode, an empty temporary folder, an empty environment, no input,
# limits on memory, file size and processor time, and on the number of the user's processes (Linux, and not for root).
# When it ends, or its time is over, the processes of its group are ended too.
#
# This stops accidents, not attacks: there is no sandbox, the code runs with the user's rights, reads and writes what
# the user may, and reaches the network. It runs only where the user allowed it.

TIMEOUT_SECONDS = 3.0
"""Upstream's limit for one answer."""
_MEMORY_BYTES = 1 << 30
_FILE_BYTES = 1 << 20
_MORE_PROCESSES = 64
"""How many processes and threads the program may have at once, where the limit can be set."""

# The limits are set by the child itself, before it reads the program: `preexec_fn` is not safe in a threaded parent.
_LAUNCHER = f"""
import os, resource, sys
word, program = sys.stdin.buffer.read().split(b"\\n", 1)

def threads_of_user():
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{{pid}}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{{pid}}/task"))
        except OSError:
            pass
    return count

def limit(kind, wanted):
    soft, hard = resource.getrlimit(kind)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (wanted, wanted))
if sys.platform == "linux":
    limit(resource.RLIMIT_NPROC, threads_of_user() + {_MORE_PROCESSES})
limit(resource.RLIMIT_AS, {_MEMORY_BYTES})
limit(resource.RLIMIT_FSIZE, {_FILE_BYTES})
limit(resource.RLIMIT_CORE, 0)
limit(resource.RLIMIT_CPU, {int(TIMEOUT_SECONDS) + 1})
answer = os.dup(1)
nothing = os.open(os.devnull, os.O_RDWR)
os.dup2(nothing, 0)
os.dup2(nothing, 1)
exec(compile(program, "<model>", "exec"), {{}})
os.write(answer, word)
"""

_MBPP_KEYS = {"text", "code", "task_id", "test_setup_code", "test_list", "challenge_test_list"}


def make_program(row: Mapping[str, Any], completion: str) -> str:
    """Return the program that checks `completion`, as upstream puts it together (metrics/function_execution.py).

    A row with all of upstream's keys for MBPP is one of MBPP; else one with `prompt`, `test` and `entry_point` is one
    of HumanEval; else `text` and `test_list` are enough for MBPP. Raises DatasetIntegrityError for other rows.
    """
    is_humaneval = {"prompt", "test", "entry_point"} <= row.keys()
    if is_humaneval and not row.keys() >= _MBPP_KEYS:
        return f"{row['prompt']}{completion}\n{row['test']}\ncheck({row['entry_point']})"
    if {"text", "test_list"} <= row.keys():
        tests = "\n".join(row["test_list"])
        return f'"""{row["text"]}\n{tests}"""\n{completion}\n{tests}'
    raise DatasetIntegrityError(
        "function_execution needs rows with `prompt`, `test` and `entry_point` (HumanEval) or with `text` and "
        f"`test_list` (MBPP); this one has {', '.join(sorted(row)) or 'no keys'}"
    )


def passes(program: str, timeout: float = TIMEOUT_SECONDS) -> bool:
    """Return whether `program` runs to its end within `timeout` seconds and the limits above.

    A program that leaves early (`sys.exit(0)`) has not passed: the end is told by a word that the program is not given.
    Its globals are empty, as upstream's: `__name__` is "builtins", so what stands under `if __name__ == "__main__":`
    does not run.
    """
    word = os.urandom(16).hex()
    with tempfile.TemporaryDirectory(prefix="helm_ext_", ignore_cleanup_errors=True) as folder:
        with subprocess.Popen(
            [sys.executable, "-I", "-c", _LAUNCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.defpath, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(f"{word}\n{program}".encode("utf-8", "surrogatepass"), timeout=timeout)
            except subprocess.TimeoutExpired:
                return False
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # its group is gone, or but for a zombie
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode == 0 and output == word.encode()


def function_execution(row: Mapping[str, Any], _golds: Sequence[str], prediction: str) -> float:
    """Return 1.0 if the row's tests pass on the completion. Runs it, in a process of its own, with limits."""
    return float(passes(make_program(row, prediction)))


SCORES: tuple[Score, ...] = (
    *(
        Score(score_name(upstream), display_name=f"{title} (UltraEval)", description=description, **more)
        for upstream, title, description, more in (
            ("exact_match", "Exact match", "1 if equal to an accepted answer, all spaces removed.",
             {"function": exact_match}),
            ("prefix_match", "Prefix match", "1 if the answer begins with an accepted one, both stripped.",
             {"function": prefix_match}),
            ("in_match", "In match", "1 if the answer, in lower case and stripped, is an accepted one.",
             {"function": in_match}),
            ("qa_match", "QA match", ("1 if the first option label of the first line is right, or the answer begins "
                                      "with the right option's text."),
             {"row_function": qa_match}),
            ("f1_score", "F1", "F1 over words split at white space, best over the accepted answers.",
             {"function": f1_score}),
            ("gaokaobench_match", "GAOKAO match", "Share of the letters that are right, place by place.",
             {"row_function": gaokaobench_match}),
            ("chrf", "chrF", "sacrebleu's chrF of one answer, 0 to 100, all references at once.",
             {"row_function": chrf, "bounds": _PERCENT}),
            ("function_execution", "Tests passed", "1 if the row's tests pass on the code that the model wrote.",
             {"row_function": function_execution,
              "refused": "it runs the code that the model writes, which ultraeval: alone can allow"}),
        )
    ),
    *(_make_bleu(tokenizer) for tokenizer in BLEU_TOKENIZERS),
    make_rouge(),
)  # fmt: skip
