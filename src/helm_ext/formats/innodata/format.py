"""Format 3, `innodata:` entries: its arguments, its files, and where its code is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from helm_ext.errors import Problem
from helm_ext.formats.format import (
    AS_GIVEN,
    FLAG,
    MISSING,
    NUMBER,
    PATH,
    SEVERAL,
    TEXT,
    THINKING,
    WHOLE_NUMBER,
    Argument,
    Claim,
    Format,
    Plan,
    Seen,
    one_of,
)

if TYPE_CHECKING:
    from helm_ext.evalset import EvalSet


class _Innodata(Format):
    name = "innodata"
    title = "Innodata Dataset Hub bundle"
    dataset_title = "Innodata dataset"
    expects = "a bundle NAME.zip of test.jsonl, train.jsonl and meta.json"
    sources = ("dataset", "path")
    kinds = frozenset({".zip", "zip"})
    usage = "innodata:dataset=NAME,model=... or innodata:path=FILE,model=..."
    scenario_class = "helm_ext.formats.innodata.scenario.InnodataScenario"
    arguments = (
        Argument("dataset", TEXT, "a dataset of the hub", "one of `dataset` and `path` is needed", names_data=True),
        Argument("path", PATH, "a bundle", names_data=True),
        Argument("version", AS_GIVEN, "of a dataset of the hub: a number", "the newest", names_data=True),
        Argument("split", one_of("test", "train"), "the split that is evaluated", "`test`"),
        Argument("hub", PATH, "the hub's folder or URL", "`HELM_EXT_HUB`, else user data", names_data=True),
        Argument("render", one_of("chat", "text"), "messages are sent as they are, or written as a text prompt",
                 "`chat`"),
        Argument("replies", PATH, "a JSON Lines file of replies to score, with `model=recorded/NAME`; any other model "
                 "is refused", names_data=True),
        Argument("max_tokens", WHOLE_NUMBER, "of a reply", "512"),
        Argument("limit", WHOLE_NUMBER, "the first N records (HELM's `-m` then takes a random part of "
                 "them); no others are parsed", "all"),
        MISSING,
        Argument("metrics", SEVERAL, "names of metrics", "all below"),
        Argument("main_metric", TEXT, "the one on the leaderboard", "`expected_contains`"),
        THINKING,
        Argument("extract", TEXT, "a regular expression, applied to each reply before scoring"),
        Argument("strip", FLAG, "white space around replies is removed", "`false`"),
        Argument("lower", FLAG, "replies are written in lower case", "`false`"),
        Argument("temperature", NUMBER, "of sampling", "0", in_run_entry=False),
        Argument("stop", SEVERAL, "texts that end a reply", in_run_entry=False),
    )  # fmt: skip

    def claims(self, seen: Seen) -> Claim:
        """A ZIP file, by its name or its content."""
        if seen.suffix == ".zip":
            return Claim.SURE
        return Claim.MAYBE if seen.is_zip else Claim.NO

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Freeze the version: a run says for ever which it was, also when it was asked for "the newest"."""
        if "dataset" not in arguments:
            return dict(arguments)
        from helm_ext.formats.innodata import hub

        found = hub.resolve(arguments["dataset"], arguments.get("version"), arguments.get("hub"))
        return {**arguments, "version": found.version}

    def load(self, **arguments: Any) -> EvalSet:
        """Read the records of one split. Raises DatasetError, HubError, RunEntryError."""
        from helm_ext.files import show_reading
        from helm_ext.formats.innodata import loading

        with show_reading(self.name_source(arguments)):
            return loading.load(**arguments)

    def check(self, *, execute: bool = True, **arguments: Any) -> tuple[list[Problem], dict[str, int]]:  # noqa: ARG002
        """Return all problems of a bundle and its counts; nothing is executed."""
        from helm_ext.files import show_reading
        from helm_ext.formats.innodata import loading

        with show_reading(self.name_source(arguments)):
            return loading.check(**arguments)

    def plan(self, arguments: Mapping[str, Any], evalset: EvalSet) -> Plan:
        """Show the run under the dataset's attributes too."""
        return Plan(arguments, arguments, groups=evalset.tags)

    def load_demonstrations(self, **arguments: Any) -> EvalSet | None:
        """Return the train split of a bundle whose test split is converted; None when it is empty."""
        from helm_ext.formats.innodata import loading
        from helm_ext.formats.innodata.hub import open_bundle

        if arguments.get("split", "test") != "test":
            return None
        with open_bundle(arguments["path"]) as bundle:
            if not bundle.meta.sizes["train"]:
                return None
        options = {key: value for key, value in arguments.items() if key not in {"split", "replies", "limit"}}
        return loading.load(split="train", **options)


FORMAT = _Innodata()
