"""Format `openai_batch:`: its arguments, and which files are its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_ext.formats.format import PATH, TEXT, Argument, Claim, Kind, Seen
from helm_ext.formats.format import read_path as _read_path
from helm_ext.formats.imported.format import GOLD_KIND, INDEX_BASE, SHARED_ARGUMENTS, ImportedFormat

if TYPE_CHECKING:
    from helm_ext.formats.imported.row import Opened


def _read_paths(name: str, value: Any) -> list[str]:
    """Return several paths. A `+` separates them, a comma in one is written `%2C`."""
    given = value if isinstance(value, list) else str(value).split("+")
    return [_read_path(name, each) for each in given]


PATHS = Kind("paths, joined with `+`", _read_paths)


class _OpenAIBatch(ImportedFormat):
    name = "openai_batch"
    title = "OpenAI Batch requests and results"
    dataset_title = "OpenAI batch"
    expects = "JSON Lines of requests (custom_id, method, url, body), or of their results (custom_id, response, error)"
    kinds = frozenset({"json"})
    usage = "openai_batch:path=INPUT,gold=FILE,model=..."
    scenario_class = "helm_ext.formats.openai_batch.scenario.OpenAIBatchScenario"
    arguments = (
        Argument("path", PATH, "the file of requests; or a file of results, beside which they are", names_data=True),
        Argument("output", PATHS, "files of results, of errors too", "those beside it that answer its requests",
                 names_data=True),
        Argument("input", PATH, "the file of requests, where `path` is one of results", "the one beside it",
                 names_data=True),
        Argument("gold", PATH, "what is right: a JSON object (`custom_id` to gold), or JSON, JSON Lines or CSV with "
                 "the columns `custom_id` and `gold`; a gold is an accepted answer, a list of them, or of requests "
                 "about options the right one's position or text", names_data=True),
        Argument("gold_column", TEXT, "the column, or key, of `gold` that says what is right",
                 "`gold`, else the only one beside `custom_id`"),
        Argument("gold_kind", GOLD_KIND, "what golds of options are", "decided over all rows"),
        Argument("index_base", INDEX_BASE, "the position of the first option, where golds are positions",
                 "decided over all rows"),
        Argument("option_start", TEXT, "the last word before an option, where requests are scored by log-probabilities",
                 "the last word that the prompts of a question, and those of most questions, share"),
        *SHARED_ARGUMENTS,
    )  # fmt: skip

    def claims(self, seen: Seen) -> Claim:
        """Both kinds of lines have their keys at the top."""
        if "custom_id" not in seen.keys:
            return Claim.NO
        from helm_ext.formats.openai_batch.requests import REQUEST_KEYS, RESULT_KEYS

        return Claim.SURE if seen.keys >= REQUEST_KEYS or seen.keys >= RESULT_KEYS else Claim.NO

    def datasets_among(self, files: Sequence[Path]) -> Sequence[Path]:
        """Results that answer a file of requests beside them are read with it."""
        from helm_ext.formats.openai_batch.requests import without_answers

        return without_answers(files)

    def read_model(self, **arguments: Any) -> str:
        """Return the model that the first request asks."""
        from helm_ext.formats.openai_batch.requests import find_input, read_first_model

        return read_first_model(find_input(Path(str(arguments["path"])), arguments.get("input")))

    def open(self, **arguments: Any) -> Opened:
        """Open requests, their results and golds. Raises DatasetError."""
        from helm_ext.formats.openai_batch.joining import open_batch

        arguments.pop("by", None)
        return open_batch(Path(arguments.pop("path")), **arguments)


FORMAT = _OpenAIBatch()
"""The format, as the table in `formats.registry` names it."""
