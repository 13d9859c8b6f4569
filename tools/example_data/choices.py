"""`multiple_choice.json`: four options, an answer mapping on every state, and many spellings of a choice."""

from __future__ import annotations

from random import Random

from example_data.pieces import FIRST, SECOND, Api, Example, Question, deal, draw, expected_stats, references, rng_of
from example_data.spellings import chooses, names_nothing, put_options

LABELS = "ABCD"
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PORTS = ("Norrvik", "Ostholm", "Tarnsund", "Breivaag", "Lillehamn", "Stenby")
WORDS = (
    "acorn", "basket", "blanket", "candle", "carpet", "copper", "dolphin", "engine", "feather", "garlic", "hammer",
    "island", "jacket", "kettle", "ladder", "magnet", "meadow", "needle", "orchard", "pebble", "pepper", "quilt",
    "ribbon", "saddle", "thunder", "tunnel", "velvet", "walnut", "whistle", "yogurt",
)  # fmt: skip
KINDS = {
    "a musical instrument": ("violin", "cello", "flute", "oboe", "harp", "trumpet", "clarinet"),
    "a fruit": ("pear", "plum", "cherry", "apricot", "quince", "mango", "grape"),
    "a tool": ("chisel", "pliers", "spanner", "mallet", "plane", "rasp", "file"),
    "a bird": ("heron", "swift", "magpie", "finch", "stork", "plover", "wren"),
    "a metal": ("zinc", "nickel", "cobalt", "chromium", "titanium", "silver", "lead"),
}
OPPOSITES = {
    "ancient": "modern", "generous": "stingy", "shallow": "deep", "rare": "common", "humid": "dry",
    "rough": "smooth", "scarce": "plentiful", "cautious": "reckless", "permanent": "temporary", "rigid": "flexible",
    "vague": "precise", "reluctant": "eager",
}  # fmt: skip
WARES = ("a tin of paint", "a ball of wool", "a sack of flour", "a box of tiles", "a jar of honey", "a roll of tape")


def clock(minutes: int) -> str:
    """Return minutes since midnight as HH:MM."""
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def ferry(rng: Random) -> Question:
    """When does it arrive?"""
    start, takes = rng.randrange(360, 1080, 5), rng.randrange(25, 180, 5)
    here, there = rng.sample(PORTS, 2)
    text = f"The ferry leaves {here} at {clock(start)} and needs {takes} minutes to {there}. When does it arrive?"
    end = start + takes
    return put_options(rng, text, clock(end), [clock(end + off) for off in (-60, -20, -10, -5, 5, 10, 40, 60)])


def weekday(rng: Random) -> Question:
    """Which day is it then?"""
    today, days = rng.randrange(7), rng.randint(8, 40)
    text = f"Today is {DAYS[today]}. Which day of the week is it {days} days from now?"
    return put_options(rng, text, DAYS[(today + days) % 7], DAYS)


def dictionary(rng: Random) -> Question:
    """Which word comes first?"""
    words = rng.sample(WORDS, 4)
    text = f"Of the words {words[0]}, {words[1]}, {words[2]} and {words[3]}, which stands first in a dictionary?"
    return put_options(rng, text, min(words), words)


def sequence(rng: Random) -> Question:
    """How does the sequence go on?"""
    first, step = rng.randint(2, 30), rng.randint(3, 14)
    shown = ", ".join(str(first + step * index) for index in range(4))
    answer = first + 4 * step
    text = f"Which number continues the sequence {shown}?"
    return put_options(rng, text, str(answer), [str(answer + off) for off in (-step, -2, -1, 1, 2, step)])


def odd_one(rng: Random) -> Question:
    """Which does not belong?"""
    kind, other = rng.sample(sorted(KINDS), 2)
    members = rng.sample(KINDS[kind], 3)
    stranger = rng.choice(KINDS[other])
    words = [*members, stranger]
    rng.shuffle(words)
    text = f"Four cards read {words[0]}, {words[1]}, {words[2]} and {words[3]}. Which of them is not {kind}?"
    return put_options(rng, text, stranger, members)


def opposite(rng: Random) -> Question:
    """Which word is the opposite?"""
    word = rng.choice(sorted(OPPOSITES))
    text = f'Which word means the opposite of "{word}"?'
    return put_options(rng, text, OPPOSITES[word], [other for key, other in OPPOSITES.items() if key != word])


