"""`list_output.json`: answers of several segments, as one text or as one completion a segment."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from example_data.pieces import (
    FIRST,
    SECOND,
    Api,
    Example,
    Plan,
    Question,
    Said,
    deal,
    draw,
    expected_stats,
    references,
    rng_of,
)

COLOURS = ("red", "green", "blue", "yellow", "black", "white", "purple", "orange", "grey")
GOODS = (
    "candles", "string", "olive oil", "matches", "rye bread", "soap", "stamps", "black pepper", "nails", "tea",
    "paper bags", "honey",
)  # fmt: skip
STOPS = ("Mill Lane", "Old Bridge", "Fish Market", "Town Hall", "Castle Hill", "Botanic Garden", "North Gate", "Quarry")
NAMES = ("Anneke", "Bjarne", "Catalina", "Dimitri", "Elif", "Farid", "Greta", "Hiroshi")
BIRDS = ("heron", "stork", "magpie", "wren", "plover", "finch", "owl")


def _ask(text: str, items: list[str]) -> Question:
    return Question(text, "; ".join(items), items=tuple(items))


def jars(rng: Random) -> Question:
    """What stands to the left?"""
    order = rng.sample(COLOURS, rng.randint(4, 6))
    at = rng.randint(2, len(order) - 1)
    text = (
        f"On the shelf stand, from left to right, jars in {', '.join(order[:-1])} and {order[-1]}. "
        f"Which colours stand to the left of the {order[at]} jar?"
    )
    return _ask(text, order[:at])


def shopping(rng: Random) -> Question:
    """What was bought on that day?"""
    goods = rng.sample(GOODS, 6)
    cut = rng.randint(2, 4)
    days, name = rng.sample(("Monday", "Tuesday", "Thursday", "Friday", "Saturday"), 2), rng.choice(NAMES)
    bought = {days[0]: goods[:cut], days[1]: goods[cut:]}
    told = [f"On {day} {name} bought {', '.join(what[:-1])} and {what[-1]}." for day, what in bought.items()]
    asked = rng.choice(days)
    return _ask(f"{' '.join(told)} What did {name} buy on {asked}?", bought[asked])


def tram(rng: Random) -> Question:
    """Which stops lie between?"""
    line = rng.sample(STOPS, rng.randint(5, 7))
    first = rng.randint(0, len(line) - 4)
    last = rng.randint(first + 3, len(line) - 1)
    text = (
        f"The tram calls at {', '.join(line[:-1])} and {line[-1]}, in this order. "
        f"At which stops does it call between {line[first]} and {line[last]}?"
    )
    return _ask(text, line[first + 1 : last])


def baton(rng: Random) -> Question:
    """Who had it, in order?"""
    runners = rng.sample(NAMES, rng.randint(3, 5))
    told = [f"{runners[index]} handed the baton to {runners[index + 1]}." for index in range(len(runners) - 1)]
    rng.shuffle(told)
    return _ask(f"{' '.join(told)} Who carried the baton, from the first runner to the last?", runners)


def birds(rng: Random) -> Question:
    """Sort by number."""
    seen = dict(zip(rng.sample(BIRDS, rng.randint(3, 4)), rng.sample(range(2, 60), 4), strict=False))
    told = ", ".join(f"{bird} {count}" for bird, count in seen.items())
    text = f"Sightings this week: {told}. Name the birds from the least seen to the most seen."
    return _ask(text, sorted(seen, key=lambda bird: seen[bird]))


def _stats(exact: int, as_set: int, f1: Fraction | int) -> dict[str, Fraction]:
    return {"exact_match": Fraction(exact), "set_exact_match": Fraction(as_set), "list_f1": Fraction(f1)}


def right(question: Question, _rng: Random) -> Said:
    """All segments, in order."""
    return Said((f" {question.answer}",), _stats(1, 1, 1))


def right_spacing(question: Question, _rng: Random) -> Said:
    """White space around segments does not matter."""
    return Said((" " + " ;".join(question.items),), _stats(1, 1, 1))


def right_completions(question: Question, _rng: Random) -> Said:
    """One completion a segment; their recorded order counts, whatever their log-probabilities."""
    return Said(tuple(f" {item}" for item in question.items), _stats(1, 1, 1))


def turned(question: Question, _rng: Random) -> Said:
    """All segments, the first one last."""
    return Said((f" {'; '.join([*question.items[1:], question.items[0]])}",), _stats(0, 1, 1))


def turned_completions(question: Question, _rng: Random) -> Said:
    """The same, one completion a segment."""
    return Said((*question.items[1:], question.items[0]), _stats(0, 1, 1))


def one_missing(question: Question, _rng: Random) -> Said:
    """Leave out one of n segments: precision 1, recall (n - 1) / n."""
    count = len(question.items)
    return Said((f" {'; '.join(question.items[:-1])}",), _stats(0, 0, Fraction(2 * (count - 1), 2 * count - 1)))


def one_too_many(question: Question, rng: Random) -> Said:
    """Add one to n segments: precision n / (n + 1), recall 1."""
    count = len(question.items)
    extra = rng.choice(("thimble", "lighthouse"))
    return Said((f" {question.answer}; {extra}",), _stats(0, 0, Fraction(2 * count, 2 * count + 1)))


def near_miss(question: Question, _rng: Random) -> Said:
    """One word too many in one segment of k words, which is then worth 2k / (2k + 1); n segments on either side."""
    first, *others = question.items
    words, count = len(first.split()), len(question.items)
    worth = (Fraction(2 * words, 2 * words + 1) + count - 1) / count
    return Said((f" {'; '.join([f'probably {first}', *others])}",), _stats(0, 0, worth))


def nothing(_question: Question, _rng: Random) -> Said:
    """No segment is right, not even in part."""
    return Said((" none; unknown",), _stats(0, 0, 0))


FIRST_PLAN: Plan = [
    (40, right), (10, right_spacing), (5, right_completions), (17, turned), (5, turned_completions),
    (12, one_missing), (7, one_too_many), (8, near_miss), (6, nothing),
]  # fmt: skip
"""55 right in order, 22 more right as a set, 33 neither."""

SECOND_PLAN: Plan = [(50, right), (10, turned), (30, one_missing), (10, one_too_many), (10, nothing)]
"""50 right in order, 10 more right as a set, 50 neither."""

PLANS = {FIRST: FIRST_PLAN, SECOND: SECOND_PLAN}


def build(model: str = FIRST) -> Example:
    """Make `list_output.json`: 110 rows."""
    rng = Random("list_output")
    questions = draw([jars, shopping, tram, baton, birds], 110, rng)
    rng = rng_of(model, "list_output", rng)
    said = deal(PLANS[model], questions, rng)
    api = Api(rng, 1_742_464_800, gives_logprobs=model == FIRST)
    states = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "test",
                "id": f"list-{number:03d}",
            },
            "request": api.record(one.texts),
        }
        for number, (question, one) in enumerate(zip(questions, said, strict=True), start=1)
    ]
    header = {
        "display_name": "Lists from a passage",
        "description": "The answer is a list of segments, separated by semicolons.",
        "adapter_spec": {
            "instructions": "Answer with a list, its items separated by semicolons.",
            "input_prefix": "Passage: ",
            "input_suffix": "\n",
            "output_prefix": "List: ",
            "output_suffix": "\n",
            "instance_prefix": "\n",
            "max_train_instances": 5,
            "max_eval_instances": 1000,
            "max_tokens": 40,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0.2, "frequency_penalty": 0.1},
            "ouput_format": "list",
        },
        "scoring": {"metrics": ["exact_match", "set_exact_match", "list_f1"], "main_metric": "set_exact_match"},
    }
    return Example("list_output.json", header, states, expected_stats(said), len(said), "set_exact_match", model)
