"""`short_answer_qa.json` and `babi_style.json`: people carry things about, and the reader keeps track.

The world is simulated, so every answer is computed. A thing that is carried moves with whoever carries it:

    Mira walked to the bakery. / Mira picked up the violin. / Mira went to the station.
    Question: Where was the violin before the station?    bakery
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

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

PEOPLE = ("Mira", "Tomas", "Ines", "Oskar", "Leyla", "Henrik")
PLACES = ("library", "harbour", "bakery", "museum", "station", "greenhouse", "courtyard", "attic")
THINGS = ("lantern", "umbrella", "violin", "parcel", "notebook", "telescope", "teapot")
GOING = ("walked to", "hurried to", "strolled to", "cycled to")
TAKING = ("picked up the {}", "took the {} along", "lifted the {}")
LEAVING = ("put the {} down", "left the {} behind", "set the {} aside")


class World:
    """Where everybody and everything is."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.people = rng.sample(PEOPLE, 3)
        self.things = rng.sample(THINGS, 3)
        self.place: dict[str, str] = {}
        """Where a person is, and where a thing lies."""
        self.holder: dict[str, str] = {}
        """Who carries a thing."""
        self.trails: dict[str, list[str]] = {}
        """The places that a thing was at, in order."""
        self.visited: dict[str, set[str]] = {person: set() for person in self.people}
        self.sentences: list[str] = []
        for person in self.people:
            self.move(person)

    def move(self, person: str) -> None:
        """Send somebody elsewhere, with all they carry."""
        place = self.rng.choice([place for place in PLACES if place != self.place.get(person)])
        going = "went back to" if place in self.visited[person] else self.rng.choice(GOING)
        self.place[person] = place
        self.visited[person].add(place)
        self.sentences.append(f"{person} {going} the {place}.")
        for thing, holder in self.holder.items():
            if holder == person:
                self.trails[thing].append(place)

    def step(self) -> None:
        """Let one thing happen."""
        person = self.rng.choice(self.people)
        here = self.place[person]
        carried = [thing for thing in self.things if self.holder.get(thing) == person]
        # A thing that nobody has mentioned may turn up anywhere.
        near = [t for t in self.things if t not in self.holder and self.place.get(t, here) == here]
        chance = self.rng.random()
        if near and not carried and chance < 0.6:
            thing = self.rng.choice(near)
            self.holder[thing] = person
            self.trails.setdefault(thing, [here])
            self.sentences.append(f"{person} {self.rng.choice(TAKING).format(thing)}.")
        elif carried and chance < 0.25:
            thing = self.rng.choice(carried)
            del self.holder[thing]
            self.place[thing] = here
            self.sentences.append(f"{person} {self.rng.choice(LEAVING).format(thing)}.")
        else:
            self.move(person)


def before(rng: Random) -> Question:
    """Ask where a thing was before a place that it was at exactly once."""
    while True:
        world = World(rng)
        for _ in range(rng.randint(7, 17)):
            world.step()
        askable = [
            (thing, place, trail[index - 1])
            for thing, trail in world.trails.items()
            for index, place in enumerate(trail)
            if index > 0 and trail.count(place) == 1
        ]
        if askable:
            thing, place, answer = rng.choice(askable)
            return _question(world, f"Where was the {thing} before the {place}?", answer)


def where(rng: Random) -> Question:
    """Ask where somebody is."""
    world = World(rng)
    for _ in range(rng.randint(2, 5)):
        world.step()
    person = rng.choice(world.people)
    return _question(world, f"Where is {person}?", world.place[person])


def who(rng: Random) -> Question:
    """Ask who carries a thing."""
    while True:
        world = World(rng)
        for _ in range(rng.randint(3, 6)):
            world.step()
        if world.holder:
            thing = rng.choice(list(world.holder))
            return _question(world, f"Who has the {thing}?", world.holder[thing])


def _question(world: World, asked: str, answer: str) -> Question:
    return Question("\n".join([*world.sentences, f"Question: {asked}"]), answer)


def _worth(exact: int, quasi: int, prefix: int) -> dict[str, Fraction]:
    # With one word to say, whatever differs in case, articles and punctuation only has all words in common.
    return {
        "normalized_exact_match": Fraction(quasi),
        "exact_match": Fraction(exact),
        "quasi_exact_match": Fraction(quasi),
        "prefix_exact_match": Fraction(prefix),
        "quasi_prefix_exact_match": Fraction(quasi),
        "f1_score": Fraction(quasi),
    }