def price(rng: Random) -> Question:
    """What does it cost?"""
    ware, each, count, voucher = rng.choice(WARES), rng.randint(4, 19), rng.randint(3, 9), rng.randint(2, 6)
    answer = each * count - voucher
    text = (
        f"{ware.capitalize()} costs {each} euros. Somebody buys {count} of them and hands in a voucher worth "
        f"{voucher} euros. What is left to pay?"
    )
    wrong = [answer + voucher, answer + 2 * voucher, answer - each, answer + each, answer + 1, answer + 10]
    return put_options(rng, text, f"{answer} euros", [f"{value} euros" for value in wrong])


FIRST_PLAN = [
    (18, chooses(" {label}", LABELS, right=True)),
    (10, chooses("{label}", LABELS, right=True)),
    (8, chooses("{label}.", LABELS, right=True)),
    (8, chooses("({label})", LABELS, right=True)),
    (5, chooses(" {lower}", LABELS, right=True)),
    (8, chooses(" {label}. {text}", LABELS, right=True)),
    (6, chooses("**{label}**", LABELS, right=True)),
    (5, chooses("The answer is ({label}).", LABELS, right=True)),
    (5, chooses("The answer is {label}.", LABELS, right=True)),
    (5, chooses(" {text}", LABELS, right=True)),
    (14, chooses(" {label}", LABELS, right=False)),
    (6, chooses("({label})", LABELS, right=False)),
    (5, chooses("The answer is {label}.", LABELS, right=False)),
    (5, chooses("{label}. {text}", LABELS, right=False)),
    (4, chooses(" {text}", LABELS, right=False)),
    (4, names_nothing(" I am not sure.")),
    # Neither of these names an option, though they begin like one.
    (2, names_nothing("A good question, hard to tell.")),
    (2, names_nothing("Because too little is known, none.")),
]
"""78 right, 34 wrong, 8 that name nothing."""

SECOND_PLAN = [
    (60, chooses("{label}", LABELS, right=True)),
    (20, chooses("Answer: {label}", LABELS, right=True)),
    (10, chooses("{text}", LABELS, right=True)),
    (20, chooses("{label}", LABELS, right=False)),
    (6, chooses("The answer is {label}.", LABELS, right=False)),
    (4, names_nothing("It depends.")),
]
"""90 right, 26 wrong, 4 that name nothing."""

PLANS = {FIRST: FIRST_PLAN, SECOND: SECOND_PLAN}


def build(model: str = FIRST) -> Example:
    """Make `multiple_choice.json`: 120 rows."""
    rng = Random("multiple_choice")
    questions = draw([ferry, weekday, dictionary, sequence, odd_one, opposite, price], 120, rng)
    rng = rng_of(model, "multiple_choice", rng)
    said = deal(PLANS[model], questions, rng)
    api = Api(rng, 1_742_205_600, gives_logprobs=model == FIRST)
    states = [
        {
            "instance": {
                "input": {"text": question.text},
                "references": references(question),
                "split": "test",
                "id": f"mc-{number:03d}",
            },
            "answer_mapping": dict(zip(LABELS, question.options, strict=True)),
            "request": api.record(one.texts),
        }
        for number, (question, one) in enumerate(zip(questions, said, strict=True), start=1)
    ]
    header = {
        "display_name": "Everyday reasoning",
        "description": "Timetables, calendars, word lists and prices; four options, one is right.",
        "adapter_spec": {
            "instructions": "The following are multiple choice questions. Answer with the letter of the right option.",
            "input_prefix": "Question: ",
            "input_suffix": "\n",
            "reference_prefix": "A. ",
            "reference_suffix": "\n",
            "output_prefix": "Answer: ",
            "output_suffix": "\n",
            "instance_prefix": "\n",
            "max_train_instances": 5,
            "max_eval_instances": 1000,
            "max_tokens": 12,
            "stop_sequences": ["\n"],
            "decoding_parameters": {"temperature": 0},
            "output_format": "string",
        },
    }
    return Example("multiple_choice.json", header, states, expected_stats(said), len(said), "exact_match", model)
