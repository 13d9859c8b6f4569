"""What every command about a server that speaks OpenAI's protocol takes: what of a request it is sent."""

from __future__ import annotations

from typing import Annotated

import typer

OmitOption = Annotated[
    list[str] | None, typer.Option(help="A parameter that the server refuses, as temperature; repeatable.")
]
TopKOption = Annotated[bool, typer.Option("--top-k", help="Send top_k, which OpenAI's API does not know.")]
SeedOption = Annotated[int | None, typer.Option(help="Send a seed.")]
ExtraTokenOption = Annotated[
    bool, typer.Option("--extra-token", help="Scored prompts: ask for one token; some servers refuse 0.")
]