def right(question: Question, _rng: Random) -> Said:
    """Say it exactly. White space at the ends does not matter."""
    return Said((f" {question.answer}",), _worth(1, 1, 1))


def right_capital(question: Question, _rng: Random) -> Said:
    """Case matters for the exact match."""
    return Said((f" {question.answer.upper()}",), _worth(0, 1, 0))


def right_article(question: Question, _rng: Random) -> Said:
    """So do articles."""
    return Said((f" the {question.answer}",), _worth(0, 1, 0))


def right_stop(question: Question, _rng: Random) -> Said:
    """So does punctuation."""
    return Said((f" {question.answer}.",), _worth(0, 1, 1))


def wrong(question: Question, rng: Random) -> Said:
    """Name another place, or another person."""
    kind = PEOPLE if question.answer in PEOPLE else PLACES
    return Said((f" {rng.choice([word for word in kind if word != question.answer])}",), _worth(0, 0, 0))


ADAPTER_SPEC = {
    "instructions": "Read the passage and answer the question with one word.",
    "input_prefix": "Passage: ",
    "input_suffix": "\n",
    "output_prefix": "Answer: ",
    "output_suffix": "\n",
    "instance_prefix": "\n",
}


FIRST_PLAN: Plan = [(84, right), (4, right_capital), (4, right_article), (4, right_stop), (24, wrong)]
"""84 right to the letter, 12 right but for the spelling, 24 wrong."""

SECOND_PLAN: Plan = [(70, right), (20, right_capital), (5, right_article), (5, right_stop), (20, wrong)]
"""70 right to the letter, 30 right but for the spelling, 20 wrong."""

PLANS = {FIRST: FIRST_PLAN, SECOND: SECOND_PLAN}


def build(model: str = FIRST) -> Example:
    """Make `short_answer_qa.json`: 120 rows."""
    rng = Random("short_answer_qa")
    questions = draw([before], 120, rng)
    rng = rng_of(model, "short_answer_qa", rng)
    said = deal(PLANS[model], questions, rng)
    api = Api(rng, 1_741_600_800, gives_logprobs=model == FIRST)
    states = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "test",
                "id": f"trail-{number:03d}",
            },
            "request": api.record(one.texts),
        }
        for number, (question, one) in enumerate(zip(questions, said, strict=True), start=1)
    ]
    header = {
        "display_name": "Where was it before?",
        "description": "Short passages in which people carry things about; asks for an earlier place of a thing.",
        "adapter_spec": {
            **ADAPTER_SPEC,
            "max_train_instances": 5,
            "max_eval_instances": 1000,
            "max_tokens": 5,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0.5, "top_p": 0.95},
            "ouput_format": "string",
        },
        "scoring": {"main_metric": "exact_match"},
    }
    return Example("short_answer_qa.json", header, states, expected_stats(said), len(said), "exact_match", model)


def build_small() -> Example:
    """Make `babi_style.json`: 3 demonstrations and 20 rows, 15 of them right."""
    rng = Random("babi_style")
    questions = draw([where, who], 23, rng)
    train, test = questions[:3], questions[3:]
    said = deal([(15, right), (5, wrong)], test, rng)
    api = Api(rng, 1_741_687_200, gives_logprobs=True)
    states: list[dict[str, Any]] = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "train" if number <= len(train) else "test",
                "id": f"story-{number:02d}",
            }
        }
        for number, question in enumerate(questions, start=1)
    ]
    for state, one in zip(states[len(train) :], said, strict=True):
        state["request"] = api.record(one.texts)
    header = {
        "display_name": "Who and where",
        "description": "Very short passages in which people carry things about; train and test rows are told apart.",
        "adapter_spec": {
            **ADAPTER_SPEC,
            "max_train_instances": 3,
            "max_eval_instances": 1000,
            "max_tokens": 5,
            "stop_sequences": ["\n"],
            "decoding_parameters": {},
        },
    }
    # No `scoring`: the main metric is the default for free text.
    return Example("babi_style.json", header, states, expected_stats(said), len(said), "normalized_exact_match")
